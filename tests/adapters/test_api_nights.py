"""The same calls over many files and nights, through the whole run: the set of calls decides what the rows are."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from tests.adapters.api_lines import agent, called, chat, say
from tests.lakes import NOW, rows, said

ASK = say("user", "Where is the key?")


def _calls(seed: int) -> list[dict[str, Any]]:
    """Two agents at once, a long session over five days, a response polled, and calls without any time."""
    made = agent(seed)
    history = [ASK]
    for turn in range(5):
        answer = called(f"k{turn}", n=turn)
        call = chat(f"long{turn}", list(history), answer)
        made.append({**call, "timestamp": f"2026-04-{10 + turn:02}T08:00:00Z"})
        history += [answer, say("tool", f"r{turn}", tool_call_id=f"k{turn}")]
    url = "https://api.openai.com/v1/responses"
    body = {"id": "resp_1", "object": "response", "model": "demo", "output": []}
    done = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]
    asked = {"model": "demo", "input": "Work.", "background": True}
    made.append({"url": url, "request": asked, "response": {**body, "status": "queued"}})
    made.append({"url": f"{url}/resp_1", "response": {**body, "status": "completed", "output": done}})
    asked = {"model": "demo", "input": "More.", "previous_response_id": "resp_1"}
    made.append({"url": url, "request": asked, "response": {**body, "id": "resp_2", "output": done}})
    return made


def _night(lake: Path, name: str, calls: list[dict[str, Any]], number: int) -> None:
    path = lake.parent / name
    path.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")
    ingest([path], lake=lake, now=NOW + dt.timedelta(days=30 + number), source="s", format="api_calls")


def _shuffled(folder: Path, seeds: range) -> None:
    wanted: dict[int, list[str]] = {}
    for seed in seeds:
        of, dice = seed % 5, random.Random(seed)
        calls = _calls(of)
        if of not in wanted:
            _night(folder / f"whole{of}", f"whole{of}.jsonl", calls, 0)
            wanted[of] = said(folder / f"whole{of}")
        calls += dice.sample(calls, 2)
        dice.shuffle(calls)
        lake = folder / f"lake{seed}"
        for number in range(3):
            _night(lake, f"{seed}-{number}.jsonl", calls[number::3], number)
        assert said(lake) == wanted[of], seed


def test_calls_shuffled_over_files_and_nights(tmp_path: Path) -> None:
    _shuffled(tmp_path, range(1))


@pytest.mark.slow
def test_calls_shuffled_many_times(tmp_path: Path) -> None:
    _shuffled(tmp_path, range(1, 14))


def test_a_log_that_grows_between_a_request_and_its_response(tmp_path: Path) -> None:
    lines = []
    history, lake = [ASK], tmp_path / "lake"
    for turn in range(3):
        answer = called(f"k{turn}", n=turn)
        when = f"2026-04-24T08:00:0{turn}"
        response = {"id": f"r{turn}", "choices": [{"message": answer, "finish_reason": "tool_calls"}]}
        lines.append({"type": "request", "timestamp": when, "request_params": {"model": "demo", "messages": history}})
        lines.append({"type": "response", "timestamp": when, "response": response})
        history = [*history, answer, say("tool", f"r{turn}", tool_call_id=f"k{turn}")]
    path = tmp_path / "agent.jsonl"
    for night, cut in enumerate((1, 3, 6)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines[:cut]), encoding="utf-8")
        ingest([path], lake=lake, now=NOW + dt.timedelta(days=30 + night), source="s")
    (row,) = rows(lake)
    assert (row["n_records"], row["source_line"], row["n_steps"]) == (6, 1, 3)
