"""Claude Code sessions: JSON Lines of typed lines, one session over one file or several.

`parse` keeps every line that says something, or that others name as their parent; `assemble` puts a session together
from all its lines, wherever and whenever they were read. What becomes of them is told where it is done:
`_claude_lines` (one line), `_claude_tree` (order, branches), `_claude_sessions` (copies, sub-agents),
`_claude_messages` (what is said by whom).

Rows. The main thread of a session is a row with an empty branch. A branch (a person went back and asked again, or the
model answered twice) and a sub-agent are rows of their own, named by the first line that is theirs or by the agent's
id, with `parent_id`. A session that was resumed under a new id has the old turns as inherited ones. The identity of a
session without an id is a hash of its first message.

Progress lines that show a sub-agent's message are read for it; of all others only the place in the chain is kept:
what they show (output so far, hooks at work) comes again in the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._claude_lines import SNAPSHOT, SPEAKERS, WRAPPER, canonical, chain_only, kind_of, time_in
from etl.adapters._claude_rows import conversations
from etl.adapters._claude_text import content_of, text_of
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.identity import digest

_IGNORED = {
    "file-history-snapshot": "a list of backups of edited files that lists none",
    "file-history-delta": "backups of edited files, for undo",
    "attribution-snapshot": "who wrote which line, for commits",
    "mode": "a switch of the interface",
    "permission-mode": "a switch of the interface; user lines name the mode they were said in",
    "bridge-session": "ids of a remote control",
    "atis-latch": "ids of a remote control",
    "started": "the start of a workflow step; its result is told by another line",
    "speculation-accept": "a switch of the interface",
}
_QUEUE_RULE = "queue-operation"
_UNKNOWN_RULE = "unknown_type"
_HELD_BACK = 512
"""Lines that wait for the first one to name the session; after that many they are named by a hash."""
_WRONG_KEYS = frozenset({"session_id", "parent_tool_use_id", "payload", "hook_event_name"})
"""Keys of other logs with like lines: captures of the program's output, Codex, hook input."""
_LONE_TYPES = {
    "file-history-snapshot": "snapshot",
    "summary": "leafUuid",
    "queue-operation": "operation",
    "last-prompt": "lastPrompt",
    "agent-setting": "agentSetting",
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "agent-name": "agentName",
    "permission-mode": "permissionMode",
    "mode": "mode",
    "pr-link": "prUrl",
}
"""Types of lines without a message, with a key that shows them."""


class ClaudeCode(Adapter):
    """Session files of Claude Code (also in sub-agents' folders, checkpoints and exports)."""

    name = "claude_code"
    version = 3
    about = (
        "Claude Code sessions: JSON Lines of user, assistant, system and progress lines, sub-agents and forks included"
    )
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        **_IGNORED,
        _QUEUE_RULE: "a change of the prompt queue that says nothing",
        f"{_UNKNOWN_RULE}:*": "a type not known here, on a line without a message, a text or a place in the chain",
    }

    def score(self, sample: Sample) -> float:
        """The share of lines that look like a session's; sure only where a line has what no other log has."""
        values = _unwrapped(sample)
        if not values:
            return 0.0
        looks = [_looks(value) for value in values]
        return max(looks) * sum(1 for look in looks if look > 0) / len(looks)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line that is kept; lines before the first one with a session id wait for it."""
        session: str | None = None
        waiting: list[Record] = []
        for record in records:
            refused = _refused(record)
            if refused is not None:
                yield refused
                continue
            named = _session_of(record.value)
            if named is None and session is None:
                waiting.append(record)
                if len(waiting) < _HELD_BACK:
                    continue
                named = _hashed(waiting)
                yield from (_fragment(each, named, session) for each in waiting)
            else:
                key = named or session or ""
                yield from (_fragment(each, key, key) for each in waiting)
                yield _fragment(record, key, session)
            waiting = []
            session = named or session
        if waiting:
            key = _hashed(waiting)
            yield from (_fragment(each, key, key) for each in waiting)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of the sessions of a family; none for a session in which nobody says anything."""
        yield from conversations(family)


def _refused(record: Record) -> Outcome | None:
    """A reject or a named rule for a line that no row can use; None for the others."""
    value = record.value
    if not isinstance(value, dict):
        return Unusable(record, "not_an_object", "a line of a session is a JSON object; this is none")
    if isinstance(value.get(WRAPPER), list):
        return None
    kind = value.get("type")
    found = kind_of(value)
    if isinstance(kind, str) and kind in _IGNORED and found != SNAPSHOT and not text_of(value, "uuid"):
        return Ignored(kind)
    if found == "queue-operation" and not text_of(value, "content"):
        return Ignored(_QUEUE_RULE)
    if found in SPEAKERS and content_of(value) is None and "content" not in _message(value):
        return Unusable(record, "no_message", f"a line of type {found} without a message; the log is damaged here")
    if found:
        return None
    if isinstance(kind, str) and kind:
        return Ignored(f"{_UNKNOWN_RULE}:{kind[:40]}")
    return Unusable(record, "no_type", "a line of a session has a type or a message; this has neither")


def _message(value: dict[str, Any]) -> dict[str, Any]:
    message = value.get("message")
    return message if isinstance(message, dict) else {}


def _session_of(value: dict[str, Any]) -> str | None:
    """The session that a line names; of an export, that of its first line that names one."""
    inside = value.get(WRAPPER)
    if isinstance(inside, list):
        named = (text_of(line, "sessionId") for line in inside if isinstance(line, dict))
        return next((name for name in named if name), None) or _hashed_values(inside)
    return text_of(value, "sessionId")


def _hashed(records: Sequence[Record]) -> str:
    return _hashed_values([record.value for record in records])


def _hashed_values(values: Sequence[Any]) -> str:
    """A name for a session without one: of its first message with its time, which stays when the session grows."""
    lines = [value for value in values if isinstance(value, dict)]
    first = next((line for line in lines if isinstance(line.get("message"), dict)), lines[0] if lines else None)
    return "h_" + digest(canonical(first).encode())


def _fragment(record: Record, key: str, before: str | None) -> Fragment:
    """A line under its session; `before` is the session of the line before it in the file."""
    value = record.value
    inside = value.get(WRAPPER)
    if isinstance(inside, list):
        first = next((line for line in inside if isinstance(line, dict)), {})
        return Fragment(record, key, at=time_in(first))
    link = text_of(value, "uuid")
    copied = value.get("forkedFrom")
    if isinstance(copied, dict):
        link = text_of(copied, "messageUuid") or link
    elif before is not None and before != key:
        # A file that goes on under a new session id: its first line only names the last of the old session.
        link = text_of(value, "parentUuid") or link
    return Fragment(record, key, link, time_in(value), chain_only(value))


def _unwrapped(sample: Sample) -> list[Any]:
    if (
        len(sample.values) == 1
        and isinstance(sample.values[0], dict)
        and isinstance(sample.values[0].get(WRAPPER), list)
    ):
        return list(sample.values[0][WRAPPER][:64])
    return list(sample.values)


def _looks(value: Any) -> float:
    """How much one value looks like a line of a session."""
    if not isinstance(value, dict):
        return 0.0
    kind = value.get("type")
    if not isinstance(kind, str) or (_WRONG_KEYS & value.keys() and "sessionId" not in value):
        return 0.0
    message = value.get("message")
    if isinstance(message, dict) and "parts" in message and "content" not in message:
        return 0.0
    session = isinstance(value.get("sessionId"), str)
    chained = isinstance(value.get("uuid"), str) and ("parentUuid" in value or "isSidechain" in value)
    if kind in SPEAKERS and isinstance(message, dict) and "content" in message:
        if session and chained:
            return 0.97
        return (
            0.9
            if chained or (session and "timestamp" in value)
            else 0.6
            if "timestamp" in value or "uuid" in value
            else 0.4
        )
    if kind in ("system", "progress", "attachment") and session and chained:
        return 0.9
    if kind in _LONE_TYPES and _LONE_TYPES[kind] in value:
        return 0.7 if session else 0.5 if kind in ("file-history-snapshot", "summary") else 0.0
    return 0.1 if session else 0.0
