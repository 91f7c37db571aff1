"""Usage as gateways spell it, in one convention: cached inside the input, reasoning inside the output."""

from __future__ import annotations

from typing import Any

import pytest

from etl.adapters._api_choice import CODECS
from etl.adapters._blocks import read
from etl.adapters._usage import tokens
from tests.adapters.traces import batch, rows_of
from tests.adapters.traces import chat as model_span


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 95, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 90,
          "cache_creation_tokens": 3}, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3},
         (95, 4, 90, 3, None)),
        ({"prompt_tokens": 95, "completion_tokens": 4, "prompt_cache_hit_tokens": 90, "prompt_cache_miss_tokens": 5},
         (95, 4, 90, None, None)),
        ({"prompt_tokens": 95, "completion_tokens": 4, "cached_tokens": 90, "reasoning_tokens": 2},
         (95, 4, 90, None, 2)),
        # less than its parts: they lie beside
        ({"prompt_tokens": 5, "completion_tokens": 4, "cache_read_input_tokens": 90}, (95, 4, 90, None, None)),
        # read and written are the same tokens
        ({"prompt_tokens": 95, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 90,
          "cache_write_tokens": 90}}, (95, 4, 90, 90, None)),
        ({"input_tokens": 95, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 90}},
         (95, 4, 90, None, None)),
    ],
)  # fmt: skip
def test_counts_of_gateways(usage: Any, expected: tuple[int | None, ...]) -> None:
    found = tokens(usage)
    assert found is not None
    told = (found.input_tokens, found.output_tokens, found.cached_tokens)
    assert (*told, found.cache_write_tokens, found.reasoning_tokens) == expected


@pytest.mark.parametrize(
    "name",
    ["gen_ai.usage.input_cached_tokens", "gen_ai.usage.input_tokens.cached", "gen_ai.usage.cache_read.input_tokens"],
)
def test_cached_tokens_of_spans_by_any_name(name: str) -> None:
    made = model_span(
        1, 0, 1, [{"role": "user", "content": "Hi"}], [{"role": "assistant", "content": "Yes"}], None, (98, 2)
    )
    made["attributes"].append({"key": name, "value": {"intValue": "90"}})
    (row,) = rows_of(batch([made]))
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.cached_tokens) == (98, 90)


def test_gemini_as_python_clients_dump_it() -> None:
    candidate = {"content": {"parts": [{"text": "Yes"}]}, "finish_reason": "FinishReason.STOP"}
    counted = {"prompt_token_count": 9, "candidates_token_count": 2, "thoughts_token_count": 1}
    body = {"candidates": [candidate], "usage_metadata": counted, "model_version": "g-1", "response_id": "r"}
    answered = CODECS["gemini"].answered(body)
    assert (answered.choices[0].finish_reason, answered.model, answered.id) == ("STOP", "g-1", "r")
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.usage.output_tokens) == (9, 3)
    asked = CODECS["gemini"].asked({"contents": "Hi", "config": {"system_instruction": "Be nice"}})
    said = [(made.role, made.content) for item in asked.items for made in CODECS["gemini"].message(item)]
    assert said == [("system", "Be nice"), ("user", "Hi")]


def test_code_that_ran_at_the_provider_gave_what_it_printed() -> None:
    ran = {"type": "bash_code_execution_result", "stdout": "a\n", "stderr": "no", "return_code": 1, "content": []}
    results = read([{"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": ran}]).results
    assert results is not None
    (result,) = results
    assert (result.text, result.failed, result.server) == ("a\n\nno", True, True)
