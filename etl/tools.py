"""Tool definitions of every provider into one form: a JSON array of OpenAI functions, as text."""

from __future__ import annotations

from typing import Any

from etl.decode import JsonError, decode, encode


def definitions(value: Any) -> str | None:
    """The definitions as a JSON array; None where there are none or where the value is no list of tools.

    Reads OpenAI (`{type, function}`), flat (`{name, parameters}`), Anthropic (`{name, input_schema}`) and JSON text
    of any of them. A provider's own built-in tool keeps the form it has.

    >>> definitions([{"name": "now", "input_schema": {"type": "object"}}])
    '[{"type":"function","function":{"name":"now","parameters":{"type":"object"}}}]'
    """
    if isinstance(value, str):
        try:
            value = decode(value.encode("utf-8", "surrogatepass")).value
        except JsonError:
            return None
    if not isinstance(value, list) or not value:
        return None
    return encode([_function(tool) for tool in value])


class Definitions:
    """`definitions`, remembering what it was last given: records of one file share their tools
    (`decode.RecordDecoder`).
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str | None]] = {}

    def text(self, value: Any) -> str | None:
        """The definitions as a JSON array, or None."""
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        text = definitions(value)
        if len(self._known) >= 64:
            self._known.clear()
        self._known[id(value)] = (value, text)
        return text


def _function(tool: Any) -> Any:
    if isinstance(tool, str):
        try:
            parsed = decode(tool.encode("utf-8", "surrogatepass")).value
        except JsonError:
            return tool
        return _function(parsed) if isinstance(parsed, dict) else tool
    if not isinstance(tool, dict) or isinstance(tool.get("function"), dict):
        return tool
    if not isinstance(tool.get("name"), str):
        return tool
    schema = next((tool[key] for key in ("parameters", "input_schema", "inputSchema") if key in tool), None)
    if schema is None and tool.get("type") not in (None, "function"):
        return tool
    rest = {
        key: item
        for key, item in tool.items()
        if key not in ("type", "name", "parameters", "input_schema", "inputSchema")
    }
    function = {"name": tool["name"], **rest}
    if schema is not None:
        function["parameters"] = schema
    return {"type": "function", "function": function}
