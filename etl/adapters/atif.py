"""ATIF (Agent Trajectory Interchange Format) trajectories, versions 1.x, as Harbor and others write them.

One object is one trajectory: an agent and its steps, each a turn of user, system or agent with calls and what was
observed. Trajectories of sub-agents lie inside their parent, beside it under names of their own, or in other files.
Results name their call, or only stand in its step. Steps copied from a parent or an earlier file are inherited.

The result of a trial of Harbor above a trajectory has the task, the rewards, and how the trial failed.

A session id with a UUID in it names a conversation for good, with the trajectory's own id, or the agent's name where
several sub-agents share a session; any other is completed by a hash of the trajectory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._atif_steps import messages_of, sequence_of, usage_of
from etl.adapters._blocks import plain
from etl.adapters._harbor_trial import judge, trial_above
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Conversation, Identity, Outcome, Record, Unusable
from etl.identity import digest

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE)
_CONTINUED = re.compile(r"-cont-(\d+)\Z")
_HELD = frozenset({"schema_version", "session_id", "agent", "steps", "subagent_trajectories"})
_DEEPEST = 32


class _Found(NamedTuple):
    """One trajectory of a record, with the one that holds it (by position in the list of all)."""

    value: dict[str, Any]
    holder: int | None
    label: str
    """The name it goes by in an object of several; empty elsewhere."""


class Atif(Adapter):
    """Trajectories of agents in the interchange format."""

    name = "atif"
    version = 2
    about = "ATIF trajectories (Harbor): {schema_version: ATIF-v1.x, agent, steps} a file; sub-agents, continuations"
    scores_share = True
    splits = True

    def score(self, sample: Sample) -> float:
        """Sure of a list of steps under a schema version of the format."""
        objects = sample.objects()
        hits = sum(_is_trajectory(value) or bool(_named(value)) for value in objects)
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a trajectory, those of sub-agents after the one they belong to."""
        trial = trial_above(file)
        for record in records:
            found = list(_trajectories(record.value)) if isinstance(record.value, dict) else []
            if not found:
                yield Unusable(record, "no_steps", "not an ATIF trajectory: it has no list `steps`; see what wrote it")
            for made in _conversations(record, found):
                if trial and isinstance(made, Conversation) and made.parent is None:
                    judge(made, trial)
                yield made


def _is_trajectory(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    return str(value.get("schema_version")).startswith("ATIF") and isinstance(value.get("agent"), dict)


def _named(value: dict[str, Any]) -> dict[str, Any]:
    """The trajectories of an object that holds nothing else, by name."""
    found = {name: item for name, item in value.items() if _is_trajectory(item)}
    return found if len(found) == len(value) else {}


def _trajectories(value: dict[str, Any]) -> Iterator[_Found]:
    """All trajectories of a record: its own or those under names, each before the ones inside it."""
    named = {} if isinstance(value.get("steps"), list) else {k: v for k, v in value.items() if _steps(v)}
    waiting = [_Found(item, None, name) for name, item in named.items()] or (
        [_Found(value, None, "")] if _steps(value) else []
    )
    number = 0
    depth = {id(found.value): 0 for found in waiting}
    while waiting:
        found = waiting.pop(0)
        yield found
        deeper = depth[id(found.value)] + 1
        for inner in items(found.value, "subagent_trajectories") if deeper < _DEEPEST else []:
            if _steps(inner):
                depth[id(inner)] = deeper
                waiting.append(_Found(inner, number, found.label))
        number += 1


def _steps(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("steps"), list)


def _conversations(record: Record, found: list[_Found]) -> Iterator[Outcome]:
    records = [_own_record(record, each, len(found) == 1) for each in found]
    keys = [_key(each, own) for each, own in zip(found, records, strict=True)]
    parents = _parents(found)
    for position, (each, own) in enumerate(zip(found, records, strict=True)):
        above = parents.get(position)
        yield _conversation(own, each, keys[position], None if above is None else keys[above])


def _own_record(record: Record, each: _Found, alone: bool) -> Record:
    if alone:
        return record
    raw = msgspec.json.encode(each.value)
    return Record(each.value, raw, record.line, record.offset, record.notes, record.mended)


def _key(each: _Found, record: Record) -> str:
    value = each.value
    session, own = text(value.get("session_id")), text(value.get("trajectory_id"))
    agent = obj(value, "agent")
    if session is not None and _UUID.search(session):
        below = each.holder is not None or text(obj(agent, "extra").get("parent_session_id")) is not None
        return "/".join(
            part for part in (session, own, text(agent.get("name")) if below and own is None else None) if part
        )
    if own is not None and _UUID.search(own):
        return own
    return f"{session or ''}/{own or ''}/{digest(record.raw)}"


def _parents(found: list[_Found]) -> dict[int, int]:
    """Which trajectory of the record each belongs to: the one that holds it, or else the one that refers to it."""
    above = {position: each.holder for position, each in enumerate(found) if each.holder is not None}
    for position, each in enumerate(found):
        for step in items(each.value, "steps"):
            for result in items(obj(step, "observation"), "results"):
                for reference in items(result, "subagent_trajectory_ref"):
                    for other, candidate in enumerate(found):
                        if other != position and other not in above and _means(reference, candidate.value):
                            above[other] = position
    return above


def _means(reference: Any, value: dict[str, Any]) -> bool:
    """By trajectory id where the reference has one, else by session."""
    if not isinstance(reference, dict):
        return False
    for key in ("trajectory_id", "session_id"):
        named = text(reference.get(key))
        if named is not None:
            return named == value.get(key)
    return False


def _conversation(record: Record, each: _Found, key: str, parent: str | None) -> Outcome:
    value = each.value
    sequence = sequence_of(value)
    messages = messages_of(value, sequence is not None and sequence.logprobs is not None)
    if not messages:
        return Unusable(record, "no_messages", "the trajectory has no step that says anything")
    agent = obj(value, "agent")
    session = text(value.get("session_id"))
    declared = _declared_parent(agent, session)
    if parent is None and declared is not None and _UUID.search(declared):
        parent = declared
    continued = text(value.get("continued_trajectory_ref")) is not None
    return Conversation(
        messages,
        (record,),
        native_id=key,
        conversation_id=text(value.get("trajectory_id")) or session or each.label or None,
        parent=None if parent is None or parent == key else Identity(parent),
        task_from_prompt=parent is None and declared is None,
        tools=agent.get("tool_definitions"),
        status="truncated" if continued else None,
        model=text(agent.get("model_name")),
        agent=text(agent.get("name")),
        usage=usage_of(value, messages),
        token_ids=sequence and sequence.token_ids,
        loss_mask=sequence and sequence.loss_mask,
        logprobs=sequence and sequence.logprobs,
        flags={"ambiguous_parent"} if parent is None and declared is not None else None,
        extra=_extra(value, each.label),
    )


def _declared_parent(agent: dict[str, Any], session: str | None) -> str | None:
    """The session this one belongs to or goes on from: as the agent says, or the one before a continuation."""
    named = text(obj(agent, "extra").get("parent_session_id"))
    if named is not None or session is None:
        return named
    part = _CONTINUED.search(session)
    if part is None:
        return None
    base, number = session[: part.start()], int(part[1][:9])
    return base if number <= 1 else f"{base}-cont-{number - 1}"


def _extra(value: dict[str, Any], label: str) -> dict[str, Any] | None:
    rest = {key: item for key, item in value.items() if key not in _HELD and item is not None}
    rest["schema_version"] = plain(value.get("schema_version"))
    held = {"name", "model_name", "tool_definitions"}
    logged = value.get("agent")
    about = {key: item for key, item in obj(value, "agent").items() if key not in held and item is not None}
    rest.update({"agent": about or (logged if not isinstance(logged, dict) else None), "label": label})
    inner = [item for item in items(value, "subagent_trajectories") if not _steps(item)]
    if inner or not isinstance(value.get("subagent_trajectories", []), list):
        rest["subagent_trajectories"] = inner or value.get("subagent_trajectories")
    return {key: item for key, item in rest.items() if item not in (None, "", {}, [])}
