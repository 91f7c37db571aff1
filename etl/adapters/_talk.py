"""A transcript put together from pieces, for logs that tell text, reasoning, calls and results as lines of their
own."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import Blocks
from etl.adapters._claude_text import split
from etl.adapters._session import noted, summed
from etl.conversation import Conversation, Message, Tokens, ToolCall


class Talk:
    """Messages in order; pieces of the model's go into one until something else is said."""

    def __init__(self, model: str | None = None) -> None:
        self.messages: list[Message] = []
        self.flags: set[str] = set()
        self.tokens: list[Tokens] = []
        self.calls: dict[str, ToolCall] = {}
        self.model = model
        self.ended: tuple[str, str | None] | None = None
        """(status, error) where the log says how it ended, until somebody speaks again."""
        self._open: Message | None = None
        self._early: list[Any] = []

    def say(self, message: Message) -> Message:
        """Append a message; further pieces belong to another one."""
        self._open = None
        self.messages.append(message)
        if not message.synthetic:
            self.ended = None
        return message

    def ask(self, text: str, at: Any = None, **more: Any) -> None:
        """What stands in a user's place, the program's pieces of it as messages of their own."""
        pieces = split(text) if text else []
        for number, piece in enumerate(pieces or split(" ")):
            message = Message("user", piece.text if pieces else "", at=at, synthetic=piece.synthetic and bool(pieces))
            if number == 0:
                message.id, message.parts, message.extra = more.get("id"), more.get("parts"), more.get("extra") or None
            self.say(message)

    def piece(self, at: Any = None) -> Message:
        """The model's message that a piece belongs to."""
        if self._open is None:
            self._open = Message("assistant", at=at, model=self.model)
            self.messages.append(self._open)
            self.ended = None
        return self._open

    def close(self) -> None:
        """Further pieces belong to another message."""
        self._open = None

    def speak(self, text: str, at: Any = None) -> Message:
        """Text of the model: a message of its own where the open one has text or calls already."""
        if self._open is not None and (self._open.content or self._open.calls):
            self._open = None
        message = self.piece(at)
        message.content = text
        return message

    def think(self, text: str, at: Any = None) -> Message:
        """Reasoning of the model: before its text and its calls."""
        if self._open is not None and (self._open.content or self._open.calls):
            self._open = None
        message = self.piece(at)
        if text:
            message.reasoning = text if message.reasoning is None else f"{message.reasoning}\n{text}"
        return message

    def call(self, call: ToolCall, at: Any = None) -> Message:
        """A call of the model."""
        message = self.piece(at)
        call.at = call.at if call.at is not None else at
        message.calls = [*(message.calls or []), call]
        if call.id is not None:
            self.calls[call.id] = call
        return message

    def answer(self, blocks: Blocks, at: Any = None, **more: Any) -> Message:
        """A whole message of the model."""
        message = self.say(Message("assistant", blocks.text, blocks.reasoning, blocks.calls, at=at, model=self.model))
        message.parts = blocks.parts
        message.id, message.extra = more.get("id"), more.get("extra") or None
        self.calls.update((call.id, call) for call in blocks.calls or () if call.id)
        return message

    def note(self, note: dict[str, Any]) -> None:
        """What is said beside the messages: kept with the one before it."""
        if self.messages:
            noted(self.messages[-1], "notes", note)
        else:
            self._early.append(note)

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        for note in self._early if self.messages else ():
            noted(self.messages[0], "notes", note)
        made.messages, made.usage = self.messages, made.usage or summed(self.tokens)
        made.flags = {*(made.flags or ()), *self.flags}
        made.model = next((m.model for m in reversed(self.messages) if m.role == "assistant" and m.model), self.model)
        if self.ended is not None:
            made.status, made.error = self.ended
        return made
