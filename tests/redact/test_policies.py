"""A source that is read again under another policy: a stricter one redacts what the lake holds, a laxer brings nothing
back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.keys import lake_key
from etl.labels import label
from etl.lake import Label, Lake
from etl.pipeline import ingest
from tests.adapters.claude_sessions import Session, call, text
from tests.lakes import NOW, rows
from tests.reading.nights import chat

SECRET = "ghp" + "_" + "Zq8r" * 9
MAIL = "jane.roe" + "@" + "corp-mail.net"
KEY = b"k" * 32


def _logs(folder: Path) -> Path:
    """A session, which goes through the events, and a chat, which does not, each with a secret and an address."""
    folder.mkdir()
    session = Session("s-1")
    session.user(f"Use {SECRET}")
    session.assistant(text("I do."), call("c1", command=f"login {SECRET}"))
    session.result("c1", f"as {MAIL}")
    (folder / "s-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in session.lines))
    (folder / "chat.jsonl").write_bytes(chat(1, note=f"{SECRET} {MAIL}") + b"\n")
    return folder


def _held(lake: Path, what: str) -> list[str]:
    """The tables that hold a text."""
    return [name for name in ("rollouts", "events") if what in json.dumps(rows(lake, name), default=str)]


def _told(lake: Path) -> list[dict[str, Any]]:
    aside = {"batch_id", "ingested_at"}
    return [{key: value for key, value in row.items() if key not in aside} for row in rows(lake)]


def test_reading_again_under_a_stricter_policy_redacts_and_under_a_laxer_brings_nothing_back(tmp_path: Path) -> None:
    logs, lake = _logs(tmp_path / "logs"), tmp_path / "lake"
    for policy, held in (("none", [SECRET, MAIL]), ("secrets", [MAIL]), ("pii", []), ("secrets", []), ("none", [])):
        report = ingest([logs], lake=lake, redact=policy, pseudonym_key=KEY, reparse=True, now=NOW)
        assert [what for what in (SECRET, MAIL) if _held(lake, what)] == held
        if policy == "pii":
            ingest([logs], lake=tmp_path / "fresh", redact=policy, pseudonym_key=KEY, now=NOW)
            assert _told(lake) == _told(tmp_path / "fresh")
    assert report.rows.unchanged == 2
    assert Lake.open(lake).verify() == []


def test_a_label_goes_through_what_its_row_went_through(tmp_path: Path) -> None:
    """Secrets always, personal data where they were replaced in the row."""
    logs = _logs(tmp_path / "logs")
    for policy, held in (("none", [MAIL]), ("secrets", [MAIL]), ("pii", [])):
        lake = tmp_path / policy
        ingest([logs], lake=lake, redact=policy, pseudonym_key=KEY, now=NOW)
        row = rows(lake)[0]["rollout_id"]
        assert label(lake, row, Label("who", f"from {MAIL}", None, f"with {SECRET}"), pseudonym_key=KEY)
        given = json.dumps(next(found["judgments"] for found in rows(lake) if found["rollout_id"] == row))
        assert [what for what in (SECRET, MAIL) if what in given] == held
        assert not label(lake, row, Label("who", f"from {MAIL}", None, f"with {SECRET}"), pseudonym_key=KEY)


def test_the_key_of_a_lake_is_kept_with_the_state_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etl.keys.KEYS", tmp_path / "usual")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    older = lake_key("older")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    newer = lake_key("newer")
    assert lake_key("older") == older
    assert [path.name for path in (tmp_path / "state/etl/keys").iterdir()] == ["newer.key"]
    assert lake_key("newer") == newer
