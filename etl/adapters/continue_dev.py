"""Sessions of Continue (editors and `cn`) and of Kiro, which keeps them alike: a file each, and an index of them.

A session has no times but those of its reasoning: when it began stands in the index beside it (`sessions.json`). A
file is written anew as its session grows; a person who sends an earlier message again takes back what came after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._claude_lines import is_global
from etl.adapters._continue_turns import ROLES, History, usage_in
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.decode import encode
from etl.identity import digest

_CARD = frozenset({"sessionId", "title", "dateCreated"})
_KIRO = frozenset({"autonomyMode", "selectedModel", "sessionType"})
_ALONE, _SILENT = "index_without_session", "silent_session"
_HELD = ("history", "usage", "selectedModel")


class ContinueDev(Adapter):
    """Session files of Continue and Kiro, and their index."""

    name = "continue_dev"
    about = "Continue (and Kiro) sessions: {sessionId, workspaceDirectory, history: [{message, contextItems}]}"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _ALONE: "an entry of the index of sessions whose session is not there",
        _SILENT: "a session in which nobody says anything",
    }

    def score(self, sample: Sample) -> float:
        """The share of values that are sessions or entries of an index."""
        looks = [_is_session(value) or _is_card(value) for value in sample.objects()]
        return 0.95 * sum(looks) / len(sample.values) if any(looks) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each session, and for what the index says of one."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and _is_session(value):
                yield from _session(record, value)
            elif isinstance(value, dict) and _is_card(value):
                yield Fragment(record, str(value["sessionId"]), at=value.get("dateCreated"))
            else:
                yield Unusable(record, "no_messages", "a session is an object with a `history` of messages")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each session, of the longest version of it."""
        events: dict[str, list[StoredEvent]] = {}
        for event in family:
            events.setdefault(event.key, []).append(event)
        for key, found in sorted(events.items()):
            versions = [event.record.value for event in found if _is_session(event.record.value)]
            cards = [event.record.value for event in found if _is_card(event.record.value)]
            if not versions:
                yield from (Ignored(_ALONE, 1, event.record) for event in found)
                continue
            value = max(versions, key=lambda value: (len(value["history"]), encode(value)))
            yield _row(key, value, cards, [event.record for event in found])


def _is_session(value: Any) -> bool:
    listed = value.get("history") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not isinstance(value.get("sessionId"), str):
        return False
    if not listed:
        return "workspaceDirectory" in value
    return all(isinstance(item, dict) and isinstance(item.get("message"), dict) for item in listed[:8])


def _is_card(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.keys() >= _CARD and "history" not in value and bool(text(value["sessionId"]))
    )


def _session(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    listed = value["history"]
    if not listed:
        yield Ignored(_SILENT)
        return
    for index, item in enumerate(listed):
        role = obj(item, "message").get("role")
        if not isinstance(role, str) or role not in ROLES:
            yield Unusable(record, "unknown_role", f"history[{index}] has no message with a known role")
            return
    name = value["sessionId"]
    if not is_global(name):
        first = obj(listed[0], "message")
        told = encode([name, first.get("id"), first.get("content")])
        name = f"continue:{digest(told.encode('utf-8', 'surrogatepass'))}"
    yield Fragment(record, name, at=next(iter(_times(listed)), None))


def _times(listed: list[Any]) -> list[Any]:
    """Milliseconds at which reasoning began and ended, in order."""
    told = [obj(item, "reasoning").get(key) for item in listed for key in ("startAt", "endAt")]
    return [at for at in told if isinstance(at, (int, float))]


def _row(key: str, value: dict[str, Any], cards: list[dict[str, Any]], records: list[Record]) -> Conversation:
    history = History(items(value, "history"))
    rest = {name: item for name, item in (left(value, _HELD) or {}).items() if item not in ("", [], {}, False)}
    if rest.get("sessionId") == key:
        del rest["sessionId"]
    if history.tools:
        rest["used_tools"] = history.tools
    times = _times(items(value, "history"))
    return Conversation(
        history.messages,
        records,
        native_id=key,
        conversation_id=key,
        agent="kiro" if value.keys() & _KIRO else "continue",
        model=text(value.get("selectedModel")),
        started_at=next((card["dateCreated"] for card in cards if card["dateCreated"]), times[0] if times else None),
        ended_at=times[-1] if times else None,
        usage=usage_in(value.get("usage")) or history.usage,
        flags={"compacted"} if history.compacted else None,
        extra=rest or None,
        n_records=len(items(value, "history")),
    )
