"""Episodes of `verifiers` 0.4 (`traces.jsonl`) and of prime-rl's rollouts: message graphs with their model calls.

A line is an episode with a trace for each agent that took part, or one such trace alone. A trace holds every message
once and names the one before it; each way to a leaf is a row, the last one first, and turns that it shares with an
earlier row are marked as inherited. Tokens, masks and log probabilities lie with the messages and are joined. The
reward is the weighted sum of the named rewards, as the library has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import FileContext
from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._records import RecordAdapter, numbered, part
from etl.adapters._rollouts import items, obj, text
from etl.adapters._verifiers_nodes import Path, total
from etl.conversation import Conversation, Identity, Message, Outcome, Record, Unusable, Verdict
from etl.decode import encode
from etl.identity import digest

_TRUNCATED = frozenset({"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"})
_COUNTED = frozenset({"num_input_tokens", "num_output_tokens", "num_total_tokens"})
"""Sums that the library derives from the calls."""
_HELD = _COUNTED | {"id", "nodes", "calls", "tools", "rewards", "metrics", "stop_condition", "is_completed", "timing"}


class VerifiersTraces(RecordAdapter):
    """Traces that verifiers and prime-rl write."""

    name = "verifiers_traces"
    version = 1
    about = "verifiers 0.4 traces.jsonl and prime-rl rollouts: episodes of traces, each way through a trace a row"
    expects = "a line is an episode with `traces`, or one trace with `nodes`, a JSON object"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of traces whose nodes hold messages."""
        return 0.95 if any(map(_is_trace, _traces(value)[:4])) or _is_empty_episode(value) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """Rows of every trace; repeats of a task are counted in the order of the file."""
        yield from numbered(super().parse(records, file))

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """The rows of one episode."""
        alone = "nodes" in value
        episode = {} if alone else {key: item for key, item in value.items() if key != "traces"}
        traces = _traces(value)
        if not traces:
            yield _failed(record, value)
        for trace in traces:
            own = record if alone else part(record, {**episode, "traces": [trace]})
            if not isinstance(trace, dict) or not isinstance(trace.get("nodes"), list):
                yield Unusable(own, "no_messages", "a trace has a list `nodes` of messages; this has none")
            elif not trace["nodes"]:
                yield _failed(own, {**episode, **trace})
            else:
                yield from _Trace(own, episode, trace).rows()


def _traces(value: dict[str, Any]) -> list[Any]:
    return [value] if "nodes" in value else items(value, "traces")


def _is_trace(value: Any) -> bool:
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if not isinstance(nodes, list) or not isinstance(value.get("task"), dict):
        return False
    return all(isinstance(node, dict) and isinstance(node.get("message"), dict) for node in nodes[:4])


def _is_empty_episode(value: dict[str, Any]) -> bool:
    return value.get("traces") == [] and isinstance(value.get("task"), dict) and "env" in value


def _failed(record: Record, value: dict[str, Any]) -> Outcome:
    """An episode in which no model was called: what was to be asked, and what went wrong."""
    data = obj(obj(value, "task"), "data")
    asked = [Message("user", data["prompt"])] if isinstance(data.get("prompt"), str) else []
    if isinstance(data.get("system_prompt"), str):
        asked.insert(0, Message("system", data["system_prompt"]))
    error = _error(value)
    if not asked and error is None:
        return Unusable(record, "no_messages", "nothing was asked in this episode, and no error says why")
    return Conversation(
        asked,
        (record,),
        native_id=_native(value),
        conversation_id=text(value.get("id")),
        task=_task(value, value),
        status="error",
        error=error or "no model call",
        flags=None if asked else {"content_not_captured"},
        extra={key: item for key, item in value.items() if key != "id" and item not in (None, [], {})},
    )


def _native(value: dict[str, Any]) -> str | None:
    found = text(value.get("id"))
    return f"verifiers:{found}" if found is not None and len(found) >= 32 else None


def _task(episode: dict[str, Any], trace: dict[str, Any]) -> tuple[str, str] | None:
    """The task under its environment, by the key that the library gives it, or by its data."""
    task = obj(trace, "task") or obj(episode, "task")
    named = text(task.get("key")) or text(task.get("hash"))
    if named is None and task.get("data") is not None:
        named = digest(encode(task["data"]).encode("utf-8", "surrogatepass"))
    environment = text(obj(episode, "env").get("id")) or text(task.get("type")) or ""
    return None if named is None else (f"verifiers:{environment}", named)


def _error(value: dict[str, Any]) -> str | None:
    last = next(iter(items(value, "errors")[::-1]), None)
    if last is None:
        return None
    said = [text(last.get("type")), text(last.get("message"))] if isinstance(last, dict) else [encode(last)]
    return ": ".join(filter(None, said)) or encode(last)


def _of_node(call: Any) -> bool:
    """Whether a call made the message of a node; one that failed made none."""
    return isinstance(call, dict) and type(call.get("node")) is int


class _Trace:
    """One trace, being read."""

    def __init__(self, record: Record, episode: dict[str, Any], trace: dict[str, Any]) -> None:
        self.record, self.episode, self.trace = record, episode, trace
        self.nodes = trace["nodes"]
        above: dict[str, str | None] = {}
        for number, node in enumerate(self.nodes):
            parent = node.get("parent") if isinstance(node, dict) else None
            above[str(number)] = None if parent is None else str(parent)
        self.tree = Tree.of(above)
        self.native = _native(trace)
        self.run = encode([obj(episode, "env").get("id"), self._model(), self._agent()])
        self.calls = {call["node"]: call for call in items(trace, "calls") if _of_node(call)}

    def _model(self) -> str | None:
        logged = text(obj(obj(self.trace, "agent"), "config").get("model"))
        return logged or next(
            (text(c["model"]) for c in items(self.trace, "calls") if text(obj({"c": c}, "c").get("model"))), None
        )

    def _agent(self) -> str | None:
        return text(obj(self.trace, "agent").get("name"))

    def rows(self) -> Iterator[Outcome]:
        """The row of the last way, then those of the others; or one reject."""
        ways = branches(self.tree, str(len(self.nodes) - 1))
        made: list[Conversation] = []
        for number, way in enumerate(ways):
            path = Path(self.calls)
            for index, name in enumerate(way.nodes):
                wrong = path.take(int(name), self.nodes[int(name)], index < way.own)
                if wrong is not None:
                    yield Unusable(self.record, wrong, f"nodes[{name}] holds no message with a known role")
                    return
            made.append(self._row(ways, number, way, path))
        yield from made

    def _row(self, ways: list[Branch], number: int, way: Branch, path: Path) -> Conversation:
        main = number == 0
        sequence = path.sequence()
        stop = text(self.trace.get("stop_condition"))
        task = _task(self.episode, self.trace)
        error = _error(self.trace) if main else None
        flags = {"ambiguous_parent"} if any(name in self.tree.dangling for name in way.nodes) else set()
        flags |= {"compacted"} if path.compacted else set()
        work = obj(obj(self.episode, "run"), "work")
        return Conversation(
            path.messages,
            (self.record,),
            native_id=self.native,
            run="" if self.native else self.run,
            conversation_id=text(self.trace.get("id")),
            branch=name_of(ways, number),
            prompt=text(obj(obj(self.trace, "task"), "data").get("prompt")) if path.compacted else None,
            parent=self._parent(ways, way),
            task=task,
            group=encode([self.run, task, obj(self.episode, "group").get("id")]) if main and task else None,
            tools=self.trace.get("tools") or path.tools,
            status=self._status(stop, error) if main else None,
            finish_reason=(stop if main else None) or path.finish_reason,
            error=error,
            reward=total(self.trace.get("rewards")) if main else None,
            rewards=_weighted(self.trace.get("rewards")) if main else None,
            judgments=self._judgments() if main else None,
            model=self._model(),
            agent=self._agent(),
            policy_version=_policy(work.get("policy")),
            started_at=obj(self.trace, "timing").get("start") if main else None,
            ended_at=self._ended() if main else None,
            usage=path.usage(),
            token_ids=sequence and sequence.token_ids,
            loss_mask=sequence and sequence.loss_mask,
            logprobs=sequence and sequence.logprobs,
            flags=flags or None,
            extra=self._extra(path) if main else None,
        )

    def _parent(self, ways: list[Branch], way: Branch) -> Identity | None:
        if way.parent is None or self.native is None:
            return None
        return Identity(self.native, branch=name_of(ways, way.parent))

    def _status(self, stop: str | None, error: str | None) -> str | None:
        if error is not None and self.trace.get("ok") is not True:
            return "error"
        if stop in _TRUNCATED:
            return "truncated"
        return "completed" if self.trace.get("is_completed") is True else None

    def _ended(self) -> Any:
        timing = obj(self.trace, "timing")
        ends = [obj(timing, phase).get("end") for phase in ("scoring", "finalize", "agent")]
        return next((end for end in ends if isinstance(end, (int, float)) and end > 0), None)

    def _judgments(self) -> list[Verdict] | None:
        scores = {name: obj({"r": item}, "r").get("score") for name, item in obj(self.trace, "rewards").items()}
        found = [Verdict(name, "rule", float(item)) for name, item in scores.items() if isinstance(item, (int, float))]
        metrics = obj(self.trace, "metrics").items()
        return [*found, *(Verdict(n, "marker", float(v)) for n, v in metrics if type(v) in (int, float, bool))] or None

    def _extra(self, path: Path) -> dict[str, Any] | None:
        """What no column holds of the trace and its episode, told once, with the last way."""
        rest = {key: item for key, item in self.trace.items() if key not in _HELD and item not in (None, [], {}, "")}
        timing = {key: item for key, item in obj(self.trace, "timing").items() if key != "start"}
        others = [call for call in items(self.trace, "calls") if not _of_node(call)]
        weights = {
            n: r["weight"]
            for n, r in obj(self.trace, "rewards").items()
            if obj({"r": r}, "r").get("weight") not in (None, 1.0)
        }
        episode = {
            key: item for key, item in self.episode.items() if key not in _COUNTED and item not in (None, [], {})
        }
        if episode.get("task") == self.trace.get("task"):
            episode.pop("task", None)
        native = {} if self.native else {"id": self.trace.get("id")}
        more = {"timing": timing, "calls": others, "reward_weights": weights, "episode": episode, **native}
        rest.update({key: item for key, item in more.items() if item})
        return rest or None


def _weighted(rewards: Any) -> dict[str, Any] | None:
    """Each named reward times its weight: what the reward is the sum of."""
    found = {name: total({name: item}) for name, item in rewards.items()} if isinstance(rewards, dict) else {}
    return found or None


def _policy(policy: Any) -> str | None:
    """The version, or the versions, of the policy that acted."""
    span = [policy.get("start"), policy.get("end")] if isinstance(policy, dict) else []
    versions = list(dict.fromkeys(str(version) for version in span if version is not None))
    return "-".join(versions) or None
