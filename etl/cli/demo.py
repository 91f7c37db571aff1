"""`etl demo`: what a newcomer runs first."""

from __future__ import annotations

import datetime as dt

import click

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option


@click.command()
@lake_option
@json_option
def demo(lake: str, as_json: bool) -> int:
    """Try it: sample logs into a lake, three questions asked of it, and its gaps filled by simulation.

    The sample logs ship with etl. They have faults planted in them, so some records are rejected.
    """
    from etl.cli.progress import shown_progress
    from etl.cli.simulate import print_simulation
    from etl.cli.summary import lake_argument, print_summary
    from etl.cli.tables import console, print_rows
    from etl.cli.values import print_json
    from etl.demo import demo as run_demo

    with shown_progress() as progress:
        done = run_demo(lake, now=dt.datetime.now(dt.UTC), progress=progress)
    report, rollout_id = done.report, done.rollout_id
    if as_json:
        asked = [
            {"title": question.title, "sql": question.sql, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
            for question, names, rows in (*done.answers, done.before, done.after)
        ]
        print_json(
            {
                "ingest": report.to_json(),
                "questions": asked,
                "simulation": done.simulation.to_json(),
                "rollout_id": rollout_id,
            }
        )
        return DONE
    out = console()
    print_summary(report, lake, suggest=False)
    for question, names, rows in (*done.answers, done.before):
        out.print(f"\n{question.title}", style="bold")
        out.print(question.sql, style="dim", soft_wrap=True)
        out.print()
        print_rows(out, names, rows)
    out.print("\nThe same after a simulation of exactly these gaps, without a key or a network:", style="bold")
    print_simulation(done.simulation, lake, suggest=False)
    out.print()
    print_rows(out, done.after.names, done.after.rows)
    where = lake_argument(lake)
    out.print("\nWhat to try next:", style="bold")
    for command, why in (
        (f"etl serve{where}", "in the browser: failing tools, conversations, coverage"),
        (f"etl show {rollout_id[:10]}{where}", "one conversation, read top to bottom"),
        (f"etl shell{where}", "a prompt for SQL; .tables lists the views"),
        (f"etl coverage{where}", "what the agents' calls cover, and what they lack"),
        (f"etl rejects{where}", "what is wrong with each rejected record"),
        ("etl ingest YOUR-LOGS --lake my-lake", "your own logs: files, folders, globs"),
    ):
        out.print(f"  {command:<40}  {why}", soft_wrap=True)
    return DONE
