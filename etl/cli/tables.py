"""Tables for people: as wide as they are in a pipe, fitted to the window on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from etl.cli.values import cell
from etl.harmless import harmless_line

PIPE_WIDTH = 100_000
"""Columns of a terminal that is none: no cell is cut."""
LEAST_COLUMN = 9
"""Characters a column needs to be read; where a terminal has fewer for each, records are shown one below the other."""
TERMINAL_ROWS = 100


class Shown(NamedTuple):
    """How many rows a table shows, and whether there were more."""

    rows: int
    more: bool


def console(*, stderr: bool = False) -> Console:
    """Stdout (or stderr) for tables and text; without colour and line ends of its own where it is no terminal.

    Asks the stream itself: an environment that forces colours makes no terminal of a pipe.
    """
    if (sys.stderr if stderr else sys.stdout).isatty():
        return Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return Console(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=PIPE_WIDTH,
        color_system=None,
        force_terminal=False,
    )


def print_rows(out: Console, names: Sequence[str], rows: Iterable[Sequence[Any]], *, limit: int | None = None) -> Shown:
    """Print at most `limit` rows (without one, all) as a table; record by record where columns would be too thin."""
    rows = iter(rows)
    shown = list(islice(rows, limit))
    if out.is_terminal and len(names) * LEAST_COLUMN > out.width:
        _print_records(out, names, shown)
    else:
        _print_tidy(out, _table(names, shown))
    return Shown(len(shown), next(rows, None) is not None)


def _print_tidy(out: Console, table: Table) -> None:
    """Print it; in a pipe without the blanks that fill a terminal's lines."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        out.print(line.rstrip(), soft_wrap=True)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(names):
        right = _all_numbers(row[place] for row in rows)
        table.add_column(
            Text(harmless_line(name)), justify="right" if right else "left", no_wrap=True, overflow="ellipsis"
        )
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    return table


def _all_numbers(values: Iterable[Any]) -> bool:
    """Whether a column holds nothing but numbers: these are read from their last digit."""
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and kinds <= {int, float, Decimal}


def _print_records(out: Console, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    width = max(map(len, names))
    for number, row in enumerate(rows, 1):
        out.rule(f"{number}", align="left", style="dim")
        for name, value in zip(names, row, strict=True):
            line = Text(f"{harmless_line(name):>{width}}  ", style="bold").append_text(_text(value))
            out.print(line, no_wrap=True, overflow="ellipsis")


def _text(value: Any) -> Text:
    return Text("null", style="dim") if value is None else Text(harmless_line(cell(value)), style="not bold")


def note(text: str) -> None:
    """One line on stderr that belongs to no result."""
    click.echo(text, err=True)
