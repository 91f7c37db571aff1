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

import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from etl.errors import UsageError
from etl.faults import faults
from etl.lake.retention import milliseconds
from etl.limits import MAX_DEPTH
from etl.policies import POLICIES


class _Table(BaseModel):
    """A table of the file: unknown keys are errors, since a misspelt one would change what is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSettings(_Table):
    """How a source is read, where it or `[defaults]` says so."""

    format: str | None = None
    map: str | None = None
    """A file that says which column is what (`etl ingest --map`)."""
    redact: str | None = None
    workers: Annotated[int, Field(ge=1)] | None = None
    engine: Literal["local", "ray"] | None = None
    ray_address: str | None = None
    exclude: tuple[str, ...] | None = None
    max_record_mb: Annotated[int, Field(ge=1)] | None = None
    max_nesting: Annotated[int, Field(ge=1, le=MAX_DEPTH)] | None = None

    @field_validator("redact")
    @classmethod
    def _policy(cls, value: str | None) -> str | None:
        if value is not None and value not in POLICIES:
            raise ValueError(f"no redaction policy is called {value!r}; use one of: {', '.join(POLICIES)}")
        return value

    @field_validator("format")
    @classmethod
    def _adapter(cls, value: str | None) -> str | None:
        from etl.adapter import adapter_named

        try:
            return None if value is None else adapter_named(value).name
        except UsageError as error:
            raise ValueError(str(error)) from None


class SourceConfig(SourceSettings):
    """One `[[sources]]`: a named log stream and where it lies."""

    name: Annotated[str, Field(min_length=1)]
    paths: Annotated[tuple[str, ...], Field(min_length=1)]


class Config(_Table):
    """The file. Paths are absolute once `load` is through with it."""

    lake: str = "lake"
    report: str | None = None
    retain: str | None = None
    defaults: SourceSettings = SourceSettings()
    sources: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]

    @field_validator("retain")
    @classmethod
    def _duration(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                milliseconds(value)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Config:
        twice = [name for name, count in Counter(source.name for source in self.sources).items() if count > 1]
        if twice:
            raise ValueError(f"two sources are called {twice[0]!r}; give one of them another name")
        return self


def load(path: Path) -> Config:
    """The checked file, `[defaults]` merged into every source. UsageError says which key is wrong, in one line."""
    try:
        with path.open("rb") as file:
            config = Config.model_validate(tomllib.load(file))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error})") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {faults(error, Config)}") from None
    folder = path.absolute().parent
    return config.model_copy(
        update={
            "lake": _from(folder, config.lake),
            "report": None if config.report is None else _from(folder, config.report),
            "sources": tuple(_complete(source, config.defaults, folder) for source in config.sources),
        }
    )


def _complete(source: SourceConfig, defaults: SourceSettings, folder: Path) -> SourceConfig:
    missing: dict[str, Any] = {
        name: getattr(defaults, name) for name in SourceSettings.model_fields if getattr(source, name) is None
    }
    whole = source.model_copy(update={**missing, "paths": tuple(_from(folder, path) for path in source.paths)})
    return whole.model_copy(update={"map": None if whole.map is None else _from(folder, whole.map)})


def _from(folder: Path, path: str) -> str:
    return path if "://" in path or path.startswith("~") else str(folder / path)
