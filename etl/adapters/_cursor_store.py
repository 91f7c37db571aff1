"""Rows of Cursor's databases as records: `store.db` of the CLI agent, and `state.vscdb` of the editor.

In `store.db` the table `meta` holds JSON as hexadecimal text, and `blobs` messages as JSON beside protobuf messages: of
these the ones with references list, in order, what a conversation consists of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from etl.adapters._session import text_of
from etl.adapters._sqlite import Shape
from etl.decode import Decoded, JsonError, decode
from etl.framing import Limits

_KEYS = ("composerData:", "bubbleId:")
_ITEMS = frozenset({"workbench.panel.aichat.view.aichat.chatdata", "composer.composerData"})
_ID_BYTES = 32
_MOST_FIELDS = 200_000


def tables() -> dict[str, Shape]:
    """What is read of a database: meta before blobs, as it names the conversation."""
    return {"meta": _meta, "blobs": _blob, "cursorDiskKV": _pair, "ItemTable": _item}


def _bytes(value: Any) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else value if isinstance(value, bytes) else b""


def _meta(row: dict[str, Any], limits: Limits) -> Decoded | None:
    raw = _bytes(row.get("value"))
    with contextlib.suppress(ValueError):
        raw = bytes.fromhex(raw.decode("ascii"))
    found = decode(raw, limits.nesting)
    if not isinstance(found.value, dict):
        return None
    return Decoded({"meta": row.get("key"), "value": found.value}, found.notes, found.mended)


def _pair(row: dict[str, Any], limits: Limits) -> Decoded | None:
    key = row.get("key")
    if not isinstance(key, str) or not key.startswith(_KEYS) or row.get("value") is None:
        return None
    found = decode(_bytes(row["value"]), limits.nesting)
    return Decoded({"key": key, "value": found.value}, found.notes, found.mended)


def _item(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """Chats of older versions, whole in one value of a workspace."""
    key = row.get("key")
    if key not in _ITEMS or row.get("value") is None:
        return None
    found = decode(_bytes(row["value"]), limits.nesting)
    return Decoded({"key": key, "value": found.value}, found.notes, found.mended)


def _blob(row: dict[str, Any], limits: Limits) -> Decoded | None:
    name, raw = row.get("id"), _bytes(row.get("data"))
    if not isinstance(name, str) or not raw:
        return None
    if raw[:1] == b"{":
        try:
            found = decode(raw, limits.nesting)
        except JsonError:
            found = Decoded(None)
        if isinstance(found.value, dict):
            return Decoded({"blob": name, "value": found.value}, found.notes, found.mended)
    value: dict[str, Any] = {"blob": name, "size": len(raw)}
    fields = _fields(raw)
    refs = [data.hex() for number, data in fields if number == 1 and len(data) == _ID_BYTES]
    if refs and len(refs) == sum(1 for number, _ in fields if number == 1):
        return Decoded({**value, "refs": refs})
    message = _message(fields, limits)
    return Decoded({**value, "value": message} if message is not None else value)


def _fields(raw: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message; none where it is no such message."""
    found: list[tuple[int, bytes]] = []
    try:
        for number, data in _walk(raw):
            if data is not None:
                found.append((number, data))
            if len(found) > _MOST_FIELDS:
                break
    except (IndexError, ValueError):
        return []
    return found


def _walk(raw: bytes) -> Iterator[tuple[int, bytes | None]]:
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError(tag)
        if kind == 0:
            _, at = _varint(raw, at)
            yield number, None
        elif kind == 2:
            size, at = _varint(raw, at)
            if at + size > len(raw):
                raise ValueError(size)
            yield number, raw[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
            yield number, None
        else:
            raise ValueError(kind)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError(shift)


def _message(fields: list[tuple[int, bytes]], limits: Limits) -> dict[str, Any] | None:
    """A message of an older version: JSON of it in field 4; else text in field 1, a person's with an id in field 2."""
    for number, data in fields:
        if number == 4 and data[:1] == b"{":
            try:
                found = decode(data, limits.nesting).value
            except JsonError:
                continue
            if text_of(found, "role") is not None:
                return dict(found)
    first = next((data for number, data in fields if number == 1), b"")
    named = next((data for number, data in fields if number == 2), b"")
    nested = next((data for number, data in _fields(first) if number == 1), None)
    text = _text(nested if nested is not None and not named else first)
    if not text:
        return None
    return {"role": "user", "id": _text(named), "content": text} if named else {"role": "assistant", "content": text}


def _text(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "\n" in text else None
