"""Token usage of every provider into one convention: input includes cached reads and writes, output includes reasoning.

OpenAI counts cached tokens inside `prompt_tokens`; Anthropic counts reads and writes beside `input_tokens`. Which of
the two a block means is told by its key names; only a whole that is less than one of its parts cannot hold it.
"""

from __future__ import annotations

from typing import Any

from etl.conversation import Tokens

_INSIDE_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_INSIDE_WRITTEN = ("cache_creation_tokens", "cache_write_tokens", "cache_creation_input_tokens")
"""Parts of `prompt_tokens`: OpenAI, DeepSeek, LiteLLM, OpenRouter."""


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
            whole_number(usage.get("prompt_tokens")),
            whole_number(usage.get("completion_tokens")),
            _first(usage, "prompt_tokens_details", _INSIDE_READ),
            _first(usage, "prompt_tokens_details", _INSIDE_WRITTEN),
            _first(usage, "completion_tokens_details", ("reasoning_tokens",)),
        )
    elif "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        read, written = (
            whole_number(usage.get("cache_read_input_tokens")),
            whole_number(usage.get("cache_creation_input_tokens")),
        )
        fresh = whole_number(usage.get("input_tokens"))
        total = None if fresh is None else fresh + (read or 0) + (written or 0)
        found = Tokens(total, whole_number(usage.get("output_tokens")), read, written)
    else:
        found = Tokens(
            whole_number(usage.get("input_tokens")),
            whole_number(usage.get("output_tokens")),
            _first(usage, "input_tokens_details", _INSIDE_READ),
            _first(usage, "input_tokens_details", _INSIDE_WRITTEN),
            _first(usage, "output_tokens_details", ("reasoning_tokens",)),
        )
    found = whole_input(found)
    for key in ("cost", "cost_usd"):
        if type(cost := usage.get(key)) in (int, float):
            found.cost_usd = cost
            break
    return found if found != _NO_TOKENS else None


_NO_TOKENS = Tokens()


def whole_input(found: Tokens) -> Tokens:
    """The same with what was cached inside the input, which it cannot be where it is more.

    Reads and writes are held against it one by one: some gateways count tokens that were read as written too.

    >>> whole_input(Tokens(input_tokens=5, cached_tokens=90)).input_tokens
    95
    >>> whole_input(Tokens(input_tokens=68, cached_tokens=61, cache_write_tokens=61)).input_tokens
    68
    """
    read, written = found.cached_tokens or 0, found.cache_write_tokens or 0
    if found.input_tokens is not None and max(read, written) > found.input_tokens:
        found.input_tokens += read + written
    return found


def whole_number(value: Any) -> int | None:
    """A count that is no negative number; some gateways write whole floats, or text."""
    if type(value) is int:
        return value if value >= 0 else None
    whole = type(value) is float and value.is_integer()
    if whole or (type(value) is str and value.isascii() and value.isdigit() and len(value) < 19):
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def _first(usage: dict[str, Any], group: str, names: tuple[str, ...]) -> int | None:
    """A count among the details, or where a gateway writes it beside them."""
    details = usage.get(group)
    for holder in (details if isinstance(details, dict) else {}, usage):
        for name in names:
            found = whole_number(holder.get(name))
            if found is not None:
                return found
    return None
