"""The first pass: every selected row is looked at whole, as its target will write it, and gets a verdict.

The verdicts go into a table of the connection, so that memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import duckdb
import msgspec
import pyarrow as pa

from etl.exports.dialogue import Dialogue, Policy, check, dialogue
from etl.exports.heldout import HeldOut
from etl.exports.near import NearDuplicates
from etl.exports.reasons import Dropped
from etl.exports.request import Request
from etl.exports.target import Example, Tally, Target
from etl.exports.tokenizing import Tokenizer
from etl.identity import digest

BASE_COLUMNS = (
    "rollout_id", "source", "task_id", "messages", "message_info", "steps", "tools", "flags", "seeded", "judgments",
)  # fmt: skip
"""What every export reads of a row."""

BATCH_ROWS = 128
"""Rows made Python values at once."""
_pack = msgspec.msgpack.Encoder().encode
_NO_TALLY = Tally(None, 0, 0, None)

_VERDICTS = pa.schema(
    [
        pa.field("rollout_id", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("chars", pa.int64()),
        pa.field("text_key", pa.string()),
        pa.field("prompt_key", pa.string()),
        pa.field("held_out", pa.bool_()),
    ]
)


class Reading(NamedTuple):
    """What an export works with."""

    connection: duckdb.DuckDBPyConnection
    target: Target
    request: Request
    tokenizer: Tokenizer | None

    @property
    def policy(self) -> Policy:
        """What this target and this request want of a conversation."""
        reasoning = self.target.reasoning if self.request.reasoning is None else self.request.reasoning
        return Policy(
            imitates=self.target.imitates,
            keep_rejected=self.request.keep_rejected,
            only_prompt=self.target.unit == "task",
            missing_results=self.request.missing_results,
            templated=self.target.templated,
            reasoning=reasoning,
        )

    def columns(self) -> str:
        """The SQL list of the columns that are read, of a table `r`."""
        names = dict.fromkeys((*BASE_COLUMNS, *self.target.columns))
        return ", ".join(f'r."{name}"' for name in names)

    def read(self, row: dict[str, Any]) -> Dialogue:
        """The conversation of a row; Dropped where a rule leaves it out."""
        if self.target.whole:
            check(row)
            return Dialogue(row, [], 0, set())
        return dialogue(row, self.policy)


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[dict[str, Any]]:
    """The rows of a query as dicts, some at a time."""
    for batch in connection.sql(query).to_arrow_reader(BATCH_ROWS):
        yield from batch.to_pylist()


def examine(
    reading: Reading, held_out: HeldOut | None, near: NearDuplicates | None, told: Callable[[int], None]
) -> None:
    """Fill the table `verdicts` from the table `chosen`: one row each, `reason` null where it may stay."""
    connection = reading.connection
    connection.register("no_verdicts", _VERDICTS.empty_table())
    connection.execute("CREATE OR REPLACE TABLE verdicts AS FROM no_verdicts")
    reader = connection.cursor()
    query = (
        f"SELECT {reading.columns()}, c.score, c.ground_truth FROM rollouts_stored r JOIN chosen c USING (rollout_id)"
    )
    waiting: list[dict[str, Any]] = []
    for number, row in enumerate(rows(reader, query), 1):
        waiting.append(_verdict(reading, row, held_out, near))
        if len(waiting) >= 2048:
            _append(connection, waiting)
            told(number)
    _append(connection, waiting)


def _append(connection: duckdb.DuckDBPyConnection, verdicts: list[dict[str, Any]]) -> None:
    connection.register("more_verdicts", pa.Table.from_pylist(verdicts, schema=_VERDICTS))
    connection.execute("INSERT INTO verdicts FROM more_verdicts")
    connection.unregister("more_verdicts")
    verdicts.clear()


def _verdict(
    reading: Reading, row: dict[str, Any], held_out: HeldOut | None, near: NearDuplicates | None
) -> dict[str, Any]:
    verdict: dict[str, Any] = {"rollout_id": row["rollout_id"], "held_out": False}
    target, request = reading.target, reading.request
    try:
        said = reading.read(row)
        example = Example(
            (said,), _NO_TALLY, (row["score"],), row["ground_truth"], "", 0, request.pass_at, reading.tokenizer
        )
        record = target.record(example)
    except Dropped as dropped:
        return {**verdict, "reason": dropped.reason}
    texts = _texts(said, target)
    verdict["chars"] = sum(map(len, texts))
    prompt = _said(said, said.ask)
    verdict["prompt_key"] = digest(_pack((said.tools, prompt)))
    whole = prompt if target.unit == "task" else _said(said, None)
    verdict["text_key"] = digest(_pack((said.tools, whole)))
    verdict["held_out"] = held_out is not None and held_out.shares(row["task_id"], texts)
    if not verdict["held_out"] and near is not None:
        near.add(verdict["text_key"], "\n".join(texts))
    if _too_long(reading, said, record, verdict["chars"]):
        verdict["reason"] = "too_long"
    return verdict


def _said(said: Dialogue, end: int | None) -> list[Any]:
    """What tells one conversation from another: ids of calls do not."""
    if not said.turns:
        messages = said.row["messages"]
        return [
            (m["role"], m["content"], m["reasoning_content"], [c["function"] for c in m["tool_calls"] or ()])
            for m in messages
        ]
    return [(t.role, t.content, t.reasoning, [call[1:] for call in t.calls], t.trained) for t in said.turns[:end]]


def _texts(said: Dialogue, target: Target) -> list[str]:
    """What persons and the agent said; system prompts are everybody's."""
    if not said.turns:
        return [m["content"] for m in said.row["messages"] if m["role"] in ("user", "assistant")]
    turns = said.turns[: said.ask] if target.unit == "task" else said.turns
    return [turn.content for turn in turns if turn.role in ("user", "assistant")]


def _too_long(reading: Reading, said: Dialogue, record: dict[str, Any], spoken: int) -> bool:
    request = reading.request
    if request.max_chars is not None:
        rest = sum(len(turn.content) for turn in said.turns if turn.role not in ("user", "assistant"))
        calls = sum(len(call.arguments) for turn in said.turns for call in turn.calls)
        if spoken + rest + calls > request.max_chars:
            return True
    if request.max_tokens is None or reading.tokenizer is None:
        return False
    ids = record.get("input_ids")
    length = len(ids) if ids is not None else reading.tokenizer.length(said)
    return length > request.max_tokens
