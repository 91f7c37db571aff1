"""A file of lines that has grown is read on where it ended, and the lake says what reading it whole would say."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etl.lake import Lake
from etl.pipeline import ingest
from tests.lakes import NOW, rows
from tests.reading.nights import CHATS, ODD, SPANS, WHOLE, chat, night, span, told

_LINES = st.one_of(
    st.lists(st.sampled_from(CHATS), min_size=2, max_size=25),
    st.lists(st.sampled_from(CHATS + ODD), min_size=2, max_size=25),
    st.lists(st.sampled_from(SPANS), min_size=2, max_size=25),
)


_CUTS = st.lists(st.floats(0.05, 1), min_size=1, max_size=3)


@settings(max_examples=3, deadline=None)
@given(lines=_LINES, cuts=_CUTS, change=st.booleans())
def test_reading_on_says_what_reading_whole_says(lines: list[bytes], cuts: list[float], change: bool) -> None:
    """Some files; the others are slow."""
    _nights(lines, cuts, change)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(lines=_LINES, cuts=_CUTS, change=st.booleans())
def test_reading_on_says_what_reading_whole_says_of_many(lines: list[bytes], cuts: list[float], change: bool) -> None:
    """As above."""
    _nights(lines, cuts, change)


def _nights(lines: list[bytes], cuts: list[float], change: bool) -> None:
    """Night after night the file ends somewhere, also inside a line; once a byte of its beginning may change."""
    body = (chat(0) if lines[0] in CHATS + ODD else span(0, 0)) + b"\n" + b"\n".join(lines)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        log = Path(folder, "log.jsonl")
        for number, cut in enumerate([*sorted(cuts), 1]):
            if change and number == len(cuts):
                body = body.replace(b"q0", b"q9").replace(b"assistant 0 0", b"assistant 0 9")
            log.write_bytes(body[: int(len(body) * cut)])
            night([log], Path(folder, "on"), patch, least_growing=0)
            night([log], Path(folder, "whole"), patch, least_growing=WHOLE)
            assert told(Path(folder, "on"), reached=False) == told(Path(folder, "whole"), reached=False)


def _reading(lake: Path) -> dict[str, object]:
    (found,) = rows(lake, "sources")
    return found


def test_only_what_is_new_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the second night are those of its lines, and a reject of the first stays where it was."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    log.write_bytes(b"\n".join([b"{oops", *(chat(number) for number in range(50))]) + b"\n" + chat(1)[:9])
    night([log], lake, monkeypatch, least_growing=0)
    first = _reading(lake)
    assert (first["state"], first["records_in"], first["rejects"]) == ("growing", 52, 2)
    assert first["read_bytes"] == log.read_bytes().rindex(b"\n") + 1
    with log.open("ab") as more:
        more.write(chat(1)[9:] + b"\n" + chat(77) + b"\n")
    report = night([log], lake, monkeypatch, least_growing=0)
    assert report.rows.added == 2
    assert report.rows.unchanged == 0
    second = _reading(lake)
    assert (second["state"], second["records_in"], second["rows"], second["rejects"]) == ("done", 53, 52, 1)
    assert [row["source_line"] for row in rows(lake, "rejects")] == [1]
    assert {row["source_line"] for row in rows(lake) if row["batch_id"] == report.batch_id} == {52, 53}
    assert len({row["rollout_id"] for row in rows(lake)}) == 52, "the second of two equal records has its own name"


@pytest.mark.parametrize("kind", ["rewritten", "shorter", "rotated", "other policy"])
def test_what_did_not_only_grow_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Where the beginning is another one, or would be read otherwise today, nothing of it is taken for known."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    body = b"".join(chat(number) + b"\n" for number in range(50))
    log.write_bytes(body)
    night([log], lake, monkeypatch, least_growing=0)
    bodies = {
        "rewritten": body.replace(b"q3", b"Q3") + chat(99) + b"\n",
        "shorter": body[: len(body) // 2],
        "rotated": b"".join(chat(number) + b"\n" for number in range(100, 160)),
        "other policy": body + chat(99) + b"\n",
    }
    log.write_bytes(bodies[kind])
    report = night([log], lake, monkeypatch, least_growing=0, redact="none" if kind == "other policy" else "secrets")
    (read,) = report.files
    assert read.read_from == 0
    assert read.records_in == bodies[kind].count(b"\n") + (not bodies[kind].endswith(b"\n"))


def test_many_conversations_of_traces_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the traces that got a span are put together again; the file's count of rows is of all."""
    log = tmp_path / "spans.jsonl"
    body = b"".join(span(trace, 0) + b"\n" for trace in range(100))
    for number, more in enumerate((b"", b"".join(span(trace, 1) + b"\n" for trace in range(95, 105)))):
        log.write_bytes(body + more)
        report = night([log], tmp_path / "on", monkeypatch, least_growing=0)
        night([log], tmp_path / "whole", monkeypatch, least_growing=WHOLE)
        assert bool(report.files[0].read_from) == bool(number)
    assert report.rows.unchanged == 5, "the other row of each trace that got a span"
    assert told(tmp_path / "on", reached=False) == told(tmp_path / "whole", reached=False)


def test_undo_of_the_night_before_lets_all_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows and rejects of the beginning belong to the batch that read them."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    log.write_bytes(b"{oops\n" + b"".join(chat(number) + b"\n" for number in range(20)))
    first = night([log], lake, monkeypatch, least_growing=0)
    with log.open("ab") as more:
        more.write(chat(50) + b"\n")
    opened = Lake.open(lake)
    with opened.batch("keep"):
        opened.retain(3_600_000)
    night([log], lake, monkeypatch, least_growing=0)
    with opened.batch("undo"):
        opened.undo(first.batch_id)
    ingest([log], lake=lake, now=NOW)
    ingest([log], lake=tmp_path / "fresh", now=NOW)
    assert told(lake, reached=False) == told(tmp_path / "fresh", reached=False)


@pytest.mark.parametrize("odd", [chat(0) + b"\x00", chat(0) + chat(0), b"\x00" + chat(0)])
def test_records_found_again_in_odd_lines_count_among_their_equals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bytes
) -> None:
    """A line that has one record by another text says nothing of it to who counts lines: such a file is read whole."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    log.write_bytes(chat(0) + b"\n" + odd + b"\n" + chat(1) + b"\n")
    night([log], lake, monkeypatch, least_growing=0)
    with log.open("ab") as more:
        more.write(chat(0) + b"\n" + chat(0) + b"\n")
    assert night([log], lake, monkeypatch, least_growing=0).rows.added == 2
    night([log], tmp_path / "whole", monkeypatch, least_growing=WHOLE)
    assert told(lake, reached=False) == told(tmp_path / "whole", reached=False)


def test_undo_brings_back_no_reject_that_a_later_night_took_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail is cut off for two nights and whole in the third; the second is taken back."""
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    opened, batches = Lake.create(lake), []
    with opened.batch("keep"):
        opened.retain(3_600_000)
    for length in (5, 9, None):
        log.write_bytes(chat(0) + b"\n" + chat(1)[:length])
        batches.append(night([log], lake, monkeypatch, least_growing=0).batch_id)
    with opened.batch("undo"):
        opened.undo(batches[1])
    ingest([log], lake=lake, now=NOW)
    ingest([log], lake=tmp_path / "fresh", now=NOW)
    assert told(lake, reached=False) == told(tmp_path / "fresh", reached=False)
