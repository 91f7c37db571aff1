"""Sessions of pi and of agents built on it (OpenClaw): JSON Lines of a `session` header and typed entries.

Old files are a list; since version 3 entries name the one before them (`id`, `parentId`) and form a tree: the live
chain is a row with an empty branch, what was left is a row with `parent_id`. A session that was branched from another
file begins with its entries; they are inherited where that session is there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._pi_rows import conversations
from etl.adapters._pi_tree import parent_of
from etl.adapters._session import Naming, SureAdapter, dict_of, sessions, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "system", "custom", "branchSummary"})
_ENTRIES = frozenset(
    {
        "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message", "label",
        "session_info", "message",
    }
)  # fmt: skip
_UNKNOWN = "unknown_type"


class Pi(SureAdapter):
    """Session files of pi and OpenClaw."""

    name = "pi"
    version = 1
    about = "pi and OpenClaw sessions: JSON Lines of session, message, model_change, compaction and custom entries"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {f"{_UNKNOWN}:*": "a type of entry not known here, without an id"}

    def looks(self, value: Any) -> float:
        """Whether it is an entry; sure only where a header, a result or an answer with its provider is among them."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each entry under its session."""
        naming = Naming(linked=True)
        for record in records:
            value = record.value
            kind = text_of(value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "an entry of a session is an object with a type; this is none")
            elif kind == "message" and not dict_of(value, "message"):
                yield Unusable(record, "no_message", "an entry of type message without one; the log is damaged here")
            elif kind not in _ENTRIES and kind != "session" and text_of(value, "id") is None:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            else:
                name = text_of(value, "id") if kind == "session" else None
                if name is not None and name != naming.key:
                    yield from naming.begin(name)
                yield from naming.take(record, value.get("timestamp"), parent_of(value) if name is not None else None)
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of the sessions of a family."""
        found = sessions(family)
        for key in sorted(found):
            yield from conversations(key, found)


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind is None or "timestamp" not in value:
        return 0.0
    if kind == "session":
        return 0.95 if text_of(value, "id") and text_of(value, "cwd") else 0.0
    if kind == "message":
        message = dict_of(value, "message")
        role = text_of(message, "role")
        if role in ("toolResult", "bashExecution") or (role == "assistant" and "stopReason" in message):
            return 0.95
        return 0.5 if role in _ROLES and "uuid" not in value else 0.0
    return 0.5 if kind in _ENTRIES else 0.0
