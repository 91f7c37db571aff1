"""Threads of LangGraph as its SQLite saver keeps them, or a plain dump of its PostgreSQL saver: checkpoints that name
the one before, and what tasks wrote.

The way to the newest checkpoint is the row of a thread; ways that were left (a thread that somebody took up again from
an earlier checkpoint) are rows too, and so are subgraphs with messages of their own. Messages that a later state no
longer holds (a history that was cut short) stay where they were said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._claude_lines import is_global
from etl.adapters._langgraph_dumped import dumped_records, is_dump, names_saver
from etl.adapters._langgraph_stored import TOLD, framed, is_message, named
from etl.adapters._rollouts import items, text
from etl.adapters._sqlite import MAGIC, has_column, stored_records
from etl.adapters._state_dialects import counted, langchain_message
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Unusable
from etl.framing import Framed, Limits, frame

_ERROR, _INTERRUPT = TOLD
_WRITE, _SILENT = "applied_write", "silent_thread"


class LangGraphCheckpoints(Adapter):
    """What LangGraph's savers keep."""

    name = "langgraph_checkpoints"
    about = "LangGraph's savers (SQLite, dumps of PostgreSQL): threads of checkpoints; forks and subgraphs are rows"
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        _WRITE: "what a task wrote, which the next checkpoint has",
        _SILENT: "a checkpoint of a thread (or of a subgraph) whose state has no messages of its own",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        first = next(blocks, b"")
        rest = (block for part in ((first,), blocks) for block in part)
        if first.startswith(MAGIC):
            yield from stored_records(rest, limits, lambda stored: framed(stored, limits))
        elif is_dump(first):
            yield from dumped_records(rest, limits)
        else:
            yield from frame(rest, limits)

    def score(self, sample: Sample) -> float:
        """By the table of checkpoints."""
        if names_saver(sample.head):
            return 0.95
        return 0.95 if has_column(sample.head, "checkpoints", "parent_checkpoint_id") else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each thread, and of each subgraph of it."""
        threads: dict[str, dict[str, _Graph]] = {}
        for record in records:
            value = record.value
            thread = identifier(value.get("thread_id")) if isinstance(value, dict) else None
            if thread is None or not isinstance(value.get("checkpoint_id"), str):
                yield Unusable(record, "no_checkpoint", "a record is a checkpoint of a thread; this is none")
                continue
            graph = threads.setdefault(thread, {}).setdefault(text(value.get("checkpoint_ns")) or "", _Graph())
            if "task_id" not in value:
                graph.add(record, value)
            elif "value" not in value:
                yield Ignored(_WRITE)
            else:
                graph.writes.append((record, value))
        for thread, graphs in threads.items():
            yield from _thread(thread, graphs)


class _Graph:
    """The checkpoints of a thread in one namespace."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.nodes: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[Record, dict[str, Any]]] = []
        self.known: dict[str, list[Any]] = {}
        """Versions of each message, by its name."""

    def add(self, record: Record, value: dict[str, Any]) -> None:
        """A checkpoint; its messages by name."""
        self.records.append(record)
        names: list[str] = []
        for name, item in named([*items(value, "messages"), *items(value, "asked")]):
            if item is not None and is_message(item):
                versions = self.known.setdefault(name, [])
                if item not in versions:
                    versions.append(item)
            if name in self.known:
                names.append(name)
        self.nodes[value["checkpoint_id"]] = {**value, "names": names}

    def end(self, at: str) -> dict[str, Any]:
        """What was written at a checkpoint and stands in no other: messages, errors, questions to a person."""
        found: dict[str, Any] = {_ERROR: [], _INTERRUPT: [], "names": []}
        for _, value in self.writes:
            if value["checkpoint_id"] != at:
                continue
            channel, told = value.get("channel"), value.get("value")
            if channel in TOLD:
                found[channel].append(told)
            elif channel == self.nodes.get(at, {}).get("channel"):
                for name, item in named(
                    [each for each in (told if isinstance(told, list) else [told]) if is_message(each)]
                ):
                    self.known.setdefault(name, [item])
                    found["names"].append(name)
        return found


def _thread(thread: str, graphs: dict[str, _Graph]) -> Iterator[Outcome]:
    main = graphs.get("")
    begun = min((min(graph.nodes) for graph in graphs.values() if graph.nodes), default="")
    key = thread if is_global(thread) else f"{thread}@{begun}"
    shared: set[str] = set()
    for space in sorted(graphs):
        graph = graphs[space]
        records = [*graph.records, *(record for record, _ in graph.writes)]
        made = _rows(key, space, graph, shared if space and main is not None else set()) if graph.nodes else []
        if isinstance(made, str):
            for record in records:
                yield Unusable(record, "bad_message", made)
            continue
        if not made:
            yield Ignored(_SILENT, len(records))
            continue
        made[0].records = records
        for row in made:
            row.conversation_id = thread
            row.records = row.records or records[:1]
        shared |= graph.known.keys()
        yield from made


def _rows(key: str, space: str, graph: _Graph, shared: set[str]) -> list[Conversation] | str:
    """The rows of the ways through a graph; those of a subgraph belong to the thread's."""
    tree = Tree.of({name: identifier(node.get("parent_checkpoint_id")) for name, node in graph.nodes.items()})
    ways = branches(tree, max(tree.leaves()))
    made: list[Conversation] = []
    for number, way in enumerate(ways):
        row = _row(graph, way, shared, bool(number))
        if isinstance(row, str):
            return row
        if row is None:
            continue
        own = name_of(ways, number)
        row.native_id, row.branch = key, f"{space}/{own}" if space else own
        if way.parent is not None:
            above = name_of(ways, way.parent)
            row.parent = Identity(key, branch=f"{space}/{above}" if space else above)
        elif space:
            row.parent = Identity(key)
        row.n_records = len(graph.nodes)
        made.append(row)
    return made


def _row(graph: _Graph, way: Branch, shared: set[str], left: bool) -> Conversation | str | None:
    """What is said on a way; nothing where all of it was said elsewhere."""
    times: dict[str, Any] = {}
    before: set[str] = set(shared)
    for index, name in enumerate(way.nodes):
        node = graph.nodes[name]
        for each in node["names"]:
            times.setdefault(each, node.get("ts"))
        if index < way.own:
            before |= set(node["names"])
    last = graph.nodes[way.nodes[-1]]
    end = graph.end(way.nodes[-1])
    for each in end["names"]:
        times.setdefault(each, last.get("ts"))
    if not times.keys() - before:
        return None
    messages: list[Message] = []
    for name, at in times.items():
        read = _read(graph.known[name], at)
        if isinstance(read, str):
            return f"message {name} is none of LangChain's ({read}); see what wrote it"
        for message in read:
            message.inherited = name in before
        messages += read
    flags = {"abandoned"} if left else set()
    if set(last["names"]) < set(times) - set(end["names"]):
        flags.add("compacted")
    errors = [plain(told) for told in end[_ERROR]]
    extra = {"state": last.get("state"), "metadata": last.get("metadata"), "interrupts": end[_INTERRUPT]}
    return Conversation(
        messages,
        [],
        task_from_prompt=True,
        agent="langgraph",
        error="; ".join(errors) or None,
        status="error" if errors else None,
        started_at=graph.nodes[way.nodes[0]].get("ts"),
        ended_at=last.get("ts"),
        usage=counted([message for message in messages if not message.inherited]),
        flags=flags or None,
        extra={key: item for key, item in extra.items() if item not in (None, [], {})} or None,
    )


def _read(versions: list[Any], at: Any) -> list[Message] | str:
    """The last version of a message; earlier ones are kept beside it."""
    made = langchain_message(versions[-1])
    if isinstance(made, str):
        return made
    for message in made:
        message.at = message.at or at
    if len(versions) > 1:
        made[-1].extra = {**(made[-1].extra or {}), "earlier_versions": versions[:-1]}
    return made
