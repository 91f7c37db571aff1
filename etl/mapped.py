"""Logs read by a map (`etl ingest --map`): columns of a table, or members of records, that `etl/mapping.py` names.

One row a message: a conversation is put together from all files, in the order of its `order` column, else of its
times, else as it lies in them. One row a conversation: its messages are a list in a column, or a column each. What no
setting names is kept with the message or the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import plain
from etl.adapters._chat import ROLES, parsed
from etl.adapters._html import text_of_html
from etl.adapters._session import canonical
from etl.conversation import Conversation, Fragment, Ignored, Message, Outcome, Record, StoredEvent, ToolCall, Unusable
from etl.identity import digest

if TYPE_CHECKING:
    from etl.mapping import Mapping as Map
    from etl.mapping import MessageColumns

_LOOKED_AT = 200
"""Records in which every column of the map has to occur once."""
_TEXTS = ("model", "provider", "agent", "policy_version", "finish_reason", "error", "group")
_HEAD = (*_TEXTS, "started_at", "ended_at", "tools", "reward", "sample_index")
_COLUMNS = (*_HEAD, "task", "system")
_FALSE = frozenset({"", "0", "false", "f", "no", "n", "none", "null", "ok", "success"})


class Mapped(Adapter):
    """Reads by a map; without one it only puts together what was read."""

    name = "mapped"
    version = 1
    about = "any table or JSON Lines, by a map that says which column is what (etl ingest --map map.toml)"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {"map_ignores": "a row whose role the map sets to `ignore`"}

    def __init__(self, mapping: Map | None = None) -> None:
        self._map = mapping

    def score(self, sample: Sample) -> float:
        """Nothing is read by a map that nobody gave."""
        return 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment a message, or a conversation a row; all rejected where a column of the map is in none of them."""
        mapping = self._map
        stream = iter(records)
        first = list(islice(stream, _LOOKED_AT))
        missing = "no map" if mapping is None else _missing(mapping, first)
        if mapping is None or missing:
            for record in chain(first, stream):
                yield Unusable(record, "no_map" if mapping is None else "no_column", missing or "ingest it with --map")
            return
        reading = _Reading(mapping)
        for record in chain(first, stream):
            if not isinstance(record.value, dict):
                yield Unusable(record, "not_an_object", "a row of a map is an object or a row of a table; this is none")
            elif mapping.rows == "messages":
                yield reading.fragment(record)
            else:
                yield reading.conversation(record)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one conversation, as the map of this run read them, else as the newest did."""
        versions = {event.record.value["version"] for event in family}
        current = None if self._map is None else self._map.adapter_version
        told = current if current in versions else max(versions)
        read = [event for event in family if event.record.value["version"] == told]
        found: dict[str, StoredEvent] = {}
        for event in read:
            name = event.record.value["id"] or canonical(event.record.value)
            if name not in found or canonical(found[name].record.value) < canonical(event.record.value):
                found[name] = event
        records = [event.record for event in sorted(found.values(), key=_place)]
        values = [record.value for record in records]
        shared = _shared([value["rest"] for value in values])
        messages: list[Message] = []
        for value in values:
            told = [msgspec.convert(message, Message) for message in value["messages"]]
            own = {key: item for key, item in value["rest"].items() if key not in shared}
            told[0].extra = {**(told[0].extra or {}), **own} or None
            messages += told
        made = Conversation(messages, records, task_from_prompt=True, n_records=len(read), extra=shared or None)
        heads = [value["head"] for value in values]
        _fill(made, {name: next((head[name] for head in heads if name in head), None) for name in _COLUMNS})
        made.ended_at = next((head["ended_at"] for head in reversed(heads) if "ended_at" in head), None)
        made.native_id = f"map:{values[0]['map']}:{family[0].key}"
        made.conversation_id = family[0].key
        yield made


def _place(event: StoredEvent) -> tuple[float, int]:
    """By `order` where there is one, else by time; what is equal stays as it lies."""
    order = event.record.value["order"]
    return (order if order is not None else 0.0, 0 if event.at is None or order is not None else event.at)


def _missing(mapping: Map, records: Sequence[Record]) -> str | None:
    """The first path of the map that no record has, in one line; of keys of listed messages, that no message has."""
    rows = [record.value for record in records if isinstance(record.value, dict)]
    if lacking := _lacking(rows, mapping.paths(), "no row has the map's column"):
        return lacking
    listed = mapping.message.list
    items = [item for row in rows for item in _listed(_cell(row, listed)) if isinstance(item, dict)]
    return _lacking(items, mapping.message_paths(), f"no message in `{listed}` has the map's key")


def _lacking(rows: Sequence[dict[str, Any]], paths: Iterable[str], what: str) -> str | None:
    """Which path is in none of these objects, what they have, and where the path ends in a list."""
    for path in paths if rows else ():
        if not any(_has(row, path) for row in rows):
            known = ", ".join(list(dict.fromkeys(key for row in rows for key in row))[:12])
            parts = path.split(".")
            ways = (".".join(parts[:length]) for length in range(1, len(parts)))
            into = next((way for way in ways if any(isinstance(_step(row, way)[1], list) for row in rows)), None)
            hint = "" if into is None else f" (`{into}` is a list: a path goes into objects alone)"
            return f"{what} `{path}`{hint}; there are: {known}. Mend it, or list it in `optional`"
    return None


def _step(value: Any, path: str) -> tuple[bool, Any]:
    """What lies under a path: the whole path as one key, or part by part, JSON text opened on the way."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = parsed(value)
    if not isinstance(value, dict):
        return False, None
    if path in value:
        return True, value[path]
    head, dot, rest = path.partition(".")
    while dot:
        if head in value:
            found, item = _step(value[head], rest)
            if found:
                return True, item
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return False, None


def _rest(row: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """What the row says under no path: columns without a name in the map, and members of those that it goes into."""
    rest = dict(row)
    for path in paths:
        _drop(rest, path)
    return {key: item for key, item in rest.items() if item not in (None, "", {}, [])}


def _drop(holder: dict[str, Any], path: str) -> None:
    if path in holder:
        del holder[path]
        return
    head, dot, rest = path.partition(".")
    while dot:
        inner = holder.get(head)
        inner = parsed(inner) if isinstance(inner, str) and inner[:1] == "{" else inner
        if isinstance(inner, dict) and _has(inner, rest):
            holder[head] = dict(inner)
            _drop(holder[head], rest)
            return
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"


def _has(row: dict[str, Any], path: str) -> bool:
    return _step(row, path)[0]


def _cell(row: dict[str, Any], path: str | None) -> Any:
    """The value under a path; None where it is missing or an empty cell."""
    found = None if path is None else _step(row, path)[1]
    return None if found == "" else found


class _Reading:
    """The rows of one file, read by a map."""

    def __init__(self, mapping: Map) -> None:
        self.map = mapping
        self._seen: dict[str, int] = {}
        self._version = mapping.adapter_version

    def fragment(self, record: Record) -> Outcome:
        """One row a message."""
        row, columns = record.value, self.map.message
        key = _text(_cell(row, self.map.conversation.id))
        if key is None:
            return Unusable(record, "no_conversation", f"the row has nothing in `{self.map.conversation.id}`")
        read = self._messages(row, columns)
        if not isinstance(read, list):
            return Ignored("map_ignores") if read == "ignore" else Unusable(record, "unknown_role", read)
        named = (*columns.columns().values(), *self.map.conversation.columns().values())
        name = _text(_cell(row, columns.id))
        payload = {
            "map": self.map.name,
            "version": self._version,
            "id": name,
            "order": _number(_cell(row, columns.order)),
            "head": self._head(row),
            "messages": [_told(message) for message in read],
            "rest": _rest(row, named),
        }
        if name is None:
            same = digest(record.raw)
            self._seen[same] = self._seen.get(same, 0) + 1
            payload["again"] = self._seen[same]
        return Fragment(record, key, at=_cell(row, columns.at), payload=payload)

    def conversation(self, record: Record) -> Outcome:
        """One row a conversation."""
        row, columns = record.value, self.map.message
        messages: list[Message] = []
        for turn in self.map.turns:
            said = _cell(row, turn.text)
            if said is not None:
                messages.append(self._said(Message(turn.role), said))
        listed = _cell(row, columns.list)
        for index, item in enumerate(_listed(listed)):
            if not isinstance(item, dict):
                return Unusable(record, "bad_message", f"`{columns.list}`[{index}] is no object")
            read = self._messages(item, columns)
            if read == "ignore":
                continue
            if not isinstance(read, list):
                return Unusable(record, "unknown_role", f"`{columns.list}`[{index}]: {read}")
            read[0].extra = {**(read[0].extra or {}), **_rest(item, columns.columns().values())} or None
            messages += read
        if not messages:
            return Unusable(record, "no_messages", "the row says nothing in the columns that the map names")
        name = _text(_cell(row, self.map.conversation.id))
        made = Conversation(messages, (record,), local_id=name, task_from_prompt=True)
        if self.map.grows and name is not None:
            made.native_id = f"map:{self.map.name}:{name}"
            made.conversation_id = name
        _fill(made, self._head(row))
        listed_in = [columns.list] if columns.list is not None else []
        named = [*self.map.conversation.columns().values(), *(turn.text for turn in self.map.turns), *listed_in]
        made.extra = _rest(row, named) or None
        return made

    def _head(self, row: dict[str, Any]) -> dict[str, Any]:
        """What the row says of its conversation."""
        columns = self.map.conversation.columns()
        found = {name: _cell(row, columns[name]) for name in _COLUMNS if name in columns}
        return {name: value for name, value in found.items() if value is not None}

    def _messages(self, row: dict[str, Any], columns: MessageColumns) -> list[Message] | str:
        """The messages of a row (a call with its result is two), `ignore`, or what is wrong with it."""
        role = self._role(_cell(row, columns.role), columns.role)
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return role
        message = self._said(Message(role, name=_text(_cell(row, columns.name))), _cell(row, columns.text))
        message.id, message.at = _text(_cell(row, columns.id)), _cell(row, columns.at)
        message.model = _text(_cell(row, columns.model))
        message.finish_reason = _text(_cell(row, columns.finish_reason))
        message.reasoning = _text(_cell(row, columns.reasoning))
        message.input_tokens = _count(_cell(row, columns.input_tokens))
        message.output_tokens = _count(_cell(row, columns.output_tokens))
        tool, call_id = _text(_cell(row, columns.tool)), _text(_cell(row, columns.call_id))
        result = _cell(row, columns.result)
        if role == "tool":
            message.name, message.call_id = tool or message.name, call_id
            message.content = message.content or plain(result)
            return [self._answered(message, row, columns)]
        if tool is not None:
            message.calls = [ToolCall(tool, _cell(row, columns.arguments), call_id)]
        if result is None:
            return [message]
        answer = Message("tool", plain(result), call_id=call_id, name=tool, at=message.at)
        return [message, self._answered(answer, row, columns)]

    def _answered(self, answer: Message, row: dict[str, Any], columns: MessageColumns) -> Message:
        failed, took = _cell(row, columns.failed), _cell(row, columns.duration_ms)
        if failed is not None:
            answer.failed = failed if isinstance(failed, bool) else plain(failed).strip().casefold() not in _FALSE
        number = _number(took)
        answer.duration_ms = number
        return answer

    def _role(self, logged: Any, column: str | None) -> str:
        """The role, `ignore`, or in one line why there is none."""
        if logged is None:
            return self.map.default_role or f"the row has nothing in `{column}`; set default_role in the map"
        said = plain(logged)
        known = self.map.role(said) or ROLES.get(said.strip().casefold())
        return known or f"the map does not say which role {said[:40]!r} is; add it to [roles]"

    def _said(self, message: Message, value: Any) -> Message:
        """The message with its text; HTML that says more than that stays beside it."""
        message.content = plain(value)
        if self.map.html:
            body = message.content
            message.content, images, rich = text_of_html(body)
            message.parts = [{"type": "image", "url": url} for url in images] or None
            message.extra = {"html": body} if rich else None
        return message


def _text(value: Any) -> str | None:
    return None if value is None else plain(value) or None


def _number(value: Any) -> float | None:
    """A number, or the text of one."""
    try:
        return float(value) if isinstance(value, (int, float, str)) and abs(float(value)) < 1e300 else None
    except (ValueError, OverflowError):
        return None


def _count(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() and number >= 0 else None


def _listed(value: Any) -> list[Any]:
    found = parsed(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else [] if found is None else [found]


def _told(message: Message) -> dict[str, Any]:
    """A message as JSON that `msgspec.convert` reads again; what is not set is left out."""
    told: dict[str, Any] = msgspec.to_builtins(message)
    return {name: value for name, value in told.items() if value is not None}


def _fill(made: Conversation, head: dict[str, Any]) -> None:
    """The columns of a conversation."""
    for name in _HEAD:
        value = head.get(name)
        if value is not None:
            setattr(made, name, plain(value) if name in _TEXTS else value)
    if head.get("task") is not None:
        made.task = ("", plain(head["task"]))
    if head.get("system") is not None and not any(message.role == "system" for message in made.messages):
        made.messages.insert(0, Message("system", plain(head["system"])))


def _shared(rests: list[dict[str, Any]]) -> dict[str, Any]:
    """What every row says beside its columns, told once; nothing where there is one row only."""
    first, *others = rests
    return {key: item for key, item in first.items() if all(rest.get(key) == item for rest in others)} if others else {}
