"""Zendesk's table of ticket comments, as warehouses and CSV exports have it: a comment a row, `ticket_id` in each.

A ticket is a conversation, put together from all files. Comments that are not public were never seen by the requester:
they are in `extra.internal_notes`. Where no column tells who is an agent, whoever wrote an internal note is one, and
the first other person who speaks in public is the requester; the flag `roles_inferred` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._html import text_of_html
from etl.adapters._rollouts import text
from etl.conversation import Conversation, Fragment, Ignored, Message, Outcome, Record, StoredEvent, Unusable
from etl.decode import encode
from etl.times import instant

_AUTHORS = ("user_id", "author_id")
_TIMES = ("created", "created_at")
_ROLES = ("author_role", "user_role", "role")
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")
_HELD = frozenset({"id", "body", "public", "ticket_id", *_AUTHORS, *_TIMES})


class ZendeskComments(Adapter):
    """Comments of Zendesk tickets in a table."""

    name = "zendesk_comments"
    version = 1
    about = "Zendesk ticket comments as a table (CSV or Parquet): a comment a row, tickets put together"
    scores_share = True
    spans_files = True

    def score(self, sample: Sample) -> float:
        """Sure of rows with a ticket, an author, a body and whether they are public."""
        if not sample.values:
            return 0.0
        return sum(0.92 for value in sample.objects() if _is_comment(value)) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every comment, under its ticket."""
        for record in records:
            if _is_comment(record.value):
                ticket = identifier(record.value["ticket_id"]) or ""
                yield Fragment(record, ticket, at=_first(record.value, _TIMES))
            else:
                yield Unusable(record, "bad_message", "a comment has a ticket_id, a body, an author and `public`")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The comments of one ticket in the order of their times; one that came twice counts once."""
        found: dict[str, Record] = {}
        for event in family:
            value = event.record.value
            name = identifier(value.get("id")) or encode(value)
            if name not in found or encode(found[name].value) < encode(value):
                found[name] = event.record
        records = sorted(found.values(), key=lambda record: (_at(record.value), _number(record.value.get("id"))))
        values = [record.value for record in records]
        notes = [value for value in values if _public(value) is False]
        shown = [value for value in values if _public(value) is not False]
        agents = {_author(value) for value in notes}
        requester = next((_author(value) for value in shown if _author(value) not in agents), None)
        told = all(text(_first(value, _ROLES)) for value in shown)
        flags = {"content_not_captured"} if notes and not shown else set()
        key = family[0].key
        yield Conversation(
            [_message(value, requester) for value in shown],
            records,
            native_id=f"zendesk_ticket:{key}",
            conversation_id=key,
            task_from_prompt=True,
            n_records=len(family),
            flags=flags | ({"roles_inferred"} if shown and not told else set()) or None,
            extra={"internal_notes": notes} if notes else None,
        )


def _is_comment(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"ticket_id", "body", "public"} <= value.keys()
        and identifier(value["ticket_id"]) is not None
        and any(key in value for key in _AUTHORS)
        and _public(value) is not None
    )


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if value.get(key) not in (None, "")), None)


def _public(value: dict[str, Any]) -> bool | None:
    """Whether the requester saw it, in any of the spellings that tables have."""
    logged = value.get("public")
    if isinstance(logged, bool):
        return logged
    said = plain(logged).strip().lower()
    return True if said in _TRUE else False if said in _FALSE else None


def _author(value: dict[str, Any]) -> str | None:
    return identifier(_first(value, _AUTHORS))


def _at(value: dict[str, Any]) -> int:
    """Comments without a time come first."""
    return instant(_first(value, _TIMES)).micros or 0


def _number(name: Any) -> tuple[int, str]:
    shown = identifier(name) or ""
    return (int(shown) if shown.isdecimal() and len(shown) < 19 else 0, shown)


def _message(value: dict[str, Any], requester: str | None) -> Message:
    body = plain(value.get("body"))
    said, images, rich = text_of_html(body)
    role = (text(_first(value, _ROLES)) or "").lower()
    person = (
        role in ("end-user", "end_user", "enduser", "customer", "requester") if role else _author(value) == requester
    )
    rest = {key: item for key, item in value.items() if key not in _HELD and item not in (None, "")}
    if rich:
        rest["body"] = body
    return Message(
        "user" if person else "assistant",
        said,
        name=_author(value),
        id=identifier(value.get("id")),
        at=_first(value, _TIMES),
        parts=[{"type": "image", "url": url} for url in images] or None,
        extra=rest or None,
    )
