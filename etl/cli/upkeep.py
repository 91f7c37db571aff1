"""`etl compact`, `etl changes`, `etl undo` and `etl retain`: what a lake needs over the years."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option

if TYPE_CHECKING:
    from etl.lake import Lake

_DURATION = re.compile(r"(\d+)\s*([smhdw])")
_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST_DAYS = 30


@click.command()
@lake_option
@json_option
def compact(lake: str, as_json: bool) -> int:
    """Merge small data files towards 128 MB.

    Ingests do it by themselves where files pile up; readers see the same rows before and after.
    """
    from etl.cli.tables import note
    from etl.cli.values import print_json

    with _open(lake) as opened:
        merged = opened.compact()
    if as_json:
        print_json({"merged": merged})
    else:
        note(f"{merged:,} small files merged" if merged else "no small files to merge")
    return DONE


@click.command()
@lake_option
@json_option
@click.option("--since", metavar="BATCH", help="List the rollouts that came or changed after this batch.")
def changes(lake: str, as_json: bool, since: str | None) -> int:
    """List the batches that changed the lake, or the rollouts that came or changed since one of them."""
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json
    from etl.lake import Lake

    opened = Lake.open(lake)
    if since is None:
        name, rows = "batches", _batches(opened)
    else:
        name, rows = "rollouts", _rollouts(lake, opened.batches_since(since))
    if as_json:
        print_json({name: rows})
    elif rows:
        print_listing(console(), list(rows[0]), [list(row.values()) for row in rows])
    else:
        note("nothing changed" if since else "no batch changed the lake")
    return DONE


def _batches(lake: Lake) -> list[dict[str, Any]]:
    """What changed `rollouts`, oldest first, with the counts of its report where one is kept."""
    import json

    told = {report["batch_id"]: report for report in map(json.loads, lake.reports())}
    return [
        {
            "batch_id": commit.batch_id,
            "at": dt.datetime.fromtimestamp(commit.at_ms / 1000, dt.UTC).isoformat(timespec="seconds"),
            "version": commit.version,
            **{
                kind: told.get(commit.batch_id, {}).get("rows", {}).get(kind)
                for kind in ("added", "replaced", "removed")
            },
        }
        for commit in lake.commits()
        if commit.batch_id is not None
    ]


def _rollouts(lake: str, batches: list[str]) -> list[dict[str, Any]]:
    from etl.query import connect

    connection = connect(lake)
    connection.execute(
        "SELECT rollout_id, source, day, batch_id, ingested_at FROM rollouts WHERE list_contains($batches, batch_id) "
        "ORDER BY ingested_at, rollout_id",
        {"batches": batches},
    )
    names = [str(column[0]) for column in connection.description or []]
    return [dict(zip(names, row, strict=True)) for row in connection.fetchall()]


@click.command()
@click.argument("batch")
@lake_option
@json_option
def undo(batch: str, lake: str, as_json: bool) -> int:
    """Take back what a batch did.

    Its rows go, what it replaced comes back, and the files it read count as unread. What it replaced must still be
    retained (`etl retain`); what later batches did stays.
    """
    from etl.cli.tables import console, print_listing
    from etl.cli.values import print_json

    with _open(lake) as opened:
        done = opened.undo(batch)
    if as_json:
        print_json(
            {"undone": batch, "tables": {of.table: {"removed": of.removed, "restored": of.restored} for of in done}}
        )
    else:
        print_listing(console(), ("table", "removed", "restored"), [list(of) for of in done])
    return DONE


@click.command()
@click.argument("duration", required=False, metavar="[DURATION]")
@lake_option
@json_option
def retain(duration: str | None, lake: str, as_json: bool) -> int:
    """Say how long replaced data files stay, or set it: 24h, 7d, at most 30d, or 0.

    They allow `etl undo` and reading older versions with a Delta reader. While files are retained, a plain glob sees
    old rows too: use `views.sql`, `etl.scan` or a Delta reader.
    """
    from etl.cli.values import print_json
    from etl.lake import Lake

    if duration is None:
        kept = Lake.open(lake).retain_ms
    else:
        kept = _milliseconds(duration)
        with _open(lake) as opened:
            opened.retain(kept)
    if as_json:
        print_json({"retain_ms": kept})
    else:
        click.echo(f"replaced data files stay for {_words(kept)}" if kept else "replaced data files go at once")
    return DONE


def _milliseconds(duration: str) -> int:
    match = _DURATION.fullmatch(duration.strip())
    kept = 0 if duration.strip() == "0" else int(match[1]) * _MS[match[2]] if match else -1
    if not 0 <= kept <= _LONGEST_DAYS * _MS["d"]:
        raise click.UsageError(f"{duration}: give a duration such as 24h or 7d, at most {_LONGEST_DAYS}d, or 0")
    return kept


def _words(milliseconds: int) -> str:
    unit = next(unit for unit in ("d", "h", "m", "s") if milliseconds % _MS[unit] == 0)
    return f"{milliseconds // _MS[unit]}{unit}"


@contextlib.contextmanager
def _open(lake: str) -> Iterator[Lake]:
    """The lake with an open batch of its own."""
    from etl.lake import Lake

    opened = Lake.open(lake)
    opened.sweep()
    with opened.batch(f"u_{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}_{uuid4().hex[:8]}"):
        yield opened
