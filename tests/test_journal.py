"""A database that a program has open is read with its log; when the log is merged, nothing changes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from etl import ingest
from etl.journal import log_beside, merged
from tests.lakes import NOW, rows, said


def _opened(path: Path) -> sqlite3.Connection:
    """A store of OpenCode that stays open, all of it but the tables in the log."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    for name, more in (("message", ""), ("part", ", message_id TEXT")):
        database.execute(f"CREATE TABLE {name} (id TEXT PRIMARY KEY, session_id TEXT{more}, data TEXT)")
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def _say(database: sqlite3.Connection, number: int, text: str) -> None:
    message = {"role": "user", "time": {"created": 1774850400000 + number * 1000}}
    database.execute("INSERT INTO message VALUES (?, 's', ?)", (f"m{number}", json.dumps(message)))
    part = json.dumps({"type": "text", "text": text})
    database.execute("INSERT INTO part VALUES (?, 's', ?, ?)", (f"p{number}", f"m{number}", part))
    database.commit()


def _texts(lake: Path) -> list[str]:
    return [message["content"] for row in rows(lake) for message in row["messages"]]


def test_what_lies_in_the_log_is_read_and_read_again_as_it_grows(tmp_path: Path) -> None:
    folder, lake = tmp_path / "home", tmp_path / "lake"
    folder.mkdir()
    database = _opened(folder / "opencode.db")
    _say(database, 1, "Is it noon?")
    first = ingest([folder], lake=lake, now=NOW, strict=True).to_json()
    assert (_texts(lake), first["files"]["failed"]) == (["Is it noon?"], 0)
    _say(database, 2, "And now?")
    second = ingest([folder], lake=lake, now=NOW, strict=True).to_json()
    assert (_texts(lake), second["rows"]["replaced"]) == (["Is it noon?", "And now?"], 1)
    before = said(lake)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert [path.name for path in folder.iterdir()] == ["opencode.db"]
    third = ingest([folder], lake=lake, now=NOW, strict=True).to_json()
    assert (said(lake), third["rows"]["replaced"], third["rows"]["removed"]) == (before, 0, 0)


def test_the_log_itself_is_skipped_with_its_reason(tmp_path: Path) -> None:
    database = _opened(tmp_path / "opencode.db")
    _say(database, 1, "Is it noon?")
    ingest([tmp_path / "opencode.db-wal"], lake=tmp_path / "lake", now=NOW)
    (file,) = rows(tmp_path / "lake", "sources")
    assert (file["state"], file["error"].split(": ", 1)[1]) == (
        "skipped",
        "the log of an SQLite database, read with it",
    )
    database.close()


def test_a_log_that_is_of_no_use_leaves_the_database(tmp_path: Path) -> None:
    database = _opened(tmp_path / "opencode.db")
    _say(database, 1, "Is it noon?")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    path, log = tmp_path / "opencode.db", tmp_path / "opencode.db-wal"
    log.write_bytes(b"no log at all")
    assert log_beside(path) == log
    with merged(path, log) as whole:
        assert sqlite3.connect(whole).execute("SELECT count(*) FROM part").fetchone() == (1,)
    assert log_beside(tmp_path / "none.db") is None
    text = tmp_path / "text"
    text.write_text("plain", encoding="utf-8")
    (tmp_path / "text-wal").write_text("x", encoding="utf-8")
    assert log_beside(text) is None
