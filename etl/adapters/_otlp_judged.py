"""Judgments and trace records onto the rows that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_family import Family
from etl.adapters._otlp_outside import EVALUATION, Annotation, evaluation, reward_of
from etl.adapters._otlp_span import Span
from etl.conversation import Conversation, Record, Verdict

_FAILED = frozenset({"ERROR", "TRACE_STATE_ERROR"})


def judge(rows: Sequence[tuple[Conversation, Sequence[Span]]], family: Family) -> None:
    """Put every verdict on its row: that of the span judged, else of the agent around it, else of the whole trace."""
    places = _Places(rows, family)
    for row, verdicts in places.judged():
        row.judgments = sorted(verdicts, key=lambda verdict: msgspec.json.encode(verdict)) or None
        row.reward = reward_of(verdicts)
    for trace, records in sorted(family.traces.items()):
        about = places.of_trace(trace)
        if about is not None:
            infos = [msgspec.json.encode(told.info, order="deterministic") for told in records if told.info]
            told = [msgspec.json.decode(info) for info in sorted(set(infos))]
            if told:
                about.extra = {**(about.extra or {}), "traces": [*(about.extra or {}).get("traces", ()), *told]}
            _add(about, [each.record for each in records])
            states = [info.get("state", info.get("status")) for info in told]
            failed = any(isinstance(state, str) and state in _FAILED for state in states)
            if failed and about.error is None and about.status is None and places.is_last(about, trace):
                about.status = "error"


def _add(row: Conversation, records: Sequence[Record]) -> None:
    row.records = list({id(record): record for record in (*row.records, *records)}.values())


class _Places:
    """Which row tells of a span, a trace, a conversation."""

    def __init__(self, rows: Sequence[tuple[Conversation, Sequence[Span]]], family: Family) -> None:
        self._rows = [row for row, _ in rows]
        self._family = family
        self._of_span: dict[tuple[str, str], Conversation] = {}
        self._of_trace: dict[str, Conversation] = {}
        self._of_scope: dict[str, Conversation] = {}
        self._by_id = {span.id: span for span in reversed(family.in_order())} if family.annotations else {}
        self._last: dict[int, str] = {}
        """Row → the trace of its latest span."""
        for row, spans in rows:
            if spans:
                self._last[id(row)] = max(spans, key=Span.at).trace
            self._of_scope.setdefault(str(row.native_id), row)
            for span in spans:
                self._of_span.setdefault((span.trace, span.id), row)
                self._of_trace.setdefault(span.trace, row)

    def is_last(self, row: Conversation, trace: str) -> bool:
        """Whether a row ends with a trace."""
        return self._last.get(id(row)) == trace

    def of_trace(self, trace: str) -> Conversation | None:
        """The first row of a trace."""
        return self._of_trace.get(trace)

    def judged(self) -> Iterator[tuple[Conversation, list[Verdict]]]:
        """Every row with what was said of it."""
        said: dict[int, list[Verdict]] = {}
        for span in self._family.in_order():
            found = [evaluation(log.body) for log in span.events if log.name == EVALUATION]
            row = self._of(span) if found else None
            if row is not None:
                said.setdefault(id(row), []).extend(found)
                _add(row, span.records)
        for annotation in self._family.annotations:
            row = self._annotated(annotation)
            if row is not None:
                if annotation.verdict not in said.setdefault(id(row), []):
                    said[id(row)].append(annotation.verdict)
                if annotation.left.get("rest"):
                    _keep(row, {"name": annotation.verdict.name, **annotation.left})
                _add(row, [annotation.record])
        for row in self._rows:
            if id(row) in said:
                yield row, said[id(row)]

    def _annotated(self, annotation: Annotation) -> Conversation | None:
        if annotation.of == "session":
            return self._of_scope.get(annotation.id)
        if annotation.of == "trace":
            return self._of_trace.get(annotation.id)
        span = self._by_id.get(annotation.id)
        return None if span is None else self._of(span)

    def _of(self, span: Span) -> Conversation | None:
        family = self._family
        for each in (span, *family.ancestors(span), *family.below(span)):
            found = self._of_span.get((each.trace, each.id))
            if found is not None:
                return found
        return self._of_trace.get(span.trace, self._of_scope.get(span.scope))


def _keep(row: Conversation, told: dict[str, Any]) -> None:
    """What an annotation says beyond its verdict."""
    row.extra = {**(row.extra or {}), "annotations": [*(row.extra or {}).get("annotations", ()), told]}
