"""Tables for people: fitted to the window on a terminal, with cells of bounded length in a pipe."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain, count, islice
from typing import Any, NamedTuple

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.text import Text

from etl.harmless import harmless_line
from etl.values import cell

PIPE_WIDTH = 100_000
"""Columns of a terminal that is none: no line is broken."""
PIPE_CELL = 120
"""Characters of a cell in a pipe, where it stands beside others."""
LEAST_COLUMN = 8
"""Characters a long column needs to be read; where a window has fewer, records are shown one below the other."""
LEAST_LAST = 20
"""Characters that the last column of a listing wants on its first line."""
TERMINAL_ROWS = 100
FITTED_ROWS = 1_000
"""Rows that the columns of a table in a pipe are fitted to; later ones are written as they come."""
GAP = 3
"""Blanks between two columns."""


class Shown(NamedTuple):
    """How many rows a table shows, whether there were more, and whether cells in a pipe were cut."""

    rows: int
    more: bool
    cut: bool


class _Console(Console):
    """Lets a closed pipe be known, where rich would end the process itself."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Stdout (or stderr) for tables and text; without colour and line ends of its own where it is no terminal.

    Asks the stream itself: an environment that forces colours makes no terminal of a pipe.
    """
    if (sys.stderr if stderr else sys.stdout).isatty():
        return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return _Console(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=PIPE_WIDTH,
        color_system=None,
        force_terminal=False,
    )


def print_rows(out: Console, names: Sequence[str], rows: Iterable[Sequence[Any]], *, limit: int | None = None) -> Shown:
    """Print at most `limit` rows (without one, all) as a table, FITTED_ROWS of them in memory.

    On a terminal the longest cells are cut until a row fits the window; where they would be too short to be read,
    records are shown one below the other instead. In a pipe cells of several columns have PIPE_CELL characters at most.
    """
    rows = iter(rows)
    wanted = islice(rows, limit)
    first = list(islice(wanted, FITTED_ROWS))
    texts = [[_text(value) for value in row] for row in first]
    heads = [harmless_line(name) for name in names]
    widths = [max(map(cell_len, column)) for column in zip(heads, *texts, strict=True)]
    longest = max(widths, default=0)
    if out.is_terminal:
        longest = _longest(widths, out.width - GAP * (len(widths) - 1))
    elif len(widths) > 1:
        longest = PIPE_CELL
    cut = not out.is_terminal and any(width > longest for width in widths)
    counted = count(len(first))
    later = ([_text(value) for value in row] for row, _ in zip(wanted, counted, strict=False))
    if longest < LEAST_COLUMN and longest < max(widths, default=0):
        _print_records(out, heads, chain(texts, later))
    else:
        right = [_all_numbers(column) for column in zip(*first, strict=True)] or [False] * len(heads)
        fitted = [min(width, longest) for width in widths]
        _print_table(out, heads, texts, fitted, right)
        for row in later:
            lengths = [cell_len(text) for text in row]
            cut = cut or (not out.is_terminal and len(row) > 1 and max(lengths) > longest)
            room = (
                fitted
                if out.is_terminal
                else [max(width, min(length, PIPE_CELL)) for width, length in zip(fitted, lengths, strict=True)]
            )
            _put(out, _line(row, room, right))
    return Shown(next(counted), next(rows, None) is not None, cut)


def print_listing(out: Console, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table whose last column is never cut: on a terminal it runs over into the next line.

    Where the others leave it no room to speak of, records are shown one below the other.
    """
    rows = list(rows)
    texts = [[_text(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *texts, strict=True)]
    room = out.width - sum(widths[:-1]) - GAP * (len(widths) - 1)
    if out.is_terminal and room < min(widths[-1], LEAST_LAST):
        _print_records(out, names, texts, cut=False)
        return
    _print_table(out, names, texts, [*widths[:-1], 0], [_all_numbers(column) for column in zip(*rows, strict=True)])


def print_paged(out: Console, text: RenderableType) -> None:
    """Print; on a terminal through the pager ($PAGER, else less) where it is longer than the window."""
    if not out.is_terminal:
        out.print(text)
        return
    with out.capture() as captured:
        out.print(text)
    shown = captured.get()
    if shown.count("\n") < out.height:
        click.echo(shown, nl=False, color=True)
    else:
        click.echo_via_pager(shown, color=True)


def print_styled(text: str, label: str | None, style: str | None) -> None:
    """One line on a terminal; a dim label before it where there is one."""
    before = "" if label is None else f"{label:<8}  "
    console().print(Text.assemble((before, "dim"), (text, style or "")), soft_wrap=True)


def note(text: str) -> None:
    """One line on stderr that belongs to no result."""
    click.echo(text, err=True)


def _longest(widths: Sequence[int], room: int) -> int:
    """The length that the longest cells must be cut to, so that all columns have room."""
    for place, width in enumerate(sorted(widths)):
        share = max(room, 0) // (len(widths) - place)
        if width > share:
            return share
        room -= width
    return max(widths, default=0)


def _print_table(
    out: Console, names: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]
) -> None:
    """A heading, a rule and the rows; a last column of width 0 is as long as it likes."""
    out.print(_line(names, widths, right), style="bold", soft_wrap=True)
    last = widths[-1] or max(cell_len(row[-1]) for row in [names, *rows])
    out.print("─" * min(sum(widths[:-1]) + last + GAP * (len(widths) - 1), out.width), style="dim", soft_wrap=True)
    for row in rows:
        _put(out, _line(row, widths, right))


def _put(out: Console, line: str) -> None:
    """One line, harmless already: past rich where there is nothing for it to do, which is ten times as quick."""
    if out.is_terminal:
        out.print(line, soft_wrap=True)
    else:
        out.file.write(line + "\n")


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = [
        _sized(text, width or cell_len(text), to_the_right=side)
        for text, width, side in zip(texts, widths, right, strict=True)
    ]
    return (" " * GAP).join(cells).rstrip()


def _sized(text: str, width: int, *, to_the_right: bool) -> str:
    """The text in exactly `width` columns of the terminal. Of a path the end is kept, of all else the beginning."""
    length = cell_len(text)
    if length <= width:
        return " " * (width - length) + text if to_the_right else text + " " * (width - length)
    if text.startswith("/") and " " not in text:
        while cell_len(text) >= width:
            text = text[1 + max(cell_len(text) - width, 0) // 2 :]
        return set_cell_size("…" + text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)


def _all_numbers(values: Iterable[Any]) -> bool:
    """Whether a column holds nothing but numbers: these are read from their last digit."""
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and kinds <= {int, float, Decimal}


def _print_records(out: Console, names: Sequence[str], rows: Iterable[Sequence[str]], *, cut: bool = True) -> None:
    width = max(map(cell_len, names))
    room = max(out.width - width - 2, LEAST_COLUMN)
    for number, row in enumerate(rows, 1):
        out.rule(f"{number}", align="left", style="dim")
        for name, text in zip(names, row, strict=True):
            value = _sized(text, room, to_the_right=False).rstrip() if cut else text
            out.print(Text.assemble((f"{name:>{width}}  ", "bold"), value), soft_wrap=True)


def _text(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        value = round(value, 4) if abs(value) >= 1 else float(f"{value:.4g}")
    return "null" if value is None else harmless_line(cell(value))
