"""Blocks in which Amazon Q's and Kiro's command lines keep results: JSON as an object, with how a command exited."""

from __future__ import annotations

import re
from typing import Any

_EXITED = re.compile(r"(?:exit status: )?(-?\d{1,10})\Z")


def exit_code(block: Any) -> int | None:
    """How a command exited, where a block of its result says so.

    >>> exit_code({"exit_status": "exit status: 2", "stdout": ""}), exit_code({"rows": 3})
    (2, None)
    """
    told = block.get("exit_status") if isinstance(block, dict) else None
    found = _EXITED.match(told) if isinstance(told, str) else None
    return int(found[1]) if found else told if type(told) is int else None
