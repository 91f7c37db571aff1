"""What a dialect makes of one model span: the history it was given, the answer, the tools that were offered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from etl.adapters._otlp_messages import is_item, joined, messages
from etl.adapters._otlp_span import Span, opened
from etl.conversation import Message, Tokens
from etl.decode import JsonError, decode

_NUMBER = re.compile(r"\d{1,6}\Z")
_ESCAPE = "\\u"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]', re.DOTALL)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
MAX_RECENT = 4
"""How many histories are compared with the next: as many as agents commonly speak by turns."""
MAX_SALVAGE = 64
"""How many places a cut-off JSON text is tried to be closed at."""


class Turn(msgspec.Struct):
    """One model response with the history before it."""

    inputs: list[Message] = []
    answers: list[list[Message]] = []
    """One list of messages for each choice."""
    tools: Any = None
    dialect: str = ""
    cut: bool = False
    """True where an attribute was cut off and only its beginning could be read."""
    lent: bool = False
    """True where these are the words of the agent around the model and not its own."""
    response_id: str | None = None
    """Where it stands in the response itself and in no attribute of its own; so for `finish` and `usage`."""
    finish: str | None = None
    usage: Tokens | None = None
    shaped: bool = True
    """False where request and response are those of any function: no conversation by themselves."""
    rest: dict[str, Any] = {}
    """What of a request or response is in no message."""
    batch: list[Turn] = []
    """The turns of a request that asked several prompts at once; this one is the first of them."""
    used: set[str] = set()
    """Attributes that were read."""

    def said(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.inputs or self.answers)


class Memory:
    """Messages that were read already: every history repeats the one before it, most of them to the byte."""

    def __init__(self) -> None:
        self._elements: dict[bytes, tuple[list[Message], bool]] = {}
        self._recent: list[tuple[str, list[Message], bool]] = []
        """Text without its last bracket, messages, and whether escapes are in it, of the histories read last."""

    def messages(self, text: str) -> tuple[list[Message], bool] | None:
        """The messages in the JSON text of a list, and whether characters are escaped in it; None where it is none."""
        text = text.rstrip()
        try:
            found, escaped = self._continued(text) or (self._read(text, []), _ESCAPE in text)
        except ValueError:
            return None
        self._recent.insert(0, (text[:-1], found, escaped))
        del self._recent[MAX_RECENT:]
        return found, escaped

    def _continued(self, text: str) -> tuple[list[Message], bool] | None:
        """The same, where the text goes on from one that was read."""
        for before, told, escaped in self._recent:
            if text.startswith(before):
                rest = text[len(before) :].lstrip()
                if rest == "]":
                    return told, escaped
                if rest[:1] == ",":
                    return self._read("[" + rest[1:], told), escaped or _ESCAPE in rest
        return None

    def _read(self, text: str, told: list[Message]) -> list[Message]:
        """These messages and those of a list, each element read once; ValueError where the text is no list."""
        found = list(told)
        for item in _LIST.decode(text):
            made, piece = self._element(bytes(item))
            if piece and found and made and found[-1].role == made[0].role == "assistant":
                found[-1] = joined(found[-1], made[0])
                made = made[1:]
            found += made
        return found

    def _element(self, raw: bytes) -> tuple[list[Message], bool]:
        """The messages of one element, and whether it is a piece of an answer."""
        told = self._elements.get(raw)
        if told is None:
            value = decode(raw).value
            told = self._elements[raw] = (messages([value]), is_item(value))
        return told


class Reader:
    """Reads the attributes of a span and notes which."""

    def __init__(self, span: Span, memory: Memory | None = None) -> None:
        self.span = span
        self._memory = memory
        self.used: set[str] = set()
        self.cut = False

    def take(self, *names: str) -> Any:
        """The first of these attributes that is there; JSON text is opened, cut-off text salvaged."""
        for name in names:
            value = self.span.attributes.get(name)
            if value is not None and value != "":
                self.used.add(name)
                if isinstance(value, str) and _ESCAPE in value:
                    self._note(value)
                return self._opened(value)
        return None

    def _note(self, value: str) -> None:
        """What is unusual about JSON text inside an attribute is said of the span's record."""
        if not self.span.records or not _ESCAPED_SURROGATE.search(value):
            return
        try:
            _, notes, mended = decode(value.encode("utf-8", "surrogatepass"))
        except JsonError:
            return
        record = self.span.records[0]
        record.notes = tuple(sorted({*record.notes, *notes}))
        record.mended = tuple(dict.fromkeys((*record.mended, *mended)))

    def _opened(self, value: Any) -> Any:
        inner = opened(value)
        if isinstance(inner, str) and inner.lstrip()[:2] in ('{"', "[{", '["', "[]", "{}"):
            saved = salvaged(inner)
            if saved is not None:
                self.cut = True
                return saved
        return inner

    def history(self, name: str) -> list[Message]:
        """The messages that an attribute holds. They are shared with other spans: copy one before changing it."""
        text = self.span.attributes.get(name)
        if self._memory is not None and isinstance(text, str) and text[:1] == "[":
            found = self._memory.messages(text)
            if found is not None:
                self.used.add(name)
                told, escaped = found
                if escaped:
                    self._note(text)
                return told
        return self.messages(name)

    def messages(self, name: str, role: str = "user") -> list[Message]:
        """The messages that an attribute holds, for this span alone."""
        value = self.take(name)
        return [] if value is None else messages(value, role)

    def listed(self, prefix: str) -> list[Any]:
        """What lies under `prefix` as a list, else under `prefix.N.…`, as nested values."""
        value = self.take(prefix)
        return [nested(item) for item in value] if isinstance(value, list) else self.numbered(prefix)

    def numbered(self, prefix: str) -> list[Any]:
        """What lies under `prefix.N.…`, by number, as nested values."""
        gathered: dict[str, Any] = {}
        for name, item in self.span.attributes.items():
            if name.startswith(prefix + "."):
                rest = name[len(prefix) + 1 :]
                if _NUMBER.match(rest.partition(".")[0]):
                    gathered[rest] = item
                    self.used.add(name)
        tree = nested(gathered)
        return tree if isinstance(tree, list) else []

    def turn(self, inputs: list[Message], answers: list[list[Message]], tools: Any = None) -> Turn | None:
        """The turn, where there is anything in it."""
        answers = [one_answer(answer) for answer in answers if answer]
        if not inputs and not answers:
            return None
        return Turn(inputs, answers, tools or None, cut=self.cut, used=self.used)


def nested(value: Any) -> Any:
    """Names with dots as nested objects, numbers in them as lists (10 after 9).

    >>> nested({"1.a": "y", "0.a": "x", "0.b.c": 1}), nested([{"m.role": "user"}])
    ([{'a': 'x', 'b': {'c': 1}}, {'a': 'y'}], [{'m': {'role': 'user'}}])
    """
    if isinstance(value, list):
        return [nested(item) for item in value]
    if not isinstance(value, dict):
        return value
    tree: dict[str, Any] = {}
    for name, item in value.items():
        *above, last = str(name).split(".")
        node = tree
        for key in above:
            below = node.get(key)
            if not isinstance(below, dict):
                below = node[key] = {} if below is None else {"": below}
            node = below
        item = nested(item)
        if isinstance(node.get(last), dict) and isinstance(item, dict):
            node[last].update(item)
        else:
            node[last] = item
    return _listed(tree)


def _listed(tree: Any) -> Any:
    """Objects whose keys are all numbers as lists."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(_NUMBER.match(key) for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(item) for key, item in tree.items()}


def one_answer(answer: list[Message]) -> list[Message]:
    """The pieces of one answer as one assistant message, as far as nothing stands between them."""
    made: list[Message] = []
    for message in answer:
        if made and made[-1].role == message.role == "assistant" and not (made[-1].content and message.content):
            made[-1] = joined(made[-1], message)
        else:
            made.append(message)
    return made


def choices(found: list[Message], several: bool = False) -> list[list[Message]]:
    """Answers of one response: one each where all of them end (or `several` says so), else one in several messages."""
    spoken = [message for message in found if message.role == "assistant"]
    if len(spoken) > 1 and len(spoken) == len(found) and (several or all(message.finish_reason for message in spoken)):
        return [[message] for message in spoken]
    return [found] if found else []


def salvaged(text: str) -> Any:
    """The value of JSON text that was cut off: as much of it as is whole, a text that was cut as far as it goes.

    >>> salvaged('[{"role": "user", "content": "Hel'), salvaged('[{"a": 1}, {"b": [2, 3'), salvaged("[broken]")
    ([{'role': 'user', 'content': 'Hel'}], [{'a': 1}, {'b': [2, 3]}], None)
    """
    stack, ends = [], []
    inside = False
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark[0] == '"':
            inside = len(mark) == 1 or not mark.endswith('"') or (token.end() == len(text) and not _closed(mark))
        elif mark in "{[":
            stack.append("}" if mark == "{" else "]")
        elif mark in "}]":
            if not stack or stack.pop() != mark:
                return None
        elif mark == ",":
            ends.append((token.start(), "".join(reversed(stack))))
    if not stack:
        return None
    closing = "".join(reversed(stack))
    for tail in _tails(text, closing, inside, ends):
        value = opened(tail)
        if not isinstance(value, str):
            return value
    return None


def _closed(mark: str) -> bool:
    """Whether a string token ends with its own quote."""
    return re.fullmatch(r'"(?:[^"\\]|\\.)*"', mark, re.DOTALL) is not None


def _tails(text: str, closing: str, inside: bool, ends: list[tuple[int, str]]) -> Iterator[str]:
    if inside:
        for shorter in range(7):
            yield text[: len(text) - shorter] + '"' + closing
    yield text + closing
    for end, close in reversed(ends[-MAX_SALVAGE:]):
        yield text[:end] + close


__all__ = ["Reader", "Turn", "choices", "nested", "one_answer", "salvaged"]
