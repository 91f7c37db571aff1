"""Tool spans into the transcripts: what a call was given and gave back, how long it took, and how it failed.

A span answers the call of its id in the same trace, else the first unanswered call of its name (with equal arguments,
where there is one). What a transcript already says stays; the span adds what is missing. A span that no call asked for,
because the model's words were not captured or a framework ran the tool by itself, is told of as a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from etl.adapters._blocks import given_back, identifier
from etl.adapters._otlp_drafts import Draft, Piece
from etl.adapters._otlp_facts import ERROR, SUMS
from etl.adapters._otlp_messages import UNCAPTURED, messages
from etl.adapters._otlp_provenance import Provenance
from etl.adapters._otlp_span import CONVERSATION_IDS, OPERATIONS, Span, opened
from etl.adapters._otlp_threads import canonical
from etl.adapters._otlp_values import literal
from etl.conversation import Message, ToolCall
from etl.decode import JsonError, decode

NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name", "tool_name")
CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.input",
    "tool_arguments",
    "ai.toolCall.args",
    "ai.toolCall.input",
    "input.value",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "gcp.vertex.agent.tool_call_args",
    "mlflow.spanInputs",
)
RESULT = (
    "gen_ai.tool.call.result",
    "gen_ai.tool.output",
    "tool_response",
    "ai.toolCall.result",
    "ai.toolCall.output",
    "output.value",
    "traceloop.entity.output",
    "langfuse.observation.output",
    "gcp.vertex.agent.tool_response",
    "mlflow.spanOutputs",
)
HANDOFF = "handoff to "
"""How spans begin that tell of a handoff to another agent: the model called a tool, or a program decided."""
_HIDDEN = SUMS | OPERATIONS.keys() | set(CONVERSATION_IDS) | {"input.mime_type", "output.mime_type"}
_PREFIXES = ("execute_tool ", "running tool: ", "tool: ", "ai.toolCall ")


class ToolSpan(msgspec.Struct, eq=False):
    """What a tool span says."""

    span: Span
    name: str
    call_id: str | None
    arguments: Any
    result: Any
    error: str | None
    left: dict[str, Any]
    """Attributes that nothing else holds."""


def read_tool(span: Span) -> ToolSpan:
    """Read a tool span, in any dialect."""
    used: set[str] = set()

    def take(names: tuple[str, ...]) -> Any:
        for name in names:
            value = span.attributes.get(name)
            if value is not None:
                used.add(name)
                return value
        return None

    name, call_id = take(NAME), identifier(take(CALL_ID))
    arguments, output = _given(take(ARGUMENTS)), take(RESULT)
    given, gave = "gen_ai.input.messages", "gen_ai.output.messages"
    if arguments is None:
        arguments = _told_in_messages(span, "gen_ai.tool.message", given)
    if output is None:
        output = _told_in_messages(span, "gen_ai.choice", gave)
    used.update((given, gave))
    if isinstance(output, str) and output[:1] == '"' and output == span.attributes.get("traceloop.entity.output"):
        output = _unquoted(output)
    wrapped = opened(output)
    if isinstance(wrapped, dict):
        output, own = _unwrapped(wrapped, output)
        call_id = call_id or own
    said = next((span.attributes[key] for key in ERROR if isinstance(span.attributes.get(key), str)), None)
    error = (span.error or said or "error") if span.failed or span.error or said else None
    left = {
        key: value
        for key, value in span.attributes.items()
        if key not in used and key not in _HIDDEN and value != error
    }
    if not isinstance(name, str) or not name:
        name = next((span.name.removeprefix(prefix) for prefix in _PREFIXES if span.name.startswith(prefix)), span.name)
    return ToolSpan(span, name or "tool", call_id, arguments, output, error, left)


def _given(arguments: Any) -> Any:
    """What a tool was called with, without what a framework puts around it; Python's text of an object as one."""
    value = literal(opened(arguments))
    if not isinstance(value, dict):
        return arguments
    if isinstance(value.get("kwargs"), dict) and not value.get("args") and value.keys() <= {"args", "kwargs"}:
        return value["kwargs"]
    if "input_str" in value and (isinstance(value.get("inputs"), dict) or isinstance(value["input_str"], str)):
        return value["inputs"] if isinstance(value.get("inputs"), dict) else literal(opened(value["input_str"]))
    return arguments if isinstance(opened(arguments), dict) else value


def _unquoted(text: str) -> str:
    """The text in JSON text of a text: Traceloop's results are always JSON."""
    try:
        value = decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return text
    return value if isinstance(value, str) else text


def _told_in_messages(span: Span, event: str, attribute: str) -> Any:
    """Arguments or result where a framework tells of them as it tells of messages: in an event, or as parts."""
    for log in span.events:
        if log.name == event:
            value = opened(log.body.get("content", log.body.get("message")))
            blocks = value if isinstance(value, list) else []
            said = [block.get("text") if isinstance(block, dict) else None for block in blocks]
            texts = [text for text in said if isinstance(text, str)]
            return "\n".join(texts) if texts and len(texts) == len(said) else value
    value = span.attributes.get(attribute)
    for message in messages(value) if value is not None else ():
        if message.calls:
            return message.calls[0].arguments
        if message.role == "tool":
            return message.content
    return None


def _unwrapped(value: dict[str, Any], as_logged: Any) -> tuple[Any, str | None]:
    """The content and the call's id of a result that LangChain has as a message of its own."""
    inner = value
    for key in ("output", "kwargs"):
        held = inner.get(key)
        inner = held if isinstance(held, dict) else inner
    if inner.get("type") == "tool" or ("tool_call_id" in inner and "content" in inner):
        return inner.get("content"), identifier(inner.get("tool_call_id"))
    return as_logged, None


class _Open(msgspec.Struct, eq=False):
    """A call in a transcript that no span has answered yet."""

    draft: Draft
    piece: Piece
    call: ToolCall


class ToolMatcher:
    """Finds for each tool span the call that it ran, over all transcripts of a family."""

    def __init__(self, drafts: Iterable[Draft]) -> None:
        self._by_id: dict[tuple[str, str], list[_Open]] = {}
        self._by_name: dict[tuple[str, str], list[_Open]] = {}
        for draft in drafts:
            for piece in draft.pieces:
                for call in piece.message.calls or () if not piece.message.inherited else ():
                    waiting = _Open(draft, piece, call)
                    trace = piece.call.span.trace
                    if call.id:
                        self._by_id.setdefault((trace, call.id), []).append(waiting)
                        self._by_id.setdefault(("", call.id), []).append(waiting)
                    self._by_name.setdefault((trace, call.name), []).append(waiting)
        self._taken: set[int] = set()

    def match(self, tool: ToolSpan) -> tuple[Draft, Piece, ToolCall] | None:
        """The call, which is then no longer free; None where no transcript has it."""
        trace = tool.span.trace
        found: list[_Open] = []
        if tool.call_id is not None:
            found = self._free(self._by_id.get((trace, tool.call_id)))
            found = found or self._free(self._by_id.get(("", tool.call_id)))
        found = found or self._named(tool)
        if not found:
            return None
        self._taken.add(id(found[0].call))
        return found[0].draft, found[0].piece, found[0].call

    def _named(self, tool: ToolSpan) -> list[_Open]:
        """Free calls of its name: with equal arguments, else any; where both ids are known, only the former."""
        name = tool.name
        if name.startswith(HANDOFF):  # the model asked for it by a tool of this name
            name = "transfer_to_" + name.removeprefix(HANDOFF).strip().lower().replace(" ", "_")
        free = self._free(self._by_name.get((tool.span.trace, name)))
        wanted = canonical(tool.arguments) if tool.arguments is not None else None
        equal = [each for each in free if wanted is not None and canonical(each.call.arguments) == wanted]
        return equal or [each for each in free if tool.call_id is None or each.call.id is None]

    def _free(self, waiting: list[_Open] | None) -> list[_Open]:
        return [each for each in waiting or () if id(each.call) not in self._taken]


def answer(tool: ToolSpan, draft: Draft, piece: Piece, call: ToolCall) -> None:
    """Tell of the span at its call, and at the result where the transcript has one; else put the result in."""
    draft.spans.append(tool.span)
    call.at = tool.span.start_raw if call.at is None else call.at
    call.duration_ms = tool.span.milliseconds()
    if tool.arguments is not None:
        if call.arguments in (None, "", {}):
            call.arguments = opened(tool.arguments)
        elif canonical(call.arguments) != canonical(tool.arguments):
            tool.left["arguments"] = opened(tool.arguments)
    place = draft.pieces.index(piece) + 1
    told = _told_result(draft, place, call)
    if told is None:
        while place < len(draft.pieces) and draft.pieces[place].message.role == "tool":
            place += 1
        if sum(made.id is None for made in piece.message.calls or ()) > 1:
            call.id = call.id or tool.call_id or tool.span.id  # results come in the order of their ends
        message = result_message(tool, call.id, draft.provenance)
        draft.pieces.insert(place, Piece(message, piece.call, piece.end, piece.end))
        return
    _add_to(told, tool, draft.provenance)


def _told_result(draft: Draft, place: int, call: ToolCall) -> Message | None:
    """The tool message that answers the call, where the transcript has it before the model speaks again."""
    nameless: Message | None = None
    for piece in draft.pieces[place:]:
        message = piece.message
        if message.role == "assistant" and message.calls and any(made.id == call.id for made in message.calls):
            break
        if message.role == "tool":
            if call.id is not None and message.call_id == call.id:
                return message
            if (
                nameless is None
                and message.call_id is None
                and message.name in (None, call.name)
                and message.duration_ms is None
            ):
                nameless = message
    return nameless


def _add_to(message: Message, tool: ToolSpan, provenance: Provenance) -> None:
    """What the span knows beyond the result that the transcript has."""
    message.duration_ms = tool.span.milliseconds()
    message.at = tool.span.end_raw if tool.span.end_raw is not None else message.at
    message.name = message.name or tool.name
    if tool.span.failed and message.failed is None:
        message.failed = True
    text, parts = given_back(opened(tool.result))
    extra = dict(message.extra or {})
    if text and not message.content and not message.parts:
        message.content, message.parts = text, parts
        extra.pop(UNCAPTURED, None)
    elif text and text.strip() not in message.content and canonical(text) != canonical(message.content):
        extra["result"] = opened(tool.result)
    if tool.error is not None and tool.error not in message.content:
        extra["error"] = tool.error
    message.extra = {**extra, **provenance.about(tool.span, tool.left)}


def result_message(tool: ToolSpan, call_id: str | None, provenance: Provenance) -> Message:
    """The tool message that a span tells."""
    text, parts = given_back(opened(tool.result))
    extra = provenance.about(tool.span, tool.left)
    if not text and tool.error is not None:
        text = tool.error
    elif tool.error is not None and tool.error not in text:
        extra["error"] = tool.error
    if tool.result is None and tool.error is None:
        extra[UNCAPTURED] = True
    return Message(
        "tool",
        text,
        call_id=call_id,
        name=tool.name,
        at=tool.span.end_raw if tool.span.end_raw is not None else tool.span.start_raw,
        parts=parts,
        failed=True if tool.span.failed else None,
        duration_ms=tool.span.milliseconds(),
        extra=extra or None,
    )


def unasked(tool: ToolSpan, draft: Draft) -> None:
    """Tell of a span that no call asked for, in its place in time.

    Where the words of the model before it were not captured, the call is part of them; else it stands by itself.
    """
    draft.spans.append(tool.span)
    call_id = tool.call_id or tool.span.id
    call = ToolCall(tool.name, opened(tool.arguments), call_id, at=tool.span.start_raw)
    place = _place(draft, tool.span)
    before = next((index for index in range(place - 1, -1, -1) if draft.pieces[index].message.role != "tool"), None)
    speaker = draft.pieces[before] if before is not None else None
    if speaker is not None and speaker.message.role == "assistant" and _silent(speaker.message):
        speaker.message.calls = [*(speaker.message.calls or ()), call]
        piece = speaker
    else:
        extra = {"span_id": tool.span.id, UNCAPTURED: True}
        around = draft.pieces[place - 1] if place else None
        piece = Piece(
            Message("assistant", calls=[call], at=tool.span.start_raw, extra=extra),
            around.call if around is not None else draft.thread.calls[0],
            begun=tool.span.start,
        )
        draft.pieces.insert(place, piece)
        place += 1
    draft.pieces.insert(place, Piece(result_message(tool, call_id, draft.provenance), piece.call, piece.end, piece.end))


def _silent(message: Message) -> bool:
    return not message.content and bool(message.extra and message.extra.get(UNCAPTURED))


def _is_asked(message: Message) -> bool:
    return message.inherited or message.role in ("system", "developer", "user")


def _place(draft: Draft, span: Span) -> int:
    """The place after everything that was said before the span began, and after what was asked at first."""
    if span.start is None:
        return len(draft.pieces)
    place = 0
    while place < len(draft.pieces) and _is_asked(draft.pieces[place].message):
        place += 1
    for index, piece in enumerate(draft.pieces):
        said = piece.call.span.end if piece.message.role == "assistant" else piece.call.span.start
        said = said if piece.begun is None else piece.begun
        if said is None or said <= span.start:
            place = max(place, index + 1)
    while place < len(draft.pieces) and draft.pieces[place].message.role == "tool":
        place += 1
    return place
