"""What the users' lines of a path through a Claude Code thread say, to tell what other lines only repeat.

The prompt queue, the last prompt and the progress lines of a sub-agent say again what a user's line says.
"""

from __future__ import annotations

from collections.abc import Iterable

from etl.adapters._blocks import identifier, plain
from etl.adapters._claude_lines import QUEUE, Line
from etl.adapters._claude_text import content_of, split, squeezed, text_of


class Said:
    """What the users' lines of a path say, to tell what other lines only repeat."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._texts: set[str] = set()
        self._in_lines: set[str] = set()
        """Texts of lines of their own."""
        self._shown: set[str] = set()
        """Texts inside progress lines."""
        self._answered: set[str] = set()
        self._taken_in: set[str] = set()
        for line in lines:
            if line.kind == QUEUE:
                if line.value.get("operation") == "remove":
                    self._taken_in.add(squeezed(text_of(line.value, "content") or ""))
            elif line.kind == "attachment":
                attached = line.value.get("attachment")
                if isinstance(attached, dict) and attached.get("type") == "queued_command":
                    self.add(plain(attached.get("prompt")))
            elif line.kind == "user":
                self._hear(line)

    def _hear(self, line: Line) -> None:
        text, answered = _words(line)
        words = squeezed(text)
        if words:
            self._texts.add(words)
            self._texts.update(squeezed(piece.text) for piece in split(text))
        if not line.nested:
            self._in_lines.add(words)
            self._answered.update(answered)
        elif line.uuid is not None:
            self._shown.add(words)

    def add(self, text: str) -> None:
        """From now on this has been said."""
        self._texts.add(squeezed(text))

    def repeats(self, text: str) -> bool:
        """Whether a user's line says the same."""
        return squeezed(text) in self._texts

    def begins(self, text: str) -> bool:
        """Whether a user's line begins like that."""
        words = squeezed(text)
        return words in self._texts or any(said.startswith(words) for said in self._texts)

    def taken_in(self, text: str) -> bool:
        """Whether the text left the queue into the running turn."""
        return squeezed(text) in self._taken_in

    def elsewhere(self, line: Line) -> bool:
        """Whether a line out of a progress line is there as a line of its own; or, without an id, already was."""
        text, answered = _words(line)
        if answered:
            return all(name in self._answered for name in answered)
        words = squeezed(text)
        if line.uuid is not None:
            return words in self._in_lines
        known = words in self._in_lines or words in self._shown
        self._shown.add(words)
        return known


def _words(line: Line) -> tuple[str, list[str]]:
    """The text of a user line, and the calls whose results it brings."""
    content = content_of(line.value)
    if isinstance(content, str):
        return content, []
    texts, results = [], []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            if isinstance(block.get("text"), str):
                texts.append(block["text"])
            if block.get("type") == "tool_result":
                results.append(identifier(block.get("tool_use_id")) or "")
        elif isinstance(block, str):
            texts.append(block)
    return "\n".join(texts), results
