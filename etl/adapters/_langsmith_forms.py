"""LangSmith's runs and feedback into the stored forms of spans and annotations (`_otlp_shapes.py`, `_otlp_outside.py`).

A run can be there whole (an export, a row of Parquet with JSON as text), as a `post` and a `patch` of the SDK, with its
children inside it, or in parts (`post.<id>.inputs`). Its place in the tree is its `dotted_order`, else `parent_run_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from etl.adapters._langchain import opened_all
from etl.adapters._otlp_outside import annotation_form
from etl.adapters._otlp_values import put
from etl.adapters._run_fragments import Unit
from etl.adapters._run_streams import whole
from etl.adapters._run_usage import usage_of
from etl.conversation import Tokens

RUN_TYPES = frozenset({"llm", "chain", "tool", "retriever", "embedding", "prompt", "parser"})
_THREADS = ("thread_id", "session_id", "conversation_id")
"""Keys of a run's metadata that name the thread that its trace belongs to, in order of precedence."""
_WHO = {"app": "HUMAN", "model": "LLM", "auto_eval": "LLM"}
_PART = re.compile(r"(?:post|patch)\.([0-9a-fA-F-]{8,40})(?:\.(\w+))?\Z")
_SEGMENT = re.compile(r"\d{8}T\d{6,12}Z")
_HOLDERS = ("post", "patch", "runs", "data", "traces", "feedback", "feedbacks", "items")
_BOOKKEEPING = frozenset(
    {
        *(
            "child_run_ids",
            "direct_child_run_ids",
            "parent_run_ids",
            "execution_order",
            "manifest_id",
            "manifest_s3_id",
        ),
        *("inputs_s3_urls", "outputs_s3_urls", "s3_urls", "last_queued_at", "share_token", "trace_tier", "ttl_seconds"),
        *("trace_first_received_at", "trace_upgrade", "trace_min_start_time", "trace_max_start_time", "tenant_id"),
        *("price_model_id", "in_dataset", "inputs_or_signed_url", "outputs_or_signed_url", "inputs_preview"),
        *("outputs_preview", "is_root", "parent_run_depth", "prompt_tokens", "completion_tokens", "total_tokens"),
        *("prompt_cost", "completion_cost", "total_cost", "prompt_token_details", "completion_token_details"),
        *("prompt_cost_details", "completion_cost_details", "latency", "latency_seconds", "duration", "child_runs"),
        *("error_preview", "trace_start_time", "received_at", "created_at", "modified_at", "month", "year", "day"),
    }
)
"""Keys of the store itself, previews, counts (which columns hold) and what follows from times: left out."""
_SHARED = ("session_name", "session_id", "project_name", "project_id", "app_path", "release")


def what(item: Any) -> str | None:
    """run, feedback, parts or holder; None for anything else."""
    if not isinstance(item, dict):
        return None
    if _identifier(item) is not None and _is_run(item):
        return "run"
    if _text(item.get("key")) and (item.get("run_id") or item.get("trace_id")) and item.keys() & _FEEDBACK:
        return "feedback"
    if item and all(isinstance(key, str) and _PART.match(key) for key in item):
        return "parts"
    if isinstance(item.get("run"), dict) and what(item["run"]) == "run":
        return "holder"
    held = [item[key] for key in _HOLDERS if isinstance(item.get(key), list)]
    if {"post", "patch"} <= item.keys() and not any(held):
        return "holder"
    return "holder" if any(what(inner) in ("run", "feedback") for items in held for inner in items[:3]) else None


_FEEDBACK = frozenset({"score", "value", "comment", "correction", "feedback_source"})


def _is_run(item: dict[str, Any]) -> bool:
    sort = item.get("run_type")
    if (
        isinstance(sort, str)
        and sort.lower() in RUN_TYPES
        and item.keys() & {"start_time", "inputs", "trace_id", "dotted_order"}
    ):
        return True
    order = item.get("dotted_order")  # a patch need not say its type again
    return isinstance(order, str) and _SEGMENT.match(order) is not None


def units(item: Any) -> Iterator[Unit]:
    """Every run and feedback that a framed record holds."""
    if isinstance(item, list):
        for inner in item:
            yield from units(inner)
        return
    kind = what(item)
    if kind == "run":
        yield from _runs(item, None, None)
    elif kind == "feedback":
        yield _feedback(item)
    elif kind == "parts":
        yield from units(_joined(item))
    elif kind == "holder":
        if isinstance(item.get("run"), dict):
            yield from units(item["run"])
        for key in _HOLDERS:
            if isinstance(item.get(key), list):
                yield from units(item[key])
    else:
        yield Unit(None, item)


def _joined(parts: dict[str, Any]) -> list[Any]:
    """Parts of a multipart upload as runs: `post.<id>` with `post.<id>.inputs`, `.outputs`, …."""
    runs: dict[str, dict[str, Any]] = {}
    for key, value in parts.items():
        found = _PART.match(key)
        value = opened_all(value)
        if found is not None and found[2] is None and isinstance(value, dict):
            runs.setdefault(found[1], {}).update(value)
        elif found is not None and found[2] is not None:
            runs.setdefault(found[1], {})[found[2]] = value
    return [{"id": name, **run} for name, run in runs.items()]


def _runs(item: dict[str, Any], trace: str | None, parent: str | None) -> Iterator[Unit]:
    """A run, then its children where they are inside it."""
    path = _path(item.get("dotted_order"))
    own = _identifier(item)
    above = _text(item.get("parent_run_id")) or (path[-2] if len(path) > 1 else parent)
    root = _text(item.get("trace_id")) or (path[0] if path else None) or trace
    if root is None:
        listed = opened_all(item.get("parent_run_ids"))
        root = next((name for name in listed if isinstance(name, str)), None) if isinstance(listed, list) else None
    root = root or above or own
    yield _run(item, own, above, root, path)
    children = opened_all(item.get("child_runs"))
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict) and _identifier(child) is not None:
            yield from _runs(child, root, own)


def _path(order: Any) -> list[str]:
    """The ids of a dotted order, from the root to the run itself.

    >>> _path("20241011T205820695375Zaa.20241011T205821000000Zbb")
    ['aa', 'bb']
    """
    if not isinstance(order, str):
        return []
    return [segment.partition("Z")[2] for segment in order.split(".") if _SEGMENT.match(segment)]


def _run(item: dict[str, Any], own: str | None, parent: str | None, trace: str | None, path: list[str]) -> Unit:
    """The normal form of one run."""
    fields = {key: value for key, value in item.items() if value is not None and value != ""}
    logged = fields.pop("run_type", None)
    sort = logged.lower() if isinstance(logged, str) else None
    status = str(fields.get("status", "success")).lower()
    extra = opened_all(fields.pop("extra", None))
    extra = dict(extra) if isinstance(extra, dict) else {} if extra in (None, "", []) else {"extra": extra}
    metadata = opened_all(extra.pop("metadata", fields.pop("metadata", None)))
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    form: dict[str, Any] = {"signal": "span"}
    put(form, trace=trace, id=own, parent=parent, name=_text(fields.get("name")))
    put(form, start=fields.get("start_time"), end=fields.get("end_time"), path=path[:-1])
    error = fields.get("error")
    if error or status == "error":
        form["status"] = {"code": "error"}
        put(form["status"], message=error if isinstance(error, str) else None)
    given = opened_all(fields.get("inputs", fields.get("inputs_preview")))
    said = opened_all(fields.get("outputs", fields.get("outputs_preview")))
    said = said if sort == "tool" else whole(said)
    events, tokens_seen, first = _events(opened_all(fields.get("events")))
    if said in (None, "", {}) and tokens_seen:
        said = "".join(tokens_seen)
    attributes: dict[str, Any] = {}
    kind = ("agent" if metadata.get("ls_agent_type") else "run") if sort == "chain" else sort
    put(attributes, **{"langsmith.span.kind": kind}, input=given, output=said)
    if sort == "tool":
        put(attributes, **{"gen_ai.tool.name": fields.get("name")})
    elif sort in ("llm", None):
        _say_facts(attributes, fields, said, metadata, extra)
    if not {"inputs", "outputs"} & fields.keys() and {"inputs_preview", "outputs_preview"} & fields.keys():
        attributes["preview"] = True
    put(form, attributes=attributes, resource=_resource(fields, extra))
    held = {"id", "run_id", "trace_id", "parent_run_id", "name", "start_time", "end_time", "inputs", "outputs", "error"}
    held |= {"events", "status", "feedback_stats", *_BOOKKEEPING}
    rest = {key: opened_all(value) for key, value in fields.items() if key not in held}
    put(rest, **{**extra, "events": events or extra.get("events"), "metadata": metadata})
    put(rest, stream_chunks=len(tokens_seen) or None)
    put(rest, first_token_time=rest.get("first_token_time", first))
    if status not in ("success", "error"):
        rest["status"] = fields["status"]
    put(form, rest={key: value for key, value in rest.items() if value not in (None, "", [], {})})
    stats = opened_all(fields.get("feedback_stats"))
    if isinstance(stats, dict):
        put(form, scores=list(_sums(own, stats)))
    thread = next((found for key in _THREADS if (found := _text(metadata.get(key)))), _text(fields.get("thread_id")))
    return Unit(form if own is not None else None, item, trace, thread)


def _events(events: Any) -> tuple[list[Any], list[str], Any]:
    """Events of a run that say more than that it went on, the tokens of its stream, and when the first came."""
    told: list[Any] = []
    seen: list[str] = []
    first = None
    for event in events if isinstance(events, list) else ():
        name = event.get("name") if isinstance(event, dict) else None
        kwargs = event.get("kwargs") if isinstance(event, dict) else None
        if name == "new_token":
            token = kwargs.get("token") if isinstance(kwargs, dict) else None
            seen.append(token if isinstance(token, str) else "")
            first = first or event.get("time")
        elif name not in ("start", "end") or kwargs:
            told.append(event)
    return told, seen, first


def _resource(fields: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """What the runs of a trace share: told once a row."""
    runtime = opened_all(extra.pop("runtime", None))
    made: dict[str, Any] = {"runtime": runtime} if isinstance(runtime, dict) and runtime else {}
    for key in _SHARED:
        if fields.get(key) not in (None, "", [], {}):
            made[key] = fields.pop(key)
    return made


def _say_facts(
    attributes: dict[str, Any], fields: dict[str, Any], said: Any, metadata: dict[str, Any], extra: dict[str, Any]
) -> None:
    """Model, provider, counts and tools of a model's run, under the names that `_otlp_facts.py` knows."""
    asked = opened_all(extra.pop("invocation_params", None))
    asked = dict(asked) if isinstance(asked, dict) else {}
    answer = said if isinstance(said, dict) else {}
    about = answer.get("llm_output")
    places = ((about, "model_name"), (about, "model"), (metadata, "ls_model_name"), (asked, "model"))
    named = [answer.get("model")]
    named += [
        place.get(key)
        for place, key in (*places, (asked, "model_name"), (metadata, "model"))
        if isinstance(place, dict)
    ]
    put(attributes, **{"gen_ai.response.model": next((name for name in named if _text(name)), None)})
    put(attributes, **{"gen_ai.provider.name": metadata.pop("ls_provider", None)})
    tools = asked.pop("tools", None) or asked.pop("functions", None)
    put(attributes, **{"gen_ai.tool.definitions": tools})
    put(extra, invocation_params=asked)
    counted = usage(fields, said, metadata)
    if counted is not None:
        columns = {name: getattr(counted, column) for column, name in _COLUMNS.items()}
        attributes.update({f"gen_ai.usage.{name}": count for name, count in columns.items() if count is not None})


_COLUMNS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_creation.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
    "cost_usd": "cost",
}
"""Column of `usage` → the attribute that holds it, without its prefix."""


def usage(fields: dict[str, Any], said: Any, metadata: dict[str, Any]) -> Tokens | None:
    """Counts of one model's run, each once: the most detailed of the places that hold them.

    >>> usage({"prompt_tokens": 25, "completion_tokens": 5}, {"generations": [[{"text": "Hi"}]]}, {}).input_tokens
    25
    """
    found = next((counts for place in _usage_places(said) if (counts := usage_of(place)) is not None), None)
    found = found or usage_of(metadata.pop("usage_metadata", None))
    if found is None:
        plain: dict[str, Any] = {key: fields[key] for key in ("prompt_tokens", "completion_tokens") if fields.get(key)}
        details = {"input_token_details": "prompt_token_details", "output_token_details": "completion_token_details"}
        found = usage_of({**plain, **{key: opened_all(fields.get(name)) for key, name in details.items()}})
    cost = fields.get("total_cost")
    if isinstance(cost, str):
        cost = _number(cost)
    if found is not None and isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost > 0:
        found.cost_usd = float(cost)
    return found


def _usage_places(said: Any) -> Iterator[Any]:
    if not isinstance(said, dict):
        return
    yield from (said.get("usage_metadata"), said.get("usage"))
    listed = said.get("generations")
    while isinstance(listed, list) and listed and isinstance(listed[0], list):
        listed = listed[0]
    first = listed[0] if isinstance(listed, list) and listed else said.get("message", said.get("output"))
    for holder in (first, first.get("message") if isinstance(first, dict) else None):
        if isinstance(holder, dict):
            fields = holder["kwargs"] if isinstance(holder.get("kwargs"), dict) else holder
            about = fields.get("response_metadata")
            yield fields.get("usage_metadata")
            if isinstance(about, dict):
                yield from (about.get("token_usage"), about.get("tokenUsage"), about.get("usage"))
    about = said.get("llm_output", said.get("llmOutput"))
    if isinstance(about, dict):
        yield from (about.get(key) for key in ("token_usage", "tokenUsage", "usage", "estimatedTokenUsage"))


def _feedback(item: dict[str, Any]) -> Unit:
    """Feedback as an annotation of its run, else of its trace."""
    run, trace = _text(item.get("run_id")), _text(item.get("trace_id"))
    source = opened_all(item.get("feedback_source"))
    who = source.get("type") if isinstance(source, dict) else item.get("feedback_source_type", source)
    value, label = item.get("score"), item.get("value")
    if value is None:
        value, label = label, None
    elif label is not None and not isinstance(label, str):
        label = None if label == value else str(label)
    left: dict[str, Any] = {}
    put(left, correction=opened_all(item.get("correction")), source=source, extra=opened_all(item.get("extra")))
    put(left, config=opened_all(item.get("feedback_config")), group=item.get("feedback_group_id"))
    form = annotation_form(
        "span" if run is not None else "trace", str(run or trace), item.get("key"),
        _WHO.get(who, who) if isinstance(who, str) else None,
        value=value, label=label, reason=item.get("comment"), rest=left,
    )  # fmt: skip
    return Unit(form, item, trace)


def _sums(run: str | None, stats: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The feedback of a run, summed up by key: all that some exports have."""
    for name, told in sorted(stats.items()):
        if isinstance(told, dict) and (told.get("avg") is not None or told.get("values")):
            left = {key: value for key, value in told.items() if key != "avg" and value not in (None, [], {})}
            yield annotation_form("span", str(run), name, None, value=told.get("avg"), rest={"stats": left})


def _identifier(item: dict[str, Any]) -> str | None:
    return _text(item.get("id")) or (_text(item.get("run_id")) if "run_type" in item else None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else str(value) if type(value) is int else None
