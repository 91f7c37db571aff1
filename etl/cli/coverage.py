"""`etl coverage`: what traffic covers, what simulation added, what is still missing."""

from __future__ import annotations

import click

from etl.cli.exits import DONE
from etl.cli.options import json_option, lake_option


@click.command()
@lake_option
@json_option
@click.option(
    "--min-support", type=click.IntRange(min=1), default=5, show_default=True, help="Tasks that each pair needs."
)
@click.option("--all", "everything", is_flag=True, help="Show covered pairs too, not only the gaps.")
@click.option("--limit", type=click.IntRange(min=0), default=30, show_default=True, help="Rows shown; 0 shows all.")
def coverage(lake: str, as_json: bool, min_support: int, everything: bool, limit: int) -> int:
    """Show what the agent's calls cover: which tool met which condition in which place, in how many tasks.

    A gap is a pair that traffic shows in fewer tasks than the minimum; the views `coverage` and `gaps` have the same in
    SQL. `etl simulate --fill-gaps` writes what is missing.
    """
    from etl.cli.summary import lake_argument
    from etl.cli.tables import console, print_rows
    from etl.cli.values import print_json
    from etl.covered import coverage as measure

    found = measure(lake, min_support=min_support)
    told = found.to_json()
    if as_json:
        print_json(told)
        return DONE
    out, summary = console(), told["summary"]
    pairs, covered, gaps = summary["pairs"], summary["covered_by_traffic"], summary["gaps"]
    out.print(
        f"{pairs:,} pairs seen or wanted: {covered:,} have {min_support} tasks of traffic; of {gaps:,} gaps "
        f"simulation fills {summary['filled_by_simulation']:,}, open are {summary['missing']:,}",
        style="bold", soft_wrap=True,
    )  # fmt: skip
    shown = found.pairs if everything else found.gaps
    rows = [
        (
            pair.rank,
            f"{pair.axis_1} × {pair.axis_2}",
            pair.value_1,
            pair.value_2,
            pair.traffic,
            pair.simulation,
            pair.missing,
        )
        for pair in shown
    ]
    if rows:
        out.print()
        print_rows(
            out, ["rank", "axes", "first", "second", "traffic", "simulation", "missing"], rows, limit=limit or None
        )
    if limit and len(rows) > limit:
        out.print(f"… and {len(rows) - limit:,} more (--limit 0 shows all)", soft_wrap=True)
    if summary["missing"]:
        out.print(
            f"→ etl simulate --fill-gaps --min-support {min_support}{lake_argument(lake)}", style="bold", soft_wrap=True
        )
    return DONE
