"""Spans of one family, read back from their normal form: copies merged, log records joined, the tree, what each is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from etl.adapters._otlp_values import put
from etl.conversation import Record, StoredEvent
from etl.decode import JsonError, decode
from etl.times import instant

Kind = Literal["model", "tool", "agent", "embedding", "other"]

CONVERSATION_IDS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "langsmith.trace.session_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
    "gcp.vertex.agent.session_id",
)
"""Attributes that name a conversation, in order of precedence."""

OPERATIONS: dict[str, dict[str, Kind]] = {
    "gen_ai.operation.name": {
        "chat": "model",
        "text_completion": "model",
        "completion": "model",
        "generate_content": "model",
        "responses": "model",
        "execute_tool": "tool",
        "invoke_agent": "agent",
        "create_agent": "agent",
        "invoke_workflow": "agent",
        "embeddings": "embedding",
        "embedding": "embedding",
    },
    "openinference.span.kind": {
        "LLM": "model",
        "TOOL": "tool",
        "AGENT": "agent",
        "CHAIN": "agent",
        "EMBEDDING": "embedding",
    },
    "ai.operationId": {
        "ai.generateText.doGenerate": "model",
        "ai.streamText.doStream": "model",
        "ai.generateObject.doGenerate": "model",
        "ai.streamObject.doStream": "model",
        "ai.generateText": "agent",
        "ai.streamText": "agent",
        "ai.generateObject": "agent",
        "ai.streamObject": "agent",
        "ai.toolCall": "tool",
        "ai.embed": "embedding",
        "ai.embed.doEmbed": "embedding",
        "ai.embedMany": "embedding",
        "ai.embedMany.doEmbed": "embedding",
    },
    "traceloop.span.kind": {"tool": "tool", "agent": "agent", "workflow": "agent", "task": "agent"},
    "llm.request.type": {"chat": "model", "completion": "model", "embedding": "embedding"},
    "langfuse.observation.type": {"generation": "model", "tool": "tool", "agent": "agent", "embedding": "embedding"},
    "langsmith.span.kind": {
        "llm": "model",
        "tool": "tool",
        "chain": "agent",
        "agent": "agent",
        "embedding": "embedding",
    },
}
"""Attribute → its values → what a span is, in order of precedence."""

SIGNS: tuple[tuple[str, Kind], ...] = (
    ("gen_ai.tool.call.id", "tool"),
    ("gen_ai.tool.name", "tool"),
    ("gen_ai.output.messages", "model"),
    ("gen_ai.request.model", "model"),
    ("gen_ai.prompt.0.role", "model"),
    ("llm.model_name", "model"),
    ("request_data", "model"),
    ("all_messages_events", "agent"),
    ("pydantic_ai.all_messages", "agent"),
    ("gen_ai.agent.name", "agent"),
)
"""Attributes that tell what a span is where no operation does, in order of precedence."""


class Log(msgspec.Struct, gc=False):
    """One log record (or span event) that belongs to a span."""

    name: str
    at: int
    body: dict[str, Any]
    """Its fields: the body, or the attributes where the body is empty."""


class Span(msgspec.Struct):
    """One span, in the terms of this adapter."""

    trace: str
    id: str
    scope: str
    """The conversation that it belongs to."""
    name: str = ""
    kind: Kind = "other"
    parent: str | None = None
    start: int | None = None
    """Nanoseconds, for order; `start_raw` is as logged."""
    end: int | None = None
    start_raw: Any = None
    end_raw: Any = None
    failed: bool = False
    error: str | None = None
    attributes: dict[str, Any] = {}
    events: list[Log] = []
    resource: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    """Everything else of the span: kind, scope, links, keys that nobody modelled."""
    records: list[Record] = []
    """What it was read from, its log records included."""
    absent: bool = False
    """True where only log records tell of it."""

    def at(self) -> tuple[int, str]:
        """Where it stands in time; spans without a time come last."""
        return (self.start if self.start is not None else 1 << 62, self.id)

    def milliseconds(self) -> float | None:
        """How long it took."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return (self.end - self.start) / 1_000_000


def kind_of(attributes: Mapping[str, Any]) -> Kind:
    """What a span is: by its operation, else by the attributes it has."""
    for name, kinds in OPERATIONS.items():
        value = attributes.get(name)
        if value is not None:
            found = kinds.get(value) if isinstance(value, str) else None
            if found is not None:
                return found
            if name in ("gen_ai.operation.name", "openinference.span.kind", "ai.operationId"):
                return "other"
    return next((kind for name, kind in SIGNS if name in attributes), "other")


def conversation_id(attributes: Mapping[str, Any]) -> str | None:
    """The id of the conversation that a span names."""
    for name in CONVERSATION_IDS:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def nanoseconds(value: Any) -> int | None:
    """A time as logged, in nanoseconds; None for none."""
    if type(value) is int and 946_684_800_000_000_000 <= value < 4_102_444_800_000_000_000:
        return value
    micros = instant(value).micros
    return None if micros is None else micros * 1_000


def opened(value: Any) -> Any:
    """JSON text of an object or array as its value, also where it was encoded twice; anything else as it is.

    >>> opened('[{"a": 1}]'), opened("plain"), opened('"[1]"'), opened('"quoted"')
    ([{'a': 1}], 'plain', [1], '"quoted"')
    """
    inner = value
    for _ in range(3):
        if not isinstance(inner, str) or inner.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            inner = decode(inner.encode("utf-8", "surrogatepass")).value
        except JsonError:
            break
    return inner if isinstance(inner, (dict, list)) else value


class Family:
    """The spans of a family by (trace, id), and how they hang together."""

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.spans: dict[tuple[str, str], Span] = {}
        self.loose: list[StoredEvent] = []
        """Log records that name no span."""
        self._copies: dict[tuple[str, str], list[tuple[dict[str, Any], StoredEvent]]] = {}
        logs: list[tuple[dict[str, Any], StoredEvent]] = []
        for event in events:
            form = event.record.value
            if not isinstance(form, dict):
                continue
            _remember(event.record, form)
            if form.get("signal") == "log":
                logs.append((form, event))
            else:
                place = (event.link or event.key, str(form.get("id") or _unnamed(form)))
                self._copies.setdefault(place, []).append((form, event))
        for place, copies in self._copies.items():
            self.spans[place] = _merged(place, copies)
        for form, event in sorted(logs, key=lambda pair: _content(pair[0])):
            self._join(form, event)
        self._name_scopes()
        self._in_order = sorted(self.spans.values(), key=Span.at)
        self._children: dict[tuple[str, str], list[Span]] = {}
        for span in self._in_order:
            if span.parent is not None:
                self._children.setdefault((span.trace, span.parent), []).append(span)

    def _join(self, form: dict[str, Any], event: StoredEvent) -> None:
        """Give a log record to its span, making one where the span itself has not arrived."""
        trace, own = event.link or event.key, form.get("id")
        if not isinstance(own, str):
            own = _unnamed(form)
        span = self.spans.get((trace, own))
        at = nanoseconds(form.get("start"))
        if span is None:
            span = Span(
                trace, own, event.key, start=at, start_raw=form.get("start"), absent=True, attributes={}, rest={}
            )
            span.resource, span.records, span.events = _object(form.get("resource")), [], []
            self.spans[trace, own] = span
        if span.absent and at is not None:
            span.start, span.start_raw = min((span.start or at, span.start_raw), (at, form.get("start")))
            span.end = max(span.end or at, at)
            span.end_raw = span.end
        body = form.get("body")
        attributes = _object(form.get("attributes"))
        fields = {**attributes, **body} if isinstance(body, dict) else dict(attributes)
        if body is not None and not isinstance(body, dict):
            fields["content"] = opened(body)
        _add_log(span, Log(str(form.get("name") or ""), at or 0, fields))
        span.records.append(event.record)

    def _name_scopes(self) -> None:
        """Spans that name no conversation are of the one that their trace names: the first in time, else the trace."""
        named: dict[str, tuple[int, str]] = {}
        for span in self.spans.values():
            if span.scope != span.trace:
                at = span.at()[0]
                named[span.trace] = min(named.get(span.trace, (at, span.scope)), (at, span.scope))
        for span in self.spans.values():
            if span.scope == span.trace and span.trace in named:
                span.scope = named[span.trace][1]

    def in_order(self) -> list[Span]:
        """All spans, by time."""
        return self._in_order

    def parent(self, span: Span) -> Span | None:
        """The parent, where it has arrived."""
        return None if span.parent is None else self.spans.get((span.trace, span.parent))

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Parent, its parent, and so on; a circle ends it."""
        seen = {span.id}
        above = self.parent(span)
        while above is not None and above.id not in seen:
            yield above
            seen.add(above.id)
            above = self.parent(above)

    def children(self, span: Span) -> list[Span]:
        """Spans whose parent it is, by time."""
        return self._children.get((span.trace, span.id), [])

    def below(self, span: Span) -> Iterator[Span]:
        """Every descendant."""
        seen = {span.id}
        level = self.children(span)
        while level:
            fresh = [child for child in level if child.id not in seen]
            seen.update(child.id for child in fresh)
            yield from fresh
            level = [grandchild for child in fresh for grandchild in self.children(child)]


def _content(form: Mapping[str, Any]) -> bytes:
    """Canonical bytes: an order that depends on what is said and on nothing else."""
    return msgspec.json.encode(form, order="deterministic")


def _remember(record: Record, form: Mapping[str, Any]) -> None:
    """What was unusual about the text that the form was first read from."""
    notes, mended = form.get("notes"), form.get("mended")
    if isinstance(notes, list):
        record.notes = tuple(sorted({*record.notes, *(note for note in notes if isinstance(note, str))}))
    if isinstance(mended, list):
        pairs = [(pair[0], pair[1]) for pair in mended if isinstance(pair, (list, tuple)) and len(pair) == 2]
        record.mended = tuple(pair for pair in pairs if isinstance(pair[0], str) and isinstance(pair[1], str))


def _unnamed(form: Mapping[str, Any]) -> str:
    """A name for a span without an id, made of what it says."""
    return "unnamed " + blake2b(_content(form), digest_size=8).hexdigest()


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _merged(place: tuple[str, str], copies: list[tuple[dict[str, Any], StoredEvent]]) -> Span:
    """One span from all records of it: the one that ended and says most, with attributes that only others have."""
    ranked = sorted(
        copies,
        key=lambda pair: (pair[0].get("end") is not None, len(_object(pair[0].get("attributes"))), _content(pair[0])),
        reverse=True,
    )
    form = ranked[0][0]
    attributes = dict(_object(form.get("attributes")))
    for other, _ in ranked[1:]:
        for key, value in _object(other.get("attributes")).items():
            attributes.setdefault(key, value)
    status = _object(form.get("status"))
    span = Span(
        *place,
        scope=min({event.key for _, event in copies} - {place[0]}, default=place[0]),
        name=str(form.get("name") or ""),
        parent=form.get("parent") if isinstance(form.get("parent"), str) else None,
        start=nanoseconds(form.get("start")),
        end=nanoseconds(form.get("end")),
        start_raw=form.get("start"),
        end_raw=form.get("end"),
        failed=status.get("code") == "error",
        attributes=attributes,
        resource=_object(form.get("resource")),
        rest={},
        events=[],
        records=[event.record for _, event in copies],
    )
    put(span.rest, kind=form.get("kind"), scope=form.get("scope"), links=form.get("links"))
    span.rest.update(_object(form.get("rest")))
    logged = form.get("events")
    for item in logged if isinstance(logged, list) else ():
        fields = _object(item)
        at = nanoseconds(fields.get("at")) or 0
        _add_log(span, Log(str(fields.get("name") or ""), at, _object(fields.get("attributes"))))
    message = status.get("message")
    if span.failed or message:
        span.error = message if isinstance(message, str) else None
    span.kind = kind_of(attributes)
    return span


DETAILS = frozenset({"gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion"})
"""Events whose fields are attributes of the span that they belong to."""


def _add_log(span: Span, log: Log) -> None:
    """Details become attributes of the span, an exception its error, anything else stays an event."""
    if log.name in DETAILS:
        for key, value in log.body.items():
            span.attributes.setdefault(key, value)
        span.kind = kind_of(span.attributes)
        return
    if log.name == "exception":
        message = log.body.get("exception.message")
        if span.error is None and isinstance(message, str):
            span.error = message
    span.events.append(log)
    if span.kind == "other" and log.name.startswith("gen_ai.") and log.name != "gen_ai.evaluation.result":
        span.kind = "model"


def by_time(spans: Iterable[Span]) -> list[Span]:
    """Spans in order of time, ties by id."""
    return sorted(spans, key=Span.at)
