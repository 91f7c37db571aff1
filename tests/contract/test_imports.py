"""Imports point one way: conversation ← adapters ← spine ← commands; the lake knows no adapter."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import etl

PACKAGE = Path(etl.__file__).parent
READING = {"adapter", "adapters", "conversation", "decode", "errors", "framing", "identity", "opening", "times"}
"""All that an adapter may know: what it reads and gives, how bytes, JSON and times are read, how hashes are made."""
MAY_IMPORT = {
    "errors": set(),
    "schema": set(),
    "conversation": set(),
    "decode": set(),
    "times": set(),
    "identity": {"conversation"},
    "framing": {"conversation", "decode"},
    "opening": {"errors"},
    "adapter": {"adapters", "conversation", "errors", "framing"},
    "adapters": READING,
}
"""Part of the package → every part it may import."""
MAY_NOT_IMPORT = {
    "redact": {"adapters", "adapter", "conversation", "lake", "ingest", "events", "query", "show", "cli", "demo"},
    "lake": {"adapters", "adapter", "conversation", "normalise", "ingest", "events", "query", "show", "cli", "demo"},
    "query": {"adapters", "adapter", "conversation", "normalise", "ingest", "events", "show", "cli", "demo"},
    "detect": {"lake", "redact", "normalise", "ingest", "events", "query", "show", "cli", "demo"},
    "normalise": {"adapters", "lake", "redact", "ingest", "events", "query", "show", "cli", "demo"},
    "events": {"adapters", "ingest", "query", "show", "cli", "demo"},
    "ingest": {"query", "show", "cli", "demo"},
}
ONLY_ABOVE = {"cli": {"cli", "__main__"}, "demo": {"cli", "demo"}}
"""Part → the only parts that may import it."""


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


@pytest.mark.parametrize("path", _modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    part, imported = _part(path), _imported(path)
    imported.discard(part)
    if part in MAY_IMPORT:
        assert imported <= MAY_IMPORT[part]
    assert not imported & MAY_NOT_IMPORT.get(part, set())
    for name, above in ONLY_ABOVE.items():
        assert name not in imported or part in above


def test_every_rule_names_a_part_that_may_exist() -> None:
    parts = {_part(path) for path in _modules()}
    assert set(MAY_IMPORT) <= parts
