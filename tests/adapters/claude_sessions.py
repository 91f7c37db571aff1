"""Lines of Claude Code sessions as tests write them, and the way from lines to rows without files or a lake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from etl.adapter import FileContext
from etl.adapters.claude_code import ClaudeCode
from etl.columns import rollouts_table
from etl.conversation import Conversation, Fragment, Record, StoredEvent
from etl.identity import digest
from etl.normalise import FileMemory, Stream, normalise
from etl.times import instant

CLAUDE = ClaudeCode()


class Session:
    """Writes the lines of one session; `last` is the line that the next one follows."""

    def __init__(self, name: str = "s-1", *, agent: str | None = None, minute: int = 0) -> None:
        self.name = name
        self.agent = agent
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None
        self.second = minute * 60

    def line(self, kind: str, *, parent: str | None = "", **keys: Any) -> dict[str, Any]:
        """Any line; `parent` is the last one where none (or None) is given."""
        self.second += 1
        uuid = f"{self.name}-{self.agent or ''}{len(self.lines)}"
        value: dict[str, Any] = {
            "parentUuid": self.last if parent == "" else parent,
            "isSidechain": self.agent is not None,
            "sessionId": self.name,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-02-03T10:{self.second // 60:02}:{self.second % 60:02}.000Z",
        }
        if self.agent is not None:
            value["agentId"] = self.agent
        value.update(keys)
        self.last = uuid
        self.lines.append(value)
        return value

    def user(self, content: Any, **keys: Any) -> dict[str, Any]:
        """A user line."""
        return self.line("user", message={"role": "user", "content": content}, **keys)

    def result(self, call_id: str | None, content: Any, **keys: Any) -> dict[str, Any]:
        """A user line that brings the result of a call."""
        block = {"type": "tool_result", "content": content}
        if call_id is not None:
            block["tool_use_id"] = call_id
        if "is_error" in keys:
            block["is_error"] = keys.pop("is_error")
        return self.user([block], **keys)

    def assistant(self, *blocks: Any, id: str | None = None, tokens: int = 5, **keys: Any) -> dict[str, Any]:
        """The line or lines of one response: a block each."""
        name = id or f"msg-{self.name}-{self.agent or ''}{len(self.lines)}"
        for number, block in enumerate(blocks):
            made = self.line("assistant", **(keys if number == 0 else {k: v for k, v in keys.items() if k != "parent"}))
            made["message"] = {
                "id": name,
                "type": "message",
                "role": "assistant",
                "model": "claude-demo-4",
                "content": [block],
                "stop_reason": None if number < len(blocks) - 1 else "end_turn",
                "usage": {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 10,
                          "output_tokens": tokens if number == len(blocks) - 1 else 1},
            }  # fmt: skip
        return made


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def call(id: str | None, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    """A call block."""
    block: dict[str, Any] = {"type": "tool_use", "name": name, "input": arguments}
    if id is not None:
        block["id"] = id
    return block


def events(files: Mapping[str, Iterable[Any]]) -> list[StoredEvent]:
    """What is stored of files (name → lines): each record once, as the file that was read first has it."""
    stored: dict[tuple[str, str], StoredEvent] = {}
    for name, lines in files.items():
        records, offset = [], 0
        for number, line in enumerate(lines, 1):
            raw = json.dumps(line).encode()
            records.append(Record(json.loads(raw), raw, number, offset))
            offset += len(raw) + 1
        for outcome in CLAUDE.parse(iter(records), FileContext(name)):
            if isinstance(outcome, Fragment):
                record, kept = outcome.record, outcome.record.raw
                if outcome.payload is not None:
                    record = msgspec.structs.replace(record, value=outcome.payload)
                    kept = msgspec.json.encode(outcome.payload, order="deterministic")
                event = StoredEvent(outcome.key, record, outcome.link, instant(outcome.at).micros, name)
                stored.setdefault((outcome.key, digest(kept)), event)
    return list(stored.values())


def assembled(stored: Iterable[StoredEvent]) -> list[Conversation]:
    """The conversations of stored events, all of them one family, in the order in which a lake gives them."""
    order = sorted(stored, key=lambda event: (event.key, event.at or 0, event.source_uri, event.record.offset or 0))
    return [outcome for outcome in CLAUDE.assemble(order) if isinstance(outcome, Conversation)]


def rows(*files: Iterable[Any], **named: Iterable[Any]) -> list[dict[str, Any]]:
    """Lines into rows: each argument is a file."""
    return rows_of(events({**{f"/logs/{number}.jsonl": lines for number, lines in enumerate(files)}, **named}))


def rows_of(stored: Iterable[StoredEvent]) -> list[dict[str, Any]]:
    """Stored events into rows, JSON columns opened."""
    memory, stream = FileMemory(), Stream("test", CLAUDE.name, CLAUDE.version, "/logs")
    made = [normalise(conversation, stream, memory) for conversation in assembled(stored)]
    found: list[dict[str, Any]] = rollouts_table(made, "b_test", 0).to_pylist()
    for row in found:
        row["extra"] = json.loads(row["extra"] or "{}")
        for info in row["message_info"]:
            info["extra"] = json.loads(info["extra"] or "{}")
            info["parts"] = json.loads(info["parts"] or "[]")
    return found


def said(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message, in order; what the program wrote as `program`."""
    return [
        ("program" if info["synthetic"] else message["role"], message["content"])
        for message, info in zip(row["messages"], row["message_info"], strict=True)
    ]
