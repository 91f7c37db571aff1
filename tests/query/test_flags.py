"""The list of flags and the code that raises them agree."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator
from pathlib import Path

from etl.flags import FLAGS
from tests.lakes import REPO


@functools.cache
def modules() -> list[tuple[Path, ast.Module]]:
    """Every module of the package but the list itself."""
    paths = sorted((REPO / "etl").rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths if path.name != "flags.py"]


def texts(node: ast.AST) -> Iterator[str]:
    """String literals in an expression."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def raised(tree: ast.Module) -> Iterator[str]:
    """Literals that go into a set of flags: `flags.add("x")`, `flags={"x"}`, `miss(name, value, "x")`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "flags" and isinstance(keyword.value, ast.Set):
                yield from (
                    text for item in keyword.value.elts if isinstance(item, ast.Constant) for text in texts(item)
                )
        if not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "add" and ast.unparse(node.func.value).endswith("flags"):
            yield from (
                text for argument in node.args if isinstance(argument, ast.Constant) for text in texts(argument)
            )
        if node.func.attr == "miss" and len(node.args) == 3:
            yield from texts(node.args[2])


def test_every_flag_that_is_raised_is_explained() -> None:
    unknown = {f"{path.name}: {flag}" for path, tree in modules() for flag in raised(tree) if flag not in FLAGS}
    assert unknown == set()


def test_every_flag_that_is_explained_is_raised() -> None:
    said = {text for _, tree in modules() for text in texts(tree)}
    assert set(FLAGS) - said == set()


def test_every_flag_of_a_golden_row_is_explained() -> None:
    found = set()
    for file in (REPO / "tests" / "golden").rglob("*.json"):
        found |= flags_in(json.loads(file.read_text(encoding="utf-8")))
    assert found
    assert found - set(FLAGS) == set()


def flags_in(value: object) -> set[str]:
    """Everything in a list called `flags`, at any depth."""
    if isinstance(value, list):
        return set().union(*map(flags_in, value))
    if not isinstance(value, dict):
        return set()
    own = value.get("flags")
    here = set(own) if isinstance(own, list) and all(isinstance(flag, str) for flag in own) else set()
    return here.union(*(flags_in(item) for item in value.values()))


def test_flags_stand_in_order_and_are_sentences() -> None:
    assert list(FLAGS) == sorted(FLAGS)
    assert all(meaning[0].isupper() and meaning.endswith(".") for meaning in FLAGS.values())
