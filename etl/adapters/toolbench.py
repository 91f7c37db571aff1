"""ToolBench answers: one object a query, `{win, tree, forward_args, answer_generation}`, the tree of a search.

`answer_generation.train_messages` holds the conversation once for each of the model's turns, each list going on from
the one before. Lists that another goes on from are left out; the last one is the answer, and one that the search left
for another branch is a row of its own. The tree itself, with what was pruned, is in `extra` of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapters._chat import chat_messages
from etl.adapters._records import RecordAdapter, part
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Unusable, Verdict
from etl.identity import digest

_ANSWER = "answer_generation"
_STATUS = {"give_answer": "completed", "give_up": "aborted"}
_HELD = frozenset({"train_messages", "function", "query", "finish_type"})


class ToolBench(RecordAdapter):
    """Answers that ToolBench's search over tools found."""

    name = "toolbench"
    version = 1
    about = (
        "ToolBench answers: {win, tree, forward_args, answer_generation}, one object a query; branches of the search"
    )
    expects = "an answer is a JSON object with `answer_generation`"
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "repeated_prefix": "a list of messages that a later list of the same answer begins with"
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of `train_messages` in `answer_generation`."""
        return 0.95 if isinstance(obj(value, _ANSWER).get("train_messages"), list) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """A conversation for each branch of the search that no other branch goes on from."""
        if any(items(obj(value, _ANSWER), "train_messages")):
            yield from _branches(record, value)
        else:
            yield Unusable(record, "no_messages", "the answer has no `train_messages`; was the query never run?")


def _branches(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    lists = [turns for turns in items(obj(value, _ANSWER), "train_messages") if isinstance(turns, list) and turns]
    odd = [turns for turns in items(obj(value, _ANSWER), "train_messages") if not (isinstance(turns, list) and turns)]
    compared = [[_said(turn) for turn in turns] for turns in lists]
    key = digest(record.raw)
    last = len(lists) - 1
    for number in range(len(lists)):
        # A unit is an answer of one list, so that it can be read alone.
        unit = {_ANSWER: {"train_messages": [lists[number]]}}
        own = part(record, unit)
        if any(compared[later][: len(compared[number])] == compared[number] for later in range(number + 1, last + 1)):
            yield Ignored("repeated_prefix")
            continue
        messages = _messages(lists[number])
        if isinstance(messages, str):
            yield Unusable(own, messages, "a turn of `train_messages` is no message with a known role")
        elif number == last:
            yield _answer(record, value, messages, key, odd)
        else:
            shared = _shared(compared[number], compared[last])
            yield _abandoned(own, value, messages, key, digest(own.raw), shared)
    if not lists:
        yield Unusable(record, "no_messages", "no list of `train_messages` holds a message")


def _said(turn: Any) -> Any:
    """A turn without the search's own mark, which differs between the copies of one turn."""
    return {key: item for key, item in turn.items() if key != "valid"} if isinstance(turn, dict) else turn


def _shared(some: list[Any], others: list[Any]) -> int:
    """How many turns two lists begin with alike."""
    return next((n for n, (one, other) in enumerate(zip(some, others, strict=False)) if one != other), len(some))


def _messages(turns: list[Any]) -> list[Message] | str:
    """The messages; later turns of the user are the search's own words, said to the model after a failure."""
    messages: list[Message] = []
    for turn in turns:
        read = chat_messages(turn)
        if isinstance(read, str):
            return read
        asked = any(message.role == "user" for message in messages)
        for message in read:
            message.synthetic = message.role == "user" and asked
        messages += read
    return messages


def _answer(record: Record, value: dict[str, Any], messages: list[Message], key: str, odd: list[Any]) -> Conversation:
    answer = obj(value, _ANSWER)
    reason = text(answer.get("finish_type"))
    rest = {name: item for name, item in value.items() if name != _ANSWER}
    rest[_ANSWER] = {name: item for name, item in answer.items() if name not in _HELD and item not in (None, "", [])}
    if odd:
        rest[_ANSWER]["train_messages"] = odd
    won = value.get("win")
    return Conversation(
        messages,
        (record,),
        native_id=key,
        conversation_id=None,
        task_from_prompt=True,
        group=key,
        sample_index=0,
        prompt=text(answer.get("query")),
        tools=answer.get("function"),
        status=_STATUS.get(reason or ""),
        finish_reason=reason,
        judgments=[Verdict("win", "marker", float(won))] if isinstance(won, bool) else None,
        agent="ToolBench",
        extra=rest,
    )


def _abandoned(
    record: Record, value: dict[str, Any], messages: list[Message], key: str, branch: str, shared: int
) -> Conversation:
    """A branch that the search left; what it shares with the answer is inherited."""
    for message in messages[:shared]:
        message.inherited = True
    return Conversation(
        messages,
        (record,),
        native_id=key,
        branch=branch,
        parent=Identity(key),
        task_from_prompt=True,
        group=key,
        prompt=text(obj(value, _ANSWER).get("query")),
        tools=obj(value, _ANSWER).get("function"),
        agent="ToolBench",
        flags={"abandoned"},
    )
