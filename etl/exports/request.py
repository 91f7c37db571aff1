"""What is asked of an export, checked."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from etl.errors import UsageError

MissingResults: TypeAlias = Literal["drop", "cut", "allow-last"]

_SPLIT = re.compile(r"[A-Za-z0-9][\w.-]*")


class Request(NamedTuple):
    """The options of one export; every one goes into `export.json`, so that it can be repeated."""

    where: str | None = None
    split: str = "train=1"
    seed: str = ""
    """Another seed gives other splits and another order."""
    max_rows: int | None = None
    max_per_source: int | None = None
    shards: int | None = None
    group_min: int = 1
    difficulty: tuple[float, float] | None = None
    pass_at: float = 1.0
    drop_unanimous: bool = False
    max_chars: int | None = None
    max_tokens: int | None = None
    missing_results: MissingResults = "drop"
    reasoning: bool | None = None
    """None: as the target does."""
    keep_duplicates: bool = False
    keep_rejected: bool = False
    near_duplicates: float | None = None
    held_out: tuple[str, ...] = ()
    ngram: int = 13
    ground_truth: str | None = None
    columns: tuple[str, ...] = ()
    tokenizer: str | None = None
    chat_template: str | None = None


def splits(text: str) -> dict[str, float]:
    """Name → share, in order.

    >>> splits("train=0.9,test=0.1")
    {'train': 0.9, 'test': 0.1}
    """
    shares: dict[str, float] = {}
    for item in text.split(","):
        name, _, share = (part.strip() for part in item.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not _SPLIT.fullmatch(name) or name in shares or not 0 <= value <= 1:
            raise UsageError(f"--split {text!r}: write names with shares from 0 to 1, as in train=0.9,test=0.1")
        shares[name] = value
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise UsageError(f"--split {text!r}: the shares add up to {sum(shares.values()):g}, not to 1")
    return shares


def check_request(request: Request) -> None:
    """UsageError where an option cannot be meant."""
    splits(request.split)
    if request.difficulty is not None:
        low, high = request.difficulty
        if not 0 <= low <= high <= 1:
            raise UsageError(f"--difficulty {low:g},{high:g}: two pass rates from 0 to 1, the lower one first")
    if request.near_duplicates is not None and not 0 < request.near_duplicates <= 1:
        raise UsageError(f"--near-duplicates {request.near_duplicates:g}: a similarity above 0 and up to 1, as 0.8")
    if request.max_tokens is not None and request.tokenizer is None:
        raise UsageError("--max-tokens needs a --tokenizer to count with; --max-chars needs none")
    if request.chat_template is not None and request.tokenizer is None:
        raise UsageError("--chat-template needs a --tokenizer")
    for name in ("max_rows", "max_per_source", "shards", "group_min", "max_chars", "max_tokens", "ngram"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1")
