"""Evaluations stored by column, as impossible-bench writes them: one object a run, each key a list of one entry a task.

Two shapes: `{convos, scores, full_responses, htmls}`, whose conversations hold the answer, and `{msg_data, responses,
judgements}`, whose answers are raw chat completions, with those of a judge beside them. Entries of one position belong
together. A judge's word is a judgment with that label and no number: the file does not say which word is good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import plain
from etl.adapters._chat import chat_messages
from etl.adapters._rollouts import items, obj, text, transcript
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict

_SHAPES = (("convos", "full_responses"), ("msg_data", "responses"))
"""The column of conversations and the one of answers."""
_COLUMNS = frozenset({"convos", "full_responses", "scores", "htmls", "msg_data", "responses", "judgements"})


class ImpossibleBench(Adapter):
    """Runs of impossible-bench and of what stores its results alike."""

    name = "impossible_bench"
    version = 1
    about = "impossible-bench runs: one object of columns, {convos, scores, …} or {msg_data, responses, judgements}"
    scores_share = True
    splits = True

    def score(self, sample: Sample) -> float:
        """Sure of two columns of conversations and answers."""
        hits = sum(_shape(value) is not None for value in sample.objects())
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a position."""
        for record in records:
            value = record.value
            shape = _shape(value) if isinstance(value, dict) else None
            if shape is None:
                yield Unusable(record, "no_columns", "not a run by column: it lacks conversations or answers")
            else:
                yield from _rows(record, value, shape)


def _shape(value: dict[str, Any]) -> tuple[str, str] | None:
    return next((s for s in _SHAPES if all(isinstance(value.get(column), list) for column in s)), None)


def _rows(record: Record, value: dict[str, Any], shape: tuple[str, str]) -> Iterator[Outcome]:
    columns = {name: column for name, column in value.items() if name in _COLUMNS and isinstance(column, list)}
    about = {name: item for name, item in value.items() if name not in columns}
    longest = max(map(len, columns.values()))
    if not longest:
        yield Unusable(record, "no_messages", "the columns are empty; was the run cut off before the first task?")
    for position in range(longest):
        row = {name: column[position] for name, column in columns.items() if position < len(column)}
        # A unit is a run of one row, so that it can be read alone.
        unit = {**about, **{name: [item] for name, item in row.items()}}
        own = Record(unit, msgspec.json.encode(unit), record.line, record.offset, record.notes, record.mended)
        yield _row(own, row, shape, position, about)


def _row(
    record: Record, row: dict[str, Any], shape: tuple[str, str], position: int, about: dict[str, Any]
) -> Conversation | Unusable:
    listed, answered = shape
    messages = transcript(row.get(listed), "user")
    if isinstance(messages, str):
        return Unusable(record, messages, f"`{listed}[{position}]` holds no message with a known role")
    response = obj(row, answered)
    choice = obj({"first": next(iter(items(response, "choices")), None)}, "first")
    answer = _answer(choice.get("message"))
    if answer is not None:
        messages.append(answer)
    if not messages:
        return Unusable(record, "no_messages", f"no conversation at position {position}: the columns differ in length")
    usage = tokens(response.get("usage"))
    last = messages[-1]
    if last.role == "assistant":
        last.finish_reason = text(choice.get("finish_reason")) or text(response.get("finish_reason"))
        last.model = text(response.get("model"))
    judged = row.get("judgements")
    return Conversation(
        messages,
        (record,),
        local_id=str(position),
        task_from_prompt=True,
        finish_reason=last.finish_reason,
        reward=row.get("scores"),
        judgments=[_verdict(judged)] if judged is not None else None,
        model=text(response.get("model")),
        started_at=response.get("created"),
        usage=usage,
        extra=_extra(row, shape, answer is not None, {message.content for message in messages}, about),
    )


def _answer(said: Any) -> Message | None:
    """The message of a chat completion."""
    read = chat_messages(said) if isinstance(said, dict) else "no_answer"
    return None if isinstance(read, str) else read[-1]


def _verdict(judged: Any) -> Verdict:
    """What the judge said, by the first of its choices."""
    choice = obj({"first": next(iter(items(judged, "choices")), None)}, "first")
    said = obj(choice, "message").get("content")
    return Verdict("judgement", "judge", None, plain(said if said is not None else judged))


def _extra(
    row: dict[str, Any], shape: tuple[str, str], told: bool, said: set[str], about: dict[str, Any]
) -> dict[str, Any] | None:
    """What no column holds: the answer without its message, the judge's response, the page, what the run says."""
    listed, answered = shape
    rest = {name: item for name, item in row.items() if name not in (listed, answered, "scores")}
    response = row.get(answered)
    if isinstance(response, dict):
        left = {name: item for name, item in response.items() if name not in ("model", "created")}
        if left.get("content") in said if isinstance(left.get("content"), str) else False:
            del left["content"]
        choices = items(response, "choices")
        if told and choices:
            first = {k: v for k, v in choices[0].items() if k not in ("message", "finish_reason", "index") and v}
            left["choices"] = [choice for choice in (first, *choices[1:]) if choice]
        response = {name: item for name, item in left.items() if item not in (None, "", [], {})}
    rest[answered] = response
    rest.update({name: item for name, item in about.items() if not (isinstance(item, str) and item in said)})
    return {name: item for name, item in rest.items() if item not in (None, "", [], {})} or None
