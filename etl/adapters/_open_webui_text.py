"""The answer of an Open WebUI message as its page shows it: reasoning and calls are `<details>` in the text.

Newer versions keep the items of the answer beside the text; then the text repeats them and is not read.
"""

from __future__ import annotations

import html
import re
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._turns import Turn
from etl.conversation import Message, ToolCall

_DETAILS = re.compile(r"<details type=\"(reasoning|tool_calls|code_interpreter)\"([^>]*)>(.*?)</details>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([a-z_]+)=\"([^\"]*)\"")
_SUMMARY = re.compile(r"\s*<summary>.*?</summary>", re.DOTALL)
_QUOTED = re.compile(r"^&?(?:gt;|>) ?", re.MULTILINE)
_FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


def shown(text: str) -> list[Message]:
    """The messages that a text is.

    >>> told = '<details type="tool_calls" id="c1" name="look" arguments="{}" result="&quot;sea&quot;"></details>Sea.'
    >>> [(message.role, message.content) for message in shown(told)]
    [('assistant', ''), ('tool', 'sea'), ('assistant', 'Sea.')]
    """
    if "<details" not in text:
        return [Message("assistant", text)]
    turn, at = Turn(), 0
    for found in _DETAILS.finditer(text):
        if between := text[at : found.start()].strip("\n"):
            turn.text(between)
        at = found.end()
        kind, told, body = found.groups()
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(told)}
        body = _SUMMARY.sub("", body, count=1)
        if kind == "reasoning":
            if thought := html.unescape(_QUOTED.sub("", body.strip("\n"))):
                turn.reasoning(thought)
        elif kind == "tool_calls":
            _calls(turn, attributes, body)
        else:
            _interpreter(turn, attributes, body)
    if rest := text[at:].strip("\n"):
        turn.text(rest)
    return turn.done()


def _calls(turn: Turn, told: dict[str, str], body: str) -> None:
    """A call in the attributes; before 2025's April all calls of a response, with all results."""
    listed, results = parsed(told.get("content", "")), parsed(told.get("results", ""))
    if isinstance(listed, list):
        for call in listed:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                name = plain(function.get("name"))
                turn.call(ToolCall(name, function.get("arguments"), identifier(call.get("id"))))
        for result in results if isinstance(results, list) else ():
            if isinstance(result, dict):
                call_id = identifier(result.get("tool_call_id"))
                turn.result(Message("tool", plain(result.get("content")), call_id=call_id))
        return
    call_id, name = told.get("id") or None, told.get("name", "")
    given = told.get("result") or html.unescape(body.strip())
    result = Message("tool", _unquoted(given), call_id=call_id) if given and told.get("done") != "false" else None
    if result is not None:
        result.parts = [
            {"type": key, key: found} for key in ("files", "embeds") if (found := parsed(told.get(key, "")))
        ] or None
    turn.call(ToolCall(name, _unquoted(told.get("arguments", "")) or None, call_id), result)


def _interpreter(turn: Turn, told: dict[str, str], body: str) -> None:
    """Code that the model wrote and Open WebUI ran."""
    fenced = _FENCED.match(body)
    code = fenced.group(1) if fenced else body.strip("\n")
    given = told.get("output")
    turn.call(ToolCall("code_interpreter", {"code": code}), None if not given else Message("tool", _unquoted(given)))


def _unquoted(text: str) -> str:
    """The text of a JSON string; other JSON, and what is none, as it is."""
    found: Any = parsed(text) if text[:1] == '"' else None
    return found if isinstance(found, str) else text
