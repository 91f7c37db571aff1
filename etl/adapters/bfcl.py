"""Berkeley Function Calling Leaderboard: results of a model, and the score files beside them, JSON Lines both.

A result is `{id, result}`: the calls that the model made (`{name: arguments}` each), or its text; neither the prompt
nor the model is in it. A score file begins with the accuracy of all and then holds the failures alone, each with
model, prompt and errors. A result in turns has a list of steps for each: what was asked and what tools gave stand in
its `inference_log`, where there is one. The calls of other results are never run, so none has a result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter
from etl.adapters._rollouts import count, items, obj, text, transcript
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable, Verdict

_ID = re.compile(r"[a-z][a-z_]*_\d+(-\d+)*\Z")
_RESULT = frozenset(
    {"id", "result", "input_token_count", "output_token_count", "latency", "reasoning_content", "inference_log"}
)
_LONGEST = 20_000
"""Longest call in Python's notation that is read."""
_SUMMARY = frozenset({"accuracy", "correct_count", "total_count"})
_FAILURE = frozenset({"id", "valid", "error"})
_HELD = frozenset(
    {
        *("id", "result", "input_token_count", "output_token_count", "reasoning_content", "model_name", "prompt"),
        "inference_log",
    }
)


class Bfcl(RecordAdapter):
    """Results and scores of the function calling leaderboard."""

    name = "bfcl"
    version = 3
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
    messages = _asked(asked)
    if isinstance(messages, str):
        return Unusable(record, messages, "`prompt.question` holds something that is no message with a known role")
    if said is None and not messages:
        return Unusable(record, "no_messages", "the record has neither a result nor a prompt")
    turns = said if isinstance(said, list) and said and all(isinstance(turn, list) for turn in said) else None
    if turns is not None:
        messages = _in_turns(turns, _questions(asked), value) or messages
    elif said is not None:
        messages.append(_answer(said, value))
    name = identifier(asked.get("id")) or identifier(value.get("id"))
    valid = value.get("valid")
    errors = value.get("error")
    model = text(value.get("model_name"))
    functions = asked.get("function")
    usage = Tokens(_counted(value.get("input_token_count")), _counted(value.get("output_token_count")))
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
        flags=None if any(message.role == "user" for message in messages) else {"content_not_captured"},
        extra=_extra(value, asked, said, turns),
    )


def _questions(asked: dict[str, Any]) -> list[Any]:
    """The prompt, a turn each."""
    question = asked.get("question")
    return question if isinstance(question, list) and all(isinstance(turn, list) for turn in question) else [question]


def _asked(asked: dict[str, Any]) -> list[Message] | str:
    """The prompt: a text, messages, or turns of messages."""
    messages: list[Message] = []
    for turn in _questions(asked):
        read = transcript(turn, "user")
        if isinstance(read, str):
            return read
        messages += read
    return messages


def _in_turns(turns: list[Any], asked: list[Any], value: dict[str, Any]) -> list[Message]:
    """The steps of each turn after what was asked in it; results of tools answer the calls of their step in order.

    A run that was stopped has fewer turns than there were questions.
    """
    told = [entry for entry in items(value, "inference_log") if isinstance(entry, dict)]
    messages: list[Message] = []
    made = 0
    for number, steps in enumerate(turns):
        turn = told[number] if number < len(told) else {}
        query = turn.get("begin_of_turn_query") or (asked[number] if number < len(asked) else None)
        read = transcript(query, "user")
        messages += [Message("user", plain(query))] if isinstance(read, str) else read
        for place, step in enumerate(steps):
            entries = [entry for entry in items(turn, f"step_{place}") if isinstance(entry, dict)]
            message = _answer(step, {"reasoning_content": _nested(value.get("reasoning_content"), number, place)})
            message.calls = message.calls or _decoded(entries)
            waiting: list[str] = []
            for call in message.calls or ():
                made += 1
                call.id = f"call_{made}"
                waiting.append(call.id)
            message.extra = {"turn": number}
            messages.append(message)
            for entry in entries:
                if entry.get("role") == "tool":
                    call_id = waiting.pop(0) if waiting else None
                    messages.append(Message("tool", plain(entry.get("content")), call_id=call_id))
    return messages


def _nested(value: Any, *places: int) -> Any:
    for place in places:
        value = value[place] if isinstance(value, list) and place < len(value) else None
    return value


def _decoded(entries: list[dict[str, Any]]) -> list[ToolCall] | None:
    """The calls that the harness found in a model's text, `name(key=value)` each; None where one is none."""
    listed = next((entry["model_response_decoded"] for entry in entries if entry.get("model_response_decoded")), None)
    calls = [_written(call) for call in listed] if isinstance(listed, list) else []
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def _written(call: Any) -> ToolCall | None:
    """A call in Python's notation.

    >>> _written("cd(folder='seeds')").arguments
    {'folder': 'seeds'}
    """
    if not isinstance(call, str) or len(call) > _LONGEST:
        return None
    try:
        tree = ast.parse(call.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or tree.args or any(word.arg is None for word in tree.keywords):
            return None
        return ToolCall(ast.unparse(tree.func), {str(word.arg): ast.literal_eval(word.value) for word in tree.keywords})
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _counted(value: Any) -> int | None:
    """Tokens of a response, or of all steps of all turns."""
    if not isinstance(value, list):
        return count(value)
    known = [found for found in map(_counted, value) if found is not None]
    return sum(known) if known else None


def _answer(said: Any, value: dict[str, Any]) -> Message:
    """Calls where all of the result are `{name: arguments}`, else its text."""
    listed = said if isinstance(said, list) else [said]
    calls = [ToolCall(name, arguments) for call in listed if isinstance(call, dict) for name, arguments in call.items()]
    whole = bool(calls) and all(isinstance(call, dict) and len(call) == 1 for call in listed)
    content = "" if whole else said if isinstance(said, str) else "\n".join(map(plain, listed))
    return Message("assistant", content, text(value.get("reasoning_content")), calls=calls if whole else None)


def _extra(value: dict[str, Any], asked: dict[str, Any], said: Any, turns: list[Any] | None) -> dict[str, Any] | None:
    """What no column holds; of a run in turns that was stopped, the questions that were never asked."""
    rest = {key: item for key, item in value.items() if key not in _HELD and item is not said}
    states = [entry for entry in items(value, "inference_log") if not isinstance(entry, dict)]
    if states:
        rest["inference_log"] = states
    rest["prompt"] = {key: item for key, item in asked.items() if key not in ("id", "question", "function")}
    if identifier(asked.get("id")) is not None and asked.get("id") != value.get("id"):
        rest["prompt"]["id"] = asked["id"]
    unasked = _questions(asked)[len(turns) :] if turns is not None else []
    if unasked:
        rest["prompt"]["question"] = unasked
    if turns is not None:
        rest.pop("result", None)
    elif isinstance(said, list) and not all(isinstance(call, dict) and len(call) == 1 for call in said):
        rest["result"] = said
    return {key: item for key, item in rest.items() if item not in (None, "", [], {})} or None
