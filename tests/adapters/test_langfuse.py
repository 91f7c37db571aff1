"""Langfuse: frameworks' own shapes of input and output, usage, scores, sessions, files of their own, tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl import ingest
from tests.adapters.runs import at, extra, ingested, observation, read, sample_records, shuffled, talk
from tests.lakes import NOW, rows

HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello."}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
ASKS = {"role": "assistant", "content": "", "tool_calls": [CALL]}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "found"}


def _generation(given: Any, said: Any, **more: Any) -> dict[str, Any]:
    return observation("GENERATION", 0, 1, id="g1", input=given, output=said, **more)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([HI], HELLO),
        ({"messages": [HI], "model": "m", "temperature": 0.1}, "Hello."),
        ("user: Hi", "Hello."),
        ("Hi", {"choices": [{"message": HELLO, "finish_reason": "stop"}]}),
        ({"args": ["Hi"]}, "Hello."),
        (
            {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
            {"content": {"role": "model", "parts": [{"text": "Hello."}]}},
        ),
        (
            [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
            [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}],
        ),
        (
            [{"content": "Hi", "role": "user", "event.name": "gen_ai.user.message"}],
            {"index": 0, "message": HELLO, "event.name": "gen_ai.choice"},
        ),
        (
            {"messages": [{"type": "human", "content": "Hi", "additional_kwargs": {}}]},
            {"messages": [{"type": "ai", "content": "Hello."}]},
        ),
        (
            [{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Hi"}}],
            [{"type": "text", "text": "Hello."}],
        ),
        (
            {"input": "Hi", "instructions": None},
            {
                "id": "r",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
                ],
            },
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": {"value": "Hi", "annotations": []}}]}],
            "{'role': 'assistant', 'text': 'Hello.'}",
        ),
        ([{"role": "user", "text": "Hi"}], [{"role": "assistant", "text": "Hello."}]),
    ],
)
def test_what_frameworks_put_into_input_and_output(given: Any, said: Any) -> None:
    (row,) = read("langfuse", [_generation(given, said)])
    assert talk(row) == [("user", "Hi"), ("assistant", "Hello.")]


def test_calls_in_every_spelling_are_steps_with_their_results() -> None:
    spellings = [
        ASKS,
        [{"toolCallId": "c1", "toolName": "look", "input": '{"q": 1}'}],
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1}}]},
        {"output": [{"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"q": 1}'}]},
        {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {"q": 1}, "id": "c1"}]},
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"q": 1}}]}],
    ]
    for said in spellings:
        records = [
            _generation([HI], said),
            observation("TOOL", 1, 2, id="x1", name="look", input={"q": 1}, output="found"),
            observation("GENERATION", 3, 4, id="g2", input=[HI, ASKS, FOUND], output=HELLO),
        ]
        (row,) = read("langfuse", records)
        assert talk(row) == [("user", "Hi"), ("assistant", ""), ("tool", "found"), ("assistant", "Hello.")]
        (step,) = row["steps"]
        assert (step["tool"], json.loads(step["arguments"]), step["status"]) == ("look", {"q": 1}, "ok")
        assert step["duration_ms"] == 1000.0


@pytest.mark.parametrize(
    ("fields", "read_tokens", "written"),
    [
        ({"usageDetails": {"input": 20, "input_cached_tokens": 50, "output": 5, "total": 75}}, 70, 5),
        ({"usageDetails": {"input": 179, "output": 35, "output_reasoning": 64, "total": 278}}, 179, 99),
        ({"usageDetails": {"input": 70, "input_cached_tokens": 50, "output": 5, "total": 75}}, 70, 5),
        ({"usageDetails": {"input": 13, "prompt_details.cache_read": 4, "output": 8, "total": 21}}, 13, 8),
        ({"usageDetails": {"input": 9, "cache_read_input_tokens": 100, "output": 4, "total": 113}}, 109, 4),
        ({"usageDetails": {}, "usage": {"input": 7, "output": 2, "total": 9, "unit": "TOKENS"}}, 7, 2),
        ({"usage": {"promptTokens": 7, "completionTokens": 2}, "promptTokens": 7}, 7, 2),
        ({"inputUsage": 7, "outputUsage": 2, "totalUsage": 9}, 7, 2),
        ({"usage_details": '{"input": "7", "output": "2"}'}, 7, 2),
        ({"usage": {"input": 700, "output": 20, "unit": "CHARACTERS"}}, None, None),
    ],
)
def test_usage_is_counted_once(fields: dict[str, Any], read_tokens: int | None, written: int | None) -> None:
    (row,) = read("langfuse", [_generation([HI], HELLO, **fields)])
    usage = row["usage"] or {}
    assert (usage.get("input_tokens"), usage.get("output_tokens")) == (read_tokens, written)


def test_a_graph_tells_what_its_models_said_once() -> None:
    tools = [{"role": "tool", "content": {"type": "function", "function": {"name": "look", "parameters": {}}}}]
    state = {"messages": [HI, ASKS, FOUND, HELLO]}
    records = [
        observation("SPAN", 0, 9, id="root", name="LangGraph", input={"messages": [HI]}, output=state),
        observation("CHAIN", 0.1, 2, "root", id="agent", input={"messages": [HI]}, output={"messages": [ASKS]}),
        observation("GENERATION", 0.2, 1, "agent", id="g1", input=[HI, *tools], output=ASKS),
        observation(
            "SPAN", 3, 4, "root", id="x1", name="look", input="{'q': 1}", output="content='found' tool_call_id='c1'"
        ),
        observation(
            "SPAN", 4.1, 4.2, "root", id="route", name="should_continue", input=state, output="continue please"
        ),
        observation("GENERATION", 5, 6, "root", id="g2", input=[HI, ASKS, FOUND, *tools], output=HELLO),
    ]
    (row,) = read("langfuse", records)
    assert talk(row) == [("user", "Hi"), ("assistant", ""), ("tool", "found"), ("assistant", "Hello.")]
    assert json.loads(row["tools"])[0]["function"]["name"] == "look"
    assert row["agent"] == "LangGraph"
    assert row["n_records"] == len(records)
    told = [each for index in range(4) for each in extra(row, index).get("runs", ())]
    assert {each["span"] for each in told} == {"LangGraph", "chain", "should_continue"}
    assert [each["output"] for each in told if "output" in each] == ["continue please"]


def test_an_answer_whose_history_the_provider_kept_goes_on() -> None:
    first = {
        "id": "resp_1",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]}],
    }
    second = {
        "id": "resp_2",
        "output": [{"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"q": 1}'}],
    }
    records = [
        observation("GENERATION", 0, 1, id="g1", input={"input": "First?", "instructions": "Be brief."}, output=first),
        observation(
            "GENERATION", 2, 3, id="g2", input={"input": "Second?", "previous_response_id": "resp_1"}, output=second
        ),
        observation(
            "GENERATION",
            4,
            5,
            id="g3",
            input=[{"type": "function_call_output", "call_id": "c1", "output": "found"}],
            output="Two.",
        ),
    ]
    (row,) = read("langfuse", records)
    assert [text for _, text in talk(row)] == ["Be brief.", "First?", "One.", "Second?", "", "found", "Two."]
    assert row["steps"][0]["result_index"] == 5


def test_a_failed_call_and_the_one_made_again_are_one_row() -> None:
    records = [
        observation("GENERATION", 0, 1, id="g1", input=[HI], level="ERROR", statusMessage="429: slow down"),
        observation("GENERATION", 2, 3, id="g2", input=[HI], output=HELLO),
        observation("TOOL", 4, 5, id="x1", name="look", input={"q": 2}, level="ERROR", statusMessage="no such drawer"),
    ]
    (row,) = read("langfuse", records)
    assert row["n_records"] == 3
    assert extra(row, 0)["attempts"][0]["error"] == "429: slow down"
    assert row["steps"][0]["status"] == "error"
    assert "no such drawer" in row["steps"][0]["error"]


def test_without_content_a_row_says_so() -> None:
    records = [
        observation("AGENT", 0, 9, id="a", name="desk"),
        observation("GENERATION", 1, 2, "a", id="g1", providedModelName="m", usageDetails={"input": 5, "output": 1}),
        observation("TOOL", 3, 4, "a", id="x1", name="look"),
    ]
    (row,) = read("langfuse", records)
    assert {"content_not_captured"} <= set(row["flags"])
    assert (row["model"], row["agent"], row["usage"]["input_tokens"]) == ("m", "desk", 5)
    assert [step["tool"] for step in row["steps"]] == ["look"]
    assert row["prompt"] is None


def test_the_trace_lends_its_words_to_models_that_have_none() -> None:
    trace = {"id": "t1", "timestamp": at(0), "name": "chat", "userId": None, "public": False, "tags": ["a"]}
    records = [
        {**trace, "input": "Hi", "output": "Hello."},
        observation("GENERATION", 1, 2, id="g1", model="m", usageDetails={"input": 5, "output": 1, "total": 6}),
    ]
    (row,) = read("langfuse", records)
    assert talk(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert (row["usage"]["input_tokens"], row["model"]) == (5, "m")


SCORE = {"id": "s1", "traceId": "t1", "name": "tone", "source": "API", "timestamp": at(0, 9), "dataType": "NUMERIC"}


@pytest.mark.parametrize(
    ("score", "judged"),
    [
        ({"value": 0.5, "source": "EVAL", "comment": "so"}, ("judge", 0.5, None, "so")),
        (
            {"value": 1, "source": "ANNOTATION", "dataType": "BOOLEAN", "stringValue": "True"},
            ("human", 1.0, "True", None),
        ),
        ({"value": 2, "dataType": "CATEGORICAL", "stringValue": "warm"}, ("marker", 2.0, "warm", None)),
        ({"value": 0, "dataType": "TEXT", "stringValue": "too long"}, ("marker", None, "too long", None)),
        ({"value": "warm"}, ("marker", None, "warm", None)),
        (
            {"value": 0, "dataType": "CORRECTION", "source": "ANNOTATION", "longStringValue": "Better: hello"},
            ("human", None, "Better: hello", None),
        ),
    ],
)
def test_scores_are_judgments(score: dict[str, Any], judged: tuple[Any, ...]) -> None:
    (row,) = read("langfuse", [{**SCORE, **score}, _generation([HI], HELLO)])
    (found,) = row["judgments"]
    assert tuple(found[key] for key in ("kind", "value", "label", "reason")) == judged
    assert row["reward"] is None


def test_a_score_of_an_observation_goes_to_its_row() -> None:
    records = [
        _generation([HI], ASKS),
        observation("TOOL", 1, 8, id="x1", name="look", input={"q": 1}, output="found"),
        observation("AGENT", 2, 7, "x1", id="sub", name="finder"),
        observation("GENERATION", 3, 4, "sub", id="g9", input=[{"role": "user", "content": "q 1"}], output="found"),
        {**SCORE, "observationId": "g9", "name": "reward", "value": 0.25},
    ]
    main, sub = read("langfuse", records)
    assert sub["parent_id"] == main["rollout_id"]
    assert (main["reward"], sub["reward"]) == (None, 0.25)
    assert (sub["agent"], sub["conversation_id"]) == ("finder", "t1")


def test_questions_asked_twice_in_a_session_are_no_repeats_of_one_another(tmp_path: Path) -> None:
    records: list[Any] = []
    for trace, minute in (("t1", 0), ("t2", 5)):
        records += [
            {"id": trace, "timestamp": at(0, minute), "sessionId": "s", "userId": "u", "name": "chat", "public": False},
            {
                **_generation([HI], HELLO),
                "id": f"g-{trace}",
                "traceId": trace,
                "startTime": at(1, minute),
                "endTime": at(2, minute),
            },
        ]
    found = ingested(tmp_path, records)
    assert [row["conversation_id"] for row in found] == ["t1", "t2"]
    assert all(row["group_id"] is None and row["parent_id"] is None and row["flags"] == [] for row in found)


def test_exports_as_csv_and_parquet_say_what_json_says(tmp_path: Path) -> None:
    records = [
        _generation([HI], ASKS, usageDetails={"input": 5, "output": 1}),
        observation("TOOL", 1, 2, id="x1", name="look", input={"q": 1}, output="found"),
        observation("GENERATION", 3, 4, id="g2", input=[HI, ASKS, FOUND], output=HELLO, usageDetails={}),
    ]
    columns = sorted({name for record in records for name in record})
    cells = [{name: _cell(record.get(name)) for name in columns} for record in records]
    with (tmp_path / "o.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(cells)
    pq.write_table(pa.Table.from_pylist(cells), tmp_path / "o.parquet")
    said = [talk(row) for row in read("langfuse", records)]
    for name in ("o.csv", "o.parquet"):
        ingest([tmp_path / name], lake=tmp_path / name[2:], now=NOW, strict=True)
        found = rows(tmp_path / name[2:])
        assert [talk(row) for row in found] == said
        assert found[0]["usage"]["input_tokens"] == 5


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def test_the_samples_over_20_files_and_3_nights_give_the_rows_of_one_file(tmp_path: Path) -> None:
    one, many = shuffled(tmp_path, sample_records("langfuse", _apart), "langfuse")
    assert len(one) == 7
    assert many == one


def _apart(record: dict[str, Any]) -> list[Any]:
    if "batch" in record:
        return [{"batch": [event], "metadata": {}} for event in record["batch"]]
    if "meta" in record:
        return list(record["data"])
    if "observations" in record:
        trace = dict(record["trace"])
        return [*trace.pop("observations"), *trace.pop("scores"), *record["observations"], trace]
    return [record]


def test_a_trace_without_observations_has_its_own_counts_and_scores() -> None:
    counted = {"inputTokens": "30", "outputTokens": "5", "totalCost": "0.5"}
    score = {"id": "s1", "name": "helpful", "value": 1, "dataType": "NUMERIC", "source": "ANNOTATION"}
    trace = {"id": "t1", "timestamp": at(0), "name": "desk", "sessionId": "s", "userId": "u", "scores": [score]}
    (row,) = read("langfuse", [{**trace, "input": json.dumps([HI]), "output": json.dumps(HELLO), **counted}])
    usage = row["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (30, 5, 0.5)
    assert [(judged["name"], judged["value"]) for judged in row["judgments"]] == [("helpful", 1.0)]
