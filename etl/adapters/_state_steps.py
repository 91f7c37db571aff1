"""Memory of smolagents: a system prompt, a task, plans, steps of `{model_output, tool_calls, observations, error}`."""

from __future__ import annotations

from typing import Any

from etl.adapters._api_form import error_text
from etl.adapters._blocks import call as read_call
from etl.adapters._blocks import plain
from etl.adapters._records import left
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Message

_HELD = (
    *("step_number", "step", "timing", "tool_calls", "error", "model_output", "observations", "action_output"),
    *("token_usage", "model_input_messages", "model_output_message", "code_action", "observations_images"),
)


def is_step(item: dict[str, Any]) -> bool:
    """Whether it is a step that acted."""
    return bool(item.keys() & {"step_number", "step"}) and bool(item.keys() & {"model_output", "model_output_message"})


def smol_messages(item: dict[str, Any]) -> list[Message] | str:
    """What one step of the memory says."""
    if is_step(item):
        return _acted(item)
    if "system_prompt" in item:
        return [Message("system", plain(item["system_prompt"]), extra=left(item, ("system_prompt",)))]
    if "task" in item:
        images = items(item, "task_images")
        return [Message("user", plain(item["task"]), parts=images or None, extra=left(item, ("task", "task_images")))]
    if "plan" in item:
        rest = left(item, ("plan", "model_input_messages", "model_output_message", "timing", "token_usage"))
        return [_counted(Message("assistant", plain(item["plan"]), extra=rest), item)]
    return [Message("assistant", plain(item.get("output")), extra=left(item, ("output",)))]


def _acted(item: dict[str, Any]) -> list[Message]:
    timing = obj(item, "timing")
    said = item.get("model_output")
    said = obj(item, "model_output_message").get("content") if said is None else said
    made = _counted(Message("assistant", plain(said), at=timing.get("start_time")), item)
    made.extra = left(item, _HELD)
    for block in items(item, "tool_calls"):
        found = read_call(block) if isinstance(block, dict) else None
        if found is None:
            made.parts = [*(made.parts or ()), block]
            continue
        found.free_form = isinstance(found.arguments, str) and not found.arguments.lstrip().startswith("{")
        made.calls = [*(made.calls or ()), found]
    error = item.get("error")
    seen, output = text(item.get("observations")), item.get("action_output")
    if not made.calls or (seen is None and error is None and output is None):
        made.error = error_text(error) if error is not None else None
        return [made]
    result = Message("tool", seen or plain(output), call_id=made.calls[0].id, at=timing.get("end_time"))
    result.parts = items(item, "observations_images") or None
    if error is not None:
        result.failed, result.error = True, error_text(error)
        result.content = result.content or result.error or ""
    if seen and output is not None and plain(output) not in seen:
        result.extra = {"action_output": output}
    return [made, result]


def _counted(made: Message, item: dict[str, Any]) -> Message:
    usage = obj(item, "token_usage")
    made.input_tokens, made.output_tokens = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    return made
