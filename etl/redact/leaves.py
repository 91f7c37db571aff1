"""Which columns are masked, and how: every string of a table, at any depth, unless it is listed here.

A new column is masked until somebody decides otherwise. Not masked are identities and words of a fixed vocabulary,
because tables are joined and rows are found by them. Copies are masked but not counted: what stands in `messages` and
again in `prompt` is one secret.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.redact.spans import Masked

UNMASKED: dict[str, frozenset[str]] = {
    "rollouts": frozenset(
        [
            "rollout_id",
            "task_id",
            "group_id",
            "origin",
            "adapter",
            "conversation_id",
            "parent_id",
            "messages.role",
            "messages.tool_calls.id",
            "messages.tool_calls.type",
            "messages.tool_call_id",
            "message_info.id",
            "steps.call_id",
            "steps.actor",
            "steps.status",
            "steps.condition",
            "judgments.kind",
            "status",
            "flags",
            "redactions",
            "content_hash",
            "row_hash",
            "schema_version",
            "batch_id",
            "source",
            "day",
        ]
    ),
    "rejects": frozenset(["reject_id", "source", "reason", "adapter", "batch_id"]),
    "sources": frozenset(["source", "sha256", "adapter", "state", "ignored", "batch_id", "read_sha256", "read_counts"]),
    "events": frozenset(
        ["source", "day", "conversation_key", "record_key", "link_key", "adapter", "redactions", "batch_id"]
    ),
}
"""Columns that stay as they are, by table: identities, hashes, fixed vocabularies, partition keys."""

COPIES: dict[str, frozenset[str]] = {
    "rollouts": frozenset(["prompt", "final_text", "steps.arguments", "steps.error"]),
    "rejects": frozenset(),
    "sources": frozenset(),
    "events": frozenset(),
}
"""Columns that repeat what another one says: masked, not counted."""

URIS: dict[str, str] = {"rollouts": "source_uri", "rejects": "source_uri", "sources": "uri", "events": "source_uri"}
"""The column of a table that names a file: masked as names are, not counted."""

NAMING: dict[str, str] = {"rejects": "message", "sources": "error"}
"""The column of a table that tells of its file by that name."""


class Plan(NamedTuple):
    """What is to happen to a table."""

    unmasked: frozenset[str]
    copies: frozenset[str]
    texts: pa.Array
    """Every text that is to be replaced."""
    masked: Sequence[Masked]
    """What replaces each of them."""


class Change(NamedTuple):
    """A column without its secrets, and for each changed row how often which rule did it (in copies: never)."""

    array: pa.Array
    counts: dict[int, Counter[str]]


def string_leaves(array: pa.Array, path: str, unmasked: frozenset[str]) -> Iterator[pa.Array]:
    """Every flat array of strings or bytes below a column that is not to be kept as it is."""
    if path in unmasked:
        return
    kind = array.type
    if pa.types.is_list(kind):
        yield from string_leaves(array.values, path, unmasked)
    elif pa.types.is_struct(kind):
        for index, field in enumerate(kind):
            yield from string_leaves(array.field(index), f"{path}.{field.name}", unmasked)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield array


def masked_array(array: pa.Array, path: str, plan: Plan) -> Change:
    """The column with every text that the plan knows replaced. Lists keep their offsets, structs their nulls."""
    kind = array.type
    if path in plan.unmasked:
        return Change(array, {})
    if pa.types.is_list(kind):
        return _masked_list(array, path, plan)
    if pa.types.is_struct(kind):
        return _masked_struct(array, path, plan)
    if pa.types.is_string(kind):
        return _masked_strings(array, path, plan)
    if pa.types.is_binary(kind):
        return _masked_bytes(array, path, plan)
    return Change(array, {})


def _masked_list(array: pa.Array, path: str, plan: Plan) -> Change:
    inner = masked_array(array.values, path, plan)
    if not inner.counts:
        return Change(array, {})
    ends = array.offsets.to_pylist()
    counts: dict[int, Counter[str]] = {}
    for index, counter in inner.counts.items():
        row = bisect.bisect_right(ends, index) - 1
        if 0 <= row < len(array):
            counts.setdefault(row, Counter()).update(counter)
    rebuilt = pa.Array.from_buffers(
        array.type, len(array), array.buffers()[:2], array.null_count, array.offset, [inner.array]
    )
    return Change(rebuilt, counts)


def _masked_struct(array: pa.Array, path: str, plan: Plan) -> Change:
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    counts: dict[int, Counter[str]] = {}
    children: list[pa.Array] = []
    for index, field in enumerate(array.type):
        inner = masked_array(array.field(index), f"{path}.{field.name}", plan)
        children.append(inner.array)
        for row, counter in inner.counts.items():
            counts.setdefault(row, Counter()).update(counter)
    if not counts:
        return Change(array, {})
    rebuilt = pa.Array.from_buffers(array.type, len(array), array.buffers()[:1], array.null_count, 0, children)
    return Change(rebuilt, counts)


def _masked_strings(array: pa.Array, path: str, plan: Plan) -> Change:
    known = pc.index_in(array, value_set=plan.texts)
    hits = pc.is_valid(known)
    places = pc.indices_nonzero(hits).to_pylist()
    if not places:
        return Change(array, {})
    masked = [plan.masked[index] for index in known.drop_null().to_pylist()]
    replaced = pc.replace_with_mask(array, hits, pa.array([each.text for each in masked], pa.string()))
    counts = {place: _counted(each, path, plan) for place, each in zip(places, masked, strict=True)}
    return Change(replaced, counts)


def _masked_bytes(array: pa.Array, path: str, plan: Plan) -> Change:
    values = array.to_pylist()
    texts = [None if value is None else BytesAsText.of(value) for value in values]
    known = pc.index_in(pa.array([text and text.text for text in texts], pa.string()), value_set=plan.texts)
    counts: dict[int, Counter[str]] = {}
    for place, (text, index) in enumerate(zip(texts, known.to_pylist(), strict=True)):
        if text is not None and index is not None:
            values[place] = plan.masked[index].text.encode(text.encoding)
            counts[place] = _counted(plan.masked[index], path, plan)
    return Change(pa.array(values, array.type), counts) if counts else Change(array, {})


def _counted(masked: Masked, path: str, plan: Plan) -> Counter[str]:
    return Counter() if path in plan.copies else masked.counts


class BytesAsText(NamedTuple):
    """Bytes of unknown encoding as text that gives the same bytes back: UTF-16, or else one character a byte.

    >>> BytesAsText.of("key".encode("utf-16-le")).text, BytesAsText.of(b"caf\\xc3\\xa9").encoding
    ('key', 'latin-1')
    """

    text: str
    encoding: str

    @classmethod
    def of(cls, raw: bytes) -> BytesAsText:
        """The bytes, decoded."""
        if raw.count(0) * 3 > len(raw):
            encoding = "utf-16-be" if raw[:1] == b"\0" or raw[:2] == b"\xfe\xff" else "utf-16-le"
            try:
                return cls(raw.decode(encoding), encoding)
            except UnicodeDecodeError:
                pass
        return cls(raw.decode("latin-1"), "latin-1")
