"""Intercom conversations, as its API and its data exports give them: a source and the parts that follow it.

Contacts, leads and users are the user, everybody else the assistant, told apart by `name`. Notes were never seen by
the contact: they are in `extra.internal_notes`; parts without a text (assignments, tags, closing) are in
`extra.events`. Bodies are HTML: the text is the message, and the HTML stays beside it where it says more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._html import text_of_html
from etl.adapters._records import RecordAdapter, left, part
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict
from etl.decode import encode
from etl.identity import digest
from etl.times import instant

_PERSONS = frozenset({"user", "lead", "contact", "visitor"})
_HELD = frozenset({"body", "author", "created_at", "id", "attachments", "type", "part_type"})
_TOP = frozenset(
    {"type", "id", "created_at", "source", "conversation_message", "conversation_parts", "conversation_rating"}
)


class Intercom(RecordAdapter):
    """Conversations of Intercom's inbox."""

    name = "intercom"
    version = 1
    about = "Intercom conversations: source and conversation_parts, one a record or in a list; notes are kept apart"
    expects = "a conversation is a JSON object with a source and its parts"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a source or first message with parts that have authors."""
        listed = _listed(value)
        return 0.95 if any(map(_is_conversation, listed[:4])) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One conversation, or those of a list."""
        listed = _listed(value)
        if listed == [value]:
            yield _outcome(record, value)
            return
        for found in listed:
            own = part(record, found)
            yield _outcome(own, found) if isinstance(found, dict) else Unusable(own, "no_messages", "no conversation")


def _listed(value: dict[str, Any]) -> list[Any]:
    found = items(value, "conversations")
    return found if found and value.get("type") in ("conversation.list", "list", None) else [value]


def _first(value: dict[str, Any]) -> dict[str, Any]:
    """What opened it: `source`, or `conversation_message` before version 2 of the API."""
    return obj(value, "source") or obj(value, "conversation_message")


def _parts(value: dict[str, Any]) -> list[Any]:
    """The parts, in the list object of the API or as a plain list."""
    found = value.get("conversation_parts")
    return found if isinstance(found, list) else items(found, "conversation_parts")


def _is_conversation(value: Any) -> bool:
    if not isinstance(value, dict) or "conversation_parts" not in value:
        return False
    parts = _parts(value)
    typed = all(isinstance(item, dict) and "part_type" in item for item in parts[:8])
    return typed and (bool(obj(_first(value), "author")) or any(isinstance(p, dict) and p.get("author") for p in parts))


def _outcome(record: Record, value: dict[str, Any]) -> Outcome:
    first, parts = _first(value), _parts(value)
    if not first and not parts:
        return Unusable(
            record, "no_messages", "a conversation has a `source` and `conversation_parts`; this has neither"
        )
    opening = {**first, "created_at": value.get("created_at")} if first else None
    said: list[dict[str, Any]] = (
        [opening] if opening and (text(opening.get("body")) or opening.get("attachments")) else []
    )
    notes: list[Any] = []
    events: list[Any] = []
    for item in parts:
        if not isinstance(item, dict):
            events.append(item)
        elif plain(item.get("part_type")).startswith("note"):
            notes.append(item)
        elif text(item.get("body")) or item.get("attachments"):
            said.append(item)
        else:
            events.append(left(item, ("type",)))
    messages = [
        _message(item, item is opening)
        for item in sorted(said, key=lambda item: instant(item.get("created_at")).micros or 0)
    ]
    rest = left(value, _TOP) or {}
    source = left(first, _HELD) if first else None
    parts_more = (
        left(value["conversation_parts"], ("conversation_parts", "type", "total_count"))
        if isinstance(value.get("conversation_parts"), dict)
        else None
    )
    for key, found in (("source", source), ("internal_notes", notes), ("events", events), ("parts", parts_more)):
        if found:
            rest[key] = found
    rated, verdict = _rating(value.get("conversation_rating"))
    if rated:
        rest["conversation_rating"] = rated
    native = identifier(value.get("id"))
    # Ids are unique within a workspace, which only the time and the first message tell from another.
    begun = digest(
        encode([native, value.get("created_at"), first.get("id"), first.get("body")]).encode("utf-8", "surrogatepass")
    )
    return Conversation(
        messages,
        (record,),
        native_id=f"intercom:{begun}",
        conversation_id=native,
        task_from_prompt=True,
        judgments=[verdict] if verdict else None,
        started_at=value.get("created_at"),
        flags={"content_not_captured"} if not messages else None,
        extra=rest or None,
        n_records=1 + len(parts),
    )


def _message(item: dict[str, Any], opening: bool) -> Message:
    author = obj(item, "author")
    body = plain(item.get("body"))
    said, images, rich = text_of_html(body)
    subject = text(item.get("subject")) if opening else None
    attached = [*items(item, "attachments"), *({"type": "image", "url": url} for url in images)]
    extra = {} if opening else left(item, _HELD) or {}
    if rich:
        extra["body"] = body
    if item.get("part_type") not in (None, "comment"):
        extra["part_type"] = item["part_type"]
    more = left(author, ("type", "id", "name"))
    if more:
        extra["author"] = more
    if author.get("type") not in (None, "user", "admin"):
        extra["author_type"] = author["type"]
    if author.get("name") and author.get("id"):
        extra["author_id"] = author["id"]
    if subject and text_of_html(subject)[0].strip():
        extra["subject"] = text_of_html(subject)[0]
    return Message(
        "user" if text(author.get("type")) in _PERSONS else "assistant",
        said,
        name=text(author.get("name")) or identifier(author.get("id")),
        id=identifier(item.get("id")),
        at=item.get("created_at"),
        parts=attached or None,
        extra=extra or None,
    )


def _rating(rating: Any) -> tuple[Any, Verdict | None]:
    """What a contact said of the conversation, and what of it no judgment holds."""
    if not isinstance(rating, dict) or type(rating.get("rating")) not in (int, float):
        return rating or None, None
    verdict = Verdict("conversation_rating", "human", float(rating["rating"]), reason=text(rating.get("remark")))
    return left(rating, ("rating", "remark")), verdict
