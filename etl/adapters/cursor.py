"""Cursor: transcripts of its agent (JSON Lines, text in older versions), streams and `store.db` of the CLI, and
`state.vscdb` of the editor.

A transcript has neither ids nor times nor results: it is known by its lines up to the model's first. In the databases
a chat has an id of its own: messages as blobs, listed in order by the latest root; bubbles, listed by their composer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._cursor_rows import chat, composer, tabs
from etl.adapters._cursor_store import tables
from etl.adapters._cursor_stream import Stream, is_line, is_sure
from etl.adapters._cursor_text import BEGINS, turns
from etl.adapters._session import canonical, dict_of, list_of, sessions, stored, text_of, without
from etl.adapters._sqlite import names_tables, records
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.framing import Framed, Limits
from etl.identity import digest

_ENDS = {"error": "error", "aborted": "aborted", "cancelled": "aborted"}
_BINARY = "binary_blob"
_SILENT = "silent_chat"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_FOREIGN = frozenset({"type", "uuid", "timestamp", "sessionId", "session_id", "parentUuid", "payload"})


class Cursor(Adapter):
    """Chats of Cursor."""

    name = "cursor"
    version = 3
    about = "Cursor: agent transcripts (lines of {role, message}), stream-json and store.db of the CLI, state.vscdb"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _BINARY: "a blob of a database that is neither a message nor a list of messages",
        _SILENT: "a record of a chat in which nobody says anything",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of a database, turns of a transcript as text, or JSON."""
        first = next(blocks, b"")
        rest = itertools.chain([first], blocks)
        return turns(rest, limits) if BEGINS.match(first) else records(rest, limits, tables())

    def score(self, sample: Sample) -> float:
        """By the tables of a database; else the share of lines of a transcript."""
        if names_tables(sample.head, "cursorDiskKV") or names_tables(sample.head, "blobs", "meta"):
            return 0.95
        if BEGINS.match(sample.head) and re.search(rb"^assistant:[ \t]*\r?$|^<user_query>", sample.head, re.MULTILINE):
            return 0.9
        if any(is_sure(value) for value in sample.values):
            return 0.95 * sum(1 for value in sample.values if is_line(value)) / len(sample.values)
        hits = sum(1 for value in sample.values if _is_line(value))
        return 0.95 * hits / len(sample.values) if hits and not sample.array else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """Fragments of a database under their chat; of a transcript one conversation."""
        transcript: list[Record] = []
        agent: str | None = None
        for record in records:
            value = record.value
            if _is_line(value) or _is_end(value):
                transcript.append(record)
            elif is_line(value):
                yield Fragment(record, value["session_id"], at=value.get("timestamp_ms"))
            elif isinstance(value, dict) and "meta" in value:
                agent = text_of(dict_of(value, "value"), "agentId") or agent
                at = dict_of(value, "value").get("createdAt")
                yield Fragment(record, agent or f"h_{digest(record.raw)}", at=at)
            elif isinstance(value, dict) and isinstance(value.get("blob"), str):
                if isinstance(value.get("value"), dict) or isinstance(value.get("refs"), list):
                    yield Fragment(record, agent or f"h_{digest(value['blob'].encode())}")
                else:
                    yield Ignored(_BINARY)
            elif isinstance(value, dict) and isinstance(value.get("key"), str):
                yield from _kept(record, value)
            else:
                yield Unusable(record, "no_message", "a line of a transcript has a role and a message")
        if any(_is_line(record.value) for record in transcript):
            yield _transcript(transcript)
        elif transcript:
            yield Ignored(_SILENT, len(transcript))

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each chat of a database."""
        for key, events in sorted(sessions(family).items()):
            values = [value for event in events if isinstance(value := stored(event), dict)]
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            made.agent = "cursor"
            if any(is_line(value) for value in values):
                made = Stream(values).tell(made)
            elif any("blob" in value or "meta" in value for value in values):
                made = _stored_chat(made, values)
            else:
                made = _edited(made, values)
            if made.messages:
                yield made
            else:
                yield from (Ignored(_SILENT, 1, event.record) for event in events)


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict) or _FOREIGN & value.keys():
        return False
    return value.get("role") in ("user", "assistant") and "content" in dict_of(value, "message")


def _kept(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    """A value of the editor's store, under the chat that its key names."""
    key, inner = value["key"], value.get("value")
    if key == _TABS:
        found = tabs(inner)
        for name, talk in found:
            made = Conversation([], [record], native_id=name, conversation_id=name, agent="cursor")
            yield talk.tell(made)
        if not found:
            yield Ignored(_SILENT)
        return
    parts = key.split(":")
    if len(parts) >= 2 and parts[1] and isinstance(inner, dict):
        at = inner.get("createdAt")
        yield Fragment(record, parts[1], at=at)
    elif list_of(inner, "allComposers"):
        yield Ignored(_SILENT)
    else:
        yield Unusable(record, "no_chat", "a value of the store names its chat in its key, and is a JSON object")


def _is_end(value: Any) -> bool:
    """A line that says how a turn ended."""
    return isinstance(value, dict) and value.get("type") == "turn_ended" and "role" not in value


def _transcript(records: list[Record]) -> Conversation:
    """The conversation of the lines; how its last turn ended counts where nothing follows."""
    lines = [record for record in records if _is_line(record.value)]
    ends = [without(record.value, "type") for record in records if _is_end(record.value)]
    made_by = next((n for n, record in enumerate(lines) if record.value["role"] == "assistant"), len(lines) - 1)
    key = digest("\n".join(canonical(record.value) for record in lines[: made_by + 1]).encode())
    made = Conversation([], records, native_id=f"first:{key}", agent="cursor")
    made = chat([record.value for record in lines]).tell(made)
    if ends:
        made.extra = {**(made.extra or {}), "turn_ended": ends}
    last = records[-1].value
    if _is_end(last):
        made.status, made.error = _ENDS.get(text_of(last, "status") or ""), text_of(last, "error")
    return made


def _stored_chat(made: Conversation, values: list[dict[str, Any]]) -> Conversation:
    """A chat of the CLI: the messages that the latest root lists; all in their order where it is not there."""
    meta: dict[str, Any] = {}
    for value in values:
        if "meta" in value:
            meta = {**meta, **dict_of(value, "value")}
    blobs = {value["blob"]: value for value in values if isinstance(value.get("blob"), str)}
    root = blobs.get(text_of(meta, "latestRootBlobId") or "", {})
    listed = [name for name in list_of(root, "refs") if isinstance(name, str)]
    messages = [dict_of(blobs[name], "value") for name in listed if name in blobs and "value" in blobs[name]]
    if not messages:
        messages = [dict_of(blob, "value") for blob in blobs.values() if "value" in blob]
        listed = list(blobs)
    talk = chat(messages)
    talk.model = text_of(meta, "lastUsedModel")
    made.started_at = meta.get("createdAt")
    left = [blob["value"] for name, blob in blobs.items() if "value" in blob and name not in listed]
    made.extra = {**without(meta, "agentId", "createdAt", "latestRootBlobId", "lastUsedModel")}
    if left:
        made.extra["unlisted"] = left
    if any(name not in blobs for name in listed):
        talk.flags.add("truncated_source")
    made.extra = made.extra or None
    return talk.tell(made)


def _edited(made: Conversation, values: list[dict[str, Any]]) -> Conversation:
    """A chat of the editor: of its data and of each bubble the version that says most."""
    data: dict[str, Any] = {}
    bubbles: dict[str, dict[str, Any]] = {}
    for value in values:
        key, inner = text_of(value, "key") or "", dict_of(value, "value")
        if key.startswith("composerData:"):
            data = max(data, inner, key=lambda each: len(canonical(each)))
        else:
            name = text_of(inner, "bubbleId") or key.rpartition(":")[2]
            bubble = {**inner, "bubbleId": name}
            bubbles[name] = max(bubbles.get(name, {}), bubble, key=lambda each: len(canonical(each)))
    return composer(made, data, bubbles)
