"""Labels that people give to rows of the lake: judgments of kind `human` that stay whatever the log says later.

A label is part of the row, so every reader and every export sees it. It is no part of what the log says: `row_hash`
and the precedence of rows leave labels out. So reading an unchanged source again finds the row it knows and leaves it,
label and all; when the source has grown, or a newer adapter reads it otherwise, the new row replaces the old one and
takes its labels over in the same commit (`carry_labels`). A label goes only when somebody takes it back, or when the
conversation itself is gone (its row is removed because a later record put it together otherwise).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.errors import UsageError
from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.log import LiveFile, snapshot
from etl.lake.lookup import Lookup
from etl.lake.parquet import row_groups
from etl.lake.plan import plan
from etl.lake.rules import rules_of
from etl.lake.staging import StagedFile, stage_rows
from etl.schema import arrow_schema

GIVEN = "labelled"
"""The `status` of such a judgment: it tells a label of the lake from a human judgment that a log brought along."""

_HAS_LABELS = f"list_bool_or(list_transform(judgments, lambda j: j.kind = 'human' AND j.status = '{GIVEN}'))"
_JUDGMENTS = "judgments"


class Label(NamedTuple):
    """What somebody says of a row. One label of each name stands; a new one takes the place of the old."""

    name: str
    """What is judged."""
    label: str | None = None
    """The verdict in a word."""
    value: float | None = None
    """The verdict as a number."""
    reason: str | None = None
    """Why."""

    def judgment(self) -> dict[str, Any]:
        """As it stands in `judgments`."""
        return {**self._asdict(), "kind": "human", "status": GIVEN}


def is_label(judgment: dict[str, Any]) -> bool:
    """Whether a judgment of a row was given in the lake."""
    return bool(judgment["kind"] == "human" and judgment["status"] == GIVEN)


Masked = Callable[[Label, frozenset[str]], Label]
"""A label as it may be kept beside rows that went through some versions of rules (see `etl/lake/rules.py`)."""


def label_row(to: Committing, rollout_id: str, name: str, given: Label | None, masked: Masked | None = None) -> bool:
    """Gives a row a label, or with None takes that of this name back; false where the row says so already.

    The row is read, changed and committed as one compare-and-swap: what else happens to it meanwhile is kept.
    UsageError where no row has the id.
    """

    def attempt() -> bool:
        base = snapshot(to.place, "rollouts")
        with Lookup("rollouts", [], list(base.files.values()), to.batch) as lookup:
            lookup.table_of("wanted", pa.table({"rollout_id": [rollout_id]}))
            lookup.load("found", "rollout_id", where="rollout_id IN (FROM wanted)")
            places = lookup.run("SELECT file, position FROM found")
            if not places:
                raise UsageError(f"no rollout has the id {rollout_id!r}")
            file, position = places[0]
            live = lookup.files["live"][file]
            row = pa.concat_tables(row_groups(live.path, only=pa.array([position], pa.int64())))
            before = row[_JUDGMENTS][0].as_py()
            label = given if given is None or masked is None else masked(given, rules_of(live.path))
            named = name if label is None else label.name
            after = [judgment for judgment in before if not (is_label(judgment) and judgment["name"] == named)]
            after += [] if label is None else [label.judgment()]
            if after == before:
                return False
            lookup.run("INSERT INTO dropped VALUES ('live', ?, ?)", [file, position])
            _stage(lookup, _with_judgments(row, [after]), live)
            commit_plan(to, base, plan(base, lookup))
        return True

    return try_again(to, "rollouts", attempt)


def carry_labels(lookup: Lookup) -> None:
    """Gives the staged rows that win the labels of the live rows they replace. Needs the tables `live` and `ranked`.

    The labelled rows are written to a staged file of their own, in the place of those that were staged without.
    """
    won = "(SELECT rollout_id FROM ranked WHERE place = 1 AND side = 'staged')"
    files = [int(file) for (file,) in lookup.run(f"SELECT DISTINCT file FROM live WHERE rollout_id IN {won}")]
    if not files:
        return
    lookup.load("labelled", "rollout_id, judgments", where=f"{_HAS_LABELS} AND rollout_id IN {won}", only=files)
    carried: dict[int, dict[int, list[dict[str, Any]]]] = {}
    found = "SELECT ranked.file, ranked.position, judgments FROM labelled JOIN ranked USING (rollout_id)"
    for file, position, judgments in lookup.run(f"{found} WHERE ranked.place = 1 AND side = 'staged'"):
        carried.setdefault(file, {})[position] = [judgment for judgment in judgments if is_label(judgment)]
    for file, labels in carried.items():
        staged = lookup.files["staged"][file]
        positions = sorted(labels)
        rows = pa.concat_tables(row_groups(staged.path, only=pa.array(positions, pa.int64())))
        own = rows[_JUDGMENTS].to_pylist()
        both = [_joined(said, labels[position]) for position, said in zip(positions, own, strict=True)]
        for position in positions:
            lookup.run("INSERT INTO dropped VALUES ('staged', ?, ?)", [file, position])
        _stage(lookup, _with_judgments(rows, both), staged)


def without_labels(rows: pa.Table) -> pa.Table:
    """The rows as their logs say them."""
    statuses = pc.struct_field(pc.list_flatten(rows[_JUDGMENTS].combine_chunks()), "status")
    if not pc.any(pc.equal(statuses, GIVEN)).as_py():
        return rows
    said = [[judgment for judgment in row if not is_label(judgment)] for row in rows[_JUDGMENTS].to_pylist()]
    return _with_judgments(rows, said)


def _joined(said: list[dict[str, Any]], labels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the log says now, and the labels; a log of our own export may bring a label along."""
    names = {label["name"] for label in labels}
    return [judgment for judgment in said if not (is_label(judgment) and judgment["name"] in names)] + labels


def _with_judgments(rows: pa.Table, judgments: Sequence[list[dict[str, Any]]]) -> pa.Table:
    field = arrow_schema("rollouts").field(_JUDGMENTS)
    return rows.set_column(rows.schema.get_field_index(_JUDGMENTS), field, pa.array(judgments, field.type))


def _stage(lookup: Lookup, rows: pa.Table, of: StagedFile | LiveFile) -> None:
    """Adds a file of these rows, out of another one, to what is staged."""
    staged = stage_rows(lookup.spill, "rollouts", [rows], of.partition, rules_of(of.path))
    lookup.files["staged"] = [*lookup.files["staged"], staged]
