"""NeMo Gym rollouts: JSON Lines of OpenAI Responses items, with the reward of an environment.

`response.output` holds the whole rollout: what the model said, results of its calls, and turns of a user or an
environment in between. Some agents log a list of states there, each the input with all items up to a step: the last
one is the rollout, and what only earlier ones show goes to `extra`. Rows without a response are the inputs of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_form import error_text
from etl.adapters._api_responses import RESPONSES
from etl.adapters._api_rows import joined_pieces
from etl.adapters._blocks import identifier
from etl.adapters._rollouts import Sampled, TokenSequence, obj, one_sequence, text
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, Unusable
from etl.decode import encode
from etl.identity import digest

_PARAMS = "responses_create_params"
_TOKENS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
_HELD = frozenset({_PARAMS, "response", "reward", "_ng_rollout_index"})
_HELD_PARAMS = frozenset({"input", "instructions", "tools", "model"})
_HELD_RESPONSE = frozenset({"output", "model", "created_at", "tools", "object"})


class NemoGym(Adapter):
    """Rollouts that NeMo Gym collected."""

    name = "nemo_gym"
    version = 1
    about = "NeMo Gym rollouts: {responses_create_params, response, reward} a line, Responses items, token ids"
    scores_share = True
    ignores: ClassVar[dict[str, str]] = {
        "input_only": "a task as it was given to a run, without a response: its rollout is in another file",
        "aggregate_metrics": "means over all rollouts of an agent, whose rollouts are in other files",
    }

    def score(self, sample: Sample) -> float:
        """Sure of `responses_create_params`; sure of the metrics beside rollouts too, to leave them out."""
        hits = sum(isinstance(value.get(_PARAMS), dict) or _is_metrics(value) for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record that has a response."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and _is_metrics(value):
                yield Ignored("aggregate_metrics")
            elif not isinstance(value, dict) or not isinstance(value.get(_PARAMS), dict):
                yield Unusable(record, "no_request", "not a NeMo Gym row: it has no object `responses_create_params`")
            elif not isinstance(value.get("response"), dict):
                yield Ignored("input_only") if value.get("response") is None else _refused(record)
            else:
                yield _rollout(record, value)


def _is_metrics(value: dict[str, Any]) -> bool:
    return isinstance(value.get("agent_metrics"), dict) and isinstance(value.get("agent_ref"), dict)


def _refused(record: Record) -> Unusable:
    return Unusable(record, "bad_response", "`response` is no object; see what wrote it")


def _rollout(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    params, response = obj(value, _PARAMS), obj(value, "response")
    asked = _asked(params)
    answered, earlier = _answered(response.get("output"), asked)
    sequence = _sequence(answered)
    logged = [*asked, *(_without_tokens(item) if sequence else item for item in answered)]
    messages = joined_pieces([message for item in logged for message in _messages(item)])
    if not messages:
        return Unusable(record, "no_messages", "neither input nor output holds an item")
    agent, model = text(obj(value, "agent_ref").get("name")), text(response.get("model")) or text(params.get("model"))
    task = _task(value, asked)
    index = value.get("_ng_rollout_index")
    finish = text(obj(response, "incomplete_details").get("reason"))
    return Conversation(
        messages,
        (record,),
        local_id="/".join(filter(None, map(identifier, (value.get("_ng_task_index"), index)))) or None,
        run=encode([agent, model]),
        task=None if task is None else (f"nemo_gym:{agent or ''}", task),
        group=encode(["nemo_gym", agent, model, task]) if task is not None and type(index) is int else None,
        sample_index=index,
        tools=params.get("tools") or response.get("tools"),
        status="truncated" if value.get("truncated") is True or finish else None,
        finish_reason=finish or text(response.get("status")),
        error=error_text(response["error"]) if response.get("error") is not None else None,
        reward=value.get("reward"),
        rewards={key: item for key, item in value.items() if key != "reward" and _is_reward(key, item)} or None,
        model=model,
        agent=agent,
        started_at=response.get("created_at"),
        usage=_usage(response),
        token_ids=sequence and sequence.token_ids,
        loss_mask=sequence and sequence.loss_mask,
        logprobs=sequence and sequence.logprobs,
        extra=_extra(value, earlier),
    )


def _task(value: dict[str, Any], asked: list[Any]) -> str | None:
    """What was asked; where the environment asks only later, the number of the task."""
    names = [identifier(found) for found in (value.get("task_idx"), obj(value, "response").get("group_id"))]
    named = [*names, identifier(value.get("_ng_task_index"))]
    if any(isinstance(item, dict) and item.get("role") == "user" for item in asked):
        return digest(encode(asked).encode("utf-8", "surrogatepass"))
    return encode([asked, *named]) if any(named) else None


def _asked(params: dict[str, Any]) -> list[Any]:
    """The items of the request: instructions, then the input, which may be a text."""
    given = params.get("input")
    asked = given if isinstance(given, list) else [] if given is None else [{"role": "user", "content": given}]
    instructions = params.get("instructions")
    return [{"role": "system", "content": instructions}, *asked] if instructions else asked


def _answered(output: Any, asked: list[Any]) -> tuple[list[Any], list[Any]]:
    """The items after the request; and those of earlier states that the last one does not show."""
    listed = output if isinstance(output, list) else [] if output is None else [output]
    if not listed or not all(isinstance(state, list) for state in listed):
        return listed, []
    last = listed[-1]
    given = asked[1:] if asked and obj({"item": asked[0]}, "item").get("role") == "system" else asked
    head = next((part for part in (asked, given) if part and _same(last[: len(part)], part)), [])
    earlier = [item for state in listed[:-1] for item in state if item not in last and item not in head]
    return last[len(head) :], [item for number, item in enumerate(earlier) if item not in earlier[:number]]


def _same(some: list[Any], others: list[Any]) -> bool:
    """Whether two lists of items say the same, whichever optional keys they have."""
    return len(some) == len(others) and all(map(_says_same, some, others))


def _says_same(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    return all(one.get(key) == other.get(key) for key in ("role", "content", "call_id", "arguments", "output"))


def _messages(item: Any) -> list[Message]:
    return RESPONSES.message(item)


def _without_tokens(item: Any) -> Any:
    return {key: held for key, held in item.items() if key not in _TOKENS} if isinstance(item, dict) else item


def _sequence(answered: list[Any]) -> TokenSequence | None:
    """The tokens of all responses as one sequence; None where a response has none of its own."""
    sampled: list[Sampled] = []
    open_turn = False
    for item in answered:
        if not isinstance(item, dict):
            return None
        if isinstance(item.get("generation_token_ids"), list):
            sampled.append(Sampled(*(item.get(key) for key in _TOKENS)))
            open_turn = False
        elif item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant":
            open_turn = True
        elif open_turn:
            return None
    return None if open_turn or not sampled else one_sequence(sampled)


def _is_reward(key: str, item: Any) -> bool:
    return type(item) in (int, float, bool) and (key.endswith(("reward", "score")) or key.startswith("reward_"))


def _usage(response: dict[str, Any]) -> Tokens | None:
    """As logged; zeros beside a response that says something were never counted."""
    used = tokens(response.get("usage"))
    return None if used is not None and not used.input_tokens and not used.output_tokens else used


def _extra(value: dict[str, Any], earlier: list[Any]) -> dict[str, Any] | None:
    """What no column holds of the row, its request and its response; nulls say nothing."""
    rest = {key: item for key, item in value.items() if key not in _HELD and not _is_reward(key, item)}
    params, response = obj(value, _PARAMS), obj(value, "response")
    request = {key: item for key, item in params.items() if key not in _HELD_PARAMS}
    if params.get("model") and text(response.get("model")):
        request["model"] = params["model"]
    answer = {key: item for key, item in response.items() if key not in _HELD_RESPONSE}
    tools = response.get("tools")
    if tools and params.get("tools") and tools != params["tools"]:
        answer["tools"] = tools
    if type(value.get("_ng_rollout_index")) is not int:
        rest["_ng_rollout_index"] = value.get("_ng_rollout_index")
    more = {_PARAMS: _said(request), "response": _said(answer), "earlier_states": earlier}
    return _said({**rest, **more}) or None


def _said(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item not in (None, "", [], {})}
