"""`etl sources`, `etl rejects` and `etl verify`: what was read, what could not be used, whether the lake is sound."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from etl.cli.exits import DONE, DONE_WITH_FAILURES, FAILED
from etl.cli.options import json_option, lake_option, pseudonym_key
from etl.harmless import harmless_line

if TYPE_CHECKING:
    from etl.lake import Lake
    from etl.lake.rules import Seen


@click.command()
@lake_option
@json_option
@click.option("--source", metavar="NAME", help="Only this log stream.")
@click.option("--state", type=click.Choice(["done", "growing", "failed", "skipped"]), help="Only files in this state.")
def sources(lake: str, as_json: bool, source: str | None, state: str | None) -> int:
    """List the files that were read, what became of each, and what a source does differently from its runs before."""
    from etl.cli.tables import note
    from etl.lake import Lake
    from etl.results import said_of
    from etl.runs import drift, source_runs

    files = _rows(
        lake,
        """
        SELECT source, uri, state, adapter, records_in, rows, rejects, size, ingested_at, error FROM sources
        WHERE ($source IS NULL OR source = $source) AND ($state IS NULL OR state = $state) ORDER BY source, uri
        """,
        {"source": source, "state": state},
    )
    columns = ("source", "state", "records_in", "rows", "rejects", "file")
    listed = [{**file, "file": said_of(file["uri"], file["error"])} for file in files]
    drifted = [
        found
        for found in drift(source_runs(Lake.open(lake, older=True).reports()))
        if state is None and source in (None, found.source)
    ]
    code = _print(as_json, "sources", files, columns, listed, {"drift": [found._asdict() for found in drifted]})
    for found in () if as_json else drifted:
        note(harmless_line(f"drift in {found.source} (batch {found.batch_id}): {found.message}"))
    return code


@click.command()
@lake_option
@json_option
@click.option("--source", metavar="NAME", help="Only this log stream.")
@click.option("--reason", metavar="CODE", help="Only this reason.")
@click.option("--replay", is_flag=True, help="Read them again, after a fix: what can be used now becomes rows.")
@click.option(
    "--redact",
    type=click.Choice(["none", "secrets", "pii", "strict"]),
    help="The policy of `--replay`.  [default: the strictest that any row of their source went through]",
)
def rejects(lake: str, as_json: bool, source: str | None, reason: str | None, replay: bool, redact: str | None) -> int:
    """List the records that could not be used, and why.

    With `--replay` they are read again: from their files where these are still there, else from the bytes kept.
    """
    if replay:
        return _replay(lake, as_json, source, reason, redact)
    found = _rows(
        lake,
        """
        SELECT source, reason, source_uri, source_line, source_offset, length, message, adapter FROM rejects
        WHERE ($source IS NULL OR source = $source) AND ($reason IS NULL OR reason = $reason)
        ORDER BY source, source_uri, source_offset
        """,
        {"source": source, "reason": reason},
    )
    return _print(as_json, "rejects", found, ("source", "reason", "message"), found)


def _replay(lake: str, as_json: bool, source: str | None, reason: str | None, redact: str | None) -> int:
    from etl.cli.progress import shown_progress
    from etl.cli.summary import print_summary
    from etl.cli.values import print_json
    from etl.lake import Lake
    from etl.pipeline import replay

    Lake.open(lake)  # a lake that is not there is not to be made
    with shown_progress() as progress:
        report = replay(
            lake,
            source=source,
            reason=reason,
            redact=redact,
            pseudonym_key=pseudonym_key(),
            now=dt.datetime.now(dt.UTC),
            progress=progress,
        )
    if as_json:
        print_json(report.to_json())
    else:
        print_summary(report, lake)
    return DONE_WITH_FAILURES if report.has_failed() else DONE


def _rows(lake: str, query: str, values: Mapping[str, str | None]) -> list[dict[str, Any]]:
    from etl.query import connect

    connection = connect(lake)
    connection.execute(query, values)
    names = [str(column[0]) for column in connection.description or []]
    return [dict(zip(names, row, strict=True)) for row in connection.fetchall()]


def _print(
    as_json: bool,
    name: str,
    rows: list[dict[str, Any]],
    columns: Sequence[str],
    listed: list[dict[str, Any]],
    also: Mapping[str, Any] | None = None,
) -> int:
    """`{name: rows}` (and what is told also), or for people the listed columns, of which the last may be long."""
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json

    if as_json:
        print_json({name: rows, **(also or {})})
    elif listed:
        print_listing(console(), columns, [[row[column] for column in columns] for row in listed])
    else:
        note(f"no {name}")
    return DONE


@click.command()
@lake_option
@json_option
@click.option("--repair", is_flag=True, help="Put right what can be: remove orphan files, stale staging folders.")
def verify(lake: str, as_json: bool, repair: bool) -> int:
    """Check that the lake is whole.

    Every file is there, readable, of our schema; every id once; nothing left over. Exits 1 where something is wrong and
    was not repaired.
    """
    from etl.cli.tables import console, note, print_listing
    from etl.cli.values import print_json
    from etl.lake import Lake
    from etl.lake.verify import without_checksums

    opened = Lake.open(lake)
    findings = opened.verify(repair=repair)
    wrong = [finding for finding in findings if not finding.repaired]
    rules = [] if wrong else _rules_in(opened)
    unproven = 0 if wrong else without_checksums(opened)
    if as_json:
        found = [finding._asdict() for finding in findings]
        told = {"rules": [seen._asdict() for seen in rules], "without_checksums": None if wrong else unproven}
        print_json({"sound": not wrong, "findings": found, **told})
    elif findings:
        columns = ("code", "table", "repaired", "path", "message")
        print_listing(console(), columns, [[getattr(finding, column) for column in columns] for finding in findings])
    else:
        note("the lake is sound")
    if unproven:
        note(f"{unproven:,} data files of an older etl have no checksums: they can be read, which is less of a proof")
    if older := sum(seen.files for seen in rules if seen.is_older):
        note(f"{older:,} data files hold rows of older rules of redaction: `etl redact --check` looks at them again")
    for source, policies in _mixed(rules):
        note(
            harmless_line(
                f"rows of {source} went through different policies of redaction ({policies}): "
                "`etl redact --check` brings all of them to the strictest"
            )
        )
    return FAILED if wrong else DONE


def _mixed(rules: Sequence[Seen]) -> list[tuple[str, str]]:
    """Sources whose rows went through several policies, with their names from the mildest on."""
    from etl.lake.rules import FROM_MILD, policy_of

    found: dict[str, set[str]] = {}
    for seen in rules:
        for source in seen.sources:
            found.setdefault(source, set()).add(policy_of(seen.version))
    told = {source: [policy for policy in FROM_MILD if policy in of_it] for source, of_it in sorted(found.items())}
    return [(source, ", ".join(policies)) for source, policies in told.items() if len(policies) > 1]


def _rules_in(lake: Lake) -> list[Seen]:
    """What its rows went through, held against the rules of today; those of an extra only where it is there."""
    from etl.errors import MissingExtraError
    from etl.lake.rules import rules_in
    from etl.redact.redactor import rules_version

    present = []
    for policy in ("secrets", "pii", "strict"):
        with contextlib.suppress(MissingExtraError):
            present.append(rules_version(policy))
    return list(rules_in(lake, present))
