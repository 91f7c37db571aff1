"""A family of spans into conversations: which spans speak, their threads, their tools, and what each row says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_dialects import Readings, turn_of
from etl.adapters._otlp_drafts import Draft
from etl.adapters._otlp_facts import counts, summed, unmodelled
from etl.adapters._otlp_family import Family
from etl.adapters._otlp_judged import judge
from etl.adapters._otlp_messages import UNCAPTURED
from etl.adapters._otlp_provenance import Provenance
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_speakers import speakers
from etl.adapters._otlp_threads import Call, Thread, threads
from etl.adapters._otlp_together import tell_together
from etl.adapters._otlp_tools import HANDOFF, ToolMatcher, ToolSpan, answer, read_tool, result_message, unasked
from etl.adapters._otlp_turn import Memory, Turn
from etl.adapters._otlp_values import put
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent, ToolCall


def conversations(
    events: Sequence[StoredEvent],
    read: Callable[[Span, Memory], Turn] = turn_of,
    strung: Callable[[list[Thread]], list[Thread]] = list,
) -> tuple[list[Conversation], set[int]]:
    """The rows of a family, and the `id()` of every record that is in one.

    `read` tells what a span says; `strung` joins threads of several conversations, owners before their heirs.
    """
    family = Family(events)
    readings = Readings(read)
    calls = list(speakers(family, readings))
    tell_together(calls)
    by_scope: dict[str, list[Call]] = {}
    for call in calls:
        by_scope.setdefault(call.span.scope, []).append(call)
    drafts: list[Draft] = []
    of_thread: dict[int, Draft] = {}
    for thread in strung([thread for _, own in sorted(by_scope.items()) for thread in threads(own)]):
        owner = of_thread.get(id(thread.parent)) if thread.parent is not None else None
        drafts.append(Draft(thread, family, owner))
        of_thread[id(thread)] = drafts[-1]
    loners = _tools(family, drafts)
    for draft in drafts:
        draft.inherit()
    _retrieved(family, drafts)
    rows = _Rows(family, drafts, readings)
    told = [rows.conversation(draft) for draft in drafts] + [_tool_row(tools, family) for tools in loners]
    judge(told, family)
    made = [row for row, _ in told]
    timed = sorted(events, key=lambda event: 1 << 62 if event.at is None else event.at)
    order = {id(event.record): number for number, event in enumerate(timed)}
    for row in made:
        row.records = sorted(row.records, key=lambda record: order[id(record)])
    return made, {id(record) for row in made for record in row.records}


def _tools(family: Family, drafts: Sequence[Draft]) -> list[list[ToolSpan]]:
    """Put every tool span where it belongs; what is left, by conversation, has no model beside it."""
    matcher = ToolMatcher(drafts)
    unmatched: list[ToolSpan] = []
    for span in family.in_order():
        if span.kind == "tool":
            tool = read_tool(span)
            found = matcher.match(tool)
            if found is not None:
                answer(tool, *found)
            else:
                unmatched.append(tool)
    beside = _Beside(family, drafts)
    loners: dict[str, list[ToolSpan]] = {}
    for tool in unmatched:
        draft = beside.of(tool.span)
        if draft is not None and tool.name.startswith(HANDOFF):
            draft.spans.append(tool.span)
        elif draft is not None:
            unasked(tool, draft)
        elif not tool.name.startswith(HANDOFF):
            loners.setdefault(tool.span.scope, []).append(tool)
    return [loners[scope] for scope in sorted(loners)]


class _Beside:
    """Finds the transcript of the agent that ran a tool: of the call nearest in the tree, else the trace's first."""

    def __init__(self, family: Family, drafts: Sequence[Draft]) -> None:
        self._family = family
        spoken = [(call.span, draft) for draft in reversed(drafts) for call in draft.thread.calls]
        self._by_span = {(speaker.trace, speaker.id): draft for speaker, draft in spoken}
        self._by_parent = {(speaker.trace, speaker.parent): draft for speaker, draft in spoken}
        self._by_trace = {speaker.trace: draft for speaker, draft in spoken}

    def of(self, span: Span) -> Draft | None:
        """The transcript; None where no model spoke in the trace."""
        for above in (span, *self._family.ancestors(span)):
            found = self._by_span.get((above.trace, above.id))
            if found is None and above.parent is not None:
                found = self._by_parent.get((above.trace, above.parent))
            if found is not None:
                return found
        return self._by_trace.get(span.trace)


def _retrieved(family: Family, drafts: Sequence[Draft]) -> None:
    """What was looked up for a model is told on its next answer: nobody asked for it by a call."""
    beside: _Beside | None = None
    for span in family.in_order():
        if span.kind == "retrieval":
            beside = beside or _Beside(family, drafts)
            draft = beside.of(span)
            if draft is not None:
                draft.look_up(span)


def _tool_row(tools: Sequence[ToolSpan], family: Family) -> tuple[Conversation, list[Span]]:
    """Tools that ran where no model was seen: a row that says what they did, and that nobody captured who asked."""
    spoken: list[Message] = []
    provenance = Provenance(family)
    for tool in tools:
        call = ToolCall(tool.name, tool.arguments, tool.call_id or tool.span.id, at=tool.span.start_raw)
        spoken.append(Message("assistant", calls=[call], at=tool.span.start_raw, extra={UNCAPTURED: True}))
        spoken.append(result_message(tool, call.id, provenance))
    spans = [tool.span for tool in tools]
    row = Conversation(
        spoken, _records(spans), native_id=spans[0].scope, flags={UNCAPTURED, "incomplete"}, status="unknown"
    )
    _say_when(row, spans)
    _say_parents(row, spans, family)
    return row, spans


class _Rows:
    """Drafts into conversations."""

    def __init__(self, family: Family, drafts: Sequence[Draft], readings: Readings) -> None:
        self._family = family
        self._readings = readings
        self._drafts = drafts
        self._of_thread = {id(draft.thread): draft for draft in drafts}
        self._of_span = {(span.trace, span.id): draft for draft in reversed(drafts) for span in draft.spans}
        self._agents: dict[int, list[Span]] = {}
        for span in family.in_order():
            if span.kind in ("agent", "model") and (span.trace, span.id) not in self._of_span:
                owner = self._owner_of(span)
                if owner is not None:
                    self._agents.setdefault(id(owner), []).append(span)

    def _owner_of(self, agent: Span) -> Draft | None:
        """The row that tells of an agent's span: that of its first model call."""
        below = sorted(self._family.below(agent), key=Span.at)
        return next(
            (self._of_span[span.trace, span.id] for span in below if (span.trace, span.id) in self._of_span), None
        )

    def conversation(self, draft: Draft) -> tuple[Conversation, list[Span]]:
        """The row of one thread, and its spans."""
        thread = draft.thread
        agents = self._agents.get(id(draft), [])
        spans = [*draft.spans, *agents]
        calls = thread.calls
        last = calls[-1]
        row = Conversation(
            [piece.message for piece in draft.pieces],
            _records(spans),
            native_id=thread.scope,
            branch=thread.branch,
            parent=self._parent(draft),
            group=thread.group,
            sample_index=thread.sample_index,
            model=next((call.facts.model for call in reversed(calls) if call.facts.model), None),
            provider=next((call.facts.provider for call in reversed(calls) if call.facts.provider), None),
            usage=summed(draft.counted),
            tools=self._tools(calls, agents),
            flags=set(draft.flags),
        )
        assert row.flags is not None
        if draft.counted and draft.uncounted:
            row.flags.add("usage_partial")
        if thread.abandoned:
            row.flags.add("abandoned")
        if any(message.extra and message.extra.get(UNCAPTURED) for message in row.messages):
            row.flags.add(UNCAPTURED)
        self._say_end(row, last)
        self._say_who(row, calls, agents)
        _say_when(row, spans)
        _say_parents(row, spans, self._family)
        text = "\n".join(message.content for message in row.messages) if agents else ""
        told = [self._about(span, row, draft, text) for span in agents]
        if told:
            row.extra = {**(row.extra or {}), "agent_spans": told}
        return row, spans

    def _about(self, agent: Span, row: Conversation, draft: Draft, text: str) -> dict[str, Any]:
        """An agent's span; the tools it offered are the row's, and so is what it says again of the row's text."""
        left = unmodelled(agent, self._readings.turn(agent), self._readings.facts(agent))
        if row.tools is not None:
            left.pop("gen_ai.tool.definitions", None)
        if not _is_told(self._readings.turn(agent), text):
            left = {key: value for key, value in left.items() if key not in self._readings.turn(agent).rest}
            hidden = ("input.mime_type", "output.mime_type")
            used = sorted(self._readings.turn(agent).used.difference(hidden))
            left.update({name: agent.attributes[name] for name in used if name in agent.attributes})
        facts, told = self._readings.facts(agent), draft.provenance.about(agent, left)
        put(told, provider=facts.provider, model=facts.model, error=facts.error, usage=counts(facts.usage))
        return told

    def _say_end(self, row: Conversation, last: Call) -> None:
        """How it ended: an error of the last call, or the reason of the last answer."""
        assert row.flags is not None
        spoken = next((message for message in reversed(row.messages) if message.role == "assistant"), None)
        row.finish_reason = spoken.finish_reason if spoken is not None else None
        if row.finish_reason is None and last.facts.finish_reasons:
            row.finish_reason = last.facts.finish_reasons[-1]
        if last.facts.error is not None:
            row.status, row.error = "error", last.facts.error
        elif _is_running(last) or (row.status is None and _is_unanswered(last)):
            row.status = "unknown"
            row.flags.add("incomplete")
        elif row.messages and (row.messages[-1].role == "tool" or row.messages[-1].calls):
            row.flags.add("incomplete")

    def _say_who(self, row: Conversation, calls: Sequence[Call], agents: Sequence[Span]) -> None:
        """The agent by its own name, else by that of the service."""
        named = [call.facts.agent for call in calls if call.facts.agent] or [
            call.agent[1] for call in calls if call.agent[1]
        ]
        named += [found for span in agents if (found := self._readings.facts(span).agent)]
        resource = next((call.span.resource for call in calls if call.span.resource), {})
        service = resource.get("service.name")
        row.agent = next(iter(named), service if isinstance(service, str) else None)
        version = resource.get("service.version")
        row.policy_version = version if isinstance(version, str) else None

    def _tools(self, calls: Sequence[Call], agents: Sequence[Span]) -> Any:
        """Every tool that was offered, in order; those of the agent where its models' are not logged."""
        offered: list[Any] = []
        listed = [call.turn.tools for call in calls] or []
        if not any(listed):
            listed = [
                self._readings.turn(span).tools or span.attributes.get("gen_ai.tool.definitions") for span in agents
            ]
        seen: set[bytes] = set()
        for tools in listed:
            if isinstance(tools, str):
                return tools
            for tool in tools if isinstance(tools, list) else [tools] if tools else []:
                name = msgspec.json.encode(tool, order="deterministic")
                if name not in seen:
                    seen.add(name)
                    offered.append(tool)
        return offered or None

    def _parent(self, draft: Draft) -> Identity | None:
        """The row it branched off; else the row whose tool call, or whose agent, its first span lies below."""
        thread = draft.thread
        if thread.parent is not None:
            return _identity(thread.parent)
        first = thread.calls[0].span
        for above in self._family.ancestors(first):
            owner = self._of_span.get((above.trace, above.id))
            if owner is None and above.id != first.parent:
                children = (self._of_span.get((child.trace, child.id)) for child in self._family.children(above))
                owner = next((found for found in children if found is not None), None)
            if owner is not None and owner is not draft and _before(owner, draft):
                return _identity(owner.thread)
        return None


def _is_unanswered(last: Call) -> bool:
    """Whether nothing says that a response came: no content, no id, no reason why it ended, no tokens."""
    facts = last.facts
    wrote = facts.usage is not None and facts.usage.output_tokens
    return last.is_open() and not (last.answer() or facts.response_id or facts.finish_reasons or wrote)


def _is_running(call: Call) -> bool:
    """Whether a call was logged as it began, and its end never."""
    return call.span.start is not None and call.span.end is None and not call.turn.answers


def _is_told(turn: Turn, text: str) -> bool:
    """Whether everything that an agent was asked and said stands in the text of its row."""
    if turn.said() and not turn.shaped:
        return False
    words = [message.content.strip() for message in (*turn.inputs, *(each for said in turn.answers for each in said))]
    return all(word in text for word in words)


def _before(owner: Draft, draft: Draft) -> bool:
    """A parent begins no later than its child: two rows are never each other's parents."""
    one, other = owner.thread.calls[0].span, draft.thread.calls[0].span
    return one.at() < other.at()


def _identity(thread: Thread) -> Identity:
    return Identity(thread.scope, branch=thread.branch)


def _records(spans: Sequence[Span]) -> list[Record]:
    """Every record behind these spans, each once."""
    return list({id(record): record for span in spans for record in span.records}.values())


def _say_when(row: Conversation, spans: Sequence[Span]) -> None:
    started = min((span for span in spans if span.start is not None), key=lambda span: span.start or 0, default=None)
    ended = max((span for span in spans if span.end is not None), key=lambda span: span.end or 0, default=None)
    row.started_at = started.start_raw if started is not None else None
    row.ended_at = ended.end_raw if ended is not None else row.started_at


def _say_parents(row: Conversation, spans: Sequence[Span], family: Family) -> None:
    """Parents that never arrived are named, also where it is an ancestor that lacks its parent."""
    tops = [[span, *family.ancestors(span)][-1] for span in spans]
    missing = sorted({top.parent for top in tops if top.parent is not None and family.parent(top) is None})
    if missing:
        assert row.flags is not None
        row.flags.add("ambiguous_parent")
        row.extra = {**(row.extra or {}), "missing_parents": missing}
