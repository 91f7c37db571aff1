"""Token ids of a conversation, and which of them are trained: the chat template renders it, turn by turn.

Needs the extra `tokens` (transformers; no torch). A turn is trained where the rendering up to and with it begins with
the rendering before it, and the whole begins with both: templates that change earlier turns later on (that strip
reasoning, say) cannot be masked so, and the row is left out by `not_renderable`. A row whose text holds a special
token, which would end a turn where a person wrote it, is left out by `control_tokens`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from etl.errors import MissingExtraError, UsageError
from etl.exports.dialogue import Dialogue
from etl.exports.forms import chat
from etl.exports.reasons import Dropped

IGNORED = -100
"""The label of a token that is not trained."""


class Tokens(NamedTuple):
    """The ids of a conversation; `mask` is 1 where a token is trained."""

    ids: list[int]
    mask: list[int]


class Tokenizer:
    """A tokenizer with its chat template."""

    def __init__(self, name: str, chat_template: str | None = None) -> None:
        """A folder, or a name of the hub; `chat_template` is a file with another template."""
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise MissingExtraError('a tokenizer needs transformers: pip install "rollout-etl[tokens]"') from None
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise UsageError(f"--tokenizer {name}: {' '.join(str(error).split())[:200]}") from error
        if chat_template is not None:
            try:
                self._tokenizer.chat_template = Path(chat_template).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"--chat-template {chat_template}: cannot be read ({error})") from error
        if self._tokenizer.chat_template is None:
            raise UsageError(f"--tokenizer {name} has no chat template; give one with --chat-template FILE")
        if not self._tokenizer.is_fast:
            raise UsageError(f"--tokenizer {name} gives no character offsets; use its fast version")
        self._special = [token for token in self._tokenizer.all_special_tokens if token]

    def length(self, said: Dialogue) -> int:
        """Tokens of the whole conversation."""
        text = self._render(chat(said.turns, objects=True), said.tool_list())
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def tokens(self, said: Dialogue) -> Tokens:
        """The ids of the whole conversation with a mask of the turns that this row owns; Dropped where the template
        cannot be masked.
        """
        messages, tools = chat(said.turns, objects=True), said.tool_list()
        if any(token in turn.content for turn in said.turns for token in self._special):
            raise Dropped("control_tokens")
        whole = self._render(messages, tools)
        spans: list[tuple[int, int]] = []
        for place, turn in enumerate(said.turns):
            if turn.trained:
                before = self._render(messages[:place], tools, add_generation_prompt=True)
                after = self._render(messages[: place + 1], tools)
                if not after.startswith(before) or not whole.startswith(after):
                    raise Dropped("not_renderable")
                spans.append((len(before), len(after)))
        encoded = self._tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        return Tokens(list(encoded["input_ids"]), _mask(encoded["offset_mapping"], spans))

    def _render(self, messages: list[dict[str, Any]], tools: list[Any] | None, **how: Any) -> str:
        try:
            return str(self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **how))
        except Exception as error:
            raise Dropped("not_renderable") from error


def _mask(offsets: list[tuple[int, int]], spans: list[tuple[int, int]]) -> list[int]:
    """1 for every token that begins in a span; both are in order."""
    mask: list[int] = []
    at = 0
    for start, _ in offsets:
        while at < len(spans) and start >= spans[at][1]:
            at += 1
        mask.append(int(at < len(spans) and start >= spans[at][0]))
    return mask
