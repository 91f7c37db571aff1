"""Junk in any field gives rows or rejects: never an exception, never a lost record, never a row that is not one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from etl.row import Row
from tests.contract.harness import SampleLog, check_row, every_sample, read, stored
from tests.contract.junk import KINDS, fields, spoiled, values

TOGETHER = 200
"""Rows that are checked at once."""


@every_sample
def test_junk_in_every_field(sample: SampleLog, thorough: bool) -> None:
    """Every field and kind with `--thorough` (as in `make check`), else one in 48 of all that there is for a sample."""
    seen: set[str] = set()
    made: list[tuple[str, Row]] = []
    for number, field in enumerate(fields(sample.adapter)[sample.name]):
        for place, (kind, data) in enumerate(spoiled(sample.name, field)):
            if not thorough and (13 * number + place) % 48:
                continue
            where = f"{kind} in the place of `{field.path}` of record {field.record}"
            with _named(where):
                new = [row for row in read(data(), sample.adapter).parsed if row.row_hash not in seen]
            made += [(where, row) for row in new]
            seen.update(row.row_hash for row in new)
            if len(made) > TOGETHER:
                _check(made)
                made.clear()
    _check(made)


def _check(made: list[tuple[str, Row]]) -> None:
    """All are rows: stored together, which costs what storing one does, and where that fails one by one."""
    try:
        kept = stored([row for _, row in made])
    except Exception:
        for where, row in made:
            with _named(where):
                stored([row])
        raise
    for (where, _), values_of in zip(made, kept, strict=True):
        with _named(where):
            check_row(values_of)


@contextlib.contextmanager
def _named(where: str) -> Iterator[None]:
    """A failure says where."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


@every_sample
def test_a_record_of_junk_among_sound_ones(sample: SampleLog, thorough: bool) -> None:
    """Every kind with `--thorough`, else one in four, others for each sample."""
    first, *others = [_line(value) for value in values(sample.name)]
    alone = read(b"\n".join([first, *others, b""]), sample.adapter)
    turn = sum(map(ord, sample.name))
    for place, (kind, junk) in enumerate(KINDS.items()):
        if thorough or (place + turn) % 4 == 0:
            with_junk = read(b"\n".join([first, junk, *others, b""]), sample.adapter)
            assert with_junk.keys() == alone.keys(), kind
            left_out = with_junk.rejects.total() + with_junk.ignored.total()
            assert left_out == alone.rejects.total() + alone.ignored.total() + 1, kind


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
