"""One stored answer that was made of several responses of the model: text, calls, what came back, more text."""

from __future__ import annotations

from typing import Any

from etl.conversation import Message, ToolCall


class Turn:
    """The messages of an answer, being told apart: what is said after a call, or called after a result, is the next."""

    def __init__(self) -> None:
        self._made: list[Message] = []
        self._results: list[Message] = []
        self._now: Message | None = None

    def _response(self, said: bool = False) -> Message:
        if self._results or (said and self._now is not None and self._now.calls):
            self._end()
        if self._now is None:
            self._now = Message("assistant")
        return self._now

    def _end(self) -> None:
        if self._now is not None:
            self._made.append(self._now)
        self._made += self._results
        self._now, self._results = None, []

    def text(self, said: str) -> None:
        """What was said; pieces of one response are paragraphs."""
        now = self._response(said=True)
        now.content = f"{now.content}\n\n{said}" if now.content else said

    def reasoning(self, thought: str) -> None:
        """What was thought before."""
        now = self._response(said=True)
        if now.content:
            self._end()
            now = self._response()
        now.reasoning = f"{now.reasoning}\n{thought}" if now.reasoning else thought

    def part(self, part: Any) -> None:
        """What is no text."""
        now = self._response()
        now.parts = [*(now.parts or ()), part]

    def call(self, call: ToolCall, result: Message | None = None) -> None:
        """A call, and what came back where that is known by now."""
        now = self._response()
        now.calls = [*(now.calls or ()), call]
        if result is not None:
            self._results.append(result)

    def result(self, result: Message) -> None:
        """What came back from a call of the response."""
        self._results.append(result)

    def note(self, key: str, value: Any) -> None:
        """What no field of the response holds."""
        now = self._now
        if now is not None:
            now.extra = {**(now.extra or {}), key: value}

    def done(self) -> list[Message]:
        """The messages; an empty one where nothing was said."""
        self._end()
        return self._made or [Message("assistant")]
