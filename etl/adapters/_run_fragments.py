"""Runs inside framed records into fragments: the key is the trace, a session (or thread) joins traces to a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from etl.adapters._otlp_parts import note, part
from etl.adapters._otlp_values import fingerprint
from etl.conversation import Fragment, Ignored, Outcome, Record, Unusable


class Unit(NamedTuple):
    """One run, score or trace inside a framed record; no form where an item is none of them."""

    form: dict[str, Any] | None
    item: Any
    trace: str | None = None
    session: str | None = None
    """The session, or the thread, that its trace belongs to."""


def fragments(record: Record, units: Iterable[Unit], tool: str, expected: str) -> Iterator[Outcome]:
    """The fragments of one framed record; an item that is nothing of the kind is a reject at its own place."""
    found = bad = 0
    for unit in units:
        found += 1
        if unit.form is None:
            own = record if unit.item is record.value else part(record, unit.item, bad)
            yield Unusable(own, "not_a_run", f"{expected}; see what wrote it")
            bad += 1
        else:
            yield _fragment(record, unit, tool)
    if not found:
        yield Ignored("empty_page")


def _fragment(record: Record, unit: Unit, tool: str) -> Fragment:
    form = unit.form
    assert form is not None
    note(record, form)
    # One of a trace is enough to join it to its session: that without a parent.
    joins = unit.session is not None and "parent" not in form
    aliases = [f"{tool} session {unit.session}"] if joins else []
    trace = unit.trace
    if trace is None and form.get("signal") == "annotation":
        of, target = form.get("of"), str(form.get("id"))
        trace = f"{tool} session {target}" if of == "session" else target
    elif "scores" in form and form.get("id") != trace:
        aliases.append(str(form.get("id")))  # feedback may know the run alone
    trace = trace or f"untraced {fingerprint(form)}"
    return Fragment(record, trace, trace, form.get("start", form.get("at")), form, aliases=tuple(aliases))
