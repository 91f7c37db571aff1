"""`etl migrate`, `etl compact`, `etl changes`, `etl undo` and `etl retain`: what a lake needs over the years."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from etl.cli.exits import DONE, FAILED
from etl.cli.options import json_option, lake_option, pseudonym_key

if TYPE_CHECKING:
    import pyarrow as pa

    from etl.lake import Conversation, Lake
    from etl.redact import Redactor


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
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
def migrate(lake: str, as_json: bool, dry_run: bool) -> int:
    """Bring a lake that an older etl wrote to the present version.

    Each table changes in one commit, and what was written anew is verified. Doing it again changes nothing.
    """
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json
    from etl.lake import Lake
    from etl.lake.migrations import present_version

    done, findings = Lake.open(lake, older=True).migrate(dry_run=dry_run)
    old = [of for of in done if of.version < present_version()]
    if as_json:
        tables = [of._asdict() for of in old]
        told = {"version": present_version(), "dry_run": dry_run, "tables": tables}
        print_json({**told, "findings": [found._asdict() for found in findings]})
    elif old:
        print_listing(
            console(), ("table", "of version", "files written anew", "rows in them"), [list(of) for of in old]
        )
        note(f"to version {present_version()}" + (": nothing was written (--dry-run)" if dry_run else ""))
    else:
        note(f"the lake is of version {present_version()}, the newest that this etl knows")
    for found in () if as_json else findings:
        note(f"{found.code}: {found.path} {found.message}")
    return FAILED if findings else DONE


@click.command()
@lake_option
@json_option
@click.option("--since", metavar="BATCH", help="List the rollouts that came or changed after this batch.")
def changes(lake: str, as_json: bool, since: str | None) -> int:
    """List the batches that changed the lake, or the rollouts that came or changed since one of them.

    Of a batch that took another back, `undid` names that: what came back counts as added, what went as removed.
    """
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json
    from etl.lake import Lake

    opened = Lake.open(lake, older=True)
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
            "undid": told.get(commit.batch_id, {}).get("undone"),
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
    there: by default it went at once, and only a lake that keeps it (`etl retain 7d`, or `retain` in etl.toml, set
    before that batch) can take back a night in which files grew. What later batches did stays.
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

    By default they go at once. Those that stay allow `etl undo` and reading older versions with a Delta reader. While
    files are retained, a plain glob sees old rows too: use `views.sql`, `etl.scan` or a Delta reader.
    """
    from etl.cli.values import print_json
    from etl.lake import Lake
    from etl.lake.retention import in_words, milliseconds

    if duration is None:
        kept = Lake.open(lake, older=True).retain_ms
    else:
        kept = milliseconds(duration)
        with _open(lake) as opened:
            opened.retain(kept)
    if as_json:
        print_json({"retain_ms": kept})
    else:
        click.echo(f"replaced data files stay for {in_words(kept)}" if kept else "replaced data files go at once")
    return DONE


@click.command()
@click.argument("rollout_ids", nargs=-1, metavar="[ROLLOUT_ID...]")
@lake_option
@json_option
@click.option("--where", metavar="SQL", help="Instead of ids: a condition over the view rollouts.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(rollout_ids: tuple[str, ...], lake: str, as_json: bool, where: str | None, yes: bool) -> int:
    """Delete conversations for good.

    Their rows go with those of their sub-agents and branches, their events, and rejects of the same files that name
    them; so do old versions of the data files that held them. Reading their sources again does not bring them back.
    """
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json

    if bool(rollout_ids) == (where is not None):
        raise click.UsageError("give the ids of rollouts, or --where")
    found = _family(lake, rollout_ids, where)
    if found and not yes and not sys.stdin.isatty():
        raise click.UsageError(
            f"{len(found):,} rollouts would be deleted for good, and nobody is there to ask: give --yes"
        )
    if found and not yes:
        what = "1 rollout" if len(found) == 1 else f"{len(found):,} rollouts"
        click.confirm(f"Delete {what} of {lake} for good (--yes does not ask)?", abort=True, err=True)
    done = (0, 0, 0)
    if found:
        with _open(lake) as opened:
            done = opened.forget(found)
    if as_json:
        print_json({"forgotten": dict(zip(("rollouts", "events", "rejects"), done, strict=True))})
    elif found:
        print_listing(console(), ("rollouts", "events", "rejects"), [list(done)])
    else:
        note("nothing to forget")
    return DONE


@click.command()
@lake_option
@json_option
@click.option(
    "--redact",
    type=click.Choice(["secrets", "pii", "strict"]),
    help="The policy.  [default: for each source the strictest that any row of it went through]",
)
@click.option(
    "--check", is_flag=True, help="Do it: scan the lake and redact what a rule finds. It cannot be taken back."
)
@click.option(
    "--dry-run", is_flag=True, help="Only look: scan the lake, say what would be redacted, and write nothing."
)
def redact(lake: str, as_json: bool, redact: str | None, check: bool, dry_run: bool) -> int:
    """Redact what is in the lake already, after a rule has improved or with a stricter policy.

    `--check` does it, for good; `--dry-run` only looks, also beside `--check`.

    Without --redact each source goes through the strictest policy that any row of it went through. Data files whose
    rows did not go through the present rules are read and written anew, and their old versions go at once, retained or
    not. The others are left alone.
    """
    from etl.cli.summary import lake_argument
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json
    from etl.schema import TABLES

    if not (check or dry_run):
        given = "etl redact" + (f" --redact {redact}" if redact is not None else "") + lake_argument(lake)
        raise click.UsageError(f"type `{given} --dry-run` to only look, `{given} --check` to redact the lake for good")
    done = dict.fromkeys(TABLES, (0, 0))
    versions: list[str] = []
    with _open(lake) as opened:
        for policy, sources in ({redact: None} if redact is not None else _strictest(opened)).items():
            redactor = _redactor(opened, policy)
            versions.append(redactor.version)
            for table, (older, found) in done.items():
                change = partial(_masked, redactor, table)
                more = opened.rewrite(table, change, redactor.version, dry_run=dry_run, sources=sources)
                done[table] = (older + more.older, found + more.found)
    rules = ", ".join(versions)
    if as_json:
        told = [{table: counts[place] for table, counts in done.items()} for place in (0, 1)]
        print_json({"rules": rules, "older" if dry_run else "rewritten": told[0], "found": told[1]})
    else:
        columns = ("table", "files of older rules" if dry_run else "files written anew", "with findings")
        print_listing(console(), columns, [[table, *rewritten] for table, rewritten in done.items()])
        note(f"rules: {rules or 'none, as nothing is in the lake'}")
    return DONE


def _strictest(lake: Lake) -> dict[str, set[str] | None]:
    """Policy → the sources whose rows go through it: the strictest that any row of theirs went through, at least that
    for secrets.
    """
    from etl.lake.rules import policies_in, strictest

    found: dict[str, set[str] | None] = {}
    for source, policies in sorted(policies_in(lake).items()):
        of_policy = found.setdefault(strictest({"secrets", *policies}), set())
        assert of_policy is not None
        of_policy.add(source)
    return found


def _redactor(lake: Lake, policy: str) -> Redactor:
    from etl.keys import lake_key
    from etl.policies import KEYED
    from etl.redact import Redactor

    key = pseudonym_key()
    return Redactor(policy, key or (lake_key(lake.id) if policy in KEYED else None), lambda: lake_key(lake.id))


def _masked(redactor: Redactor, table: str, rows: pa.Table) -> pa.Table:
    return redactor.table(table, rows).table


def _family(lake: str, rollout_ids: tuple[str, ...], where: str | None) -> list[Conversation]:
    """The chosen rollouts, and all that came from them. UsageError for an id that is not there."""
    from etl.errors import UsageError
    from etl.lake import Conversation
    from etl.query import connect, execute

    connection = connect(lake, locked=True)
    chosen = f"({where}\n)" if where is not None else "list_contains(getvariable('forget_ids'), rollout_id)"
    connection.execute("SET VARIABLE forget_ids = $1", [list(rollout_ids)])
    query = f"""
        WITH RECURSIVE family AS (
            SELECT rollout_id FROM rollouts WHERE {chosen}
            UNION
            SELECT child.rollout_id FROM rollouts_stored child JOIN family ON child.parent_id = family.rollout_id
        )
        SELECT rollout_id, source, conversation_id, source_uri FROM rollouts_stored SEMI JOIN family USING (rollout_id)
        ORDER BY rollout_id
    """
    found = [Conversation(*row) for row in execute(connection, query, around=True).rows]
    missing = sorted({*rollout_ids} - {conversation.rollout_id for conversation in found})
    if missing:
        raise UsageError(f"no rollout has the id {missing[0]!r} (ids are given whole here); nothing was deleted")
    return found


@contextlib.contextmanager
def _open(lake: str) -> Iterator[Lake]:
    """The lake with an open batch of its own."""
    from etl.lake import Lake

    opened = Lake.open(lake)
    opened.sweep()
    with opened.batch(f"u_{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}_{uuid4().hex[:8]}"):
        yield opened
