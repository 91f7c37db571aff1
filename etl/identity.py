"""Names that are the same on every run: BLAKE2b over unambiguous encodings, always of values before redaction."""

from __future__ import annotations

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
    """

    def __init__(self, before: Mapping[bytes, int] | None = None) -> None:
        """`before` says how often records occur in what lies before, by `record_name`."""
        self._seen: dict[bytes, int] = {} if before is None else dict(before)

    def key(self, local_id: str | None, raw: bytes) -> str:
        """The key of a closed record: its local id, a hash of all of it, and its occurrence number from 0."""
        name = record_name(raw)
        return f"{local_id or ''}\x1f{name.hex()}\x1f{self.take(name)}"

    def take(self, name: bytes) -> int:
        """How often a record was seen before this time."""
        number = self._seen.get(name, 0)
        self._seen[name] = number + 1
        return number


def record_name(raw: bytes | memoryview) -> bytes:
    """What a record is told apart by."""
    return sha256(raw).digest()[:16]
