"""What Langfuse counts of a generation, under the names of every version, as the attributes of `_otlp_facts.py`."""

from __future__ import annotations

import functools
import re
from typing import Any

from etl.adapters._langchain import opened_all
from etl.adapters._otlp_values import put

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


@functools.lru_cache(4096)
def snake(name: str) -> str:
    """A key in snake case.

    >>> snake("parentObservationId"), snake("Trace ID"), snake("usage_details")
    ('parent_observation_id', 'trace_id', 'usage_details')
    """
    return _BOUNDARY.sub("_", name).strip("_").lower()


def fields_of(item: dict[str, Any]) -> dict[str, Any]:
    """An object with its keys in snake case, the nulls and empty texts of exports left out."""
    return {snake(key): value for key, value in item.items() if value is not None and value != ""}


def usage(fields: dict[str, Any]) -> dict[str, int | float]:
    """Counts of one generation, each once, whichever of the keys hold them.

    Langfuse counts what was cached or thought beside `input` and `output`, unless the total says that it is within.

    >>> usage({"usage_details": {"input": 179, "output": 35, "output_reasoning": 64, "total": 278}})
    {'gen_ai.usage.input_tokens': 179, 'gen_ai.usage.output_tokens': 99, 'gen_ai.usage.reasoning.output_tokens': 64}
    """
    details = opened_all(fields.get("usage_details"))
    counts = (
        {snake(key): count for key, value in details.items() if (count := whole(value)) is not None}
        if isinstance(details, dict)
        else {}
    )
    if not any(counts.values()):
        counts = _plain_usage(fields)
    made: dict[str, int | float] = {}
    if any(counts.values()):
        read, written = _sides(counts)
        put(made, **{"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": written})
        for column, words in _DETAILS.items():
            found = max((count for key, count in counts.items() if any(word in key for word in words)), default=0)
            if found:
                made[f"gen_ai.usage.{column}"] = found
    costs = [amount(fields.get(key)) for key in _COSTS] + [_total(fields.get(key)) for key in _COST_DETAILS]
    cost = next((found for found in costs if found), None)
    if cost is not None:
        made["gen_ai.usage.cost"] = cost
    return made


_COST_DETAILS = ("cost_details", "provided_cost_details")
_COST_DETAILS = ("cost_details", "provided_cost_details")
_COSTS = ("total_cost", "calculated_total_cost")
_DETAILS = {
    "cache_read.input_tokens": ("cache_read", "cached"),
    "cache_creation.input_tokens": ("cache_creation", "cache_write"),
    "reasoning.output_tokens": ("reasoning",),
}


def _sides(counts: dict[str, int]) -> tuple[int | None, int | None]:
    """Tokens read and written: what is counted beside `input` and `output` is added as the total says, else once."""
    read, written = counts.get("input", 0), counts.get("output", 0)
    beside = sum(count for key, count in counts.items() if key.startswith("input_") and key != "input_tokens")
    cached = sum(counts.get(key, 0) for key in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    thought = sum(count for key, count in counts.items() if key.startswith("output_") and key != "output_tokens")
    ways = [(max(beside, cached), thought), (0, 0), (beside, 0), (cached, 0), (0, thought), (beside + cached, thought)]
    more = next((way for way in ways if read + written + sum(way) == counts.get("total")), ways[0])
    given = "input" in counts or bool(more[0])
    return (read + more[0] if given else None, written + more[1] if "output" in counts or more[1] else None)


def _plain_usage(fields: dict[str, Any]) -> dict[str, int]:
    """Counts under the names of earlier versions."""
    older = opened_all(fields.get("usage"))
    told = fields_of(older) if isinstance(older, dict) else {}
    if str(told.get("unit", fields.get("unit", "TOKENS"))).upper() not in ("TOKENS", ""):
        return {}
    made: dict[str, int] = {}
    for side, names in _OLDER.items():
        count = next((found for holder in (told, fields) for name in names if (found := whole(holder.get(name)))), None)
        if count is not None:
            made[side] = count
    return made


_OLDER = {
    "input": ("input", "input_usage", "prompt_tokens", "input_tokens"),
    "output": ("output", "output_usage", "completion_tokens", "output_tokens"),
    "total": ("total", "total_usage", "total_tokens"),
}


def whole(value: Any) -> int | None:
    """A count that is no negative number, also from text and whole floats."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer() and 0 <= value < 1 << 62:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def amount(value: Any) -> float | None:
    """A sum of money, or any number."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )


def _total(value: Any) -> float | None:
    details = opened_all(value)
    if not isinstance(details, dict):
        return None
    total = amount(details.get("total"))
    if total is not None:
        return total
    parts = [part for part in map(amount, details.values()) if part is not None]
    return sum(parts) if parts else None
