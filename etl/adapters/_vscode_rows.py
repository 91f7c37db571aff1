"""Chats of VS Code as conversations: requests of a session, each with the rounds of its answer.

`result.metadata.toolCallRounds` is what the model said and called, `toolCallResults` what came back; where these are
not there, the parts of the response tell less: what was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etl.adapters._blocks import plain
from etl.adapters._session import dict_of, list_of, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Message, Tokens, ToolCall, Verdict

_REQUEST = (
    "requestId", "message", "variableData", "response", "result", "modelId", "timestamp", "isCanceled", "vote",
    "responseId", "completionTokens", "promptTokens", "isSystemInitiated", "agent", "modelState",
    "responseMarkdownInfo",
)  # fmt: skip
_METADATA = (
    "toolCallRounds", "toolCallResults", "promptTokens", "outputTokens", "resolvedModel", "modelMessageId", "sessionId",
    "responseId", "renderedUserMessage", "renderedGlobalContext", "codeBlocks", "agentId",
)  # fmt: skip
_SESSION = ("requests", "sessionId", "creationDate", "lastMessageDate", "version", "inputState", "pendingRequests")
_SHOWN = frozenset(
    {"undoStop", "prepareToolInvocation", "mcpServersStarting", "progressMessage", "progressTask", "codeblockUri"}
)
"""Parts of a response that only the editor needs."""
_CALL = (
    "kind", "toolCallId", "toolId", "isComplete", "resultDetails", "toolSpecificData", "invocationMessage",
    "pastTenseMessage", "isConfirmed", "source", "presentation",
)  # fmt: skip


class Session:
    """A session, its requests one after the other."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.talk = Talk()
        self._state = state
        self._judgments: list[Verdict] = []
        for request in list_of(state, "requests"):
            if isinstance(request, dict):
                self._take(request)

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        state = self._state
        made.agent, made.judgments = "vscode-copilot", self._judgments or None
        made.started_at, made.ended_at = state.get("creationDate"), state.get("lastMessageDate")
        made.extra = without(state, *_SESSION) or None
        return self.talk.tell(made)

    def _take(self, request: dict[str, Any]) -> None:
        result = dict_of(request, "result")
        metadata = dict_of(result, "metadata")
        at = request.get("timestamp")
        self.talk.model = text_of(metadata, "resolvedModel") or text_of(request, "modelId") or self.talk.model
        self._asked(request, metadata, at)
        count = len(self.talk.messages)
        answered = _results(metadata, request)
        rounds = [each for each in list_of(metadata, "toolCallRounds") if isinstance(each, dict)]
        if rounds:
            for each in rounds:
                self._round(each, answered, at)
            self._beside(request, count)
        else:
            self._response(request, answered, at)
        self._used(request, result, metadata, rounds, count)
        vote = request.get("vote")
        if vote in (0, 1) and type(vote) is int:
            self._judgments.append(Verdict("vote", "human", float(vote), "up" if vote else "down"))
        error = dict_of(result, "errorDetails")
        if request.get("isCanceled") is True:
            self.talk.flags.add("interrupted")
            self.talk.ended = ("aborted", None)
        elif error:
            self.talk.ended = ("error", text_of(error, "message", "code") or "error")
        rest = {**without(request, *_REQUEST), **without({"metadata": without(metadata, *_METADATA)})}
        rest.update(without({"errorDetails": error, "timings": result.get("timings")}))
        if rest:
            self.talk.note({"requestId": request.get("requestId"), **rest})

    def _asked(self, request: dict[str, Any], metadata: dict[str, Any], at: Any) -> None:
        said = request.get("message")
        text = said if isinstance(said, str) else text_of(said, "text") or ""
        variables = list_of(dict_of(request, "variableData"), "variables")
        extra = without({"variables": variables})
        message = Message("user", text, at=at, id=text_of(request, "requestId"), extra=extra or None)
        message.synthetic = request.get("isSystemInitiated") is True
        self.talk.say(message)
        rendered = metadata.get("renderedUserMessage")
        shown = shown_text(rendered)
        if shown and shown.strip() != text.strip():
            self.talk.say(Message("user", shown, at=at, synthetic=True))

    def _round(self, value: dict[str, Any], answered: dict[str, Message], at: Any) -> None:
        """What the model said and called at once, and what came back."""
        calls = [_call(item) for item in list_of(value, "toolCalls") if isinstance(item, dict)]
        thinking = dict_of(value, "thinking")
        message = Message("assistant", plain(value.get("response")), calls=calls or None, model=self.talk.model)
        message.at = value.get("timestamp") if value.get("timestamp") is not None else at
        message.reasoning = _joined(thinking.get("text"))
        sealed = without(thinking, "text", "tokens")
        message.parts = [{"type": "thinking", **sealed}] if sealed.keys() - {"id"} else None
        message.extra = without(value, "response", "toolCalls", "thinking", "timestamp", "id", "toolInputRetry") or None
        self.talk.say(message)
        for call in calls:
            result = answered.pop(call.id or "", None) or answered.pop(bare(call.id), None)
            if result is not None:
                result.call_id = call.id
                self.talk.say(result)

    def _beside(self, request: dict[str, Any], first: int) -> None:
        """What the response shows beside the rounds: edits, and text that no round has."""
        said = "\n".join(m.content for m in self.talk.messages[first:])
        others = [
            part
            for part in list_of(request, "response")
            if isinstance(part, dict)
            and text_of(part, "kind") not in (None, "text", "markdownContent", "thinking", "inlineReference", *_SHOWN)
            and text_of(part, "kind") != "toolInvocationSerialized"
        ]
        shown = "".join(_shown(part) or "" for part in list_of(request, "response"))
        if shown.strip() and not said.strip():
            self.talk.speak(shown, request.get("timestamp"))
        last = next((m for m in reversed(self.talk.messages[first:]) if m.role == "assistant"), None)
        if last is not None and others:
            last.parts = [*(last.parts or []), *others]
        self._thought(request, first)

    def _thought(self, request: dict[str, Any], first: int) -> None:
        """Reasoning that the response shows and no round has: before the first of what was said."""
        known = "\n".join(m.reasoning or "" for m in self.talk.messages[first:])
        thoughts = [
            text
            for part in list_of(request, "response")
            if text_of(part, "kind") == "thinking" and (text := _joined(part.get("value"))) and text not in known
        ]
        said = next((m for m in self.talk.messages[first:] if m.role == "assistant"), None)
        if said is not None and thoughts:
            said.reasoning = "\n".join([*thoughts, *([said.reasoning] if said.reasoning else [])])

    def _response(self, request: dict[str, Any], answered: dict[str, Message], at: Any) -> None:
        """The parts of a response without rounds: text between calls."""
        texts: list[str] = []
        for part in list_of(request, "response"):
            kind = text_of(part, "kind")
            shown = _shown(part)
            if shown is not None:
                texts.append(shown)
                continue
            if texts and (text := "".join(texts)).strip():
                self.talk.speak(text, at)
            texts = []
            if kind == "thinking":
                self.talk.think(_joined(part.get("value")) or "", at)
            elif kind == "toolInvocationSerialized":
                self._invoked(part, answered, at)
            elif isinstance(part, dict) and kind not in _SHOWN:
                message = self.talk.piece(at)
                message.parts = [*(message.parts or []), part]
        if texts and (text := "".join(texts)).strip():
            self.talk.speak(text, at)

    def _invoked(self, part: dict[str, Any], answered: dict[str, Message], at: Any) -> None:
        name = text_of(part, "toolCallId") or text_of(part, "toolId")
        specific, details = dict_of(part, "toolSpecificData"), dict_of(part, "resultDetails")
        arguments: Any = specific.get("rawInput", details.get("input"))
        line = specific.get("commandLine", specific.get("command"))
        if specific.get("kind") == "terminal" and line:
            arguments = {"command": text_of(line, "original") if isinstance(line, dict) else line}
        free = isinstance(arguments, str) and arguments.lstrip()[:1] != "{"
        call = ToolCall(text_of(part, "toolId") or "tool", arguments, name, free_form=free)
        self.talk.call(call, at)
        rest = without(part, *_CALL)
        shown = shown_text(part.get("pastTenseMessage")) or shown_text(part.get("invocationMessage"))
        result = answered.pop(name or "", None) or answered.pop(bare(name), None) or _detailed(part, name)
        held = ["rawInput", "commandLine"]
        if result is not None:
            self.talk.say(result)
            held += [_PRINTED] if shown_text(dict_of(specific, _PRINTED)) in result.content else []
        note = {**rest, **without({"shown": shown, "toolSpecificData": without(specific, *held)})}
        if note:
            self.talk.note({"call": name, **note})

    def _used(
        self, request: dict[str, Any], result: dict[str, Any], metadata: dict[str, Any], rounds: list[Any], first: int
    ) -> None:
        usage = dict_of(result, "usage")
        read_in = whole(metadata.get("promptTokens", usage.get("promptTokens", request.get("promptTokens"))))
        out = whole(metadata.get("outputTokens", usage.get("completionTokens", request.get("completionTokens"))))
        if read_in is None and out is None:
            return
        thought = [whole(dict_of(each, "thinking").get("tokens")) for each in rounds]
        reasoning = sum(count for count in thought if count) or None
        self.talk.tokens.append(Tokens(read_in, out, None, None, reasoning))
        last = next((m for m in reversed(self.talk.messages[first:]) if m.role == "assistant"), None)
        if last is not None:
            last.input_tokens, last.output_tokens = read_in, out


def bare(name: str | None) -> str:
    """A call's id as its provider gave it: the editor appends a number."""
    return (name or "").split("__vscode-", 1)[0]


def _call(item: dict[str, Any]) -> ToolCall:
    return ToolCall(text_of(item, "name") or "tool", item.get("arguments"), text_of(item, "id"))


def _results(metadata: dict[str, Any], request: dict[str, Any]) -> dict[str, Message]:
    """What came back of each call, by its id."""
    found: dict[str, Message] = {}
    for part in list_of(request, "response"):
        if text_of(part, "kind") == "toolInvocationSerialized":
            name = text_of(part, "toolCallId") or ""
            shown = _detailed(part, name)
            if shown is not None:
                found[name] = shown
    for name, told in dict_of(metadata, "toolCallResults").items():
        content = told.get("content") if isinstance(told, dict) else told
        known = found.get(name) or found.get(bare(name))
        message = Message("tool", shown_text(content), call_id=name)
        message.failed = known.failed if known is not None else None
        listed = content if isinstance(content, list) else []
        media = [item for item in listed if isinstance(item, dict) and "mimeType" in item]
        message.parts = media or None
        found[name] = message
    for name, kind in _decided(request):
        known = found.get(name) or found.get(bare(name))
        if known is not None:
            known.cancelled = kind == _SKIPPED
            known.failed, known.condition = True, None if known.cancelled else "permission_denied"
    return found


_DENIED, _SKIPPED = 0, 5


def _decided(request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The calls that a person did not let run, and how: `isConfirmed` is a kind, a flag in older versions."""
    for part in list_of(request, "response"):
        if text_of(part, "kind") == "toolInvocationSerialized" and (name := text_of(part, "toolCallId")):
            told = part.get("isConfirmed")
            kind = _DENIED if told is False else dict_of(part, "isConfirmed").get("type")
            if type(kind) is int and kind in (_DENIED, _SKIPPED):
                yield name, kind


_PRINTED = "terminalCommandOutput"


def _detailed(part: dict[str, Any], name: str | None) -> Message | None:
    """What came back of a call, as the part tells that shows it: details of a result, or what a command printed."""
    details, specific = dict_of(part, "resultDetails"), dict_of(part, "toolSpecificData")
    if "output" not in details:
        code = dict_of(specific, "terminalCommandState").get("exitCode")
        text = text_of(dict_of(specific, _PRINTED), "text")
        if text is None and type(code) is not int:
            return None
        return Message("tool", text or "", call_id=name, failed=code != 0 if type(code) is int else None)
    flag = details.get("isError")
    message = Message("tool", shown_text(details["output"]), call_id=name)
    message.failed = flag if isinstance(flag, bool) else None
    return message


def _shown(part: Any) -> str | None:
    """The text of a part of a response; None for a part of another kind."""
    if isinstance(part, str):
        return part
    kind = text_of(part, "kind")
    if kind is None and isinstance(part, dict):
        value = part.get("value")
        return value if isinstance(value, str) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "markdownContent":
        return shown_text(part.get("content", part.get("value")))
    if kind == "inlineReference":
        target = part.get("inlineReference")
        path = text_of(target, "name", "fsPath", "path") or text_of(dict_of(target, "uri"), "fsPath", "path")
        return f"`{text_of(part, 'name') or (path or '').rsplit('/', 1)[-1]}`"
    return None


def _joined(value: Any) -> str | None:
    if isinstance(value, list):
        return "\n".join(item for item in value if isinstance(item, str)) or None
    return value if isinstance(value, str) and value else None


def shown_text(value: Any) -> str:
    """The text in a value of the editor: strings, Markdown, lists of parts, and trees of prompt elements."""
    found: list[str] = []
    stack: list[Any] = [value]
    steps = 0
    while stack and steps < 200_000:
        steps += 1
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, list):
            stack += item[::-1]
        elif isinstance(item, dict):
            if isinstance(item.get("text"), str) and "children" not in item:
                found.append(item["text"])
            else:
                stack += [item[key] for key in ("content", "value", "node", "children") if key in item]
    return "".join(found)
