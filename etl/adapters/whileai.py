"""Rows of whileai (`simulate()`, `save()`, platform pulls, the published sets): a situation, an episode, its verdicts.

The version 1 row and the older shapes, told by key: engine rows, platform pulls with `tool_trace`, OTel ingest,
training exports, and the flat set whose lists are JSON text. Where a row has `messages` they are the transcript, else
it is put together from opener, prompt, steps and final text. Rows that a simulator wrote have origin `simulation` and
keep their cell, faults, seed and planted mistakes. A row is known by what was asked and done, not by its verdicts, so
that a graded copy replaces the plain one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import FileContext
from etl.adapters._chat import parsed
from etl.adapters._records import RecordAdapter, numbered
from etl.adapters._rollouts import reals
from etl.adapters._whileai import TRACES, Episode, verdicts
from etl.conversation import Conversation, Outcome, Record, Unusable
from etl.decode import encode
from etl.identity import digest

_JSON = ("steps_json", "messages_json", "metadata_json")
_SIMULATED = frozenset({"scenario_id", "scenario_dimensions", "seeded", "faults", "rollout_index"})
_ENDS = {"stop": "completed", "length": "truncated", "tool": "truncated", "error": "error"}
_AXES = ("tool", "tool_condition", "world_state", "stance", "history", "rule", "length")
_AGENT_ERROR = "<agent error"


class Whileai(RecordAdapter):
    """Rows of the whileai SDK and platform."""

    name = "whileai"
    version = 1
    about = "whileai rows: version 1 and the older shapes (engine, platform pull, OTel ingest, training, flat set)"
    expects = "a row is a JSON object with a prompt, steps and a final text"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the stamp or of the keys of a shape; less sure of a bare prompt with steps and a final text."""
        if any(isinstance(value.get(key), str) for key in _JSON[:2]) and "final_text" in value:
            return 0.92
        steps = next((value[key] for key in TRACES if isinstance(value.get(key), list)), None)
        stamped = value.get("schema_version") == "1"
        if steps is None or "final_text" not in value:
            training = stamped and isinstance(value.get("messages"), list) and not value.keys() & {"chosen", "rejected"}
            return 0.9 if training else 0.0
        told = [step for step in steps[:8] if isinstance(step, dict) and step.keys() & {"tool", "text", "user"}]
        if len(told) < len(steps[:8]) or not isinstance(value.get("prompt"), (str, type(None))):
            return 0.0
        if stamped:
            return 0.95
        return 0.92 if value.keys() & {"scenario_id", "conversation_id", "tool_trace"} else 0.85

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a row; repeats whose number is not logged are numbered in the order of the file."""
        yield from numbered(super().parse(records, file))

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """The one episode of a row."""
        yield _row(record, _opened(value))


def _opened(value: dict[str, Any]) -> dict[str, Any]:
    """The row with lists in the place of their JSON text, and what its metadata says that it does not say itself."""
    if not value.keys() & set(_JSON):
        return value
    row = dict(value)
    for key in _JSON:
        decoded = parsed(row[key]) if isinstance(row.get(key), str) else None
        name = key.removesuffix("_json")
        if isinstance(decoded, dict if name == "metadata" else list) and not row.get(name):
            row[name] = decoded
            del row[key]
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        known = {key for key in metadata if key not in row and (key in _SIMULATED or key in ("seed", "markers"))}
        row.update({key: metadata[key] for key in known})
        row["metadata"] = {key: item for key, item in metadata.items() if key not in known}
    return row


def _row(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    simulated = bool(value.keys() & _SIMULATED)
    episode = Episode.of(value, simulated)
    if isinstance(episode, str):
        return Unusable(record, "bad_message", episode)
    if not episode.messages:
        return Unusable(record, "no_messages", "the row has neither a prompt nor steps, messages or a final text")
    policy = next((value[key] for key in ("policy_version", "model_version") if isinstance(value.get(key), str)), "")
    scenario = value.get("scenario_id")
    index = value.get("rollout_index")
    task = [scenario if isinstance(scenario, str) else None, value.get("prompt")]
    reward = value.get("reward")
    judgments, judged = verdicts(value)
    seeded = value.get("seeded")
    planted = seeded if isinstance(seeded, list) and all(isinstance(item, str) for item in seeded) else None
    cell = _cell(value) if simulated else None
    made = Conversation(
        episode.messages,
        (record,),
        run=policy,
        origin="simulation" if simulated else None,
        scenario=cell,
        faults=value.get("faults"),
        seed=value.get("seed"),
        seeded=planted,
        prompt=value["prompt"] if isinstance(value.get("prompt"), str) and value["prompt"] else None,
        tools=value.get("tools"),
        reward=reward,
        judgments=judgments or None,
        model=value["model_version"] if isinstance(value.get("model_version"), str) else None,
        policy_version=value["policy_version"] if isinstance(value.get("policy_version"), str) else None,
        usage=episode.usage,
        logprobs=reals(value.get("token_logprobs")) or None,
        started_at=value.get("ts"),
        flags={"unreadable_value"} if episode.unread else None,
    )
    _ending(made, value)
    _named(made, value, task, index)
    held = {"prompt", "reward", "faults", "seed", "tools", "ts", "schema_version", *episode.held, *judged}
    held |= {"seeded"} if planted is not None else set()
    held |= {"rollout_index"} if type(index) is int else set()
    held |= {key for key in ("scenario_id", "conversation_id") if value.get(key) == _shown(made)}
    held |= {"token_logprobs"} if made.logprobs is not None else set()
    held |= {key for key in ("model_version", "policy_version", "finish_reason") if isinstance(value.get(key), str)}
    rest = {key: item for key, item in value.items() if key not in held and item not in (None, {})}
    if cell is not None:
        _beyond_cell(rest, cell)
    if episode.unread:
        rest["unread"] = {"steps": episode.unread}
    if value.get("final_text") not in (None, "", episode.final_text) and not made.error:
        rest["final_text"] = value["final_text"]
    made.extra = rest or None
    return made


def _shown(made: Conversation) -> str | None:
    return made.conversation_id or made.local_id


def _named(made: Conversation, value: dict[str, Any], task: list[Any], index: Any) -> None:
    """Identity, task and repeats. An episode of a run is known by its place in it and by what was done."""
    if isinstance(value.get("conversation_id"), str):
        made.local_id = value["conversation_id"]
    elif task[0] is not None and type(index) is int:
        done = [*task, index, value.get("seed"), value.get("opener"), value.get("steps"), value.get("final_text")]
        made.native_id = f"whileai:{digest(encode(done).encode('utf-8', 'surrogatepass'))}"
    made.conversation_id = made.conversation_id or (task[0] if made.native_id else None)
    group = value.get("group_id")
    if task[0] is not None or group is not None:
        made.task = ("whileai", encode(task if task[0] is not None else [None, group]))
        made.group = encode([made.run, *task, group])
        made.sample_index = index if type(index) is int else None
    else:
        made.task_from_prompt = True


def _ending(made: Conversation, value: dict[str, Any]) -> None:
    """How it ended: in the row's own word, or with an agent that raised."""
    finish = value.get("finish_reason")
    final = value.get("final_text")
    if isinstance(finish, str):
        made.finish_reason = finish
        made.status = _ENDS.get(finish)
    if isinstance(final, str) and final.startswith(_AGENT_ERROR):
        made.status, made.error = "error", final
        made.flags = {*(made.flags or ()), "api_error"}


def _cell(value: dict[str, Any]) -> dict[str, Any] | None:
    """The intended cell: its dimensions, and the axes that the row names beside them."""
    dimensions = value.get("scenario_dimensions")
    cell = {**dimensions} if isinstance(dimensions, dict) else {}
    for axis in _AXES:
        if cell.get(axis) is None and value.get(axis) is not None and axis != "tool":
            cell[axis] = value[axis]
    return {axis: cell[axis] for axis in _AXES if cell.get(axis) is not None} or None


def _beyond_cell(rest: dict[str, Any], cell: dict[str, Any]) -> None:
    """Takes out of the rest what the cell says, and keeps what says something else."""
    dimensions = rest.get("scenario_dimensions")
    if isinstance(dimensions, dict):
        more = {key: item for key, item in dimensions.items() if item is not None and cell.get(key) != item}
        rest["scenario_dimensions"] = more
        if not more:
            del rest["scenario_dimensions"]
    for axis in _AXES:
        if axis in rest and rest[axis] == cell.get(axis):
            del rest[axis]
