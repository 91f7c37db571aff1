"""Runs (observations of Langfuse, runs of LangSmith) into rows: `_otlp_rows.py` does it, told what these tools mean.

* Chains, graphs and plain spans only speak where no model does: they repeat what models said. The topmost of them does
  then, so that a trace of nothing else is a row, and words that models did not capture are lent to these.
* A run whose parent never arrived hangs below the nearest ancestor that did, where its path is known.
* A trace of a session (a thread) whose history goes on from the end of an earlier one continues that row.
* What a graph said at last is told where the model's own run never arrived.
* What no column tells of a run is kept with its message; runs around it are listed there, too (`_run_remains.py`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from etl.adapters._langchain import opened_all
from etl.adapters._otlp_dialects import turn_of
from etl.adapters._otlp_messages import tool_call
from etl.adapters._otlp_rows import conversations
from etl.adapters._otlp_semconv import instructions
from etl.adapters._otlp_span import Span, kind_of
from etl.adapters._otlp_threads import atoms
from etl.adapters._otlp_turn import Memory, Reader, Turn
from etl.adapters._run_remains import Remains
from etl.adapters._run_streams import whole
from etl.adapters._run_strings import strung
from etl.adapters._run_tools import tool_words
from etl.adapters._run_values import answered, asked, turn
from etl.conversation import Conversation, Ignored, Message, StoredEvent
from etl.decode import JsonError, decode

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
SILENT = "chain"
"""Operation of a span that is not to speak."""
MANY, TOKEN = 12, 10
"""From so many messages on, of so few characters on average, an answer is a stream's."""
_SPOKEN = ("input", "output", "gen_ai.input.messages", "gen_ai.output.messages", "llm.input_messages", "ai.prompt")


def rows_of(family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
    """The rows of one family of traces, and what none of them tells."""
    traces: dict[str, Runs] = {}
    for event in family:
        traces.setdefault(event.link or event.key, Runs()).add(event)
    for runs in traces.values():
        runs.prepare()
    rows, used = conversations(family, functools.partial(read_run, {}), strung)
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
            _open(form)
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


def _open(form: dict[str, Any]) -> None:
    """Input and output as values, opened once; what is unusual about their text is said of the run's record."""
    attributes = _attributes(form)
    for side in ("input", "output"):
        text = attributes.get(side)
        if isinstance(text, str) and text:
            attributes[side] = opened_all(text)
            if side == "output" and kind_of(attributes) != "tool":
                attributes[side] = whole(attributes[side])
            if _ESCAPED_SURROGATE.search(text):
                _note(form, text)


def _note(form: dict[str, Any], text: str) -> None:
    try:
        _, notes, mended = decode(text.encode("utf-8", "surrogatepass"))
    except JsonError:
        return
    form["notes"] = sorted({*form.get("notes", ()), *notes})
    form["mended"] = [*form.get("mended", ()), *mended]


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


def read_run(known: dict[bytes, list[Message]], span: Span, memory: Memory) -> Turn:
    """What a run says: its own input and output, or its OpenTelemetry attributes, whichever says more."""
    logged = turn_of(span, memory)
    logged.answers = [_joined(answer) for answer in logged.answers]
    given, said = opened_all(span.attributes.get("input")), opened_all(span.attributes.get("output"))
    if given is None and said is None:
        return logged
    own = turn(asked(given, known), [_joined(answer) for answer in answered(said)])
    own.dialect, own.used = "run", {"input", "output"}
    split = len(own.answers) == 1 < len(logged.answers)  # several messages of one answer, told as choices
    best, other = (own, logged) if split or _weight(own) > _weight(logged) else (logged, own)
    best.inputs, best.answers = best.inputs or other.inputs, best.answers or other.answers
    best.tools = best.tools or other.tools
    reader = Reader(span, memory)
    if best.tools is None:
        best.tools = reader.take("gen_ai.tool.definitions")
    answer = said if isinstance(said, dict) else {}
    if not any(message.role in ("system", "developer") for message in best.inputs):
        told = answer.get("instructions")
        leading = instructions(reader) or ([Message("system", told)] if isinstance(told, str) and told else [])
        best.inputs = [*leading, *best.inputs]
    best.tools = best.tools or answer.get("tools")
    best.used = best.used | other.used | reader.used | {"tool_calls"}
    _call(best, span.attributes.get("tool_calls"))
    best.cut = best.cut or "preview" in span.attributes
    name = answer.get("id")
    best.response_id = best.response_id or (name if isinstance(name, str) else None)
    return best


def _joined(answer: list[Message]) -> list[Message]:
    """An answer; where it was logged as it streamed, a message for each token, it is one text."""
    text = "".join(message.content for message in answer)
    plain = all(message.role == "assistant" and not (message.calls or message.reasoning) for message in answer)
    if not plain or len(answer) < MANY or len(text) > TOKEN * len(answer):
        return answer
    return [replace(answer[-1], content=text)]


def _call(said: Turn, listed: Any) -> None:
    """Calls that stand beside an answer, where the answer itself has none."""
    if len(said.answers) == 1 and isinstance(listed, list):
        spoken = [message for message in said.answers[0] if message.role == "assistant"]
        calls = [made for item in listed if (made := tool_call(opened_all(item))) is not None]
        if spoken and calls and not any(message.calls for message in spoken):
            spoken[-1].calls = calls


def _weight(said: Turn) -> tuple[int, int, int]:
    """How much a turn says: both sides, atoms, characters."""
    told = [atom for message in said.inputs for atom in atoms(message)]
    told += [atom for answer in said.answers for message in answer for atom in atoms(message)]
    return (bool(said.inputs) + bool(said.answers), len(told), sum(len(word) for atom in told for word in atom))
