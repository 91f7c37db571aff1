"""Weights & Biases Weave: calls of traced functions and model clients, as its API and its exports give them.

A call is `{id, trace_id, parent_id, op_name, started_at, ended_at, inputs, output, summary{usage}, exception}`. It is
told as the run that it was (see `_langsmith_forms.py`). The key is the trace, a thread joins traces to a family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langchain import opened_all
from etl.adapters._langsmith_forms import units
from etl.adapters._rollouts import obj, text
from etl.adapters._run_fragments import Unit, fragments
from etl.adapters._runs import rows_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_PAGES = ("calls", "data")
_OP = re.compile(r"(?:weave:///[^:]*/op/)?([^:]+)(?::[\w*]+)?\Z")
_CLIENTS = re.compile(
    r"completions?\.create|chat\.completions|messages\.(?:create|parse|stream)|responses\.(?:create|parse|stream)|litellm\.|"
    r"generate_content|chat\.(?:complete|parse|stream)|ollama\.chat|client(?:v2)?\.chat|chat_completion|converse(?:_stream)?\Z|"
    r"invoke_model|(?-i:Chat\w*\Z)",
    re.IGNORECASE,
)
"""Names of traced methods of model clients."""
_HELD = frozenset({
    "id", "trace_id", "parent_id", "op_name", "display_name", "started_at", "ended_at", "inputs", "output", "summary",
    "exception", "project_id", "wb_user_id", "wb_run_id", "deleted_at", "storage_size_bytes", "thread_id", "turn_id",
    "total_storage_size_bytes", "started_at_ms", "ended_at_ms",
})  # fmt: skip


class Weave(Adapter):
    """Calls of traced functions."""

    name = "weave"
    version = 3
    about = (
        "Weave (Weights & Biases) calls: {id, trace_id, parent_id, op_name, inputs, output, summary}, alone or paged"
    )
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page without calls",
        "not_told": "a call of a trace without model, agent or tool",
    }

    def score(self, sample: Sample) -> float:
        """Sure of calls by their keys; the share of the values that hold one."""
        if not sample.values:
            return 0.0
        return sum(0.95 for value in sample.values if any(map(_is_call, _calls(value)))) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every call."""
        for record in records:
            yield from fragments(record, _units(record.value), "weave", "no call of Weave")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family of traces."""
        yield from rows_of(family)


def _is_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"trace_id", "op_name", "started_at"} <= value.keys()
        and bool(value.keys() & {"inputs", "output"})
    )


def _calls(value: Any) -> Iterator[Any]:
    """The calls of a page; a value that is none as it is."""
    if isinstance(value, dict) and not _is_call(value):
        page = next((value[key] for key in _PAGES if isinstance(value.get(key), list)), None)
        yield from [value] if page is None else page
    else:
        yield value


def _units(value: Any) -> Iterator[Unit]:
    for call in _calls(value):
        if _is_call(call) and text(call.get("id")):
            yield from (unit._replace(item=call) for unit in units(_run({k: opened_all(v) for k, v in call.items()})))
        else:
            yield Unit(None, call)


def _run(call: dict[str, Any]) -> dict[str, Any]:
    """The call as a run of LangSmith has it."""
    named = _OP.match(str(call.get("op_name")))
    operation = named[1] if named else str(call.get("op_name"))
    inputs = {key: value for key, value in obj(call, "inputs").items() if key != "self"}
    output = call.get("output")
    kind = obj(obj(call, "attributes"), "weave").get("kind") or obj(call, "attributes").get("kind")
    model = kind == "llm" or _CLIENTS.search(operation) is not None
    counted = obj(obj(call, "summary"), "usage")
    usage = next((found for found in counted.values() if isinstance(found, dict)), None)
    metadata: dict[str, Any] = {"usage_metadata": usage} if usage and not _has_usage(output) else {}
    if text(inputs.get("model")):
        metadata["ls_model_name"] = inputs["model"]
    if text(call.get("thread_id")):
        metadata["thread_id"] = call["thread_id"]
    return {
        "id": call["id"], "trace_id": call["trace_id"], "parent_run_id": call.get("parent_id"),
        "name": text(call.get("display_name")) or operation, "start_time": call.get("started_at"),
        "run_type": "llm" if model else "tool" if kind == "tool" else "chain", "end_time": call.get("ended_at"),
        "inputs": inputs if inputs else call.get("inputs"), "outputs": output, "error": call.get("exception"),
        "extra": {"metadata": metadata, **{key: item for key, item in call.items() if key not in _HELD}},
    }  # fmt: skip


def _has_usage(output: Any) -> bool:
    return isinstance(output, dict) and bool(output.get("usage"))
