"""Token usage of every provider into one convention: input includes cached reads and writes, output includes reasoning.

OpenAI counts cached tokens inside `prompt_tokens`; Anthropic counts reads and writes beside `input_tokens`. Which of
the two a block means is told by its key names, never by its numbers.
"""

from __future__ import annotations

from typing import Any

from etl.conversation import Tokens


def tokens(usage: Any) -> Tokens | None:
    """Usage as OpenAI (chat or Responses) or Anthropic log it; None where it holds no counts.

    >>> tokens({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7}).input_tokens
    95
    >>> tokens({"prompt_tokens": 95, "prompt_tokens_details": {"cached_tokens": 90}}).cached_tokens
    90
    """
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        found = Tokens(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _detail(usage, "prompt_tokens_details", "cached_tokens"),
            None,
            _detail(usage, "completion_tokens_details", "reasoning_tokens"),
        )
    elif "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        read, written = _count(usage.get("cache_read_input_tokens")), _count(usage.get("cache_creation_input_tokens"))
        fresh = _count(usage.get("input_tokens"))
        total = None if fresh is None else fresh + (read or 0) + (written or 0)
        found = Tokens(total, _count(usage.get("output_tokens")), read, written)
    else:
        found = Tokens(
            _count(usage.get("input_tokens")),
            _count(usage.get("output_tokens")),
            _detail(usage, "input_tokens_details", "cached_tokens"),
            None,
            _detail(usage, "output_tokens_details", "reasoning_tokens"),
        )
    found.cost_usd = next((usage[key] for key in ("cost", "cost_usd") if type(usage.get(key)) in (int, float)), None)
    return found if found != Tokens() else None


def _count(value: Any) -> int | None:
    """A count that is no negative number; some gateways write whole floats, or text."""
    whole = type(value) is float and value.is_integer()
    if whole or (type(value) is str and value.isascii() and value.isdigit() and len(value) < 19):
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def _detail(usage: dict[str, Any], group: str, name: str) -> int | None:
    details = usage.get(group)
    return _count(details.get(name)) if isinstance(details, dict) else None
