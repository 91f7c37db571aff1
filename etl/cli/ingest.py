"""`etl ingest`: the main job."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from etl.cli.nightly import exit_code, nightly, send_metrics, warn_of_milder
from etl.cli.options import format_option, json_option, lake_option, pseudonym_key, redact_option
from etl.limits import MAX_DEPTH, Limits

if TYPE_CHECKING:
    from etl.homes import AgentHome

_NOTHING_NAMED = "name what to read: PATH..., --agent-homes or --config etl.toml"


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path())
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read every source that this file names (etl.toml), instead of PATH.",
)
@lake_option
@json_option
@format_option
@click.option(
    "--map",
    "map_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Which column is what, for logs of your own (`etl formats --map-example` prints one).",
)
@click.option(
    "--source", metavar="NAME", help="Name of the log stream, a partition of the lake.  [default: the format's name]"
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that read files.")
@click.option(
    "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Where files are read."
)
@click.option(
    "--ray-address", metavar="ADDRESS", help="A running Ray cluster, as in auto.  [default: one on this machine]"
)
@redact_option
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out matching files; may be given several times.")
@click.option(
    "--max-record-mb",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Reject records longer than this, in MiB.",
)
@click.option(
    "--max-nesting",
    type=click.IntRange(1, MAX_DEPTH),
    default=MAX_DEPTH,
    show_default=True,
    help="Reject records nested deeper than so many levels.",
)
@click.option(
    "--agent-homes", is_flag=True, help="Also read the sessions of coding agents in their usual places on this machine."
)
@click.option("--reparse", is_flag=True, help="Read unchanged files again, for example after an adapter changed.")
@click.option("--dry-run", is_flag=True, help="Do everything but write.")
@click.option("--fail-on-reject", is_flag=True, help="Exit 3 when any record was rejected.")
@click.pass_context
def ingest(
    ctx: click.Context,
    paths: tuple[str, ...],
    config_path: Path | None,
    lake: str,
    as_json: bool,
    format_name: str | None,
    map_path: Path | None,
    source: str | None,
    workers: int,
    engine: str,
    ray_address: str | None,
    redact: str,
    exclude: tuple[str, ...],
    max_record_mb: int,
    max_nesting: int,
    agent_homes: bool,
    reparse: bool,
    dry_run: bool,
    fail_on_reject: bool,
) -> int:
    """Read logs into the lake.

    PATH is a file, a folder or a glob, compressed or not; the format is told by content. With --config the sources of a
    nightly job are read, each as its table in the file says. With --agent-homes the usual folders of coding agents are
    read too (Claude Code, Codex, Gemini CLI, OpenCode, Cursor, Cline, aider and others; variables that move them are
    respected), and what is found is said first. Reading the same input again, in any order and from any path, changes
    nothing. A bad record becomes a reject, a file that cannot be read is listed in `etl sources`; the rest of the run
    goes on.
    """
    from etl.cli.progress import shown_progress
    from etl.cli.values import print_json
    from etl.pipeline import ingest as run_ingest

    if config_path is not None:
        return nightly(ctx, config_path, as_json, reparse, dry_run, fail_on_reject)
    homes = _homes() if agent_homes else []
    if not paths and not homes:
        missing = "no agent keeps sessions in a usual place here; name PATH..." if agent_homes else _NOTHING_NAMED
        raise click.UsageError(missing)
    if homes and not as_json:
        _print_homes(homes)
    with shown_progress() as progress:
        report = run_ingest(
            [*paths, *(home.path for home in homes)],
            lake=lake,
            format=format_name,
            map=map_path,
            source=source,
            workers=workers,
            engine=engine,
            ray_address=ray_address,
            redact=redact,
            pseudonym_key=pseudonym_key(),
            exclude=exclude,
            limits=Limits(nesting=max_nesting, record_bytes=max_record_mb << 20),
            reparse=reparse,
            dry_run=dry_run,
            now=dt.datetime.now(dt.UTC),
            progress=progress,
        )
    if as_json:
        told = {"agent_homes": [home._asdict() for home in homes]} if agent_homes else {}
        print_json({**told, **report.to_json(), "drift": [found._asdict() for found in report.drift]})
    else:
        from etl.cli.summary import print_summary

        print_summary(report, lake)
        if not report.results:
            from etl.cli.tables import note

            note("there is no file where it was to look, or all are excluded")
    if not dry_run:
        warn_of_milder(report, lake, redact)
    send_metrics([report])
    return exit_code([report], fail_on_reject=fail_on_reject)


def _homes() -> list[AgentHome]:
    """The places of agents on this machine that hold files."""
    from etl.homes import Machine, agent_homes

    return agent_homes(Machine(Path.home(), os.environ, sys.platform, Path.cwd()))


def _print_homes(homes: Sequence[AgentHome]) -> None:
    """What was found, before any of it is read."""
    from etl.cli.tables import console
    from etl.harmless import harmless_line

    out = console()
    for home in homes:
        files = f"{home.files:,} file{'' if home.files == 1 else 's'}"
        out.print(f"found     {home.agent}: {files} in {harmless_line(home.path)}", soft_wrap=True)
