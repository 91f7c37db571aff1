"""Two runs that read one growing file at once: whoever comes last, no reject is lost and none stays for nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from etl.lake import Lake
from etl.pipeline import ingest
from tests.lakes import NOW
from tests.reading.nights import chat, told

BEGINNING = chat(0) + b"\n" + chat(1)[:9]
GROWN = chat(0) + b"\n" + chat(1) + b"\n{oops\n" + chat(2) + b"\n"


@pytest.mark.parametrize("last", ["older", "newer"])
def test_rejects_are_those_of_the_reading_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """One run has read the beginning when the other reads all; their commits of rejects and of sources interleave."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    log.write_bytes(BEGINNING)
    main, turn = threading.current_thread(), threading.Event()
    replaced, done = threading.Event(), threading.Event()
    rejects, sources = Lake.replace_rejects, Lake.upsert_sources
    newer = threading.Thread(target=lambda: ingest([log], lake=lake, now=NOW))

    def replace(opened: Lake, *given: Any) -> dict[tuple[str, str], int]:
        if threading.current_thread() is not main:
            found = rejects(opened, *given)
            replaced.set()
            return found
        log.write_bytes(GROWN)
        if last == "older":
            rejects_of_older = rejects(opened, *given)
        newer.start()
        assert replaced.wait(300)
        return rejects_of_older if last == "older" else rejects(opened, *given)

    def upsert(opened: Lake, *given: Any, **more: Any) -> None:
        if threading.current_thread() is main:
            if last == "older":
                turn.set()
                assert done.wait(300)
            sources(opened, *given, **more)
            turn.set()
        else:
            assert turn.wait(300)
            sources(opened, *given, **more)
            done.set()

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace_rejects", replace)
        patched.setattr(Lake, "upsert_sources", upsert)
        ingest([log], lake=lake, now=NOW)
        newer.join(300)
        assert not newer.is_alive()
    ingest([log], lake=lake, now=NOW)
    ingest([log], lake=tmp_path / "calm", now=NOW)
    assert told(lake) == told(tmp_path / "calm")
