"""Names of files without the secrets and the personal data in them, each still another than all others.

A name is searched part by part, without the endings of files: in a text an address does not begin after a slash, and
one that is followed by `.jsonl` would end with it. Two names may be the same once they are redacted, and a file is
known by its name. So each part that changes also gets a keyed digest of what it was: stable for the key of a lake, and
of no use to who wants to guess a name. What is left is not changed by another search.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from etl.redact.search import masked_texts
from etl.redact.spans import LABEL, Masked, name_label

if TYPE_CHECKING:
    from etl.redact.personal import Personal

_PARTS = re.compile(r"([/!\\]+)")
_ENDINGS = re.compile(
    r"(?i)(?:\.(?:jsonl?|ndjson|gz|zst|zstd|bz2|xz|zip|tar|tgz|parquet|arrow|feather|csv|tsv|txt|log|md|html?|xml|ya?ml"
    r"|toml|eval|trace|db|sqlite3?|vscdb|bak|old|tmp)(?:\.\d{1,3})?)+\Z"
)
"""What files of logs end with, also several at once."""
_WORDS = re.compile(rf"({LABEL.pattern}|_+)")


def masked_uris(uris: Iterable[str], personal: Personal | None, key: Callable[[], bytes] | None) -> dict[str, Masked]:
    """Every name that holds something, with what is left of it. `key` is asked for where there is one; without it
    names that were different may be the same.
    """
    before = {uri: _PARTS.split(uri) for uri in dict.fromkeys(uris)}
    bodies = {part: _body(part) for parts in before.values() for part in parts}
    found = _each(bodies.values(), personal)
    after = {part: found.get(body, body) + part[len(body) :] for part, body in bodies.items()}
    searched = {uri: "".join(after[part] for part in parts) for uri, parts in before.items()}
    # What only its surroundings tell, such as the password of a URL.
    by_others = masked_texts(_column(searched.values()), personal)
    changed: dict[str, Masked] = {}
    for uri, parts in before.items():
        masked = by_others.get(searched[uri])
        text = searched[uri] if masked is None else masked.text
        if text != uri:
            changed[uri] = Masked(_told_apart(parts, _PARTS.split(text), key), masked.counts if masked else Counter())
    return changed


def _each(bodies: Iterable[str], personal: Personal | None) -> dict[str, str]:
    """Parts of names in which something is found, whole or, where it is personal, between low lines."""
    found = {body: masked.text for body, masked in masked_texts(_column(bodies), personal).items()}
    if personal is None:
        return found
    words = {body: _WORDS.split(found.get(body, body)) for body in dict.fromkeys(bodies) if "_" in body}
    single = masked_texts(_column(word for each in words.values() for word in each), personal)
    for body, each in words.items():
        if not single.keys().isdisjoint(each):
            found[body] = "".join(single[word].text if word in single else word for word in each)
    return found


def _told_apart(before: Sequence[str], after: Sequence[str], key: Callable[[], bytes] | None) -> str:
    """The parts that are left, each changed one with the digest of what it was after its last label."""
    if key is None:
        return "".join(after)
    if len(before) != len(after):
        before, after = ["".join(before)], ["".join(after)]
    return "".join(
        new if new == old else _with_digest(new, hmac.new(key(), f"name\0{old}".encode(), hashlib.sha256).hexdigest())
        for old, new in zip(before, after, strict=True)
    )


def _with_digest(part: str, mark: str) -> str:
    end = max((match.end() for match in LABEL.finditer(part)), default=len(part))
    return f"{part[:end]}{name_label(mark)}{part[end:]}"


def _body(part: str) -> str:
    """A part of a name without the endings of a file."""
    ending = _ENDINGS.search(part)
    return part[: ending.start()] if ending and ending.start() else part


def _column(texts: Iterable[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(list(dict.fromkeys(texts)), pa.string())])
