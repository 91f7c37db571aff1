"""Agents that are not ours: any callable, played against the same world by a simulated person."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from etl.conversation import Message, Tokens, ToolCall
from etl.simulator.attempts import Played
from etl.simulator.limits import TURNS
from etl.simulator.play import Play
from etl.simulator.situation import Situation
from etl.simulator.user import TemplateUser

MOST_CALLS = 12
"""Messages with calls that an agent may send before it has to answer."""


class AgentFailed(Exception):
    """The agent gave no usable answer; the message says why."""


class Person(Protocol):
    """Somebody who answers the agent."""

    usage: Tokens | None

    def answer(self, play: Play) -> str | None:
        """What the person writes next; None where the conversation is over."""
        ...


class Reply(Protocol):
    """Gives the agent's next message, or raises AgentFailed."""

    def __call__(self, play: Play) -> Message:
        """The next message."""
        ...


class CallableAgent:
    """A callable as an agent: `(messages, tools) -> reply`, or `(messages) -> reply`.

    Messages and tools are in OpenAI form. A reply is text, or an assistant message with `content` and `tool_calls`.
    """

    def __init__(self, function: Callable[..., Any], *, concurrency: int = 1) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.concurrency = concurrency
        self._function = function
        self._takes_tools = len(inspect.signature(function).parameters) > 1

    def play(self, situation: Situation, seed: int) -> Played:
        """One attempt."""
        return converse(situation, self._reply, TemplateUser(situation, seed))

    def _reply(self, play: Play) -> Message:
        messages = [as_chat(message) for message in play.messages]
        try:
            if self._takes_tools:
                given = self._function(messages, play.situation.domain.definitions)
            else:
                given = self._function(messages)
        except Exception as error:
            raise AgentFailed(f"{type(error).__name__}: {error}") from error
        return from_chat(given)


def converse(situation: Situation, reply: Reply, person: Person) -> Played:
    """One conversation; what the agent cannot do ends it, with the reason in `error`."""
    play = Play(situation)
    play.user(situation.ask)
    error = None
    try:
        while True:
            _until_it_answers(play, reply)
            if play.user_turns >= TURNS[situation.cell["length"]][1] + 2:
                break
            text = person.answer(play)
            if text is None:
                break
            play.user(text)
    except AgentFailed as failed:
        error = str(failed)
    return Played(play, error=error, user_usage=person.usage)


def _until_it_answers(play: Play, reply: Reply) -> None:
    """The agent's messages up to one without calls."""
    for _ in range(MOST_CALLS):
        message = reply(play)
        if not message.calls:
            play.messages.append(message)
            return
        play.answer(message)
    raise AgentFailed(f"the agent called tools in {MOST_CALLS} messages without an answer")


def as_chat(message: Message) -> dict[str, Any]:
    """A message in OpenAI form."""
    chat: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": message.content,
    }
    if message.calls:
        chat["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _text(call.arguments)}}
            for call in message.calls
        ]
    if message.role == "tool":
        chat["tool_call_id"] = message.call_id
    return chat


def from_chat(given: Any) -> Message:
    """The message that an agent's reply is; AgentFailed where it is none."""
    if isinstance(given, str):
        return Message("assistant", given)
    if hasattr(given, "model_dump"):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        raise AgentFailed(f"a reply is text or a message, not {type(given).__name__}")
    calls = []
    for number, call in enumerate(given.get("tool_calls") or ()):
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str):
            raise AgentFailed(f"call {number + 1} of the reply names no function")
        calls.append(ToolCall(name, function.get("arguments"), id=call.get("id") or None))
    content = given.get("content")
    return Message("assistant", content if isinstance(content, str) else "", calls=calls or None)


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
