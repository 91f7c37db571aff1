"""`etl ingest`: the main job."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import click

from etl.cli.exits import DONE, DONE_WITH_FAILURES
from etl.cli.options import format_option, json_option, lake_option, redact_option

if TYPE_CHECKING:
    from etl.report import Report


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@lake_option
@json_option
@format_option
@click.option(
    "--source", metavar="NAME", help="Name of the log stream, a partition of the lake.  [default: the format's name]"
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that read files.")
@redact_option
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out matching files; may be given several times.")
@click.option(
    "--max-record-mb",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Reject records longer than this, in MiB.",
)
@click.option("--reparse", is_flag=True, help="Read unchanged files again, for example after an adapter changed.")
@click.option("--dry-run", is_flag=True, help="Do everything but write.")
@click.option("--fail-on-reject", is_flag=True, help="Exit 3 when any record was rejected.")
def ingest(
    paths: tuple[str, ...],
    lake: str,
    as_json: bool,
    format_name: str | None,
    source: str | None,
    workers: int,
    redact: str,
    exclude: tuple[str, ...],
    max_record_mb: int,
    reparse: bool,
    dry_run: bool,
    fail_on_reject: bool,
) -> int:
    """Read logs into the lake.

    PATH is a file, a folder or a glob, compressed or not; the format is told by content. Reading the same input again,
    in any order and from any path, changes nothing. A bad record becomes a reject, a file that cannot be read is listed
    in `etl sources`; the rest of the run goes on.
    """
    from etl.cli.progress import shown_progress
    from etl.cli.summary import print_summary
    from etl.cli.values import print_json
    from etl.framing import Limits
    from etl.pipeline import ingest as run_ingest

    with shown_progress() as progress:
        report = run_ingest(
            paths,
            lake=lake,
            format=format_name,
            source=source,
            workers=workers,
            redact=redact,
            exclude=exclude,
            limits=Limits(record_bytes=max_record_mb << 20),
            reparse=reparse,
            dry_run=dry_run,
            now=dt.datetime.now(dt.UTC),
            progress=progress,
        )
    if as_json:
        print_json(report.to_json())
    else:
        print_summary(report, lake)
    return exit_code(report, fail_on_reject=fail_on_reject)


def exit_code(report: Report, *, fail_on_reject: bool) -> int:
    """3 where a file failed, or where a record was rejected and that counts as a failure; else 0."""
    return DONE_WITH_FAILURES if report.failed() or (fail_on_reject and report.rejects()) else DONE
