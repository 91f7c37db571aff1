"""Items of a Codex session as messages: pieces of a response put together, calls, what came back, who speaks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from etl.adapters._blocks import identifier, read
from etl.adapters._claude_text import texts_in
from etl.adapters._codex_lines import ITEM, Line
from etl.adapters._codex_results import End, condition_of, end_of, invocation_of, output_of, tell
from etl.adapters._codex_text import is_harness, parted
from etl.adapters._codex_turn_items import call_of
from etl.adapters._session import dict_of, list_of, noted, runs, text_of, without
from etl.conversation import Message, ToolCall

if TYPE_CHECKING:
    from etl.adapters._codex_turns import Entry, _Session

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result",
                      "local_shell_call_output", "mcp_tool_call_output"})  # fmt: skip
_PASSED_ON = ("internal_chat_message_metadata_passthrough", "metadata")

_TEXTS = ("aggregated_output", "formatted_output", "stdout")
_LABEL = re.compile(r"<image(?: name=([^<>\n]{0,80}))?>|</image>")


class Items:
    """The items of a session, as they come."""

    def __init__(self, session: _Session, lines: Iterable[Line]) -> None:
        self._session = session
        self._open: Entry | None = None
        """The assistant's message that further pieces belong to."""
        self._calls: dict[str, ToolCall] = {}
        self._searches: list[ToolCall] = []
        self._results: dict[str, Message] = {}
        self._answered = {
            name for line in lines if line.kind == ITEM and line.type in _OUTPUTS and (name := call_id(line.payload))
        }
        self._ends: dict[str, tuple[str, End]] = {}
        """Ends of calls whose output is still to come."""

    def close(self) -> None:
        """Further pieces belong to another message."""
        self._open = None

    def take(self, line: Line) -> None:
        """Read an item."""
        kind, payload = line.type, line.payload
        if kind == "message":
            self._message(line)
        elif kind == "reasoning":
            self._reasoning(line)
        elif kind in _OUTPUTS:
            self._output(line)
        elif (call := _call(kind, payload)) is not None:
            self._called(line, call)
        elif kind == "agent_message":
            self._said(line, "user", payload.get("content"), synthetic=True)
        else:
            self._piece(line).parts = [*(self._piece(line).parts or []), payload]

    def spoken(self, line: Line, who: str, text: str) -> None:
        """Read an event whose text no item says."""
        rest = without(line.payload, "type", "message", "text", "images")
        if who == "user":
            self.close()
            kind = text_of(line.payload, "kind")
            pieces = parted(text)
            images = [{"type": "image", "image_url": image} for image in list_of(line.payload, "images")]
            for number, piece in enumerate(pieces, 1):
                synthetic = is_harness(piece) or kind in ("environment_context", "user_instructions")
                message = Message("user", piece, synthetic=synthetic)
                if number == len(pieces):
                    message.parts, message.extra = images or None, {line.type: rest} if rest else None
                self._session.say(line, message)
            return
        if who == "reasoning":
            self._think(line, text)
            if rest:
                self._tell(line, {"type": line.type, **rest})
            return
        self._speak(line, text)
        if rest:
            self._tell(line, {"type": line.type, **rest})

    def ended(self, line: Line) -> None:
        """Read the end of a call: it tells more of a result, or is the only one that tells it."""
        if line.type == "web_search_end":
            self._searched(line)
            return
        name = call_id(line.payload)
        end = end_of(line.type, line.payload)
        call, answer = self._calls.get(name or ""), self._results.get(name or "")
        if answer is None and name in self._answered:
            self._ends[name or ""] = (line.type, end)
            return
        if answer is not None:
            tell(answer, line.type, end, texts_in(call.arguments) if call is not None else ())
            return
        if call is None and not self._running():
            call = self._ran(line, name, end)
        if call is None:
            self._session.note(line)
            return
        self.close()
        rest = {line.type: end.rest} if end.rest else None
        message = Message("tool", end.text, call_id=name, parts=end.parts, failed=end.failed, extra=rest)
        message.duration_ms = end.duration_ms
        self._session.say(line, message)
        if name:
            self._results[name] = message

    def _running(self) -> bool:
        """Whether a call waits for its result: what ends meanwhile under a name of its own ran inside it."""
        for entry in reversed(self._session.entries):
            if entry.message.role == "assistant":
                return any(call.id not in self._results for call in entry.message.calls or () if call.actor == "agent")
            if entry.message.role != "tool":
                return False
        return False

    def _ran(self, line: Line, name: str | None, end: End) -> ToolCall | None:
        """The call that only its end tells of, told; None where there is none."""
        if line.type == "mcp_tool_call_end":
            tool, arguments = invocation_of(line.payload)
            call = ToolCall(tool, arguments, name, at=line.time)
        elif not line.done or (made := call_of(line.type, line.payload)) is None:
            return None
        else:
            call, keys = made
            end.rest = without(end.rest, *keys, *(key for key in _TEXTS if end.rest.get(key) == end.text))
        self._called(line, call)
        return call

    def _searched(self, line: Line) -> None:
        """Read the end of a search: its call is an item; what was found is told here alone."""
        known = any(call.arguments == without(dict_of(line.payload, "action"), "type") for call in self._searches)
        made = call_of(line.type, line.payload) if line.done and not known and not self._running() else None
        if made is not None:
            self._called(line, made[0])
            self._session.note(line, without(line.payload, "call_id", *made[1]))
            return
        found = without(line.payload, "type", "call_id", *(("action", "query") if known else ()))
        self._session.note(line, found if known else None)

    def replaced(self, line: Line, item: Any, known: set[str]) -> None:
        """Read an item of a compacted history: kept where nothing before says it."""
        said = read(dict_of({"item": item}, "item").get("content"))
        encrypted = text_of(item, "encrypted_content")
        new = said.text.strip() not in known if said.text else False
        if not new and not (encrypted and not said.text):
            return
        known.add(said.text.strip())
        role = text_of(item, "role")
        message = Message(role if role in ("user", "assistant", "developer") else "user", said.text, synthetic=True)
        message.parts = said.parts or ([item] if encrypted else None)
        rest = without(item, "content", "role", "type", "encrypted_content")
        message.extra = {"compacted": rest} if rest else None
        self._session.say(line, message)

    def _message(self, line: Line) -> None:
        role, content = text_of(line.payload, "role"), line.payload.get("content")
        if role == "assistant":
            said = read(content)
            self._speak(line, said.text)
            message = self._piece(line)
            message.parts = [*(message.parts or []), *(said.parts or [])] or None
            self._rest(line, "content", "role")
        elif role in ("user", "developer", "system"):
            self._said(line, role, content, synthetic=role != "user")
        else:
            self._session.note(line)

    def _said(self, line: Line, role: str, content: Any, synthetic: bool) -> None:
        """A message that is not the model's, its blocks in runs of one speaker."""
        self.close()
        rest = _rest(line.payload, "content", "role")
        blocks = content if isinstance(content, list) else [content]
        found = [(True, blocks)] if synthetic else runs(_pieces(blocks), is_harness)
        count = len(self._session.entries)
        for harness, run in found:
            said = read(_unlabelled(run))
            if not said.text and not said.parts:
                continue
            extra: dict[str, Any] = rest if len(self._session.entries) == count else {}
            if said.rest:
                extra = {**extra, "content": said.rest}
            message = Message(role, said.text, parts=said.parts, extra=extra or None)
            message.synthetic = harness and role == "user"
            message.id = text_of(line.payload, "id")
            self._session.say(line, message)

    def _speak(self, line: Line, text: str) -> None:
        if self._open is not None and self._open.message.content and text:
            self.close()
        message = self._piece(line)
        message.content = message.content or text
        message.id = message.id or text_of(line.payload, "id")

    def _think(self, line: Line, text: str | None) -> None:
        if self._open is not None and (self._open.message.content or self._open.message.calls):
            self.close()
        message = self._piece(line)
        if text:
            message.reasoning = text if message.reasoning is None else f"{message.reasoning}\n{text}"

    def _reasoning(self, line: Line) -> None:
        said = read([{**without(line.payload, *_PASSED_ON), "type": "reasoning"}])
        self._think(line, said.reasoning)
        message = self._piece(line)
        if said.parts:
            message.parts = [*(message.parts or []), *said.parts]
        self._turn(line)
        if line.time != message.at:
            self._tell(line, {"type": line.type, "at": line.time})

    def _called(self, line: Line, call: ToolCall) -> None:
        call.at = line.time
        message = self._piece(line)
        message.calls = [*(message.calls or []), call]
        if call.id:
            self._calls[call.id] = call
        if call.actor == "server":
            self._searches.append(call)
        if line.kind == ITEM:
            action = text_of(dict_of(line.payload, "action"), "type")
            held = ("name", "arguments", "input", "call_id", "callId", "action", "function")
            self._rest(line, *held, call=call.id, action=action)

    def _output(self, line: Line) -> None:
        self.close()
        payload = line.payload
        key = next((key for key in ("output", "result", "tools", "content") if payload.get(key) is not None), "output")
        found = output_of(payload.get(key))
        name = call_id(payload)
        message = Message("tool", found.text, call_id=name, name=text_of(payload, "name"), id=text_of(payload, "id"))
        message.parts, message.failed, message.duration_ms = found.parts, found.failed, found.duration_ms
        status = text_of(payload, "status")
        if message.failed is None and status in ("failed", "incomplete"):
            message.failed = True
        condition = condition_of(found.text)
        if condition is not None:
            message.failed, message.condition = True, condition
        extra = _rest(payload, key, "call_id", "callId", "name", "id")
        if found.rest:
            extra["output"] = found.rest
        message.extra = extra or None
        self._session.say(line, message)
        if name:
            self._results[name] = message
            ended, call = self._ends.pop(name, None), self._calls.get(name)
            if ended is not None:
                tell(message, *ended, texts_in(call.arguments) if call is not None else ())

    def _piece(self, line: Line) -> Message:
        """The assistant's message that a piece belongs to."""
        if self._open is None or self._open.message.inherited != line.copied:
            self._open = self._session.say(line, Message("assistant"))
        elif self._open.records[-1] is not line.record:
            self._open.records.append(line.record)
        return self._open.message

    def _rest(self, line: Line, *held: str, **more: Any) -> None:
        """Keep what nothing else holds of a piece with its message."""
        rest = _rest(line.payload, *held)
        self._turn(line)
        if rest.get("id") == self._piece(line).id:
            rest.pop("id", None)
        rest.pop("turn_id", None)
        if rest.get("status") == "completed":
            rest.pop("status")
        named = {key: value for key, value in more.items() if value is not None}
        if line.time != self._piece(line).at and "call" not in more:
            named["at"] = line.time
        if rest or named.keys() - {"call"}:
            self._tell(line, {"type": line.type, **named, **rest})

    def _tell(self, line: Line, told: dict[str, Any]) -> None:
        noted(self._piece(line), "items", told)

    def _turn(self, line: Line) -> None:
        """The turn that a piece names, once for the message."""
        turn = _rest(line.payload).get("turn_id")
        message = self._piece(line)
        if turn is not None and (message.extra or {}).get("turn_id") != turn:
            message.extra = {**(message.extra or {}), "turn_id": turn}


def _pieces(blocks: list[Any]) -> list[Any]:
    """The blocks of a person's message, a text of an editor as its context and what was typed."""
    found: list[Any] = []
    for block in blocks:
        text = block if isinstance(block, str) else text_of(block, "text")
        pieces = parted(text) if text is not None else []
        if len(pieces) > 1:
            found += pieces if isinstance(block, str) else [{**block, "text": piece} for piece in pieces]
        elif block is not None:
            found.append(block)
    return found


def _unlabelled(blocks: list[Any]) -> list[Any]:
    """The blocks of a message without the labels that the program puts around an image; an image keeps its own."""
    found: list[Any] = []
    label: str | None = None
    for block in blocks:
        text = text_of(block, "text")
        if text is not None and (opened := _LABEL.fullmatch(text.strip())) is not None:
            label = opened[1]
        elif label is not None and isinstance(block, dict) and block.get("type") == "input_image":
            found.append({**block, "label": label})
            label = None
        else:
            found.append(block)
    return found if any(text_of(block, "type") == "input_image" for block in blocks) else blocks


def call_id(payload: dict[str, Any]) -> str | None:
    """The id by which a call and its result know each other; it is spelled two ways inside one version."""
    return next((found for key in ("call_id", "callId") if (found := identifier(payload.get(key)))), None)


def _rest(payload: dict[str, Any], *held: str) -> dict[str, Any]:
    """What an item says beside what is held; the turn it belongs to out of what the program passed through."""
    rest = without(payload, "type", "timestamp", *held)
    for key in _PASSED_ON:
        passed = rest.get(key)
        if isinstance(passed, dict) and passed.keys() == {"turn_id"}:
            rest.pop(key)
            rest["turn_id"] = passed["turn_id"]
    return rest


def _call(kind: str, payload: dict[str, Any]) -> ToolCall | None:
    """The call that an item makes, in any of the spellings; None where it makes none."""
    name = call_id(payload)
    if kind == "function_call" or kind == "tool_call":
        inner = dict_of(payload, "function")
        tool = text_of(payload, "name") or text_of(inner, "name")
        arguments = payload.get("arguments", inner.get("arguments"))
        return None if tool is None else ToolCall(tool, arguments, name)
    if kind == "custom_tool_call":
        tool = text_of(payload, "name")
        return None if tool is None else ToolCall(tool, payload.get("input"), name, free_form=True)
    if kind == "tool_search_call":
        return ToolCall("tool_search", payload.get("arguments"), name)
    action = payload.get("action")
    arguments = without(action, "type") if isinstance(action, dict) else action
    if kind == "local_shell_call":
        return ToolCall("local_shell", arguments, name or text_of(payload, "id"))
    if kind == "web_search_call":
        return ToolCall("web_search", arguments, name or text_of(payload, "id"), actor="server")
    return None
