"""Direct preference optimisation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.target import Example, Target
from etl.exports.targets._columns import json_columns
from etl.exports.targets._pairs import PAIR_FIELDS, pair


class Dpo(Target):
    """The best and the worst scored attempt at one prompt. DPO has no mask: it trains tool results too."""

    name = "dpo"
    about = "TRL DPO: Parquet of prompt, chosen, rejected and tools; best and worst attempt at one prompt"
    unit = "pair"
    imitates = False
    scored = True
    json_columns = json_columns("prompt", "chosen", "rejected")

    def schema(self) -> pa.Schema:
        """Prompt and both sides as messages, without the margin, which is a reward model's."""
        return pa.schema([field for field in PAIR_FIELDS if field.name != "margin"])

    def record(self, example: Example) -> dict[str, Any]:
        """One pair."""
        return {name: value for name, value in pair(example).items() if name != "margin"}
