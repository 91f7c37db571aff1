"""What gateways and platforms put around a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapter import FileContext, Sample
from etl.conversation import Record
from tests.adapters.api_lines import API, chat, events, rows, say, texts

ASK, THERE = say("user", "Where is the key?"), say("assistant", "On the shelf.")
CALL = chat("r1", [ASK], THERE)
REQUEST, RESPONSE = CALL["request"], CALL["response"]
URL = CALL["url"]


@pytest.mark.parametrize(
    "record",
    [
        {"_index": "logs", "_source": {"url": URL, "request": REQUEST, "response": RESPONSE}},
        {"resource": {"service.name": "gate"}, "attributes": {"request": REQUEST, "response": RESPONSE}},
        {"insertId": "x", "jsonPayload": {"request_body": REQUEST, "response_body": json.dumps(RESPONSE)}},
        {"level": "info", "message": json.dumps({"req": REQUEST, "res": RESPONSE})},
        {"route": "/v1/chat/completions", "upstream_request_body": REQUEST, "upstream_response_body": RESPONSE},
        {"input": REQUEST, "output": RESPONSE, "tags": {"shop": "corner"}},
        {"input": [ASK], "output": {"completion": THERE["content"]}, "model": "demo"},
        {"data": {"input": {"messages": [ASK]}, "output": {"completion": THERE["content"]}, "model": "demo"}},
        {"object": "list", "data": [{**RESPONSE, "object": "chat.completion", "messages": {"data": [ASK]}}]},
        {"result": [{"path": "chat/completions", "request": json.dumps(REQUEST), "response": json.dumps(RESPONSE)}]},
        {"recordId": "CALL1", "modelInput": REQUEST, "modelOutput": RESPONSE},
        {"status": "", "processed_time": "2026-04-24T01:00:00Z", "request": REQUEST, "response": RESPONSE},
        {"request_payload": [json.dumps(REQUEST)], "response_payload": [json.dumps(RESPONSE)], "api_method": "chat"},
    ],
    ids=lambda record: "-".join(record),
)
def test_a_call_under_other_names(record: dict[str, Any]) -> None:
    assert API.score(Sample("/a", b"", [record])) >= 0.7
    (row,) = rows(events([record]))
    assert (texts(row), row["model"]) == (["Where is the key?", "On the shelf."], "demo")


def test_other_records_with_such_names_are_no_calls() -> None:
    for record in (
        {"data": [{"request": "a", "response": "b"}]},
        {"input": "a", "output": {"text": "b"}},
        {"message": json.dumps({"request": "a"}), "level": "info"},
        {"attributes": {"request": {"method": "GET"}, "response": {"status": 200}}},
        {"object": "list", "data": [{"object": "model", "id": "demo"}]},
    ):
        assert API.score(Sample("/a", b"", [record])) == 0, record


def test_usage_beside_an_answer_that_has_none() -> None:
    silent = {**RESPONSE, "usage": None}
    (row,) = rows(events([{"input": REQUEST, "output": silent, "usage": {"prompt_tokens": 7, "completion_tokens": 2}}]))
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (7, 2)


def test_what_a_gateway_counted_and_whose_call_it_was() -> None:
    silent = {**RESPONSE, "usage": None}
    record = {
        "url": URL, "request": REQUEST, "response": silent, "costUSD": 0.5, "prompt_tokens": 7, "completion_tokens": 2,
        "properties": {"Helicone-Session-Id": "s-1"}, "helicone_user": "u-1",
    }  # fmt: skip
    (row,) = rows(events([record]))
    usage = row["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (7, 2, 0.5)
    other = {**record, "properties": {"Helicone-Session-Id": "s-2"}}
    assert len({event.key for event in events([record, other])}) == 2


def test_a_call_as_a_row_of_a_table_of_text() -> None:
    record = {
        "request_path": "/v1/chat/completions", "response_status": "429", "request_created_at": "2026-04-24T01:00:00Z",
        "request_body": json.dumps(REQUEST), "response_body": json.dumps({"error": {"message": "Slow down"}}),
        "prompt_tokens": "7", "costUSD": "0.25",
    }  # fmt: skip
    (row,) = rows(events([record]))
    assert (row["status"], row["error"], row["prompt"]) == ("error", "Slow down", "Where is the key?")
    assert (row["usage"]["input_tokens"], row["usage"]["cost_usd"]) == (7, 0.25)


def test_bodies_that_are_not_there_are_told() -> None:
    secret = {"type": "encrypted", "data": "AA==", "iv": "AA==", "key": "AA=="}
    records = [
        {"path": "chat/completions", "request": secret, "response": secret, "tokens_in": 3, "Model": "demo"},
        {"request_path": "/v1/chat/completions", "request_body": {}, "response_body": {}, "prompt_tokens": 3},
    ]
    found = rows(events(records))
    assert [(row["prompt"], row["usage"]["input_tokens"]) for row in found] == [(None, 3), (None, 3)]
    assert all("content_not_captured" in row["flags"] for row in found)


def test_credentials_at_any_depth_are_gone_before_anything_is_stored() -> None:
    tools = [{"type": "mcp", "server_url": "https://h.example/mcp?token=FAKE-a", "authorization": "FAKE-b"}]
    sources = [{"parameters": {"authentication": {"type": "api_key", "key": "FAKE-c"}}}]
    request = {**REQUEST, "tools": tools, "data_sources": sources, "mcp_servers": [{"authorization_token": "FAKE-d"}]}
    record = {
        "url": "https://u:FAKE-e@h.example/v1/chat/completions?api_key=FAKE-f", "request": request,
        "response": {**RESPONSE, "tools": [{**tools[0], "extra": 1}]}, "api_key": "FAKE-g",
        "metadata": {"headers": {"Authorization": "FAKE-h", "Cookie": ["FAKE-i"]}},
        "signed_body_url": "https://b.example/x?X-Amz-Signature=FAKE-j",
    }  # fmt: skip
    assert b"FAKE" not in b"".join(event.record.raw for event in events([record]))


def test_an_echo_of_a_tool_keeps_its_schema() -> None:
    secret = {"type": "object", "properties": {"api_key": {"type": "string"}, "password": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "login", "parameters": secret}}]
    (row,) = rows(events([{**CALL, "request": {**REQUEST, "tools": tools}}]))
    assert json.loads(row["tools"])[0]["function"]["parameters"] == secret


@pytest.mark.parametrize(
    ("response", "rule"),
    [
        ({"object": "list", "data": [{"object": "embedding", "embedding": [0.1]}]}, "embeddings"),
        ({"embeddings": [[0.1]]}, "embeddings"),
        ({"id": "modr-1", "results": [{"flagged": False}]}, "moderation"),
        ({"input_tokens": 14}, "token_count"),
        ({"totalTokens": 14, "promptTokensDetails": []}, "token_count"),
        ({"object": "file", "id": "file-1", "filename": "a.pdf"}, "files"),
        ({"object": "list", "data": [{"object": "model", "id": "demo"}]}, "models"),
        ({"created": 1, "data": [{"b64_json": "AA=="}]}, "media"),
    ],
)
def test_what_is_no_conversation_is_told_by_its_shape_too(response: dict[str, Any], rule: str) -> None:
    record = Record({"request": {"model": "demo", "input": "x"}, "response": response}, b"{}", 1, 0)
    assert [getattr(outcome, "rule", None) for outcome in API.parse([record], FileContext("/a"))] == [rule]


@pytest.mark.parametrize("response", [None, "<html>502 Bad Gateway</html>", {}])
def test_a_call_without_a_readable_response_is_a_row(response: Any) -> None:
    record = {"url": URL, "status": 502, "request": REQUEST, "response": response}
    assert API.score(Sample("/a", b"", [record])) >= 0.7
    (row,) = rows(events([record]))
    assert (row["status"], row["error"], row["prompt"]) == ("error", "HTTP status 502", "Where is the key?")
