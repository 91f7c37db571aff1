"""Harbor's traces: episodes told once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import adapters
from tests.contract.harness import read

TRACES = adapters()["harbor_traces"]


def _episode(turns: list[str], trial: str = "a", **more: Any) -> dict[str, Any]:
    said = [{"role": "user" if number % 2 else "assistant", "content": text} for number, text in enumerate(turns, 1)]
    return {"conversations": said, "trial_name": trial, "episode": f"episode-{len(turns)}", **more}


@given(st.integers(1, 5), st.integers(0, 3))
def test_episodes_of_a_trial_are_one_row(episodes: int, others: int) -> None:
    turns = [str(number) for number in range(2 * episodes)]
    rows = [_episode(turns[: 2 * number]) for number in range(1, episodes + 1)]
    rows += [_episode(["x", "y"], f"b{number}") for number in range(others)]
    found = read(b"".join(json.dumps(row).encode() + b"\n" for row in rows), TRACES)
    assert len(found.rows) == 1 + others
    assert found.rows[0]["n_records"] == episodes
    assert found.ignored["repeated_episode"] == episodes - 1


def test_a_result_is_a_reward_or_an_error() -> None:
    rows = [
        _episode(["a", "b"], str(number), result=result) for number, result in enumerate((0.5, "1.0", "Lost", None))
    ]
    found = read(json.dumps(rows).encode(), TRACES).rows
    assert [(row["reward"], row["error"]) for row in found] == [(0.5, None), (1.0, None), (None, "Lost"), (None, None)]
