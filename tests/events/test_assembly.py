"""Assembly from stored events while others write to the lake: made again, and counted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from etl.adapters.otlp import Otlp
from etl.conversation import Outcome, StoredEvent
from etl.event_store import _Search
from etl.lake import Lake
from etl.pipeline import ingest
from tests.contract.harness import SAMPLES
from tests.lakes import NOW, rows
from tests.reading.nights import SPANS, span, told


def _logs(folder: Path) -> tuple[Path, Path]:
    """Spans of the same traces on two nights; some of them are no calls of models, which assembly leaves out."""
    folder.mkdir()
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    first.write_bytes(b"\n".join(SPANS) + b"\n")
    second.write_bytes(b"\n".join([span(0, 5), span(0, 6, "GET"), span(1, 5, "GET"), b"{oops"]) + b"\n")
    return first, second


@pytest.mark.parametrize("meanwhile", ["compact", pytest.param("ingest", marks=pytest.mark.slow)])
def test_what_others_write_meanwhile_costs_a_second_pass_and_no_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Others merge the files that are to be read, or add events of other conversations, right before they are read."""
    first, second = _logs(tmp_path / "logs")
    other = tmp_path / "other.jsonl"
    other.write_bytes(span(7, 0) + b"\n")
    lake, calm = tmp_path / "lake", tmp_path / "calm"
    for each in (lake, calm):
        ingest([first], lake=each, now=NOW)
    unite = _Search.unite
    done: list[str] = []

    def disturbed(search: _Search) -> None:
        if not done:
            done.append(meanwhile)
            opened = Lake.open(lake)
            with opened.batch("other"):
                opened.compact()
            if meanwhile == "ingest":
                ingest([other], lake=lake, now=NOW)
        unite(search)

    with monkeypatch.context() as patched:
        patched.setattr(_Search, "unite", disturbed)
        ingest([second], lake=lake, now=NOW)
    assert done
    if meanwhile == "ingest":
        ingest([other], lake=calm, now=NOW)
    ingest([second], lake=calm, now=NOW)
    assert told(lake) == told(calm)
    assert Lake.open(lake).verify() == []


def test_a_family_that_the_adapter_fails_at_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, lake = tmp_path / "log.jsonl", tmp_path / "lake"
    log.write_bytes(b"".join(span(trace, number) + b"\n" for trace in (0, 1) for number in (0, 1)))
    assemble = Otlp.assemble

    def failing(adapter: Otlp, family: Sequence[StoredEvent]) -> Iterator[Outcome]:
        yield from assemble(adapter, family)
        if family[0].record.line == 3:
            raise KeyError("spans")

    monkeypatch.setattr(Otlp, "assemble", failing)
    report = ingest([log], lake=lake, now=NOW).to_json()
    assert (report["records_in"], report["records_used"], report["rows"]["added"]) == (4, 2, 2)
    left_out = sorted((row["source_line"], row["reason"]) for row in rows(lake, "rejects"))
    assert left_out == [(3, "adapter_error"), (4, "adapter_error")]
    assert Lake.open(lake).verify() == []
    with pytest.raises(KeyError):
        ingest([log], lake=tmp_path / "strict", now=NOW, strict=True)


def test_the_summary_counts_rows_of_their_own_beside_those_put_together(tmp_path: Path) -> None:
    """Trees of OASST are a row each path, messages of it are put together: one adapter makes both."""
    report = ingest([SAMPLES / "oasst"], lake=tmp_path / "lake").to_json()
    assert report["by_adapter"]["oasst"]["rows"] == report["rows"]["added"] == len(rows(tmp_path / "lake"))
