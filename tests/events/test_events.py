"""The events table's rows, and families put together from them."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.conversation import Fragment, Record
from etl.errors import LakeError
from etl.event_store import EventStore
from etl.events import EventBatch, Touched, events_table
from etl.schema import arrow_schema
from tests.examples import examples

DAY = 86_400_000_000
NOON = 1_772_366_400_000_000  # 2026-03-01T12:00:00Z


class Stored(NamedTuple):
    path: str
    partition: dict[str, str]


class Folder:
    """A lake as far as assembly looks at it: data files with their partitions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, list[Stored]] = {"events": [], "rollouts": []}

    def live(self, table: str) -> list[Stored]:
        return self.files[table]

    def write(self, table: str, rows: pa.Table, source: str = "s") -> None:
        days = rows["day"].to_pylist()
        for day in sorted(set(days)):
            path = self.root / f"{table}-{len(self.files[table])}.parquet"
            pq.write_table(rows.filter(pa.array([each == day for each in days])), path)
            self.files[table].append(Stored(str(path), {"source": source, "day": day}))

    def add(self, fragments: list[Fragment], uri: str = "/logs/a.jsonl", source: str = "s") -> Touched:
        batch = EventBatch(source=source, adapter="otlp", uri=uri, batch_id="b")
        for fragment in fragments:
            batch.add(fragment)
        self.write("events", events_table([batch.take()]), source)
        return batch.touched

    def families(self, touched: Touched, source: str = "s") -> list[list[tuple[str, object]]]:
        store = EventStore(self, memory_limit="200MB", spill=str(self.root))
        return [
            [(event.key, event.record.value) for event in family] for family in store.families(source, "otlp", touched)
        ]


def fragment(name: str, key: str, link: str | None = None, at: int | None = NOON, offset: int = 0) -> Fragment:
    return Fragment(Record({"n": name}, b'{"n": "%s"}' % name.encode(), 1, offset), key, link, at)


def test_rows_have_the_schema_of_the_table_and_the_records_own_text() -> None:
    batch = EventBatch(source="s", adapter="otlp", uri="/logs/a.jsonl", batch_id="b")
    raw = '{"é":  1}'.encode()
    batch.add(Fragment(Record({"é": 1}, raw, 3, 20), "k", "l", "2026-03-01T23:30:00-02:00"))
    batch.add(Fragment(Record({"a": 1}, b"", 4, 30), "k", payload={"b": 1, "a": [2**70]}))
    assert (batch.rows, batch.size) == (2, len(raw) + len('{"a":[1180591620717411303424],"b":1}'))
    table = events_table([batch.take()])
    assert table.schema.equals(arrow_schema("events"))
    first, second = table.to_pylist()
    assert first["day"] == "2026-03-02"
    assert first["payload"] == '{"é":  1}'
    assert (first["source_line"], first["source_offset"], first["link_key"]) == (3, 20, "l")
    assert second["day"] == "unknown"
    assert second["payload"] == '{"a":[1180591620717411303424],"b":1}'
    assert batch.touched == Touched({"k"}, {"l": "k"}, {"2026-03-02", "unknown"})
    assert events_table([batch.take()]).num_rows == 0


def test_a_copy_has_the_same_record_key_wherever_it_lies() -> None:
    keys = []
    for uri in ("/a", "/b"):
        batch = EventBatch(source="s", adapter="otlp", uri=uri, batch_id=uri)
        batch.add(Fragment(Record(None, b""), "k", payload={"x": 1, "y": 2}))
        batch.add(Fragment(Record(None, b""), "k", payload={"y": 2, "x": 1}))
        keys += events_table([batch.take()])["record_key"].to_pylist()
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32


def test_bytes_that_are_not_utf8_become_valid_json() -> None:
    batch = EventBatch(source="s", adapter="otlp", uri="/a", batch_id="b")
    batch.add(Fragment(Record({"n": "�"}, b'{"n": "\xff"}'), "k"))
    assert events_table([batch.take()])["payload"].to_pylist() == ['{"n":"�"}']


def test_a_family_holds_what_links_join_and_nothing_else(tmp_path: Path) -> None:
    lake = Folder(tmp_path)
    lake.add(
        [
            fragment("1", "c1", "t1"),
            fragment("2", "t1", "t1"),
            fragment("3", "c1", "t2", offset=9),
            fragment("4", "x", "t9"),
        ]
    )
    touched = lake.add([fragment("5", "t2", "t2", NOON + 1)], "/logs/b.jsonl")
    assert lake.families(touched) == [[("c1", {"n": "1"}), ("c1", {"n": "3"}), ("t1", {"n": "2"}), ("t2", {"n": "5"})]]


def test_copies_are_dropped_and_the_order_is_that_of_time(tmp_path: Path) -> None:
    lake = Folder(tmp_path)
    late, early = fragment("late", "k", at=NOON + 5), fragment("early", "k", at=NOON)
    unknown = fragment("untimed", "k", at=None)
    lake.add([late, early, early])
    touched = lake.add([early, unknown, late], "/logs/b.jsonl")
    assert lake.families(touched) == [[("k", {"n": "early"}), ("k", {"n": "late"}), ("k", {"n": "untimed"})]]


def test_only_days_near_the_conversation_are_read(tmp_path: Path) -> None:
    lake = Folder(tmp_path)
    lake.add([fragment("far", "k", at=NOON - 30 * DAY), fragment("other", "x", at=NOON - 60 * DAY)])
    lake.add([fragment("near", "k", at=NOON - 6 * DAY), fragment("nearer", "k", at=NOON - 12 * DAY)])
    touched = lake.add([fragment("new", "k", at=NOON)])
    for stored in list(lake.files["events"]):
        if stored.partition["day"] < "2026-01-10":
            Path(stored.path).unlink()  # reading it would fail
    assert [name for _, name in lake.families(touched)[0]] == [{"n": "nearer"}, {"n": "near"}, {"n": "new"}]


def test_records_that_come_much_later_find_theirs_through_the_row(tmp_path: Path) -> None:
    lake = Folder(tmp_path)
    lake.add([fragment("first", "k", at=NOON - 90 * DAY), fragment("last", "k", at=NOON - 60 * DAY)])
    touched = lake.add([fragment("new", "k")])
    assert len(lake.families(touched)[0]) == 1
    lake.write("rollouts", _row_of("k", NOON - 90 * DAY, NOON - 60 * DAY))
    assert [name for _, name in lake.families(touched)[0]] == [{"n": "first"}, {"n": "last"}, {"n": "new"}]


def _row_of(conversation: str, started: int, ended: int) -> pa.Table:
    """A row of `rollouts`, as far as assembly looks at it."""
    names = ("adapter", "conversation_id", "started_at", "ended_at")
    schema = pa.schema([(name, arrow_schema("rollouts").field(name).type) for name in names])
    row = dict(zip(names, ("otlp", conversation, started, ended), strict=True))
    return pa.Table.from_pylist([row], schema=schema).append_column("day", pa.array(["2025-12-01"]))


def test_other_sources_and_adapters_are_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "a[b]*?"
    root.mkdir()
    lake = Folder(root)
    lake.add([fragment("other", "k")], source="s2")
    foreign = EventBatch(source="s", adapter="codex", uri="/c", batch_id="b")
    foreign.add(fragment("foreign", "k"))
    lake.write("events", events_table([foreign.take()]))
    touched = lake.add([fragment("mine", "k")])
    assert lake.families(touched) == [[("k", {"n": "mine"})]]
    assert lake.families(Touched()) == []


def test_a_damaged_payload_is_a_lake_error(tmp_path: Path) -> None:
    lake = Folder(tmp_path)
    touched = lake.add([Fragment(Record(None, b'{"n": '), "k")])
    with pytest.raises(LakeError, match="no JSON any more"):
        lake.families(touched)


@examples(25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.none() | st.sampled_from("uvwxyz"), st.integers(-20, 20)), max_size=25
    ),
    st.sets(st.sampled_from("abcdef"), min_size=1, max_size=2),
    st.randoms(use_true_random=False),
)
def test_families_are_the_connected_components(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[str, str | None, int]],
    touched: set[str],
    shuffle: random.Random,
) -> None:
    """Over any files and any order; days apart by more than the window are closed by `touched.days` here."""
    component = {key: {key} for key, _, _ in records}
    for one, other in itertools.combinations(records, 2):
        if one[1] is not None and one[1] == other[1]:
            union = component[one[0]] | component[other[0]]
            for key in union:
                component[key] = union
    expected = {frozenset(component[key]) for key in touched if key in component}
    lake = Folder(tmp_path_factory.mktemp("lake"))
    made = [fragment(str(n), key, link, NOON + day * DAY) for n, (key, link, day) in enumerate(records)]
    shuffle.shuffle(made)
    everything = Touched()
    for part in (made[::2], made[1::2]):
        everything.update(lake.add(part))
    found = lake.families(Touched(touched, {}, everything.days))
    assert {frozenset(key for key, _ in family) for family in found} == expected
    assert sum(len(family) for family in found) == sum(key in set().union(*expected) for key, _, _ in records)


def test_an_alias_joins_what_knows_the_conversation_by_it_alone(tmp_path: Path) -> None:
    """It is found on any day, gives no event of its own, and counts as no record."""

    def said(n: int) -> dict[str, int]:
        return {"n": n}

    folder = Folder(tmp_path)
    span = Fragment(Record(None, b""), "talk", "trace", NOON, said(1), aliases=("span 1", "span 1"))
    folder.add([span, Fragment(Record(None, b""), "other", "elsewhere", NOON, said(2))])
    folder.write("rollouts", _row_of("talk", NOON, NOON))
    late = folder.add([Fragment(Record(None, b""), "span 1", "span 1", None, said(3))])
    assert folder.families(late) == [[("span 1", said(3)), ("talk", said(1))]]


def test_what_an_adapter_nested_deeper_is_read_back(tmp_path: Path) -> None:
    """A payload may hold what lay in a text of its record, deeper than a record itself may be nested."""
    deep: object = "end"
    for _ in range(450):
        deep = [deep]
    lake = Folder(tmp_path)
    touched = lake.add([Fragment(Record(None, b""), "k", payload={"deep": deep})])
    assert lake.families(touched) == [[("k", {"deep": deep})]]
