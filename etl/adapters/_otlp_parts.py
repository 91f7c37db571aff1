"""Items inside framed records: as records of their own, and what was unusual about the text of those they lie in."""

from __future__ import annotations

from typing import Any

import msgspec

from etl.conversation import Record


def part(record: Record, item: Any, number: int) -> Record:
    """An item as a record of its own, at its place in the framed one where that can be found."""
    raw = msgspec.json.encode(item)
    offset = record.offset
    if offset is not None:
        offset += max(record.raw.find(raw), 0) + number
    return Record(item, raw, record.line, offset)


def note(record: Record, form: dict[str, Any]) -> None:
    """What was unusual about the record's text goes along with the forms that it touches."""
    if record.mended:
        text = msgspec.json.encode(form).decode()
        mended = [pair for pair in record.mended if msgspec.json.encode(pair[0]).decode()[1:-1] in text]
        if mended:
            form["mended"] = mended
    notes = [note for note in record.notes if note not in ("lone_surrogate", "invalid_utf8") or "mended" in form]
    if notes:
        form["notes"] = notes
