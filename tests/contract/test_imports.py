"""Imports point one way: what reads logs and what stores rows know nothing of each other; a run joins them."""

from __future__ import annotations

import ast
from pathlib import Path

import etl
from etl.adapter import adapters
from etl.formats import format_names

PACKAGE = Path(etl.__file__).parent
GROUPS = {
    "foundation": {
        "conversation", "database", "decode", "digest", "errors", "faults", "flags", "footprint", "harmless",
        "identity", "intervals", "late", "limits", "locked", "permissions", "remote", "row", "scanning", "schema",
        "shipped", "tables", "times", "values",
    },
    "reading": {
        "adapter", "adapters", "beside", "calls", "coerce", "columns", "detection", "discover", "formats", "framing",
        "journal", "listing", "mapped", "mapping", "normalise", "opening", "tabular", "tools", "transcript", "walk",
        "zipped",
    },
    "storing": {"card", "keys", "lake", "policies", "redact"},
    "asking": {"covered", "frames", "query", "show"},
    "looking": {"labels", "pages", "serve"},
    "simulating": {"simulator"},
    "exporting": {"exports"},
    "commands": {"__init__", "__main__", "cli", "demo"},
}  # fmt: skip
"""Parts of the package by what they are about; every other part belongs to `running`."""
MAY_IMPORT = {
    "foundation": {"foundation"},
    "reading": {"foundation", "reading"},
    "storing": {"foundation", "storing"},
    "asking": {"foundation", "storing", "asking"},
    "running": {"foundation", "reading", "storing", "running"},
    "looking": {"foundation", "storing", "asking", "looking"},
    "simulating": {"foundation", "reading", "storing", "asking", "running", "simulating"},
    "exporting": {"foundation", "reading", "storing", "asking", "running", "exporting"},
    "commands": {
        "foundation",
        "reading",
        "storing",
        "asking",
        "running",
        "looking",
        "simulating",
        "exporting",
        "commands",
    },
}
"""Group → the groups that it may import."""
SHOWN_BY = {("schema", "pages")}
"""A row shows itself in a notebook: it asks for the page when it is shown, not before."""
FOR_ADAPTERS = {"adapter", "adapters", "conversation", "decode", "errors", "framing", "identity", "opening", "times"}
"""All that an adapter may know: what it reads and gives, how bytes, JSON and times are read, how hashes are made."""


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported(path: Path) -> set[str]:
    """Parts of the package that a module imports, at its top or anywhere inside."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}; name the module in full"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    names = {name.split(".")[1] for name in found if name.startswith("etl.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()}


def _group(part: str) -> str:
    return next((group for group, parts in GROUPS.items() if part in parts), "running")


def test_imports_point_one_way() -> None:
    for path in _modules():
        part, imported = _part(path), _imported(path)
        foreign = {
            name for name in imported if (part, name) not in SHOWN_BY and _group(name) not in MAY_IMPORT[_group(part)]
        }
        assert not foreign, path
        assert part != "adapters" or imported <= FOR_ADAPTERS, path


def test_every_group_is_made_of_parts_that_exist() -> None:
    assert {part for parts in GROUPS.values() for part in parts} <= {_part(path) for path in _modules()}


def test_a_format_is_called_like_the_file_that_reads_it() -> None:
    """So that a name can be checked before any of them is loaded."""
    assert format_names() == list(adapters())
