"""The same spans over many files and nights, through the whole run."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

from etl import ingest
from tests.adapters.traces import (
    asks,
    batch,
    chat,
    gives,
    text,
    tool,
    write_lines,
)
from tests.lakes import NOW, REPO, rows, said

SAMPLES = REPO / "sample_logs" / "otlp"
HI = text("user", "Hi")


def _all_spans() -> list[dict[str, Any]]:
    """One record for every span and log record of the samples, and of a long session over three days."""
    made: list[dict[str, Any]] = []
    for path in sorted(SAMPLES.glob("*.json*")):
        decoder, data = json.JSONDecoder(), path.read_text(encoding="utf-8")
        place = 0
        while place < len(data):
            try:
                value, place = decoder.raw_decode(data, place)
            except json.JSONDecodeError:
                break
            place += len(data[place:]) - len(data[place:].lstrip())
            made += _apart(value)
    history: list[Any] = [HI]
    for turn in range(6):
        at = turn * 43_200
        answer = asks(f"k{turn}", "look", n=turn)
        made.append(batch([chat(10 + turn, at, at + 1, list(history), [answer], gen_ai__conversation__id="long",
                                trace=f"{turn + 1:032x}")]))  # fmt: skip
        made.append(batch([tool(50 + turn, at + 2, at + 3, "look", call_id=f"k{turn}", result=f"r{turn}",
                                trace=f"{turn + 1:032x}")]))  # fmt: skip
        history += [answer, gives(f"k{turn}", f"r{turn}"), text("user", f"and {turn}?")]
    return made


def _apart(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [part for item in value for part in _apart(item)]
    made = []
    for groups, scopes, items in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for group in value.get(groups, ()):
            for scope in group[scopes]:
                made += [
                    {groups: [{**group, scopes: [{**scope, items: [item]}]}]} for item in scope[items]
                ]  # fmt: skip
    return made or ([] if "resourceSpans" in value else [value])


def test_the_same_spans_over_20_files_and_3_nights_give_the_rows_of_one_file(tmp_path: Path) -> None:
    spans = _all_spans()
    one = tmp_path / "one"
    ingest([write_lines(tmp_path / "all.jsonl", spans)], lake=one, now=NOW, source="traces", strict=True)
    dealt = spans + spans[::5]
    random.Random(7).shuffle(dealt)
    many = tmp_path / "many"
    counts = []
    for night in range(3):
        files = [
            write_lines(tmp_path / f"night{night}" / f"{number}.jsonl", dealt[number::20])
            for number in range(20)
            if number % 3 == night
        ]
        report = ingest(files, lake=many, now=NOW + dt.timedelta(days=night), source="traces", strict=True).to_json()
        counts.append(report["rows"])
    assert said(many) == said(one)
    assert {row["rollout_id"] for row in rows(many)} == {row["rollout_id"] for row in rows(one)}
    assert len(rows(many, "events")) == len(rows(one, "events"))
    (long,) = [row for row in rows(one) if row["conversation_id"] == "long"]
    assert long["n_steps"] == 6
    assert all(step["result_index"] is not None for step in long["steps"])
    assert counts[1]["unchanged"] < len(rows(one))


def test_a_night_touches_only_its_own_conversations(tmp_path: Path) -> None:
    def trace(number: int) -> list[dict[str, Any]]:
        name = f"{number:032x}"
        first = chat(2, number, number + 1, [HI], [asks("k", "look")], trace=name)
        return [batch([first]), batch([tool(3, number + 2, number + 3, "look", call_id="k", result="r", trace=name)])]

    lake = tmp_path / "lake"
    early = [trace(number)[0] for number in range(1, 31)]
    ingest([write_lines(tmp_path / "1.jsonl", early)], lake=lake, now=NOW, strict=True)
    before = {row["rollout_id"]: row for row in rows(lake)}
    report = ingest([write_lines(tmp_path / "2.jsonl", [trace(4)[1]])], lake=lake, now=NOW, strict=True).to_json()
    assert report["rows"] == {"added": 0, "replaced": 1, "removed": 0, "unchanged": 0}
    after = {row["rollout_id"]: row for row in rows(lake)}
    assert after.keys() == before.keys()
    changed = [row for name, row in after.items() if row["row_hash"] != before[name]["row_hash"]]
    assert [row["conversation_id"] for row in changed] == [f"{4:032x}"]
