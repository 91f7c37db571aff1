"""Berkeley Function Calling Leaderboard: results of a model, and the score files beside them, JSON Lines both.

A result is `{id, result}`: the calls that the model made (`{name: arguments}` each), or its text; neither the prompt
nor the model is in it. A score file begins with the accuracy of all and then holds the failures alone, each with
model, prompt and errors. The calls are never run, so none has a result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter
from etl.adapters._rollouts import count, obj, text, transcript
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable, Verdict

_ID = re.compile(r"[a-z][a-z_]*_\d+(-\d+)*\Z")
_RESULT = frozenset({"id", "result", "input_token_count", "output_token_count", "latency", "reasoning_content"})
_SUMMARY = frozenset({"accuracy", "correct_count", "total_count"})
_FAILURE = frozenset({"id", "valid", "error"})
_HELD = frozenset(
    {"id", "result", "input_token_count", "output_token_count", "reasoning_content", "model_name", "prompt"}
)


class Bfcl(RecordAdapter):
    """Results and scores of the function calling leaderboard."""

    name = "bfcl"
    version = 1
    about = "BFCL results {id, result} and the failures of its score files, one a line"
    expects = "a result is a JSON object"
    ignores: ClassVar[dict[str, str]] = {
        "score_summary": "the accuracy of a whole category, at the head of a score file that holds its failures alone"
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of the head of a score file and of failures; nearly sure of results with nothing but the known keys."""
        return 0.95 if _is_score(value) else 0.9 if _is_result(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One result or failure."""
        yield Ignored("score_summary") if value.keys() == _SUMMARY else _result(record, value)


def _is_score(value: dict[str, Any]) -> bool:
    return value.keys() == _SUMMARY or (value.keys() >= _FAILURE and {"model_name", "error_type"} <= value.keys())


def _is_result(value: dict[str, Any]) -> bool:
    named = isinstance(value.get("id"), str) and _ID.match(value["id"])
    return bool(named) and "result" in value and value.keys() <= _RESULT


def _result(record: Record, value: dict[str, Any]) -> Conversation | Unusable:
    said = next((value[key] for key in ("result", "model_result_raw", "model_result") if value.get(key)), None)
    asked = obj(value, "prompt")
    messages = _asked(asked.get("question"))
    if isinstance(messages, str):
        return Unusable(record, messages, "`prompt.question` holds something that is no message with a known role")
    if said is None and not messages:
        return Unusable(record, "no_messages", "the record has neither a result nor a prompt")
    if said is not None:
        messages.append(_answer(said, value))
    name = identifier(asked.get("id")) or identifier(value.get("id"))
    valid = value.get("valid")
    errors = value.get("error")
    model = text(value.get("model_name"))
    functions = asked.get("function")
    usage = Tokens(count(value.get("input_token_count")), count(value.get("output_token_count")))
    return Conversation(
        messages,
        (record,),
        local_id=identifier(value.get("id")),
        run=model or "",
        task=None if name is None else ("bfcl", name),
        tools=[functions] if isinstance(functions, dict) else functions,
        reward=valid if isinstance(valid, bool) else None,
        judgments=[Verdict("valid", "rule", float(valid), text(value.get("error_type")), reason=plain(errors) or None)]
        if isinstance(valid, bool)
        else None,
        model=model,
        status="completed" if said is not None else None,
        usage=usage if usage != Tokens() else None,
        flags=None if asked.get("question") else {"content_not_captured"},
        extra=_extra(value, asked, said),
    )


def _asked(question: Any) -> list[Message] | str:
    """The prompt: a text, messages, or turns of messages."""
    turns = question if isinstance(question, list) and all(isinstance(turn, list) for turn in question) else [question]
    messages: list[Message] = []
    for turn in turns:
        read = transcript(turn, "user")
        if isinstance(read, str):
            return read
        messages += read
    return messages


def _answer(said: Any, value: dict[str, Any]) -> Message:
    """Calls where all of the result are `{name: arguments}`, else its text."""
    listed = said if isinstance(said, list) else [said]
    calls = [ToolCall(name, arguments) for call in listed if isinstance(call, dict) for name, arguments in call.items()]
    whole = bool(calls) and all(isinstance(call, dict) and len(call) == 1 for call in listed)
    content = "" if whole else said if isinstance(said, str) else "\n".join(map(plain, listed))
    return Message("assistant", content, text(value.get("reasoning_content")), calls=calls if whole else None)


def _extra(value: dict[str, Any], asked: dict[str, Any], said: Any) -> dict[str, Any] | None:
    rest = {key: item for key, item in value.items() if key not in _HELD and item is not said}
    rest["prompt"] = {key: item for key, item in asked.items() if key not in ("id", "question", "function")}
    if identifier(asked.get("id")) is not None and asked.get("id") != value.get("id"):
        rest["prompt"]["id"] = asked["id"]
    if isinstance(said, list) and not all(isinstance(call, dict) and len(call) == 1 for call in said):
        rest["result"] = said
    return {key: item for key, item in rest.items() if item not in (None, "", [], {})} or None
