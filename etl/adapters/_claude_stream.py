"""One session of a stream-json capture of Claude Code, event by event, as lines that its session files would have.

Partial messages (`stream_event`) tell a response in pieces before it comes whole. Their `message_delta` alone has the
true counts of output; their pieces count only where the capture stops before the whole message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._claude_lines import Line
from etl.adapters._session import dict_of, text_of
from etl.conversation import Record
from etl.decode import JsonError, decode
from etl.times import instant

_RENAMED = {
    "session_id": "sessionId",
    "tool_use_result": "toolUseResult",
    "is_api_error_message": "isApiErrorMessage",
    "parent_tool_use_id": None,
}
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
SAID = frozenset({"user", "assistant"})


def thread_of(value: dict[str, Any]) -> str:
    """The call of the sub-agent that an event belongs to; empty for the main thread."""
    return text_of(value, "parent_tool_use_id") or ""


def lines_of(records: Sequence[Record]) -> list[Line]:
    """The events of one thread as lines, in order; the end of a message that was cut off comes last."""
    found: list[Line] = []
    pieces = _Pieces()
    for number, record in enumerate(records):
        value = record.value
        kind = text_of(value, "type") or ""
        if kind == "stream_event":
            counts = pieces.take(dict_of(value, "event"))
            if counts is not None:
                found.append(_line({"type": "assistant", "message": counts}, record, number))
        else:
            named = {_RENAMED.get(key, key): item for key, item in value.items()}
            found.append(_line({key: item for key, item in named.items() if key is not None}, record, number))
            if kind == "assistant":
                pieces.came(dict_of(value, "message"))
    if records:
        found += [_line({"type": "assistant", "message": message}, records[-1], 1 << 30) for message in pieces.left()]
    return found


def _line(value: dict[str, Any], record: Record, number: int) -> Line:
    kind = text_of(value, "type") or ""
    line = Line(
        value, kind if kind in SAID else "system", record, "", (number, 0), instant(value.get("timestamp")).micros
    )
    line.uuid = text_of(value, "uuid")
    if kind == "assistant":
        line.message_id = text_of(dict_of(value, "message"), "id")
    return line


class _Pieces:
    """Responses that come in pieces, until they have come whole."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, str] = {}

    def take(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Read a piece; a message of counts alone where it has them."""
        kind, index = text_of(event, "type"), event.get("index")
        if kind == "message_start":
            self._message, self._blocks, self._json = dict_of(event, "message"), {}, {}
        elif kind == "content_block_start" and type(index) is int:
            self._blocks[index] = dict(dict_of(event, "content_block"))
        elif kind == "content_block_delta" and type(index) is int:
            self._grow(index, dict_of(event, "delta"))
        elif kind == "message_delta" and text_of(self._message, "id"):
            delta = dict_of(event, "delta")
            usage = {**dict_of(self._message, "usage"), **dict_of(event, "usage")}
            return {
                "id": self._message["id"],
                "role": "assistant",
                "model": self._message.get("model"),
                "content": [],
                "stop_reason": delta.get("stop_reason"),
                "usage": usage,
            }
        return None

    def _grow(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        kind = text_of(delta, "type") or ""
        key = _GROWS.get(kind)
        if key is not None:
            block[key] = (text_of(block, key) or "") + (text_of(delta, key) or "")
        elif kind == "input_json_delta":
            self._json[index] = self._json.get(index, "") + (text_of(delta, "partial_json") or "")
        elif kind == "citations_delta":
            cited = block.get("citations")
            block["citations"] = [*(cited if isinstance(cited, list) else []), delta.get("citation")]

    def came(self, message: dict[str, Any]) -> None:
        """A message, or a block of it, has come whole: its pieces say nothing more."""
        if text_of(message, "id") != text_of(self._message, "id"):
            return
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            for index, pieces in list(self._blocks.items()):
                if isinstance(block, dict) and _same(pieces, block):
                    del self._blocks[index]
                    break

    def left(self) -> Iterator[dict[str, Any]]:
        """The message whose pieces never came whole, as far as it was told."""
        blocks = []
        for index, block in sorted(self._blocks.items()):
            if index in self._json:
                block["input"] = _object(self._json[index])
            if any(value for key, value in block.items() if key not in ("type", "signature")):
                blocks.append(block)
        if blocks:
            yield {**self._message, "content": blocks}


def _same(pieces: dict[str, Any], block: dict[str, Any]) -> bool:
    """Whether a block is what the pieces of one became."""
    if pieces.get("type") != block.get("type"):
        return False
    if "id" in pieces or "id" in block:
        return pieces.get("id") == block.get("id")
    for key in ("text", "thinking"):
        if key in pieces or key in block:
            return (text_of(block, key) or "").startswith(text_of(pieces, key) or "")
    return True


def _object(text: str) -> Any:
    try:
        return decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return text
