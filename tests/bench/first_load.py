"""First load of many small spans, shuffled over files: `python -m tests.bench.first_load --spans 5000000`.

Prints seconds and peak memory of the one process that reads, stores, puts together and commits all of them, and of a
nightly run after it that adds a few spans to conversations of before. `--keep` adds a line to RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etl import ingest
from tests.bench import results
from tests.bench.peer_contenders import peak_bytes

FILES = 20
SPANS_OF_A_BATCH = 50
TURNS = 3
HEADING = "First load of many spans"
TABLE = (
    "One process; spans shuffled over 20 files, seven to a conversation (`python -m tests.bench.first_load`).\n\n"
    "| spans | MB | CPU s | peak MB | a night of 100 spans: CPU s | its peak MB |\n"
    "| --- | --- | --- | --- | --- | --- |"
)
START = 1_773_478_800_000_000_000


def _span(trace: int, number: int, attributes: dict[str, Any], parent: int | None) -> dict[str, Any]:
    at = START + trace * 20_000_000 + number * 1_000_000_000
    values = [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in attributes.items()
    ]
    made = {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": attributes["gen_ai.operation.name"],
        "kind": 1,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 500_000_000),
        "attributes": values,
        "status": {},
    }
    return made if parent is None else {**made, "parentSpanId": f"{parent + 1:016x}"}


def _trace(trace: int) -> list[dict[str, Any]]:
    """An agent, its calls, their tools."""
    made = [_span(trace, 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}, None)]
    history: list[Any] = [{"role": "user", "parts": [{"type": "text", "content": f"Where is parcel {trace}?"}]}]
    for turn in range(TURNS):
        part = {"type": "tool_call", "id": f"c{turn}", "name": "track", "arguments": {"parcel": trace, "hop": turn}}
        answer = {"role": "assistant", "parts": [part]}
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "demo",
            "gen_ai.usage.input_tokens": 60,
            "gen_ai.usage.output_tokens": 9,
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        made.append(_span(trace, 2 * turn + 1, chat, 0))
        told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "track", "gen_ai.tool.call.id": f"c{turn}"}
        made.append(_span(trace, 2 * turn + 2, {**told, "gen_ai.tool.call.result": f"hop {turn}"}, 0))
        result = {"type": "tool_call_response", "id": f"c{turn}", "response": f"hop {turn}"}
        history += [answer, {"role": "tool", "parts": [result]}]
    return made


def _batches(traces: range) -> Iterator[str]:
    """Batches whose spans lie in any order, a few hundred traces at a time."""
    shuffle = random.Random(traces.start)
    for start in range(traces.start, traces.stop, 300):
        spans = [span for trace in range(start, min(start + 300, traces.stop)) for span in _trace(trace)]
        shuffle.shuffle(spans)
        for place in range(0, len(spans), SPANS_OF_A_BATCH):
            part = spans[place : place + SPANS_OF_A_BATCH]
            yield json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": part}]}]}) + "\n"


def write_files(folder: Path, spans: int) -> int:
    """Twenty files; each batch lands in the next one, so that traces lie in several. The bytes written."""
    folder.mkdir()
    files = [(folder / f"{number:02}.jsonl").open("w", encoding="utf-8") for number in range(FILES)]
    traces = spans // (2 * TURNS + 1)
    for number, line in enumerate(_batches(range(traces))):
        files[number % FILES].write(line)
    for file in files:
        file.close()
    return sum(file.stat().st_size for file in folder.iterdir())


def _load(paths: list[str], lake: str, answer: multiprocessing.SimpleQueue[dict[str, Any]]) -> None:
    began = time.monotonic()
    report = ingest(paths, lake=lake).to_json()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    answer.put(
        {
            "seconds": round(time.monotonic() - began, 1),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            "peak_mb": peak_bytes(usage.ru_maxrss) >> 20,
            "records": report["records_used"],
            "rows": report["rows"],
        }
    )


def load(paths: list[Path], lake: Path) -> dict[str, Any]:
    """One ingest in a process of its own; what it took."""
    context = multiprocessing.get_context("spawn")
    answer: multiprocessing.SimpleQueue[dict[str, Any]] = context.SimpleQueue()
    process = context.Process(target=_load, args=([str(path) for path in paths], str(lake), answer))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"the ingest ended with {process.exitcode}")
    return answer.get()


def _keep(size: int, first: dict[str, Any], night: dict[str, Any]) -> None:
    """Add the line of this run to the section."""
    line = (
        f"| {first['records']:,} | {size // 1_000_000:,} | {first['cpu_seconds']} | {first['peak_mb']:,} | "
        f"{night['cpu_seconds']} | {night['peak_mb']} |"
    )
    before, last, after = (results.kept(HEADING) or TABLE).rpartition("\n|")
    row, _, rest = after.partition("\n")
    results.keep({HEADING: f"{before}{last}{row}\n{line}\n{rest}"})


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--spans", type=int, default=1_000_000)
    arguments.add_argument("--keep", action="store_true", help="add a line to RESULTS.md")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-first-load-") as scratch:
        folder, lake = Path(scratch, "spans"), Path(scratch, "lake")
        size = write_files(folder, given.spans)
        print(json.dumps({"spans": given.spans, "megabytes": size // 1_000_000}), flush=True)
        first = load([folder], lake)
        print(json.dumps({"first load": first}), flush=True)
        late = Path(scratch, "late.jsonl")
        scope: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "demo"}
        spans = [_span(trace, 90, scope, 0) for trace in range(0, 1_000, 10)]
        batch = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}
        late.write_text(json.dumps(batch) + "\n", encoding="utf-8")
        night = load([late], lake)
        print(json.dumps({"a night of 100 spans": night}), flush=True)
        if given.keep:
            _keep(size, first, night)


if __name__ == "__main__":
    main()
