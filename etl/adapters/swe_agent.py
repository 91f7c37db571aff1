"""SWE-agent trajectories (`.traj`): one object a file, `{environment, trajectory, history, info}`.

The file tells one run twice. `history` is the conversation, with demonstrations in it that the run began with: they go
to `extra` and are no turns of the row. `trajectory` adds to each action its state and how long it took; the requests
that it repeats for each step are left out, since the history has them. Where an action is text, the turn is what the
model wrote, thought and action; the action is a call of the tool `action` too, and the turn that follows is its result.
What the action that ended the run gave stands in its step alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier
from etl.adapters._blocks import read as read_blocks
from etl.adapters._chat import chat_messages, opened, parsed
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, ToolCall, Unusable

_ACTION = "action"
_TOLD = ("agent", "message_type", "thought", "action", "tool_call_ids")
_STATUS = (("submitted (exit_error", "error"),
           ("submitted (", "truncated"), ("submitted", "completed"), ("exit_error", "error"), ("exit_format", "error"),
           ("exit_", "truncated"))  # fmt: skip
"""How an exit status begins → how the run ended. A patch that was submitted for a limit is not the agent's own end."""


class SweAgent(Adapter):
    """Trajectories of SWE-agent."""

    name = "swe_agent"
    version = 3
    about = "SWE-agent trajectories (.traj): {environment, trajectory, history, info}, one object a file"
    scores_share = True

    def score(self, sample: Sample) -> float:
        """Sure of a trajectory of actions or a history of agents beside the info of the run."""
        hits = sum(_is_trajectory(value) for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and (items(value, "history") or items(value, "trajectory")):
                yield _trajectory(record, value)
            else:
                yield Unusable(
                    record, "no_messages", "neither `history` nor `trajectory` has a turn; see what wrote it"
                )


def _is_trajectory(value: dict[str, Any]) -> bool:
    steps = [step for step in items(value, "trajectory") if isinstance(step, dict)]
    turns = [turn for turn in items(value, "history") if isinstance(turn, dict)]
    acted = bool(steps) and "action" in steps[0] and "observation" in steps[0]
    return (acted or (bool(turns) and "agent" in turns[0] and "role" in turns[0])) and "info" in value


def _trajectory(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    history = [opened(turn) for turn in items(value, "history")]
    demonstration = [turn for turn in history if isinstance(turn, dict) and turn.get("is_demo")]
    turns = [turn for turn in history if not (isinstance(turn, dict) and turn.get("is_demo"))]
    steps = items(value, "trajectory")
    if not turns:
        turns = [turn for step in steps if isinstance(step, dict) for turn in _turns_of(step)]
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        read = chat_messages(turn)
        if isinstance(read, str):
            return Unusable(record, read, f"history[{index}] is no message with a known role; see what wrote it")
        for message in read:
            _told(message, turn, messages)
            messages.append(message)
    left = _measured(messages, turns, steps)
    info = obj(value, "info")
    reason = text(info.get("exit_status"))
    status = next((ended for begin, ended in _STATUS if reason and reason.startswith(begin)), None)
    environment = text(value.get("environment"))
    task = environment if environment and "__" in environment else None
    extra = {
        "environment": value.get("environment"),
        "info": {key: item for key, item in info.items() if key != "exit_status"} or _odd(value.get("info")),
        "demonstration": demonstration,
        "trajectory": left,
        **{key: item for key, item in value.items() if key not in ("history", "trajectory", "info", "environment")},
    }
    return Conversation(
        messages,
        (record,),
        local_id=environment,
        task=None if task is None else ("", task),
        task_from_prompt=task is None,
        status=status,
        finish_reason=reason,
        error=reason if status == "error" else None,
        model=_model(value.get("replay_config")),
        agent="SWE-agent",
        usage=_usage(obj(info, "model_stats")),
        extra={key: item for key, item in extra.items() if item not in (None, "", {}, [])} or None,
    )


def _odd(value: Any) -> Any:
    return value if not isinstance(value, dict) else None


def _turns_of(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The turns of a step, for files that have no history."""
    yield {"role": "assistant", "content": step.get("response"), **{k: step.get(k) for k in ("thought", "action")}}
    yield {"role": "user", "content": step.get("observation"), "message_type": "observation"}


def _thought(message: Message, rest: dict[str, Any]) -> None:
    """Reasoning of a turn as blocks: its text, and the rest of each (a signature) as a part."""
    blocks = read_blocks(items(rest, "thinking_blocks"))
    if blocks.reasoning is not None and not blocks.text:
        message.reasoning, message.parts = blocks.reasoning, [*(message.parts or []), *(blocks.parts or [])] or None
        del rest["thinking_blocks"]


def _told(message: Message, turn: dict[str, Any], before: list[Message]) -> None:
    """A turn in words of ours: who said it, which action it holds, whose result it is."""
    rest = {key: item for key, item in (message.extra or {}).items() if key not in _TOLD}
    message.name = message.name or None
    ids = [found for found in map(identifier, items(turn, "tool_call_ids")) if found]
    if message.role == "tool" and message.call_id is None and ids:
        message.call_id = ids[0]
        rest.update({"tool_call_ids": ids} if len(ids) > 1 else {})
    if message.reasoning is None and message.role == "assistant":
        _thought(message, rest)
    action = turn.get("action")
    if message.role == "assistant" and isinstance(action, str) and not message.calls and action.strip():
        thought = turn.get("thought")
        if thought and not (isinstance(thought, str) and thought.strip() in message.content):
            rest["thought"] = thought
        message.calls = [ToolCall(_ACTION, action, f"action_{len(before)}", free_form=True)]
    elif message.role == "assistant":
        rest.update({key: turn[key] for key in ("thought", "action") if _unsaid(turn.get(key), message)})
    last = before[-1] if before else None
    if message.role == "user" and last is not None and last.calls and last.calls[0].name == _ACTION:
        message.role, message.call_id = "tool", last.calls[0].id
    for key in ("agent", "message_type"):
        if turn.get(key) is not None:
            rest[key] = turn[key]
    message.extra = rest or None


def _unsaid(value: Any, message: Message) -> bool:
    """Whether a key of a turn says more than its text and its calls."""
    if not isinstance(value, str):
        return bool(value)
    return value.strip() not in message.content


def _last_result(last: Message, said: Any, step: Any) -> Message | None:
    """What the action that ended the run gave: the history ends before it, only its step has it. A step that says
    nothing counts where its state or its time shows that it ran.
    """
    if last.role != "assistant" or not last.calls or not isinstance(step, dict) or step.get("response") != said:
        return None
    seen = step.get("observation")
    ran = bool(seen) or step.get("state") not in (None, "", "{}", {}) or bool(step.get("execution_time"))
    return Message("tool", seen, call_id=last.calls[0].id) if ran and isinstance(seen, str) else None


def _measured(messages: list[Message], turns: list[Any], steps: list[Any]) -> list[Any]:
    """Give results the state and duration of their step, matched in order by the response, and add the last of them;
    the steps that match none, without the requests they repeat.
    """
    waiting = list(steps)
    left: list[Any] = []
    said = [turn.get("content") if isinstance(turn, dict) else None for turn in turns]
    if len(said) != len(messages):
        said = [message.content for message in messages]
    for number, message in enumerate(messages[:-1]):
        answer = messages[number + 1]
        if message.role != "assistant" or answer.role != "tool":
            continue
        while waiting:
            step = waiting.pop(0)
            if isinstance(step, dict) and step.get("response") == said[number]:
                _state(answer, step)
                break
            left.append(step)
    result = _last_result(messages[-1], said[-1], waiting[0]) if messages and waiting else None
    if result is not None:
        _state(result, waiting.pop(0))
        messages.append(result)
    return [
        {k: v for k, v in step.items() if k != "messages"} if isinstance(step, dict) else step
        for step in (*left, *waiting)
        if not (isinstance(step, dict) and step.get("response") in said and not step.get("observation"))
    ]


def _state(answer: Message, step: dict[str, Any]) -> None:
    seconds = step.get("execution_time")
    rest = {key: item for key, item in step.items() if key not in ("action", "response", "thought", "messages")}
    if isinstance(seconds, (int, float)):
        answer.duration_ms = seconds * 1_000.0
        del rest["execution_time"]
    if isinstance(rest.get("observation"), str) and rest["observation"].strip() in answer.content:
        del rest["observation"]
    answer.extra = {**(answer.extra or {}), **{k: v for k, v in rest.items() if v not in (None, "", {}, [])}} or None


def _model(config: Any) -> str | None:
    """The model of the configuration that newer files hold, as an object or as its JSON text."""
    value = parsed(config) if isinstance(config, str) else config
    return text(obj(obj(value, "agent"), "model").get("name"))


def _usage(stats: dict[str, Any]) -> Tokens | None:
    """The counts of the instance; none where no call was counted."""
    if not count(stats.get("api_calls")):
        return None
    cost = stats.get("instance_cost")
    used = Tokens(count(stats.get("tokens_sent")), count(stats.get("tokens_received")))
    used.cost_usd = cost if type(cost) in (int, float) else None
    return used if used != Tokens() else None
