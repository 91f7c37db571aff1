"""The records of one Qwen Code session as a tree: those of one id joined, each under the one that it follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._session import canonical, dict_of, list_of, stored, text_of
from etl.adapters._tree import Node
from etl.conversation import StoredEvent
from etl.identity import digest


def nodes_of(events: Iterable[StoredEvent]) -> dict[str, Node]:
    """Records by id, in order; what names a record that is not there hangs on the one before it."""
    nodes: dict[str, Node] = {}
    last: str | None = None
    for event in events:
        value = stored(event)
        if not isinstance(value, dict):
            continue
        name = text_of(value, "uuid") or digest(canonical(value).encode())
        known = nodes.get(name)
        if known is not None:
            known.value = _joined(known.value, value)
            known.records.append(event.record)
            continue
        node = Node(name, value, [event.record], text_of(value, "parentUuid"))
        if node.above not in nodes:
            node.dangling = node.above is not None
            node.above = None if text_of(value, "subtype") == "rewind" else last
        nodes[name] = node
        last = name
    return nodes


def _joined(known: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Two records of one id: the parts of both, everything else as it was written last."""
    message, more = dict_of(known, "message"), dict_of(value, "message")
    parts = list_of(message, "parts")
    parts = [*parts, *(part for part in list_of(more, "parts") if part not in parts)]
    joined = {**known, **{key: item for key, item in value.items() if item is not None}}
    if parts:
        joined["message"] = {**message, **more, "parts": parts}
    joined["timestamp"] = known.get("timestamp", value.get("timestamp"))
    return joined
