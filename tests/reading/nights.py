"""Files of lines of every kind, and nights that read them: whole, in parts, or from where the night before stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import etl.settings
import etl.workers
from etl.parts import Work
from etl.pipeline import ingest
from etl.reading import Reader
from etl.report import Report
from etl.settings import Settings
from etl.workers import OnFile, Queue, ReadOut
from tests.lakes import NOW, rows

_RUN = {"batch_id", "ingested_at", "modified_at"}
_READ = {"read_bytes", "read_lines", "read_sha256", "read_counts"}
WHOLE = 1 << 40


def chat(number: int, **extra: Any) -> bytes:
    """A conversation in OpenAI form."""
    asked, answered = {"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": f"a{number}"}
    return json.dumps({"messages": [asked, answered], **extra}, ensure_ascii=False).encode()


def span(trace: int, number: int, name: str = "chat") -> bytes:
    """A span of a model call, as the collector's file exporter writes it; of another kind with another name."""
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}] if name == "chat" else []
    texts = {"gen_ai.input.messages": "user", "gen_ai.output.messages": "assistant"}
    for key, role in texts.items() if name == "chat" else ():
        said = [{"role": role, "parts": [{"type": "text", "content": f"{role} {trace} {number}"}]}]
        attributes.append({"key": key, "value": {"stringValue": json.dumps(said)}})
    start = 1_780_000_000_000_000_000 + trace * 10**9 + number * 10**6
    one = {
        "traceId": f"{trace:032x}", "spanId": f"{trace * 1000 + number + 1:016x}", "name": name,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 1000), "attributes": attributes,
    }  # fmt: skip
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [one]}]}]}).encode()


CHATS: tuple[bytes, ...] = (
    *(chat(number) for number in range(4)),
    chat(1) + b"\r",
    b" " + chat(2),
    chat(3) + b"  ",
    chat(5, note="one\u2028line"),
    chat(6, id="named"),
    b"",
    b"\r",
    b"{oops",
    b"[1, 2]",
    b'{"messages": []}',
    b'{"messages": [{"role": "user", "content": "\xff"}]}',
)
"""Lines of which some are equal, some only look so, and some are no record."""

ODD: tuple[bytes, ...] = (b"\x00\x00" + chat(1), chat(1) + chat(2), chat(1)[:20] + chat(2), chat(0) + b"\x00")
"""Lines in which records are found again."""

SPANS: tuple[bytes, ...] = (
    *(span(trace, number, name) for trace in range(3) for number, name in enumerate(("chat", "chat", "GET"))),
    b"{oops",
    b"",
    b'{"resourceSpans": []}',
)


def in_parts(works: Sequence[Work], settings: Settings, _workers: int, on_file: OnFile) -> ReadOut:
    """As `workers.read_all`, in this process: every second part by another reader, the last ones first."""
    queue = Queue(works, settings, on_file)
    readers = [Reader(settings, "0"), Reader(settings, "1")]
    found = []
    while tasks := list(iter(queue.next, None)):
        for number, task in reversed(list(enumerate(tasks))):
            for work in task:
                reader = readers[number % 2]
                result = reader.read(work.file, work.known) if work.part is None else reader.read_part(work)
                queue.done(result)
                found.append(result)
    queue.take_all(found)
    return ReadOut(queue.results(), [file for reader in readers for file in reader.close()])


def night(
    paths: Sequence[Path],
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[..., ReadOut] | None = None,
    **settings: Any,
) -> Report:
    """One ingest with these settings of a run; `read` in the place of `workers.read_all`."""
    made = etl.settings.run_settings
    with monkeypatch.context() as patched:
        patched.setattr("etl.pipeline.run_settings", lambda *given: made(*given)._replace(**settings))
        if read is not None:
            patched.setattr(etl.workers, "read_all", read)
        return ingest(paths, lake=lake, now=NOW, workers=1 if read is not None else settings.pop("workers", 1))


def told(lake: Path, reached: bool = True) -> dict[str, list[dict[str, Any]]]:
    """What a lake says, run aside; `reached`: also how far files were read."""
    left_out = _RUN if reached else _RUN | _READ
    return {
        name: [{key: value for key, value in row.items() if key not in left_out} for row in rows(lake, name)]
        for name in ("rollouts", "events", "rejects", "sources")
    }
