"""Faults on schedule: which call of which tool fails how, and what a service says when it does."""

from __future__ import annotations

import json
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple

RETRIABLE = frozenset({"timeout", "rate_limited", "malformed_result", "stale_result", "error"})
"""Conditions that another try may cure."""
ALL = "all"


class Fault(NamedTuple):
    """One line of the schedule."""

    tool: str
    condition: str
    calls: tuple[int, ...] | str
    """Numbers of the calls of this tool that meet it, from 1, or `all`."""
    rate: float
    """The chance with which a retry was drawn to meet it again."""

    def hits(self, number: int) -> bool:
        """Whether the call of that number meets the fault."""
        return self.calls == ALL or number in self.calls

    def told(self) -> dict[str, Any]:
        """As it stands in the column `faults`."""
        calls = self.calls if isinstance(self.calls, str) else list(self.calls)
        return {"tool": self.tool, "condition": self.condition, "calls": calls, "rate": self.rate}


class Said(NamedTuple):
    """What came back for a call."""

    content: str
    condition: str
    failed: bool
    error: str | None = None


def said(condition: str, thing: str, good: str, style: int, rng: Random) -> Said:
    """What a service says that meets a condition; `good` is what it would have said, `style` its way of saying it."""
    if condition == "malformed_result":
        return Said(_malformed(good, rng), condition, True, "the result could not be read")
    if condition == "stale_result":
        return Said(_stale(good, rng), condition, False)
    code, word, texts = _WORDS[condition]
    message = texts[int(rng.random() * len(texts))].format(thing=thing, wait=int(rng.random() * 50) + 10)
    return Said(_wrapped(code, word, message, style), condition, True, message)


def refused(message: str, style: int) -> Said:
    """What a service says to arguments that its schema does not allow."""
    return Said(_wrapped(422, "invalid_arguments", message, style), "invalid_arguments", True, message)


_WORDS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "timeout": (504, "timeout", ("upstream did not answer within {wait} s", "request timed out after {wait}000 ms",
                                 "deadline exceeded while waiting for the backend")),
    "rate_limited": (429, "rate_limited", ("too many requests, retry after {wait} s",
                                           "quota exhausted; try again in {wait} s",
                                           "rate limit of 60 requests per minute reached")),
    "permission_denied": (403, "permission_denied", ("this role may not access the {thing}",
                                                     "caller lacks the scope for {thing}",
                                                     "access to this {thing} is restricted")),
    "not_found": (404, "not_found", ("no such {thing}", "{thing} does not exist", "{thing} not found")),
    "already_done": (409, "conflict", ("{thing} is in that state already",
                                       "nothing to change: {thing} was processed before")),
    "error": (500, "internal_error", ("internal server error", "unexpected failure in the backend",
                                      "service unavailable")),
    "invalid_arguments": (422, "invalid_arguments", ("the value was rejected by the {thing} service",
                                                     "validation failed for the {thing} request")),
}  # fmt: skip


def _wrapped(code: int, word: str, message: str, style: int) -> str:
    if style == 0:
        return json.dumps({"error": {"code": word, "status": code, "message": message}}, ensure_ascii=False)
    if style == 1:
        return json.dumps({"ok": False, "status": code, "detail": message}, ensure_ascii=False)
    return f"Error {code} ({word}): {message}" if style == 2 else f"Error: {message} [{word}]"


def _malformed(good: str, rng: Random) -> str:
    kind = int(rng.random() * 4)
    if kind == 0 and len(good) > 8:
        return good[: max(4, int(len(good) * (0.3 + rng.random() * 0.5)))]
    if kind == 1:
        return "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
    return "" if kind == 2 else "\ufffd\ufffd{]" + good[1 : int(len(good) * 0.4)] + "\ufffd"


def _stale(good: str, rng: Random) -> str:
    """The result, marked as an old copy; `good` is then what the record said before."""
    hours = int(rng.random() * 70) + 2
    try:
        value = json.loads(good)
    except ValueError:
        value = good
    return json.dumps({"cached": True, "age_hours": hours, "data": value}, ensure_ascii=False)
