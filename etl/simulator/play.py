"""One attempt as it is played: the transcript, and the world that its calls run in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from etl.conversation import Message, ToolCall
from etl.simulator.situation import Situation
from etl.simulator.world import Result


class Play:
    """The messages of an attempt, in order, while it goes on."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.world = situation.world()
        self.messages: list[Message] = []
        self.user_turns = 0
        self._calls = 0
        if situation.domain.system_prompt:
            self.messages.append(Message("system", situation.domain.system_prompt))
        if situation.internal is not None:
            self.messages.append(Message("developer", situation.internal, synthetic=True))

    def user(self, text: str) -> None:
        """The person writes."""
        self.user_turns += 1
        self.messages.append(Message("user", text))

    def say(self, text: str, **told: Any) -> None:
        """The agent writes; `told` are other fields of the message (model, tokens)."""
        self.messages.append(Message("assistant", text, **told))

    def call(self, calls: Sequence[tuple[str, Any]], text: str = "", **told: Any) -> list[Result]:
        """The agent calls, several tools at once where there are several; what came back, in order."""
        made = []
        for name, arguments in calls:
            self._calls += 1
            made.append(ToolCall(name, arguments, id=f"call_{self._calls}"))
        return self.answer(Message("assistant", text, calls=made, **told))

    def answer(self, message: Message) -> list[Result]:
        """Add a message of the agent that calls tools, and answer each call."""
        self.messages.append(message)
        results = []
        for call in message.calls or ():
            result = self.world.call(call.name, _object(call.arguments))
            said = result.said
            self.messages.append(
                Message(
                    "tool",
                    said.content,
                    call_id=call.id,
                    name=call.name,
                    failed=said.failed,
                    condition=said.condition,
                    error=said.error,
                )
            )
            results.append(result)
        return results


def _object(arguments: Any) -> Any:
    """Arguments as a value, where a model gave them as text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
