"""Junk in any field gives rows or rejects: never an exception, never a lost record, never a row that is not one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.harness import SampleLog, check_row, read, sample_logs, stored
from tests.contract.junk import KINDS, fields, spoiled, values


@pytest.mark.parametrize("sample", sample_logs(), ids=lambda sample: sample.name)
def test_junk_in_every_field(sample: SampleLog, pytestconfig: pytest.Config) -> None:
    """Every field; with `--thorough` (as in `make check`) every kind in each, else an eighth that differs by field."""
    thorough = pytestconfig.getoption("--thorough")
    seen: set[str] = set()
    for number, field in enumerate(fields(sample.adapter)[sample.name]):
        for place, (kind, data) in enumerate(spoiled(sample.name, field).items()):
            if not thorough and (place + number) % 8:
                continue
            try:
                new = [row for row in read(data, sample.adapter).parsed if row.row_hash not in seen]
                for row in stored(new) if new else ():
                    check_row(row)
            except Exception as error:
                error.add_note(f"{kind} in the place of `{field.path}` of record {field.record}")
                raise
            seen.update(row.row_hash for row in new)


@pytest.mark.parametrize("sample", sample_logs(), ids=lambda sample: sample.name)
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_junk_among_sound_ones(sample: SampleLog, kind: str) -> None:
    first, *others = [_line(value) for value in values(sample.name)]
    with_junk = read(b"\n".join([first, KINDS[kind], *others, b""]), sample.adapter)
    alone = read(b"\n".join([first, *others, b""]), sample.adapter)
    assert with_junk.keys() == alone.keys()
    assert with_junk.rejects.total() + with_junk.ignored.total() == alone.rejects.total() + alone.ignored.total() + 1


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
