"""A file is known by a name that holds no secret and nothing personal, is another than all others, and stays."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl.naming
import etl.redact.redactor
from etl.lake import Lake
from etl.naming import Named
from etl.pipeline import ingest
from etl.redact import Redactor
from etl.redact.search import masked_texts
from etl.redact.uris import masked_uris
from tests.lakes import NOW, rows
from tests.reading.nights import chat

KEY = b"a key that only tests have"
PII = Redactor("pii", KEY)
TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
OTHER = "ghp_" + "zB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
SECRET_NAMES = [f"{TOKEN}.jsonl", f"{OTHER}.jsonl"]
PERSONAL_NAMES = [
    "maria.lopez@example.org.jsonl", "Maria.Lopez@example.org.jsonl", "of maria.lopez@example.org.jsonl",
    "chat_+4915123456789.jsonl", "+4915123456789.jsonl", "DE89370400440532013000.jsonl", "81.173.22.9.jsonl",
]  # fmt: skip
TABLES = {"rollouts": "source_uri", "rejects": "source_uri", "sources": "uri"}


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etl.keys.KEYS", tmp_path / "keys")


def _night(tmp_path: Path, **settings: object) -> dict[str, int]:
    report = ingest([tmp_path / "logs"], lake=tmp_path / "lake", source="s", now=NOW, **settings)  # type: ignore[arg-type]
    uris = set(_uris(tmp_path / "lake", "sources"))
    assert {file.uri for file in report.files} <= uris
    assert not Lake.open(tmp_path / "lake").verify()
    return report.to_json()["files"]  # type: ignore[no-any-return]


def _uris(lake: Path, table: str) -> list[str]:
    return sorted(row[TABLES[table]] for row in rows(lake, table))


def _write(tmp_path: Path, names: list[str]) -> list[Path]:
    (tmp_path / "logs").mkdir()
    paths = [tmp_path / "logs" / name for name in names]
    for number, path in enumerate(paths):
        path.write_bytes(chat(number) + b"\n{broken\n")
    return paths


@pytest.mark.parametrize(
    ("names", "policy"), [(SECRET_NAMES, "secrets"), (SECRET_NAMES + PERSONAL_NAMES, "pii")], ids=["secrets", "pii"]
)
def test_files_whose_names_redaction_changes_are_known_like_others(
    tmp_path: Path, names: list[str], policy: str
) -> None:
    paths = _write(tmp_path, names)
    assert _night(tmp_path, redact=policy)["new"] == len(names)
    versions = Lake.open(tmp_path / "lake").version("sources")
    assert _night(tmp_path, redact=policy)["unchanged"] == len(names)
    assert Lake.open(tmp_path / "lake").version("sources") == versions
    paths[0].write_bytes(paths[0].read_bytes() + chat(90) + b"\n")
    paths[1].write_bytes(chat(91) + b"\n")
    counts = _night(tmp_path, redact=policy)
    assert (counts["grown"], counts["replaced"], counts["unchanged"]) == (1, 1, len(names) - 2)
    lake = tmp_path / "lake"
    named = _uris(lake, "sources")
    assert len(set(named)) == len(named) == len(names)
    assert len(_uris(lake, "rejects")) == len(names) - 1
    assert {*_uris(lake, "rejects"), *_uris(lake, "rollouts")} <= set(named)
    for name in names:
        assert not any(Path(name).stem in row for row in map(str, rows(lake, "sources") + rows(lake, "rejects")))


def test_members_of_archives_are_told_apart_too(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with zipfile.ZipFile(tmp_path / "logs" / f"{TOKEN}.zip", "w") as archive:
        for number, name in enumerate(SECRET_NAMES):
            archive.writestr(name, chat(number) + b"\n{broken\n")
    assert _night(tmp_path)["new"] == 2
    assert _night(tmp_path)["unchanged"] == 2
    assert len({*_uris(tmp_path / "lake", "sources")}) == len(_uris(tmp_path / "lake", "rejects")) == 2


def test_what_cannot_be_read_is_named_without_what_its_name_holds(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "maria.lopez@example.org.md").write_text("no log")
    (tmp_path / "logs" / f"{TOKEN}.jsonl.gz").write_bytes(b"\x1f\x8b\x08 and no more")
    report = ingest([tmp_path / "logs"], lake=tmp_path / "lake", redact="pii", now=NOW)
    told = json.dumps([(file.uri, file.error) for file in report.files])
    assert not [part for part in (TOKEN, "maria.lopez") if part in told + str(rows(tmp_path / "lake", "sources"))]


def test_a_lake_of_before_reads_such_files_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows two files by one name, and holds their rejects several times."""
    paths = _write(tmp_path, [*SECRET_NAMES, "plain.jsonl"])
    with monkeypatch.context() as before:
        before.setattr(etl.naming.Names, "of", lambda _self, files: [Named(file) for file in files])
        before.setattr(
            etl.redact.redactor,
            "masked_uris",
            lambda uris, personal, _key: masked_texts(pa.chunked_array([pa.array(uris, pa.string())]), personal),
        )
        for _ in range(2):
            ingest([tmp_path / "logs"], lake=tmp_path / "lake", source="s", now=NOW)
        assert len(_uris(tmp_path / "lake", "rejects")) == 5
    _night(tmp_path)
    version = Lake.open(tmp_path / "lake").version("sources")
    assert _night(tmp_path)["unchanged"] == len(paths)
    assert Lake.open(tmp_path / "lake").version("sources") == version
    lake = tmp_path / "lake"
    assert len(set(_uris(lake, "sources"))) == len(_uris(lake, "sources")) == len(paths)
    assert set(_uris(lake, "rejects")) == set(_uris(lake, "sources"))
    assert len(_uris(lake, "rejects")) == len(paths)


def test_a_stricter_policy_takes_the_old_name_away(tmp_path: Path) -> None:
    (path, *_) = _write(tmp_path, PERSONAL_NAMES[:1])
    _night(tmp_path)
    path.write_bytes(path.read_bytes() + chat(5) + b"\n")
    assert _night(tmp_path, redact="pii")["grown"] == 1
    assert len(_uris(tmp_path / "lake", "sources")) == len(_uris(tmp_path / "lake", "rejects")) == 1
    assert "maria" not in str([_uris(tmp_path / "lake", table) for table in ("sources", "rejects")])


@pytest.mark.parametrize(
    "name",
    ["/{}/x", "/dir {}/a.jsonl", "/{}_chat.jsonl", "/of {}.jsonl", "/{}.jsonl.gz", "/a.zip!{}.json", "s3://b/{}/x"],
)
@pytest.mark.parametrize("value", ["maria.lopez@example.org", "81.173.22.9", "+4915123456789"])
def test_what_is_personal_in_a_name_has_its_pseudonym(name: str, value: str) -> None:
    redactor = PII
    label = redactor.text(f"from {value}")[0].removeprefix("from ")
    uri = name.format(value)
    assert label != value
    assert redactor.uris([uri])[uri].startswith(name.format(label + "<NAME_").partition("<NAME_")[0])


PIECES = [TOKEN, OTHER, "maria.lopez@example.org", "Maria.Lopez@example.org", "81.173.22.9", "2026-04-01", *"a/!_ "]


@given(st.lists(st.sampled_from([*PIECES, ".gz", ".jsonl"]), min_size=1, max_size=8))
def test_a_name_is_stable_and_hides_what_it_held(parts: list[str]) -> None:
    redactor = PII
    uri = "/logs/" + "".join(parts)
    named = redactor.uris([uri]).get(uri, uri)
    assert redactor.uris([named]) == {}
    assert redactor.uris([uri, "/logs/another"]).get(uri, uri) == named
    other = uri.swapcase()
    assert redactor.uris([other]).get(other, other) != named


def test_a_lake_is_mended_as_if_it_had_been_read_so(tmp_path: Path, etl: Callable[..., tuple[int, str, str]]) -> None:
    """Names that a policy changes later are those that it would have given at once, and messages say them too."""
    _write(tmp_path, PERSONAL_NAMES)
    _night(tmp_path)
    assert etl("redact", "--check", "--redact", "pii", "--lake", tmp_path / "lake")[0] == 0
    told = str([rows(tmp_path / "lake", table) for table in TABLES])
    assert not [name for name in PERSONAL_NAMES if Path(name).stem in told]
    assert _night(tmp_path, redact="pii")["unchanged"] == len(PERSONAL_NAMES)


def test_no_key_is_made_where_no_name_changes(tmp_path: Path) -> None:
    _write(tmp_path, ["plain.jsonl"])
    _night(tmp_path)
    assert not (tmp_path / "keys").exists()
    assert masked_uris(["/logs/plain.jsonl"], None, None) == {}
