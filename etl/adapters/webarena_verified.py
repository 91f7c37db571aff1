"""WebArena-Verified: the score of a task (`eval_result.json`) and the agent's own answer (`agent_response.json`).

What the agent and the model said to each other is not in these files, only the answer: rows are flagged
`content_not_captured`. An answer does not name its task, so it stands alone; the score repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier
from etl.adapters._records import RecordAdapter, left
from etl.adapters._rollouts import obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict
from etl.decode import encode

_SCORE = frozenset({"task_id", "evaluators_results", "score"})
_ANSWER = frozenset(
    {"task_type", "action", "performed_operation", "status", "retrieved_data", "results", "error_details"}
)
_KINDS = ("task_type", "action", "performed_operation")
_EVALUATOR = "AgentResponseEvaluator"


class WebArenaVerified(RecordAdapter):
    """Scores and answers of WebArena-Verified."""

    name = "webarena_verified"
    version = 1
    about = "WebArena-Verified: eval_result.json with the verdict of each evaluator, and agent_response.json"
    expects = "a score or an answer is a JSON object"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a score with its evaluators; fairly sure of an answer."""
        if value.keys() >= _SCORE and isinstance(value["evaluators_results"], list):
            return 0.95
        return 0.85 if _is_answer(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One task."""
        if isinstance(value.get("evaluators_results"), list):
            yield _scored(record, value)
        elif _is_answer(value):
            yield _answered(record, value)
        else:
            yield Unusable(record, "no_messages", "neither a score with `evaluators_results` nor an answer of an agent")


def _is_answer(value: dict[str, Any]) -> bool:
    named = any(isinstance(value.get(key), str) for key in _KINDS) and isinstance(value.get("status"), str)
    return named and value.keys() <= _ANSWER and bool(value.keys() & {"retrieved_data", "results"})


def _answered(record: Record, value: dict[str, Any]) -> Conversation:
    return Conversation(
        [Message("assistant", encode(value))],
        (record,),
        finish_reason=value["status"],
        error=text(value.get("error_details")),
        status="completed",
        flags={"content_not_captured"},
    )


def _scored(record: Record, value: dict[str, Any]) -> Conversation:
    verdicts: list[Verdict] = []
    answer: Any = None
    rest: list[Any] = []
    for found in value["evaluators_results"]:
        name = text(found.get("evaluator_name")) if isinstance(found, dict) else None
        if name is None:
            rest.append(found)
            continue
        score = found.get("score")
        number = float(score) if type(score) in (int, float) else None
        verdicts.append(
            Verdict(name, "rule", number, status=text(found.get("status")), reason=text(found.get("error_msg")))
        )
        held = {"score", "status", "error_msg"}
        if name == _EVALUATOR and answer is None and found.get("actual") is not None:
            answer = found["actual"]
            held |= {"actual"}
        rest.append(left(found, held))
    status, failed = text(value.get("status")), text(value.get("error_msg"))
    held = {"task_id", "evaluators_results", "score", "status"} | ({"error_msg"} if failed else set())
    more = left({**value, "evaluators": rest if any(rest) else None}, held)
    said = text(obj({"answer": answer}, "answer").get("status"))
    return Conversation(
        [] if answer is None else [Message("assistant", answer if isinstance(answer, str) else encode(answer))],
        (record,),
        local_id=identifier(value.get("task_id")),
        task=("webarena_verified", encode([value.get("task_id"), value.get("task_revision")])),
        reward=value.get("score"),
        judgments=verdicts or None,
        status="error" if status == "error" else "completed" if answer is not None else None,
        finish_reason=said or status,
        error=failed,
        flags={"content_not_captured"},
        extra=more,
    )
