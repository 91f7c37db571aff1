"""A format that is no JSON frames its own files: told by its first bytes, its rejects with place, read again alone."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from etl import ingest
from etl.adapter import adapters
from etl.opening import spooled
from etl.pipeline import replay
from tests.lakes import NOW, rows

pytestmark = pytest.mark.usefixtures("toy_adapters")
TEXT = b"guest: Is it late?\ndesk: Not at all.\n\nnobody: boo\n\nguest: Good night.\ndesk: Good night."


def test_records_of_plain_text_compressed(tmp_path: Path) -> None:
    log, lake = tmp_path / "night.txt.gz", tmp_path / "lake"
    log.write_bytes(gzip.compress(TEXT))
    report = ingest([log], lake=lake, now=NOW, strict=True).to_json()
    assert (report["records_in"], report["records_used"], report["rejects"]) == (3, 2, {"no_dialogue": 1})
    found = sorted(rows(lake), key=lambda row: row["source_line"])
    assert [(row["source_line"], row["prompt"]) for row in found] == [(1, "Is it late?"), (6, "Good night.")]
    (reject,) = rows(lake, "rejects")
    assert (reject["source_line"], reject["source_offset"], reject["raw"]) == (4, 38, b"nobody: boo")


def test_a_reject_of_a_lost_file_is_framed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, lake = tmp_path / "night.txt", tmp_path / "lake"
    log.write_bytes(TEXT)
    ingest([log], lake=lake, now=NOW, strict=True)
    log.unlink()
    module = next(type(adapter).__module__ for name, adapter in adapters().items() if name == "scroll")
    monkeypatch.setitem(__import__("sys").modules[module]._ROLES, "nobody", "user")
    replay(lake, now=NOW)
    assert sorted(row["prompt"] for row in rows(lake)) == ["Good night.", "Is it late?", "boo"]
    assert rows(lake, "rejects") == []


def test_a_spooled_file_has_all_blocks_and_is_gone_afterwards() -> None:
    with spooled([b"one ", b"two"]) as path:
        assert path.read_bytes() == b"one two"
    assert not path.exists()
