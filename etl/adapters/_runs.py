"""Runs (observations of Langfuse, runs of LangSmith) into rows: `_otlp_rows.py` does it, told what these tools mean.

* Chains, graphs and plain spans only speak where no model does: they repeat what models said. The topmost of them does
  then, so that a trace of nothing else is a row, and words that models did not capture are lent to these.
* A run whose parent never arrived hangs below the nearest ancestor that did, where its path is known.
* A trace of a session (a thread) whose history goes on from the end of an earlier one continues that row.
* What a graph said at last is told where the model's own run never arrived.
* What no column tells of a run is kept with its message; runs around it are listed there, too (`_run_remains.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from etl.adapters._otlp_dialects import turn_of
from etl.adapters._otlp_rows import conversations
from etl.adapters._otlp_semconv import instructions
from etl.adapters._otlp_span import Span, kind_of
from etl.adapters._otlp_threads import Atom, Thread, atoms
from etl.adapters._otlp_turn import Memory, Reader, Turn
from etl.adapters._run_remains import Remains
from etl.adapters._run_tools import tool_words
from etl.adapters._run_values import answered, asked, turn
from etl.conversation import Conversation, Ignored, Message, StoredEvent

_INSTRUCTIONS = frozenset({"system", "developer"})
SILENT = "chain"
"""Operation of a span that is not to speak."""
_SPOKEN = ("input", "output", "gen_ai.input.messages", "gen_ai.output.messages", "llm.input_messages", "ai.prompt")


def rows_of(family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
    """The rows of one family of traces, and what none of them tells."""
    traces: dict[str, Runs] = {}
    for event in family:
        traces.setdefault(event.link or event.key, Runs()).add(event)
    for runs in traces.values():
        runs.prepare()
    rows, used = conversations(family, read_run, strung)
    remains = Remains(family, rows)
    used |= remains.tell()
    remains.close()
    for event in family:
        if id(event.record) not in used:
            yield Ignored("not_told", record=event.record)
    order = {id(event.record): number for number, event in enumerate(family)}
    for row in rows:
        row.records = sorted(row.records, key=lambda record: order[id(record)])
        yield row


class Runs:
    """The stored forms of one trace."""

    def __init__(self) -> None:
        self._copies: dict[str, list[dict[str, Any]]] = {}
        self._stand_ins: list[dict[str, Any]] = []

    def add(self, event: StoredEvent) -> None:
        """Sort a stored event in."""
        form = event.record.value
        if not isinstance(form, dict):
            return
        if form.get("signal") == "span":
            self._copies.setdefault(str(form.get("id")), []).append(form)
        elif form.get("signal") == "trace" and isinstance(form.get("spans"), list):
            self._stand_ins += [inner for inner in form["spans"] if isinstance(inner, dict)]

    def prepare(self) -> None:
        """Say what each run is, and below which it hangs, from all that has arrived."""
        for copies in self._copies.values():
            _share(copies)
        forms = [form for copies in self._copies.values() for form in copies]
        speaking = any(_speaks(form) for form in forms)
        if not speaking:
            self._stand_up()
        for form in forms:
            self._hang(form)
        around = self._around_models(forms)
        for form in forms:
            attributes = _attributes(form)
            kind = kind_of(attributes)
            if kind == "tool":
                attributes.update(tool_words(attributes.pop("input", None), attributes.pop("output", None)))
            elif not speaking and self._is_top(form) and _has_words(form) and kind in ("agent", "other"):
                attributes.setdefault("traceloop.span.kind", "workflow")
            elif _is_quiet(form, kind, speaking, around):
                attributes["gen_ai.operation.name"] = SILENT

    def _around_models(self, forms: Sequence[dict[str, Any]]) -> set[str]:
        """The ids of all runs that a model ran below."""
        found: set[str] = set()
        for form in forms:
            if kind_of(_attributes(form)) == "model":
                above = form.get("parent")
                while isinstance(above, str) and above in self._copies and above not in found:
                    found.add(above)
                    above = self._copies[above][0].get("parent")
        return found

    def _stand_up(self) -> None:
        """No model speaks: the record of the trace, where it has words, is the root of its runs."""
        for form in self._stand_ins:
            if _has_words(form):
                form.pop("stand_in", None)
                _attributes(form)["traceloop.span.kind"] = "workflow"
                for copies in self._copies.values():
                    for run in copies:
                        run.setdefault("parent", form["id"])

    def _hang(self, form: dict[str, Any]) -> None:
        """Below the nearest ancestor that has arrived; the parent that is missing is named."""
        path = form.get("path")
        parent = form.get("parent")
        if not isinstance(path, list) or parent is None or parent in self._copies:
            return
        nearest = next((above for above in reversed(path) if above in self._copies and above != form.get("id")), None)
        if nearest is not None:
            form["parent"], form["missing_parent"] = nearest, parent

    def _is_top(self, form: dict[str, Any]) -> bool:
        return form.get("parent") not in self._copies or form.get("parent") == form.get("id")


def _share(copies: list[dict[str, Any]]) -> None:
    """A run told in parts (begun, ended, updated): each part gets what only another one says."""
    if len(copies) < 2:
        return
    ordered = sorted(copies, key=lambda form: (form.get("end") is None, str(sorted(form.items(), key=str))))
    whole: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for form in ordered:
        for key, value in form.items():
            whole.setdefault(key, value)
        held = form.get("rest")
        if isinstance(held, dict):
            rest = {**held, **rest}
    kinds = [value for form in ordered if (value := _attributes(form).get("langsmith.span.kind")) not in (None, "run")]
    for form in copies:
        form.update({key: value for key, value in whole.items() if key not in form})
        if rest:
            form["rest"] = rest
        if kinds:
            _attributes(form)["langsmith.span.kind"] = kinds[0]


def _attributes(form: dict[str, Any]) -> dict[str, Any]:
    found = form.get("attributes")
    if not isinstance(found, dict):
        found = form["attributes"] = {}
    return found


def _speaks(form: dict[str, Any]) -> bool:
    """Whether a run is a model's and its words were captured."""
    return kind_of(_attributes(form)) == "model" and any(name.startswith(_SPOKEN) for name in _attributes(form))


def _is_quiet(form: dict[str, Any], kind: str, speaking: bool, around: set[str]) -> bool:
    """Whether a run says nothing of its own: a chain, an agent that no model ran below, a model's empty event."""
    if kind == "agent":
        return not _is_agent(form) or (speaking and form.get("id") not in around)
    return kind == "model" and speaking and not _tells(_attributes(form))


def _tells(attributes: dict[str, Any]) -> bool:
    """Whether a model's run says anything but that it was there: words, a model, counts."""
    return any(name.startswith((*_SPOKEN, "gen_ai.usage.", "gen_ai.response.model", "llm.")) for name in attributes)


def _has_words(form: dict[str, Any]) -> bool:
    return any(_attributes(form).get(name) not in (None, "", [], {}) for name in ("input", "output"))


def _is_agent(form: dict[str, Any]) -> bool:
    return Span("", "", "", kind="agent", attributes=_attributes(form)).is_agent()


def read_run(span: Span, memory: Memory) -> Turn:
    """What a run says: its own input and output, or its OpenTelemetry attributes, whichever says more."""
    logged = turn_of(span, memory)
    given, said = span.attributes.get("input"), span.attributes.get("output")
    if given is None and said is None:
        return logged
    question = asked(given)
    own = turn(question, answered(said))
    own.dialect, own.used = "run", {"input", "output"}
    split = len(own.answers) == 1 < len(logged.answers)  # several messages of one answer, told as choices
    best, other = (own, logged) if split or _weight(own) > _weight(logged) else (logged, own)
    best.inputs, best.answers = best.inputs or other.inputs, best.answers or other.answers
    best.tools = best.tools or other.tools
    reader = Reader(span, memory)
    if best.tools is None:
        best.tools = reader.take("gen_ai.tool.definitions")
    if not any(message.role in ("system", "developer") for message in best.inputs):
        best.inputs = [*instructions(reader), *best.inputs]
    best.used = best.used | other.used | reader.used
    best.cut = best.cut or "preview" in span.attributes
    name = said.get("id") if isinstance(said, dict) else None
    best.response_id = best.response_id or (name if isinstance(name, str) else None)
    return best


def _weight(said: Turn) -> tuple[int, int, int]:
    """How much a turn says: both sides, atoms, characters."""
    told = [atom for message in said.inputs for atom in atoms(message)]
    told += [atom for answer in said.answers for message in answer for atom in atoms(message)]
    return (bool(said.inputs) + bool(said.answers), len(told), sum(len(word) for atom in told for word in atom))


Stringing = Callable[[list[Thread]], list[Thread]]


def strung(made: list[Thread]) -> list[Thread]:
    """Threads of several traces of one session as one, where a later one's history begins with all of an earlier one.

    Instructions are no part of this where the later one has none (the state of a graph has not).
    """
    told: dict[tuple[Atom, ...], Thread] = {}
    joined: dict[int, Thread] = {}
    kept: list[Thread] = []
    for thread in sorted(made, key=lambda thread: thread.calls[0].span.at()):
        before = _continued(thread, told) if thread.captured and thread.parent is None else None
        if before is None:
            kept.append(thread)
        else:
            joined[id(thread)] = before
            _instruct(thread, before)
            before.calls += thread.calls
            thread = before
        if thread.captured:
            told.setdefault(_whole(thread), thread)
    for thread in kept:
        while thread.parent is not None and id(thread.parent) in joined:
            thread.parent = joined[id(thread.parent)]
    return _owners_first(kept)


def _owners_first(kept: list[Thread]) -> list[Thread]:
    """In the order of conversations, a thread after the one it branched off."""
    ordered = sorted(kept, key=lambda thread: (thread.scope, thread.branch != "", *thread.calls[0].span.at()))
    placed: set[int] = set()
    made: list[Thread] = []
    while ordered:
        ready = [thread for thread in ordered if thread.parent is None or id(thread.parent) in placed] or ordered
        made += ready
        placed.update(id(thread) for thread in ready)
        ordered = [thread for thread in ordered if id(thread) not in placed]
    return made


def _continued(thread: Thread, told: dict[tuple[Atom, ...], Thread]) -> Thread | None:
    """The thread of an earlier trace that this one goes on from."""
    if not told:
        return None
    first = thread.calls[0].turn.inputs
    history = _atoms(first)
    for end in range(len(history), 1, -1):
        before = told.get(tuple(history[:end]))
        if before is None or before.scope == thread.scope:
            continue
        instructions = _instructions(first)
        if not instructions or instructions == _instructions(before.calls[0].turn.inputs):
            del told[tuple(history[:end])]
            return before
    return None


def _instruct(thread: Thread, before: Thread) -> None:
    """Give calls without instructions those of the thread that they continue, so that both count the same."""
    leading = [message for message in before.calls[0].turn.inputs if message.role in _INSTRUCTIONS]
    for call in thread.calls:
        if leading and not _instructions(call.turn.inputs):
            count = len([atom for message in leading for atom in atoms(message)])
            call.turn.inputs = [*leading, *call.turn.inputs]
            call.lengths = [len(atoms(message)) for message in call.turn.inputs]
            call.path, call.depth = [*[-1] * count, *call.path], call.depth + count


def _instructions(told: Sequence[Message]) -> list[Atom]:
    return [atom for message in told if message.role in _INSTRUCTIONS for atom in atoms(message)]


def _atoms(told: Sequence[Message]) -> list[Atom]:
    """What is said, instructions aside."""
    return [atom for message in told if message.role not in _INSTRUCTIONS for atom in atoms(message)]


def _whole(thread: Thread) -> tuple[Atom, ...]:
    """Everything said in a thread up to its last answer."""
    last = thread.calls[-1]
    return tuple(_atoms([*last.turn.inputs, *last.answer()]))
