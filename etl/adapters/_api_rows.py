"""Trees of calls into conversations: a row a thread, from the root to an end; what threads share one of them owns.

At every fork the thread that most was said in goes on, the others become rows of their own, with the shared prefix
inherited. A row is named by the call that its first own message is of. What the model said is taken from its responses,
not from the histories that repeat them, since only these have reasoning, ids and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._api_form import PIECE, SYSTEM_ROLES, Body, kept, text, unpacked
from etl.adapters._api_nodes import ANSWER, NOTHING, SENT, Forest, Node, call_ids
from etl.adapters._api_stored import Call
from etl.adapters._api_threads import forest
from etl.conversation import Conversation, Identity, Message, StoredEvent, Tokens

_REFUSED = frozenset({
    "content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "MODEL_ARMOR", "ERROR_TOXIC",
    "guardrail_intervened", "content_filtered", "refusal", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "LANGUAGE",
})  # fmt: skip
"""Reasons of a provider for giving no, or half an, answer."""
_CUT = frozenset({
    "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded", "LENGTH", "ERROR_LIMIT",
})  # fmt: skip
_FAILED = frozenset({
    "failed", "error", "ERROR", "TIMEOUT", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    "malformed_model_output", "malformed_tool_use",
})  # fmt: skip


def conversations(family: Sequence[StoredEvent]) -> Iterator[Conversation]:
    """The rows of one family of calls."""
    made = forest(family)
    begin: list[tuple[Node, Identity | None]] = [(node, None) for node in made.nodes if node.parent is None]
    while begin:
        start, parent = begin.pop()
        nodes = [start]
        while nodes[-1].children:
            nodes.append(nodes[-1].children[0])
        thread = _Thread(made, nodes, parent)
        yield thread.row()
        begin += [(child, thread.identity) for node in nodes for child in node.children[1:]]


class _Thread:
    """One row: its own nodes, and those before them that other rows own."""

    def __init__(self, made: Forest, nodes: list[Node], parent: Identity | None) -> None:
        self._made = made
        self._nodes = nodes
        self._own = {id(node) for node in nodes}
        self._parent = parent
        self._told_texts: set[str] = set()
        self._before: list[Node] = []
        node = nodes[0].parent
        while node is not None:
            self._before.append(node)
            node = node.parent
        self._before.reverse()
        start = nodes[0]
        name = start.call.call if start.number == 0 else f"{start.call.call}#{start.number}"
        self.identity = Identity(start.call.key, branch=name)
        self._calls = [node.call for node in nodes if node.kind != SENT] or [nodes[-1].call]

    def row(self) -> Conversation:
        """The conversation of this thread."""
        told = _Told(self._calls)
        messages: list[Message] = []
        texts: list[str] = []
        for node in (*self._before, *self._nodes):
            own = None
            if node.kind == ANSWER and id(node) in self._own:
                own, texts = {**told.own(node.call), **({"system_texts": texts} if texts else {})}, []
            found = self._sent(node, messages, texts) if node.kind == SENT else self._said(node, own)
            if node.kind == NOTHING and messages and (facts := told.facts(node.call)):
                kept(messages[-1], unanswered=[*(messages[-1].extra or {}).get("unanswered", ()), facts])
            for message in found:
                left = node.repeated and message.role == "assistant"
                message.inherited = left or (own is None and id(node) not in self._own)
            messages += found
        messages = _paired(joined_pieces(messages))
        last = self._calls[-1]
        timed = sorted(
            (call for call in (self._nodes[0].call, *self._calls) if call.moment is not None), key=Call.order
        )
        first, latest = (timed[0], timed[-1]) if timed else (self._nodes[0].call, last)
        counted = [node.call for node in self._nodes if node.kind != SENT and node.choice == 0]
        row = Conversation(
            messages,
            list({id(record): record for call in self._calls for record in call.records()}.values()),
            native_id=self.identity.key,
            branch=self.identity.branch,
            parent=self._parent,
            tools=next((call.tools for call in reversed(self._calls) if call.tools), None),
            model=next((call.model for call in reversed(self._calls) if call.answers), last.model),
            provider=last.provider,
            usage=_usage(counted),
            started_at=first.at if first.at is not None else first.created,
            ended_at=next((at for at in (latest.ended_at, latest.at, latest.created) if at is not None), None),
            task_from_prompt=True,
        )
        self._group(row)
        _end(row, last, next((node for node in reversed(self._nodes) if node.kind != SENT), self._nodes[-1]))
        row.extra = told.extra(texts, row.tools, bool(messages)) or None
        row.flags = self._flags()
        return row

    def _sent(self, node: Node, before: list[Message], texts: list[str]) -> list[Message]:
        """What a call sent on its way to a state; `texts` takes system texts that are new, for the answer to tell."""
        path, messages = node.call.path, self._made.messages
        sent = [unpacked(messages[name]) for name in path[node.start : node.end] if name in messages]
        if sent and node.end == len(path) and sent[-1].at is None:
            sent[-1].at = node.call.at
        if node.parent is not None and node.parent.kind == ANSWER:
            self._rename(node, sent)
        if node.number or node.parent is None:
            return sent
        known = {message.content for message in before if message.role in SYSTEM_ROLES} | self._told_texts
        earlier = (
            sent if not node.start else [unpacked(messages[name]) for name in path[: node.start] if name in messages]
        )
        changed = [each.content for each in earlier if each.role in SYSTEM_ROLES and each.content not in known]
        texts += [content for content in changed if content not in texts]
        self._told_texts.update(texts)
        return sent if node.start else [message for message in sent if message.role not in SYSTEM_ROLES]

    def _rename(self, node: Node, sent: list[Message]) -> None:
        """Results name their calls as the client does; where the answer has other ids, they get these."""
        assert node.parent is not None
        answered = [i for form in node.parent.call.answers[node.parent.choice]["messages"] for i in call_ids(form)]
        repeated: list[str] = []
        for name in reversed(node.call.path[: node.start]):
            form = self._made.messages.get(name, {})
            if form.get("role") == "user" or len(repeated) >= len(answered):
                break
            repeated[:0] = call_ids(form)
        if len(repeated) != len(answered):
            return
        renamed = {old: new for old, new in zip(repeated, answered, strict=True) if old != new}
        for message in sent:
            if message.role == "tool" and message.call_id in renamed:
                message.extra = {**(message.extra or {}), "logged_tool_call_id": message.call_id}
                message.call_id = renamed[message.call_id]

    def _said(self, node: Node, own: Body | None) -> list[Message]:
        """The answer of a call, with what is known of it."""
        if node.kind == NOTHING:
            return []
        call, answer = node.call, node.call.answers[node.choice]
        messages = joined_pieces([unpacked(form) for form in answer.get("messages", ())])
        spoken = [message for message in messages if message.role == "assistant"]
        if not spoken:
            return messages
        last = spoken[-1]
        last.id, last.finish_reason, last.model = (
            last.id or call.response_id or call.named(),
            text(answer.get("finish")),
            call.model,
        )
        last.at = next((at for at in (last.at, call.ended_at, call.created) if at is not None), None)
        if call.usage and node.choice == 0:
            last.input_tokens, last.output_tokens = call.usage.get("input_tokens"), call.usage.get("output_tokens")
        if own is not None:
            more = {**own, **({"choice": answer["rest"]} if answer.get("rest") else {})}
            if call.response_id not in (None, last.id):
                more["response_id"] = call.response_id
            if node.instead is not None:
                more["instead_of"] = node.instead
            last.extra = {**(last.extra or {}), **more} or None
        return messages

    def _group(self, row: Conversation) -> None:
        """Answers to one and the same request are a group: choices of one call, or the request sent again."""
        for node in self._nodes:
            if node.kind == ANSWER and node.parent is not None:
                answers = [other for other in node.parent.children if other.kind == ANSWER]
                if len(answers) > 1:
                    answers.sort(key=lambda other: (other.call.order(), other.choice))
                    row.group = f"{answers[0].call.key} {answers[0].call.call}"
                    row.sample_index = answers.index(node)
                    return

    def _flags(self) -> set[str]:
        flags = {flag for call in self._calls for flag in call.flags}.union(*(node.flags for node in self._nodes))
        if any(not call.captured for call in self._calls):
            flags.add("content_not_captured")
        if any(node.call.unsure for node in self._nodes if node.number == 0):
            flags.add("ambiguous_parent")
        answered = [call for call in self._calls if call.answers]
        if any(call.usage for call in answered) and not all(call.usage for call in answered):
            flags.add("usage_partial")
        if self._left():
            flags.add("abandoned")
        if any(self._made.speaks(node) and not node.repeated for node in self._nodes if node.kind == SENT):
            flags.add("unlogged_turns")
        return flags

    def _left(self) -> bool:
        """Whether calls went on elsewhere, from a place on this thread, after this thread's last one."""
        last = self._calls[-1].moment
        path = [*self._before[-1:], *self._nodes]
        moments = [child.latest for node in path for child in node.children if id(child) not in self._own]
        return last is not None and any(moment is not None and moment > last for moment in moments)


_PARTS = ("request", "response", "log")


class _Told:
    """Settings, response fields and envelopes of a row's calls: each answer has what is new since the one before."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._own: dict[int, Body] = {}
        last: dict[str, Body] = {part: {} for part in _PARTS}
        model: str | None = None
        for call in calls:
            if not call.answers:
                continue
            found: Body = {}
            for part in _PARTS:
                now = getattr(call, part)
                if changed := _changed(last[part], now):
                    found[part] = changed
                last[part] = now
            if call.asked_model not in (None, call.model, model):
                found["asked_model"] = model = call.asked_model
            if call.previous:
                found["previous_response_id"] = call.previous
            self._own[id(call)] = found

    def own(self, call: Call) -> Body:
        """What is new with this call; a key that it no longer has is null."""
        return self._own.get(id(call), {})

    def facts(self, call: Call) -> Body:
        """All that a call without an answer says; it lies with the last message that was sent."""
        found = {part: getattr(call, part) for part in _PARTS}
        found |= {"call": call.named(), "asked_model": call.asked_model, "previous_response_id": call.previous}
        return {key: value for key, value in found.items() if value}

    def extra(self, texts: list[str], tools: Any, asked: bool) -> Body:
        """What calls say of which no message is known; system texts and tools that changed on the way."""
        found: Body = {}
        silent = [told for call in self._calls if not call.answers and (told := self.facts(call))]
        if silent and not asked:
            found["unanswered"] = silent
        errors = [{"call": call.call, "error": call.error} for call in self._calls[:-1] if call.error]
        if errors:
            found["errors"] = errors
        if texts:
            found["changed_system_texts"] = texts
        others: list[Any] = []
        for call in self._calls:
            if call.tools and call.tools != tools and call.tools not in others:
                others.append(call.tools)
        if others and (tools or len(others) > 1):
            found["other_tools"] = others
        return found


def _changed(before: Body, now: Body) -> Body:
    gone = {key: None for key in before if key not in now}
    return gone | {key: value for key, value in now.items() if key not in before or before[key] != value}


def joined_pieces(messages: list[Message]) -> list[Message]:
    """Pieces of one turn of the assistant (reasoning, text, calls) as one message."""
    made: list[Message] = []
    for message in messages:
        if not (message.extra and message.extra.pop(PIECE, None)):
            made.append(message)
            continue
        message.extra = message.extra or None
        last = made[-1] if made and made[-1].role == "assistant" and made[-1].name == PIECE else None
        if (
            last is not None
            and not (message.content and (last.content or last.calls))
            and not (message.reasoning and last.calls)
        ):
            _absorb(last, message)
        else:
            message.name = PIECE
            made.append(message)
    for message in made:
        if message.name == PIECE:
            message.name = None
    return made


def _absorb(last: Message, message: Message) -> None:
    last.content = last.content or message.content
    if message.reasoning:
        last.reasoning = f"{last.reasoning}\n{message.reasoning}" if last.reasoning else message.reasoning
    last.calls = [*(last.calls or ()), *(message.calls or ())] or None
    last.parts = [*(last.parts or ()), *(message.parts or ())] or None
    last.id = last.id or message.id
    if message.extra:
        extra = dict(last.extra or {})
        for key, value in message.extra.items():
            if key == "call":
                extra["calls"] = [*extra.get("calls", ()), value]
            else:
                extra[key if key not in extra else f"{key}_{len(extra)}"] = value
        last.extra = extra


def _paired(messages: list[Message]) -> list[Message]:
    """Result ids that no call has (clients invent them where an API has none) go to `extra`: names pair then."""
    ids = {call.id for message in messages for call in message.calls or ()}
    nameless = any(call.id is None for message in messages for call in message.calls or ())
    for message in messages:
        if nameless and message.role == "tool" and message.call_id and message.call_id not in ids:
            message.extra = {**(message.extra or {}), "tool_call_id": message.call_id}
            message.call_id = None
    return messages


def _usage(calls: Sequence[Call]) -> Tokens | None:
    """The sum over the calls, each counted once."""
    found = Tokens()
    for call in calls:
        for name, value in (call.usage or {}).items():
            if type(value) in (int, float) and name in found.__struct_fields__:
                setattr(found, name, (getattr(found, name) or 0) + value)
    return found if found != Tokens() else None


def _end(row: Conversation, last: Call, node: Node) -> None:
    """How the last call ended: an error, a filter, a cut, or well."""
    row.finish_reason = text(last.answers[node.choice].get("finish")) if node.kind == ANSWER else None
    row.error = last.error
    if last.error is not None:
        row.status = "error"
    elif row.finish_reason in _REFUSED or row.finish_reason in _FAILED:
        row.status, row.error = "error", f"the provider ended the answer: {row.finish_reason}"
    elif row.finish_reason in _CUT:
        row.status = "truncated"
    elif not last.done and node.kind == ANSWER:
        row.status = "truncated" if "truncated_source" in last.flags else "unknown"
