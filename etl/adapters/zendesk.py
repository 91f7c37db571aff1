"""Zendesk ticket exports: a ticket with its `comments`, in it or beside it, a line or an array element.

Comments of the requester are the user's, those of anybody else the assistant's, told apart by `name`. Internal notes
(`public: false`) were never seen by the requester: they are not in the transcript but in `extra.internal_notes`.
Comments are put in the order of their times, which is not always that of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter
from etl.conversation import Conversation, Message, Outcome, Record, Unusable
from etl.identity import digest
from etl.times import instant

_TEXTS = ("plain_body", "body", "html_body")
_HELD = frozenset({"id", "author_id", "created_at", "attachments"})


class Zendesk(RecordAdapter):
    """Support tickets with their comments."""

    name = "zendesk"
    version = 1
    about = "Zendesk tickets with comments, one a line or an array element; internal notes are kept apart"
    expects = "a ticket is a JSON object with a list `comments`"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of tickets whose comments have authors and say whether they are public."""
        return 0.9 if _is_ticket(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One ticket."""
        yield _outcome(record, value)


def _is_ticket(value: dict[str, Any]) -> bool:
    ticket, comments = _parts(value)
    return (
        isinstance(comments, list)
        and bool(comments)
        and "requester_id" in ticket
        and all(isinstance(item, dict) and {"author_id", "public"} <= item.keys() for item in comments[:8])
    )


def _parts(value: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The ticket and its comments, which lie in it or beside it."""
    inner = value.get("ticket")
    ticket = inner if isinstance(inner, dict) else value
    return ticket, value.get("comments", ticket.get("comments"))


def _outcome(record: Record, value: dict[str, Any]) -> Outcome:
    ticket, comments = _parts(value)
    if not isinstance(comments, list) or not all(isinstance(item, dict) for item in comments):
        return Unusable(record, "no_messages", "a ticket has a list `comments` of objects; this has none")
    requester = identifier(ticket.get("requester_id"))
    shown = [item for item in comments if item.get("public") is not False]
    notes = [item for item in comments if item.get("public") is False]
    rest = {key: item for key, item in ticket.items() if key not in ("comments", "created_at") and item is not None}
    if ticket is not value:
        rest.update({key: item for key, item in value.items() if key not in ("ticket", "comments")})
    native = identifier(ticket.get("id"))
    if native is not None:
        del rest["id"]
    if notes:
        rest["internal_notes"] = notes
    messages = [_message(item, requester) for item in sorted(shown, key=_when)]
    # A ticket grows, and its number is unique within one help desk, which only its address names.
    desk = plain(ticket.get("url")).partition("/api/")[0]
    first = comments[0] if comments else None
    begun = digest(plain([native, ticket.get("created_at"), requester, first if native is None else None]).encode())
    return Conversation(
        messages,
        (record,),
        native_id=f"zendesk:{desk}/{begun}",
        conversation_id=native,
        started_at=ticket.get("created_at"),
        task_from_prompt=True,
        flags={"content_not_captured"} if notes and not messages else None,
        extra=rest or None,
        n_records=max(1, len(comments)),
    )


def _when(comment: dict[str, Any]) -> int:
    """Comments without a time stay where they are, before those that have one."""
    return instant(comment.get("created_at")).micros or 0


def _message(comment: dict[str, Any], requester: str | None) -> Message:
    author = identifier(comment.get("author_id"))
    key = next((key for key in _TEXTS if isinstance(comment.get(key), str)), None)
    text = comment[key] if key is not None else ""
    same = {name for name in _TEXTS if name == key or comment.get(name) == text}
    attached = comment.get("attachments")
    extra = {name: item for name, item in comment.items() if name not in _HELD | same and item is not None}
    if attached is not None and not isinstance(attached, list):
        extra["attachments"] = attached
    if author is None and comment.get("author_id") is not None:
        extra["author_id"] = comment["author_id"]
    return Message(
        "user" if author is not None and author == requester else "assistant",
        text,
        name=author,
        id=identifier(comment.get("id")),
        at=comment.get("created_at"),
        parts=attached if isinstance(attached, list) and attached else None,
        extra=extra or None,
    )
