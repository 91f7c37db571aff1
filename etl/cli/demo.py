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
    """Try it: sample logs into a lake, and three questions asked of it.

    The sample logs ship with etl. They have faults planted in them, so some records are rejected.
    """
    from etl.cli.progress import shown_progress
    from etl.cli.summary import lake_argument, print_summary
    from etl.cli.tables import console, print_rows
    from etl.cli.values import print_json
    from etl.demo import demo as run_demo

    with shown_progress() as progress:
        report, answers, rollout_id = run_demo(lake, now=dt.datetime.now(dt.UTC), progress=progress)
    if as_json:
        asked = [
            {"title": question.title, "sql": question.sql, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
            for question, names, rows in answers
        ]
        print_json({"ingest": report.to_json(), "questions": asked, "rollout_id": rollout_id})
        return DONE
    out = console()
    print_summary(report, lake, suggest=False)
    for question, names, rows in answers:
        out.print(f"\n{question.title}", style="bold")
        out.print(question.sql, style="dim", soft_wrap=True)
        out.print()
        print_rows(out, names, rows)
    where = lake_argument(lake)
    out.print("\nWhat to try next:", style="bold")
    for command, why in (
        (f"etl show {rollout_id[:10]}{where}", "one conversation, read top to bottom"),
        (f"etl shell{where}", "a prompt for SQL; .tables lists the views"),
        (f"etl rejects{where}", "what is wrong with each rejected record"),
        ("etl ingest YOUR-LOGS --lake my-lake", "your own logs: files, folders, globs"),
    ):
        out.print(f"  {command:<40}  {why}", soft_wrap=True)
    return DONE
