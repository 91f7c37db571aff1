"""What an ingest did, for people: what came in, what could not be used and where, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from etl.cli.lines import print_line
from etl.harmless import harmless_line
from etl.report import STATES, Report
from etl.results import said_of

RULES_SHOWN = 5
"""Rules that are named, those that leave out the most."""
FAILED_SHOWN = 5
"""Failed files that are named; `etl sources --state failed` lists all."""


def print_summary(report: Report, lake: str, *, suggest: bool = True) -> None:
    """A few lines on stdout; what went wrong comes last, with the commands that tell more where `suggest` says so."""
    print_line(_headline(report, lake))
    for label, text in _lines(report):
        print_line(text, label=label)
    for line in _next(report, lake) if suggest else ():
        print_line(f"→ {line}", style="bold")


def lake_argument(lake: str) -> str:
    """` --lake DIR` as a shell takes it, or nothing for the lake that is the default."""
    return "" if lake == "./lake" else f" --lake {shlex.quote(lake)}"


def _headline(report: Report, lake: str) -> str:
    rate = f", {report.bytes_read / report.seconds / 1e6:.1f} MB/s" if report.seconds and report.bytes_read else ""
    done = "Dry run, nothing written: read" if report.dry_run else "Read"
    into = "" if report.dry_run else f" into {lake}"
    return f"{done} {_size(report.bytes_read)}{into} in {report.seconds:.1f} s{rate} (batch {report.batch_id})"


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    """Label and text of every line that has something to say."""
    told = report.to_json()
    files = told["files"]
    always = ("new", "grown", "unchanged", "skipped", "failed")
    shown = tuple(state for state in (*STATES, "vanished") if state in always or files[state])
    yield "files", f"{files['seen']:,} seen: " + _counts(files, shown)
    for adapter, sums in told["by_adapter"].items():
        made = _plural(sums["rows"], "row")
        if report.dry_run and not sums["rows"] and sums["records_used"]:
            made = "rows are put together when the lake is written"
        yield "", f"{adapter}: {_plural(sums['files'], 'file')}, {made}"
    if not report.dry_run:
        yield "rows", _counts(told["rows"], ("added", "replaced", "removed", "unchanged"))
        if copies := report.rows.copies:
            yield "", f"{_plural(copies, 'reading')} left out: another of this run says the same of the same rollout"
        if superseded := report.rows.superseded:
            yield (
                "",
                (
                    f"{_plural(superseded, 'reading')} left out: the row that stays says something else and is as long "
                    "and as late; an `ended_at` that grows with each edit would tell which is newer"
                ),
            )
    used, ignored, rejected = told["records_used"], sum(told["ignored"].values()), sum(told["rejects"].values())
    yield "records", f"{told['records_in']:,} read: {used:,} used, {ignored:,} ignored, {rejected:,} rejected"
    rules = sorted(told["ignored"].items(), key=lambda item: (-item[1], item[0]))
    for rule, count in rules[:RULES_SHOWN]:
        yield "", f"ignored {count:,} by the rule {rule}"
    if len(rules) > RULES_SHOWN:
        yield "", f"ignored {sum(count for _, count in rules[RULES_SHOWN:]):,} by other rules (--json names all)"
    for reason, (count, place) in _rejects(report).items():
        yield "", f"rejected {count:,} for {reason}, first at {harmless_line(place)}"
    for found in report.drift:
        yield "drift", harmless_line(f"{found.source}: {found.message}")
    for result in report.failed(FAILED_SHOWN):
        yield "failed", harmless_line(said_of(result.uri, result.error))
    if files["failed"] > FAILED_SHOWN:
        yield "", f"and {files['failed'] - FAILED_SHOWN:,} more files"


def _rejects(report: Report) -> dict[str, tuple[int, str]]:
    """Reason → how many, and where the first lies."""
    places = report.first_rejects()
    return {reason: (count, str(places.get(reason, ""))) for reason, count in sorted(report.rejects().items())}


def _next(report: Report, lake: str) -> Iterator[str]:
    """Commands that are worth typing now."""
    where = lake_argument(lake)
    if report.dry_run:
        return
    if report.has_failed():
        again = "each run tries them again and ends with 3, until they are left out (--exclude)"
        yield f"etl sources --state failed{where}    files that could not be read, and why; {again}"
    files = report.to_json()["files"]
    if files["skipped"] + files["failed"] == files["seen"] and files["skipped"]:
        yield f"etl sources --state skipped{where}    files that are no conversation logs, and why"
    if report.rejects():
        yield f"etl rejects{where}    records that could not be used, and what to do"
    if report.rows.added or report.rows.replaced:
        yield f'etl sql{where} "SELECT source, count(*) AS rollouts, avg(reward) FROM rollouts GROUP BY ALL"'


def _counts(counts: dict[str, int], names: tuple[str, ...]) -> str:
    return ", ".join(f"{counts[name]:,} {name}" for name in names)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    """Bytes in words: 1 MB is 10**6 bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
