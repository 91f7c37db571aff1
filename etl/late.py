"""Names of a package that are loaded when they are first used, so that importing the package costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def late(package: ModuleType, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names lie in these modules."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(package, name, value)
        return value

    return load, lambda: sorted({*vars(package), *homes})
