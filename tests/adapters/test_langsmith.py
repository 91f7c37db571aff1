"""LangSmith: LangChain's messages, runs in parts, places in the tree, usage, feedback, states of graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.runs import extra, ingested, read, run, sample_records, shuffled, talk

HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello."}


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    """A message as LangChain serialises it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


HUMAN, AI = lc("HumanMessage", content="Hi"), lc("AIMessage", content="Hello.")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"messages": [HI]}, {"choices": [{"message": HELLO}]}),
        ({"messages": [[HUMAN]]}, {"generations": [[{"text": "Hello.", "message": AI}]]}),
        ({"messages": [["human", "Hi"]]}, {"output": AI}),
        ({"messages": [{"type": "human", "data": {"content": "Hi"}}]}, {"messages": [HELLO]}),
        ({"prompts": ["Hi"]}, {"generations": [[{"text": "Hello."}]], "llm_output": None}),
        ({"input": "Hi"}, {"output": "Hello."}),
        ({"messages": [HI]}, {"generations": [HELLO]}),
        ({"messages": [HI]}, {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}),
        ('{"messages": [["human", "Hi"]]}', '{"output": "Hello."}'),
        ({"messages": [lc("ChatMessage", content="Hi", role="user")]}, {"message": HELLO}),
    ],
)
def test_messages_in_every_spelling(inputs: Any, outputs: Any) -> None:
    (row,) = read("langsmith", [run("llm", "t1", 0, 1, inputs=inputs, outputs=outputs)])
    assert talk(row) == [("user", "Hi"), ("assistant", "Hello.")]


_META = {"input_tokens": 9, "output_tokens": 5, "input_token_details": {"cache_read": 4, "cache_creation": 2}}


@pytest.mark.parametrize(
    ("outputs", "fields", "cached"),
    [
        ({"generations": [[{"message": lc("AIMessage", content="Hello.", usage_metadata=_META)}]]}, {}, 4),
        (
            {
                "generations": [[{"text": "Hello."}]],
                "llm_output": {"token_usage": {"prompt_tokens": 9, "completion_tokens": 5}},
            },
            {},
            None,
        ),
        ({"messages": [HELLO], "usage_metadata": _META}, {"prompt_tokens": 9, "completion_tokens": 5}, 4),
        ({"output": "Hello."}, {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}, None),
        (
            {"output": "Hello."},
            {"prompt_tokens": 9, "completion_tokens": 5, "prompt_token_details": {"cache_read": 4}},
            4,
        ),
        ({"output": "Hello."}, {"extra": {"metadata": {"usage_metadata": _META}}}, 4),
    ],
)
def test_usage_is_counted_once_at_the_model(
    outputs: dict[str, Any], fields: dict[str, Any], cached: int | None
) -> None:
    records = [
        run(
            "chain",
            "t1",
            0,
            9,
            inputs={"messages": [HI]},
            outputs={"messages": [HI, HELLO]},
            prompt_tokens=9,
            completion_tokens=5,
        ),
        run("llm", "m", 1, 2, "t1", inputs={"messages": [HI]}, outputs=outputs, **fields),
    ]
    (row,) = read("langsmith", records)
    usage = row["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cached_tokens"]) == (9, 5, cached)


def test_post_and_patch_of_a_run_are_one_in_any_order() -> None:
    post = run("llm", "t1", 0, 1, inputs={"messages": [HI]}, extra={"metadata": {"ls_model_name": "m"}})
    del post["end_time"], post["outputs"]
    order = "20260501T080000000000Zt1"
    patch = {
        "id": "t1",
        "dotted_order": order,
        "end_time": "2026-05-01T08:00:01Z",
        "outputs": {"choices": [{"message": HELLO}]},
    }
    tool = run("tool", "x", 2, 3, "t1", inputs={"q": 1})
    del tool["end_time"], tool["outputs"]
    done = {
        "id": "x",
        "dotted_order": f"{order}.20260501T080002000000Zx",
        "end_time": "2026-05-01T08:00:03Z",
        "outputs": {"output": "found"},
    }
    for records in ([post, patch, tool, done], [done, patch, tool, post]):
        batches = [{"post": [], "patch": [each]} if "run_type" not in each else {"post": [each]} for each in records]
        (row,) = read("langsmith", batches)
        assert talk(row)[:2] == [("user", "Hi"), ("assistant", "Hello.")]
        assert row["model"] == "m"
        assert [(step["tool"], step["status"]) for step in row["steps"]] == [("x", "ok")]
        assert row["messages"][row["steps"][0]["result_index"]]["content"] == "found"


def test_words_of_the_newer_api_are_in_capitals() -> None:
    records = [
        run("CHAIN", "t1", 0, 9, inputs={"messages": [HI]}, outputs={"messages": [HI, HELLO]}, status="SUCCESS"),
        run("LLM", "m", 1, 2, "t1", inputs={"messages": [HI]}, outputs={"message": HELLO}, status="SUCCESS"),
        run("TOOL", "x", 3, 4, "t1", inputs={"q": 1}, outputs={}, status="ERROR"),
    ]
    (row,) = read("langsmith", records)
    assert talk(row)[:2] == [("user", "Hi"), ("assistant", "Hello.")]
    assert [step["status"] for step in row["steps"]] == ["error"]


def test_parts_of_an_upload_are_a_run() -> None:
    name = "0f0a0000-0000-4000-8000-000000000001"
    record = {
        f"post.{name}": {"id": name, "trace_id": name, "run_type": "llm", "start_time": "2026-05-01T08:00:00Z"},
        f"post.{name}.inputs": {"messages": [HI]},
        f"post.{name}.outputs": {"choices": [{"message": HELLO}]},
    }
    (row,) = read("langsmith", [record])
    assert talk(row) == [("user", "Hi"), ("assistant", "Hello.")]


def test_a_run_below_one_that_never_arrived_finds_its_place() -> None:
    def order(*names: str) -> str:
        return ".".join(f"20260501T08000{place}000000Z{name}" for place, name in enumerate(names))

    call = {"name": "ask", "args": {}, "id": "c1", "type": "tool_call"}
    records = [
        run(
            "llm",
            "m1",
            0,
            1,
            "t1",
            inputs={"messages": [HI]},
            outputs={"output": lc("AIMessage", content="", tool_calls=[call])},
            dotted_order=order("t1", "m1"),
        ),
        run(
            "tool",
            "x",
            2,
            8,
            "t1",
            name="ask",
            inputs={},
            outputs={"output": lc("ToolMessage", content="yes", tool_call_id="c1")},
            dotted_order=order("t1", "x"),
        ),
        run(
            "llm",
            "m2",
            3,
            4,
            "lost",
            inputs={"messages": [{"role": "user", "content": "may I?"}]},
            outputs={"output": "yes"},
            dotted_order=order("t1", "x", "lost", "m2"),
        ),
    ]
    main, sub = read("langsmith", records)
    assert sub["parent_id"] == main["rollout_id"]
    assert "ambiguous_parent" in sub["flags"]
    assert json.loads(sub["extra"])["missing_parents"] == ["lost", "t1"]


def test_a_tool_that_failed_says_how() -> None:
    call = {"name": "look", "args": {"q": 1}, "id": "c1", "type": "tool_call"}
    asks = lc("AIMessage", content="", tool_calls=[call])
    failed = lc("ToolMessage", content="KeyError(1)", tool_call_id="c1", status="error")
    records = [
        run("llm", "m1", 0, 1, inputs={"messages": [HUMAN]}, outputs={"output": asks}),
        run("tool", "x", 2, 3, name="look", inputs={"input": "{'q': 1}"}, error="KeyError(1)Traceback: line 3"),
        run("llm", "m2", 4, 5, inputs={"messages": [[HUMAN, asks, failed]]}, outputs={"output": AI}),
    ]
    (row,) = read("langsmith", records)
    (step,) = row["steps"]
    assert (step["status"], json.loads(step["arguments"]), step["duration_ms"]) == ("error", {"q": 1}, 1000.0)
    assert extra(row, 2)["error"].endswith("line 3")
    assert row["final_text"] == "Hello."


def test_invalid_calls_are_steps_and_nothing_is_told_twice() -> None:
    bad = {"name": "look", "args": '{"q": ', "id": "c1", "error": "no JSON", "type": "invalid_tool_call"}
    repeated = {"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": '{"q": '}}]}
    asks = lc("AIMessage", content="", invalid_tool_calls=[bad], tool_calls=[], additional_kwargs=repeated)
    (row,) = read("langsmith", [run("llm", "t1", 0, 1, inputs={"messages": [HUMAN]}, outputs={"output": asks})])
    assert [step["raw_arguments"] for step in row["steps"]] == ['{"q": ']
    assert "invalid_arguments" in row["flags"]


def test_what_a_graph_knows_of_a_model_that_never_arrived() -> None:
    state = {"messages": [HUMAN, AI, lc("HumanMessage", content="And?"), lc("AIMessage", content="Bye.")]}
    records = [
        run("chain", "t1", 0, 9, inputs={"messages": [HUMAN]}, outputs=state),
        run("llm", "m", 1, 2, "t1", inputs={"messages": [[HUMAN]]}, outputs={"output": AI}),
    ]
    (row,) = read("langsmith", records)
    assert [text for _, text in talk(row)] == ["Hi", "Hello.", "And?", "Bye."]
    assert "unlogged_turns" in row["flags"]
    assert "incomplete" not in row["flags"]


def test_a_thread_of_traces_is_one_row_with_every_yes(tmp_path: Path) -> None:
    told: list[Any] = []
    records = []
    for number in range(3):
        told = [*told, lc("HumanMessage", content="yes")]
        answer = lc("AIMessage", content=f"Good {number}.")
        trace = f"trace{number}"
        records.append(
            run(
                "llm",
                f"m{number}",
                10 * number,
                10 * number + 1,
                inputs={"messages": [told]},
                outputs={"output": answer},
                trace_id=trace,
                extra={"metadata": {"thread_id": "th"}},
            )
        )
        told = [*told, answer]
    (row,) = ingested(tmp_path, reversed(records))
    assert [text for _, text in talk(row)] == ["yes", "Good 0.", "yes", "Good 1.", "yes", "Good 2."]
    assert row["conversation_id"] == "trace0"


def test_feedback_is_a_judgment_once() -> None:
    stats = {"helpful": {"n": 2, "avg": 0.5}, "stars": {"n": 1, "avg": 4}}
    feedback = {"id": "f", "run_id": "t1", "trace_id": "t1", "key": "helpful", "score": 1, "comment": "yes"}
    records = [
        run("llm", "t1", 0, 1, inputs={"messages": [HI]}, outputs={"output": "Hello."}, feedback_stats=stats),
        {**feedback, "feedback_source": {"type": "app"}, "value": None},
    ]
    (row,) = read("langsmith", records)
    judged = {(found["name"], found["kind"], found["value"], found["reason"]) for found in row["judgments"]}
    assert judged == {("helpful", "human", 1.0, "yes"), ("stars", "marker", 4.0, None)}


def test_the_tokens_of_a_stream_that_broke_are_its_answer() -> None:
    events = [
        {"name": "new_token", "time": "2026-05-01T08:00:00Z", "kwargs": {"token": text}} for text in ("Hel", "lo.")
    ]
    (row,) = read(
        "langsmith", [run("llm", "t1", 0, 1, inputs={"messages": [HI]}, outputs=None, events=events, error="cut")]
    )
    assert talk(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert (row["status"], row["error"]) == ("error", "cut")
    assert extra(row, 1)["stream_chunks"] == 2


def test_the_samples_over_20_files_and_3_nights_give_the_rows_of_one_file(tmp_path: Path) -> None:
    one, many = shuffled(tmp_path, sample_records("langsmith", _apart), "langsmith")
    assert len(one) == 6
    assert many == one


def _apart(record: dict[str, Any]) -> list[Any]:
    if "post" in record:
        return [{"post": [each]} for each in record["post"]] + [{"patch": [each]} for each in record["patch"]]
    return [record]


def test_an_agent_that_was_handed_the_history_inherits_it() -> None:
    hand = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "h", "type": "function", "function": {"name": "hand", "arguments": "{}"}}],
    }
    handed = {"role": "tool", "tool_call_id": "h", "content": "handed over"}
    lead, help_out = {"role": "system", "content": "You lead."}, {"role": "system", "content": "You help."}
    helped = {"role": "assistant", "content": "Done."}
    records = [
        run("chain", "t1", 0, 20, name="team"),
        run("llm", "m1", 1, 2, "t1", inputs={"messages": [lead, HI]}, outputs={"output": hand}),
        run("chain", "sub", 3, 6, "t1", name="helper"),
        run("llm", "m2", 4, 5, "sub", inputs={"messages": [help_out, HI, hand, handed]}, outputs={"output": helped}),
        run("llm", "m3", 7, 8, "t1", inputs={"messages": [lead, HI, hand, handed, helped]}, outputs={"output": HELLO}),
        *(
            run("llm", f"p{n}", 10 + n / 10, 15, "t1", inputs={"prompts": [f"part {n}"]}, outputs={"output": str(n)})
            for n in (1, 2)
        ),
    ]
    main, helper, *parts = read("langsmith", records)
    assert helper["parent_id"] == main["rollout_id"]
    assert [info["inherited"] for info in helper["message_info"]] == [False, True, True, True, False]
    assert "unlogged_turns" not in helper["flags"]
    assert (main["agent"], helper["agent"]) == ("team", "helper")
    assert [text for _, text in talk(main)] == ["You lead.", "Hi", "", "handed over", "Done.", "Hello."]
    assert [row["parent_id"] for row in parts] == [None, None]


_WORDS = ["The ", "sky", " is", " blue", ",", " and", " the", " sea", " is", " green", ",", " too", "."]
_CHAT = [
    *({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": word}}]} for word in _WORDS),
    {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 9}},
]
_ANTHROPIC = [
    {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 4}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in _WORDS),
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
]
_LANGCHAIN = [
    {"type": "constructor", "lc": 1, "id": ["langchain", "AIMessageChunk"], "kwargs": {"content": word}}
    for word in _WORDS
]


@pytest.mark.parametrize(
    ("pieces", "written"),
    [
        (_CHAT, 9),
        (_ANTHROPIC, 9),
        (_LANGCHAIN, None),
        ([{"role": "assistant", "content": word} for word in _WORDS], None),
    ],
)
def test_an_answer_that_a_generator_streamed_is_one_message(pieces: list[Any], written: int | None) -> None:
    question = {"messages": [{"role": "user", "content": "Tell"}]}
    (row,) = read("langsmith", [run("llm", "r1", 0, 1, inputs=question, outputs={"output": pieces})])
    assert talk(row) == [("user", "Tell"), ("assistant", "".join(_WORDS))]
    assert (row["usage"] or {}).get("output_tokens") == written


def test_calls_in_chunks_of_langchain_are_calls() -> None:
    begun = {"name": "look", "args": "", "id": "c1", "index": 0}
    pieces = [
        {"type": "AIMessageChunk", "content": "I look", "tool_call_chunks": [begun]},
        *(
            {"type": "AIMessageChunk", "content": "", "tool_call_chunks": [{"args": piece, "index": 0}]}
            for piece in ('{"at"', ': "sky"}')
        ),
    ]
    question = {"messages": [{"role": "user", "content": "Tell"}]}
    (row,) = read("langsmith", [run("llm", "r1", 0, 1, inputs=question, outputs={"output": pieces})])
    (call,) = row["messages"][-1]["tool_calls"]
    assert (call["id"], call["function"]) == ("c1", {"name": "look", "arguments": '{"at": "sky"}'})
    assert row["final_text"] == "I look"


def test_a_run_that_is_still_going_has_not_completed() -> None:
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    (row,) = read("langsmith", [run("llm", "t1", 0, 1, inputs=asked, outputs=None, end_time=None, status="pending")])
    assert row["status"] == "unknown"
    assert "incomplete" in row["flags"]


@pytest.mark.parametrize("key", ["attributes", "form", "start", "end", "events", "scope", "type", "name", "span_id"])
def test_keys_of_a_run_may_be_called_like_ours(key: str) -> None:
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    odd: dict[str, Any] = {"extra": {key: {"mark": "kept"}, "metadata": {key: "also"}}}
    runs = [
        run("chain", "t1", 0, 3, **odd),
        run("llm", "m1", 1, 2, "t1", inputs=asked, outputs={"output": "Yes"}, **odd),
    ]
    (row,) = read("langsmith", runs)
    assert talk(row) == [("user", "Hi"), ("assistant", "Yes")]
    assert "kept" in json.dumps(row, default=str)
