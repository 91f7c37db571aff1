"""Content blocks are taken apart without losing a word, whatever they look like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._blocks import read, result

_KINDS = [
    "text", "input_text", "thinking", "redacted_thinking", "reasoning", "tool_use", "server_tool_use",
    "tool_call", "function", "tool_result", "web_search_tool_result", "image", "image_url", "refusal", "document",
    "",
]  # fmt: skip
_KEYS = [
    "text", "thinking", "summary", "content", "id", "call_id", "tool_use_id", "name", "input", "arguments",
    "function", "output", "is_error", "signature", "citations", "refusal", "caller", "data",
]  # fmt: skip
_leaf = st.text("abcdefgh", min_size=9, max_size=12)
_value = st.recursive(
    st.none() | st.booleans() | st.integers() | _leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=6,
)
_block = st.builds(
    lambda kind, rest: {"type": kind, **rest}, st.sampled_from(_KINDS), st.dictionaries(st.sampled_from(_KEYS), _value)
)


def _words(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set().union(*(_words(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_words(item) for item in value))
    return set()


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@given(st.lists(_block | _leaf | _value, max_size=4) | _block)
def test_no_word_is_lost(content: Any) -> None:
    found = read(content)
    held: list[Any] = [found.parts, found.rest]
    for call in found.calls or ():
        held += [call.name, call.arguments, call.id]
    for made in found.results or ():
        held += [made.call_id, made.text, made.name, made.parts, made.rest]
    spoken = "\n".join([found.text, found.reasoning or "", *(made.text for made in found.results or ())])
    kinds = {*_KINDS}
    lost = {word for word in _words(content) - kinds - _words(held) if word not in spoken}
    assert lost == set()


@pytest.mark.parametrize(
    ("content", "text", "reasoning", "calls"),
    [
        (None, "", None, []),
        ("plain", "plain", None, []),
        ([_text("a"), "b"], "a\nb", None, []),
        ([_text("It is "), {**_text("four"), "citations": [{"url": "u"}]}], "It is four", None, []),
        ([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking"}], "", "hm", []),
        ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}], "", "so", []),
        ([{"type": "tool_use", "id": 7, "name": "ls", "input": {"p": 1}}], "", None, [("7", "ls", {"p": 1}, "agent")]),
        ([{"type": "server_tool_use", "id": "s", "name": "seek"}], "", None, [("s", "seek", None, "server")]),
        ([{"type": "tool-call", "toolCallId": "c", "toolName": "ls"}], "", None, [("c", "ls", None, "agent")]),
        ([{"type": "tool_use", "id": "t"}], "", None, []),
        ([{"type": "refusal", "refusal": "No."}], "No.", None, []),
        (7, "7", None, []),
    ],
)  # fmt: skip
def test_every_spelling(content: Any, text: str, reasoning: str | None, calls: list[tuple[Any, ...]]) -> None:
    found = read(content)
    assert (found.text, found.reasoning) == (text, reasoning)
    assert [(call.id, call.name, call.arguments, call.actor) for call in found.calls or ()] == calls


@pytest.mark.parametrize(
    ("block", "text", "failed", "parts"),
    [
        ({"tool_use_id": "t", "content": "ok", "is_error": False}, "ok", False, None),
        ({"tool_use_id": "t", "content": [_text("a"), _text("b")]}, "a\nb", None, None),
        ({"tool_use_id": "t", "content": [{"type": "image"}]}, "", None, [{"type": "image"}]),
        ({"tool_use_id": "t", "text": "only here"}, "only here", None, None),
        ({"call_id": "t", "output": {"rows": 1}}, '{"rows":1}', None, None),
        ({"tool_use_id": "t", "content": None, "is_error": "yes"}, "", None, None),
    ],
)  # fmt: skip
def test_results(block: dict[str, Any], text: str, failed: bool | None, parts: Any) -> None:
    found = result(block)
    assert (found.call_id, found.text, found.failed, found.parts) == ("t", text, failed, parts)
