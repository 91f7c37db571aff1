"""The names of our formats: each is that of the file in `etl/adapters/` that reads it, known before any is loaded."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "adapters"


def format_names() -> list[str]:
    """All that ship with the product, sorted. Adapters of somebody's own may be called otherwise than their files."""
    return sorted(path.stem for path in _FOLDER.glob("*.py") if not path.name.startswith("_"))


def known_format(name: str) -> str:
    """The same name; UsageError lists those there are. Adapters are loaded only where none of ours has it."""
    if name in format_names():
        return name
    from etl.adapter import adapter_named

    return adapter_named(name).name
