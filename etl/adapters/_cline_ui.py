"""The chat view of a Cline or Roo Code task: `[{ts, type: ask|say, ask|say: kind, text, …}]`.

Beside an API history it tells what the requests used. Alone it is all there is: what was said and called, each result
as the next request repeats it. `text` is JSON for calls and requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._blocks import plain
from etl.adapters._cline_text import outcome, said
from etl.adapters._session import dict_of, real, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Message, Tokens, ToolCall

_PERSON = frozenset({"task", "user_feedback", "user_feedback_diff"})
_MODEL = frozenset({"text", "completion_result", "plan_mode_respond", "followup", "plan_mode_response"})
_CALLS = frozenset({"tool", "command", "use_mcp_server", "browser_action", "browser_action_launch", "use_subagents"})
_RESULTS = frozenset({"command_output", "mcp_server_response", "browser_action_result"})
_ENDS = frozenset({"completion_result"})


def used_by(values: Sequence[dict[str, Any]]) -> list[Tokens]:
    """What each request of the view used; requests that are in it twice, started and finished, once."""
    found: list[Tokens] = []
    for value in values:
        kind = text_of(value, "say", "ask")
        if kind in ("api_req_started", "api_req_finished", "deleted_api_reqs"):
            tokens = _tokens(_json(value.get("text")))
            if tokens is not None:
                found.append(tokens)
    return found


def _tokens(told: Any) -> Tokens | None:
    """`{tokensIn, tokensOut, cacheWrites, cacheReads, cost}`; the input has the cache in it only where OpenAI's."""
    if not isinstance(told, dict):
        return None
    fresh, out, written, read_again = (
        whole(told.get(key)) for key in ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")
    )
    if not any((fresh, out, written, read_again)):
        return None
    beside = 0 if told.get("apiProtocol") == "openai" else (written or 0) + (read_again or 0)
    return Tokens(None if fresh is None else fresh + beside, out, read_again, written, None, real(told.get("cost")))


class View:
    """The items of a chat view without an API history, one after the other."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self.talk = Talk()
        self._open: list[ToolCall] = []
        self._shown: dict[str, list[str]] = {}
        self._made = 0
        self._ended = False
        for value in values:
            self._take(value)
        self._close()
        self.talk.tokens = used_by(values)

    @property
    def ended(self) -> bool:
        """Whether the model has said that it is done."""
        return self._ended

    def _take(self, value: dict[str, Any]) -> None:
        kind, text, at = text_of(value, "say", "ask") or "", plain(value.get("text")), value.get("ts")
        model = dict_of(value, "modelInfo")
        self.talk.model = text_of(model, "modelId") or self.talk.model
        rest = without(value, "ts", "type", "say", "ask", "text", "modelInfo", "conversationHistoryIndex", "images")
        if rest.get("partial") is False:
            del rest["partial"]
        images = value.get("images") if isinstance(value.get("images"), list) else None
        if kind in _PERSON or (kind == "text" and not self.talk.messages):  # the first text is the task
            self._close()
            self._ended = False
            self.talk.ask(text, at, parts=images or None, extra=rest)
        elif kind == "api_req_started":
            self._requested(value, at)
        elif kind == "reasoning":
            self.talk.think(text, at)
        elif kind in _MODEL:
            self._spoken(kind, text, at, rest)
        elif kind in _CALLS:
            self._called(kind, text, at, rest)
        elif kind in _RESULTS:
            self._shown_result(text, images)
        else:
            self.talk.note(without(value, "modelInfo"))

    def _spoken(self, kind: str, text: str, at: Any, rest: dict[str, Any]) -> None:
        told = _json(text)
        if kind in ("followup", "plan_mode_respond", "plan_mode_response") and isinstance(told, dict):
            words = text_of(told, "question", "response") or text
            rest = {**rest, **without(told, "question", "response")}
        else:
            words = text
        self._ended = self._ended or kind in _ENDS
        last = self.talk.messages[-1] if self.talk.messages else None
        if not words or (last is not None and last.role == "assistant" and last.content == words):
            return
        message = self.talk.speak(words, at)
        if rest:
            message.extra = {**(message.extra or {}), **rest}

    def _called(self, kind: str, text: str, at: Any, rest: dict[str, Any]) -> None:
        told = _json(text)
        arguments: dict[str, Any] = told if isinstance(told, dict) else {kind: text}
        name = text_of(arguments, "tool", "toolName") or ("execute_command" if kind == "command" else kind)
        arguments = without(arguments, "tool") if "tool" in arguments else arguments
        if self._open and self._open[-1].name == name and self._open[-1].arguments == arguments:
            return  # asked for, then said once more when it ran
        self._made += 1
        call = ToolCall(name, arguments, f"call_{self._made}")
        self.talk.call(call, at)
        self._open.append(call)
        if rest:
            self.talk.note({"call": call.id, **rest})

    def _shown_result(self, text: str, images: list[Any] | None) -> None:
        """Output as it came: the result, unless the next request tells it."""
        if self._open:
            name = self._open[-1].id or ""
            self._shown.setdefault(name, []).append(text)
        elif text or images:
            self.talk.note({"output": text, **({"images": images} if images else {})})

    def _requested(self, value: dict[str, Any], at: Any) -> None:
        """The request repeats what was said before it: results are taken, the rest is there already."""
        told = _json(value.get("text"))
        request = text_of(told, "request") if isinstance(told, dict) else None
        pieces = said(request) if request else []
        results = [piece for piece in pieces if piece.tool is not None]
        for piece in results[: len(self._open)]:
            self._answer(self._open.pop(0), piece.text, at)
        self._close()
        known = {message.content for message in self.talk.messages[-4:]}
        new = [piece for piece in pieces if piece.tool is None and piece.text not in known]
        for piece in new:
            self.talk.say(Message("user", piece.text, at=at, synthetic=True))
        self.talk.close()
        rest = without(told, "request", "tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost") if told else {}
        if rest and self.talk.messages:
            self.talk.note({"say": "api_req_started", **rest})

    def _answer(self, call: ToolCall, text: str, at: Any) -> None:
        shown = "\n".join(self._shown.pop(call.id or "", []))
        message = Message("tool", text, call_id=call.id, at=at)
        message.failed, message.condition, message.error = outcome(text)
        if shown and shown not in text:
            message.extra = {"shown": shown}
        self.talk.say(message)

    def _close(self) -> None:
        """Results of calls that no request tells: what was shown of them."""
        left = [call for call in self._open if call.id in self._shown]
        for call in left:
            self._answer(call, "\n".join(self._shown[call.id or ""]), None)
        self._open = []
        self._shown = {}
        self.talk.close()


def _json(text: Any) -> Any:
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
