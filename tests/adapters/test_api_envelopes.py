"""Envelopes of calls: cassettes in YAML, batch jobs in two files, request and response lines, HAR."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from etl.adapter import adapters
from etl.framing import LIMITS, Broken
from tests.adapters.api_lines import chat, events, rows, say, texts
from tests.contract.harness import read

CASSETTES, BATCH = adapters()["http_cassettes"], adapters()["openai_batch"]

CASSETTE = """interactions:
- request:
    body: '{"model": "demo", "messages": [{"role": "user", "content": "One
      line?"}]}'
    method: POST
    uri: https://api.openai.com/v1/chat/completions
  response:
    body:
      string: '{"id": "c1", "choices": [{"message": {"role": "assistant", "content":
        "Yes."}}]}'
    status: {code: 200, message: OK}
- request: {body: null, method: GET, uri: 'https://example.com/'}
  response: {body: {string: hello}, status: {code: 200, message: OK}}
version: 1
"""


_HEAD, _BODY, _TAIL = CASSETTE[:14], CASSETTE[14:-11], CASSETTE[-11:]


@pytest.mark.parametrize("text", [CASSETTE, f"{_HEAD}{textwrap.indent(_BODY, '  ')}{_TAIL}", f"---\n{CASSETTE}"])
def test_a_cassette_in_yaml(text: str) -> None:
    reading = read(text.encode(), CASSETTES)
    (row,) = reading.rows
    assert texts(row) == ["One line?", "Yes."]
    assert reading.ignored == {"no_model_call": 1}
    assert row["source_line"] == text[: text.index("- request")].count("\n") + 1


def test_a_cassette_cut_anywhere_keeps_what_was_whole() -> None:
    data = CASSETTE.encode()
    for end in range(len("interactions:\n"), len(data), 7):
        framed = list(CASSETTES.records(iter([data[:end]]), LIMITS))
        broken = [item for item in framed if isinstance(item, Broken)]
        assert len(broken) <= 1
        assert all(item.tail for item in broken)


def test_a_cassette_in_blocks_and_in_json() -> None:
    blocks = [CASSETTE.encode()[at : at + 50] for at in range(0, len(CASSETTE), 50)]
    assert len(list(CASSETTES.records(iter(blocks), LIMITS))) == 2
    call = chat("c1", [say("user", "a")], say("assistant", "b"))
    interaction = {"request": {"uri": call["url"], "method": "POST", "body": json.dumps(call["request"])}}
    interaction["response"] = {"body": {"string": json.dumps(call["response"])}, "status": {"code": 200}}
    (row,) = read(json.dumps(interaction).encode(), CASSETTES).rows
    assert texts(row) == ["a", "b"]


def _request(custom_id: str, content: str, model: str = "demo") -> dict[str, Any]:
    body = {"model": model, "messages": [say("user", content)]}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def _output(name: str, custom_id: str, content: str, model: str = "demo") -> dict[str, Any]:
    choices = [{"index": 0, "message": say("assistant", content), "finish_reason": "stop"}]
    body = {"id": f"c{name}", "model": f"{model}-2026", "choices": choices, "created": 1777000000}
    return {"id": name, "custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


@pytest.mark.parametrize("outputs_first", [False, True])
def test_a_batch_is_joined_over_files(outputs_first: bool) -> None:
    asked = events([_request("1", "One?"), _request("2", "Two?")], BATCH, "/logs/requests.jsonl")
    answered = events([_output("o2", "2", "2."), _output("o3", "3", "3.")], BATCH, "/logs/outputs.jsonl")
    found = rows([*answered, *asked] if outputs_first else [*asked, *answered], BATCH)
    assert sorted(map(texts, found)) == [["3."], ["One?"], ["Two?", "2."]]
    lost = next(row for row in found if texts(row) == ["3."])
    assert (lost["prompt"], lost["flags"]) == (None, ["content_not_captured"])


def test_an_output_is_joined_only_where_it_is_clear_with_which_request() -> None:
    asked = [_request("1", "One?", "small"), _request("1", "Other?", "large")]
    (row, waiting) = sorted(rows(events([*asked, _output("o", "1", "Yes.", "large")], BATCH), BATCH), key=texts)
    assert (texts(row), texts(waiting)) == (["One?"], ["Other?", "Yes."])
    unclear = [_request("1", "One?"), _request("1", "Other?"), _output("o", "1", "Yes.")]
    found = rows(events(unclear, BATCH), BATCH)
    assert sorted(map(texts, found)) == [["One?"], ["Other?"], ["Yes."]]
    assert any("ambiguous_parent" in row["flags"] for row in found)


def test_lines_of_requests_and_responses_are_paired_by_their_order() -> None:
    def asked(second: int, content: str) -> dict[str, Any]:
        parameters = {"model": "demo", "messages": [say("user", content)]}
        return {"timestamp": f"2026-04-24T01:00:{second:02}Z", "type": "request", "request_params": parameters}

    def answered(second: int, content: str) -> dict[str, Any]:
        outputs = [{"message": content}]
        counts = {"input_tokens": 3, "output_tokens": 1, "cost": 0.5}
        return {"timestamp": f"2026-04-24T01:00:{second:02}Z", "type": "response", "outputs": outputs, **counts}

    found = rows(events([asked(0, "a"), answered(1, "A"), asked(2, "b"), asked(3, "c"), answered(4, "C")]))
    assert [texts(row) for row in found] == [["a", "A"], ["b"], ["c", "C"]]
    assert [row["n_records"] for row in found] == [2, 1, 2]
    assert found[0]["usage"]["cost_usd"] == 0.5


def test_a_har_file_holds_many_calls() -> None:
    call = chat("h1", [say("user", "a")], say("assistant", "b"))
    entry = {
        "startedDateTime": "2026-04-24T01:00:00Z",
        "request": {"method": "POST", "url": call["url"], "postData": {"text": json.dumps(call["request"])}},
        "response": {"status": 200, "content": {"mimeType": "application/json", "text": json.dumps(call["response"])}},
    }
    other = {"request": {"method": "GET", "url": "https://example.com/a.css"}, "response": {"status": 200}}
    (row,) = rows(events([{"log": {"entries": [entry, other, entry]}}]))
    assert (texts(row), row["n_records"]) == (["a", "b"], 1)
