"""The lines of one path through a Claude Code thread as messages.

A response of the model lies in several lines, one content block each: they become one message at the place of the
first. Results of tools, which the API puts into the user's mouth, become tool messages. What the program says in the
user's name becomes messages of its own, marked synthetic. What nobody said (errors of the API, boundaries of a
compaction, hooks) goes to `extra.notes` of the message before it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import Result, read, result
from etl.adapters._claude_lines import QUEUE, SNAPSHOT, Line, backups_in, time_in
from etl.adapters._claude_response import Response
from etl.adapters._claude_said import Said
from etl.adapters._claude_text import (
    attached_text,
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

_SESSION_KEYS = frozenset(
    {
        "cwd", "gitBranch", "version", "userType", "entrypoint", "slug", "sessionKind", "teamName", "permissionMode",
    }
)  # fmt: skip
"""Keys that every line repeats: a message has one where it differs from that of the message before it."""
_STRUCTURE = frozenset({"type", "uuid", "parentUuid", "timestamp", "sessionId", "message", "isSidechain", "agentId"})


class Transcript:
    """Messages of a path, made line by line. `lines` are all of them, to know what will be said."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.flags: set[str] = set()
        self.responses: list[Response] = []
        self.began_with: dict[str, Any] = {}
        """Where, and with which version, the session began: the first value of each of `_SESSION_KEYS`."""
        self._current: dict[str, Any] = {}
        """The values of `_SESSION_KEYS` as the messages so far have them."""
        self._items: list[Message | Response] = []
        self._notes: dict[int, list[Any]] = {}
        self._by_id: dict[str, Response] = {}
        self._calls: dict[str, ToolCall] = {}
        self._nameless: dict[str, list[ToolCall]] = {}
        self._backups: dict[str, Any] = {}
        self._said = Said(lines)
        self._requests: dict[str, str] = {}
        """The first request of each id of a response."""

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
        elif line.kind == SNAPSHOT:
            self._snapshot(line)

    def messages(self) -> list[Message]:
        """What was made of the lines, in order."""
        made: list[Message] = []
        before: list[Any] = self._notes.get(-1, [])
        for index, item in enumerate(self._items):
            one, *more = item.messages() if isinstance(item, Response) else [item]
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
        name = self._response_of(line)
        response = self._by_id.get(name) if name else None
        if response is None:
            response = Response(line.message_id, inherited)
            self._items.append(response)
            self.responses.append(response)
            if name:
                self._by_id[name] = response
        for call in response.add(line, self._extra(line)):
            if call.id is not None:
                self._calls[call.id] = call
            elif line.uuid is not None:
                self._nameless.setdefault(line.uuid, []).append(call)
        if line.value.get("isApiErrorMessage") is True:
            self.flags.add("api_error")

    def _response_of(self, line: Line) -> str | None:
        """What names the response of a line: its id, with the request where a server gave one id to several."""
        name, request = line.message_id, text_of(line.value, "requestId")
        if name is None or request is None:
            return name
        return name if request == self._requests.setdefault(name, request) else f"{name} {request}"

    def _user(self, line: Line, inherited: bool) -> None:
        content = content_of(line.value)
        blocks = content if isinstance(content, list) else [content]
        results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
        count = len(self._items)
        extra: dict[str, Any] | None = self._extra(line)
        for block in results:
            self._result(result(block), line, inherited, extra)
            extra = None
        others = [block for block in blocks if not any(block is one for one in results)] if results else blocks
        for synthetic, run in _runs(others, is_harness_line(line.value)):
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
        """What the program gives the model to read beside a turn; a prompt typed meanwhile is a turn itself."""
        attached = line.value.get("attachment")
        if not isinstance(attached, dict):
            self._note(line)
            return
        text, rest = attached_text(attached)
        if attached.get("type") == "queued_command":
            prompt = attached.get("prompt")
            mode = attached.get("commandMode")
            harness = is_harness_line({**attached, "type": "user"}) or not (mode is None or mode == "prompt")
            blocks, rest = prompt if isinstance(prompt, list) else [prompt], _without(attached, "prompt")
        elif text:
            harness, blocks = True, [text]
        else:
            self._note(line)
            return
        count = len(self._items)
        extra = {**self._extra(line), "attachment": rest}
        for synthetic, run in _runs(blocks, harness):
            self._say(line, run, synthetic, inherited, extra if len(self._items) == count else None)
        if len(self._items) == count:
            self._note(line)

    def _queued(self, line: Line, inherited: bool) -> None:
        """A text in the queue: said where it was taken in and no user's line has it; else noted, without it if said."""
        text = text_of(line.value, "content") or ""
        if self._said.repeats(text):
            self._note(line, "content")
        elif line.value.get("operation") != "remove":
            self._note(line, "content" if self._said.taken_in(text) else None)
        else:
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

    def _snapshot(self, line: Line) -> None:
        """Each snapshot lists all backups again: noted is what is new in it."""
        backups = backups_in(line.value)
        new = {path: backup for path, backup in backups.items() if self._backups.get(path) != backup}
        self._backups.update(new)
        if new:
            note = {"type": SNAPSHOT, "messageId": line.value.get("messageId"), "timestamp": time_in(line.value)}
            self._notes.setdefault(len(self._items) - 1, []).append({**note, "trackedFileBackups": new})

    def _note(self, line: Line, without: str | None = None) -> None:
        value = line.value
        left_out = ("parentUuid", "sessionId", "isSidechain", without)
        said = {k: v for k, v in value.items() if k not in left_out and v is not None}
        note = {k: v for k, v in said.items() if k not in _SESSION_KEYS or self._current.get(k) != v}
        self._notes.setdefault(len(self._items) - 1, []).append(note)

    def _extra(self, line: Line) -> dict[str, Any]:
        """Every key of a line that nothing else holds."""
        extra: dict[str, Any] = {}
        values, current = line.value, self._current
        for key in _beside(tuple(values)):
            value = values[key]
            if value is None or (value is False and key[:2] == "is"):
                continue
            if key in _SESSION_KEYS:
                if current.get(key) == value:
                    continue
                current[key] = value
                self.began_with.setdefault(key, value)
            extra[key] = value
        if line.kind == "attachment":
            extra.pop("attachment", None)
        elif line.kind == "user":
            message = values.get("message")
            if isinstance(message, dict) and len(message) > 2:
                more = {k: v for k, v in message.items() if k not in ("role", "content", "type") and v is not None}
                if more:
                    extra["message"] = more
        if extra.get("session_id") == values.get("sessionId"):
            extra.pop("session_id", None)
        if values.get("type") not in (line.kind, None):
            extra["type"] = values["type"]
        if line.dangling:
            extra["parentUuid"] = line.parents[0]
        return extra


@functools.lru_cache(1024)
def _beside(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of a line that say more than its place: most lines of a log have the same few sets of keys."""
    return tuple(key for key in keys if key not in _STRUCTURE)


def _runs(blocks: list[Any], harness: bool) -> list[tuple[bool, list[Any]]]:
    """The blocks of a user's content in runs of one speaker: (whether it is the program, blocks)."""
    runs: list[tuple[bool, list[Any]]] = []
    for block in blocks:
        text = block.get("text") if isinstance(block, dict) else block
        if not isinstance(text, str):
            if block is not None:
                _append(runs, harness, block)
            continue
        pieces = [] if harness else split(text)
        if len(pieces) <= 1:
            _append(runs, harness or any(piece.synthetic for piece in pieces), block)
            continue
        for piece in pieces:
            _append(runs, piece.synthetic, {**block, "text": piece.text} if isinstance(block, dict) else piece.text)
    return runs


def _append(runs: list[tuple[bool, list[Any]]], synthetic: bool, block: Any) -> None:
    if runs and runs[-1][0] == synthetic:
        runs[-1][1].append(block)
    else:
        runs.append((synthetic, [block]))


def _without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


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
