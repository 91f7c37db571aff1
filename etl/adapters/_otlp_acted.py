"""What an agent did at each of its turns, as events of it tell (`_otlp_emitted.py`), told to the models that it asked.

The updates of such an agent name the tool, what it was given and gave back, and the final answer; its models log text
alone. A turn that was put together of what a model wrote and what a tool gave is taken apart again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_span import Span, opened
from etl.adapters._otlp_threads import canonical
from etl.adapters._otlp_turn import Reader

MOST_LABELS = 64
"""How many labels of a turn are tried to be that of a tool's result."""
_LABEL = re.compile(r"^[A-Z][\w ]{0,40}: ?", re.MULTILINE)
_GIVEN, _SAID = ("input.value", "input"), ("output.value", "output")
_RESULT = "gen_ai.tool.call.result"
_FORMS = ("llm.input_messages.", "llm.output_messages.")
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")


class Step(msgspec.Struct):
    """What an agent did at one of its turns."""

    thought: str | None = None
    tool: str | None = None
    arguments: Any = None
    output: Any = None


def _value(span: Span, names: Sequence[str]) -> Any:
    return next((found for name in names if (found := span.attributes.get(name)) not in (None, "")), None)


def steps_of(events: Sequence[Span]) -> tuple[list[Step], Any, Any]:
    """What an agent did at each of its turns, its final answer, and the tools that it had."""
    made: dict[tuple[str | None, int], Step] = {}
    final, tools, starts = None, None, 0
    for event in events:
        attributes = event.attributes
        name = attributes.get("name")
        starts += name == "start"
        tools = tools or opened(attributes.get("llm.tools"))
        if name == "success":
            final = _text(opened(_value(event, _SAID))) or final
        if "thought" not in attributes and "tool.parameters" not in attributes:
            continue
        step = made.setdefault((event.parent, starts if event.parent is None else 0), Step())
        tool, thought, given = attributes.get("tool.name"), attributes.get("thought"), attributes.get("tool.parameters")
        step.thought = thought if isinstance(thought, str) else step.thought
        step.tool = tool if isinstance(tool, str) else step.tool
        step.arguments = step.arguments if given in (None, "null") else opened(given)
        said = _value(event, (*_SAID, _RESULT))
        step.output = said if said is not None else step.output
    done = list(made.values())
    if final is None and done and done[-1].tool is None:
        final = _text(done[-1].output)
    return done, final, tools


def _text(value: Any) -> str | None:
    """The text of an answer: itself, or that of a message."""
    if isinstance(value, dict):
        value = value.get("content", value.get("text"))
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) and value else None


def join_pieces(span: Span) -> None:
    """The answer of a model that was logged in pieces as one message."""
    pieces = Reader(span).numbered("llm.output_messages")
    said = [piece.get("message") for piece in pieces if isinstance(piece, dict)]
    texts = [message["content"] for message in said if isinstance(message, dict) and _is_plain(message)]
    if len(texts) < 2 or len(texts) != len(pieces):
        return
    whole = "".join(texts)
    first = min(int(key.split(".")[2]) for key in span.attributes if key.startswith("llm.output_messages."))
    for key in [key for key in span.attributes if key.startswith("llm.output_messages.") or key in _SAID]:
        del span.attributes[key]
    span.attributes["llm.output_messages.0.message.role"] = "assistant"
    span.attributes["llm.output_messages.0.message.content"] = whole
    span.rest.update({"first_piece": first} if first else {})


def _is_plain(message: dict[str, Any]) -> bool:
    return (
        message.get("role") == "assistant"
        and message.keys() <= {"role", "content"}
        and isinstance(message.get("content"), str)
    )


def _message(role: str, text: str, *parts: dict[str, Any]) -> dict[str, Any]:
    told = [{"type": "text", "content": text}] if text else []
    return {"role": role, "parts": [*told, *parts]}


def _call(step: Step) -> dict[str, Any]:
    return {"type": "tool_call", "name": step.tool, "arguments": step.arguments}


def tell(models: Sequence[Span], steps: Sequence[Step], final: str | None, tools: Any) -> list[Step]:
    """Tell an agent's models what it did at each turn: whose text holds it, and what each of them answered; the turns
    of which none can.
    """
    listed = tools if isinstance(tools, list) else []
    offered = [{"name": t["tool.name"], "description": t.get("tool.description")} for t in listed if _is_named(t)]
    acted = [step for step in steps if step.tool is not None]
    said: list[str | None] = [_answer(model) for model in models]
    histories: list[tuple[list[dict[str, Any]], int]] = []
    for model in models:
        if offered:
            model.attributes.setdefault("gen_ai.tool.definitions", offered)
        histories.append(_history(model, acted, said))
    told = max((turns for _, turns in histories), default=0)
    left = acted[told:]
    for number, (model, (history, turns)) in enumerate(zip(models, histories, strict=True)):
        step = steps[number] if len(models) == len(steps) else Step()
        answer = _answered(step, said[number], final if number == len(models) - 1 else None, model)
        if not history or not (turns or answer):
            continue
        text = said[number]
        _put(model, 0, history)
        _put(model, 1, answer or ([_message("assistant", text)] if text else []))
        left = [other for other in left if not answer or other is not step]
    return left


def _answered(step: Step, text: str | None, final: str | None, model: Span) -> list[dict[str, Any]]:
    """The answer of a model as its agent tells of it: with the call that it asked for, or where its text is not there;
    `final` of the last model.
    """
    if step.tool is not None and text is not None:
        return [_message("assistant", text, _call(step))]
    if step.tool is None and final is not None and _is_cut(model, text, final):
        return [_message("assistant", final, *_thought(step))]
    return []


def _thought(step: Step) -> list[dict[str, Any]]:
    return [{"type": "reasoning", "content": step.thought}] if step.thought else []


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("tool.name"), str)


def _is_cut(model: Span, text: str | None, final: str) -> bool:
    """Whether a model's answer is not there, or only its end, with which the agent's ends too."""
    return text is None or ("first_piece" in model.rest and final.rstrip().endswith(text.strip()))


def _answer(model: Span) -> str | None:
    """What a model answered, as far as it was logged."""
    told = Reader(model).numbered("llm.output_messages")
    message = told[0].get("message") if len(told) == 1 and isinstance(told[0], dict) else None
    return _text(message) if isinstance(message, dict) and _is_plain(message) else None


def _put(model: Span, side: int, told: list[dict[str, Any]]) -> None:
    hidden = (_GIVEN, _SAID)[side]
    for key in [key for key in model.attributes if key.startswith(_FORMS[side]) or key in hidden]:
        del model.attributes[key]
    if told:
        model.attributes[_MESSAGES[side]] = told


def _history(model: Span, acted: Sequence[Step], said: Sequence[str | None]) -> tuple[list[dict[str, Any]], int]:
    """The history that a model was given, its turns taken apart, and how many of them were put together."""
    told = [item.get("message") for item in Reader(model).numbered("llm.input_messages") if isinstance(item, dict)]
    made: list[dict[str, Any]] = []
    waiting = list(acted)
    for message in told:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str) or "tool_calls" in message:
            return [], 0
        role, content = str(message.get("role")), message["content"]
        split = next(_splits(content, waiting[0], said), None) if role == "assistant" and waiting else None
        if split is None:
            made.append(_message(role, content))
            continue
        made.append(_message(role, content[:split].rstrip(), _call(waiting.pop(0))))
        response = {"type": "tool_call_response", "response": content[split:].lstrip()}
        made.append({"role": "tool", "parts": [response]})
    return made, len(acted) - len(waiting)


def _splits(content: str, step: Step, said: Sequence[str | None]) -> Iterator[int]:
    """Where the result of a tool begins in a turn: behind what the model answered, else at the label before it."""
    for label in itertools.islice(_LABEL.finditer(content), MOST_LABELS):
        rest = content[label.end() :].strip()
        if step.output is not None and (
            rest == step.output or (rest[:1] in "{[" and canonical(rest) == canonical(step.output))
        ):
            behind = [len(text) for text in said if text and content.startswith(text) and len(text) > label.start()]
            yield max([label.start(), *behind])
