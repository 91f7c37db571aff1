"""The spans of one family, read back from their normal form: copies merged, log records joined, the tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from etl.adapters._otlp_emitted import executions
from etl.adapters._otlp_outside import EVALUATION, Annotation, TraceRecord, annotation, forms
from etl.adapters._otlp_span import Log, Span, kind_of, nanoseconds, opened
from etl.conversation import Record, StoredEvent

DETAILS = frozenset({"gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion"})
"""Events whose fields are attributes of the span that they belong to."""


class Family:
    """The spans of a family by (trace, id), and how they hang together."""

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.spans: dict[tuple[str, str], Span] = {}
        self.annotations: list[Annotation] = []
        self.traces: dict[str, list[TraceRecord]] = {}
        self._named: dict[str, str] = {}
        """Traces whose own record names their conversation."""
        self._gather(events)
        self._name_scopes()
        self._in_order = sorted(self.spans.values(), key=Span.at)
        self._above: dict[tuple[str, str], str] = {}
        self._children: dict[tuple[str, str], list[Span]] = {}
        for span in self._in_order:
            if span.parent is not None and not span.parent.strip("0") and (span.trace, span.parent) not in self.spans:
                span.parent = None  # zeros are no parent, unless a span is called that
            if span.parent is not None:
                self._above[span.trace, span.id] = span.parent
                self._children.setdefault((span.trace, span.parent), []).append(span)
        self._nest_agents()
        self._ancestors = {id(span): self._climbed(span) for span in self._in_order}

    def _gather(self, events: Sequence[StoredEvent]) -> None:
        """Sort what was stored into spans (copies merged), their logs, annotations and traces."""
        copies: dict[tuple[str, str], list[tuple[dict[str, Any], StoredEvent]]] = {}
        said: list[tuple[dict[str, Any], StoredEvent]] = []
        arrived: set[tuple[str, str]] = set()
        for event in events:
            for form in forms(event):
                if "notes" in form or "mended" in form:
                    _remember(event.record, form)
                if form.get("signal") == "span":
                    place = (event.link or event.key, str(form.get("id") or _unnamed(form)))
                    copies.setdefault(place, []).append((form, event))
                    if not form.get("stand_in"):
                        arrived.add(place)
                else:
                    said.append((form, event))
        stand_ins = copies.keys() - arrived
        whole = {trace for trace, _ in copies.keys() - stand_ins} if stand_ins else set()
        for place, found in copies.items():
            if place not in stand_ins or place[0] not in whole:
                self.spans[place] = _merged(place, found)
        executions(self.spans)
        for form, event in sorted(said, key=lambda pair: _content(pair[0])):
            if form.get("signal") == "annotation":
                self.annotations.append(annotation(form, event.record))
            elif form.get("signal") == "trace":
                trace = event.link or event.key
                self.traces.setdefault(trace, []).append(TraceRecord(_object(form.get("info")), event.record))
                if event.key != trace:
                    self._named[trace] = min(event.key, self._named.get(trace, event.key))
            else:
                self._join(form, event)

    def _nest_agents(self) -> None:
        """Some frameworks log an agent beside the calls it made: it is their parent where it alone spans their time."""
        for (trace, parent), group in list(self._children.items()):
            agents = [span for span in group if span.kind == "agent" and (trace, span.id) not in self._children]
            if not agents:
                continue
            for span in [span for span in group if span.kind in ("model", "tool")]:
                around = [agent for agent in agents if agent.spans(span)]
                if len(around) == 1:
                    self._above[trace, span.id] = around[0].id
                    self._children[trace, parent].remove(span)
                    self._children.setdefault((trace, around[0].id), []).append(span)

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
            elif span.scope == span.trace:
                span.scope = self._named.get(span.trace, span.trace)

    def in_order(self) -> list[Span]:
        """All spans, by time."""
        return self._in_order

    def parent(self, span: Span) -> Span | None:
        """The parent, where it has arrived."""
        above = self._above.get((span.trace, span.id))
        return None if above is None else self.spans.get((span.trace, above))

    def ancestors(self, span: Span) -> Sequence[Span]:
        """Parent, its parent, and so on; a circle ends it."""
        return self._ancestors[id(span)]

    def _climbed(self, span: Span) -> Sequence[Span]:
        above = self.parent(span)
        if above is None:
            return ()
        found: list[Span] = []
        seen = {span.id}
        while above is not None and above.id not in seen:
            found.append(above)
            seen.add(above.id)
            above = self.parent(above)
        return found

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


_NOTHING: tuple[Any, ...] = (None, "", [], {})
_BESIDE = ("kind", "scope", "links")


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
    ranked = copies
    if len(copies) > 1:
        ranked = sorted(
            copies,
            key=lambda pair: (
                pair[0].get("end") is not None,
                len(_object(pair[0].get("attributes"))),
                _content(pair[0]),
            ),
            reverse=True,
        )
    form, only = ranked[0]
    told = form.get
    attributes = dict(_object(told("attributes")))
    for other, _ in ranked[1:]:
        for key, value in _object(other.get("attributes")).items():
            attributes.setdefault(key, value)
    name, parent, start, end, status = told("name"), told("parent"), told("start"), told("end"), _object(told("status"))
    failed = status.get("code") == "error"
    span = Span(
        *place,
        scope=only.key if len(copies) == 1 else min({event.key for _, event in copies} - {place[0]}, default=place[0]),
        name=str(name or ""),
        parent=parent if isinstance(parent, str) else None,
        start=nanoseconds(start),
        end=nanoseconds(end),
        start_raw=start,
        end_raw=end,
        failed=failed,
        attributes=attributes,
        resource=_object(told("resource")),
        rest={key: value for key in _BESIDE if (value := told(key)) or value not in _NOTHING},
        events=[],
        records=[event.record for _, event in copies],
        kind=kind_of(attributes),
    )
    if failed and isinstance(message := status.get("message"), str):
        span.error = message
    span.rest.update(_object(told("rest")))
    logged = told("events")
    for item in logged if isinstance(logged, list) else ():
        fields = _object(item)
        at = nanoseconds(fields.get("at")) or 0
        _add_log(span, Log(str(fields.get("name") or ""), at, _object(fields.get("attributes"))))
    return span


def _add_log(span: Span, log: Log) -> None:
    """Details become attributes of the span, an exception its error, anything else stays an event."""
    if log.name in DETAILS:
        for key, value in log.body.items():
            span.attributes.setdefault(key, value)
        span.details.add(log.name)
        span.kind = kind_of(span.attributes)
        return
    if log.name == "exception":
        message = log.body.get("exception.message")
        if span.failed and span.error is None and isinstance(message, str):
            span.error = message
    span.events.append(log)
    if span.kind == "other" and log.name.startswith("gen_ai.") and log.name != EVALUATION:
        span.kind = "model"
