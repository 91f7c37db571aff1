"""The lines of one path through a Claude Code thread as messages.

A response of the model lies in several lines, one content block each: they become one message at the place of the
first. Results of tools, which the API puts into the user's mouth, become tool messages. What the program says in the
user's name becomes messages of its own, marked synthetic. What nobody said (errors of the API, boundaries of a
compaction, hooks) goes to `extra.notes` of the message before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import Result, read, result
from etl.adapters._claude_lines import QUEUE, Line
from etl.adapters._claude_response import Response
from etl.adapters._claude_said import Said
from etl.adapters._claude_text import (
    condition_of,
    content_of,
    echoes,
    is_cancelled,
    is_harness_line,
    is_interruption,
    side_file,
    split,
    text_of,
    texts_in,
)
from etl.conversation import Message, ToolCall
from etl.decode import JsonError, decode

SESSION_KEYS = (
    "cwd",
    "gitBranch",
    "version",
    "userType",
    "entrypoint",
    "slug",
    "sessionKind",
    "teamName",
    "permissionMode",
)
"""Keys that every line repeats: the row has them once, a message only where its own differ."""
_STRUCTURE = frozenset({"type", "uuid", "parentUuid", "timestamp", "sessionId", "message", "isSidechain", "agentId"})
_ATTACHED = ("content", "text", "snippet")


class Transcript:
    """Messages of a path, made line by line; `common` are the values that the row holds for `SESSION_KEYS`."""

    def __init__(self, lines: Iterable[Line], common: dict[str, Any]) -> None:
        self.flags: set[str] = set()
        self.responses: list[Response] = []
        self._common = common
        self._items: list[Message | Response] = []
        self._notes: dict[int, list[Any]] = {}
        self._by_id: dict[str, Response] = {}
        self._calls: dict[str, ToolCall] = {}
        self._nameless: dict[str, list[ToolCall]] = {}
        self._said = Said(lines)

    def add(self, line: Line, inherited: bool) -> None:
        """Take the next line of the path."""
        if line.kind == "assistant":
            self._assistant(line, inherited)
        elif line.kind == "user":
            if not (line.nested and self._said.elsewhere(line)):
                self._user(line, inherited)
        elif line.kind == "attachment":
            self._attachment(line, inherited)
        elif line.kind == QUEUE:
            self._queued(line, inherited)
        elif line.kind == "system":
            self._system(line)

    def messages(self) -> list[Message]:
        """What was made of the lines, in order."""
        made: list[Message] = []
        before: list[Any] = self._notes.get(-1, [])
        for index, item in enumerate(self._items):
            one, *more = item.messages(self._extra) if isinstance(item, Response) else [item]
            notes = before + self._notes.get(index, [])
            before = []
            if notes:
                one.extra = {**(one.extra or {}), "notes": notes}
            made += [one, *more]
        return made

    def says(self, text: str) -> bool:
        """Whether a user's line begins with the text, which may be cut off with `…`."""
        return self._said.begins(text.rstrip("…"))

    def _assistant(self, line: Line, inherited: bool) -> None:
        response = self._by_id.get(line.message_id) if line.message_id else None
        if response is None:
            response = Response(line.message_id, inherited)
            self._items.append(response)
            self.responses.append(response)
            if line.message_id:
                self._by_id[line.message_id] = response
        for call in response.add(line):
            if call.id is not None:
                self._calls[call.id] = call
            elif line.uuid is not None:
                self._nameless.setdefault(line.uuid, []).append(call)
        if line.value.get("isApiErrorMessage") is True:
            self.flags.add("api_error")

    def _user(self, line: Line, inherited: bool) -> None:
        value = line.value
        content = content_of(value)
        blocks = content if isinstance(content, list) else [content]
        extra = self._extra(line)
        runs: list[tuple[bool, list[Any]]] = []
        harness = is_harness_line(value)
        count = len(self._items)
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self._result(result(block), line, inherited, extra if len(self._items) == count else None)
            else:
                _part(block, harness, runs)
        for synthetic, run in runs:
            self._say(line, run, synthetic, inherited, extra if len(self._items) == count else None)
        if len(self._items) == count:
            self._note(line)

    def _say(self, line: Line, run: list[Any], synthetic: bool, inherited: bool, extra: dict[str, Any] | None) -> None:
        said = read(run)
        if not said.text and not said.parts:
            return
        if synthetic and is_interruption(said.text):
            self.flags.add("interrupted")
        if said.rest:
            extra = {**(extra or {}), "content": said.rest}
        message = Message("user", said.text, id=line.uuid, at=line.value.get("timestamp"), inherited=inherited)
        message.synthetic, message.parts, message.extra = synthetic, said.parts, extra or None
        self._items.append(message)

    def _result(self, found: Result, line: Line, inherited: bool, extra: dict[str, Any] | None) -> None:
        call_id = found.call_id or self._linked(line)
        call = self._calls.get(call_id) if call_id else None
        extra = dict(extra or {})
        if "toolUseResult" in extra or "mcpMeta" in extra:
            self._unrepeated(extra, found, call)
        if found.rest:
            extra["content"] = found.rest
        message = Message("tool", found.text, call_id=call_id, id=line.uuid, at=line.value.get("timestamp"))
        message.inherited, message.parts, message.failed = inherited, found.parts, found.failed
        if found.failed:
            message.cancelled = is_cancelled(found.text)
            denied = text_of(line.value, "toolDenialKind") is not None
            message.condition = (
                None if message.cancelled else "permission_denied" if denied else condition_of(found.text)
            )
        message.duration_ms = _duration(line.value.get("toolUseResult"))
        saved = side_file(found.text)
        if saved is not None:
            extra["side_file"] = saved
            self.flags.add("result_elsewhere")
        message.extra = extra or None
        self._items.append(message)

    def _linked(self, line: Line) -> str | None:
        """The id of the call that a result without one answers, as the line around it says."""
        named = text_of(line.value, "sourceToolUseID")
        asked = text_of(line.value, "sourceToolAssistantUUID") or (line.parents[0] if line.parents else None)
        waiting = self._nameless.get(asked) if asked else None
        if waiting:
            call = waiting.pop(0)
            call.id = named or f"{asked}.{len(self._calls)}"
            self._calls[call.id] = call
            return call.id
        return named

    def _unrepeated(self, extra: dict[str, Any], found: Result, call: ToolCall | None) -> None:
        """Keep of the structured copies of a result only what its text does not say."""
        arguments = texts_in(call.arguments) if call is not None else ()
        for key in ("toolUseResult", "mcpMeta"):
            copy = extra.pop(key, None)
            said = copy.get("structuredContent") if key == "mcpMeta" and isinstance(copy, dict) else copy
            if said is not None and _same_json(found.text, said):
                copy = {k: v for k, v in copy.items() if v is not said} if said is not copy else None
            more = echoes(copy, found.text, arguments)
            if more is not None:
                extra[key] = more

    def _attachment(self, line: Line, inherited: bool) -> None:
        attached = line.value.get("attachment")
        if not isinstance(attached, dict):
            self._note(line)
            return
        if attached.get("type") == "queued_command":
            prompt = attached.get("prompt")
            runs: list[tuple[bool, list[Any]]] = []
            harness = is_harness_line({**attached, "type": "user"}) or attached.get("commandMode") not in (
                None,
                "prompt",
            )
            for block in prompt if isinstance(prompt, list) else [prompt]:
                _part(block, harness, runs)
            extra = {**self._extra(line), "attachment": {k: v for k, v in attached.items() if k != "prompt"}}
            for synthetic, run in runs:
                self._say(line, run, synthetic, inherited, extra)
            if runs:
                return
        text, rest = _attached_text(attached)
        if not text:
            self._note(line)
            return
        extra = {**self._extra(line), "attachment": rest}
        self._items.append(
            Message(
                "user",
                text,
                id=line.uuid,
                at=line.value.get("timestamp"),
                inherited=inherited,
                synthetic=True,
                extra=extra,
            )
        )

    def _queued(self, line: Line, inherited: bool) -> None:
        """A text put into the queue: said where it was taken in and nothing else repeats it; else it is only noted."""
        text = text_of(line.value, "content")
        if text is None or self._said.repeats(text):
            return
        if line.value.get("operation") != "remove":
            if not self._said.taken_in(text):
                self._note(line)
            return
        self._said.add(text)
        for piece in split(text):
            self._say(line, [piece.text], piece.synthetic, inherited, {"queue_operation": "remove"})

    def _system(self, line: Line) -> None:
        subtype = line.value.get("subtype", line.value.get("type"))
        if subtype in ("compact_boundary", "microcompact_boundary"):
            self.flags.add("compacted")
        elif subtype == "turn_duration":
            return
        self._note(line)

    def _note(self, line: Line) -> None:
        value = line.value
        said = {k: v for k, v in value.items() if k not in ("parentUuid", "sessionId", "isSidechain") and v is not None}
        note = {k: v for k, v in said.items() if k not in self._common or self._common[k] != v}
        self._notes.setdefault(len(self._items) - 1, []).append(note)

    def _extra(self, line: Line) -> dict[str, Any]:
        """Every key of a line that nothing else holds."""
        extra: dict[str, Any] = {}
        for key, value in line.value.items():
            if key in _STRUCTURE or value is None or (key[:2] == "is" and value is False):
                continue
            if key in self._common and self._common[key] == value:
                continue
            if key == "session_id" and value == line.value.get("sessionId"):
                continue
            if key not in ("attachment", "content") or line.kind in ("user", "assistant"):
                extra[key] = value
        if line.value.get("type") not in ("user", "assistant", "attachment"):
            extra["type"] = line.value.get("type")
        message = line.value.get("message")
        if line.kind == "user" and isinstance(message, dict):
            more = {k: v for k, v in message.items() if k not in ("role", "content", "type") and v is not None}
            if more:
                extra["message"] = more
        if line.dangling:
            extra["parentUuid"] = line.parents[0]
        return extra


def _part(block: Any, harness: bool, runs: list[tuple[bool, list[Any]]]) -> None:
    """Add a block of a user's content to the runs of blocks that are one speaker's."""
    text = block.get("text") if isinstance(block, dict) else block
    if not isinstance(text, str):
        if block is not None:
            _append(runs, harness, block)
        return
    pieces = [] if harness else split(text)
    if len(pieces) <= 1:
        _append(runs, harness or any(piece.synthetic for piece in pieces), block)
        return
    for piece in pieces:
        _append(runs, piece.synthetic, {**block, "text": piece.text} if isinstance(block, dict) else piece.text)


def _append(runs: list[tuple[bool, list[Any]]], synthetic: bool, block: Any) -> None:
    if runs and runs[-1][0] == synthetic:
        runs[-1][1].append(block)
    else:
        runs.append((synthetic, [block]))


def _attached_text(attached: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What an attachment gives the model to read, and the rest of it."""
    for key in _ATTACHED:
        value = attached.get(key)
        rest = {k: v for k, v in attached.items() if k != key}
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return "\n".join(value), rest
        if isinstance(value, dict) and isinstance(value.get("file"), dict):
            file = value["file"]
            if isinstance(file.get("content"), str):
                kept = {k: v for k, v in file.items() if k != "content"}
                return file["content"], {**rest, key: {**value, "file": kept}}
        if isinstance(value, str) and value.strip():
            return value, rest
    return "", attached


def _duration(copy: Any) -> float | None:
    if not isinstance(copy, dict):
        return None
    for key in ("durationMs", "totalDurationMs"):
        value = copy.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15:
            return float(value)
    return None


def _same_json(text: str, value: Any) -> bool:
    """Whether the text is the JSON of the value."""
    if not isinstance(value, (dict, list)) or text[:1] not in ("{", "["):
        return False
    try:
        return bool(decode(text.encode("utf-8", "surrogatepass")).value == value)
    except JsonError:
        return False
