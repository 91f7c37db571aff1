"""AgentBench runs (`runs.jsonl`, `error.jsonl`): a sample of a task a line, with the history of the agent in it.

`{index, error, info, output: {index, status, result, history}, time}`. What the status says about the end, and the
number in the result, are kept as logged. The few-shot dialogues that its harness puts into prompts are no runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._records import RecordAdapter, left
from etl.adapters._rollouts import numbers, obj, text
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable, Verdict

_RUN = frozenset({"index", "output", "time"})
_HELD = frozenset({"index", "output", "time", "error"})
_OUTPUT = frozenset({"index", "history", "status", "result"})
_ENDS = {"completed": "completed", "task limit reached": "truncated", "agent context limit": "truncated"}
_SCORES = ("reward", "score", "result")


class AgentBench(RecordAdapter):
    """Runs of AgentBench's task servers."""

    name = "agentbench"
    version = 1
    about = "AgentBench runs.jsonl and error.jsonl: {index, output: {status, result, history}, time} a line"
    expects = "a run is a JSON object with an index, an output and a time"
    ignores: ClassVar[dict[str, str]] = {
        "demonstrations": "few-shot dialogues that the harness puts into its prompts: nobody ran them"
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of an output with status and history (or the error in its place), and of demonstrations."""
        return 0.92 if _is_run(value) or _are_demonstrations(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One run."""
        yield Ignored("demonstrations") if _are_demonstrations(value) else _run(record, value)


def _is_run(value: dict[str, Any]) -> bool:
    if not value.keys() >= _RUN or not isinstance(obj(value, "time").get("timestamp"), (int, float)):
        return False
    output = value["output"]
    return (isinstance(output, dict) and "status" in output) or (output is None and bool(value.get("error")))


def _are_demonstrations(value: dict[str, Any]) -> bool:
    lists = list(value.values())
    return (
        bool(lists)
        and all(isinstance(turns, list) and bool(turns) and all(map(_is_turn, turns)) for turns in lists)
        and any(turn["role"] == "agent" for turns in lists for turn in turns)
    )


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and {"role", "content"} <= turn.keys()


def _run(record: Record, value: dict[str, Any]) -> Outcome:
    output, time = obj(value, "output"), obj(value, "time")
    messages: list[Message] = []
    for index, turn in enumerate(output["history"] if isinstance(output.get("history"), list) else []):
        if isinstance(turn, dict) and turn.get("role") == "agent":
            turn = {**turn, "role": "assistant"}
        read = chat_messages(turn)
        if isinstance(read, str):
            return Unusable(record, read, f"history[{index}] is no message with a known role")
        messages += read
    error, status = value.get("error"), text(output.get("status"))
    if not messages and not error and status is None:
        return Unusable(record, "no_messages", "the run has neither a history nor a status nor an error")
    result = output.get("result")
    scored = numbers(result)
    reward = next((scored[key] for key in _SCORES if key in scored), None)
    end = _ENDS.get(status or "", "error" if status else None)
    odd = {} if isinstance(value.get("output"), dict) or value.get("output") is None else {"output": value["output"]}
    return Conversation(
        messages,
        (record,),
        local_id=identifier(value.get("index")),
        task_from_prompt=True,
        status="error" if error else end,
        finish_reason=status,
        error=plain(error) if error else None,
        reward=reward,
        judgments=[_verdict(name, number) for name, number in scored.items()] or None,
        ended_at=time.get("timestamp"),
        flags=None if messages else {"content_not_captured"},
        extra=left(
            {
                **{key: item for key, item in value.items() if key not in _HELD},
                **odd,
                "result": None if isinstance(result, dict) and 0 < len(scored) == len(result) else result,
                "output": {key: item for key, item in output.items() if key not in _OUTPUT} or odd.get("output"),
            },
            (),
        ),
    )


def _verdict(name: str, number: float) -> Verdict:
    return Verdict(name, "rule" if name in (*_SCORES, "success") else "marker", float(number))
