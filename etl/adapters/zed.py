"""Zed's agent threads: its database `threads.db` (compressed JSON), threads as JSON, and text threads (`.zed.json`).

A thread is written anew as it grows; sub-agents are threads that name their parent. Tokens are those of the thread.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import zstandard

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier
from etl.adapters._claude_lines import is_global
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._sqlite import has_column, records
from etl.adapters._usage import tokens
from etl.adapters._zed_messages import RESUME, is_message, messages_of, text_thread
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Unusable
from etl.decode import Decoded, JsonError, decode, encode
from etl.framing import Framed, Limits
from etl.identity import digest

_ROW = frozenset({"id", "parent_id", "data", "data_type", "summary", "updated_at", "created_at"})
_THREAD = frozenset(
    {"messages", "cumulative_token_usage", "model", "updated_at", "summary", "title", "text", "id", "zed"}
)
_NOTHING: tuple[Any, ...] = ("", [], {}, False, "NotGenerated")
_SILENT = "silent_thread"


class Zed(Adapter):
    """Threads of Zed's agent."""

    name = "zed"
    about = "Zed's agent threads: threads.db (zstd JSON), threads as JSON, text threads (.zed.json)"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a thread in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, their data opened, or JSON."""
        return records(blocks, limits, {"threads": _row})

    def score(self, sample: Sample) -> float:
        """Sure of its table, and of messages that only Zed tags so."""
        if has_column(sample.head, "threads", "data_type") and has_column(sample.head, "threads", "summary"):
            return 0.95
        if not sample.values:
            return 0.0
        return 0.95 * sum(map(_looks, sample.objects())) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each thread."""
        for record in records:
            if isinstance(record.value, dict) and _looks(record.value):
                yield _conversation(record, record.value)
            else:
                yield Unusable(record, "no_messages", "a thread is an object with messages; this is none")


def _row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `threads` with what its data holds; data that cannot be opened is left out and told by its type."""
    told = {key: item for key, item in row.items() if item is not None and not isinstance(item, bytes)}
    data = row.get("data")
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if not isinstance(raw, bytes):
        return Decoded(told)
    if row.get("data_type") == "zstd":
        opened = _unpacked(raw, limits.record_bytes)
        if opened is None:
            raise JsonError("its data is no zstd stream, or too long", 0, True)
        raw = opened
    found = decode(raw)
    return Decoded({**told, "data": found.value}, found.notes, found.mended)


def _unpacked(raw: bytes, most: int) -> bytes | None:
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True) as reader:
            found = reader.read(most + 1)
    except (zstandard.ZstdError, MemoryError):
        return None
    return found if len(found) <= most else None


def _looks(value: dict[str, Any]) -> bool:
    told = _thread(value)
    listed = told.get("messages")
    if told.get("zed") == "context":
        return isinstance(told.get("text"), str) and isinstance(listed, list)
    if not isinstance(listed, list) or not {"updated_at", "version"} & told.keys():
        return False
    if not listed:
        return told is not value or "cumulative_token_usage" in told
    return all(map(is_message, listed[:8])) and any(isinstance(item, dict) for item in listed[:8])


def _thread(value: dict[str, Any]) -> dict[str, Any]:
    """The thread in a row of the database; else the record itself."""
    data = value.get("data")
    return data if isinstance(data, dict) and "data_type" in value else value


def _conversation(record: Record, value: dict[str, Any]) -> Outcome:
    told = _thread(value)
    listed = items(told, "messages")
    if not listed:
        return Ignored(_SILENT)
    status = error = None
    if told.get("zed") == "context":
        read = text_thread(told)
        if isinstance(read, str):
            return Unusable(record, "bad_message", read)
        messages = read
        status, error = _end(messages[-1])
    else:
        for index, item in enumerate(listed):
            if not is_message(item):
                return Unusable(record, "unknown_message", f"messages[{index}] is none that Zed is known to write")
        messages = [message for item in listed for message in messages_of(item)]
    name, parent = identifier(value.get("id")), identifier(value.get("parent_id"))
    key = name if name is not None and is_global(name) else _key(name, listed, told)
    model = obj(told, "model")
    return Conversation(
        messages,
        (record,),
        native_id=key,
        conversation_id=name,
        parent=None if parent is None else Identity(parent),
        task_from_prompt=True,
        agent="zed",
        model=text(model.get("model")),
        provider=text(model.get("provider")),
        status=status,
        error=error,
        started_at=value.get("created_at") if told is not value else None,
        ended_at=told.get("updated_at") or value.get("updated_at"),
        usage=tokens(told.get("cumulative_token_usage")),
        extra=_extra(value, told),
        n_records=len(listed),
    )


def _end(last: Message) -> tuple[str | None, str | None]:
    """How a text thread ended, by the mark of its last message."""
    status = (last.extra or {}).get("status")
    if isinstance(status, dict) and isinstance(status.get("Error"), str):
        return "error", status["Error"]
    return ("aborted" if status in ("Pending", "Canceled") else None), None


def _key(name: str | None, listed: list[Any], told: dict[str, Any]) -> str:
    """A thread without an id of its own making: by what it begins with."""
    begun = [name, listed[0], (text(told.get("text")) or "")[:200]]
    return f"zed:{digest(encode(begun).encode('utf-8', 'surrogatepass'))}"


def _extra(value: dict[str, Any], told: dict[str, Any]) -> dict[str, Any] | None:
    rest = left(told, _THREAD) or {}
    if told is not value:
        rest |= left(value, _ROW) or {}
    if resumed := items(told, "messages").count(RESUME):
        rest["resumed"] = resumed
    title = told.get("title", told.get("summary", value.get("summary")))
    rest = {**({"title": title} if title else {}), **rest}
    return {key: item for key, item in rest.items() if item not in _NOTHING} or None
