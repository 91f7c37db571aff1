"""OpenCode sessions, in whichever form they lie: storage files, the database, exports and `--format json` streams.

The storage has one JSON file a session, a message and a part, joined by their ids; `opencode.db` has the same as rows,
or (since 2.0) a row a message with all its parts; an export is one object `{info, messages: [{info, parts}]}`; a stream
has the parts of one run, a line each. A session that lies in several of these is one row. A call and its result are one
part, rewritten as it goes on. A fork is a session that begins with copies of another's messages, under ids of its own,
with their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._opencode_rows import SEPARATE, conversations
from etl.adapters._opencode_second import SWITCHES, message_row
from etl.adapters._session import dict_of, list_of, text_of
from etl.adapters._sqlite import names_tables, records
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.decode import Decoded, decode
from etl.framing import Framed, Limits
from etl.identity import digest

_TODO = "todo_list"
_DIFF = "session_diff"
_SWITCH = "switch"
_STREAM = frozenset({"text", "tool_use", "step_start", "step_finish", "reasoning", "error"})
_PARTS = frozenset(
    {
        "text", "reasoning", "tool", "file", "step-start", "step-finish", "snapshot", "patch", "agent", "retry",
        "compaction", "subtask",
    }
)  # fmt: skip


class OpenCode(Adapter):
    """Sessions of OpenCode."""

    name = "opencode"
    version = 3
    about = "OpenCode sessions: storage files (session, message, part), opencode.db, exports {info, messages}, streams"
    scores_share = True
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _TODO: "the list of tasks of a session; the calls that wrote it are in the session",
        _SWITCH: "a change of model, agent or folder; messages name theirs",
        _DIFF: "files before and after a session; the calls that changed them are in the session",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        first = {"session": _session_row, "message": _data_row, "part": _data_row}
        return records(blocks, limits, {**first, "session_v2": _session_row, "session_message": message_row})

    def score(self, sample: Sample) -> float:
        """The share of values that are of the storage, an export or a stream."""
        if names_tables(sample.head, "message", "part") and b"message_id" in sample.head:
            return 0.95
        if names_tables(sample.head, "session_v2", "session_message"):
            return 0.95
        looks = [_looks(value) for value in sample.values]
        return sum(looks) / len(looks) if looks else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each record, under its session; a part that names only its message is linked to it."""
        folder = _message_folder(file)
        homes: dict[str, str] = {}
        for record in records:
            value = record.value
            if not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a session, a message or a part is a JSON object; this is none")
            elif "switch" in value and text_of(value, "switch") in SWITCHES:
                yield Ignored(_SWITCH)
            elif _is_todo(value):
                yield Ignored(_TODO)
            elif _is_diff(value):
                yield Ignored(_DIFF)
            elif not _is_known(value):
                yield Unusable(record, "no_id", "a session, a message or a part has an id; this has none")
            else:
                yield _fragment(record, value, folder, homes)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of each session."""
        yield from conversations(family)


def _session_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `session` as the storage has it: JSON columns opened, names as in the files."""
    value: dict[str, Any] = {}
    for key, item in row.items():
        if isinstance(item, str) and item[:1] in ("{", "[") and key not in ("title", "directory", "slug"):
            value[key] = decode(item.encode("utf-8", "replace"), limits.nesting).value
        elif item is not None and not isinstance(item, bytes):
            value[key] = item
    renamed = {
        "fork_session_id": "forkSessionID",
        "project_id": "projectID",
        "parent_id": "parentID",
        "workspace_id": "workspaceID",
    }
    shown = {renamed.get(key, key): item for key, item in value.items()}
    shown["time"] = {"created": shown.pop("time_created", None), "updated": shown.pop("time_updated", None)}
    return Decoded(shown) if isinstance(row.get("id"), str) else None


def _data_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `message` or `part`: its `data` with the ids, which stand in columns of their own."""
    text = row.get("data")
    if not isinstance(text, (str, bytes)) or not isinstance(row.get("id"), str):
        return None
    found = decode(text.encode("utf-8", "replace") if isinstance(text, str) else text, limits.nesting)
    if not isinstance(found.value, dict):
        return None
    ids = {"id": row["id"], "sessionID": row.get("session_id"), "messageID": row.get("message_id")}
    value = {**{key: item for key, item in ids.items() if isinstance(item, str)}, **found.value}
    if "message_id" not in row and not dict_of(value, "time"):
        value["time"] = {"created": row.get("time_created")}
    return Decoded(value, found.notes, found.mended)


def _message_folder(file: FileContext) -> str | None:
    """The message whose parts a file of an older storage holds: `part/<message>/<part>.json` names it nowhere else."""
    parts = file.uri.split("/")
    return parts[-2] if len(parts) > 3 and parts[-3] == "part" else None


def _fragment(record: Record, value: dict[str, Any], folder: str | None, homes: dict[str, str]) -> Fragment:
    """The fragment of a record; `homes` has the session of each session and message that its file tells of."""
    info = dict_of(value, "info")
    time = dict_of(info or value, "time")
    at = time.get("created", time.get("start", value.get("timestamp")))
    if info or "messages" in value:
        first = next((dict_of(message, "info") for message in list_of(value, "messages")), {})
        return Fragment(record, text_of(info, "id", "sessionID") or _named(record), _asked_at(first), at)
    part = dict_of(value, "part")
    role, message = text_of(value, "role"), text_of(value, "messageID")
    session = text_of(value, "sessionID") or text_of(part, "sessionID") or homes.get(message or "")
    if part:
        return Fragment(record, session or _named(record), at=at)
    if role is not None and session is not None and session in homes:
        homes[text_of(value, "id") or ""] = session
        return Fragment(record, session, _asked_at(value), at)
    if role is not None or session is None:
        link = text_of(value, "id") if role is not None else message or (folder if _is_part(value) else None)
        if role is None and link is None and not _is_part(value):
            named = text_of(value, "id") or _named(record)
            homes[named] = named
            return Fragment(record, named, at=at)
        payload = None if message or role is not None or link is None else {**value, "messageID": link}
        return Fragment(record, session or f"{SEPARATE}{link or _named(record)}", link, at, payload)
    return Fragment(record, session, at=at)


def _asked_at(message: dict[str, Any]) -> str | None:
    """What a person's message and its copy in a fork have in common: when it was asked."""
    created = dict_of(message, "time").get("created")
    return f"asked at {created}" if message.get("role") == "user" and type(created) in (int, float) else None


def _is_known(value: dict[str, Any]) -> bool:
    named = text_of(value, "id", "sessionID", "messageID") is not None
    return named or bool(dict_of(value, "info")) or isinstance(value.get("messages"), list)


def _named(record: Record) -> str:
    return "h_" + digest(record.raw)


def _is_part(value: dict[str, Any]) -> bool:
    return text_of(value, "type") in _PARTS and text_of(value, "id") is not None


def _is_todo(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() <= {"content", "status", "priority", "id"} and "status" in value


def _is_diff(value: Any) -> bool:
    keys = {"file", "additions", "deletions"}
    return isinstance(value, dict) and value.keys() >= keys and bool(value.keys() & {"before", "after", "patch"})


def _looks(value: Any) -> float:
    if not isinstance(value, dict):
        return 0.0
    if _is_todo(value) and {"content", "priority"} <= value.keys():
        return 0.9
    if _is_diff(value):
        return 0.9
    info = dict_of(value, "info")
    if info and isinstance(value.get("messages"), list):
        named = text_of(info, "id") is not None and bool(dict_of(info, "time"))
        spoken = [item for item in value["messages"][:8] if dict_of(item, "info") and "parts" in item]
        return 0.95 if named and (spoken or not value["messages"]) else 0.0
    if text_of(value, "id") is None and dict_of(value, "part"):
        part = dict_of(value, "part")
        return 0.95 if text_of(value, "type") in _STREAM and "sessionID" in value and "type" in part else 0.0
    if value.get("type") == "error" and "sessionID" in value and "error" in value and "timestamp" in value:
        return 0.9
    return _looks_stored(value)


def _looks_stored(value: dict[str, Any]) -> float:
    """A file of the storage."""
    if text_of(value, "id") is None:
        return 0.0
    time, role = dict_of(value, "time"), text_of(value, "role")
    if role in ("user", "assistant"):
        named = "sessionID" in value and ("created" in time or "providerID" in value or "parentID" in value)
        return 0.93 if named and "content" not in value else 0.0
    if text_of(value, "type") in _PARTS:
        if text_of(value, "messageID") is not None:
            return 0.95
        if value["type"] == "tool" and "callID" in value and "status" in dict_of(value, "state"):
            return 0.95
        return 0.6 if "start" in time and value.keys() <= {"id", "type", "text", "time", "synthetic"} else 0.0
    home = bool(value.keys() & {"directory", "projectID"}) and "title" in value and "created" in time
    return 0.93 if home and not list_of(value, "messages") else 0.0
