"""mini-SWE-agent trajectories: one object a file, `{trajectory_format, info, messages, instance_id}`.

Messages are those of a chat, with the raw response of the model and the times in their `extra`. A last message of the
role `exit` is none: it says how the run ended. Later turns of the role `user` are what the shell printed, in versions
where the model writes its command into the text. What the call that submits printed stands in the last message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._rollouts import items, obj, text
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, Unusable
from etl.decode import encode

_FORMAT = "mini-swe-agent"
_STATUS = {"Submitted": "completed", "LimitsExceeded": "truncated", "submitted": "completed"}
_SUBMITS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The first line of what a command prints that submits."""
_LATE = re.compile(r"\btimed out\b")


class MiniSweAgent(Adapter):
    """Trajectories of mini-SWE-agent."""

    name = "mini_swe_agent"
    version = 3
    about = "mini-SWE-agent trajectories: {trajectory_format, info, messages, instance_id}, one object a file"
    scores_share = True

    def score(self, sample: Sample) -> float:
        """Sure of the name of the format."""
        hits = sum(_is_trajectory(value) for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record."""
        for record in records:
            if isinstance(record.value, dict) and isinstance(record.value.get("messages"), list):
                yield _trajectory(record, record.value)
            else:
                yield Unusable(record, "no_messages", "not a mini-SWE-agent trajectory: it has no list `messages`")


def _is_trajectory(value: dict[str, Any]) -> bool:
    return str(value.get("trajectory_format")).startswith(_FORMAT) and isinstance(value.get("messages"), list)


def _trajectory(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    messages: list[Message] = []
    ends: list[dict[str, Any]] = []
    used = Tokens()
    for index, turn in enumerate(items(value, "messages")):
        if isinstance(turn, dict) and turn.get("role") == "exit":
            ends.append(turn)
            continue
        read = chat_messages(turn)
        if isinstance(read, str):
            return Unusable(record, read, f"messages[{index}] is no message with a known role; see what wrote it")
        for message in read:
            _told(message, used, bool(messages) and any(one.role == "assistant" for one in messages[-2:]))
        messages += read
    if not messages:
        return Unusable(record, "no_messages", "the trajectory has no message")
    if ends and (submitted := _submitted(messages[-1], ends[-1])) is not None:
        messages.append(submitted)
    info = obj(value, "info")
    config = obj(info, "config")
    model = text(obj(config, "model").get("model_name"))
    instance = identifier(value.get("instance_id"))
    reason = text(info.get("exit_status"))
    error = text(info.get("exception_str")) if reason not in _STATUS else None
    cost = obj(info, "model_stats").get("instance_cost")
    if type(cost) in (int, float) and cost:
        used.cost_usd = cost
    return Conversation(
        messages,
        (record,),
        local_id=instance,
        run=encode([model, text(info.get("mini_version"))]),
        task=None if instance is None else ("", instance),
        task_from_prompt=instance is None,
        status=_STATUS.get(reason or "", "error" if error or reason else None),
        finish_reason=reason,
        error=error,
        model=model,
        agent="mini-swe-agent",
        usage=used if used != Tokens() else None,
        extra=_extra(value, info, ends),
    )


def _submitted(last: Message, end: dict[str, Any]) -> Message | None:
    """What the command that submitted printed, after the line that says so; of several the one that has that line."""
    if _STATUS.get(str(obj(end, "extra").get("exit_status"))) != "completed" or not isinstance(end.get("content"), str):
        return None
    calls = last.calls or []
    marked = [call for call in calls if _SUBMITS in plain(call.arguments)]
    if len(marked) != 1 and len(calls) != 1:
        return None
    return Message("tool", end["content"], call_id=(marked or calls)[0].id)


def _told(message: Message, used: Tokens, after_answer: bool) -> None:
    """What `extra` of a message says in words of ours: time, tokens, model, how the command went."""
    rest = dict(message.extra or {})
    more = rest.pop("extra", None)
    for key in ("function_call", "provider_specific_fields"):
        if rest.get(key) in (None, {}):
            rest.pop(key, None)
    if message.role == "user" and after_answer:
        message.synthetic = True
    if not isinstance(more, dict):
        message.extra = {**rest, "extra": more} if more is not None else rest or None
        return
    left = dict(more)
    if message.at is None and type(left.get("timestamp")) in (int, float, str):
        message.at = left.pop("timestamp")
    if message.role == "tool" and type(left.get("returncode")) is int:
        message.failed = left["returncode"] != 0
        if message.failed and (told := text(left.get("exception_info"))):
            message.error, message.condition = told, "timeout" if _LATE.search(told) else None
    raw = left.get("raw_output")
    if isinstance(raw, str) and raw in message.content:
        del left["raw_output"]
    if message.role == "assistant":
        _answered(message, left, used)
    left = {key: item for key, item in left.items() if item not in (None, "", {}, [])}
    message.extra = {**rest, **({"extra": left} if left else {})} or None


def _answered(message: Message, left: dict[str, Any], used: Tokens) -> None:
    """The response that a message is: counted once; what repeats the message is left out of `extra`."""
    response = obj(left, "response")
    if not response:
        return
    message.model = text(response.get("model"))
    counted = tokens(response.get("usage"))
    if counted is not None:
        message.input_tokens, message.output_tokens = counted.input_tokens, counted.output_tokens
        for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
            number = getattr(counted, name)
            if number is not None:
                setattr(used, name, (getattr(used, name) or 0) + number)
    choices = items(response, "choices")
    first = choices[0] if len(choices) == 1 and isinstance(choices[0], dict) else {}
    message.finish_reason = text(first.get("finish_reason"))
    if first and plain(obj(first, "message").get("content")) == message.content:
        said = {
            key: item for key, item in obj(first, "message").items() if key not in ("role", "content", "tool_calls")
        }
        choice = {key: item for key, item in first.items() if key not in ("message", "finish_reason", "index")}
        kept = {**choice, "message": {key: item for key, item in said.items() if item not in (None, message.reasoning)}}
        response = {**response, "choices": [{key: item for key, item in kept.items() if item not in (None, {}, [])}]}
        if response["choices"] == [{}]:
            del response["choices"]
        left["response"] = response
    commands = [obj({"call": action}, "call").get("command") for action in items(left, "actions")]
    if message.calls and len(commands) == len(message.calls):
        arguments = [plain(call.arguments) for call in message.calls]
        if all(isinstance(c, str) and encode(c)[1:-1] in a for c, a in zip(commands, arguments, strict=True)):
            del left["actions"]


def _extra(value: dict[str, Any], info: dict[str, Any], ends: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What no column holds; the patch once, though the last message repeats it."""
    rest = {key: item for key, item in value.items() if key not in ("messages", "info", "instance_id")}
    if identifier(value.get("instance_id")) is None:
        rest["instance_id"] = value.get("instance_id")
    rest["info"] = {key: item for key, item in info.items() if key != "exit_status" or not isinstance(item, str)}
    if not isinstance(value.get("info", {}), dict):
        rest["info"] = value["info"]
    patch = info.get("submission")
    other = [end for end in ends if end.get("content") not in (patch, None, "") or patch is None]
    rest["exit"] = other or [
        end["extra"] for end in ends if end.get("extra") and obj(end, "extra").get("submission") != patch
    ]
    return {key: item for key, item in rest.items() if item not in (None, "", {}, [])} or None
