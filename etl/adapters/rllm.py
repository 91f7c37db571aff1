"""rLLM trajectories: `{task, reward, steps: [{observation, model_response, action, reward, done, chat_completions}]}`.

Each step repeats the chat up to it in `chat_completions`, so only what it adds is read. Calls of some agents stand in
`action` alone, with their result; answers of others in `model_response` alone. Whatever else a step says, its own
reward among it, is in `extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._rollouts import Sampled, items, obj, one_sequence, text
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import encode

_STEP = frozenset({"action", "model_response", "chat_completions"})
_HELD = frozenset({"steps", "reward", "task"})
_TOKENS = ("prompt_ids", "response_ids", "logprobs")


class Rllm(Adapter):
    """Trajectories of agents trained or run with rLLM."""

    name = "rllm"
    version = 1
    about = "rLLM trajectories: {task, reward, steps: [{action, model_response, chat_completions, …}]}"
    scores_share = True

    def score(self, sample: Sample) -> float:
        """Sure of steps that hold actions and chats."""
        hits = sum(_is_trajectory(value) for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record."""
        for record in records:
            if items(record.value, "steps"):
                yield _trajectory(record, record.value)
            else:
                yield Unusable(record, "no_steps", "not an rLLM trajectory: it has no list `steps`, or an empty one")


def _is_trajectory(value: dict[str, Any]) -> bool:
    steps = items(value, "steps")
    return bool(steps) and isinstance(steps[0], dict) and "reward" in value and len(_STEP & steps[0].keys()) > 1


def _trajectory(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    messages: list[Message] = []
    chat: list[Any] = []
    left: list[Any] = []
    steps = items(value, "steps")
    sequence = one_sequence([_sampled(step) for step in steps if isinstance(step, dict)])
    in_sequence = sequence is not None and sequence.logprobs is not None
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            left.append(step)
            continue
        added = _added(step, chat)
        for turn in added or ():
            read = chat_messages(turn)
            if isinstance(read, str):
                return Unusable(record, read, f"steps[{number}].chat_completions holds no message with a known role")
            messages += read
        told = _act(step, added or [], chat, messages)
        left.append(_rest(step, added is None, told, messages, in_sequence))
    task = value.get("task")
    if not messages:
        return Unusable(record, "no_messages", "no step of the trajectory says anything")
    about = obj(value, "metadata")
    extra = {key: item for key, item in value.items() if key not in _HELD and item not in (None, "", [], {})}
    extra.update({"task": task if not isinstance(task, str) or not _asked(task, messages) else None})
    extra.update({"steps": left if any(left) else None})
    return Conversation(
        messages,
        (record,),
        local_id=identifier(about.get("episode_id")) or identifier(value.get("uid")) or identifier(value.get("id")),
        task=None if task in (None, "", {}) else ("rllm", task if isinstance(task, str) else encode(task)),
        task_from_prompt=task in (None, "", {}),
        reward=value.get("reward"),
        status="completed" if obj({"last": steps[-1]}, "last").get("done") is True else None,
        agent=text(about.get("agent_type")),
        started_at=about.get("timestamp"),
        token_ids=sequence and sequence.token_ids,
        loss_mask=sequence and sequence.loss_mask,
        logprobs=sequence and sequence.logprobs,
        extra={key: item for key, item in extra.items() if item is not None} or None,
    )


def _added(step: dict[str, Any], chat: list[Any]) -> list[Any] | None:
    """What a step adds to the chat before it; None where it rewrote that chat, which then goes on from the step's."""
    logged = items(step, "chat_completions")
    shared = logged[: len(chat)] == chat[: len(logged)]
    added = logged[len(chat) :] if shared else [turn for turn in logged if turn not in chat]
    chat += added
    return added if shared or added else None


def _act(step: dict[str, Any], added: list[Any], chat: list[Any], messages: list[Message]) -> bool:
    """The answer or the call of a step, where its chat does not hold it; whether the action is told by a call."""
    response = step.get("model_response")
    if isinstance(response, str) and response and not any(response == message.content for message in messages[-2:]):
        messages.append(Message("assistant", response))
        chat.append({"role": "assistant", "content": response})
    action = obj(step, "action")
    name = text(action.get("tool_name"))
    if name is None:
        return False
    if any(isinstance(turn, dict) and turn.get("tool_calls") for turn in added):
        return True
    call_id = f"step_{len(messages)}"
    messages.append(Message("assistant", "", calls=[ToolCall(name, action.get("tool_args"), call_id)]))
    if action.get("tool_result") is not None:
        messages.append(Message("tool", plain(action["tool_result"]), call_id=call_id))
    return True


def _rest(
    step: dict[str, Any], rewritten: bool, told: bool, messages: list[Message], in_sequence: bool
) -> dict[str, Any]:
    """What of a step the messages do not say."""
    said = {message.content for message in messages}
    action = step.get("action")
    held = {"chat_completions", "model_response", *(_TOKENS if in_sequence else ())}
    rest = {key: item for key, item in step.items() if key not in held and item not in (None, "", [], {})}
    if told:
        call = ("type", "tool_name", "tool_args", "tool_result")
        rest["action"] = {key: item for key, item in obj(step, "action").items() if key not in call}
        rest = {key: item for key, item in rest.items() if item not in ({}, [])}
        for key in call[1:]:
            if rest.get(key) == obj(step, "action").get(key):
                rest.pop(key, None)
    elif (isinstance(action, str) and action in said) or _content(action) in said:
        rest.pop("action", None)
    if isinstance(rest.get("observation"), str) and rest["observation"] in said:
        del rest["observation"]
    if rewritten:
        rest["chat_completions"] = step.get("chat_completions")
    if isinstance(step.get("model_response"), (dict, list)):
        rest["model_response"] = step["model_response"]
    return rest


def _content(action: Any) -> str:
    """The text of an action that is a message; empty where it is none."""
    read = chat_messages(action) if isinstance(action, dict) and "role" in action else "no_message"
    return "" if isinstance(read, str) else read[-1].content


def _sampled(step: dict[str, Any]) -> Sampled:
    return Sampled(*(step.get(key) for key in _TOKENS))


def _asked(task: str, messages: list[Message]) -> bool:
    return any(task == message.content for message in messages)
