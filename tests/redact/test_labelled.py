"""How well redaction does on the labelled cases may not fall below what is recorded in `labelled.json`.

`make test` looks at one case in eight, with room for its few cases; `--thorough` at all of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etl.intervals import Rate
from tests.bench.redaction import measured_policies, quality, verdicts
from tests.redaction_labelled.cases import read

RECORDED: dict[str, dict[str, tuple[float, float]]] = json.loads(
    Path(__file__).with_name("labelled.json").read_text(encoding="utf-8")
)
"""Part → line of the table → least recall, least precision."""
_ONE_IN = 8
_ROOM = 0.15
"""By which a sample may fall short of the whole."""


@pytest.mark.parametrize("half", RECORDED)
def test_figures_do_not_fall(half: str, pytestconfig: pytest.Config) -> None:
    thorough = bool(pytestconfig.getoption("--thorough"))
    cases = list(read(Path(__file__).parents[1] / "redaction_labelled" / f"{half}.jsonl"))
    policies = measured_policies() if thorough else ["secrets", "pii"]
    judged = {policy: verdicts(cases if thorough else cases[::_ONE_IN], policy) for policy in policies}
    room = 0.0 if thorough else _ROOM
    for line in quality(judged):
        recall, precision = RECORDED[half][line.group]
        assert _share(line.recall) + room >= recall, f"recall of {line.group}: {line.recall}"
        assert _share(line.precision) + room >= precision, f"precision of {line.group}: {line.precision}"


def _share(rate: Rate) -> float:
    return 1.0 if rate.value is None else rate.value
