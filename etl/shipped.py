"""Where the folders that ship with the package lie: inside it when installed, beside it in a source checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """The folder `schemas` or `sample_logs`.

    >>> (shipped("schemas") / "views.sql").is_file()
    True
    """
    installed = _PACKAGE / "_shipped" / folder
    return installed if installed.is_dir() else _PACKAGE.parent / folder


def schema_text(name: str) -> str:
    """A file of `schemas/`, as text."""
    return (shipped("schemas") / name).read_text(encoding="utf-8")
