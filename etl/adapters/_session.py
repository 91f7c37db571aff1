"""What adapters of session files share: naming the session of each record, order, who speaks, sums of tokens.

A session file grows, is copied, compressed and moved. Its records are stored as fragments under the session's id and
put in order again from all that is stored, whichever file each was read from.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from etl.adapter import Adapter, Sample
from etl.conversation import Fragment, Message, Record, StoredEvent, Tokens
from etl.identity import digest
from etl.times import instant

HELD_BACK = 512
"""Records that wait for one to name the session; after that many they are named by a hash of the first."""
_AGAIN, _RECORD = "~repeated", "~record"
_canonical = msgspec.json.Encoder(order="deterministic")


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values."""
    return _canonical.encode(value).decode()


def text_of(value: Any, *keys: str) -> str | None:
    """The first of the keys that holds a non-empty string.

    >>> text_of({"id": "", "session_id": "s"}, "id", "session_id"), text_of(None, "id")
    ('s', None)
    """
    if isinstance(value, dict):
        for key in keys:
            found = value.get(key)
            if isinstance(found, str) and found:
                return found
    return None


def dict_of(value: Any, key: str) -> dict[str, Any]:
    """The object under a key; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_of(value: Any, key: str) -> list[Any]:
    """The list under a key; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def sure_share(looks: Sequence[float]) -> float:
    """The score of a file whose records look so: the share that looks at all, where one of them is sure (0.9).

    >>> sure_share([0.9, 0.0, 0.3]), sure_share([0.5, 0.5])
    (0.6, 0.0)
    """
    if not looks or max(looks) < 0.9:
        return 0.0
    return max(looks) * sum(1 for look in looks if look > 0) / len(looks)


class SureAdapter(Adapter):
    """An adapter that tells its files by the share of values that look so, where one of them is sure."""

    @abc.abstractmethod
    def looks(self, value: Any) -> float:
        """How much one value looks like a record of the format, 0 to 1; from 0.9 on it is sure."""

    def score(self, sample: Sample) -> float:
        """The share of values that look so."""
        return sure_share([self.looks(value) for value in sample.values])

    def share(self, start: Sample) -> float:
        """As many as look so."""
        return sum(1 for value in start.values if self.looks(value) > 0)


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    """What an object says beside the keys; nulls and empty values say nothing."""
    return {key: item for key, item in value.items() if key not in keys and item not in (None, "", [], {})}


class Naming:
    """Fragments of one file: each record under the session that the file is in at that point.

    Records before the first one that names a session wait for it; where none does, the session is called by a hash of
    its first record, which stays when the file grows. A record without a time is known by how often it has occurred,
    so that a copy of the file repeats nothing and two equal turns stay two.
    """

    def __init__(self, linked: bool = False) -> None:
        self.key: str | None = None
        self._linked = linked
        self._waiting: list[tuple[Record, str | None, Any]] = []
        self._at: int | None = None
        self._seen: dict[str, int] = {}

    def begin(self, key: str) -> Iterator[Fragment]:
        """From here on the file is in that session."""
        self.key = key
        waiting, self._waiting = self._waiting, []
        for record, link, at in waiting:
            yield self._fragment(record, link, at)

    def take(self, record: Record, at: Any = None, link: str | None = None) -> Iterator[Fragment]:
        """The fragment of a record, and of those that waited for a name; none while it waits itself."""
        if self.key is not None:
            yield self._fragment(record, link, at)
            return
        self._waiting.append((record, link, at))
        if len(self._waiting) >= HELD_BACK:
            yield from self.end()

    def end(self) -> Iterator[Fragment]:
        """Fragments of what still waits."""
        if self._waiting:
            yield from self.begin("h_" + digest(canonical(self._waiting[0][0].value).encode()))

    def _fragment(self, record: Record, link: str | None, at: Any) -> Fragment:
        key = self.key or ""
        own = instant(at).micros
        payload = None
        if own is None:
            name = digest(key.encode() + b"\n" + record.raw)
            number = self._seen[name] = self._seen.get(name, -1) + 1
            payload = {_AGAIN: number, _RECORD: record.value} if number else None
        else:
            self._at = own
        when = self._at if own is None else own
        return Fragment(record, key, link or (key if self._linked else None), when, payload)


def stored(event: StoredEvent) -> Any:
    """The record of an event of `Naming` as it was logged."""
    value = event.record.value
    return value[_RECORD] if isinstance(value, dict) and value.keys() == {_AGAIN, _RECORD} else value


def sessions(events: Iterable[StoredEvent]) -> dict[str, list[StoredEvent]]:
    """The events of each session in order."""
    found: dict[str, list[StoredEvent]] = {}
    for event in events:
        found.setdefault(event.key, []).append(event)
    return {key: in_order(group) for key, group in found.items()}


def in_order(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """As in the file that they lie in; by time where several files have parts of their own.

    Copies of one file agree on what lies where, so that places order them too.
    """
    places = [event.record.offset for event in events]
    if None not in places and len(set(places)) == len(places):
        return sorted(events, key=lambda event: event.record.offset or 0)
    return sorted(
        events,
        key=lambda event: (event.at or 0, event.source_uri, event.record.offset or 0, canonical(event.record.value)),
    )


def runs(blocks: Sequence[Any], is_harness: Callable[[str], bool]) -> list[tuple[bool, list[Any]]]:
    """The blocks of a user's content in runs of one speaker: (whether it is the program, blocks).

    What is no text belongs to the speaker of the run it stands in.

    >>> runs([{"text": "<env/>"}, {"text": "Hello"}, {"image": 1}], lambda text: text[0] == "<")
    [(True, [{'text': '<env/>'}]), (False, [{'text': 'Hello'}, {'image': 1}])]
    """
    found: list[tuple[bool, list[Any]]] = []
    for block in blocks:
        text = block if isinstance(block, str) else text_of(block, "text")
        harness = is_harness(text) if text else (found[-1][0] if found else False)
        if found and found[-1][0] == harness:
            found[-1][1].append(block)
        else:
            found.append((harness, [block]))
    return found


class _Notes(list[Any]):
    """A list that `noted` made, and may append to."""


def noted(message: Message, key: str, value: Any) -> None:
    """Append to a list in a message's `extra`.

    >>> message = Message("user")
    >>> noted(message, "notes", 1); noted(message, "notes", 2); message.extra
    {'notes': [1, 2]}
    """
    if message.extra is None:
        message.extra = {}
    known = message.extra.get(key)
    if not isinstance(known, _Notes):
        known = _Notes(known if isinstance(known, list) else [] if known is None else [known])
        message.extra[key] = known
    known.append(value)


def inherited(messages: Iterable[Message]) -> list[Message]:
    """Copies of messages that another row owns."""
    return [msgspec.structs.replace(message, inherited=True) for message in messages]


def summed(counts: Iterable[Tokens]) -> Tokens | None:
    """The sum of each count over those that know it; None for nothing."""
    columns: list[list[Any]] = [[] for _ in Tokens.__struct_fields__]
    for tokens in counts:
        for column, name in zip(columns, Tokens.__struct_fields__, strict=True):
            value = getattr(tokens, name)
            if value is not None:
                column.append(value)
    return Tokens(*(sum(column) if column else None for column in columns)) if any(columns) else None


def whole(value: Any) -> int | None:
    """A count as logged, else None."""
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def real(value: Any) -> float | None:
    """A finite measure of no more than a few thousand years in milliseconds, else None."""
    return float(value) if type(value) in (int, float) and 0 <= value < 1e15 else None
