"""YAML as data: what JSON could hold, and nothing is constructed.

A tag that would make an object of some class is passed over and what it stands before is taken. An alias repeats what
its anchor names, up to a limit: nine lines of them can say a gigabyte. `<<` is a key like any other.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import yaml

from etl.framing import Limits

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_GROWTH = 10
"""How many times its text a value may say through aliases, beyond _FREE bytes."""
_FREE = 1 << 20
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_LONGEST_NUMBER = 400
"""Digits; a longer number stays text, as everywhere that a number is beyond what JSON readers take."""
_CONSTANTS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class YamlError(ValueError):
    """The bytes are no YAML, nested too deep, or say too much. One line."""


def decode_yaml(raw: bytes, limits: Limits) -> Any:
    """The value; YamlError where there is none. Bytes (`!!binary`) are text where they are UTF-8, else base64 again.

    >>> decode_yaml(b"a: !!python/name:os.system [1, &b x, *b, 2026-04-01]", Limits())
    {'a': [1, 'x', 'x', '2026-04-01']}
    """
    try:
        node = yaml.compose(raw, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(" ".join(str(getattr(error, "problem", None) or error).split())[:200]) from None
    return None if node is None else _Values(limits, _FREE + _GROWTH * len(raw)).of(node, 0)


class _Values:
    """Nodes as values, with a count of what they say."""

    def __init__(self, limits: Limits, most: int) -> None:
        self._nesting = limits.nesting
        self._left = most

    def of(self, node: yaml.Node, depth: int) -> Any:
        if depth > self._nesting:
            raise YamlError(f"nested deeper than {self._nesting} levels")
        scalar = isinstance(node, yaml.ScalarNode)
        self._left -= len(node.value) + 1 if scalar else 1
        if self._left < 0:
            raise YamlError("its aliases say many times what is written")
        if scalar:
            return _scalar(node.tag, node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.of(item, depth + 1) for item in node.value]
        return {_key(self.of(key, depth + 1)): self.of(item, depth + 1) for key, item in node.value}


def _key(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _scalar(tag: str, text: str) -> Any:
    """A plain value; what is none of those that JSON has stays text, times among them."""
    kind = tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return _CONSTANTS.get(text.lower(), text)
    if len(text) <= _LONGEST_NUMBER:
        if kind == "int" and _WHOLE.fullmatch(text):
            return int(text.replace("_", ""))
        if kind == "float":
            return _real(text)
    if kind in ("binary", "!binary"):
        return _bytes(text)
    return text


def _real(text: str) -> float | str:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _bytes(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except ValueError:  # no base64, or no UTF-8
        return "".join(text.split())
