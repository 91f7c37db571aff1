"""What is wrong with a settings file, as people read it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import get_args

from pydantic import BaseModel, ValidationError


def faults(error: ValidationError, settings: type[BaseModel]) -> str:
    """All that is wrong with a settings file, in one line: unknown keys first, since others then seem to be missing."""
    found = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    inner = [fault["loc"] for fault in found]
    found = [
        fault
        for fault in found
        if not any(len(at) > len(fault["loc"]) and at[: len(fault["loc"])] == fault["loc"] for at in inner)
    ]
    return "; ".join(_fault(fault["type"], fault["loc"], fault["msg"], settings) for fault in found)


def _fault(kind: str, place: tuple[int | str, ...], message: str, settings: type[BaseModel]) -> str:
    """One of them, with its key."""
    *table, key = place or ("",)
    inside = f"{'.'.join(str(part) for part in table)}: " if table else ""
    if kind == "extra_forbidden":
        return f"{inside}unknown key `{key}`{_meant(str(key), table, settings)}"
    if kind == "missing":
        return f"{inside}`{key}` is missing"
    where = ".".join(str(part) for part in place)
    return f"{where}: {message.removeprefix('Value error, ')}" if where else message.removeprefix("Value error, ")


def _meant(key: str, table: Sequence[int | str], settings: type[BaseModel]) -> str:
    """What was meant by an unknown key: a key of another table, or one that is spelt nearly so."""
    tables = dict(_tables("", settings))
    here = ".".join(part for part in table if isinstance(part, str))
    if at := [name for name, keys in tables.items() if key in keys and name != here]:
        return f", it is a key of {f'[{at[0]}]' if at[0] else 'the file itself, above all tables'}"
    alike = difflib.get_close_matches(key, tables.get(here, ()), n=1)
    return f", did you mean `{alike[0]}`?" if alike else f"; there are: {', '.join(tables.get(here, ()))}"


def _tables(name: str, settings: type[BaseModel]) -> Iterator[tuple[str, list[str]]]:
    """Every table of the settings with its keys; that of the file itself has no name."""
    yield name, list(settings.model_fields)
    for key, field in settings.model_fields.items():
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and hasattr(inner, "model_fields"):
                yield from _tables(f"{name}.{key}" if name else key, inner)
