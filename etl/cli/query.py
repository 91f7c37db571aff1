"""`etl sql`, `etl shell` and `etl show`: reading the lake."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option, unsafe_option
from etl.errors import UsageError


@click.command()
@click.argument("query")
@lake_option
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header line.")
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    help="Rows of a table to show: 100 on a terminal, all in a pipe; 0 is all.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the answer to this file: .parquet, .csv, .json or .jsonl.",
)
@unsafe_option
def sql(
    query: str, lake: str, as_json: bool, as_csv: bool, max_rows: int | None, out: Path | None, unsafe: bool
) -> int:
    """Run SQL over the lake.

    Every view is open: rollouts, messages, steps, rejects, sources and more. QUERY is one or more DuckDB statements;
    the last one's answer is printed. `-` reads them from stdin. SQL that does not parse or names what is not there is
    wrong usage (exit 2). It reads the lake and writes tables of its own in memory; `--out` writes its answer to a file.
    """
    from etl.cli.results import print_csv, print_json_answer, print_table, write_answer
    from etl.cli.values import print_json
    from etl.query import run_sql

    if as_csv and (as_json or out is not None):
        raise UsageError(f"--csv and {'--json' if as_json else '--out'} exclude each other")
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise UsageError('no SQL given; try: etl sql "SELECT count(*) FROM rollouts"')
    if out is not None:
        rows = write_answer(lake, text, out, unsafe=unsafe)
        if as_json:
            print_json({"out": str(out), "rows": rows})
        else:
            click.echo(f"wrote {rows:,} row{'' if rows == 1 else 's'} to {out}")
        return DONE
    answer = run_sql(lake, text, unsafe=unsafe)
    if as_json:
        print_json_answer(answer)
    elif as_csv:
        print_csv(answer)
    else:
        print_table(answer, max_rows)
    return DONE


@click.command()
@lake_option
@click.option("--json", "as_json", is_flag=True, help="Print each answer as one JSON object.")
@unsafe_option
def shell(lake: str, as_json: bool, unsafe: bool) -> int:
    """A prompt for SQL over the lake.

    It has history, completion and colours; `.help` tells what else it knows. Where stdin is no terminal, every
    statement in it is run and its answer printed; the first error ends it.
    """
    from etl.cli.prompt import Prompt

    prompt = Prompt(lake, as_json=as_json, unsafe=unsafe)
    if sys.stdin.isatty():
        prompt.ask()
    else:
        prompt.run_script(sys.stdin.read())
    return DONE


@click.command()
@click.argument("rollout_id")
@lake_option
@json_option
@click.option("--full", is_flag=True, help="Fold nothing: long texts, the tools offered, other fields of the log.")
def show(rollout_id: str, lake: str, as_json: bool, full: bool) -> int:
    """Read one conversation, top to bottom.

    What was asked, each call and what came back, what was finally said. ROLLOUT_ID may be cut short as long as it is
    the only one that begins so; the id of a conversation will do where it has one row.
    """
    from etl.cli.tables import console, print_paged
    from etl.cli.values import print_json
    from etl.query import connect, find_kin, find_rollout
    from etl.show import render

    connection = connect(lake)
    row = find_rollout(connection, rollout_id)
    if as_json:
        print_json(row)
    else:
        print_paged(console(), render(row, full=full, kin=find_kin(connection, row)))
    return DONE
