"""Token counts of runs, in the forms of LangChain, the AI SDK and the providers behind them."""

from __future__ import annotations

from typing import Any

from etl.adapters._usage import tokens
from etl.conversation import Tokens


def usage_of(usage: Any) -> Tokens | None:
    """Counts as LangChain and the providers behind it give them; input includes what was cached.

    >>> usage_of({"input_tokens": 9, "output_tokens": 3, "input_token_details": {"cache_read": 4}}).cached_tokens
    4
    >>> usage_of({"promptTokens": 9, "completionTokens": 3}).output_tokens
    3
    """
    if not isinstance(usage, dict):
        return None
    usage = {_USAGE_NAMES.get(key, key): item for key, item in _flat(usage).items()}
    found = tokens(usage)
    if found is None:
        return None
    for group, names in (("input_token_details", _CACHED), ("output_token_details", _REASONED)):
        details = usage.get(group)
        for name, column in names.items():
            count = details.get(name) if isinstance(details, dict) else None
            if type(count) is int and count >= 0 and getattr(found, column) is None:
                setattr(found, column, count)
    return found


def _flat(usage: dict[str, Any]) -> dict[str, Any]:
    """Counts of the AI SDK, whose sides are objects: `inputTokens: {total, noCache, cacheRead, cacheWrite}`."""
    read, written = usage.get("inputTokens"), usage.get("outputTokens")
    if not (isinstance(read, dict) and isinstance(written, dict)):
        return usage
    cached = {"cache_read": read.get("cacheRead"), "cache_creation": read.get("cacheWrite")}
    return {
        "input_tokens": read.get("total"),
        "output_tokens": written.get("total"),
        "input_token_details": cached,
        "output_token_details": {"reasoning": written.get("reasoning")},
    }


_USAGE_NAMES = {
    "promptTokens": "prompt_tokens",
    "completionTokens": "completion_tokens",
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "prompt_token_count": "input_tokens",
    "candidates_token_count": "output_tokens",
    "promptTokenCount": "input_tokens",
    "candidatesTokenCount": "output_tokens",
}
_CACHED = {"cache_read": "cached_tokens", "cache_creation": "cache_write_tokens"}
_REASONED = {"reasoning": "reasoning_tokens"}
