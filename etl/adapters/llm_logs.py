"""The log of the command `llm` (`logs.db`), and what `llm logs --json` prints of it.

Before version 0.32 it has a row for each response; since then messages are kept once, under a hash of all that was
said before them, and threads point at the last one. Strangers who say the same share their messages: only a thread that
says what it was forked from inherits. What was sent with a prompt (`prompt_json`) repeats the history and is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier
from etl.adapters._branches import Tree
from etl.adapters._llm_stored import framed
from etl.adapters._llm_turns import about_turn, definitions, model_of, response, stored, typed, usage_of_turn
from etl.adapters._records import left
from etl.adapters._rollouts import items, text
from etl.adapters._session import summed
from etl.adapters._sqlite import MAGIC, names_tables, stored_records
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Unusable
from etl.decode import encode
from etl.framing import Framed, Limits, frame
from etl.identity import digest
from etl.times import instant

_EXPORT = frozenset({"conversation_id", "model", "prompt", "response"})
_KINDS = ("message", "turn", "thread")
_ULID = 26
_UNUSED = "message_of_no_thread"


class LlmLogs(Adapter):
    """Logs of the command `llm`."""

    name = "llm_logs"
    about = "llm (Datasette's command): logs.db of all versions, and llm logs --json; forks are rows"
    splits = True
    ignores: ClassVar[dict[str, str]] = {_UNUSED: "a message or a turn of a thread that was deleted"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        first = next(blocks, b"")
        rest = (block for part in ((first,), blocks) for block in part)
        if first.startswith(MAGIC):
            yield from stored_records(rest, limits, lambda database: framed(database, limits))
        else:
            yield from frame(rest, limits)

    def score(self, sample: Sample) -> float:
        """By its table of migrations and those of responses or turns; else the share of exported responses."""
        if names_tables(sample.head, "_llm_migrations"):
            return 0.95
        if not sample.values:
            return 0.0
        return 0.95 * sum(map(_is_export, sample.objects())) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each conversation, and for each thread."""
        responses: dict[str, list[Record]] = {}
        store: dict[str, dict[str, Record]] = {kind: {} for kind in _KINDS}
        for record in records:
            value = record.value
            kind = next(
                (kind for kind in _KINDS if isinstance(value, dict) and isinstance(value.get(kind), dict)), None
            )
            name = None if kind is None else identifier(value[kind].get("hash" if kind == "message" else "id"))
            if kind is not None and name is not None and name not in store[kind]:
                store[kind][name] = record
            elif isinstance(value, dict) and value.keys() >= {"prompt", "response"}:
                named = identifier(value.get("conversation_id")) or f"response {identifier(value.get('id')) or ''}"
                responses.setdefault(named, []).append(record)
            else:
                yield Unusable(record, "no_response", "a record is a response, or a message, turn or thread")
        for name, found in responses.items():
            yield _conversation(name, found)
        yield from _Store(store).outcomes()


def _is_export(value: dict[str, Any]) -> bool:
    return value.keys() >= _EXPORT and bool({"datetime_utc", "timestamp_utc"} & value.keys())


def _conversation(name: str, records: list[Record]) -> Conversation:
    """The responses of a conversation in the order of their times."""
    found = sorted(records, key=lambda record: instant(_at(record.value)).micros or 0)
    messages: list[Message] = []
    system: str | None = None
    for record in found:
        made = response(record.value, system)
        system = next((message.content for message in made if message.role == "system"), system)
        messages += made
    values = [record.value for record in found]
    first = values[0]
    key = (
        name
        if len(name) == _ULID
        else digest(encode([name, _at(first), first.get("prompt")]).encode("utf-8", "surrogatepass"))
    )
    asked = text(first.get("prompt")) if items(first, "prompt_fragments") else None
    title = text(first.get("conversation_name"))
    return Conversation(
        messages,
        found,
        native_id=f"llm:{key}",
        conversation_id=identifier(first.get("conversation_id")) or identifier(first.get("id")),
        prompt=asked,
        task_from_prompt=True,
        agent="llm",
        tools=_tools(values),
        started_at=_at(first),
        ended_at=_at(values[-1]),
        usage=summed(used for value in values if (used := usage_of_turn(value)) is not None),
        extra=None if title is None else {"title": title},
    )


def _at(value: dict[str, Any]) -> Any:
    return value.get("datetime_utc") or value.get("timestamp_utc")


def _tools(values: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The tools of all responses, each once."""
    found = {encode(tool): tool for value in values for tool in definitions(items(value, "tools"))}
    return list(found.values()) or None


class _Store:
    """Messages under hashes, and the threads that end in them."""

    def __init__(self, store: dict[str, dict[str, Record]]) -> None:
        self._records = store
        self._messages = {name: record.value["message"] for name, record in store["message"].items()}
        self._threads = {name: record.value["thread"] for name, record in store["thread"].items()}
        self._turns: dict[str, list[tuple[Record, dict[str, Any]]]] = {}
        for record in store["turn"].values():
            turn = record.value["turn"]
            self._turns.setdefault(identifier(turn.get("thread_id")) or "", []).append((record, turn))
        self._tree = Tree.of({name: identifier(value.get("parent_hash")) for name, value in self._messages.items()})
        self._taken: set[int] = set()

    def outcomes(self) -> Iterator[Outcome]:
        """The row of each thread, then those of turns that it left; what no thread has is counted."""
        for name, thread in self._threads.items():
            record = self._records["thread"][name]
            tip = identifier(thread.get("tip_message_hash"))
            path = self._tree.path(tip) if tip in self._messages else []
            turns = self._turns.get(name, [])
            if not path:
                yield Unusable(record, "no_messages", "the message that the thread ends in is not there")
                continue
            made = self._row(name, thread, path, [turn for _, turn in turns])
            if isinstance(made, str):
                yield Unusable(record, "bad_message", made)
                continue
            made.records = self._take([record, *(record for record, _ in turns)], path)
            yield made
            yield from self._left(name, thread, path, turns)
        unused = [record for kind in ("turn", "message") for record in self._records[kind].values()]
        unused = [record for record in unused if id(record) not in self._taken]
        if unused:
            yield Ignored(_UNUSED, len(unused))

    def _left(
        self, name: str, thread: dict[str, Any], path: list[str], turns: list[tuple[Record, dict[str, Any]]]
    ) -> Iterator[Outcome]:
        """Answers of a thread that it does not lead to any more."""
        seen = set(path)
        for record, turn in turns[::-1]:
            tip = identifier(turn.get("tip_message_hash"))
            if tip is None or tip in seen or tip not in self._messages:
                continue
            way = self._tree.path(tip)
            shared = {each for each in way if each in path}
            made = self._row(name, thread, way, [turn for _, turn in turns], shared)
            seen |= set(way)
            if isinstance(made, Conversation):
                made.branch, made.parent, made.flags = tip, Identity(f"llm:{name}"), {"abandoned"}
                made.records = self._take([record], way) or [record]
                yield made

    def _take(self, records: list[Record], path: list[str]) -> list[Record]:
        """Records that no other row has counted."""
        found = [*records, *(self._records["message"][name] for name in path)]
        fresh = [record for record in found if id(record) not in self._taken]
        self._taken |= {id(record) for record in fresh}
        return fresh

    def _row(
        self,
        name: str,
        thread: dict[str, Any],
        path: list[str],
        turns: list[dict[str, Any]],
        shared: set[str] | None = None,
    ) -> Conversation | str:
        source = identifier(thread.get("forked_from"))
        if shared is None:
            tip = identifier(self._threads[source].get("tip_message_hash")) if source in self._threads else None
            shared = set(self._tree.path(tip)) & set(path) if tip in self._messages else set()
        by_tip = {turn.get("tip_message_hash"): turn for turn in turns}
        messages: list[Message] = []
        asking: list[Message] = []
        for each in path:
            read = stored(self._messages[each])
            if isinstance(read, str):
                return f"message {each}: {read}"
            for message in read:
                message.inherited = each in shared
            asking += read
            if (turn := by_tip.get(each)) is not None:
                _tell(asking, read, turn)
                asking = []
            messages += read
        own = [turn for turn in turns if turn.get("tip_message_hash") in path]
        asked = next((each for each in path if self._messages[each].get("role") == "user"), None)
        times = sorted((instant(_at(turn)).micros or 0, str(_at(turn))) for turn in own if _at(turn))
        rest = left(thread, ("id", "tip_message_hash", "forked_from", "datetime_utc", "name")) or {}
        title = text(thread.get("name"))
        return Conversation(
            messages,
            [],
            native_id=f"llm:{name}",
            conversation_id=name,
            parent=None if source is None else Identity(f"llm:{source}"),
            prompt=typed(self._messages[asked]) if asked is not None else None,
            task_from_prompt=True,
            agent="llm",
            tools=_tools(own),
            started_at=times[0][1] if times else thread.get("datetime_utc"),
            ended_at=times[-1][1] if times else None,
            usage=summed(used for turn in own if (used := usage_of_turn(turn)) is not None),
            extra={**rest, **({"title": title} if title else {})} or None,
            n_records=len(path),
        )


def _tell(sent: list[Message], answer: list[Message], turn: dict[str, Any]) -> None:
    """What a turn says of its answer, and of when that was asked for."""
    for message in sent:
        message.at = _at(turn)
    used = usage_of_turn(turn)
    for message in answer:
        if message.role == "assistant":
            message.model = model_of(turn)
            if used is not None:
                message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens
            message.extra = {**(message.extra or {}), **about_turn(turn)} or None
