"""Whole conversations as messages of role and content."""

from __future__ import annotations

from typing import Any

from etl.exports.dialogue import Dialogue
from etl.exports.forms import flat


def flat_conversation(said: Dialogue) -> list[dict[str, Any]]:
    """Calls, results and tool definitions as text; Dropped where a turn of the agent must not be trained."""
    return flat(said.unmasked(), said.repairs, said.tool_list())
