"""Traces that Harbor exports for training: rows of `{conversations, agent, model, task, episode, trial_name, …}`.

A row is an episode: one request of the agent with its answer, so each repeats the ones before. A row that the next one
goes on from is left out; where the agent summarised and began anew, the conversation before is a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._rollouts import items, text, transcript
from etl.conversation import Conversation, Ignored, Outcome, Record, Unusable
from etl.decode import encode

_NAMING = frozenset({"trial_name", "episode"})
_HELD = frozenset({"conversations", "agent", "model", "model_provider", "task", "tool_definitions", "result"})


class HarborTraces(Adapter):
    """Episodes of Harbor trials as training data."""

    name = "harbor_traces"
    version = 1
    about = "Harbor's exported traces: {conversations, agent, model, task, episode, trial_name} an episode"
    scores_share = True
    ignores: ClassVar[dict[str, str]] = {"repeated_episode": "an episode that the next one of its trial goes on from"}

    def score(self, sample: Sample) -> float:
        """Sure of conversations in chat form beside the names of trial and episode."""
        hits = sum(_is_episode(value) for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a run of episodes that go on from one another."""
        held: Record | None = None
        repeated = 0
        for record in records:
            if not items(record.value, "conversations"):
                yield Unusable(record, "no_messages", "no `conversations` in it; is this a file of Harbor's traces?")
                continue
            if held is not None and _goes_on(held.value, record.value):
                yield Ignored("repeated_episode")
                repeated += 1
            elif held is not None:
                yield _episode(held, repeated)
                repeated = 0
            held = record
        if held is not None:
            yield _episode(held, repeated)


def _is_episode(value: dict[str, Any]) -> bool:
    turns = items(value, "conversations")
    return value.keys() >= _NAMING and bool(turns) and isinstance(turns[0], dict) and "role" in turns[0]


def _goes_on(before: Any, after: Any) -> bool:
    """Whether a row repeats all of the one before it and says more."""
    some, others = items(before, "conversations"), items(after, "conversations")
    if not some or len(others) <= len(some) or others[: len(some)] != some:
        return False
    return all(before.get(key) == after.get(key) for key in ("trial_name", "run_id", "agent"))


def _episode(record: Record, repeated: int) -> Conversation | Unusable:
    value = record.value
    messages = transcript(value["conversations"], "user")
    if isinstance(messages, str):
        return Unusable(record, messages, "a turn of `conversations` is no message with a known role")
    trial, episode, task = (identifier(value.get(key)) for key in ("trial_name", "episode", "task"))
    result = value.get("result")
    reward = result if type(result) in (int, float, bool) else _number(result)
    error = plain(result) if reward is None and result not in (None, "") else None
    date = value.get("date")
    rest = {key: item for key, item in value.items() if key not in _HELD and item not in (None, "", [], {})}
    return Conversation(
        messages,
        (record,),
        local_id="/".join(part for part in (trial, episode) if part) or None,
        run=encode([value.get("agent"), value.get("model"), value.get("run_id")]),
        task=None if task is None else ("harbor", task),
        task_from_prompt=task is None,
        tools=value.get("tool_definitions"),
        error=error,
        reward=reward,
        model=text(value.get("model")),
        provider=text(value.get("model_provider")),
        agent=text(value.get("agent")),
        started_at=date if isinstance(date, str) and date[:1].isdigit() else None,
        extra=rest or None,
        n_records=repeated + 1,
    )


def _number(value: Any) -> float | None:
    """A reward that is written as text."""
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e300 else None
