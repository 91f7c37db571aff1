"""Calls of model APIs, and the rows that they become: families are put together here as a lake would, in memory."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import msgspec

from etl.adapter import Adapter, FileContext, adapters
from etl.columns import rollouts_table
from etl.conversation import Conversation, Fragment, Record, StoredEvent
from etl.decode import decode
from etl.identity import digest
from etl.normalise import FileMemory, Stream, normalise
from etl.times import instant
from tests.contract.harness import check_row

API = adapters()["api_calls"]
URL = "https://api.openai.com/v1/chat/completions"
_encode = msgspec.json.Encoder(order="deterministic").encode


def say(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    """A chat message."""
    return {"role": role, "content": content, **more}


def called(call_id: str, **arguments: Any) -> dict[str, Any]:
    """An assistant's message that calls one tool."""
    function = {"name": "look", "arguments": json.dumps(arguments)}
    return say("assistant", None, tool_calls=[{"id": call_id, "type": "function", "function": function}])


def chat(
    name: str, history: list[dict[str, Any]], *answers: dict[str, Any], at: int = 0, **more: Any
) -> dict[str, Any]:
    """A pair of request and response at some second of the day."""
    choices = [
        {"index": index, "message": answer, "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop"}
        for index, answer in enumerate(answers)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    response = {"id": name, "model": "demo", "choices": choices, "usage": usage}
    if not answers:
        response = {"error": {"message": "overloaded"}}
    when = f"2026-04-24T01:{at // 60:02}:{at % 60:02}Z"
    return {
        "timestamp": when,
        "url": URL,
        "request": {"model": "demo", "messages": history},
        "response": response,
        **more,
    }


def agent(seed: int) -> list[dict[str, Any]]:
    """Calls of some agents at once: branches, calls sent again, failures, two choices, answers thrown away."""
    dice = random.Random(seed)
    calls: list[dict[str, Any]] = []
    for name_of_agent in range(2):
        histories = [[say("system", "Be brief."), say("user", f"Task {dice.randrange(2)}")]]
        for step in range(5):
            history = dice.choice(histories)
            name, at = f"{name_of_agent}.{step}", dice.randrange(300)
            if dice.random() < 0.15:
                calls.append(chat(name, history, at=at))
                continue
            answers = [say("assistant", f"Answer {dice.randrange(3)}") for _ in range(dice.choice([1, 1, 2]))]
            calls.append(chat(name, history, *answers, at=at))
            histories.append([*history, dice.choice(answers), say("user", f"Go on {dice.randrange(2)}")])
            if dice.random() < 0.2:
                histories.append([*history, say("assistant", "never logged"), say("user", "What?")])
            if dice.random() < 0.3:
                good = called(f"c{name}", n=dice.randrange(2))
                calls.append(chat(f"{name}!", [*history, answers[0], say("user", "Call!")], good, at=at + 1))
                histories.append([*history, good, say("tool", "done", tool_call_id=f"c{name}")])
    return calls


def events(values: Iterable[Any], adapter: Adapter = API, uri: str = "/logs/a.jsonl") -> list[StoredEvent]:
    """What is stored of the records of one file."""
    records = []
    for line, value in enumerate(values, 1):
        raw = json.dumps(value).encode()
        decoded = decode(raw)
        records.append(Record(decoded.value, raw, line, line * 1000, decoded.notes, decoded.mended))
    stored = []
    for outcome in adapter.parse(iter(records), FileContext(uri)):
        if isinstance(outcome, Fragment):
            payload = outcome.record.raw if outcome.payload is None else _encode(outcome.payload)
            record = Record(decode(payload).value, payload, outcome.record.line, outcome.record.offset)
            stored.append(StoredEvent(outcome.key, record, outcome.link, instant(outcome.at).micros, uri))
    return stored


def families(stored: Iterable[StoredEvent]) -> list[list[StoredEvent]]:
    """Events that share a key, or whose keys share a link, without copies, in the order that a lake gives them in."""
    groups: list[tuple[set[str], list[StoredEvent]]] = []
    for event in stored:
        names = {f"key {event.key}"} | ({f"link {event.link}"} if event.link else set())
        joined = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        groups.append((names.union(*(group[0] for group in joined)), [each for g in joined for each in g[1]] + [event]))
    found = []
    for _, group in groups:
        group.sort(key=lambda event: (event.key, event.at or 0, event.source_uri, event.record.offset or 0))
        seen: dict[str, StoredEvent] = {}
        for event in group:
            seen.setdefault(digest(event.record.raw), event)
        found.append(list(seen.values()))
    return found


def rows(stored: Iterable[StoredEvent], adapter: Adapter = API) -> list[dict[str, Any]]:
    """The rows that stored events become, by time; each is checked."""
    stream = Stream("test", adapter.name, adapter.version, "/logs/a.jsonl")
    made = [
        normalise(outcome, stream, FileMemory())
        for family in families(stored)
        for outcome in adapter.assemble(family)
        if isinstance(outcome, Conversation)
    ]
    found = rollouts_table(made, "b", 0).to_pylist()
    for row in found:
        check_row(row)
    return sorted(found, key=lambda row: (str(row["started_at"]), row["rollout_id"]))


def texts(row: dict[str, Any]) -> list[str]:
    """What is said in a row; inherited messages in brackets."""
    pairs = zip(row["messages"], row["message_info"], strict=True)
    return [f"({m['content']})" if info["inherited"] else m["content"] for m, info in pairs]
