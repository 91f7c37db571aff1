"""Logs that tell one call, or one session, in many records: Azure's gateway and the Realtime API."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import FileContext, Sample, adapters
from etl.conversation import Conversation, Record
from tests.adapters.api_lines import events, rows

AZURE, REALTIME = adapters()["azure_llm_log"], adapters()["openai_realtime"]
ASKED = json.dumps([{"role": "system", "content": "You bake."}, {"role": "user", "content": "A loaf \U0001f35e?"}])
ANSWERED = json.dumps([{"role": "assistant", "content": "One."}])


def _row(place: int, **columns: Any) -> dict[str, Any]:
    blank = {"RequestMessages": "", "ResponseMessages": "", "PromptTokens": 0, "CompletionTokens": 0}
    return {"CorrelationId": "c1", "SequenceNumber": place, "ModelName": "demo", **blank, **columns}


@given(st.data())
def test_a_call_is_put_together_from_its_pieces_in_any_order(data: st.DataObject) -> None:
    cuts = sorted({0, len(ASKED), *data.draw(st.lists(st.integers(1, len(ASKED) - 1), max_size=3))})
    pieces = [ASKED[start:end] for start, end in itertools.pairwise(cuts)]
    told = [_row(place, RequestMessages=piece) for place, piece in enumerate(pieces, 1)]
    told = [_row(0, PromptTokens=9, CompletionTokens=2), *told, _row(len(told) + 1, ResponseMessages=ANSWERED)]
    mixed = data.draw(st.permutations(told))
    if data.draw(st.booleans()):
        named = [{key[0].lower() + key[1:]: value for key, value in row.items()} for row in mixed]
        mixed = [{"records": [{"time": "2026-04-24T01:00:00Z", "properties": row} for row in named]}]
    (row,) = rows(events(mixed, AZURE), AZURE)
    assert [message["content"] for message in row["messages"]] == ["You bake.", "A loaf \U0001f35e?", "One."]
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"], row["model"]) == (9, 2, "demo")


def test_pieces_that_are_lists_of_their_own_are_one_history() -> None:
    told = [_row(place, RequestMessages=json.dumps([message])) for place, message in enumerate(json.loads(ASKED))]
    (row,) = rows(events(told, AZURE), AZURE)
    assert [message["content"] for message in row["messages"]] == ["You bake.", "A loaf \U0001f35e?"]


def _conversation(told: list[dict[str, Any]]) -> Conversation:
    records = [Record(event, json.dumps(event).encode(), line, line * 100) for line, event in enumerate(told, 1)]
    (found,) = REALTIME.parse(iter(records), FileContext("/a"))
    assert isinstance(found, Conversation)
    assert list(found.records) == records
    return found


def _item(name: str, role: str, **part: Any) -> dict[str, Any]:
    return {"id": name, "type": "message", "role": role, "content": [part] if part else []}


CREATED = {"type": "session.created", "session": {"id": "s1", "model": "demo", "instructions": "You bake."}}
HEARD = {"type": "conversation.item.input_audio_transcription.completed", "item_id": "i1", "transcript": "A loaf?"}
SAID = {"type": "response.output_audio_transcript.done", "item_id": "i2", "response_id": "r1", "transcript": "One."}
USAGE = {"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cached_tokens": 4}}
DONE = {"type": "response.done", "response": {
    "id": "r1", "status": "completed", "usage": USAGE,
    "output": [_item("i2", "assistant", type="output_audio", transcript="One.")],
}}  # fmt: skip
ADDED = {"type": "conversation.item.added", "item": _item("i1", "user", type="input_audio", transcript=None)}
ANSWER = {"type": "conversation.item.added", "previous_item_id": "i1", "item": _item("i2", "assistant")}


@given(st.permutations([HEARD, SAID, DONE, ANSWER]), st.sets(st.sampled_from(["said", "answer"])))
def test_an_item_is_told_once_with_what_was_heard_of_it(order: list[dict[str, Any]], left_out: set[str]) -> None:
    gone = [event for name, event in (("said", SAID), ("answer", ANSWER)) if name in left_out]
    made = _conversation([CREATED, ADDED, *(event for event in order if event not in gone)])
    assert [(each.role, each.content) for each in made.messages] == [
        ("system", "You bake."), ("user", "A loaf?"), ("assistant", "One."),
    ]  # fmt: skip
    assert made.usage is not None
    assert (made.usage.input_tokens, made.usage.output_tokens, made.usage.cached_tokens) == (9, 2, 4)


def test_what_a_client_sent_and_the_server_took_in_is_told_once() -> None:
    output = {"type": "function_call_output", "call_id": "c1", "output": "210 C"}
    call = {"id": "i2", "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    called = {"type": "response.output_item.done", "response_id": "r1", "item": call}
    sent = {"type": "conversation.item.create", "item": output}
    taken = {"type": "conversation.item.created", "item": {"id": "i3", **output}}
    for told in ([sent, taken], [sent], [taken]):
        made = _conversation([CREATED, ADDED, HEARD, called, *told])
        assert [each.content for each in made.messages if each.role == "tool"] == ["210 C"]


def test_a_part_of_a_responses_stream_is_no_session() -> None:
    streamed = [{"type": "response.created", "sequence_number": 0, "response": {"id": "r1"}}]
    assert REALTIME.score(Sample("/a", b"", streamed)) == 0
    assert REALTIME.score(Sample("/a", b"", [{**DONE, "event_id": "e1"}])) > 0.9
    assert adapters()["api_streams"].score(Sample("/a", b"", [{**DONE, "event_id": "e1"}])) == 0
