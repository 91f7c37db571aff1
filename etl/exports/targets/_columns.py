"""Arrow fields and JSON columns that several targets have."""

from __future__ import annotations

import pyarrow as pa

from etl.exports.forms import ARGUMENTS

TOOLS = pa.field("tools", pa.string())
ROLLOUT_ID = pa.field("rollout_id", pa.string())


def json_columns(*messages: str) -> frozenset[str]:
    """The JSON of a table whose columns of these names hold messages."""
    return frozenset({"tools", *(f"{name}.{ARGUMENTS}" for name in messages)})
