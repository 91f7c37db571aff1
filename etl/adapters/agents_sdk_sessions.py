"""Sessions of the OpenAI Agents SDK in its SQLite (or SQLAlchemy) store: an item of the Responses API a row.

Sessions with branches say in a table of their own which items each branch has, and what its turns used; a branch is a
row that inherits what it has in common with earlier ones. What is encrypted cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_responses import RESPONSES
from etl.adapters._api_rows import joined_pieces
from etl.adapters._chat import parsed
from etl.adapters._claude_lines import is_global
from etl.adapters._records import left
from etl.adapters._rollouts import obj
from etl.adapters._session import summed, whole
from etl.adapters._sqlite import has_column, records
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Tokens, Unusable
from etl.decode import Decoded, decode, encode
from etl.framing import Framed, Limits
from etl.identity import digest

_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
"""A time of SQLite's own clock, which is UTC."""
_MAIN = "main"
_SILENT = "silent_session"


class AgentsSdkSessions(Adapter):
    """Session databases of the OpenAI Agents SDK."""

    name = "agents_sdk_sessions"
    about = "OpenAI Agents SDK: SQLite sessions (agent_sessions, agent_messages), with branches and usage of turns"
    splits = True
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        tables = {"agent_messages": _item_row, "message_structure": _row, "turn_usage": _row, "agent_sessions": _row}
        return records(blocks, limits, tables)

    def score(self, sample: Sample) -> float:
        """By its tables."""
        return 0.95 if has_column(sample.head, "agent_messages", "message_data") else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each session."""
        sessions: dict[str, _Session] = {}
        for record in records:
            value = record.value
            name = value.get("session_id") if isinstance(value, dict) else None
            if not isinstance(name, str):
                yield Unusable(record, "no_session", "a row of a session has its id; this has none")
            elif "item" in value and (not isinstance(value["item"], dict) or "__enc__" in value["item"]):
                why = "encrypted" if isinstance(value["item"], dict) else "no_item"
                yield Unusable(record, why, "the item of a session cannot be read: encrypted, or no object")
            else:
                sessions.setdefault(name, _Session()).add(record, value)
        for name, session in sessions.items():
            yield from session.rows(name)


def _row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row as it is; times of the database's own clock have its zone."""
    told = {key: item for key, item in row.items() if item is not None and not isinstance(item, bytes)}
    for key in ("created_at", "updated_at"):
        if isinstance(told.get(key), str) and _CLOCK.fullmatch(told[key]):
            told[key] += "Z"
    return Decoded(told)


def _item_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `agent_messages` with its item opened."""
    told = _row(row, limits)
    text = row.get("message_data")
    if told is None or not isinstance(text, str):
        return told
    found = decode(text.encode("utf-8", "surrogatepass"))
    value = {key: item for key, item in told.value.items() if key != "message_data"}
    return Decoded({**value, "item": found.value}, found.notes, found.mended)


class _Session:
    """The rows of one session."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.items: dict[int, dict[str, Any]] = {}
        self.branches: dict[str, list[tuple[int, int]]] = {}
        self.usage: dict[str, list[Tokens]] = {}
        self.about: dict[str, Any] = {}

    def add(self, record: Record, value: dict[str, Any]) -> None:
        """Sort a row in by what it has."""
        self.records.append(record)
        branch = value.get("branch_id")
        branch = branch if isinstance(branch, str) else _MAIN
        if "item" in value:
            number = whole(value.get("id"))
            self.items[number if number is not None and number not in self.items else (1 << 62) + len(self.items)] = (
                value
            )
        elif whole(value.get("message_id")) is not None:
            place = whole(value.get("sequence_number")) or 0
            self.branches.setdefault(branch, []).append((place, value["message_id"]))
        elif "user_turn_number" in value:
            self.usage.setdefault(branch, []).append(_usage(value) or Tokens())
        else:
            self.about |= value

    def rows(self, name: str) -> Iterator[Outcome]:
        """The main branch, then the others."""
        if not self.items:
            yield Ignored(_SILENT, len(self.records))
            return
        ways = {branch: [number for _, number in sorted(places)] for branch, places in self.branches.items()}
        placed = {number for way in ways.values() for number in way}
        main = [number for number in ways.get(_MAIN, ()) if number in self.items]
        main += sorted(number for number in self.items if number not in placed)
        key = name if is_global(name) else f"{name}@{self._begun()}"
        owner: dict[int, str] = {}
        for branch in [_MAIN, *(branch for branch in ways if branch != _MAIN)]:
            way = main if branch == _MAIN else [number for number in ways[branch] if number in self.items]
            if not set(way) - owner.keys():
                continue
            shared = [number for number in way if number in owner]
            row = self._row(key, way, owner)
            row.conversation_id, row.branch = name, "" if branch == _MAIN else branch
            row.records = self.records if not owner else self.records[:1]
            if owner:
                row.parent = Identity(key, branch=owner[shared[-1]] if shared else "")
            row.usage = summed(each for each in self.usage.get(branch, ()) if each != Tokens())
            for number in way:
                owner.setdefault(number, row.branch)
            yield row

    def _begun(self) -> str:
        """What tells sessions of one name apart: the first item with its time."""
        first = self.items[min(self.items)]
        told = encode([first.get("created_at"), first["item"]])
        return digest(told.encode("utf-8", "surrogatepass"))

    def _row(self, key: str, way: list[int], owner: dict[int, str]) -> Conversation:
        messages: list[Message] = []
        for number in way:
            value = self.items[number]
            read = RESPONSES.message(value["item"])
            for message in read:
                message.at = message.at or value.get("created_at")
                message.inherited = number in owner
            messages += read
        ends = [self.items[number].get("created_at") for number in way]
        return Conversation(
            joined_pieces(messages),
            [],
            native_id=key,
            task_from_prompt=True,
            agent="openai-agents",
            started_at=self.about.get("created_at") if not owner else None,
            ended_at=ends[-1] if ends else None,
            extra=left(self.about, ("session_id", "created_at", "updated_at")) if not owner else None,
            n_records=len(self.items),
        )


def _usage(value: dict[str, Any]) -> Tokens | None:
    """What a turn used, over all its requests."""
    told = {key: value.get(key) for key in ("input_tokens", "output_tokens")}
    for key in ("input_tokens_details", "output_tokens_details"):
        found = value.get(key)
        told[key] = parsed(found) if isinstance(found, str) else obj(value, key)
    return tokens(told)
