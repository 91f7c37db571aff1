"""Hermes sessions: a file that is written anew as it grows is one row."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cases.reading import read_in, told
from tests.lakes import rows, said


def test_a_session_written_anew_is_one_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    whole = json.loads((samples / "hermes" / "coach.json").read_text(encoding="utf-8"))
    path = tmp_path / "session.json"
    for count, updated in ((1, "2026-04-29T20:05:01.000Z"), (4, whole["last_updated"])):
        grown = {**whole, "messages": whole["messages"][:count], "last_updated": updated, "message_count": count}
        path.write_text(json.dumps(grown), encoding="utf-8")
        read_in(lake, path)
    read_in(tmp_path / "once", samples / "hermes" / "coach.json")
    assert said(lake) == said(tmp_path / "once")
    (row,) = rows(lake)
    assert told(row)["messages"][:2] == [("system", "You run the coach house."), ("user", "Is the post coach late?")]
    assert [step["status"] for step in row["steps"]] == ["ok", "missing"]
