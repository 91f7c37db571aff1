"""`etl.toml`: the whole nightly job in one file, checked as a whole before anything is read.

lake = "lake"                      # as every path here: relative to the folder of this file
report = "last-night.json"         # optional: what `etl ingest --config … --json` prints, kept
retain = "7d"                      # optional: how long replaced data files stay, for `etl undo` (see `etl retain`)

[defaults]                         # of every source that says nothing else
redact = "secrets"
workers = 4

[[sources]]
name = "support"
paths = ["/var/log/support/*.jsonl.gz"]
format = "openai_messages"         # optional: told by content where it is missing; or map = "map.toml"
exclude = ["*/old/*"]
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from etl.errors import UsageError
from etl.faults import MISSING, UNKNOWN, WRONG, Fault, said
from etl.formats import known_format
from etl.lake.retention import milliseconds
from etl.limits import MAX_DEPTH
from etl.pipeline import check_engine
from etl.policies import check_name

AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: unknown keys are errors, since a misspelt one would change what is read."""


class SourceSettings(_Table, frozen=True, kw_only=True):
    """How a source is read, where it or `[defaults]` says so."""

    format: str | None = None
    map: str | None = None
    """A file that says which column is what (`etl ingest --map`)."""
    redact: str | None = None
    workers: AtLeastOne | None = None
    engine: str | None = None
    ray_address: str | None = None
    exclude: tuple[str, ...] | None = None
    max_record_mb: AtLeastOne | None = None
    max_nesting: Annotated[int, msgspec.Meta(ge=1, le=MAX_DEPTH)] | None = None

    def __post_init__(self) -> None:
        try:
            if self.engine is not None:
                check_engine(self.engine)
            if self.redact is not None:
                check_name(self.redact)
            if self.format is not None:
                known_format(self.format)
        except UsageError as error:
            raise ValueError(str(error)) from None


class SourceConfig(SourceSettings, frozen=True, kw_only=True):
    """One `[[sources]]`: a named log stream and where it lies."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    paths: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Config(_Table, frozen=True, kw_only=True):
    """The file. Paths are absolute once `load` is through with it."""

    lake: str = "lake"
    report: str | None = None
    retain: str | None = None
    defaults: SourceSettings = SourceSettings()
    sources: Annotated[tuple[SourceConfig, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        try:
            if self.retain is not None:
                milliseconds(self.retain)
        except UsageError as error:
            raise ValueError(f"retain: {error}") from None
        twice = [name for name, count in Counter(source.name for source in self.sources).items() if count > 1]
        if twice:
            raise ValueError(f"two sources are called {twice[0]!r}; give one of them another name")

    def into(self, lake: str) -> Config:
        """The same for another lake."""
        return msgspec.structs.replace(self, lake=lake)


def load(path: Path) -> Config:
    """The checked file, `[defaults]` merged into every source. UsageError says which key is wrong, in one line."""
    told: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            told = tomllib.load(file)
        config = msgspec.convert(told, Config)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error})") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {said(_faults(error, told), _TABLES)}") from None
    folder = path.absolute().parent
    return msgspec.structs.replace(
        config,
        lake=_from(folder, config.lake),
        report=None if config.report is None else _from(folder, config.report),
        sources=tuple(_complete(source, config.defaults, folder) for source in config.sources),
    )


def _complete(source: SourceConfig, defaults: SourceSettings, folder: Path) -> SourceConfig:
    """A source with its own settings or else those of all, and its paths."""
    settings: dict[str, Any] = {name: getattr(defaults, name) for name in SourceSettings.__struct_fields__}
    own = {name: value for name, value in msgspec.structs.asdict(source).items() if value is not None}
    whole = {**settings, **own, "paths": tuple(_from(folder, path) for path in source.paths)}
    return SourceConfig(**{**whole, "map": None if whole["map"] is None else _from(folder, whole["map"])})


def _from(folder: Path, path: str) -> str:
    return path if "://" in path or path.startswith("~") else str(folder / path)


_KINDS: dict[str, type[_Table]] = {"": Config, "defaults": SourceSettings, "sources": SourceConfig}
"""The tables of the file."""
_TABLES = {name: kind.__struct_fields__ for name, kind in _KINDS.items()}
_PLACE = re.compile(r"(?P<message>.*) - at `\$(?P<place>.*)`", re.DOTALL)
_OF_KEYS = ("Object contains unknown", "Object missing")
"""How msgspec begins to tell of a key, of which it tells one."""


def _faults(error: msgspec.ValidationError, told: dict[str, Any]) -> list[Fault]:
    """All keys that are unknown or missing, and what else msgspec found first."""
    found: list[Fault] = []
    for place, table in _tables(told):
        keys = {field.name: field.required for field in msgspec.structs.fields(_KINDS[str(place[0]) if place else ""])}
        found += [Fault(UNKNOWN, (*place, key)) for key in table if key not in keys]
        found += [Fault(MISSING, (*place, key)) for key, needed in keys.items() if needed and key not in table]
    match = _PLACE.fullmatch(str(error))
    message, at = (match["message"], match["place"]) if match is not None else (str(error), "")
    if not message.startswith(_OF_KEYS):
        found.append(Fault(WRONG, tuple(re.findall(r"[^.\[\]]+", at)), message))
    return found


def _tables(told: dict[str, Any]) -> Iterator[tuple[tuple[int | str, ...], dict[str, Any]]]:
    """The tables that are there, each with its place."""
    yield (), told
    sources = told.get("sources")
    inner: list[tuple[tuple[int | str, ...], Any]] = [(("defaults",), told.get("defaults"))]
    inner += [(("sources", number), each) for number, each in enumerate(sources if isinstance(sources, list) else ())]
    yield from ((place, table) for place, table in inner if isinstance(table, dict))
