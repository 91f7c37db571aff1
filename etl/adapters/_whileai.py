"""An episode of a whileai row as messages, and the verdicts on it."""

from __future__ import annotations

from typing import Any

import msgspec

from etl.adapters._chat import chat_messages, parsed
from etl.adapters._usage import tokens
from etl.conversation import Message, Tokens, ToolCall, Verdict
from etl.decode import encode

TRACES = ("steps", "tool_trace", "trace")
"""Keys of the steps, newest first."""
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_RESULTS = ("result", "output", "response")
_KINDS = frozenset({"rule", "judge", "reward_model", "human"})
_AGENT_ERROR = "<agent error"
_GARBLED = "<<garbled"
"""How the SDK's world marks a result that it spoilt."""
_CONDITIONS = {
    "ok": "success", "success": "success", "timeout": "timeout", "not_found": "not_found", "error": "error",
    "denied": "permission_denied", "permission_denied": "permission_denied", "malformed": "malformed_result",
    "already_done": "already_done", "already_acted_on": "already_done", "rate_limited": "rate_limited",
}  # fmt: skip
"""The `status` of a result of the SDK's world, as its steps' condition."""


class Episode(msgspec.Struct):
    """What was said and done."""

    messages: list[Message]
    held: set[str]
    """The keys of the row that the messages hold."""
    unread: list[Any]
    """Steps that are none."""
    usage: Tokens | None = None

    @property
    def final_text(self) -> str | None:
        """The last thing the agent said."""
        return next((message.content for message in reversed(self.messages) if message.role == "assistant"), None)

    @classmethod
    def of(cls, value: dict[str, Any], simulated: bool) -> Episode | str:
        """The episode of a row; the reason, in one line, where a message of it is none."""
        key = next((key for key in TRACES if isinstance(value.get(key), list)), None)
        steps = value[key] if key is not None else []
        listed = value.get("messages")
        if isinstance(listed, list) and listed:
            found = _listed(listed)
            if isinstance(found, str):
                return found
            made = cls(found, {"messages", "opener"}, [])
            if key is not None and _annotated(found, steps):
                made.held.add(key)
        else:
            made = cls([], {"messages", "opener", "prompt"}, [])
            _told(made, value, steps)
            if key is not None:
                made.held.add(key)
        _final(made, value.get("final_text"))
        usage = tokens(value["usage"]) if isinstance(value.get("usage"), dict) else None
        if usage is not None:
            made.usage = usage
        if isinstance(value.get("opener"), str) and not any(m.content == value["opener"] for m in made.messages):
            made.held.discard("opener")
        if simulated:
            for message in made.messages:
                _conditioned(message)
        return made


def _listed(listed: list[Any]) -> list[Message] | str:
    messages: list[Message] = []
    for index, item in enumerate(listed):
        found = chat_messages(item)
        if isinstance(found, str):
            return f"messages[{index}] is no message with a known role"
        messages += found
    return messages


def _told(made: Episode, value: dict[str, Any], steps: list[Any]) -> None:
    """The messages of a row that has only steps: opener, prompt, and what each step says."""
    if isinstance(value.get("opener"), str) and value["opener"]:
        made.messages.append(Message("assistant", value["opener"]))
    if isinstance(value.get("prompt"), str) and value["prompt"]:
        made.messages.append(Message("user", value["prompt"]))
    for number, step in enumerate(steps):
        if not isinstance(step, dict) or not step.keys() & {"tool", "text", "user"}:
            made.unread.append(step)
            continue
        made.messages += _step(step, f"call_{number + 1}")


def _step(step: dict[str, Any], call_id: str) -> list[Message]:
    """A user turn, or what the agent said with the call it made and what came back."""
    said: list[Message] = []
    held = {"user", "text"}
    if isinstance(step.get("user"), str) and step["user"]:
        said.append(Message("user", step["user"]))
    if isinstance(step.get("tool"), str) and step["tool"]:
        argued = next((key for key in _ARGUMENTS if key in step), "arguments")
        answered = next((key for key in _RESULTS if key in step), None)
        held |= {"tool", argued, answered or "tool"}
        text = step["text"] if isinstance(step.get("text"), str) else ""
        said.append(Message("assistant", text, calls=[ToolCall(step["tool"], step.get(argued), call_id)]))
        if answered is not None:
            said.append(Message("tool", _result(step[answered]), call_id=call_id, name=step["tool"]))
    elif isinstance(step.get("text"), str) and (step["text"] or not said):
        said.append(Message("assistant", step["text"]))
    spoken = next((message for message in said if message.role == "assistant"), said[0] if said else None)
    if spoken is not None:
        _annotate(spoken, {key: item for key, item in step.items() if key not in held and item is not None})
    return said


def _result(value: Any) -> str:
    return value if isinstance(value, str) else encode(value)


def _annotate(message: Message, rest: dict[str, Any]) -> None:
    """What a step says of the model call behind it."""
    for key, counted in (("input_tokens", "input_tokens"), ("output_tokens", "output_tokens")):
        if type(rest.get(key)) is int:
            setattr(message, counted, rest.pop(key))
    if rest:
        message.extra = {**(message.extra or {}), **rest}


def _annotated(messages: list[Message], steps: list[Any]) -> bool:
    """Whether the messages say all that the steps say; what these say beyond a message then goes to it."""
    pairs: list[tuple[Message, dict[str, Any]]] = []
    results = [message for message in messages if message.role == "tool"]
    spoken = iter([message for message in messages if message.role == "assistant"])
    answers = iter(results)
    for step in steps:
        if not isinstance(step, dict):
            return False
        rest = {key: item for key, item in step.items() if item is not None}
        tool = rest.pop("tool", None)
        if "user" in rest:
            rest.pop("user")
            if rest or not any(message.content == step["user"] for message in messages):
                return False
            continue
        message = next((m for m in spoken if (m.calls if tool else m.content == rest.get("text"))), None)
        if message is None or not _says(message, tool, step, rest, answers):
            return False
        pairs.append((message, rest))
    for message, rest in pairs:
        _annotate(message, rest)
    return True


def _says(message: Message, tool: Any, step: dict[str, Any], rest: dict[str, Any], answers: Any) -> bool:
    """Whether one message says what a step says; takes that out of the rest."""
    if rest.pop("text", "") not in ("", message.content):
        return False
    if not tool:
        return True
    call = (message.calls or [ToolCall("")])[0]
    arguments = rest.pop("arguments", {})
    logged = parsed(call.arguments) if isinstance(call.arguments, str) else call.arguments
    if len(message.calls or ()) != 1 or call.name != tool or (logged or {}) != arguments:
        return False
    if "result" not in step:
        return True
    rest.pop("result", None)
    answer = next(answers, None)
    return answer is not None and (answer.content == step["result"] or parsed(answer.content) == step["result"])


def _final(made: Episode, final: Any) -> None:
    """The final text is the last thing said, where the messages do not say it yet."""
    if not isinstance(final, str) or not final:
        made.held.add("final_text")
        return
    made.held.add("final_text")
    last = made.messages[-1] if made.messages else None
    if last is not None and last.role == "assistant" and last.content == final:
        last.synthetic = final.startswith(_AGENT_ERROR)
    elif not any(message.role == "assistant" and message.content == final for message in made.messages):
        made.messages.append(Message("assistant", final, synthetic=final.startswith(_AGENT_ERROR)))


def _conditioned(message: Message) -> None:
    """What a call of a simulated row met, by the status that the SDK's world gives its results."""
    if message.role != "tool" or message.failed is not None:
        return
    if _GARBLED in message.content:
        message.condition = "malformed_result"
        return
    result = parsed(message.content) if message.content[:1] == "{" else None
    if not isinstance(result, dict) or not isinstance(result.get("status"), str):
        return
    condition = "stale_result" if result.get("stale") is True else _CONDITIONS.get(result["status"].lower())
    if condition is not None:
        message.failed = condition not in ("success", "stale_result", "already_done")
        message.condition = condition


def verdicts(value: dict[str, Any]) -> tuple[list[Verdict], set[str]]:
    """The judgments on a row, the primary one first, and the keys that they hold."""
    found: list[Verdict] = []
    judge, label = _text(value.get("judge_name")), _text(value.get("label_source"))
    held: set[str] = set()
    if value.get("reward") is not None or judge or label or value.get("judge_status"):
        meta = value["judge_meta"] if isinstance(value.get("judge_meta"), dict) else {}
        told = _text(meta.get("scorer_kind"))
        kind = told if told in _KINDS else ("judge" if judge else "rule")
        reason = _text(value.get("reason")) or _text(value.get("grader_reason"))
        found.append(
            Verdict(
                judge or label or "unlabeled", kind, _number(value.get("reward")),
                _text(value.get("failure_class")), _text(value.get("judge_status")), reason,
            )
        )  # fmt: skip
        held |= {key for key in ("judge_name", "failure_class", "judge_status", "reason") if _is_text(value, key)}
        held |= {"label_source"} if label and not judge else set()
        held |= {"grader_reason"} if value.get("grader_reason") == reason else set()
    for key, name in (("llm_reward", "llm"), ("qwen_reward", "qwen")):
        number = _number(value.get(key))
        if number is not None:
            found.append(Verdict(name, "judge", number, reason=_text(value.get(f"{name}_reason"))))
            held |= {key, f"{name}_reason"}
    markers = value["markers"] if isinstance(value.get("markers"), dict) else {}
    if markers and all(_number(item) is not None for item in markers.values()):
        found += [Verdict(name, "marker", _number(item)) for name, item in markers.items()]
        held.add("markers")
    if _number(value.get("gold_reward")) is not None:
        found.append(Verdict("gold", "human", _number(value["gold_reward"])))
        held.add("gold_reward")
    return found, held


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_text(value: dict[str, Any], key: str) -> bool:
    return isinstance(value.get(key), str)
