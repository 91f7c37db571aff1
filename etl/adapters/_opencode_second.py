"""The second form of OpenCode's database (2.x): rows of `session_message` as the messages with parts of the first form.

A row has all of a message: its type says who speaks, its `data` what is said, calls with their results. Old sessions
are there too, under their old ids, while the tables of the first form stand still.
"""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import plain
from etl.adapters._session import dict_of, list_of, text_of, without
from etl.decode import Decoded, decode
from etl.framing import Limits

SWITCHES = frozenset({"model-switched", "agent-switched", "location-switched", "idle"})
"""Types of rows that say what later messages are said with."""
_TOLD = ("time", "model", "content", "text", "files", "error")


def message_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `session_message`: a message that holds its parts."""
    name, session, kind, text = (row.get(key) for key in ("id", "session_id", "type", "data"))
    if not isinstance(name, str) or not isinstance(session, str) or not isinstance(kind, str):
        return None
    if not isinstance(text, (str, bytes)):
        return None
    found = decode(text.encode("utf-8", "replace") if isinstance(text, str) else text, limits.nesting)
    data = found.value
    if not isinstance(data, dict):
        return None
    if kind in SWITCHES:
        return Decoded({"id": name, "sessionID": session, "switch": kind, **data}, found.notes, found.mended)
    time = {"created": row.get("time_created"), **dict_of(data, "time")}
    value: dict[str, Any] = {"id": name, "sessionID": session, "time": time, **without(data, *_TOLD)}
    if kind == "assistant":
        model = dict_of(data, "model")
        value |= {"role": "assistant", "modelID": model.get("id"), "providerID": model.get("providerID")}
        value["parts"] = [_part(part) for part in list_of(data, "content") if isinstance(part, dict)]
        if error := _error(data.get("error")):
            value["error"] = error
    else:
        value |= {"role": "user", "parts": _asked(kind, data)}
        if kind == "system":
            value["system"] = text_of(data, "text")
    return Decoded({key: item for key, item in value.items() if item is not None}, found.notes, found.mended)


def _asked(kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of what stands in the user's place."""
    said = text_of(data, "text", "summary")
    own = kind == "user"
    parts: list[dict[str, Any]] = []
    if said is not None and kind != "system":
        parts.append({"type": "text", "text": said, **({} if own else {"synthetic": True})})
    parts += [{"type": "file", **file} for file in list_of(data, "files") if isinstance(file, dict)]
    if not own and kind not in ("synthetic", "system"):
        parts.append({"type": kind, **without(data, "text", "summary", "files", "time")})
    return parts


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of an answer; a call with its result as the first form has it."""
    if part.get("type") != "tool":
        return part
    state, time = dict_of(part, "state"), dict_of(part, "time")
    told = without(state, "content", "error")
    content = list_of(state, "content")
    texts = [text for item in content if (text := text_of(item, "text")) is not None]
    if "output" not in state and content:
        told["output"] = "\n".join(texts)
    others = [item for item in content if text_of(item, "text") is None]
    if others:
        told["attachments"] = others
    error = state.get("error")
    if error is not None:
        told["error"] = text_of(error, "message") or plain(error)
    started = time.get("ran", time.get("created"))
    told.setdefault("time", {"start": started, "end": time.get("completed")})
    return {
        **without(part, "id", "name", "state", "time"),
        "callID": part.get("id"),
        "tool": part.get("name"),
        "state": told,
    }


def _error(error: Any) -> dict[str, Any]:
    """An error under the names of the first form."""
    if not isinstance(error, dict):
        return {"name": "error", "message": plain(error)} if error else {}
    kind = text_of(error, "type", "name") or "error"
    aborted = "abort" in kind.lower()
    return {**without(error, "type"), "name": "MessageAbortedError" if aborted else kind}
