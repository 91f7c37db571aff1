"""What came back from the calls of Codex: outputs in their five spellings, and the events that tell more of them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from etl.adapters._blocks import plain, result
from etl.adapters._claude_text import echoes
from etl.adapters._session import dict_of, real, text_of, whole, without
from etl.conversation import Message
from etl.decode import JsonError, decode


class Output(msgspec.Struct, gc=False):
    """The output of a call, taken apart."""

    text: str
    parts: list[Any] | None = None
    failed: bool | None = None
    duration_ms: float | None = None
    rest: dict[str, Any] | None = None


def output_of(value: Any) -> Output:
    r"""Read the `output` of a call: text, JSON text with an exit code, a block, blocks, or a record of streams.

    >>> output_of('{"output":"1.0\\n","metadata":{"exit_code":2,"duration_seconds":0.5}}').failed
    True
    >>> output_of("Exit code: 0\nWall time: 0.2 seconds\nOutput:\n1.0").duration_ms
    200.0
    """
    if isinstance(value, str):
        return _wrapped(value) or _headed(value)
    if isinstance(value, dict):
        if "output" in value and isinstance(value.get("metadata"), dict):
            return _of_object(value)
        if "stdout" in value or "stderr" in value:
            return _streams(value)
        content = value.get("content")
        if content is not None and not isinstance(content, dict):
            inner = result({"content": content})
            success = value.get("success")
            failed = not success if isinstance(success, bool) else None
            return Output(inner.text, inner.parts, failed, rest=without(value, "content", "success") or None)
    blocks = [value] if isinstance(value, dict) and "text" in value else value
    if isinstance(blocks, list):
        blocks = [
            {k: v for k, v in each.items() if v is not None} if isinstance(each, dict) else each for each in blocks
        ]
    inner = result({"content": blocks})
    return Output(inner.text, inner.parts, rest=inner.rest)


def _filled(block: Any) -> Any:
    """A block without its nulls: every key is there in all of them, whatever it is of."""
    return {key: value for key, value in block.items() if value is not None} if isinstance(block, dict) else block


def _wrapped(text: str) -> Output | None:
    """Text that is the JSON of `{output, metadata}`."""
    if text[:1] != "{" or '"metadata"' not in text:
        return None
    try:
        value = decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return None
    return _of_object(value) if isinstance(value, dict) and isinstance(value.get("metadata"), dict) else None


def _of_object(value: dict[str, Any]) -> Output:
    metadata = value["metadata"]
    code, seconds = metadata.get("exit_code"), real(metadata.get("duration_seconds"))
    rest = without(value, "output", "metadata")
    more = without(metadata, *(("duration_seconds",) if seconds is not None else ()))
    if code == 0:
        more.pop("exit_code", None)
    if more:
        rest["metadata"] = more
    failed = code != 0 if type(code) is int else None
    inner = result({"content": value.get("output")})
    return Output(inner.text, inner.parts, failed, None if seconds is None else seconds * 1000, rest or None)


def _streams(value: dict[str, Any]) -> Output:
    code = next((value[key] for key in ("exitCode", "exit_code") if type(value.get(key)) is int), None)
    texts = [plain(value[key]) for key in ("stdout", "stderr") if value.get(key)]
    rest = without(value, "stdout", "stderr", *(("exitCode", "exit_code") if code == 0 else ()))
    return Output("\n".join(texts), None, None if code is None else code != 0, None, rest or None)


_CODE = re.compile(
    r"(?:Chunk ID: [^\n]{0,80}\n)?(?:Wall time: [^\n]{0,40}\n)?(?:Exit code:|Process exited with code) (-?\d{1,9})\b"
)
_WALL = re.compile(r"(?:[^\n]{0,120}\n){0,2}Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds")
_LATE = ("command timed out after", "tool call error: timed out awaiting")
_DENIED = re.compile(
    r"(?:exec_command failed[^\n]{0,80}|exec command )?rejected by user|[^\n]{0,80}\brejected by user\b"
)


def _headed(text: str) -> Output:
    """Text that may begin with lines on the exit code and the time; they stay, the model has read them."""
    code, wall = _CODE.match(text), _WALL.match(text)
    failed = None if code is None else int(code.group(1)) != 0
    return Output(text, None, failed, None if wall is None else float(wall.group(1)) * 1000)


def condition_of(text: str) -> str | None:
    """What a call met, where the text of its result says so in Codex's own words."""
    if _DENIED.match(text):
        return "permission_denied"
    return "timeout" if text.startswith(_LATE) else None


def _milliseconds(duration: Any) -> float | None:
    """`{secs, nanos}` or text like `1.5s` and `20ms`."""
    if isinstance(duration, dict):
        seconds, nanos = whole(duration.get("secs")), whole(duration.get("nanos"))
        return None if seconds is None else real(seconds * 1000 + (nanos or 0) / 1e6)
    if isinstance(duration, str):
        found = re.match(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)\Z", duration)
        return None if found is None else float(found.group(1)) * (1 if found.group(2) == "ms" else 1000)
    return None


class End(msgspec.Struct, gc=False):
    """What an event says of a call that ended."""

    text: str
    parts: list[Any] | None
    failed: bool | None
    duration_ms: float | None
    rest: dict[str, Any]


def end_of(kind: str, event: dict[str, Any]) -> End:
    """Read `exec_command_end`, `mcp_tool_call_end` or `patch_apply_end`."""
    rest = without(event, "type", "call_id", "callId", "duration")
    duration = _milliseconds(event.get("duration"))
    if kind == "mcp_tool_call_end":
        found = event.get("result")
        told = found.get("Ok", found.get("Err")) if isinstance(found, dict) and found.keys() & {"Ok", "Err"} else found
        rest = without(rest, "result", "invocation")
        failed: bool | None = isinstance(found, dict) and "Err" in found
        if isinstance(told, dict):
            flag = told.get("isError", told.get("is_error"))
            failed = failed or (flag if isinstance(flag, bool) else None)
            inner = result(told)
            return End(inner.text, inner.parts, failed, duration, {**rest, **(inner.rest or {})})
        return End(plain(told), None, failed, duration, rest)
    if kind == "patch_apply_end":
        success = event.get("success")
        text = "\n".join(plain(event[key]) for key in ("stdout", "stderr") if event.get(key))
        return End(text, None, not success if isinstance(success, bool) else None, duration, without(rest, "success"))
    code = event.get("exit_code")
    failed = code != 0 if type(code) is int else True if event.get("status") in ("failed", "declined") else None
    text = text_of(event, "formatted_output", "aggregated_output", "stdout") or ""
    return End(text, None, failed, duration, rest)


def tell(message: Message, kind: str, end: End, arguments: tuple[str, ...]) -> None:
    """Add to a result what the event says beyond it."""
    if message.failed is None:
        message.failed = end.failed
    if message.duration_ms is None:
        message.duration_ms = end.duration_ms
    more = echoes({"text": end.text, "parts": end.parts, **end.rest}, message.content, arguments)
    if isinstance(more, dict):
        message.extra = {**(message.extra or {}), kind: more}


def invocation_of(event: dict[str, Any]) -> tuple[str, Any]:
    """(tool, arguments) of an `mcp_tool_call_end`, the tool with its server as the model knows it."""
    called = dict_of(event, "invocation")
    server, tool = text_of(called, "server"), text_of(called, "tool") or "mcp"
    return (f"mcp__{server}__{tool}" if server else tool), called.get("arguments")
