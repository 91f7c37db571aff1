"""Spans that are events: some instrumentations (the first ones of BeeAI) make a span of each event that a running thing
emits, its start, every update, its success and its end. The events of one execution become the span that it is.

Such a span is called by the path of its event and a number (`tool.search.start-12`), and says both apart: `target` is
the path, `name` its last part. What the events of an agent tell goes to the models that it asked (`_otlp_acted.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from etl.adapters._otlp_acted import join_pieces, steps_of, tell
from etl.adapters._otlp_span import Span, kind_of

_GROUP = "groupId"
"""What spans have as their target that stand for one turn of an agent."""
_RANK = {"start": 0, "success": 2, "error": 2, "finish": 3}
"""The order of events of one time; all others come between."""
_NUMBER = re.compile(r"-(\d{1,9})\Z")
_NAMED = re.compile(r"(.+)\.([a-z_]+)-\d{1,9}\Z")
MOST_AT_ONCE = 64
"""How many executions of one tool at once are told apart."""
_NAMING = ("target", "name")

Place = tuple[str, str]


class Run(msgspec.Struct, eq=False):
    """The events that one thing emitted, in order; below another of these, or a span of its own."""

    path: str
    base: int | None
    events: list[Span] = []


def executions(spans: dict[Place, Span]) -> None:
    """Put one span in the place of all events of each execution."""
    emitted = {place for place, span in spans.items() if _path(span) is not None}
    if emitted:
        _Folding(spans, emitted | _unmarked(spans, emitted)).fold()


def _unmarked(spans: dict[Place, Span], emitted: set[Place]) -> set[Place]:
    """Events that lost their attributes to a limit on how many a span has (an answer in hundreds of pieces): their
    names tell, where what emitted them is known.
    """
    known = {(spans[place].trace, _path(spans[place])) for place in emitted}
    found: set[Place] = set()
    for place, span in spans.items():
        named = _NAMED.match(span.name) if "target" not in span.attributes else None
        if named is not None and (span.trace, named[1]) in known:
            span.attributes = {"target": f"{named[1]}.{named[2]}", "name": named[2], **span.attributes}
            found.add(place)
    return found


def _path(span: Span) -> str | None:
    """What emitted the event that a span is: the path of the event without its name."""
    target, name = span.attributes.get("target"), span.attributes.get("name")
    if not isinstance(target, str) or not isinstance(name, str) or not target.endswith("." + name):
        return None
    number = _NUMBER.search(span.name)
    return target[: -len(name) - 1] if number is not None and span.name[: number.start()] == target else None


def _is_group(span: Span) -> bool:
    return span.attributes.get("target") == _GROUP and span.attributes.get("name") == span.name


class _Folding:
    """The events of a family, sorted by what emitted them."""

    def __init__(self, spans: dict[Place, Span], emitted: set[Place]) -> None:
        self._spans = spans
        self._emitted = emitted
        self._runs: list[Run] = []
        self._known: dict[tuple[int | None, str, str], int] = {}
        self._run_of: dict[Place, int | None] = {}
        self._into: dict[Place, Span] = {}
        self._groups: dict[Place, list[Span]] = {}
        for span in spans.values():
            if _is_group(span):
                self._groups.setdefault((span.trace, span.parent or ""), []).append(span)
        for place in sorted(emitted, key=lambda place: _order(spans[place])):
            run = self._run(place)
            if run is not None:
                self._runs[run].events.append(spans[place])

    def _run(self, place: Place) -> int | None:
        """The run that an event belongs to; None for a span that is no event."""
        chain: list[Place] = []
        seen: set[Place] = set()
        base: int | None = None
        while place not in self._run_of and place not in seen and place in self._spans:
            seen.add(place)
            span = self._spans[place]
            if place not in self._emitted and not _is_group(span):
                break
            chain.append(place)
            place = (span.trace, span.parent or "")
        base = self._run_of.get(place)
        for below in reversed(chain):
            span = self._spans[below]
            path = _path(span)
            if path is not None:
                named = (base, "" if base is not None else f"{span.trace} {self._outside(span)}", path)
                if named not in self._known:
                    self._known[named] = len(self._runs)
                    self._runs.append(Run(path, base, []))
                base = self._known[named]
            self._run_of[below] = base
        return base

    def _outside(self, span: Span) -> str:
        """The id of the span around a run that lies below no other."""
        above = self._spans.get((span.trace, span.parent or ""))
        return (above.parent or "" if above is not None and _is_group(above) else span.parent) or ""

    def fold(self) -> None:
        """Tell of each execution once, and hang it below what ran it."""
        agents = {number: run for number, run in enumerate(self._runs) if _sort(run) not in ("tool", "model")}
        models: dict[int, list[Span]] = {}
        for run in self._runs:
            if _sort(run) in ("tool", "model"):
                made = [self._one(events, run.path) for events in _apart(run.events)]
                if _sort(run) == "model" and run.base in agents:
                    models.setdefault(run.base, []).extend(made)
        for number, run in agents.items():
            self._agent(run, sorted(models.get(number, ()), key=Span.at))
        for span in self._spans.values():
            around = self._into.get((span.trace, span.parent or ""))
            if around is not None and around is not span:
                span.parent = around.id

    def _one(self, events: Sequence[Span], path: str) -> Span:
        """One span of all events of an execution; it ended with the last of them, where that is not the first."""
        first = events[0]
        above = self._spans.get((first.trace, first.parent or ""))
        names = [str(event.attributes.get("name")) for event in events]
        failed = next(
            (e.attributes.get("exception.message") for e in events if e.attributes.get("name") == "error"), None
        )
        first.rest["emitted"] = [event.name for event in events]
        for event in events[1:]:
            _add(first, event)
            self._drop(event, first)
        last = events[-1]
        first.end, first.end_raw = (last.start, last.start_raw) if len(events) > 1 else (None, None)
        first.name = path
        if "error" in names and "success" not in names:
            first.failed, first.error = True, failed if isinstance(failed, str) else first.error
        for key in _NAMING:
            first.attributes.pop(key, None)
        if first.attributes.get("openinference.span.kind") == "TOOL":
            named = above.attributes.get("tool.name") if above is not None else None
            first.attributes["gen_ai.tool.name"] = named if isinstance(named, str) else path
            given = first.attributes.pop("tool.parameters", None)
            first.attributes.setdefault("gen_ai.tool.call.arguments", given)
        else:
            join_pieces(first)
        first.kind = kind_of(first.attributes)
        return first

    def _agent(self, run: Run, models: Sequence[Span]) -> None:
        """An agent's events into the span around them, else into the first; what they tell goes to its models."""
        first = run.events[0]
        around = self._around(first) if run.base is None else None
        steps, final, tools = steps_of(run.events)
        error = next(
            (found for e in run.events if isinstance(found := e.attributes.get("exception.message"), str)), None
        )
        for event in run.events if around is not None else run.events[1:]:
            (around or first).records.extend(event.records)
            self._drop(event, around or first)
        if around is None:
            first.name, first.end, first.end_raw = run.path, run.events[-1].start, run.events[-1].start_raw
            for key in (*_NAMING, "tool.name", "tool.parameters", "thought"):
                first.attributes.pop(key, None)
        else:
            source = around.attributes.get("source")
            around.attributes.setdefault("gen_ai.agent.name", source if isinstance(source, str) else run.path)
        if error is not None:
            (around or first).error = error
        untold = tell(models, steps, final, tools)
        if untold:
            (around or first).rest["turns"] = [msgspec.to_builtins(step) for step in untold]

    def _around(self, span: Span) -> Span | None:
        """The span outside, over those of single turns, which are no more."""
        place = (span.trace, span.parent or "")
        above = self._spans.get(place) or self._into.get(place)
        if above is None or not _is_group(above):
            return above
        place = (above.trace, above.parent or "")
        around = self._spans.get(place)
        if around is not None:
            for group in self._groups.pop(place, ()):
                around.records.extend(group.records)
                self._drop(group, around)
        return around

    def _drop(self, span: Span, into: Span) -> None:
        self._into[span.trace, span.id] = into
        self._spans.pop((span.trace, span.id), None)


def _sort(run: Run) -> str:
    """Whether a tool, a model or an agent emitted these events."""
    kinds = [event.attributes.get("openinference.span.kind") for event in run.events]
    return "tool" if "TOOL" in kinds else "model" if "LLM" in kinds else "agent"


def _order(span: Span) -> tuple[int, int, str]:
    return (span.at()[0], _RANK.get(str(span.attributes.get("name")), 1), span.id)


def _apart(events: Sequence[Span]) -> list[list[Span]]:
    """Events of a tool or a model by execution: an end is that of what started last, of those given the same."""
    made: list[list[Span]] = []
    for event in events:
        name = event.attributes.get("name")
        given = event.attributes.get("tool.parameters")
        free = [
            one
            for one in made[-MOST_AT_ONCE:]
            if all(_RANK.get(str(e.attributes.get("name"))) != _RANK.get(str(name)) for e in one)
        ]
        alike = [one for one in free if given is None or one[0].attributes.get("tool.parameters") in (None, given)]
        if name == "start" or not alike:
            made.append([event])
        else:
            alike[-1].append(event)
    return made


def _add(span: Span, event: Span) -> None:
    """What another event of the same execution says."""
    for key, value in event.attributes.items():
        if key not in _NAMING:
            span.attributes.setdefault(key, value)
    for key, value in event.rest.items():
        span.rest.setdefault(key, value)
    span.failed, span.error = span.failed or event.failed, span.error or event.error
    span.events = [*span.events, *event.events]
    span.records = [*span.records, *event.records]
