"""OpenCode sessions as conversations: parts into messages, the undone end of a session as a row of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._blocks import plain
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._opencode_store import SEPARATE, Session, Spoken, sessions
from etl.adapters._session import dict_of, inherited, list_of, real, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Identity, Message, StoredEvent, Tokens, ToolCall

_PLACES = ("id", "sessionID", "messageID", "type")
_INFO = ("id", "sessionID", "role", "time", "modelID", "providerID", "tokens", "cost", "finish", "error", "parentID")
_SESSION = ("id", "sessionID", "parentID", "forkSessionID", "time", "title", "revert", "model")
_ABORTED = "MessageAbortedError"

__all__ = ["SEPARATE", "conversations"]


def conversations(family: Sequence[StoredEvent]) -> Iterator[Conversation]:
    """The rows of every session of a family; none of one in which nobody says anything of its own."""
    for session in sessions(family):
        if session.copied == len(session.messages) > 0:
            continue
        undone = text_of(dict_of(session.info, "revert"), "messageID")
        cut = next((n for n, each in enumerate(session.messages) if each.info.get("id") == undone), None)
        live = _Reading(session, session.messages[:cut])
        if live.talk.messages:
            yield live.conversation()
        if cut is not None and live.talk.messages:
            left = _Reading(session, session.messages[cut:], live.talk.messages)
            if len(left.talk.messages) > len(live.talk.messages):
                yield left.conversation(undone or "")


class _Reading:
    """The messages of a session, one after the other; `before` belongs to another row."""

    def __init__(self, session: Session, messages: Sequence[Spoken], before: Sequence[Message] = ()) -> None:
        self.talk = Talk()
        self._session = session
        self._provider: str | None = None
        self._ended: float | None = None
        self.talk.messages += inherited(before)
        for number, spoken in enumerate(messages):
            self._take(spoken)
            if number + 1 == session.copied and not before:
                self.talk.messages = inherited(self.talk.messages)
                self.talk.tokens.clear()
        for error in session.errors if not before else ():
            self.talk.note({"type": "error", "error": error.get("error")})
            self.talk.ended = ("error", _error_text(dict_of(error, "error")))

    def conversation(self, branch: str = "") -> Conversation:
        """What was read as a conversation; a branch is an end of the session that was undone."""
        key, info = self._session.key, self._session.info
        made = Conversation([], self._session.records, native_id=key, branch=branch, conversation_id=key)
        made.agent = "opencode"
        parent = text_of(info, "parentID")
        made.provider = self._provider
        if branch:
            made.parent, made.flags = Identity(key), {"abandoned"}
        else:
            parent = parent if parent and parent != key else self._session.origin or text_of(info, "forkSessionID")
            made.parent = Identity(parent) if parent else None
            made.extra = _told(info)
        made.ended_at = self._ended
        last = next((message for message in reversed(self.talk.messages) if message.role == "assistant"), None)
        made.finish_reason = last.finish_reason if last is not None else None
        return self.talk.tell(made)

    def _take(self, spoken: Spoken) -> None:
        if not spoken.known:
            self.talk.flags.add("ambiguous_parent")
        if spoken.info.get("role") == "assistant":
            self._answered(spoken)
        else:
            self._asked(spoken)

    def _asked(self, spoken: Spoken) -> None:
        """A person's message: what the program adds to it is marked, and stands apart."""
        info = spoken.info
        at = dict_of(info, "time").get("created")
        system = text_of(info, "system")
        if system is not None and not any(message.content == system for message in self.talk.messages):
            self.talk.say(Message("system", system, at=at))
        rest = without(info, *(key for key in _INFO if key != "model"), *(("system",) if system else ()))
        first = True
        for part in spoken.parts:
            kind, text = text_of(part, "type"), part.get("text")
            synthetic = part.get("synthetic") is True or part.get("ignored") is True
            message = Message("user", synthetic=synthetic, at=at, id=text_of(info, "id"))
            extra: dict[str, Any] = {}
            if kind == "text" and isinstance(text, str):
                message.content = text
                extra = without(part, *_PLACES, "synthetic", "text")
            else:
                message.synthetic = True
                self.talk.flags |= {"compacted"} if kind == "compaction" else set()
                message.parts = [without(part, "sessionID", "messageID")]
                before = self.talk.messages[-1] if self.talk.messages and not first else None
                if before is not None and before.role == "user":
                    before.parts = [*(before.parts or []), *message.parts]
                    continue
            message.extra = {**(rest if first else {}), **({"part": extra} if extra.keys() - {"time"} else {})} or None
            first = False
            self.talk.ask(message.content, at, id=message.id, parts=message.parts, extra=message.extra)
            if message.synthetic:
                self.talk.messages[-1].synthetic = True
        if not spoken.parts and spoken.known:
            self.talk.note({"message": info.get("id"), "parts": 0, **rest})

    def _answered(self, spoken: Spoken) -> None:
        """A response of the model, or several where one message holds the steps of a turn."""
        info = spoken.info
        time = dict_of(info, "time")
        self._provider = text_of(info, "providerID") or self._provider
        self.talk.model = text_of(info, "modelID") or self.talk.model
        ends = [time.get("completed"), *(_ended(part) for part in spoken.parts), self._ended]
        self._ended = max((end for end in ends if type(end) in (int, float)), default=None)
        steps = _steps(spoken.parts)
        counts = [_tokens(dict_of(end, "tokens"), end.get("cost")) for _, end in steps]
        whole_message = _tokens(dict_of(info, "tokens"), info.get("cost"))
        if len([count for count in counts if count is not None]) < 2:
            counts = [*(None for _ in steps[1:]), whole_message or counts[-1]]
        if info.get("summary") is True:
            self.talk.flags.add("compacted")
        for number, ((parts, end), count) in enumerate(zip(steps, counts, strict=True)):
            at = time.get("created") if number == 0 else _began(parts)
            message = self._step(parts, at)
            message.id, message.model = text_of(info, "id"), text_of(info, "modelID")
            last = number == len(steps) - 1
            message.finish_reason = (text_of(info, "finish") if last else None) or text_of(end, "reason")
            if count is not None:
                self.talk.tokens.append(count)
                message.input_tokens, message.output_tokens = count.input_tokens, count.output_tokens
            if last:
                message.extra = {**(message.extra or {}), **without(info, *_INFO), **_times(time)} or None
        self._failed(dict_of(info, "error"))

    def _failed(self, error: dict[str, Any]) -> None:
        if not error:
            return
        if text_of(error, "name") == _ABORTED:
            self.talk.flags.add("interrupted")
            self.talk.ended = ("aborted", None)
        elif text_of(error, "name") == "MessageOutputLengthError":
            self.talk.ended = ("truncated", _error_text(error))
        else:
            self.talk.flags.add("api_error")
            self.talk.ended = ("error", _error_text(error))
        self.talk.note({"error": error})

    def _step(self, parts: list[dict[str, Any]], at: Any) -> Message:
        """One response and the results of its calls."""
        message = self.talk.say(Message("assistant", at=at))
        results: list[Message] = []
        kept: list[dict[str, Any]] = []
        texts: list[str] = []
        for part in parts:
            kind, text = text_of(part, "type"), part.get("text")
            if kind == "tool":
                call, answer = _called(part)
                message.calls = [*(message.calls or []), call]
                results += [answer] if answer is not None else []
                kept.append(_beside(part))
            elif kind in ("text", "reasoning") and isinstance(text, str):
                if kind == "text":
                    texts.append(text)
                elif text:
                    message.reasoning = text if message.reasoning is None else f"{message.reasoning}\n{text}"
                more = without(part, *_PLACES, "text", "time")
                kept.append({"type": kind, **more} if more else {})
            elif kind not in ("step-start", "step-finish"):
                message.parts = [*(message.parts or []), without(part, "sessionID", "messageID")]
            else:
                kept.append(without(part, "sessionID", "messageID", "id", "tokens", "cost", "reason"))
        message.content = "\n".join(text for text in texts if text)
        said = [part for part in kept if part.keys() - {"type"}]
        message.extra = {"parts": said} if said else None
        for result in results:
            self.talk.say(result)
        return message


def _steps(parts: list[dict[str, Any]]) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """The parts of each response, with the mark that ends it (an empty one where there is none).

    Where no marks stand, text after a call begins another response: the model has seen the result.
    """
    found: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [([], {})]
    marked = any(part.get("type") == "step-start" for part in parts)
    for part in parts:
        kind = part.get("type")
        current = found[-1][0]
        begins = kind == "step-start" if marked else (kind in ("text", "reasoning") and _has_call(current))
        if begins and any(each.get("type") not in ("step-start", "file", "snapshot") for each in current):
            found.append(([], {}))
        found[-1][0].append(part)
        if kind == "step-finish":
            found[-1] = (found[-1][0], part)
    return found


def _has_call(parts: list[dict[str, Any]]) -> bool:
    return any(part.get("type") == "tool" for part in parts)


_INVALID = "invalid"
"""The tool that stands where the model called one that there is not, or one with wrong arguments; it succeeds."""
_STOPPED = ("Tool execution aborted", "The operation was aborted")
_TIMEOUT = re.compile(r"<bash_metadata>\s[^<]{0,200}(?:exceeding|exceeded) timeout")


def _called(part: dict[str, Any]) -> tuple[ToolCall, Message | None]:
    """The call of a part, and its result where it has come."""
    state = dict_of(part, "state")
    time = dict_of(state, "time")
    call = ToolCall(text_of(part, "tool") or "tool", state.get("input"), text_of(part, "callID", "id"))
    if call.arguments is None and isinstance(state.get("raw"), str):
        call.arguments = state["raw"]
    call.at = time.get("start")
    status = text_of(state, "status")
    if status not in ("completed", "error"):
        return call, None
    output = state.get("output") if status == "completed" else state.get("error", state.get("output"))
    answer = Message("tool", plain(output), call_id=call.id, at=time.get("end"))
    started, ended = real(time.get("start")), real(time.get("end"))
    if started is not None and ended is not None:
        answer.duration_ms = real(ended - started)
    code = dict_of(state, "metadata").get("exit")
    if status == "error":
        answer.cancelled = answer.content.startswith(_STOPPED)
        answer.failed = True
        answer.condition = "permission_denied" if "rejected permission" in answer.content[:200] else None
    elif type(code) is int:
        answer.failed = code != 0
        answer.error = f"exit {code}" if code else None
    elif call.name == _INVALID:
        answer.failed, answer.condition = True, "invalid_arguments"
    elif _TIMEOUT.search(answer.content):
        answer.failed, answer.condition = True, "timeout"
    answer.parts = list_of(state, "attachments") or None
    told = without(state, "status", "input", "raw", "output", "error", "time", "attachments")
    more = echoes(told, answer.content, texts_in(call.arguments)) or {}
    if code == 0 and isinstance(more.get("metadata"), dict):
        more["metadata"] = without(more["metadata"], "exit")
    compacted = {"compacted": time["compacted"]} if time.get("compacted") is not None else {}
    answer.extra = {**without(more), **compacted} or None
    return call, answer


def _beside(part: dict[str, Any]) -> dict[str, Any]:
    """What a part of a call says beside the call."""
    more = without(part, "sessionID", "messageID", "id", "tool", "callID", "state")
    state = dict_of(part, "state")
    if text_of(state, "status") not in ("completed", "error"):
        more["state"] = without(state, "input", "raw", "time")
    return {**more, "callID": part.get("callID")} if more.keys() - {"type"} else {}


def _tokens(tokens: dict[str, Any], cost: Any) -> Tokens | None:
    """`{input, output, reasoning, cache{read, write}}`: each beside the others."""
    cache = dict_of(tokens, "cache")
    fresh, read_again, written = whole(tokens.get("input")), whole(cache.get("read")), whole(cache.get("write"))
    output, reasoning = whole(tokens.get("output")), whole(tokens.get("reasoning"))
    if not any((fresh, read_again, written, output, reasoning)):
        return None
    total = None if fresh is None else fresh + (read_again or 0) + (written or 0)
    out = None if output is None else output + (reasoning or 0)
    return Tokens(total, out, read_again, written, reasoning, real(cost))


def _times(time: dict[str, Any]) -> dict[str, Any]:
    return {"completed": time["completed"]} if time.get("completed") is not None else {}


def _began(parts: list[dict[str, Any]]) -> Any:
    starts = (
        dict_of(part, "time").get("start", dict_of(dict_of(part, "state"), "time").get("start")) for part in parts
    )
    return next((start for start in starts if start is not None), None)


def _ended(part: dict[str, Any]) -> Any:
    return dict_of(part, "time").get("end", dict_of(dict_of(part, "state"), "time").get("end"))


def _error_text(error: dict[str, Any]) -> str:
    return text_of(dict_of(error, "data"), "message") or text_of(error, "message", "name") or "error"


def _told(info: dict[str, Any]) -> dict[str, Any] | None:
    """What the session says of itself beside its columns."""
    rest = without(info, *_SESSION)
    title = text_of(info, "title")
    if title is not None:
        rest["title"] = title
    model = info.get("model")
    if model not in (None, "", {}):
        rest["model"] = model
    return rest or None
