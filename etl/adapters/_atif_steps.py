"""Steps of an ATIF trajectory into messages: turns, calls, and what was observed after them."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import identifier, plain, read
from etl.adapters._rollouts import Sampled, TokenSequence, count, items, obj, one_sequence, text
from etl.conversation import Message, Tokens, ToolCall

_ROLES = {"user": "user", "system": "system", "agent": "assistant"}
_HELD = frozenset({"source", "message", "timestamp", "model_name", "reasoning_content", "step_id", "is_copied_context"})
_COUNTS = {
    "input_tokens": ("prompt_tokens", "total_prompt_tokens"),
    "output_tokens": ("completion_tokens", "total_completion_tokens"),
    "cached_tokens": ("cached_tokens", "total_cached_tokens", "cache_tokens"),
}
"""Column → the names of a count: of a step, of the whole, of a step in version 1.2."""
_TOKENS = ("prompt_token_ids", "completion_token_ids", "logprobs")
_COSTS = ("cost_usd", "total_cost_usd")


def messages_of(value: dict[str, Any], in_sequence: bool) -> list[Message]:
    """The messages of a trajectory in order; a step that is none is kept as a synthetic system message.

    `in_sequence`: the row holds the tokens of all steps, so that the messages need not.
    """
    messages: list[Message] = []
    for step in items(value, "steps"):
        if not isinstance(step, dict):
            messages.append(Message("system", plain(step), synthetic=True, extra={"step": step}))
            continue
        turn = _turn(step, bool(messages), in_sequence)
        messages += [turn, *_observed(step, turn)]
    return messages


def _turn(step: dict[str, Any], begun: bool, in_sequence: bool) -> Message:
    source = step.get("source")
    role = _ROLES.get(source, "system") if isinstance(source, str) else "system"
    content = read(step.get("message"))
    reasoning = step.get("reasoning_content")
    calls, unread = _calls(step.get("tool_calls"))
    extra = {key: item for key, item in step.items() if key not in _HELD and item is not None}
    extra = {key: item for key, item in extra.items() if key not in ("tool_calls", "observation", "metrics", "usage")}
    used = tokens_of(metrics_of(step))
    metrics = _beyond(metrics_of(step))
    if in_sequence and role == "assistant":
        metrics = {key: item for key, item in metrics.items() if key not in _TOKENS}
    left = {
        "tool_calls": unread,
        "metrics": metrics or None,
        "source": None if isinstance(source, str) and source in _ROLES else source,
        "blocks": content.rest,
        "reasoning_content": reasoning if not isinstance(reasoning, (str, type(None))) else None,
        "model_name": None if text(step.get("model_name")) else step.get("model_name"),
        "observation": _rest_of_observation(step.get("observation")),
        "usage": step.get("usage") if not isinstance(step.get("usage"), dict) else None,
    }
    extra.update({key: item for key, item in left.items() if item not in (None, "", [], {})})
    message = Message(
        role,
        content.text,
        text(reasoning) or content.reasoning,
        calls=[*(content.calls or ()), *calls] or None,
        id=identifier(step.get("step_id")),
        at=step.get("timestamp"),
        model=text(step.get("model_name")),
        inherited=step.get("is_copied_context") is True,
        synthetic=role == "system" and begun,
        parts=content.parts,
        extra=extra or None,
    )
    if role == "assistant" and used is not None:
        message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens
    return message


def _calls(listed: Any) -> tuple[list[ToolCall], list[Any]]:
    """The calls of a step, and what of the list is none."""
    made: list[ToolCall] = []
    unread: list[Any] = []
    for call in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        name = call.get("function_name") if isinstance(call, dict) else None
        if isinstance(name, str):
            made.append(ToolCall(name, call.get("arguments"), identifier(call.get("tool_call_id"))))
            rest = {k: v for k, v in call.items() if k not in ("function_name", "arguments", "tool_call_id")}
            unread += [rest] if any(item is not None for item in rest.values()) else []
        else:
            unread.append(call)
    return made, unread


def _observed(step: dict[str, Any], turn: Message) -> list[Message]:
    """What came back: results of the step's calls, by id or, without ids, in order; else the environment's word."""
    results = [result for result in items(obj(step, "observation"), "results") if isinstance(result, dict)]
    calls = turn.calls or []
    nameless = [result for result in results if identifier(result.get("source_call_id")) is None]
    in_order = iter(calls if len(nameless) == len(calls) else [])
    observed: list[Message] = []
    for result in results:
        content = read(result.get("content"))
        call_id = identifier(result.get("source_call_id"))
        answered = None
        if call_id is None:
            answered = next(in_order, None)
            call_id = None if answered is None else answered.id
        rest = {k: v for k, v in result.items() if k not in ("content", "source_call_id") and v is not None}
        if content.rest:
            rest["blocks"] = content.rest
        if not calls and call_id is None:
            if not content.text and not content.parts:
                turn.extra = {**(turn.extra or {}), "observed": [*(turn.extra or {}).get("observed", []), rest]}
                continue
            role = "user"
        else:
            role = "tool"
        observed.append(
            Message(
                role,
                content.text,
                call_id=call_id if role == "tool" else None,
                at=step.get("timestamp"),
                inherited=turn.inherited,
                synthetic=role == "user",
                parts=content.parts,
                extra=rest or None,
            )
        )
    return observed


def _rest_of_observation(observation: Any) -> Any:
    """What of an observation is no result."""
    if not isinstance(observation, dict):
        return observation
    rest = {key: item for key, item in observation.items() if key != "results" and item is not None}
    listed = observation.get("results")
    odd = [item for item in listed if not isinstance(item, dict)] if isinstance(listed, list) else listed
    return {**rest, "results": odd} if odd else rest


def metrics_of(step: Any) -> dict[str, Any]:
    """The measurements of a step; version 1.2 calls them usage."""
    return obj(step, "metrics") or obj(step, "usage")


def tokens_of(metrics: dict[str, Any]) -> Tokens | None:
    """Counts of a step or of the whole."""
    counts = {
        column: next((number for number in (count(metrics.get(name)) for name in names) if number is not None), None)
        for column, names in _COUNTS.items()
    }
    cost = next((metrics[name] for name in _COSTS if type(metrics.get(name)) in (int, float)), None)
    used = Tokens(**counts, cost_usd=cost)
    return used if used != Tokens() else None


def _beyond(metrics: dict[str, Any]) -> dict[str, Any]:
    """What of a step's metrics the message's columns do not hold."""
    held = ("prompt_tokens", "completion_tokens")
    return {k: v for k, v in metrics.items() if v is not None and (k not in held or count(v) is None)}


def usage_of(value: dict[str, Any], messages: list[Message]) -> Tokens | None:
    """The sum over the agent's own steps where each has counts; else the totals, which may count sub-agents in."""
    own = [
        step
        for step in items(value, "steps")
        if isinstance(step, dict) and step.get("source") == "agent" and step.get("is_copied_context") is not True
    ]
    each = [tokens_of(metrics_of(step)) for step in own]
    if not each or any(used is None for used in each):
        return tokens_of(obj(value, "final_metrics"))
    total = Tokens()
    for used in each:
        for name in ("input_tokens", "output_tokens", "cached_tokens", "cost_usd"):
            number = getattr(used, name)
            if number is not None:
                setattr(total, name, (getattr(total, name) or 0) + number)
    return total


def sequence_of(value: dict[str, Any]) -> TokenSequence | None:
    """The tokens of all of the agent's steps as one sequence, where they continue one another."""
    own = [step for step in items(value, "steps") if isinstance(step, dict) and step.get("source") == "agent"]
    return one_sequence(
        [
            Sampled(m.get("prompt_token_ids"), m.get("completion_token_ids"), m.get("logprobs"))
            for m in map(metrics_of, own)
        ]
    )
