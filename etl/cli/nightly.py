"""`etl ingest --config etl.toml`: the nightly job, its report, and metrics where somebody listens."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from etl.cli.exits import DONE, DONE_WITH_FAILURES
from etl.cli.options import follow_sharing, pseudonym_key
from etl.errors import EtlError, UsageError

if TYPE_CHECKING:
    from etl.nightly import Night
    from etl.report import Report

_FROM_CONFIG = {
    "paths": "PATH",
    "source": "--source",
    "format_name": "--format",
    "map_path": "--map",
    "redact": "--redact",
    "workers": "--workers",
    "engine": "--engine",
    "ray_address": "--ray-address",
    "exclude": "--exclude",
    "max_record_mb": "--max-record-mb",
    "max_nesting": "--max-nesting",
    "agent_homes": "--agent-homes",
}
"""What the file says of each source, and nothing else may say."""
_FILES_LOOKED_AT = 16
"""Data files of a source in which an earlier, stricter policy is looked for."""


def nightly(
    ctx: click.Context, path: Path, as_json: bool, reparse: bool, dry_run: bool, fail_on_reject: bool
) -> int:  # fmt: skip
    """Read what the file names; `--lake` takes the place of its lake."""
    from etl.cli.progress import shown_progress
    from etl.cli.values import print_json
    from etl.config import load
    from etl.nightly import run

    for name, shown in _FROM_CONFIG.items():
        if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{shown} and --config: {path} says what is read, and how; change it there")
    config = load(path)
    if ctx.get_parameter_source("lake") != ParameterSource.DEFAULT:
        config = config.into(ctx.params["lake"])
    follow_sharing(config.lake)
    with shown_progress() as progress:
        night = run(
            config,
            reparse=reparse,
            dry_run=dry_run,
            now=dt.datetime.now(dt.UTC),
            progress=progress,
            pseudonym_key=pseudonym_key(),
        )
    if config.report is not None:
        _write(Path(config.report), night)
    if as_json:
        print_json(night.to_json())
    else:
        _print(night, config.lake)
    for source in config.sources if not dry_run else ():
        if source.name in night.reports:
            warn_of_milder(night.reports[source.name], config.lake, source.redact or "secrets")
    reports = list(night.reports.values())
    send_metrics(reports)
    return DONE_WITH_FAILURES if night.failed else exit_code(reports, fail_on_reject=fail_on_reject)


def exit_code(reports: Sequence[Report], *, fail_on_reject: bool) -> int:
    """3 where a file failed, or where a record was rejected and that counts as a failure; else 0."""
    wrong = any(report.has_failed() or (fail_on_reject and report.rejects()) for report in reports)
    return DONE_WITH_FAILURES if wrong else DONE


def warn_of_milder(report: Report, lake: str, policy: str) -> None:
    """A line for each source of which something was read under a milder policy than rows of it that were there already:
    its rejects and the names of its files are written also where no row is new.
    """
    read = {source for source, adapter in report.sums if adapter is not None}
    if not read or report.dry_run:
        return
    from etl.cli.tables import note
    from etl.harmless import harmless_line
    from etl.lake import Lake
    from etl.lake.rules import FROM_MILD, policies_in, strictest

    for source, policies in sorted(policies_in(Lake.open(lake), read, most=_FILES_LOOKED_AT).items()):
        before = strictest(policies)
        if FROM_MILD.index(policy) < FROM_MILD.index(before):
            mended = "" if policy == "none" else "; `etl redact --check` mends what is in"
            note(
                harmless_line(
                    f"{source} was read under --redact {policy}, and rows of it went through {before} before: new "
                    f"rows, rejects and names of files may hold what {before} would have replaced. Read it under "
                    f"--redact {before}{mended}"
                )
            )


def send_metrics(reports: Sequence[Report]) -> None:
    """To the OpenTelemetry endpoint of the environment; what goes wrong there is a note, since the rows are in."""
    if not any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "METRICS_")):
        return
    from etl.cli.tables import note
    from etl.telemetry import send

    try:
        send(reports)
    except EtlError as error:
        note(str(error))


def _print(night: Night, lake: str) -> None:
    from etl.cli.lines import print_line
    from etl.cli.summary import print_summary
    from etl.harmless import harmless_line

    for source, report in night.reports.items():
        print_line(f"{harmless_line(source)}:", style="bold")
        print_summary(report, lake)
    for source, reason in night.failed.items():
        print_line(f"{harmless_line(source)}: not read: {harmless_line(reason)}", style="bold red")


def _write(path: Path, night: Night) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(night.to_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written ({error.strerror or error}); the rows are in") from None
