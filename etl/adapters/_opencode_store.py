"""What is stored of OpenCode sessions, sorted: of each session, message and part its latest version, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._session import canonical, dict_of, list_of, real, stored, text_of
from etl.conversation import Record, StoredEvent

SEPARATE = "message "
"""How the key of a fragment begins that names its message, but not its session."""
_STAGES = {"pending": 0, "running": 1}


class Spoken(msgspec.Struct):
    """A message with its parts."""

    info: dict[str, Any]
    parts: list[dict[str, Any]]
    known: bool = True
    """False where only parts of it are there."""


class Session(msgspec.Struct):
    """All that is stored of a session."""

    key: str
    info: dict[str, Any]
    messages: list[Spoken]
    records: list[Record]
    errors: list[dict[str, Any]]
    origin: str | None = None
    """The session that this one was forked from, as what it begins with tells."""
    copied: int = 0
    """How many messages it has from there."""


class _Found(msgspec.Struct):
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    parts: dict[str, dict[str, dict[str, Any]]] = msgspec.field(default_factory=dict)
    whole: dict[str, list[dict[str, Any]]] = msgspec.field(default_factory=dict)
    """Of messages that hold their parts: these, and no others."""
    places: dict[str, int] = msgspec.field(default_factory=dict)
    """Where an export lists a message or a part."""
    records: list[Record] = msgspec.field(default_factory=list)
    errors: list[dict[str, Any]] = msgspec.field(default_factory=list)


def sessions(family: Sequence[StoredEvent]) -> list[Session]:
    """The sessions of a family, each whole; parts without one under the message that they name."""
    owners = {
        name: event.key
        for event in family
        for value in [stored(event)]
        if text_of(value, "role") is not None and (name := text_of(value, "id")) and not event.key.startswith(SEPARATE)
    }
    found: dict[str, _Found] = {}
    for event in sorted(family, key=lambda event: (event.key.startswith(SEPARATE), event.key)):
        value = stored(event)
        key = event.key
        if key.startswith(SEPARATE):
            key = owners.get(text_of(value, "messageID") or text_of(value, "id") or "", key)
        into = found.setdefault(key, _Found())
        into.records.append(event.record)
        _take(into, value)
    return _forked([_session(key, each) for key, each in sorted(found.items())])


def _forked(found: list[Session]) -> list[Session]:
    """Say of each session what it has from one that began before it: equal messages of the same times."""
    if len(found) < 2:
        return found
    asked = {id(session): [_like(spoken) for spoken in session.messages] for session in found}
    heads: dict[str, list[Session]] = {}
    for session in sorted(found, key=_begun):
        own = asked[id(session)]
        earlier = heads.setdefault(own[0] or session.key if own else session.key, [])
        for other in earlier:
            pairs = zip(own, asked[id(other)], strict=False)
            same = next(
                (n for n, (a, b) in enumerate(pairs) if a is None or a != b), min(len(own), len(other.messages))
            )
            if same > session.copied:
                session.origin, session.copied = other.key, same
        earlier.append(session)
    return found


def _begun(session: Session) -> tuple[float, str]:
    return (real(dict_of(session.info, "time").get("created")) or 0, session.key)


def _like(spoken: Spoken) -> str | None:
    """What a message and its copy have in common: all but the ids; None where it has no time."""
    time = dict_of(spoken.info, "time")
    if type(time.get("created")) not in (int, float):
        return None
    parts = [
        {key: part.get(key) for key in ("type", "text", "tool", "callID")}
        for part in spoken.parts
        if part.get("type") in ("text", "reasoning", "tool")
    ]
    return canonical([spoken.info.get("role"), time["created"], parts])


def _take(into: _Found, value: Any) -> None:
    if not isinstance(value, dict):
        return
    if dict_of(value, "info") or "messages" in value:
        rest = {key: item for key, item in value.items() if key not in ("info", "messages")}
        into.info = _later(into.info, {**rest, **dict_of(value, "info")})
        for message in list_of(value, "messages"):
            info = dict_of(message, "info")
            name = text_of(info, "id") or f"{len(into.places):06}"
            info = {**info, "id": name}
            into.messages[name] = _later(into.messages.get(name), info)
            into.places[name] = len(into.places)
            for number, part in enumerate(list_of(message, "parts")):
                if isinstance(part, dict):
                    part = {**part, "id": text_of(part, "id") or f"{name}/{number:06}", "messageID": name}
                    into.places[part["id"]] = len(into.places)
                    _part(into, part)
    elif dict_of(value, "part"):
        _part(into, dict_of(value, "part"))
    elif text_of(value, "role") is not None:
        name = text_of(value, "id") or f"h{len(into.messages)}"
        held = value.get("parts")
        if isinstance(held, list):
            value = {key: item for key, item in value.items() if key != "parts"}
            parts = [part for part in held if isinstance(part, dict)]
            made = [{**part, "id": f"{name}/{number:06}"} for number, part in enumerate(parts)]
            into.whole[name] = max(
                into.whole.get(name, []), made, key=lambda each: (len(canonical(each)), canonical(each))
            )
        into.messages[name] = _later(into.messages.get(name), value)
    elif text_of(value, "messageID") is not None or ("type" in value and "title" not in value and "error" not in value):
        _part(into, value)
    elif "error" in value and "title" not in value:
        into.errors.append(value)
    else:
        into.info = _later(into.info, value)


def _part(into: _Found, part: dict[str, Any]) -> None:
    name = text_of(part, "id") or f"h{canonical(part)}"
    parts = into.parts.setdefault(text_of(part, "messageID") or "", {})
    parts[name] = _later(parts.get(name), part)


def _later(known: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Of two versions of one thing the one that tells more of how it went."""
    return other if not known or _stage(other) >= _stage(known) else known


def _stage(value: dict[str, Any]) -> tuple[Any, ...]:
    time = {**dict_of(value, "time"), **dict_of(dict_of(value, "state"), "time")}
    times = [item for item in time.values() if type(item) in (int, float)]
    status = text_of(dict_of(value, "state"), "status")
    said = canonical(value)
    return (_STAGES.get(status or "", 2), len(time), max(times, default=0), len(said), said)


def _session(key: str, found: _Found) -> Session:
    def place(item: dict[str, Any]) -> tuple[Any, ...]:
        """As an export lists it; else by its id, which are made so that they sort."""
        name = text_of(item, "id") or ""
        return (found.places.get(name, len(found.places)), len(name), name)

    def began(item: dict[str, Any]) -> tuple[Any, ...]:
        created = dict_of(item, "time").get("created")
        return (created if type(created) in (int, float) else 0, *place(item))

    lost = [name for name in found.parts if name not in found.messages]
    spoken = [
        Spoken(info, found.whole.get(name) or sorted(found.parts.get(name, {}).values(), key=place))
        for name, info in found.messages.items()
    ]
    spoken += [_without_info(name, sorted(found.parts[name].values(), key=place)) for name in lost]
    spoken.sort(key=lambda each: began(each.info))
    return Session(key, found.info, spoken, found.records, found.errors)


def _without_info(name: str, parts: list[dict[str, Any]]) -> Spoken:
    """Parts whose message is not there: who speaks is told by what only a model's message has."""
    made = any(part.get("type") != "text" or "end" in dict_of(part, "time") for part in parts)
    starts = [_start(part) for part in parts]
    time = {"created": min((start for start in starts if start is not None), default=None)}
    return Spoken({"id": name, "role": "assistant" if made else "user", "time": time}, parts, known=False)


def _start(part: dict[str, Any]) -> float | None:
    start = dict_of(part, "time").get("start", dict_of(dict_of(part, "state"), "time").get("start"))
    return start if type(start) in (int, float) else None
