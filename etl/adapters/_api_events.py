"""Server-sent events as records, and which events are of one stream: for files that hold streams and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapters._api_choice import streamed
from etl.adapters._api_form import arr, obj, text
from etl.conversation import Record
from etl.decode import JsonError, decode
from etl.framing import BOM, RAISE_LENGTH, Broken, Framed, Limits

DONE = "[DONE]"
"""What OpenAI's streams end with: a record of its own, since it tells two streams apart."""
_FIELD = re.compile(rb"(?:data|event|id|retry)?: ?[^\n]*(?:\n|\Z)")
_BEGINS = frozenset({"message_start", "message-start", "stream-start", "response.created", "response.queued"})
_ENDS = frozenset({"message_stop", "message-end", "stream-end", "error"})
_AFTER = frozenset({"error", "ping"})
"""Events that may belong to any stream."""


def is_text(head: bytes) -> bool:
    """Whether a file begins as server-sent events do, one field a line."""
    return _FIELD.match(head.removeprefix(BOM).lstrip()) is not None


def framed(blocks: Iterable[bytes], limits: Limits) -> Iterator[Framed]:
    """The data of each event as a record with its place. An event without a type in its data gets its name."""
    name, held, start, at = b"", b"", 1, 0
    offset = 0
    for line, raw in enumerate(_lines(blocks), start=1):
        field, _, value = raw.strip(b"\r\n").removeprefix(BOM).partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if held and (made := _record(held, name, start, at, limits)) is not None:
                yield made
                held, name = b"", b""
            if not held:
                start, at = line, offset
            held += value
        elif held and field in (b"", b"event"):
            yield _record(held, name, start, at, limits) or _broken(held, start, at, False)
            held, name = b"", b""
        elif field not in (b"", b"event", b"id", b"retry"):
            is_torn = not raw.endswith(b"\n")
            if held and is_torn and (made := _record(held, name, start, at, limits)) is not None:
                yield made
                held = b""
            if held and is_torn:
                held += raw  # one torn event, not two
            else:
                yield _broken(raw.strip(b"\r\n"), line, offset, is_torn)
        if field == b"event":
            name = value
        offset += len(raw)
    if held:
        yield _record(held, name, start, at, limits) or _broken(held, start, at, True)


def _broken(raw: bytes, line: int, offset: int, tail: bool) -> Broken:
    if tail:
        message = "the file ends in the middle of this event; ingest it again when it is complete"
        return Broken("torn_tail", message, raw, line, offset, tail=True)
    return Broken("no_event", "a line of a stream is a field of an event; this is none", raw, line, offset)


def _record(data: bytes, name: bytes, line: int, offset: int, limits: Limits) -> Framed | None:
    """The event that some data is; None where it is no JSON (yet)."""
    if len(data) > limits.record_bytes:
        message = f"event of {len(data)} bytes is longer than the limit of {limits.record_bytes}; {RAISE_LENGTH}"
        return Broken("too_long", message, data[:1024], line, offset, length=len(data))
    if data.strip() == DONE.encode():
        return Record(DONE, msgspec.json.encode(DONE), line, offset)
    try:
        value, notes, mended = decode(data, limits.nesting)
    except JsonError:
        return None
    if name and type(value) is dict and "type" not in value and "object" not in value:
        value = {"type": name.decode("utf-8", "replace"), **value}
        data = msgspec.json.encode(value)
    return Record(value, data, line, offset, notes, mended)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def codec_of(event: Any) -> str | None:
    """Whose stream an event is of: as `streamed`, and the chunks of Gemini and Ollama, which look like bodies."""
    value = obj(event)
    if type(value.get("candidates")) is list and not value.keys() & {"request", "contents", "key", "method"}:
        return "gemini"
    if type(value.get("done")) is bool and {"model", "created_at"} <= value.keys() and "messages" not in value:
        return "ollama" if value.keys() & {"message", "response"} else None
    return streamed(value)


def body_of(value: Any) -> str | None:
    """Whose answer a value is that came whole: Anthropic's and Bedrock's, which no key names as Gemini's are named."""
    held = obj(value)
    if held.get("type") == "message" and {"stop_reason", "usage", "content"} <= held.keys():
        return "anthropic_messages"
    if "stopReason" in held and type(obj(held.get("output")).get("message")) is dict and "input" not in held:
        return "bedrock_converse"
    return None


class Streamed(msgspec.Struct, gc=False):
    """One stream as far as it was read."""

    codec: str
    id: str | None
    records: list[Record]
    ended: bool = False
    whole: bool = False
    """True for an answer that came whole, in one record."""


def streams(records: Iterable[Record]) -> Iterator[Streamed | Record]:
    """The streams of a file in the order in which they end; a record that is of no stream is given as it is.

    Chunks name their response, so that those of several may be mixed; other events belong to the stream before them.
    """
    open_: list[Streamed] = []
    for record in records:
        found = _stream_of(record.value, open_)
        if found is None:
            codec = codec_of(record.value)
            if codec is None and (codec := body_of(record.value)) is not None:
                yield Streamed(codec, text(record.value.get("id")), [record], True, True)
                continue
            if codec is None:
                yield record
                continue
            for ended in [stream for stream in open_ if stream.ended or stream.codec != codec or stream.id is None]:
                open_.remove(ended)
                yield ended
            found = Streamed(codec, _id(record.value), [])
            open_.append(found)
        found.records.append(record)
        found.ended = found.ended or _is_end(record.value)
    yield from open_


def _stream_of(event: Any, open_: list[Streamed]) -> Streamed | None:
    """The open stream that an event goes on with; None where it begins one, or is of none."""
    if not open_:
        return None
    last = open_[-1]
    value = obj(event)
    kind = text(value.get("type"))
    if event == DONE or kind in _AFTER or (not value and type(event) is dict):
        return last
    if body_of(event) is not None:
        return None
    codec = codec_of(event)
    if codec is None:
        return last if kind is not None and last.codec != "openai_chat" and not last.ended else None
    name = _id(event)
    same = next((stream for stream in reversed(open_) if stream.codec == codec and stream.id == name), None)
    if name is not None and same is not None and not (same.ended and _begins(value)):
        return same
    if codec != last.codec or _begins(value):
        return None
    if codec in ("gemini", "ollama", "openai_chat"):
        return None if last.ended or (name is not None and last.id is not None and name != last.id) else last
    return last


def _begins(value: Any) -> bool:
    """Whether an event is the first of a stream."""
    kind = value.get("type", value.get("event_type"))
    delta = obj(obj(next(iter(arr(value.get("choices"))), None)).get("delta"))
    return (
        kind in _BEGINS or "messageStart" in value or ("role" in delta and "content" in delta and not delta["content"])
    )


def _is_end(event: Any) -> bool:
    value = obj(event)
    kind = value.get("type", value.get("event_type"))
    closed = ("response.completed", "response.failed", "response.incomplete")
    if event == DONE or (type(kind) is str and (kind in _ENDS or kind in closed)):
        return True
    if "messageStop" in value or value.get("done") is True:
        return True
    return any(obj(candidate).get("finishReason") for candidate in arr(value.get("candidates")))


def _id(event: Any) -> str | None:
    """The id of the response that an event is of, where it says it."""
    value = obj(event)
    for holder in (value, obj(value.get("message")), obj(value.get("response"))):
        named = type(value.get("choices")) is list or holder is not value
        if named and (found := text(holder.get("id"))):
            return found
    return text(value.get("responseId"))
