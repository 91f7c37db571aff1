"""The lines of Claude Code sessions, whatever they are wrapped in, each known by what later steps ask of it.

A line is one JSON object of a session file. It can also lie in a `{"loglines": [...]}` export, and a sub-agent's line
in the `progress` line that showed it to the user. The same line (`uuid`) can be written again when it has grown, and
copied to another file or, when a session is resumed under a new id, into another session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapters._blocks import plain
from etl.adapters._claude_text import content_of, is_harness_line, says, text_of
from etl.conversation import Record, StoredEvent
from etl.times import instant

SPEAKERS = frozenset({"user", "assistant"})
HARNESS = frozenset({"system", "attachment", "progress"})
DETACHED = frozenset(
    {
        "summary", "custom-title", "ai-title", "agent-name", "agent-setting", "last-prompt", "tag", "result",
        "content-replacement",
    }
)  # fmt: skip
"""Types without a place in the log whose text is kept with the row."""
QUEUE = "queue-operation"
SNAPSHOT = "file-history-snapshot"
_NOTED = frozenset(
    {"compact_boundary", "microcompact_boundary", "pr-link", "frame-link", "relocated", "worktree-state"}
)
"""Types without a message that tell of something at its time."""
WRAPPER = "loglines"


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


class Line(msgspec.Struct, gc=False, eq=False):
    """One line of a session."""

    value: dict[str, Any]
    kind: str
    """user, assistant, system, attachment, progress, queue-operation, file-history-snapshot, or detached."""
    record: Record
    uri: str
    place: tuple[int, int]
    """Where it lies in its file: offset of its record, number within the record."""
    at: int | None = None
    """Microseconds since the epoch."""
    uuid: str | None = None
    origin: str | None = None
    """The id of the line that it is a copy of, where it says so; else its own."""
    parents: tuple[str, ...] = ()
    """Ids of the line before it in the chain, as its versions name them."""
    thread: str = ""
    """The sub-agent it belongs to; empty for the main thread."""
    nested: bool = False
    """True where it was read out of a progress line."""
    versions: tuple[Record, ...] = ()
    """Records of the other versions of this line."""
    person: bool = False
    """True for a user line in which a person says something."""
    message_id: str | None = None
    """Of an assistant line: the id of the model's response that it is a part of."""
    dangling: bool = False
    """True where the line before it is named but not there."""


def kind_of(value: dict[str, Any]) -> str:
    """What sort of line it is; empty where it is none that carries anything.

    The type decides, and where it is missing or new, what the line carries: a message is never passed over.
    """
    kind = value.get("type")
    if isinstance(kind, str):
        if kind in SPEAKERS or kind in HARNESS or kind == QUEUE:
            return kind
        if kind in DETACHED and not isinstance(value.get("message"), dict):
            return "detached"
        if kind in _NOTED:
            return "system"
        if kind == SNAPSHOT:
            return SNAPSHOT if backups_in(value) else ""
    message = value.get("message")
    if isinstance(message, dict) and (message.get("content") or message.get("role") in SPEAKERS):
        return "assistant" if message.get("role") == "assistant" else "user"
    if not isinstance(kind, str):
        return ""
    if text_of(value, "uuid"):
        return "system"
    return "detached" if any(text_of(value, key) for key in ("content", "text", "prompt", "summary")) else ""


def backups_in(value: dict[str, Any]) -> dict[str, Any]:
    """The backups of files that a snapshot lists: path → version, time and name."""
    snapshot = value.get("snapshot")
    backups = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
    return backups if isinstance(backups, dict) else {}


def time_in(value: dict[str, Any]) -> Any:
    """When a line was written, as it says itself."""
    at, snapshot = value.get("timestamp"), value.get("snapshot")
    return snapshot.get("timestamp") if at is None and isinstance(snapshot, dict) else at


def session_lines(events: Iterable[StoredEvent]) -> dict[str, list[Line]]:
    """The lines of each session (conversation key), versions of one line merged."""
    sessions: dict[str, list[Line]] = {}
    exports: dict[str, list[StoredEvent]] = {}
    for event in events:
        value = event.record.value
        if isinstance(value, dict):
            lines = sessions.setdefault(event.key, [])
            if isinstance(value.get(WRAPPER), list):
                exports.setdefault(event.key, []).append(event)
            else:
                _add_lines(lines, event, value)
    for key, wrapped in exports.items():
        sessions[key].extend(_exported(wrapped))
    return {key: _merged(lines) for key, lines in sessions.items()}


def _add_lines(lines: list[Line], event: StoredEvent, value: dict[str, Any]) -> None:
    """Add the line of a record, and those inside it."""
    offset = event.record.offset or 0
    at = event.at if event.at is not None else instant(time_in(value)).micros
    lines.append(_line(value, event, (offset, 0), at))
    if value.get("type") == "progress":
        lines.extend(_nested(value, event, offset, at))


def _exported(events: list[StoredEvent]) -> Iterator[Line]:
    """The lines of a session's exports: those of the longest, and what shorter ones have beyond it."""
    seen: Counter[str] = Counter()
    for event in sorted(events, key=lambda event: (-len(event.record.value[WRAPPER]), canonical(event.record.value))):
        here: Counter[str] = Counter()
        for number, item in enumerate(event.record.value[WRAPPER]):
            if not isinstance(item, dict):
                continue
            if len(events) > 1:
                said = canonical(item)
                here[said] += 1
                if here[said] <= seen[said]:
                    continue
            place = (event.record.offset or 0, number)
            yield _line(item, event, place, instant(time_in(item)).micros)
        seen |= here


def _line(value: dict[str, Any], event: StoredEvent, place: tuple[int, int], at: int | None) -> Line:
    line = Line(value, kind_of(value), event.record, event.source_uri, place, at, text_of(value, "uuid"))
    copied = value.get("forkedFrom")
    line.origin = text_of(copied, "messageUuid") if isinstance(copied, dict) else None
    line.origin = line.origin or line.uuid
    parent = text_of(value, "parentUuid")
    if parent:
        line.parents = (parent,)
    agent = text_of(value, "agentId")
    side = value.get("isSidechain")
    if side is True or (agent and not isinstance(side, bool)):
        line.thread = agent or "?"
    if line.kind == "assistant":
        message = value.get("message")
        line.message_id = text_of(message, "id") if isinstance(message, dict) else None
    elif line.kind == "user":
        line.person = not is_harness_line(value) and says(value)
    return line


def _nested(value: dict[str, Any], event: StoredEvent, offset: int, at: int | None) -> Iterator[Line]:
    """The sub-agent's lines inside a progress line; its prompt where the line names one."""
    data = value.get("data")
    if not isinstance(data, dict):
        return
    thread = text_of(data, "agentId") or text_of(value, "parentToolUseID") or "?"
    found = data.get("message")
    inside = [found] if isinstance(found, dict) else data.get("normalizedMessages")
    number = 0
    prompt = text_of(data, "prompt")
    items: list[Any] = list(inside) if isinstance(inside, list) else []
    if prompt:
        items.insert(0, {"type": "user", "message": {"role": "user", "content": prompt}})
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("message"), dict):
            number += 1
            when = instant(item.get("timestamp")).micros
            line = _line(item, event, (offset, number), at if when is None else when)
            line.thread, line.nested = thread, True
            if line.kind in SPEAKERS:
                yield line


def _merged(lines: list[Line]) -> list[Line]:
    """One line for each that was written several times; lines that only share an id stay apart."""
    by_uuid: dict[str, list[Line]] = {}
    for line in lines:
        if line.uuid is not None:
            by_uuid.setdefault(line.uuid, []).append(line)
    if len(by_uuid) == sum(1 for line in lines if line.uuid is not None):
        return lines
    gone: set[int] = set()
    for group in by_uuid.values():
        if len(group) > 1:
            _merge(group, gone)
    return [line for line in lines if id(line) not in gone]


def _merge(group: list[Line], gone: set[int]) -> None:
    keyed = sorted(
        group, key=lambda line: (not line.nested, line.at or 0, len(content_text(line)), canonical(line.value))
    )
    kept: list[Line] = []
    for line in keyed:
        earlier = next((one for one in kept if _grew(one, line)), None)
        if earlier is None:
            kept.append(line)
            continue
        kept[kept.index(earlier)] = line
        line.parents = tuple(dict.fromkeys((*earlier.parents, *line.parents)))
        line.versions = (*earlier.versions, earlier.record)
        gone.add(id(earlier))


def _grew(one: Line, other: Line) -> bool:
    """Whether the second is the first written again: with no less content, or as a copy with other things masked."""
    if one.kind != other.kind or one.thread != other.thread or one.message_id != other.message_id:
        return False
    same_place = one.at == other.at and is_global(one.uuid or "")
    return same_place or content_text(other).startswith(content_text(one))


def is_global(name: str) -> bool:
    """Whether an id is unique by its making, so that it means the same line in every session.

    >>> is_global("7c311c86-7836-4f47-bffc-aa8c3cbf261e"), is_global("u1")
    (True, False)
    """
    return _UUID.match(name) is not None


def content_text(line: Line) -> str:
    """All that a line carries, as text in which a later version begins with the earlier one."""
    content = content_of(line.value)
    if not isinstance(content, list):
        return plain(content) if content is not None else canonical(line.value.get("attachment"))
    pieces = []
    for block in content:
        text = block.get("text", block.get("thinking")) if isinstance(block, dict) else block
        pieces.append(text if isinstance(text, str) else canonical(block))
    return "\x1f".join(pieces)


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values."""
    return _ENCODER.encode(value).decode()


_ENCODER = msgspec.json.Encoder(order="deterministic")


def chain_only(value: dict[str, Any]) -> dict[str, Any] | None:
    """What is kept of a progress line that shows no sub-agent: its place in the chain; None for any other line."""
    if value.get("type") != "progress":
        return None
    data = value.get("data")
    if isinstance(data, dict) and (isinstance(data.get("message"), dict) or data.get("normalizedMessages")):
        return None
    kept: dict[str, Any] = {key: value[key] for key in _CHAIN if key in value}
    if isinstance(data, dict):
        kept["data"] = {"type": data.get("type")}
    return kept


_CHAIN = (
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "isSidechain",
    "agentId",
    "toolUseID",
    "parentToolUseID",
)
