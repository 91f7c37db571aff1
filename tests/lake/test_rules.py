"""Which rules of redaction a lake's rows went through: noted with them, kept through every rewrite, asked for later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from etl.cli.exits import DONE, FAILED
from etl.lake import Lake
from etl.lake.rules import covers, is_older, policy_of, rules_in, rules_of, with_rules
from etl.pipeline import ingest
from etl.redact import Redactor
from etl.redact.redactor import rules_version
from tests.lake.rows import put, rollout
from tests.lakes import NOW

KEY = b"0123456789abcdef0123456789abcdef"


def _log(path: Path, *numbers: int) -> Path:
    messages = [{"role": "user", "content": "mail jane@example.com"}, {"role": "assistant", "content": "done"}]
    path.write_text("".join(json.dumps({"id": f"c{n}", "messages": messages}) + "\n" for n in numbers))
    return path


def _said(path: Path, text: str) -> Path:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "done"}]
    path.write_text(json.dumps({"messages": messages}) + "\n")
    return path


def _versions(lake: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for seen in rules_in(Lake.open(lake), []):
        found.setdefault(seen.table, set()).add(seen.version)
    return found


@pytest.mark.parametrize("policy", ["secrets", "pii", "none"])
def test_what_rows_went_through_is_noted(tmp_path: Path, policy: str) -> None:
    ingest([_log(tmp_path / "a.jsonl", 1)], lake=tmp_path / "lake", now=NOW, redact=policy, pseudonym_key=KEY)
    assert _versions(tmp_path / "lake") == {"rollouts": {rules_version(policy)}, "sources": {rules_version(policy)}}
    assert Redactor(policy, KEY).version == rules_version(policy)


def test_merged_files_say_all_that_their_rows_went_through(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for number, policy in enumerate(("secrets", "pii", "secrets")):
        log = _log(tmp_path / f"{number}.jsonl", number)
        ingest([log], lake=lake, now=NOW, redact=policy, pseudonym_key=KEY)
    opened = Lake.open(lake)
    with opened.batch("c"):
        opened.compact()
    (file,) = opened.live("rollouts")
    assert rules_of(file.path) == {rules_version("secrets"), rules_version("pii")}


def test_only_rows_of_other_rules_are_looked_at_and_written_anew(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    put(lake, [rollout("r1", day="2026-01-01")])
    put(lake, [rollout("r2", day="2026-01-02")])
    looked_at: list[str] = []

    def change(rows: pa.Table) -> pa.Table:
        looked_at.extend(rows["rollout_id"].to_pylist())
        return rows

    with lake.batch("u"):
        assert lake.rewrite("rollouts", change, "secrets-1", dry_run=True) == (2, 0)
        assert looked_at == ["r1", "r2"]
        assert lake.rewrite("rollouts", change, "secrets-1") == (2, 0)
        looked_at.clear()
        assert lake.rewrite("rollouts", change, "secrets-1") == (0, 0)
    put(lake, [rollout("r3", day="2026-01-03")])
    with lake.batch("v"):
        assert lake.rewrite("rollouts", change, "secrets-1") == (1, 0)
    assert looked_at == ["r3"]
    assert {version for file in lake.live("rollouts") for version in rules_of(file.path)} == {"secrets-1"}
    assert lake.verify() == []


def test_verify_says_when_a_lake_holds_rows_of_older_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etl: Callable[..., tuple[int, str, str]]
) -> None:
    lake = tmp_path / "lake"
    ingest([_log(tmp_path / "a.jsonl", 1)], lake=lake, now=NOW)
    assert "older rules" not in etl("verify", "--lake", lake)[2]
    monkeypatch.setattr("etl.redact.rules.VERSION", "secrets-999")
    code, _, told = etl("verify", "--lake", lake)
    assert code == DONE
    assert "2 data files hold rows of older rules of redaction" in told
    assert etl("redact", "--check", "--lake", lake)[0] == DONE
    assert "older rules" not in etl("verify", "--lake", lake)[2]
    (seen, _) = json.loads(etl("verify", "--lake", lake, "--json")[1])["rules"]
    assert (seen["files"], seen["rows"], seen["is_older"]) == (1, 1, False)
    assert seen["version"].startswith("secrets-999+")


def test_a_milder_policy_than_before_is_told_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etl: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("ETL_PSEUDONYM_KEY", "11" * 32)
    lake, who = tmp_path / "lake", "bob" + "@" + "shop.example.com"
    where = ("--source", "notes", "--lake", lake)
    told = [
        etl("ingest", _said(tmp_path / f"{name}.jsonl", f"{name}: mail {who}"), *policy, *where)
        for name, policy in (
            ("a", ("--redact", "pii")),
            ("b", ()),
            ("c", ("--redact", "pii")),
            ("d", ("--redact", "none")),
        )
    ]
    assert [code for code, _, _ in told] == [DONE] * 4
    warned = ["went through pii before" in err for _, _, err in told]
    assert warned == [False, True, False, True]
    assert "Read it under --redact pii; `etl redact --check` mends" in told[1][2]
    mixed = "rows of notes went through different policies of redaction (none, secrets, pii)"
    assert mixed in etl("verify", "--lake", lake)[2]
    assert json.loads(etl("redact", "--dry-run", "--lake", lake, "--json")[1])["found"]["rollouts"] >= 1
    assert etl("redact", "--check", "--lake", lake)[0] == DONE
    assert "different policies" not in etl("verify", "--lake", lake)[2]
    assert who not in etl("sql", "SELECT content FROM messages", "--lake", lake, "--json")[1]
    batch = Lake.open(lake).commits()[-1].batch_id
    code, _, err = etl("undo", batch, "--lake", lake)
    assert code == FAILED
    assert "it wrote no rows of its own" in err
    assert "retain" not in err


def test_a_milder_policy_is_told_where_no_row_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etl: Callable[..., tuple[int, str, str]]
) -> None:
    """What is written then are rejects and names of files."""
    monkeypatch.setenv("ETL_PSEUDONYM_KEY", "11" * 32)
    where = ("--source", "a", "--lake", tmp_path / "lake")
    log = _said(tmp_path / "a.jsonl", "nothing personal")
    log.write_bytes(log.read_bytes() + b"{torn\n")
    etl("ingest", log, "--redact", "pii", *where)
    assert "went through pii before" in etl("ingest", log, "--redact", "secrets", "--reparse", *where)[2]
    assert "before" not in etl("ingest", log, "--redact", "secrets", *where)[2], "nothing was read"


def test_versions_are_sets_of_rules() -> None:
    assert covers("secrets-3+k-1+personal-2", "secrets-3+k-1")
    assert not covers("secrets-3+k-1", "secrets-3+k-2")
    assert not covers("", "secrets-3")
    assert with_rules("", "secrets-3") == with_rules("none", "secrets-3") == "secrets-3"
    assert with_rules("secrets-2+k-1+personal-2", "secrets-3+k-1") == "secrets-3+k-1+personal-2"
    present = {"secrets": "secrets-3", "personal": "personal-2"}
    assert is_older("", present)
    assert is_older("secrets-3+personal-1", present)
    assert not is_older("none", present)
    assert not is_older("secrets-3+people-1", present)
    assert [policy_of(version) for version in ("", "none", "secrets-1+k-1", "secrets-1+personal-2+people-1")] == [
        "none",
        "none",
        "secrets",
        "strict",
    ]
