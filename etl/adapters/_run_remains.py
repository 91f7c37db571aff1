"""What no column tells of runs, beside the messages that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_messages import UNCAPTURED
from etl.adapters._otlp_outside import annotation
from etl.adapters._otlp_span import kind_of, nanoseconds
from etl.adapters._otlp_threads import atoms
from etl.adapters._otlp_values import put
from etl.adapters._run_said import LONG, Said, unsaid
from etl.adapters._run_values import answered, asked
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent

_BESIDE = ("attempts", "also_logged_as", "retrieved")
"""What a message tells of runs beside its own."""
LONGEST = 1 << 16
"""How far into the text of an input instructions are looked for."""
_WORDS = ("input", "output", "gen_ai.tool.call.result", "gen_ai.tool.call.arguments")
_NOISE = frozenset({"langfuse.observation.type", "langsmith.span.kind", "gen_ai.operation.name", "traceloop.span.kind"})


class Remains:
    """Tells of every stored run what the rows do not."""

    def __init__(self, family: Sequence[StoredEvent], rows: Sequence[Conversation]) -> None:
        self._rows = rows
        self._forms: dict[tuple[str, str], dict[str, Any]] = {}
        self._of_trace: dict[str, Conversation] = {}
        self._said: dict[int, tuple[Said, Said]] = {}
        self._messages: dict[tuple[int, str], Message] = {}
        self._done: set[tuple[str, str]] = set()
        self._records: dict[int, set[int]] = {}
        self._traces = {id(event.record): event.link or event.key for event in family}
        owners = {id(record): row for row in reversed(rows) for record in row.records}
        self._row_of: dict[tuple[str, str], Conversation] = {}
        self._in_order = sorted(family, key=_order)
        for event in self._in_order:
            place = _place(event)
            if place is None:
                continue
            _merge(self._forms.setdefault(place, {}), event.record.value)
            row = owners.get(id(event.record))
            if row is not None:
                self._row_of.setdefault(place, row)
        self._entries: dict[tuple[int, str], dict[str, Any]] = {}
        for row in rows:
            for message in row.messages:
                extra = message.extra or {}
                if isinstance(extra.get("span_id"), str):
                    self._messages.setdefault((id(row), extra["span_id"]), message)
                for told in (told for key in _BESIDE for told in extra.get(key, ())):
                    self._entries.setdefault((id(row), str(told.get("span_id"))), told)
        self._below = self._first_below()
        self._name_traces(owners, family)
        self._link()

    def _first_below(self) -> dict[tuple[int, str], Message]:
        """(row, run) → the message of the first model or tool that ran below it."""
        found: dict[tuple[int, str], Message] = {}
        for (trace, name), row in self._row_of.items():
            message = self._messages.get((id(row), name))
            seen = {name}
            above = self._forms[trace, name].get("parent")
            while message is not None and isinstance(above, str) and above not in seen:
                seen.add(above)
                found.setdefault((id(row), above), message)
                form = self._forms.get((trace, above))
                above = form.get("parent") if form is not None else None
        return found

    def _name_traces(self, owners: dict[int, Conversation], family: Sequence[StoredEvent]) -> None:
        """The row of a trace is the first that tells of one of its runs."""
        first = {id(row): number for number, row in enumerate(self._rows)}
        for event in family:
            row = owners.get(id(event.record))
            trace = event.link or event.key
            known = self._of_trace.get(trace)
            if row is not None and (known is None or first[id(row)] < first[id(known)]):
                self._of_trace[trace] = row

    def _link(self) -> None:
        """A row that began between two calls of another of its trace is its child, where nothing closer is known.

        One that began while a model answered runs beside it.
        """
        calls: dict[int, list[tuple[int, int]]] = {}
        by_trace: dict[str, dict[int, Conversation]] = {}
        for (trace, name), row in self._row_of.items():
            by_trace.setdefault(trace, {})[id(row)] = row
            message = self._messages.get((id(row), name))
            form = self._forms[trace, name]
            start, end = nanoseconds(form.get("start")), nanoseconds(form.get("end"))
            if start is not None and message is not None and message.role == "assistant":
                calls.setdefault(id(row), []).append((start, start if end is None else end))
        for rows in by_trace.values():
            for own, row in rows.items():
                if row.parent is None and own in calls:
                    start = min(calls[own])[0]
                    around = [other for other in rows if other != own and _between(calls.get(other, []), start)]
                    closest = max(around, key=lambda other: min(calls[other]), default=None)
                    if closest is not None:
                        row.parent = Identity(str(rows[closest].native_id), branch=rows[closest].branch)
        named = {(row.native_id, row.branch): row for row in self._rows}
        for row in self._rows:
            parent = named.get((row.parent.key, row.parent.branch)) if row.parent is not None else None
            if parent is not None:
                _inherit(row, parent)

    def _said_of(self, row: Conversation) -> tuple[Said, Said]:
        """What a row says; and with what was kept beside its messages when this was first asked."""
        if id(row) not in self._said:
            said = Said(row)
            self._said[id(row)] = (said, said.beside(row))
        return self._said[id(row)]

    def tell(self) -> set[int]:
        """Tell of every stored run; the `id()` of the records that a row belongs to."""
        return {id(event.record) for event in self._in_order if self._tell(event)}

    def _tell(self, event: StoredEvent) -> bool:
        """Tell of one stored run; false where no row belongs to it."""
        place = _place(event)
        row = self._owner(event, place)
        if row is None:
            return False
        held = self._records.setdefault(id(row), {id(record) for record in row.records})
        if id(event.record) not in held:
            held.add(id(event.record))
            row.records = [*row.records, event.record]
        if place is None or place in self._done:
            return True
        self._done.add(place)
        form = self._forms[place]
        self._say_missing(form, row)
        self._say_around(form, row)
        _say_scores(form, row, event.record)
        attributes = form.get("attributes")
        words = attributes if isinstance(attributes, dict) else {}
        message = self._messages.get((id(row), place[1]))
        if message is None and not any(told.role in ("system", "developer") for told in row.messages):
            self._instruct(words.get("input"), row)
        self._complete(words.get("output"), row, form)
        said = self._said_of(row)[1]
        left = {key: found for key in _WORDS if key in words and (found := unsaid(words[key], said)) is not None}
        if message is not None:
            start = form.get("start") if message.role == "assistant" else None
            message.extra = {**({"start": start} if start else {}), **(message.extra or {}), **left}
            return True
        entry = self._entries.get((id(row), place[1]))
        if entry is not None:
            held = entry.get("attributes", {})
            more = {key: item for key, item in left.items() if key not in held}
            put(entry, **{**_times(form), **more, **_times(form)})
            return True
        put(left, type=words.get("langfuse.observation.type", words.get("langsmith.span.kind")))
        put(left, scope=unsaid(form.get("scope"), said))
        more = {key: item for key, item in words.items() if key not in _WORDS and key not in _NOISE}
        rest = form["rest"] if isinstance(form.get("rest"), dict) else {}
        told, logged = unsaid(more, said), rest.get("attributes")  # a run may have attributes of that name, too
        told = {**logged, **(told or {})} if isinstance(logged, dict) else told or logged
        put(left, **{"attributes": told, **{key: item for key, item in rest.items() if key != "attributes"}})
        self._beside(row, form, left)
        return True

    def _owner(self, event: StoredEvent, place: tuple[str, str] | None) -> Conversation | None:
        """The row that a run belongs to: its own, that of the nearest ancestor, that of its trace."""
        trace = event.link or event.key
        seen: set[tuple[str, str]] = set()
        while place is not None and place not in seen:
            if place in self._row_of:
                return self._row_of[place]
            seen.add(place)
            form = self._forms.get(place)
            parent = form.get("parent") if form is not None else None
            place = (trace, parent) if isinstance(parent, str) else None
        return self._of_trace.get(trace)

    def _say_around(self, form: dict[str, Any], row: Conversation) -> None:
        """What the runs around its models say of a row: when it began and ended, its agent and model."""
        start, end = nanoseconds(form.get("start")), nanoseconds(form.get("end"))
        known = nanoseconds(row.started_at), nanoseconds(row.ended_at)
        if start is not None and (known[0] is None or start < known[0]):
            row.started_at = form["start"]
        if end is not None and (known[1] is None or end > known[1]):
            row.ended_at = form["end"]
        rest = form.get("rest")
        metadata = rest.get("metadata") if isinstance(rest, dict) else None
        for key in ("ls_model_name", "model"):
            named = metadata.get(key) if isinstance(metadata, dict) else None
            row.model = row.model or (named if isinstance(named, str) else None)
        example = rest.get("reference_example_id") if isinstance(rest, dict) else None
        if isinstance(example, str) and "parent" not in form:
            row.task = ("langsmith", example)
        name = form.get("name")
        attributes = form.get("attributes")
        root = "parent" not in form and kind_of(attributes if isinstance(attributes, dict) else {}) != "model"
        if row.agent is None and root and isinstance(name, str):
            row.agent = name

    def _say_missing(self, form: dict[str, Any], row: Conversation) -> None:
        missing = form.get("missing_parent")
        if isinstance(missing, str):
            row.flags = {*(row.flags or ()), "ambiguous_parent"}
            known = (row.extra or {}).get("missing_parents", [])
            row.extra = {**(row.extra or {}), "missing_parents": sorted({*known, missing})}

    def _beside(self, row: Conversation, form: dict[str, Any], left: dict[str, Any]) -> None:
        """A run that is no message, with what is left of it: told on the message of the first model below it, else on
        the last message before it ended.
        """
        status = form.get("status")
        failed = status.get("message", True) if isinstance(status, dict) and status.get("code") == "error" else None
        told: dict[str, Any] = {}
        put(told, span=form.get("name"), span_id=form.get("id"), parent=form.get("parent"), error=failed)
        put(told, **{**_times(form), **left, **_times(form)})
        told.update({key: item for key, item in self._agent_of(row, form.get("id")).items() if key not in told})
        message = self._below.get((id(row), str(form.get("id")))) or self._before(row, form)
        if message is not None:
            message.extra = {**(message.extra or {}), "runs": [*(message.extra or {}).get("runs", ()), told]}

    def _agent_of(self, row: Conversation, name: Any) -> dict[str, Any]:
        """What the row keeps of an agent's run, taken off it: it is told with the other runs."""
        listed = (row.extra or {}).get("agent_spans", [])
        found: dict[str, Any] = next((told for told in listed if told.get("span_id") == name), {})
        if found:
            kept = [told for told in listed if told is not found]
            extra = {key: item for key, item in (row.extra or {}).items() if key != "agent_spans"}
            row.extra = {**extra, "agent_spans": kept} if kept else extra or None
        return found

    def _before(self, row: Conversation, form: dict[str, Any]) -> Message | None:
        """The last message that a run signed before this one ended; else the first."""
        ended = nanoseconds(form.get("end", form.get("start")))
        found: Message | None = None
        for message in row.messages:
            at = nanoseconds(message.at)
            if found is None or (at is not None and ended is not None and at <= ended):
                found = message
        return found

    def _instruct(self, given: Any, row: Conversation) -> None:
        """The instructions that an agent got beside the same question, where its models' requests leave them out."""
        if not isinstance(given, (str, list, dict)) or "system" not in str(given)[:LONGEST]:
            return
        history = asked(given).history
        leading = [message for message in history if message.role in ("system", "developer")]
        if leading and row.messages and _words(history)[:1] == _words(row.messages)[:1]:
            row.messages = [*leading, *row.messages]
            self._said.pop(id(row), None)

    def _complete(self, output: Any, row: Conversation, form: dict[str, Any]) -> None:
        """The state of a graph may know how it went on after the last model run that arrived."""
        if output is None or (id(row), str(form.get("id"))) in self._messages:
            return
        answers = answered(output)
        state = answers[0] if len(answers) == 1 else []
        told = _words(row.messages)
        if "parent" not in form and len(state) == 1 and row.messages[-1].role == "tool":
            state = [*(message for message in row.messages if message.role not in ("system", "developer")), *state]
        if not told or _words(state)[: len(told)] != told:
            return
        kept = 0
        for index in range(len(state) + 1):
            if _words(state[:index]) == told:
                kept = index
        fresh = state[kept:] if kept else []
        if fresh and fresh[-1].role == "assistant":
            row.messages = [*row.messages, *fresh]
            row.finish_reason = fresh[-1].finish_reason
            row.flags = {*(row.flags or ()), "unlogged_turns"} - {"incomplete", UNCAPTURED}
            self._said.pop(id(row), None)

    def _place_annotations(self, row: Conversation) -> None:
        """What an annotation says beyond its verdict, on the message that it is about, else on the last."""
        extra = dict(row.extra or {})
        for told in extra.pop("annotations", ()):
            name = str(told.get("id"))
            message = self._messages.get((id(row), name)) or self._below.get((id(row), name)) or row.messages[-1]
            message.extra = {
                **(message.extra or {}),
                "annotations": [*(message.extra or {}).get("annotations", ()), told],
            }
        row.extra = extra or None

    def close(self) -> None:
        """Leave out beside the messages what the row says itself; put the runs on a message in order."""
        for row in self._rows:
            self._place_annotations(row)
            names = [told.get("name") for told in (row.extra or {}).get("traces", ()) if told.get("name")]
            path: list[Any] = next(
                (told for message in row.messages if (told := (message.extra or {}).get("path"))), []
            )
            row.agent = row.agent or next(iter(names), None) or (path[-1] if path else None)
            for record in row.records if row.agent is None else ():
                around = self._of_trace.get(self._traces.get(id(record), ""))
                row.agent = row.agent or (around.agent if around is not None else None)
            said = self._said_of(row)[0]
            for message in row.messages:
                _thin(message.extra, said)
                runs = (message.extra or {}).get("runs", ())
                for told in runs:
                    _thin(told, said)
                if runs and message.extra is not None:
                    message.extra["runs"] = sorted(
                        runs, key=lambda told: (str(told.get("start")), str(told["span_id"]))
                    )
            for key in ("agent_spans", "traces"):
                listed = (row.extra or {}).get(key)
                for told in listed if isinstance(listed, list) else ():
                    _thin(told, said)


def _say_scores(form: dict[str, Any], row: Conversation, record: Record) -> None:
    """Scores that a run itself sums up, where no record tells of them one by one."""
    known = {verdict.name for verdict in row.judgments or ()}
    listed = form.get("scores")
    for score in listed if isinstance(listed, list) else ():
        verdict = annotation(score, record).verdict
        if verdict.name not in known:
            row.judgments = [*(row.judgments or ()), verdict]


def _when(told: dict[str, Any]) -> tuple[str, str]:
    return str(told.get("start")), str(told.get("span_id"))


def _thin(told: Any, said: Said) -> None:
    """Take the long texts that the row says out of what is kept of a span."""
    for key in ("attributes", "metadata", "model_parameters", "invocation_params", "serialized", "input", "output"):
        if isinstance(told, dict) and key in told:
            left = unsaid(told.pop(key), said, LONG)
            if left is not None:
                told[key] = left


def _words(messages: Sequence[Message]) -> list[Any]:
    return [atom for message in messages if message.role not in ("system", "developer") for atom in atoms(message)]


def _between(calls: list[tuple[int, int]], start: int) -> bool:
    """Whether a time lies between the first and the last of these calls, and in none of them."""
    before = any(end <= start for _, end in calls)
    return before and any(start <= begun for begun, _ in calls) and not any(one < start < end for one, end in calls)


def _inherit(row: Conversation, parent: Conversation) -> None:
    """Turns of the agent that handed its history over are that row's, where the history has any of its answers."""
    told = set(_words(parent.messages))
    own = next((place for place, said in enumerate(row.messages) if (said.extra or {}).get("span_id")), 0)
    before = [message for message in row.messages[:own] if message.role not in ("system", "developer")]
    if any(message.role == "assistant" for message in before):
        for message in before:
            message.inherited = message.inherited or told.issuperset(atoms(message))
    spoken = [message for message in row.messages if message.role == "assistant"]
    if row.flags and all(message.inherited or (message.extra or {}).get("span_id") for message in spoken):
        row.flags = row.flags - {"unlogged_turns"}


def _order(event: StoredEvent) -> tuple[bool, int, bytes]:
    """By time, runs that ended and say more first, then by what they say: never by where they were read."""
    form = event.record.value if isinstance(event.record.value, dict) else {}
    start = nanoseconds(form.get("start"))
    said = msgspec.json.encode(form, order="deterministic")
    return (form.get("end") is None, 1 << 62 if start is None else start, said)


def _merge(whole: dict[str, Any], form: dict[str, Any]) -> None:
    """Add what another record of the same run says."""
    attributes = {**(form.get("attributes") or {}), **(whole.get("attributes") or {})}
    whole.update({key: value for key, value in form.items() if key not in whole})
    if attributes:
        whole["attributes"] = attributes


def _times(form: dict[str, Any]) -> dict[str, Any]:
    return {"start": form.get("start"), "end": form.get("end")}


def _place(event: StoredEvent) -> tuple[str, str] | None:
    form = event.record.value
    if isinstance(form, dict) and form.get("signal") == "span" and isinstance(form.get("id"), str):
        return (event.link or event.key, form["id"])
    return None
