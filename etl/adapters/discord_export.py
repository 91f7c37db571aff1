"""Discord channels as DiscordChatExporter writes them: `{guild, channel, messages}`, a file a channel or a part of one.

A thread and a direct channel are a conversation each. In other channels a message with all replies to it, and to those,
is one. What a bot posted is the assistant's; people are users, told apart by `name`. Ids are unique over all Discord,
so that exports that overlap are one; the copy with more of a conversation stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain
from etl.adapters._records import ClaimAdapter, left, part
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable

_SAID = frozenset(
    {"Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "ThreadStarterMessage", "0", "19", "20"}
)
_WHOLE = frozenset(
    {
        *("GuildPublicThread", "GuildPrivateThread", "GuildNewsThread"),
        *("DirectTextChat", "DirectGroupTextChat", "PrivateThread", "PublicThread"),
    }
)
"""Kinds of channels that are a conversation."""
_HELD = frozenset({"id", "type", "timestamp", "content", "author", "attachments", "embeds", "stickers", "reference"})
_EVENT = "channel_event"
_EMPTY = "empty_channel"


class DiscordExport(ClaimAdapter):
    """Channels that DiscordChatExporter exported as JSON."""

    name = "discord_export"
    about = (
        "Discord channels of DiscordChatExporter: {guild, channel, messages}; threads and chains of replies are rows"
    )
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        _EVENT: "somebody joined, a message was pinned, a call began: nothing was said",
        _EMPTY: "a channel without messages",
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a guild and a channel with messages that have authors."""
        if not {"guild", "channel"} <= value.keys() or not isinstance(value.get("messages"), list):
            return 0.0
        first = value["messages"][:4]
        return 0.97 if all(isinstance(each, dict) and {"id", "author"} <= each.keys() for each in first) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The conversations of each channel."""
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
                yield Unusable(
                    record, "no_messages", "an export is an object with a channel and its messages; this is none"
                )
                continue
            yield from _channel(record, value)


def _channel(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    channel = obj(value, "channel")
    about = {key: value[key] for key in ("guild", "channel") if key in value}
    whole = identifier(channel.get("id")) if text(channel.get("type")) in _WHOLE else None
    chains: dict[str, list[dict[str, Any]]] = {}
    chain_of: dict[str, str] = {}
    broken: set[str] = set()
    events = 0
    for each in value["messages"]:
        name = identifier(each.get("id")) if isinstance(each, dict) else None
        if name is None or not isinstance(each.get("author"), dict):
            own = part(record, {**about, "messages": [each]})
            yield Unusable(own, "bad_message", "a message is an object with an id and an author; this is none")
            continue
        if str(each.get("type", "Default")) not in _SAID:
            events += 1
            continue
        above = identifier(obj(each, "reference").get("messageId"))
        key = whole or chain_of.get(above or "") or name
        if whole is None and above is not None and key == name:
            broken.add(key)
        chain_of[name] = key
        chains.setdefault(key, []).append(each)
    if not value["messages"]:
        yield Ignored(_EMPTY)
    if events:
        yield Ignored(_EVENT, events)
    for key, said in chains.items():
        made = Conversation(
            [_message(each) for each in said],
            (part(record, {**about, "messages": said}),),
            native_id=f"discord:{key}",
            conversation_id=key,
            n_records=len(said),
            flags={"ambiguous_parent"} if key in broken else None,
        )
        made.extra = {key: about[key] for key in about} or None
        yield made


def _message(value: dict[str, Any]) -> Message:
    author = obj(value, "author")
    said = plain(value.get("content")) or "\n".join(_laid_out(value))
    message = Message("assistant" if author.get("isBot") is True else "user", said)
    message.name = text(author.get("nickname")) or text(author.get("name"))
    message.id, message.at = identifier(value["id"]), value.get("timestamp")
    parts = [
        {"type": kind[:-1], **each} for kind in ("attachments", "embeds", "stickers") for each in _objects(value, kind)
    ]
    message.parts = parts or None
    rest = left(value, _HELD) or {}
    above = identifier(obj(value, "reference").get("messageId"))
    rest = {**rest, "reference": above, "author": left(author, ("name", "nickname", "isBot"))}
    message.extra = {key: item for key, item in rest.items() if item not in (None, "", [], {}, False)} or None
    return message


def _objects(value: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    return (each for each in items(value, key) if isinstance(each, dict))


def _laid_out(value: dict[str, Any]) -> Iterator[str]:
    """The texts of a post that says what it says in embeds alone, as bots post."""
    for embed in _objects(value, "embeds"):
        yield from (told for key in ("title", "description") if (told := text(embed.get(key))))
        for field in _objects(embed, "fields"):
            yield ": ".join(told for key in ("name", "value") if (told := text(field.get(key))))
