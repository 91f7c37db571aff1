"""One sample of an Inspect log: its messages with times and tokens, its scores, and what no column holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from etl.adapters._blocks import plain
from etl.adapters._chat import chat_messages, opened
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Message, Tokens, Verdict

_REFERENCES = ("attachment://", "tc://")
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
"""How a number that JSON does not know is passed on."""
_CONDITIONS = {
    "timeout": "timeout", "permission": "permission_denied", "approval": "permission_denied",
    "file_not_found": "not_found", "parsing": "invalid_arguments", "unicode_decode": "malformed_result",
}  # fmt: skip
_HELD = frozenset(
    {"id", "epoch", "messages", "scores", "uuid", "started_at", "completed_at", "attachments", "output", "input",
     "model_usage", "error", "transcript"}
)  # fmt: skip
_COUNTS = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "reasoning_tokens")


class Reading(msgspec.Struct):
    """A sample's messages, and what its events say of them."""

    messages: list[Message]
    stop_reason: str | None = None
    started_at: Any = None
    usage: Tokens | None = None
    typed: str | None = None
    """The first message that is the sample's own input."""


def resolved(value: Any, attachments: dict[str, Any]) -> Any:
    """The value with every reference to an attachment replaced by what it stands for."""
    if isinstance(value, str):
        for scheme in _REFERENCES:
            if value.startswith(scheme):
                return attachments.get(value.removeprefix(scheme), value)
        return value
    if isinstance(value, list):
        return [resolved(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: resolved(item, attachments) for key, item in value.items()}
    return value


def attachments_of(value: dict[str, Any]) -> dict[str, Any]:
    """Long texts by the hash that references name; old logs hold them with the transcript."""
    return {**obj(obj(value, "transcript"), "content"), **obj(value, "attachments")}


def read_messages(value: dict[str, Any], model: str | None) -> Reading | str:
    """The messages of a sample, or the reason why one is none."""
    attachments = attachments_of(value)
    answers = _answers(value)
    reading = Reading([], text(_choice(obj(value, "output")).get("stop_reason")))
    for logged in items(value, "messages") or _pooled(value):
        turn = opened(resolved(logged, attachments))
        read = chat_messages(_plain_turn(turn))
        if isinstance(read, str):
            return read
        for message in read:
            _told(message, turn)
            if message.role == "assistant":
                _answered(message, answers.get(message.id))
            if message.role == "user" and turn.get("source") == "input" and reading.typed is None:
                reading.typed = message.content
        reading.messages += read
    reading.started_at = next((event.get("timestamp") for event in events_of(value)), None)
    reading.usage = _usage(value, reading.messages, answers, model)
    return reading


def _pooled(value: dict[str, Any]) -> list[Any]:
    """The messages of the last request, by its references into the pool of the sample, and the answer to it."""
    pool = items(value, "message_pool")
    requests = [event for event in events_of(value) if event.get("event") == "model" and event.get("input_refs")]
    if not pool or not requests:
        return []
    found: list[Any] = []
    for reference in items(requests[-1], "input_refs"):
        if isinstance(reference, list) and len(reference) == 2 and all(type(end) is int for end in reference):
            found += pool[max(reference[0], 0) : max(reference[1], 0)]
    answer = obj(_choice(obj(requests[-1], "output")), "message")
    return [*found, answer] if answer else found


def events_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a sample, wherever its version of the log keeps them."""
    listed = items(value, "events") or items(obj(value, "transcript"), "events")
    return [event for event in listed if isinstance(event, dict)]


def _plain_turn(turn: Any) -> Any:
    """A message as chat formats have it: calls name their function flat, nulls of blocks say nothing."""
    if not isinstance(turn, dict):
        return turn
    turn = {key: item for key, item in turn.items() if key not in ("error", "tool_error") or turn.get("role") != "tool"}
    if isinstance(turn.get("content"), list):
        turn["content"] = [_plain_block(block) for block in turn["content"]]
    if isinstance(turn.get("tool_calls"), list):
        turn["tool_calls"] = [_plain_call(call) for call in turn["tool_calls"]]
    return turn


def _plain_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    block = {key: item for key, item in block.items() if item is not None}
    return {**block, "type": "server_tool_use"} if block.get("type") == "tool_use" else block


def _plain_call(call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), str) or "name" in call:
        return call
    return {("name" if key == "function" else key): item for key, item in call.items() if item is not None}


def _told(message: Message, turn: dict[str, Any]) -> None:
    """What only a result has: its tool, and whether the call failed. The log names every failure."""
    if message.role != "tool":
        return
    rest = dict(message.extra or {})
    if message.name is None and isinstance(rest.get("function"), str):
        message.name = rest.pop("function") or None
    error = turn.get("error") or turn.get("tool_error")
    message.failed = bool(error)
    if isinstance(error, dict):
        kind, said = error.get("type"), error.get("message")
        message.error = ": ".join(plain(part) for part in (kind, said) if part)
        message.condition = _CONDITIONS.get(kind) if isinstance(kind, str) else None
        rest["error"] = error
    elif error:
        message.error = plain(error)
        rest["error"] = error
    message.extra = rest or None


def _answers(value: dict[str, Any]) -> dict[str | None, dict[str, Any]]:
    """The model events by the id of the message that each gave."""
    found: dict[str | None, dict[str, Any]] = {}
    for event in events_of(value):
        if event.get("event") == "model":
            name = text(obj(_choice(obj(event, "output")), "message").get("id"))
            if name is not None:
                found[name] = event
    return found


def _answered(message: Message, event: dict[str, Any] | None) -> None:
    """Time, tokens and stop reason of the model response that a message is."""
    if event is None:
        return
    output = obj(event, "output")
    message.at = message.at or event.get("completed") or event.get("timestamp")
    message.finish_reason = text(_choice(output).get("stop_reason"))
    used = _tokens(output.get("usage"))
    if used is not None:
        message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens


def _choice(output: dict[str, Any]) -> dict[str, Any]:
    choices = items(output, "choices")
    return choices[0] if choices and isinstance(choices[0], dict) else {}


def _tokens(usage: Any) -> Tokens | None:
    """Usage of a response. Whether `input_tokens` includes what was cached differs by provider and version of the
    log; the logged total tells.
    """
    if not isinstance(usage, dict):
        return None
    read, written, cached, stored, reasoned = (count(usage.get(key)) for key in _COUNTS)
    total = count(usage.get("total_tokens"))
    beside = (cached or 0) + (stored or 0)
    if read is not None and beside and total == read + (written or 0) + beside:
        read += beside
    cost = usage.get("total_cost")
    used = Tokens(read, written, cached, stored, reasoned, cost if type(cost) in (int, float) else None)
    return used if used != Tokens() else None


def _usage(
    value: dict[str, Any], messages: list[Message], answers: dict[str | None, dict[str, Any]], model: str | None
) -> Tokens | None:
    """What the messages' own responses used, where events tell all of them; else what the sample says of its model,
    which counts a grader in where that is the same.
    """
    own = [message for message in messages if message.role == "assistant"]
    each = [_tokens(obj(answers.get(message.id, {}), "output").get("usage")) for message in own]
    if each and all(used is not None for used in each):
        return _sum([used for used in each if used is not None])
    by_model = obj(value, "model_usage")
    if model in by_model:
        return _tokens(by_model[model])
    return _tokens(next(iter(by_model.values()))) if len(by_model) == 1 else None


def _sum(each: list[Tokens]) -> Tokens:
    total = Tokens()
    for name in Tokens.__struct_fields__:
        counts = [getattr(used, name) for used in each if getattr(used, name) is not None]
        setattr(total, name, sum(counts) if counts else None)
    return total


def prompt_of(value: dict[str, Any], reading: Reading) -> str | None:
    """What the sample asks: its input among the messages, or the input itself where there are none."""
    if reading.typed is not None:
        return reading.typed
    if any(message.role == "user" for message in reading.messages):
        return None
    given = resolved(value.get("input"), attachments_of(value))
    if isinstance(given, str):
        return given
    for turn in given if isinstance(given, list) else []:
        read = chat_messages(turn)
        if not isinstance(read, str) and read[0].role == "user":
            return read[0].content
    return None


def tools_of(value: dict[str, Any]) -> list[Any] | None:
    """The tools that the first request with any offered."""
    return next(
        (event["tools"] for event in events_of(value) if event.get("event") == "model" and _listed(event)), None
    )


def _listed(event: dict[str, Any]) -> bool:
    return isinstance(event.get("tools"), list) and bool(event["tools"])


def reward_of(scores: Any) -> Any:
    """The first scorer's value as a number; text for a number that is none, so that it is kept and flagged."""
    if not isinstance(scores, dict) or not scores:
        return None
    first = next(iter(scores.values()))
    value = first.get("value") if isinstance(first, dict) else first
    if isinstance(value, str):
        return value if value in _NOT_FINITE else _LETTERS.get(value)
    return value if type(value) in (int, float, bool) else None


def verdicts_of(scores: Any) -> Iterator[Verdict]:
    """Every score, or every part of a score that has several; a model's verdict by the record of how it was had."""
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        about = score if isinstance(score, dict) else {}
        judged = "grading" in obj(about, "metadata") or name.startswith("model_graded")
        reason = text(about.get("explanation"))
        parts = {f"{name}.{part}": item for part, item in value.items()} if isinstance(value, dict) else {name: value}
        for part, item in parts.items():
            number = reward_of({part: item})
            label = item if isinstance(item, str) else plain(item) if isinstance(item, (list, dict)) else None
            finite = float(number) if type(number) in (int, float, bool) and abs(number) < 1e300 else None
            yield Verdict(part, "judge" if judged else "rule", finite, label, reason=reason)


def extra_of(value: dict[str, Any], reading: Reading, header: dict[str, Any]) -> dict[str, Any]:
    """What no column holds: the rest of sample, scores and run, and attachments that the row does not show."""
    attachments = attachments_of(value)
    said = {message.content for message in reading.messages}
    rest = {key: item for key, item in value.items() if key not in _HELD and item not in (None, [], {})}
    given = resolved(value.get("input"), attachments)
    unasked = (
        [turn for turn in given if not _shown(turn.get("content") if isinstance(turn, dict) else turn, said)]
        if (isinstance(given, list))
        else given
    )
    if unasked and not _shown(unasked, said):
        rest["input"] = unasked
    transcript = {key: item for key, item in obj(value, "transcript").items() if key != "content"}
    output = obj(value, "output")
    more = {
        "output": {key: item for key, item in output.items() if key not in ("choices", "completion")},
        "choices_of_output": _other_choices(output, said),
        "scores": {name: _about(score) for name, score in obj(value, "scores").items() if _about(score)},
        "model_usage": value.get("model_usage"),
        "error": value.get("error"),
        "transcript": transcript
        or (value.get("transcript") if not isinstance(value.get("transcript"), dict) else None),
        "attachments": {name: item for name, item in attachments.items() if not _shown(item, said)},
        "eval": _run(obj(header, "eval")),
        "log": {key: item for key, item in header.items() if key not in ("eval", "reductions")},
        "reductions": _reductions(header, value.get("id")),
    }
    return {**rest, **{key: item for key, item in more.items() if item not in (None, "", [], {})}}


def _other_choices(output: dict[str, Any], said: set[str]) -> list[Any]:
    """Choices of the last response but those that are the last message: that is in the transcript."""
    return [
        choice for choice in items(output, "choices") if not _shown(plain(obj(choice, "message").get("content")), said)
    ]


def _shown(value: Any, said: set[str]) -> bool:
    """Whether it is the text of a message, word for word."""
    return isinstance(value, str) and value in said


def _about(score: Any) -> Any:
    """What of a score neither judgment nor reward holds."""
    if not isinstance(score, dict):
        return None
    return {key: item for key, item in score.items() if key not in ("value", "explanation") and item is not None}


def _run(run: dict[str, Any]) -> dict[str, Any]:
    """What the log says of the run, without the ids of all its samples."""
    about = dict(run)
    if isinstance(about.get("dataset"), dict):
        about["dataset"] = {key: item for key, item in about["dataset"].items() if key != "sample_ids"}
    return {key: item for key, item in about.items() if item not in (None, {}, [])}


def _reductions(header: dict[str, Any], sample_id: Any) -> list[Any]:
    """What the epochs of this sample were reduced to, by scorer."""
    found = []
    for reduction in items(header, "reductions"):
        for sample in items(reduction, "samples"):
            if isinstance(sample, dict) and sample.get("sample_id") == sample_id:
                kept = {key: item for key, item in sample.items() if key in ("value", "metadata")}
                found.append({"scorer": reduction.get("scorer"), **kept})
    return found
