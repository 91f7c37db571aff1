"""GAIA answers: what smolagents' open deep research writes of each question, and submissions to the leaderboard.

`{question, augmented_question, prediction, intermediate_steps, …}` a line; a step is a step of the agent's memory, a
message, or (in older versions) the text that Python shows of one. A submission is `{task_id, model_answer,
reasoning_trace}`. Neither has a score: it is counted elsewhere, from the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._records import RecordAdapter, left
from etl.adapters._rollouts import items, text
from etl.adapters._state_steps import is_step, smol_messages
from etl.conversation import Conversation, Message, Outcome, Record, Unusable

_RUN = frozenset({"augmented_question", "prediction", "intermediate_steps"})
_ANSWER = frozenset({"task_id", "model_answer"})
_HELD = (
    *("augmented_question", "prediction", "intermediate_steps", "question", "agent_name", "agent_error"),
    *("start_time", "end_time", "task_id"),
)


class Gaia(RecordAdapter):
    """Runs and submissions of the GAIA benchmark."""

    name = "gaia"
    about = "GAIA: {question, prediction, intermediate_steps, …} of smolagents, {task_id, model_answer} of submissions"
    expects = "an answer is a JSON object with a question or a task"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the keys that the harness and the leaderboard name."""
        if value.keys() >= _RUN:
            return 0.97
        return 0.93 if _ANSWER <= value.keys() <= _ANSWER | {"reasoning_trace"} else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One answer."""
        if value.keys() >= _RUN:
            yield _run(record, value)
        elif value.keys() >= _ANSWER:
            yield _submitted(record, value)
        else:
            yield Unusable(record, "no_answer", "the record has neither a prediction nor a model_answer")


def _run(record: Record, value: dict[str, Any]) -> Outcome:
    asked = plain(value["augmented_question"] or value.get("question"))
    messages: list[Message] = []
    shown: list[str] = []
    for index, step in enumerate(items(value, "intermediate_steps")):
        if isinstance(step, str):
            shown.append(step)
            continue
        known = isinstance(step, dict)
        memory = known and (is_step(step) or step.keys() & {"system_prompt", "task", "plan"})
        found = smol_messages(step) if memory else chat_messages(step)
        if isinstance(found, str):
            return Unusable(record, found, f"intermediate_steps[{index}] is no step and no message with a known role")
        messages += found
    if not any(message.role == "user" for message in messages):
        place = sum(1 for message in messages[:1] if message.role == "system")
        messages.insert(place, Message("user", asked))
    prediction, error = value["prediction"], value.get("agent_error")
    answer = plain(prediction)
    last = messages[-1].content if messages[-1].role == "assistant" else ""
    if prediction is not None and answer.strip() != last.strip():
        messages.append(Message("assistant", answer))
    task = identifier(value.get("task_id")) or text(value.get("question"))
    made = Conversation(messages, (record,), local_id=identifier(value.get("task_id")))
    made.task = ("gaia", task) if task else None
    made.prompt, made.model = text(value.get("question")), text(value.get("agent_name"))
    made.error, made.status = (plain(error), "error") if error else (None, None)
    if value.get("iteration_limit_exceeded") is True:
        made.status, made.finish_reason = "truncated", "iteration_limit_exceeded"
    made.started_at, made.ended_at = value.get("start_time"), value.get("end_time")
    rest = left(value, _HELD) or {}
    made.extra = {**rest, **({"intermediate_steps": shown} if shown else {})} or None
    return made


def _submitted(record: Record, value: dict[str, Any]) -> Outcome:
    """An answer alone: what was asked is with the benchmark."""
    message = Message("assistant", plain(value["model_answer"]), text(value.get("reasoning_trace")))
    named = identifier(value["task_id"])
    made = Conversation([message], (record,), local_id=named, flags={"content_not_captured"})
    made.task = ("gaia", named) if named else None
    return made
