"""The GenAI semantic conventions of OpenTelemetry: the current ones, messages as events, and the earlier attributes.

Current: `gen_ai.input.messages`, `gen_ai.output.messages` (JSON text or structured, on the span or on a
`gen_ai.client.inference.operation.details` event), `gen_ai.system_instructions`, `gen_ai.tool.definitions`. Before
that, one event a message (`gen_ai.user.message`, …, `gen_ai.choice`), as span events or as log records. Before that,
the whole request and response as `gen_ai.prompt` and `gen_ai.completion`.
"""

from __future__ import annotations

from typing import Any

from etl.adapters._otlp_exchange import request, response
from etl.adapters._otlp_messages import UNCAPTURED, messages
from etl.adapters._otlp_span import Log, opened
from etl.adapters._otlp_turn import Reader, Turn, choices
from etl.conversation import Message

ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.developer.message": "developer",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE = "gen_ai.choice"
_RANKS = {"system": 0, "developer": 0, "user": 1, "assistant": 2, "tool": 3}
_TURN = {name: _RANKS[role] for name, role in ROLES.items()}
"""The order of events that a coarse clock gave one time."""


def current(reader: Reader) -> Turn | None:
    """`gen_ai.input.messages` and `gen_ai.output.messages`."""
    history = reader.history("gen_ai.input.messages")
    answered = reader.messages("gen_ai.output.messages", "assistant")
    if not history and not answered:
        return None
    return reader.turn(_instructed(reader, history), choices(answered), reader.take("gen_ai.tool.definitions"))


def _instructed(reader: Reader, history: list[Message]) -> list[Message]:
    """The instructions and the history, which may begin with the same words (AI SDK)."""
    given = instructions(reader)
    said: list[Message] = []
    for message in history:
        if message.role not in ("system", "developer"):
            break
        said.append(message)
    return history if given and _words(given) == _words(said) else given + history


def _words(spoken: list[Message]) -> list[str]:
    return " ".join(message.content for message in spoken).split()


def instructions(reader: Reader) -> list[Message]:
    """`gen_ai.system_instructions`: parts of one system message, messages, or text, possibly encoded twice."""
    value = reader.take("gen_ai.system_instructions")
    if value is None:
        return []
    if isinstance(value, list) and value and not any(isinstance(item, dict) and "role" in item for item in value):
        parts = [{"type": "text", "content": item} if isinstance(item, str) else item for item in value]
        return messages({"role": "system", "parts": parts}, "system")
    return messages(value, "system")


def events(reader: Reader) -> Turn | None:
    """One event a message; the role of a message is the event's name, where its body has none."""
    spoken = [log for log in reader.span.events if log.name in ROLES or log.name == CHOICE]
    if not spoken:
        return None
    spoken.sort(key=lambda log: (log.at, _TURN.get(log.name, 4)))
    history: list[Message] = []
    answers: dict[int, list[Message]] = {}
    for log in spoken:
        if log.name == CHOICE:
            index = log.body.get("index")
            answers.setdefault(index if type(index) is int else 0, []).extend(_choice(log))
        else:
            history += _message(log)
    return reader.turn(
        _instructed(reader, history),
        [answers[index] for index in sorted(answers)],
        reader.take("gen_ai.tool.definitions"),
    )


def _message(log: Log) -> list[Message]:
    role = ROLES[log.name]
    fields = _opened_fields({"role": role, **log.body})
    if role == "tool" and "tool_call_id" not in fields and "id" in fields:
        fields["tool_call_id"] = fields.pop("id")
    for name in ("gen_ai.system", "gen_ai.provider.name"):
        fields.pop(name, None)
    return messages(fields, role)


def _choice(log: Log) -> list[Message]:
    fields = _opened_fields(log.body)
    reason = fields.get("finish_reason")
    said = fields.get("message")
    if isinstance(said, list):
        said = {"content": said}
    if not isinstance(said, dict):
        said = {key: fields[key] for key in ("content", "role", "tool_calls") if key in fields}
        if isinstance(fields.get("message"), str):
            said["content"] = fields["message"]
    found = messages({"role": "assistant", **said}, "assistant")
    if not said:
        found = [Message("assistant", extra={UNCAPTURED: True})]
    if found and isinstance(reason, str):
        found[-1].finish_reason = reason
    return found


def _opened_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Span events hold no structure: what is an object or a list stands there as JSON text."""
    return {key: opened(item) if key in ("message", "tool_calls", "tools") else item for key, item in fields.items()}


def prompt(reader: Reader) -> Turn | None:
    """`gen_ai.prompt` and `gen_ai.completion`: the request and the response, as JSON or plain text."""
    asked, answered = reader.take("gen_ai.prompt"), reader.take("gen_ai.completion")
    if asked is None and answered is None:
        return None
    made, answers = request(asked), response(answered)
    if len(answers) == 1 and isinstance(answered, list) and len(answered) == len(answers[0]) > 1:
        answers = choices(answers[0], several=True)
    return reader.turn(made.history, answers, made.tools or reader.take("gen_ai.tool.definitions"))
