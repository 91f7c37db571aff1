"""Names that are the same on every run: BLAKE2b over unambiguous encodings, always of values before redaction."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b, sha256

import msgspec

from etl.conversation import Identity


def digest(data: bytes) -> str:
    """128 bits of BLAKE2b, hex.

    >>> digest(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(data, digest_size=16).hexdigest()


def named(prefix: str, parts: Sequence[str | int | None]) -> str:
    """A name made of parts; the encoding keeps ("a", "bc") and ("ab", "c") apart."""
    return prefix + digest(msgspec.json.encode(parts))


def rollout_id(source: str, identity: Identity) -> str:
    """`r_…` for an attempt in a log stream."""
    return named("r_", (source, identity.run, identity.key, identity.branch, identity.attempt))


def task_id(namespace: str, native: str) -> str:
    """`t_…` for a task: benchmark and domain as logged, and the task's own id there."""
    return named("t_", (namespace, native))


def group_id(source: str, group: str) -> str:
    """`g_…` for a set of declared repeats."""
    return named("g_", (source, group))


def reject_id(source: str, uri: str, offset: int | None, reason: str) -> str:
    """The same reject on every run."""
    return digest(msgspec.json.encode((source, uri, offset, reason)))


class Occurrences:
    """How often each record of a file was seen: identical attempts stay apart, a copied file stays equal.

    Records are told apart by SHA-256, which processors compute in hardware; their names are BLAKE2b like all others.
    Of many records, 64 bits each are kept in a table of 12 to 24 bytes a record: of ten million, two look alike in one
    of 400,000 files, and the second then only gets another number.
    """

    def __init__(self, before: Mapping[bytes, int] | None = None, few: int = 1 << 18) -> None:
        """`before` says how often records occur in what lies before, by `record_name`; up to `few` names are kept
        whole.
        """
        self._seen: dict[bytes, int] = {} if before is None else dict(before)
        self._few = few
        self._many: _Table | None = None

    def key(self, local_id: str | None, raw: bytes) -> str:
        """The key of a closed record: its local id, a hash of all of it, and its occurrence number from 0."""
        name = record_name(raw)
        return f"{local_id or ''}\x1f{name.hex()}\x1f{self.take(name)}"

    def take(self, name: bytes) -> int:
        """How often a record was seen before this time."""
        if self._many is not None:
            return self._many.take(name)
        number = self._seen.get(name, 0)
        self._seen[name] = number + 1
        if len(self._seen) > self._few:
            self._many = _Table(self._seen)
            self._seen = {}
        return number


class _Table:
    """A hash table of 64-bit numbers with open addressing; 0 is an empty slot."""

    def __init__(self, seen: Mapping[bytes, int]) -> None:
        self._slots = array("Q", bytes(16 * (1 << len(seen).bit_length())))
        self._used = 0
        self._more: dict[int, int] = {}
        """How often, where it is more than once."""
        for name, count in seen.items():
            number = _short(name)
            self._place(number)
            if count > 1:
                self._more[number] = count

    def take(self, name: bytes) -> int:
        number = _short(name)
        if self._place(number):
            return 0
        count = self._more.get(number, 1)
        self._more[number] = count + 1
        return count

    def _place(self, number: int) -> bool:
        """Put a number where it belongs; False where it is already there."""
        slots, mask = self._slots, len(self._slots) - 1
        at = number & mask
        while (there := slots[at]) and there != number:
            at = (at + 1) & mask
        if there:
            return False
        slots[at] = number
        self._used += 1
        if 3 * self._used > 2 * len(slots):
            self._slots, self._used = array("Q", bytes(16 * len(slots))), 0
            for each in slots:
                if each:
                    self._place(each)
        return True


def _short(name: bytes) -> int:
    return int.from_bytes(name[:8], "little") or 1


def record_name(raw: bytes | memoryview) -> bytes:
    """What a record is told apart by."""
    return sha256(raw).digest()[:16]
