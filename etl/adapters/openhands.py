"""OpenHands conversations: events of the SDK and of the older stream, and the outputs of its benchmark runs.

Events lie in a file each (`events/event-00003-<id>.json`, `events/3.json`), as JSON Lines, or in a list. Neither names
its conversation: it is known by its first event, which of single files is the first one of their folder. The state of
the conversation lies beside the events. A line of a benchmark's `output.jsonl` has the events in `history`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._openhands_sdk import Events, kind_of
from etl.adapters._openhands_stream import Stream, is_stream_event
from etl.adapters._session import Naming, canonical, dict_of, sessions, stored, text_of, without
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable, Verdict
from etl.errors import SourceError
from etl.framing import LIMITS, frame
from etl.identity import digest
from etl.opening import blocks, zip_members

_STATE_ALONE = "state_without_events"
_UNKNOWN = "unknown_kind"
_EVENT_FILE = re.compile(r"(?:event-)?(\d+)(?:-([0-9a-fA-F-]{32,36}))?\.json")
_ELSEWHERE = re.compile(r"base_state\.json|\d+-\d+\.json")
"""Files whose events lie in the folder `events` beside them: the state, and pages of a cache."""
_KINDS = frozenset(
    {
        "SystemPromptEvent", "SystemPromptUpdateEvent", "MessageEvent", "ActionEvent", "ObservationEvent",
        "UserRejectObservation", "AgentErrorEvent", "ConversationErrorEvent", "ConversationStateUpdateEvent",
        "Condensation", "CondensationRequest", "CondensationSummaryEvent", "PauseEvent", "TokenEvent",
        "HookExecutionEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent", "ACPToolCallEvent", "InterruptEvent",
    }
)  # fmt: skip
_DELTA = "StreamingDeltaEvent"
_HELD = ("history", "instance_id", "instruction", "metadata", "metrics", "error", "attempt")


class OpenHands(Adapter):
    """Conversations of OpenHands."""

    name = "openhands"
    version = 2
    about = "OpenHands: SDK events (a file each, lines or a list), the older event stream, benchmark outputs"
    scores_share = True
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _STATE_ALONE: "the state of a conversation whose events are not there",
        _DELTA: "a piece of a message that comes whole",
        f"{_UNKNOWN}:*": "a kind of event not known here",
    }

    def score(self, sample: Sample) -> float:
        """The share of values that are events, states or outputs."""
        looks = [_looks(value) for value in sample.values]
        return sum(looks) / len(looks) if looks else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each event under its conversation; a conversation for each line of an output."""
        naming = Naming()
        folder = _beside(file)
        if folder is not None:
            yield from naming.begin(folder)
        for record in records:
            value = record.value
            kind = kind_of(value)
            if isinstance(value, dict) and isinstance(value.get("history"), list):
                yield _output(record, value)
            elif kind == _DELTA:
                yield Ignored(_DELTA)
            elif kind == "base_state" and naming.key is None:
                yield Ignored(_STATE_ALONE)
            elif is_stream_event(value) or kind in _KINDS or kind == "base_state":
                name = text_of(value, "id")
                if naming.key is None and name is not None:
                    yield from naming.begin(name)
                yield from naming.take(record, value.get("timestamp"), _link(value, kind) if folder is None else None)
            elif kind is not None:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            else:
                yield Unusable(record, "no_event", "an event has a kind and a source, or a number and an action")
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each conversation; events that name one another are one, wherever they lie."""
        groups = sessions(family)
        lone = sorted(key for key, events in groups.items() if len(events) <= 1)
        if len(lone) > 1:
            for key in lone[1:]:
                groups[lone[0]] += groups.pop(key)
        for key, events in sorted(groups.items()):
            values = [stored(event) for event in _in_order(events)]
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            made = _told(made, values)
            if made.messages:
                yield made
            else:
                yield from (Ignored(_STATE_ALONE, 1, event.record) for event in events)


def _told(made: Conversation, values: list[Any]) -> Conversation:
    """What the events say, in whichever of the two forms; an event that is there twice counts once."""
    events: dict[Any, dict[str, Any]] = {}
    for number, value in enumerate(values):
        if isinstance(value, dict):
            name = value.get("id") if kind_of(value) != "base_state" else None
            events.setdefault(name if isinstance(name, (int, str)) else (number,), value)
    if any(is_stream_event(value) for value in events.values()):
        return Stream(list(events.values())).tell(made)
    return Events(list(events.values())).tell(made)


def _in_order(events: list[StoredEvent]) -> list[StoredEvent]:
    """As they lie in a file; single files by the number in their names, which their times follow."""
    if len({event.source_uri for event in events}) == 1:
        return events
    return sorted(events, key=lambda event: (event.at or 0, _number(event.source_uri)))


def _number(uri: str) -> int:
    found = _EVENT_FILE.fullmatch(uri.rsplit("/", 1)[-1])
    return int(found.group(1)[:15]) if found else 0


def _link(value: dict[str, Any], kind: str | None) -> str | None:
    """What an event without a folder has in common with others: an action and what came of it name each other."""
    if kind == "ActionEvent":
        return text_of(value, "id")
    return text_of(value, "action_id") if kind in ("ObservationEvent", "UserRejectObservation") else None


def _beside(file: FileContext) -> str | None:
    """The name of the conversation in whose folder a file lies: its first event's."""
    name = file.uri.rsplit("/", 1)[-1]
    apart = _ELSEWHERE.fullmatch(name) is not None
    if file.path is None or not (apart or _EVENT_FILE.fullmatch(name)):
        return None
    within = file.uri.removeprefix(str(file.path)).lstrip("!")
    if within and "!" in file.uri:
        folder = within.rpartition("/")[0].removesuffix("event_cache" if apart else "/").rstrip("/")
        return _first_of(_members_of(file.path, f"{folder}/events".lstrip("/") if apart else folder), None)
    folder_of = file.path.parent.parent if file.path.parent.name == "event_cache" and apart else file.path.parent
    path = folder_of / "events" if apart else folder_of
    try:
        return _first_in(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@functools.lru_cache(maxsize=64)
def _first_in(folder: Path, changed: int) -> str | None:
    """As `_first_of`; a folder that has not changed is listed once, however many of its files are read."""
    return _first_of(os.listdir(folder), folder)  # noqa: PTH208 (names are all that is needed)


@functools.lru_cache(maxsize=64)
def _members_of(archive: Path, folder: str) -> tuple[str, ...]:
    names = [name.rpartition("/") for name in zip_members(archive)]
    return tuple(name for above, _, name in names if above == folder)


def _first_of(names: Iterable[str], folder: Path | None) -> str | None:
    """The id of the event with the lowest number; a hash of it where its name does not tell it."""
    numbered = [(int(found.group(1)[:15]), name) for name in names if (found := _EVENT_FILE.fullmatch(name))]
    if not numbered:
        return None
    found = _EVENT_FILE.fullmatch(min(numbered)[1])
    named = found.group(2) if found else None
    if named is not None:
        return named
    return None if folder is None else _hash_of(folder / min(numbered)[1])


@functools.lru_cache(maxsize=256)
def _hash_of(path: Path) -> str | None:
    try:
        first = next(iter(frame(blocks(path), LIMITS)), None)
    except SourceError:
        return None
    return "h_" + digest(canonical(first.value).encode()) if isinstance(first, Record) else None


def _output(record: Record, value: dict[str, Any]) -> Outcome:
    """A line of a benchmark's output: the instance, its events (in old ones pairs of them), and what came of it."""
    events: list[Any] = []
    for item in value["history"]:
        events += item if isinstance(item, list) else [item]
    name = text_of(value, "instance_id")
    metadata = dict_of(value, "metadata")
    made = Conversation([], [record], local_id=name, conversation_id=name)
    made.task = ("openhands", name) if name else None
    attempt = value.get("attempt")
    made.sample_index = attempt if type(attempt) is int and 0 <= attempt < 1 << 31 else None
    made = _told(made, events)
    if not made.messages:
        return Unusable(record, "no_messages", "the history of this line holds no event that says anything")
    made.model = (
        made.model or text_of(dict_of(metadata, "llm_config"), "model") or text_of(dict_of(metadata, "llm"), "model")
    )
    made.error = text_of(value, "error")
    if made.error is not None:
        made.status = "error"
    resolved = dict_of(dict_of(value, "test_result"), "report").get(
        "resolved", dict_of(value, "report").get("resolved")
    )
    if isinstance(resolved, bool):
        made.judgments = [Verdict("resolved", "rule", float(resolved))]
    rest = without(value, *_HELD)
    made.extra = {**(made.extra or {}), **rest, **without({"metadata": metadata, "metrics": value.get("metrics")})}
    if value.get("instruction") != made.prompt and not any(
        message.content == value.get("instruction") for message in made.messages
    ):
        made.extra.update(without({"instruction": value.get("instruction")}))
    return made


def _looks(value: Any) -> float:
    if not isinstance(value, dict):
        return 0.0
    if isinstance(value.get("history"), list) and "instance_id" in value:
        first = next(iter(value["history"]), None)
        first = first[0] if isinstance(first, list) and first else first
        return 0.95 if _looks(first) >= 0.9 or (not value["history"] and "instruction" in value) else 0.0
    if is_stream_event(value):
        told = "timestamp" in value and "source" in value and value.keys() & {"args", "extras", "content"}
        return 0.95 if told else 0.0
    kind = kind_of(value)
    if kind == "base_state":
        return 0.93 if value.keys() & {"execution_status", "agent_status", "persistence_dir", "workspace"} else 0.0
    if text_of(value, "id") is None or "timestamp" not in value:
        return 0.0
    return 0.95 if kind in _KINDS else 0.0
