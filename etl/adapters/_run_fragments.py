"""Runs inside framed records into fragments: the key is the trace, a session (or thread) joins traces to a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from etl.conversation import Fragment, Ignored, Outcome, Record, Unusable


class Unit(Protocol):
    """One run, score or trace of a framed record; no form where an item is none of them."""

    @property
    def form(self) -> dict[str, Any] | None: ...
    @property
    def item(self) -> Any: ...
    @property
    def trace(self) -> str | None: ...
    @property
    def session(self) -> str | None: ...


def fragments(record: Record, units: Iterable[Unit], tool: str, expected: str) -> Iterator[Outcome]:
    """The fragments of one framed record; an item that is nothing of the kind is a reject at its own place."""
    found = bad = 0
    for unit in units:
        found += 1
        if unit.form is None:
            yield Unusable(_part(record, unit.item, bad), "not_a_run", f"{expected}; see what wrote it")
            bad += 1
        else:
            yield _fragment(record, unit, tool)
    if not found:
        yield Ignored("empty_page")


def _part(record: Record, item: Any, number: int) -> Record:
    """An item as a record of its own, at its place in the framed one where that can be found."""
    if item is record.value:
        return record
    raw = msgspec.json.encode(item)
    offset = record.offset
    if offset is not None:
        offset += max(record.raw.find(raw), 0) + number
    return Record(item, raw, record.line, offset)


def _fragment(record: Record, unit: Unit, tool: str) -> Fragment:
    form = unit.form
    assert form is not None
    _note(record, form)
    # One of a trace is enough to join it to its session: that without a parent.
    joins = unit.session is not None and "parent" not in form
    aliases = [f"{tool} session {unit.session}"] if joins else []
    trace = unit.trace
    if trace is None and form.get("signal") == "annotation":
        of, target = form.get("of"), str(form.get("id"))
        trace = f"{tool} session {target}" if of == "session" else target
    elif "scores" in form and form.get("id") != trace:
        aliases.append(str(form.get("id")))  # feedback may know the run alone
    trace = trace or f"untraced {_digest(form)}"
    return Fragment(record, trace, trace, form.get("start", form.get("at")), form, aliases=tuple(aliases))


def _note(record: Record, form: dict[str, Any]) -> None:
    """What was unusual about the record's text goes along with the forms that it touches."""
    if record.mended:
        text = msgspec.json.encode(form).decode()
        mended = [pair for pair in record.mended if msgspec.json.encode(pair[0]).decode()[1:-1] in text]
        if mended:
            form["mended"] = mended
    notes = [note for note in record.notes if note not in ("lone_surrogate", "invalid_utf8") or "mended" in form]
    if notes:
        form["notes"] = notes


def _digest(form: dict[str, Any]) -> str:
    return blake2b(msgspec.json.encode(form, order="deterministic"), digest_size=16).hexdigest()
