"""What tools answer that keep no records: sums, readings, commands, texts."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Iterable, Mapping
from random import Random  # noqa: TID251  (seeded)
from typing import Any

from etl.simulator.meaning import SUMS, Meaning, words_of
from etl.simulator.people import Person
from etl.simulator.values import number


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as plain text, a line each."""
    return "\n".join(", ".join(str(value) for value in row.values()) for row in rows) or "no matches"


def as_text(shown: Any) -> str:
    """What a tool prints that answers in plain text."""
    if not isinstance(shown, Mapping):
        return str(shown)
    if "content" in shown:
        return str(shown["content"])
    return "\n".join(f"{' '.join(words_of(key))}: {value}" for key, value in shown.items())


_OUTPUTS = {
    "ls": "README.md\nconfig\ndocs\nsrc\ntests", "git": "On branch main\nnothing to commit, working tree clean",
    "pytest": "7 passed in 0.41s", "npm": "build finished in 3.2 s", "make": "lint: no findings",
    "grep": "src/app.py:12: TODO",
    "df": "/dev/sda1  40G  11G  27G  30% /", "cat": '{"name": "demo", "version": "1.4.0"}', "python": "no issues found",
}  # fmt: skip


def computed(meaning: Meaning, arguments: Mapping[str, Any], rng: Random, who: Person) -> Any:
    """The answer of a tool that keeps no records."""
    command = arguments.get("command") or arguments.get("cmd")
    if isinstance(command, str) and command.split():
        return _OUTPUTS.get(command.split()[0], f"exit code 0 in {int(rng.random() * 800) + 40} ms")
    numbers = [value for value in arguments.values() if isinstance(value, int | float)]
    if meaning.verb in SUMS and len(numbers) == len(arguments) > 1:
        return {"result": round(functools.reduce(_STEPS[SUMS[meaning.verb]], numbers), 4)}
    expression = next((value for value in arguments.values() if isinstance(value, str) and _SUM.match(value)), None)
    if expression is not None:
        total = round(_sum(ast.parse(expression, mode="eval").body), 4)
        return {"result": int(total) if total == int(total) else total}
    words = meaning.words[1:] if meaning.kind in ("read", "search") and len(meaning.words) > 1 else meaning.words
    label = "_".join(words)
    if words[-1] in ("weather", "forecast"):
        sky = ("light rain", "clear", "overcast", "showers", "fog")[int(rng.random() * 5)]
        return {"forecast": sky, "temperature": int(rng.random() * 28) + 1}
    if words[-1] in ("hours", "schedule", "times"):
        return {label: f"{int(rng.random() * 4) + 7}:00 to {int(rng.random() * 6) + 16}:00"}
    return {label if words[-1] not in _SUMS else "result": number({}, label, rng, whole=True)}


_SUMS = frozenset(["calculate", "calculation", "compute", "evaluate", "total", "count", "sum", "run", "execute"])
_SUM = re.compile(r"^(?:\d+(?:\.\d+)?(?: [-+*/] \d+(?:\.\d+)?)+|\(\d+ [-+*/] \d+\)(?: [-+*/] \d+)+)$")
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


_STEPS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _sum(node: ast.expr) -> float:
    """The value of an arithmetic expression."""
    if isinstance(node, ast.BinOp):
        left, right = _sum(node.left), _sum(node.right)
        return float(_OPERATIONS[type(node.op)](left, right or 1.0 if isinstance(node.op, ast.Div) else right))
    return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else 0.0
