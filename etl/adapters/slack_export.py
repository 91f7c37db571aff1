"""Slack exports: arrays of a channel's messages, a file a day. A thread is a conversation, whichever files it lies in.

What a bot or an app posted is the assistant's; people are users, told apart by `name`. A reply that was broadcast to
the channel repeats the message it replies to, which is used where that message itself is not there. Comings and goings
in a channel are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.conversation import Conversation, Fragment, Ignored, Message, Outcome, Record, StoredEvent, Unusable

_EVENTS = frozenset(
    {
        "channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name", "channel_archive",
        "channel_unarchive", "group_join", "group_leave", "group_topic", "group_purpose", "group_name", "bot_add",
        "bot_remove", "pinned_item", "unpinned_item", "channel_convert_to_private", "channel_posting_permissions",
        "reminder_add", "sh_room_created", "tombstone",
    }
)  # fmt: skip
_HELD = frozenset({"type", "text", "user", "ts", "thread_ts", "files", "root"})

_INLINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})
_DEEPEST = 8
"""Blocks within blocks: a list of texts in a quote of a message has four."""


class SlackExport(Adapter):
    """Threads of a Slack workspace export."""

    name = "slack_export"
    version = 2
    about = "Slack exports: a channel's messages, a file a day; a thread is a conversation, bots are the assistant"
    scores_share = True
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {"channel_event": "somebody joined or left, a topic was set: nothing was said"}

    def score(self, sample: Sample) -> float:
        """Sure of messages with Slack's own time stamps."""
        if not sample.values:
            return 0.0
        return sum(0.9 for value in sample.objects() if _is_message(value)) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every message, under the time stamp of the thread's first."""
        for record in records:
            value = record.value
            if not _is_message(value):
                yield Unusable(
                    record, "bad_message", "a message is an object with a `ts` in seconds and a text or files"
                )
            elif value.get("subtype") in tuple(_EVENTS):
                yield Ignored("channel_event")
            else:
                yield Fragment(record, identifier(value.get("thread_ts")) or value["ts"], at=value["ts"])

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The messages of one thread in the order of their time stamps; a message that came twice counts once."""
        said: dict[str, Record] = {}
        for event in family:
            known = said.get(event.record.value["ts"])
            if known is None or _raw(known) < _raw(event.record):
                said[event.record.value["ts"]] = event.record
        values = [said[ts].value for ts in sorted(said, key=_place)]
        key = family[0].key
        if key not in said:
            root = next((value["root"] for value in values if isinstance(value.get("root"), dict)), None)
            if root is not None and _is_message(root) and root["ts"] == key:
                values.insert(0, root)
        logged = (identifier(value.get("channel_name") or value.get("channel")) for value in values)
        names = {name for name in logged if name}
        yield Conversation(
            [_message(value) for value in values],
            [said[ts] for ts in sorted(said, key=_place)],
            native_id=f"slack:{key}",
            conversation_id=key,
            n_records=len(family),
            flags={"ambiguous_parent"} if values[0]["ts"] != key else None,
            extra={"channels": sorted(names)} if names else None,
        )


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    ts = value.get("ts")
    seconds, dot, micros = ts.partition(".") if isinstance(ts, str) else ("", "", "")
    stamped = bool(dot) and seconds.isdecimal() and micros.isdecimal() and len(ts or "") <= 24
    return stamped and (isinstance(value.get("text"), str) or isinstance(value.get("files"), list))


def _place(ts: str) -> tuple[int, str]:
    seconds, _, micros = ts.partition(".")
    return int(seconds), micros


def _raw(record: Record) -> bytes:
    return msgspec.json.encode(record.value)


def _message(value: dict[str, Any]) -> Message:
    """One post. Blocks that only repeat the text stay with the other keys; a post without text says what they say."""
    bot = value.get("bot_id") is not None or value.get("subtype") == "bot_message"
    extra = {key: item for key, item in value.items() if key not in _HELD and item is not None}
    name = identifier(value.get("user"))
    if name is None and value.get("user") is not None:
        extra["user"] = value["user"]
    files = value.get("files")
    if files is not None and not isinstance(files, list):
        extra["files"] = files
    if value.get("root") is not None and not isinstance(value["root"], dict):
        extra["root"] = value["root"]
    return Message(
        "assistant" if bot else "user",
        plain(value.get("text")) or _laid_out(value),
        name=name or identifier(value.get("username")),
        id=value["ts"],
        at=value["ts"],
        parts=files if isinstance(files, list) and files else None,
        extra=extra or None,
    )


def _laid_out(value: dict[str, Any]) -> str:
    """The text of a post that says it in blocks or attachments alone, as apps post."""
    lines = [text for block in _listed(value, "blocks") if (text := _block(block))]
    for attachment in _listed(value, "attachments"):
        lines += [text for key in ("pretext", "title", "text") if (text := plain(attachment.get(key)))]
        lines += [text for block in _listed(attachment, "blocks") if (text := _block(block))]
        if not lines and attachment.get("fallback"):
            lines.append(plain(attachment["fallback"]))
    return "\n".join(lines)


def _listed(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = value.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _block(block: dict[str, Any], depth: int = 0) -> str:
    """What a block shows: the elements of a text one after the other, everything else on lines."""
    kind = block.get("type")
    said = block.get("text")
    if kind in ("user", "channel", "usergroup", "broadcast"):
        return f"<{'@' if kind == 'user' else '#' if kind == 'channel' else '!'}{plain(block.get(f'{kind}_id'))}>"
    if kind == "emoji":
        return f":{plain(block.get('name'))}:"
    if kind == "link":
        return plain(said) or plain(block.get("url"))
    if isinstance(said, str):
        return said
    pieces = [said] if isinstance(said, dict) else []
    pieces += [*_listed(block, "fields"), *_listed(block, "elements")]
    texts = [_block(piece, depth + 1) for piece in pieces] if depth < _DEEPEST else []
    return ("" if kind in _INLINE else "\n").join(text for text in texts if text)
