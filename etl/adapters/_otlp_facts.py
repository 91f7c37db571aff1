"""What every dialect says about a model response beside its messages: model, provider, usage, how it ended.

The names differ, the meaning does not, and a span often carries them under the names of two dialects: one table.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from etl.adapters._otlp_span import CONVERSATION_IDS, OPERATIONS, Span, opened
from etl.adapters._otlp_turn import Turn
from etl.adapters._usage import whole_input
from etl.conversation import Tokens

MODEL = (
    "gen_ai.response.model",
    "ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "ai.model.id",
    "llm.request.model",
    "mlflow.llm.model",
)
PROVIDER = (
    "gen_ai.provider.name",
    "gen_ai.system",
    "llm.provider",
    "llm.system",
    "ai.model.provider",
    "llm.vendor",
    "mlflow.llm.provider",
)
RESPONSE_ID = ("gen_ai.response.id", "ai.response.id", "llm.response.id")
FINISH = (
    "gen_ai.response.finish_reasons",
    "ai.response.finishReason",
    "llm.finish_reason",
    "gen_ai.response.finish_reason",
)
AGENT = ("gen_ai.agent.name", "agent.name", "agent_name", "ai.telemetry.functionId", "graph.node.id")
ERROR = ("error.message", "exception.message", "error.type")
USAGE = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "llm.usage.prompt_tokens",
        "mlflow.chat.tokenUsage.input_tokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "llm.usage.completion_tokens",
        "mlflow.chat.tokenUsage.output_tokens",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
        "gen_ai.usage.details.cache_read_tokens",
        "mlflow.chat.tokenUsage.cache_read_input_tokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
        "gen_ai.usage.input_tokens.cached",
        "gen_ai.usage.input_cached_tokens",
        "gen_ai.usage.cached_input_tokens",
        "gen_ai.usage.cached_tokens",
        "llm.usage.cache_read_input_tokens",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "mlflow.chat.tokenUsage.cache_creation_input_tokens",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
        "gen_ai.usage.input_tokens.cache_write",
        "llm.usage.cache_creation_input_tokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
        "llm.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "ai.usage.outputTokenDetails.reasoningTokens",
        "gen_ai.usage.output_tokens.reasoning",
        "gen_ai.usage.output_reasoning_tokens",
    ),
    "cost_usd": ("gen_ai.usage.cost", "operation.cost", "llm.cost.total", "mlflow.llm.cost.total_cost"),
}
"""Column of `usage` → attributes that hold it, by precedence. Input includes what was cached, output reasoning."""

SUMS = frozenset(
    {"gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"}
)
"""Sums of two columns: left out."""
DESCRIPTIONS = frozenset({"logfire.json_schema", "logfire.msg_template", "mlflow.traceRequestId"})
"""What a viewer needs to show other attributes, and ids that a span has anyway: left out."""
REPEATS = {
    "request_data": ("messages", "input", "prompt", "tools", "functions", "model"),
    "response_data": ("message", "usage"),
}
"""Attributes that say again what a better dialect said: only their other keys are kept."""
_COUNT = re.compile(r"\d{1,15}(?:\.\d{1,12})?\Z", re.ASCII)
CHUNKS = frozenset({"llm.content.completion.chunk", "gen_ai.content.completion.chunk", "ai.stream.firstChunk"})
"""Events of a stream that say nothing but that it went on: their number is kept."""


class Facts(msgspec.Struct):
    """About one model response."""

    model: str | None = None
    provider: str | None = None
    response_id: str | None = None
    finish_reasons: list[str] = []
    agent: str | None = None
    usage: Tokens | None = None
    error: str | None = None
    used: set[str] = set()


def _ranked() -> dict[str, tuple[str, int]]:
    """Attribute → the fact it tells, and its rank among those that tell it."""
    tables = {"model": MODEL, "provider": PROVIDER, "response_id": RESPONSE_ID, "finish": FINISH, "agent": AGENT}
    tables |= {"error": ERROR, **USAGE}
    return {name: (fact, rank) for fact, names in tables.items() for rank, name in enumerate(names)}


_FACTS = _ranked()


@functools.lru_cache(4096)
def _telling(names: tuple[str, ...]) -> tuple[tuple[str, str, int], ...]:
    """The attributes among these that tell a fact, each with the fact and its rank: spans of a kind have the same."""
    return tuple((name, *_FACTS[name]) for name in names if name in _FACTS)


def facts_of(span: Span) -> Facts:
    """Read them off a span; where two attributes tell a fact, the better ranked one counts."""
    told: dict[str, list[tuple[int, Any, str]]] = {}
    for name, fact, rank in _telling(tuple(span.attributes)):
        plain = _plain(span.attributes[name], fact)
        if plain is not None:
            told.setdefault(fact, []).append((rank, plain, name))
    best: dict[str, Any] = {}
    used: set[str] = set()
    for fact, candidates in told.items():
        if len(candidates) > 1:
            value = min(candidates, key=lambda candidate: candidate[0])[1]
            used.update(name for _, other, name in candidates if other == value)
        else:
            _, value, name = candidates[0]
            used.add(name)
        best[fact] = value
    usage = {column: best[column] for column in USAGE if column in best}
    said = best.get("error")
    return Facts(
        best.get("model"),
        best.get("provider"),
        best.get("response_id"),
        best.get("finish", []),
        best.get("agent"),
        whole_input(Tokens(**usage)) if usage else None,
        (span.error or said or "error") if span.failed or span.error or said else None,
        used,
    )


def _plain(value: Any, fact: str) -> Any:
    """The value of a fact; None where it is none."""
    if fact in USAGE:
        return _number(value, fact)
    if fact == "finish":
        return _words(value)
    return value if isinstance(value, str) and value else None


def _words(value: Any) -> list[str] | None:
    """Why a response ended, one for each choice: a list, JSON text of one, or a word."""
    value = opened(value)
    if isinstance(value, str) and value:
        return [value]
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value
    return None


def _number(value: Any, column: str) -> int | float | None:
    """A count, or an amount of money; also from decimal text and whole floats."""
    if isinstance(value, str) and _COUNT.match(value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, float) and value.is_integer() and column != "cost_usd":
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return value
    return None


def unmodelled(span: Span, turn: Turn, facts: Facts) -> dict[str, Any]:
    """The attributes that no column holds and no rule leaves out."""
    left: dict[str, Any] = {}
    for name, value in span.attributes.items():
        if name in turn.used or name in facts.used or name in SUMS or name in DESCRIPTIONS:
            continue
        if (name in OPERATIONS and span.kind != "other") or (name in CONVERSATION_IDS and value == span.scope):
            continue
        if name in REPEATS and turn.said():
            value = opened(value)
            if not isinstance(value, dict):
                continue
            value = {key: item for key, item in value.items() if key not in REPEATS[name]}
            if not value:
                continue
        left[name] = value
    for name, value in turn.rest.items():
        left.setdefault(name, value)
    return left


def summed(counted: list[Tokens]) -> Tokens | None:
    """Usage of several responses together; a column is null where none of them has it."""
    if not counted:
        return None
    total = Tokens()
    for column in Tokens.__struct_fields__:
        values = [value for each in counted if (value := getattr(each, column)) is not None]
        if values:
            setattr(total, column, sum(values))
    return total


def counts(usage: Tokens | None) -> dict[str, Any]:
    """The columns that have a number."""
    held = {} if usage is None else msgspec.structs.asdict(usage)
    return {column: count for column, count in held.items() if count is not None}
