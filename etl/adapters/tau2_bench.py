"""τ²-bench results: one object `{timestamp, info, tasks, simulations}` a file, one simulation an attempt at one task.

Both sides call tools: calls with `requestor: "user"` are steps of the actor `user`, and what they cost goes to `extra`.
The agent's policy stands beside the simulations and not in them; it is put first, as a synthetic system message. Voice
runs have `ticks` instead of messages: the text of consecutive chunks of one side is one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain, read
from etl.adapters._records import part
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, ToolCall, Unusable, Verdict
from etl.identity import digest

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_COMPLETED = frozenset({"user_stop", "agent_stop"})
_STATUS = {"max_steps": "truncated", "timeout": "truncated", "too_many_errors": "error", "agent_error": "error"}
_CHECKS = {"env_assertions": "env_assertion", "action_checks": "action", "nl_assertions": "nl_assertion",
           "communicate_checks": "communicate"}  # fmt: skip
_HELD = frozenset({"role", "content", "tool_calls", "tool_messages", "id", "error", "timestamp", "cost", "usage"})


class Tau2Bench(Adapter):
    """Results of τ²-bench runs, text and voice."""

    name = "tau2_bench"
    version = 1
    about = (
        "τ²-bench results: {info, tasks, simulations} a file, one simulation an attempt; user-side tools, voice ticks"
    )
    splits = True

    def score(self, sample: Sample) -> float:
        """Sure of `simulations` beside `info` and `tasks`; fairly sure of a single simulation with its reward."""
        objects = sample.objects()
        if not objects:
            return 0.0
        return sum(0.95 if _is_results(value) else 0.8 if _is_simulation(value) else 0.0 for value in objects) / len(
            objects
        )

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a simulation."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and isinstance(value.get("simulations"), list):
                yield from _simulations(record, value)
            elif isinstance(value, dict) and _is_simulation(value):
                yield _simulation(record, value, {})
            else:
                yield Unusable(record, "no_simulations", "not a τ²-bench results object: it has no list `simulations`")


def _is_results(value: dict[str, Any]) -> bool:
    return isinstance(value.get("simulations"), list) and isinstance(value.get("info"), dict)


def _is_simulation(value: dict[str, Any]) -> bool:
    turns = isinstance(value.get("messages"), list) or isinstance(value.get("ticks"), list)
    return turns and "task_id" in value and ("reward_info" in value or "termination_reason" in value)


def _simulations(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    """Every simulation of a results object, each with what the object says of all of them."""
    simulations = value["simulations"]
    if not simulations:
        yield Unusable(
            record, "no_simulations", "the results hold no simulation; was the run cut off before the first?"
        )
    info = _object(value, "info")
    by_id = {identifier(task.get("id")): task for task in _list(value, "tasks") if isinstance(task, dict)}
    rest = {key: item for key, item in value.items() if key not in ("simulations", "tasks", "info")}
    told = {identifier(item.get("id")) for item in simulations if isinstance(item, dict) and item.get("messages")}
    for simulation in simulations:
        own = part(record, simulation)
        if not isinstance(simulation, dict):
            yield Unusable(own, "not_an_object", "a simulation is a JSON object; this element is none")
            continue
        if not simulation.get("messages") and not simulation.get("ticks") and identifier(simulation.get("id")) in told:
            yield Unusable(own, "duplicate", "the simulation is in this file once more, with its messages")
            continue
        about = {"info": info, "task": by_id.get(identifier(simulation.get("task_id"))), "results": rest}
        yield _simulation(own, simulation, about)


def _simulation(record: Record, value: dict[str, Any], about: dict[str, Any]) -> Conversation | Unusable:
    info = about.get("info") or {}
    environment, agent = _object(info, "environment_info"), _object(info, "agent_info")
    messages, user_cost = _messages(value)
    if isinstance(messages, str):
        return Unusable(record, "bad_message", messages)
    policy = environment.get("policy")
    if messages and isinstance(policy, str) and policy and messages[0].role != "system":
        messages.insert(0, Message("system", policy, synthetic=True))
    native, task_id = identifier(value.get("id")), identifier(value.get("task_id"))
    domain = environment.get("domain_name") if isinstance(environment.get("domain_name"), str) else ""
    model = agent.get("llm") if isinstance(agent.get("llm"), str) else None
    trial, reason = value.get("trial"), identifier(value.get("termination_reason"))
    reward_info = _object(value, "reward_info")
    usage = _usage(messages, value.get("agent_cost"))
    run = digest(msgspec.json.encode([about.get("results"), info]))
    return Conversation(
        messages,
        (record,),
        native_id=None if native is None else native if _UUID.match(native) else f"{run}/{native}",
        conversation_id=native,
        local_id=f"{task_id}/{trial}",
        task=None if task_id is None else (f"tau2_bench:{domain}", task_id),
        group=None if task_id is None or type(trial) is not int else f"{run}/{task_id}",
        sample_index=trial,
        tools=environment.get("tool_defs"),
        status=None if reason is None else "completed" if reason in _COMPLETED else _STATUS.get(reason),
        finish_reason=reason,
        reward=reward_info.get("reward"),
        rewards=_object(reward_info, "reward_breakdown") or None,
        judgments=list(_verdicts(reward_info)) or None,
        model=model,
        agent=agent.get("implementation") if isinstance(agent.get("implementation"), str) else None,
        started_at=value.get("start_time"),
        ended_at=value.get("end_time"),
        usage=usage,
        extra=_extra(value, about, user_cost),
    )  # fmt: skip


def _object(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: dict[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _messages(value: dict[str, Any]) -> tuple[list[Message] | str, dict[str, Any]]:
    """The messages, or what is wrong with them; and what the simulated user's model responses used."""
    turns = value.get("messages")
    if not isinstance(turns, list) or (not turns and value.get("ticks")):
        return _spoken(value.get("ticks")), {}
    messages: list[Message] = []
    used = Tokens()
    for index, turn in enumerate(turns):
        if not isinstance(turn, dict) or identifier(turn.get("role")) not in _ROLES:
            return f"messages[{index}] is no message with a known role; see what wrote it", {}
        # A message of several results at once holds them under `tool_messages`.
        several = turn.get("tool_messages")
        each = several if isinstance(several, list) and all(isinstance(item, dict) for item in several) else [turn]
        messages += [_message(item, turn["role"]) for item in each]
        counted = tokens(turn.get("usage")) if turn["role"] == "user" else None
        if counted is not None:
            used.input_tokens = (used.input_tokens or 0) + (counted.input_tokens or 0)
            used.output_tokens = (used.output_tokens or 0) + (counted.output_tokens or 0)
    return messages, {key: item for key, item in msgspec.structs.asdict(used).items() if item is not None}


def _message(turn: dict[str, Any], role: str) -> Message:
    content = read(turn.get("content"))
    calls, unread = _calls(turn.get("tool_calls"))
    extra = {key: item for key, item in turn.items() if key not in _HELD and item is not None}
    if unread:
        extra["tool_calls"] = unread
    if turn.get("cost"):
        extra["cost"] = turn["cost"]
    message = Message(
        role, content.text, content.reasoning, calls=[*(content.calls or ()), *calls] or None, at=turn.get("timestamp"),
        parts=content.parts, extra=extra or None,
    )  # fmt: skip
    if role == "tool":
        message.call_id = identifier(turn.get("id")) or identifier(turn.get("tool_call_id"))
        message.failed = turn["error"] if isinstance(turn.get("error"), bool) else None
    else:
        message.id = identifier(turn.get("id"))
    usage = tokens(turn.get("usage"))
    if usage is not None and role == "assistant":
        message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
    return message


def _calls(listed: Any) -> tuple[list[ToolCall], list[Any]]:
    """The flat calls of a message by who asked for them, and what of the list is no call."""
    made: list[ToolCall] = []
    unread: list[Any] = []
    for call in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            actor = "user" if call.get("requestor") == "user" else "agent"
            made.append(ToolCall(call["name"], call.get("arguments"), identifier(call.get("id")), actor))
        else:
            unread.append(call)
    return made, unread


def _spoken(ticks: Any) -> list[Message] | str:
    """The messages of a voice run: consecutive chunks of one side are one message."""
    if not isinstance(ticks, list):
        return "the simulation has neither `messages` nor `ticks`"
    messages: list[Message] = []
    for tick in ticks:
        for role, key in (("assistant", "agent_chunk"), ("user", "user_chunk")):
            chunk = tick.get(key) if isinstance(tick, dict) else None
            if not isinstance(chunk, dict):
                continue
            made = _message({**chunk, "tick_id": tick.get("tick_id")}, role)
            if not (made.content or made.calls):
                continue
            last = messages[-1] if messages else None
            if last is not None and last.role == role and not last.calls and not made.calls:
                last.content += made.content
            else:
                messages.append(made)
    return messages


def _usage(messages: list[Message], cost: Any) -> Tokens | None:
    own = [message for message in messages if message.role == "assistant"]
    used = Tokens(cost_usd=cost if type(cost) in (int, float) else None)
    for message in own:
        for name in ("input_tokens", "output_tokens"):
            count = getattr(message, name)
            if count is not None:
                setattr(used, name, (getattr(used, name) or 0) + count)
    return used if used != Tokens() else None


def _verdicts(reward_info: dict[str, Any]) -> Iterator[Verdict]:
    """The database check and every assertion, action, statement and communicated fact that was checked."""
    database = _object(reward_info, "db_check")
    if database:
        yield Verdict("db", "rule", _score(database.get("db_reward")), _label(database.get("db_match")))
    for key, name in _CHECKS.items():
        for check in _list(reward_info, key):
            if isinstance(check, dict):
                met = check.get("met", check.get("action_match"))
                value = _score(check.get("reward", check.get("action_reward", met)))
                kind = "judge" if key == "nl_assertions" else "rule"
                subject = next(
                    (check[k] for k in ("action", "env_assertion", "nl_assertion", "info") if k in check), None
                )
                reason = check.get("justification")
                said = plain(subject) if subject is not None else None
                yield Verdict(name, kind, value, _label(met), reason=reason if isinstance(reason, str) else said)


def _score(value: Any) -> float | None:
    return float(value) if type(value) in (int, float, bool) and abs(value) < 1e300 else None


def _label(value: Any) -> str | None:
    return {True: "met", False: "not met"}.get(value) if isinstance(value, bool) else None


def _extra(value: dict[str, Any], about: dict[str, Any], user: dict[str, Any]) -> dict[str, Any] | None:
    """What of the simulation, its task and its run no column holds; the policy and the tools are in the row already."""
    held = {"id", "task_id", "trial", "start_time", "end_time", "termination_reason", "messages", "agent_cost"}
    rest = {key: item for key, item in value.items() if key not in held and item is not None}
    rewards = _object(value, "reward_info")
    if rewards:
        rest["reward_info"] = {
            k: v for k, v in rewards.items() if k not in ("reward", "reward_breakdown") and v is not None
        }
    info = dict(about.get("info") or {})
    if isinstance(info.get("environment_info"), dict):
        info["environment_info"] = {
            k: v for k, v in info["environment_info"].items() if k not in ("policy", "tool_defs")
        }
    more = {"info": info, "task": about.get("task"), "results": about.get("results"), "user_usage": user}
    rest.update({key: item for key, item in more.items() if item})
    return rest or None
