"""Attempts as rows: through the same normalising as traffic, so that pairing and identity are the spine's."""

from __future__ import annotations

from typing import Any

from etl.conversation import Conversation, Record, Tokens
from etl.normalise import FileMemory, Stream, normalise
from etl.row import Row
from etl.simulator.judge import reward_of, told_of, verdicts
from etl.simulator.play import Play
from etl.simulator.spec import SOURCE, VERSION, Plan


class Rows:
    """Makes rows of one plan."""

    def __init__(self, plan: Plan, uri: str) -> None:
        spec = plan.spec
        self._plan = plan
        self._stream = Stream(spec.source, SOURCE, VERSION, uri, "simulation")
        self._memory = FileMemory()

    def row(
        self, play: Play, attempt: int, seeded: list[str] | None, agent: dict[str, Any], line: int,
        *, run: str = "", model: str | None = None, usage: Tokens | None = None, error: str | None = None,
        finish_reason: str | None = None,
    ) -> Row:  # fmt: skip
        """The row of an attempt; `seeded` is None where the agent is not ours."""
        plan, situation = self._plan, play.situation
        judgments = verdicts(play)
        key = f"{plan.name}/{plan.spec.seed}/{situation.key}"
        reward = None
        if plan.spec.reward == "state":
            reward = reward_of(judgments)
        elif plan.spec.reward == "seeded" and seeded is not None:
            reward = 0.0 if seeded else 1.0
        conversation = Conversation(
            play.messages, [Record(None, b"", line)], native_id=key, run=run, attempt=str(attempt),
            conversation_id=f"{key}/{attempt}", task=("simulation", key), group=f"{run}/{key}", sample_index=attempt,
            prompt=situation.ask, tools=situation.domain.definitions, judgments=judgments, reward=reward, model=model,
            agent=agent["kind"], usage=usage, error=error, finish_reason=finish_reason,
            extra=told_of(play, agent),
            scenario=situation.cell, faults=[fault.told() for fault in situation.faults], seed=plan.spec.seed,
            seeded=seeded,
        )  # fmt: skip
        return normalise(conversation, self._stream, self._memory)
