"""Parts of Google's GenAI content as session files of Gemini CLI and Qwen Code keep them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from etl.adapters._blocks import identifier, plain
from etl.adapters._session import dict_of, text_of, whole, without
from etl.conversation import Message, Tokens, ToolCall

_CODE = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)


class Parts(msgspec.Struct, gc=False):
    """A content, taken apart."""

    text: str = ""
    reasoning: str | None = None
    calls: list[ToolCall] | None = None
    answers: list[Message] | None = None
    """A tool message for each function response."""
    other: list[Any] | None = None
    """Parts that are none of these, as the log has them; signatures of thoughts too."""


def read_parts(content: Any) -> Parts:
    """Read a content: text, a part, or a list of parts.

    >>> read_parts([{"text": "Hm.", "thought": True}, {"text": "Yes."}]).reasoning
    'Hm.'
    """
    found = Parts()
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            _part(part, texts, thoughts, found)
        elif part is not None:
            found.other = [*(found.other or []), part]
    found.text = "".join(texts)
    found.reasoning = "\n".join(thoughts) or None
    return found


def _part(part: dict[str, Any], texts: list[str], thoughts: list[str], found: Parts) -> None:
    rest = dict(part)
    if isinstance(part.get("text"), str):
        (thoughts if part.get("thought") is True else texts).append(part["text"])
        del rest["text"]
    called, answered = dict_of(part, "functionCall"), dict_of(part, "functionResponse")
    name = text_of(called, "name")
    if name is not None:
        found.calls = [*(found.calls or []), ToolCall(name, called.get("args"), identifier(called.get("id")))]
        rest["functionCall"] = without(called, "name", "args", "id")
    if answered:
        found.answers = [*(found.answers or []), answer_of(answered)]
        del rest["functionResponse"]
    rest = without(rest, *(("thought",) if isinstance(part.get("thought"), bool) else ()))
    if rest:
        found.other = [*(found.other or []), rest]


def answer_of(response: dict[str, Any]) -> Message:
    """The tool message of a function response: its output or its error as text, all of it where it has neither."""
    told = response.get("response")
    failed: bool | None = None
    if isinstance(told, dict):
        key = next((key for key in ("output", "error", "content", "result") if told.get(key) is not None), None)
        failed = key == "error" or None
        text = plain(told) if key is None else plain(told[key])
        rest = {} if key is None else without(told, key)
    else:
        text, rest = plain(told), {}
    more = without(response, "id", "name", "response", "parts")
    message = Message("tool", text, call_id=identifier(response.get("id")), name=text_of(response, "name"))
    message.failed = failed
    parts = response.get("parts")
    message.parts = parts if isinstance(parts, list) and parts else None
    extra = {**more, **({"response": rest} if rest else {})}
    message.extra = extra or None
    return message


def exit_of(text: str) -> int:
    """How a shell command exited, which its output says: the program counts it as a success whatever that was.

    >>> exit_of("Stdout: (empty)\\nExit Code: 2\\nSignal: (none)"), exit_of("no such line")
    (2, 0)
    >>> exit_of("Output: a log\\nExit Code: 1\\nExit Code: 0")
    0
    """
    codes = _CODE.findall(text)  # what the command printed comes before
    return int(codes[-1]) if codes else 0


def usage_of(metadata: Any) -> Tokens | None:
    """`usageMetadata`: prompts include what was cached; candidates do not include thoughts, unless the total says so
    (where the counts are those of an API that has them inside).

    >>> usage_of({"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2}).output_tokens
    6
    >>> usage_of({"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 13})
    ... # doctest: +ELLIPSIS
    Tokens(input_tokens=9, output_tokens=4, ..., reasoning_tokens=2, cost_usd=None)
    """
    read, used = _count(metadata, "promptTokenCount"), _count(metadata, "toolUsePromptTokenCount")
    written, thought = _count(metadata, "candidatesTokenCount"), _count(metadata, "thoughtsTokenCount")
    within = bool(thought) and _count(metadata, "totalTokenCount") == added(added(read, used), written)
    found = Tokens(
        added(read, used), written if within else added(written, thought), _count(metadata, "cachedContentTokenCount")
    )
    found.reasoning_tokens = thought
    return found if found != Tokens() else None


def _count(metadata: Any, name: str) -> int | None:
    return whole(metadata.get(name)) if isinstance(metadata, dict) else None


def added(one: int | None, other: int | None) -> int | None:
    """The sum of what is known."""
    return None if one is None and other is None else (one or 0) + (other or 0)


def thought_of(item: Any) -> str:
    """A thought of the model: its subject and what it says."""
    if isinstance(item, dict):
        return "\n".join(text for key in ("subject", "description") if (text := text_of(item, key)))
    return plain(item)


def tokens_of(value: Any) -> Tokens | None:
    """`{input, output, cached, thoughts, tool, total}`: thoughts are beside the output, what tools used beside the
    input."""
    if not isinstance(value, dict):
        return None
    thought = whole(value.get("thoughts"))
    read, written = whole(value.get("input")), whole(value.get("output"))
    found = Tokens(added(read, whole(value.get("tool"))), added(written, thought), whole(value.get("cached")))
    found.reasoning_tokens = thought
    return found if found != Tokens() else None
