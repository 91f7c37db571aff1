"""The transcript of one thread, told once: each call adds what is new in its history, and its own answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_facts import counts, unmodelled
from etl.adapters._otlp_family import Family
from etl.adapters._otlp_messages import UNCAPTURED
from etl.adapters._otlp_provenance import Provenance
from etl.adapters._otlp_span import CONVERSATION_IDS, OPERATIONS, Span
from etl.adapters._otlp_threads import Call, Thread, atoms
from etl.adapters._otlp_values import put
from etl.conversation import Message, Tokens


class Piece(msgspec.Struct, eq=False):
    """A message with its place: the call that brought it, the atoms up to it and with it."""

    message: Message
    call: Call
    start: int = 0
    end: int = 0
    begun: int | None = None
    """When the tool began that it tells of, where no answer asked for it."""


class Draft:
    """The messages of a thread, while they are put together."""

    def __init__(self, thread: Thread, family: Family, owner: Draft | None) -> None:
        self.thread = thread
        self.pieces: list[Piece] = []
        self.flags: set[str] = set()
        self.spans: list[Span] = []
        self.counted: list[Tokens] = []
        self.uncounted = 0
        """Model responses without usage."""
        self.provenance = Provenance(family)
        self._depth = 0
        self._told: dict[tuple[int, int], Message] = {}
        """Answers that make calls, by their atoms."""
        self._aliases: dict[str | None, str] = {}
        """Ids that a history gives to calls → those that the answer gave them."""
        self._owned = {(piece.start, piece.end): piece for piece in owner.pieces} if owner is not None else {}
        for number, call in enumerate(thread.calls):
            after = thread.calls[number + 1] if number + 1 < len(thread.calls) else None
            self._add(call, after, thread.calls[number - 1] if number else None)

    def _add(self, call: Call, after: Call | None, before: Call | None) -> None:
        for span in (call.span, *[copy.span for copy in call.copies]):
            if span not in self.spans:
                self.spans.append(span)
        if call.turn.cut:
            self.flags.add("truncated_source")
        again = after is not None and after.turn.inputs and len(after.path) == len(call.path) and call.is_open()
        if not (again and call.facts.usage is None):
            self._count(call)
        fresh = self._history(call)
        if before is not None and before.is_open():
            fresh = self._revealed(before, fresh)
        if [piece for piece in fresh if piece.call is call and self._is_unlogged(piece)]:
            self.flags.add("unlogged_turns")
        self._date(fresh, call)
        self.pieces += fresh
        answer = call.answer()
        if answer and not again:
            self._answer(call, answer)
        elif call.facts.error is not None or again:
            self._attempt(call)
        elif after is None or not after.turn.inputs:
            self._answer(call, [Message("assistant", extra={UNCAPTURED: True})])
        self._depth = call.depth if not call.is_open() else len(call.path) - 1

    def _count(self, call: Call) -> None:
        """Usage once a response: the first choice has it, copies do not count."""
        if (
            call.choice == 0
            and call.part == 0
            and not (call.is_open() and call.facts.error is not None and call.facts.usage is None)
        ):
            usage = call.usage()
            if usage is not None:
                self.counted.append(usage)
            else:
                self.uncounted += 1

    def _history(self, call: Call) -> list[Piece]:
        """The messages of the call's history beyond what is told already."""
        fresh: list[Piece] = []
        end = 0
        lengths = call.lengths or [len(atoms(message)) for message in call.turn.inputs]
        for message, length in zip(call.turn.inputs, lengths, strict=True):
            start, end = end, end + length
            if call is not self.thread.calls[0]:
                if end <= self._depth:
                    if message.calls:
                        self._learn_ids(message, start, end)
                    continue
                if start < self._depth:
                    message = _rest_of(message, self._depth - start)
            inherited = end <= self.thread.shared and call is self.thread.calls[0]
            # A copy: other choices of the response have the same history, and each row dates and signs its own.
            calls = [msgspec.structs.replace(made) for made in message.calls] if message.calls else None
            copy = msgspec.structs.replace(message, inherited=inherited, calls=calls)
            if copy.call_id in self._aliases:
                copy.extra = {**(copy.extra or {}), "logged_tool_call_id": copy.call_id}
                copy.call_id = self._aliases[copy.call_id]
            fresh.append(Piece(copy, call, start, end))
        return fresh

    def _is_unlogged(self, piece: Piece) -> bool:
        """Whether a turn of the assistant is known from a history only, as no call before it gave any of it."""
        message = piece.message
        return (
            message.role == "assistant" and piece.start >= self._depth and not (message.inherited or message.synthetic)
        )

    def _learn_ids(self, message: Message, start: int, end: int) -> None:
        """A framework may give calls ids that the response did not have: results come under these."""
        told = self._told.get((start, end))
        for mine, theirs in zip(told.calls or (), message.calls or (), strict=False) if told is not None else ():
            if mine.id is None:
                mine.id = theirs.id
            elif theirs.id is not None and theirs.id != mine.id:
                self._aliases[theirs.id] = mine.id

    def inherit(self) -> None:
        """Take over what the owner of the inherited turns knows of them. Owners come before their heirs."""
        for piece in self.pieces:
            owned = self._owned.get((piece.start, piece.end)) if piece.message.inherited else None
            if owned is not None and owned.message.role == piece.message.role:
                piece.message = msgspec.structs.replace(owned.message, inherited=True)

    def _revealed(self, before: Call, fresh: list[Piece]) -> list[Piece]:
        """Where the answer of a call is seen only in the history of the next, it is that call's all the same."""
        said = [piece for piece in fresh if piece.message.role == "assistant"]
        if fresh and said and fresh[0] is said[0]:
            fresh[0].call = before
            self._sign(fresh[0].message, before)
        return fresh

    def _date(self, fresh: Sequence[Piece], call: Call) -> None:
        """What came after the last answer was there when the call began."""
        for piece in reversed(fresh):
            if piece.message.role == "assistant" or piece.message.inherited:
                break
            if piece.message.at is None and piece.message.role not in ("system", "developer"):
                piece.message.at = call.span.start_raw

    def _answer(self, call: Call, answer: list[Message]) -> None:
        end = len(call.path) - 1
        lengths = call.said if len(call.said) == len(answer) else [len(atoms(message)) for message in answer]
        for message, length in zip(answer, lengths, strict=True):
            start, end = end, end + length
            self.pieces.append(Piece(message, call, start, end))
            if message.calls:
                self._told[start, end] = message
        spoken = [message for message in answer if message.role == "assistant"]
        if spoken:
            self._sign(spoken[-1], call)

    def _sign(self, message: Message, call: Call) -> None:
        """Say of the message which response it is."""
        facts, span = call.facts, call.span
        usage = call.usage()
        message.id = message.id or facts.response_id
        message.model = facts.model
        message.at = span.end_raw if span.end_raw is not None else span.start_raw
        reasons = facts.finish_reasons
        if message.finish_reason is None and reasons:
            message.finish_reason = reasons[call.choice] if call.choice < len(reasons) else reasons[-1]
        if usage is not None and call.choice == call.part == 0:
            message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
        extra = {**self.about(call), **(message.extra or {})}
        for copy in call.copies:
            extra.setdefault("also_logged_as", []).append(self._other(copy))
        message.extra = extra or None

    def _other(self, call: Call) -> dict[str, Any]:
        """A call that is no message of its own: also what a message would say in its columns."""
        made = self.about(call)
        put(made, response_id=call.facts.response_id, model=call.facts.model, error=call.facts.error)
        put(made, finish_reasons=call.facts.finish_reasons, usage=counts(call.facts.usage))
        return made

    def _attempt(self, call: Call) -> None:
        """A call that brought no answer is told of on the message that it was to answer."""
        about = self._other(call)
        if self.pieces:
            message = self.pieces[-1].message
            message.extra = {**(message.extra or {}), "attempts": [*(message.extra or {}).get("attempts", ()), about]}
        else:
            self._answer(call, [Message("assistant", extra={UNCAPTURED: True, "error": call.facts.error})])

    def look_up(self, span: Span) -> None:
        """Tell of a retrieval on the first answer after it, else on the last message."""
        ended = span.end if span.end is not None else span.start
        spoken = [piece for piece in self.pieces if piece.message.role == "assistant" and not piece.message.inherited]
        after = (piece for piece in spoken if (piece.call.span.start or 0) >= (ended or 0))
        piece = next(after, None) or next(reversed(spoken), None) or next(reversed(self.pieces), None)
        if piece is None:
            return
        self.spans.append(span)
        message = piece.message
        hidden = OPERATIONS.keys() | set(CONVERSATION_IDS)
        told = self.provenance.about(span, {key: value for key, value in span.attributes.items() if key not in hidden})
        message.extra = {**(message.extra or {}), "retrieved": [*(message.extra or {}).get("retrieved", ()), told]}

    def about(self, call: Call) -> dict[str, Any]:
        """What no column holds of a call: its span, attributes and events."""
        made = self.provenance.about(call.span, unmodelled(call.span, call.turn, call.facts))
        if call.turn.dialect:
            made["dialect"] = call.turn.dialect
        return made


def _rest_of(message: Message, told: int) -> Message:
    """The message without its first atoms: an answer whose text is told already and whose calls are not."""
    keep = told - (1 if message.content.strip() else 0)
    return msgspec.structs.replace(message, content="", calls=(message.calls or [])[max(keep, 0) :] or None)
