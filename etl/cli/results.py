"""The answer to a query as a table, as CSV or as one JSON object."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from etl.cli.files import written_whole
from etl.cli.tables import PIPE_CELL, TERMINAL_ROWS, console, note, print_rows
from etl.errors import UsageError
from etl.harmless import harmless
from etl.values import csv_line, json_text

if TYPE_CHECKING:
    from etl.query import Answer

_NOTHING = (["Count"], ["Success"])
"""Columns that DuckDB names for a statement that answers nothing (CREATE, SET, …)."""


def print_table(answer: Answer, limit: int | None = None) -> None:
    """A table; on a terminal the first rows, and a word where there are more. A `limit` of 0 shows all."""
    first = list(itertools.islice(answer.rows, 1))
    if not first and answer.names in _NOTHING:
        return
    rows = itertools.chain(first, answer.rows)
    if answer.names == ["explain_key", "explain_value"]:
        click.echo("".join(row[1] for row in rows), nl=False)
        return
    out = console()
    limit = (TERMINAL_ROWS if out.is_terminal else None) if limit is None else (limit or None)
    shown = print_rows(out, answer.names, rows, limit=limit)
    if shown.cut:
        note(f"cells are cut at {PIPE_CELL} characters; --csv, --json and --out give them whole")
    if shown.more:
        note(f"the first {shown.rows} rows; --max-rows 0 shows all, --csv and --json always do")
    elif out.is_terminal:
        note(f"{shown.rows} row{'' if shown.rows == 1 else 's'}")


def print_csv(answer: Answer) -> None:
    """CSV with a header line: bytes as they are in a pipe, harmless on a terminal."""
    shown = harmless if sys.stdout.isatty() else str
    for line in _csv(answer):
        sys.stdout.write(shown(line))


def print_json_answer(answer: Answer) -> None:
    """`{"columns": [{"name", "type"}], "rows": [{name: value}], "row_count": n}`, written as it is fetched."""
    for part in _json(answer):
        sys.stdout.write(part)


def write_answer(lake: str, sql: str, path: Path, *, unsafe: bool) -> int:
    """The answer to SQL in a file of the kind that its name says; the number of rows. UsageError for other names."""
    from etl.query import Answer, run_sql, write_parquet

    kind = path.suffix.lower()
    if kind not in (".parquet", *_TEXTS):
        raise UsageError(f"{path}: the end of the name says what is written: .parquet, .csv, .json or .jsonl")
    with written_whole(path) as beside:
        if kind == ".parquet":
            return write_parquet(lake, sql, beside, unsafe=unsafe)
        names, types, rows = run_sql(lake, sql, unsafe=unsafe)
        counter = itertools.count()
        counted = (row for row, _ in zip(rows, counter, strict=False))
        with beside.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.writelines(_TEXTS[kind](Answer(names, types, counted)))
        return next(counter)


def _csv(answer: Answer) -> Iterator[str]:
    yield csv_line(tuple(answer.names))
    yield from map(csv_line, answer.rows)


def _json(answer: Answer) -> Iterator[str]:
    names = _unique(answer.names)
    columns = [{"name": name, "type": kind} for name, kind in zip(names, answer.types, strict=True)]
    yield f'{{"columns": {json_text(columns)}, "rows": ['
    count = 0
    for row in answer.rows:
        yield (", " if count else "") + json_text(dict(zip(names, row, strict=True)))
        count += 1
    yield f'], "row_count": {count}}}\n'


def _json_lines(answer: Answer) -> Iterator[str]:
    names = _unique(answer.names)
    return (json_text(dict(zip(names, row, strict=True))) + "\n" for row in answer.rows)


_TEXTS = {".csv": _csv, ".json": _json, ".jsonl": _json_lines}


def _unique(names: list[str]) -> list[str]:
    """The names, a second `a` as `a_2`: an object can say each but once."""
    unique: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in unique:
            number += 1
            candidate = f"{name}_{number}"
        unique[candidate] = None
    return list(unique)
