"""Which row stays: a total order, so neither the order of arrivals nor their grouping into files matters."""

from __future__ import annotations

import datetime as dt
from hashlib import blake2b
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.lake import Lake, RowCounts
from etl.lake.precedence import count_leaves
from etl.schema import LINEAGE
from tests.examples import examples
from tests.lake.rows import EPOCH, put, rollout, rows_of

LATER = EPOCH + dt.timedelta(hours=1)

versions = st.fixed_dictionaries(
    {
        "n_records": st.integers(1, 2),
        "ended_at": st.sampled_from([None, EPOCH, LATER]),
        "adapter_version": st.integers(1, 2),
        "reward": st.sampled_from([None, 0.0, 1.0]),
        "judgments": st.sampled_from([[], [{"name": "j", "kind": "rule", "value": 1.0}]]),
        "day": st.sampled_from(["unknown", "2026-03-01"]),
    }
)
arrivals = st.lists(st.lists(st.lists(st.tuples(st.sampled_from("abc"), versions), max_size=3), max_size=3), max_size=3)
"""Commits of staged files of (id, what a row says)."""


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake.create(tmp_path_factory.mktemp("precedence") / "lake")


numbers = count()


def row(rollout_id: str, says: dict[str, Any]) -> dict[str, Any]:
    """A rollout whose row_hash follows from all it says."""
    said = sorted((key, str(value)) for key, value in says.items() if key not in LINEAGE)
    return rollout(rollout_id, **says, row_hash=blake2b(repr(said).encode(), digest_size=16).hexdigest())


def rank(found: dict[str, Any]) -> tuple[Any, ...]:
    """The order of DESIGN.md, said a second time and in Python."""
    ended_at = found["ended_at"] or dt.datetime.min.replace(tzinfo=dt.UTC)
    leaves = (found["reward"] is not None) + 3 * len(found["judgments"])
    return (found["n_records"], ended_at, found["adapter_version"], leaves, found["row_hash"])


def _says(live: dict[str, Any] | None, found: dict[str, Any]) -> bool:
    """Whether a live row says already what a staged one does."""
    return (
        live is not None
        and live["row_hash"] == found["row_hash"]
        and live["adapter_version"] >= found["adapter_version"]
    )


@examples(15)
@given(arrivals)
def test_the_greatest_of_all_arrivals_stays(
    shared_lake: Lake, commits: list[list[list[tuple[str, dict[str, Any]]]]]
) -> None:
    example = f"e{next(numbers)}-"
    greatest: dict[str, dict[str, Any]] = {}
    for files in commits:
        groups = [[row(example + name, says) for name, says in file] for file in files if file]
        counts = put(shared_lake, *groups)
        staged = {found["rollout_id"] for group in groups for found in group}
        before = dict(greatest)
        for found in (found for group in groups for found in group):
            name = found["rollout_id"]
            greatest[name] = max(greatest.get(name, found), found, key=rank)
        changed = {name for name in staged & before.keys() if rank(before[name]) != rank(greatest[name])}
        left_out = {
            (found["rollout_id"], found["row_hash"])
            for found in (found for group in groups for found in group)
            if rank(found)[:3] == rank(kept := greatest[found["rollout_id"]])[:3]
            and found["row_hash"] != kept["row_hash"]
            and not _says(before.get(found["rollout_id"]), found)
        }
        added, unchanged = len(staged - before.keys()), len(staged & before.keys() - changed)
        readings = [(found["rollout_id"], found["row_hash"]) for group in groups for found in group]
        copies = len(readings) - len(set(readings))
        assert counts == RowCounts(added, len(changed), 0, unchanged, len(left_out), copies)
    live = [found for found in rows_of(shared_lake) if found["rollout_id"].startswith(example)]
    assert {found["rollout_id"]: rank(found) for found in live} == {
        name: rank(found) for name, found in greatest.items()
    }
    assert len(live) == len(greatest)


shapes = st.fixed_dictionaries(
    {
        "number": st.none() | st.integers(0, 9),
        "texts": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3),
        "nested": st.none()
        | st.fixed_dictionaries(
            {
                "inner": st.none()
                | st.lists(
                    st.none() | st.fixed_dictionaries({"value": st.none() | st.floats(allow_nan=False)}), max_size=3
                ),
                "flag": st.none() | st.booleans(),
            }
        ),
    }
)
SHAPE = pa.schema(
    [
        ("number", pa.int64()),
        ("texts", pa.list_(pa.string())),
        ("nested", pa.struct([("inner", pa.list_(pa.struct([("value", pa.float64())]))), ("flag", pa.bool_())])),
    ]
)


def leaves_of(value: Any) -> int:
    """Non-null values at any depth, counted in Python."""
    if isinstance(value, dict):
        return sum(leaves_of(inner) for inner in value.values())
    if isinstance(value, list):
        return sum(leaves_of(inner) for inner in value)
    return value is not None


@given(st.lists(shapes, max_size=6), st.integers(0, 3))
def test_leaves_are_counted_at_any_depth(rows: list[dict[str, Any]], skipped: int) -> None:
    table = pa.Table.from_pylist(rows, schema=SHAPE).slice(skipped)
    assert count_leaves(table).to_pylist() == [leaves_of(found) for found in rows[skipped:]]


def test_lineage_is_not_counted() -> None:
    table = pa.table({"source_uri": ["a"], "batch_id": ["b"], "source": ["c"], "day": ["d"], "model": ["e"]})
    assert count_leaves(table).to_pylist() == [1]
