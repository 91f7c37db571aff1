"""Which rows stay depends on other rows: splits by task, pairs, duplicates, difficulty, caps, held-out sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import etl
from etl.exports.report import ExportReport
from etl.lake import Lake
from tests.exports.talk import agent, ask, lake_of, records, row, system, user
from tests.lake.rows import put

Exported = tuple[ExportReport, Callable[[str], list[dict[str, Any]]]]


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Exported]:
    """Exports rows, of which a lake is made once, to a target; gives the report and a reader of the records."""
    count = iter(range(1000))
    lakes: dict[str, Path] = {}

    def run(target: str, rows: list[dict[str, Any]] | Path, **options: Any) -> Exported:
        number = next(count)
        if isinstance(rows, Path):
            lake = rows
        elif (said := repr(rows)) in lakes:
            lake = lakes[said]
        else:
            lake = lakes[said] = lake_of(tmp_path / f"lake{number}", rows)
        report = etl.export(target, tmp_path / f"out{number}", lake=lake, **options)
        assert report.selected == report.used + sum(report.dropped.values())
        assert report.records == sum(file.rows for file in report.files)
        return report, records(tmp_path / f"out{number}")

    return run


def ids(found: Iterable[dict[str, Any]]) -> set[str]:
    return {record["rollout_id"] for record in found}


def attempts(task: str, *rewards: float | None, **values: Any) -> list[dict[str, Any]]:
    return [
        ask(f"{task}-{number}", f"do {task}", f"{task} attempt {number}", reward=reward, sample_index=number, **values)
        for number, reward in enumerate(rewards)
    ]


def test_splits_go_by_task_and_stay_when_the_lake_grows(export: Callable[..., Exported], tmp_path: Path) -> None:
    rows = [made for task in range(40) for made in attempts(f"t{task}", 1.0, 0.0, 0.5)]
    lake = lake_of(tmp_path / "lake", rows)
    report, read = export("sft", lake, split="train=0.7,test=0.3")
    sides = {name: {found.rsplit("-", 1)[0] for found in ids(read(name))} for name in ("train", "test")}
    assert not sides["train"] & sides["test"]
    assert len(sides["train"] | sides["test"]) == 40
    assert 3 <= len(sides["test"]) <= 21
    assert report.splits["test"]["tasks"] == len(sides["test"])
    put(Lake.open(lake), [made for task in range(40, 60) for made in attempts(f"t{task}", 1.0)])
    _, grown = export("sft", lake, split="train=0.7,test=0.3")
    assert ids(read("train")) <= ids(grown("train"))
    assert ids(read("test")) <= ids(grown("test"))
    _, other = export("sft", lake, split="train=0.7,test=0.3", seed="2")
    assert ids(other("test")) != ids(grown("test"))


def test_branches_lie_on_the_side_of_their_parent(export: Callable[..., Exported]) -> None:
    rows = []
    for number in range(30):
        rows.append(ask(f"root{number}", f"question {number}", "answer"))
        child = [user(f"question {number}"), agent("answer", inherited=True), user("more"), agent(f"b{number}")]
        rows.append(row(f"child{number}", *child, task_id=None, parent_id=f"root{number}", prompt="more"))
        rows.append(
            row(f"grandchild{number}", user(f"sub {number}"), agent("c"), task_id=None, parent_id=f"child{number}")
        )
    report, read = export("openai", rows, split="train=0.5,test=0.5")
    assert report.repaired == {"turns_masked": 30}
    for split in ("train", "test"):
        numbers = {m["content"].split()[1] for record in read(split) for m in record["messages"][:1]}
        said = {m["content"][1:] for record in read(split) for m in record["messages"] if m["content"].startswith("b")}
        assert said == numbers
        for record in read(split):
            assert [m.get("weight", 1) for m in record["messages"] if m["role"] == "assistant"][-1] == 1


def test_a_pair_is_the_best_and_the_worst_at_one_prompt(export: Callable[..., Exported]) -> None:
    rows = [*attempts("a", 0.2, 1.0, -3.5), *attempts("b", 1.0, 1.0), *attempts("c", 0.7, None)]
    rows.append(row("a-other", system(), user("do a"), agent("else"), task_id="task do a", reward=9.0))
    report, read = export("rm", rows)
    (pair,) = read("train")
    assert (pair["chosen_id"], pair["rejected_id"], pair["margin"]) == ("a-1", "a-2", 4.5)
    assert [message["content"] for message in pair["prompt"]] == ["do a"]
    assert report.dropped == {"unscored": 1, "no_preference": 4, "not_chosen": 1}
    assert report.used == 2


def test_logged_preferences_count_where_there_is_no_reward(export: Callable[..., Exported]) -> None:
    def side(name: str, value: float) -> dict[str, Any]:
        judged = [{"name": "preference", "kind": "marker", "value": value, "label": name}]
        return ask(name, "which?", name, group_id="g", judgments=judged)

    _, read = export("dpo", [side("rejected", 0.0), side("chosen", 1.0)])
    (pair,) = read("train")
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("chosen", "rejected")


def test_a_pair_that_is_there_twice_is_written_once(export: Callable[..., Exported]) -> None:
    rows = [
        ask(f"{task}{reward}", "same ask", f"answer {reward}", task_id=task, reward=reward)
        for task in "ab"
        for reward in (0.0, 1.0)
    ]
    report, _ = export("dpo", rows)
    assert (report.records, report.dropped) == (1, {"duplicate": 2})
    report, _ = export("dpo", rows, keep_duplicates=True)
    assert report.records == 2


def test_one_row_a_task_with_its_pass_rate(export: Callable[..., Exported]) -> None:
    rows = [*attempts("a", 1.0, 0.0, 0.5, None), *attempts("b", 1.0), ask("stranger", "hi", "ho", task_id=None)]
    report, read = export("grpo", rows, pass_at=0.5)
    found = {record["task_id"]: (record["n"], record["pass_rate"]) for record in read("train")}
    assert found == {"task do a": (3, pytest.approx(2 / 3)), "task do b": (1, 1.0)}
    assert report.dropped == {"no_task": 1, "other_attempt": 3}
    assert {band["band"]: (band["tasks"], band["attempts"]) for band in report.bands} == {
        "all passed": (1, 1), "most passed": (1, 3),
    }  # fmt: skip


def test_tasks_by_difficulty_and_number_of_attempts(export: Callable[..., Exported]) -> None:
    rows = [
        *attempts("easy", 1.0, 1.0, 1.0),
        *attempts("even", 1.0, 0.0, 0.0, 1.0),
        *attempts("hard", 0.0, 0.0, 0.0),
        *attempts("rare", 1.0, 0.0),
        *attempts("open", None, None, None),
    ]
    report, read = export("sft", rows, group_min=3, difficulty=(0.2, 0.8))
    assert {found.split("-")[0] for found in ids(read("train"))} == {"even"}
    assert report.dropped == {"too_few_attempts": 5, "outside_difficulty_band": 6}
    report, read = export("grpo", rows, drop_unanimous=True)
    assert {found.split("-")[0] for found in ids(read("train"))} == {"even", "rare"}
    assert report.dropped["unanimous"] == 9


def test_duplicates_exact_and_near(export: Callable[..., Exported]) -> None:
    words = "the boat leaves the pier at nine and comes back with the tide in the evening every day"
    rows = [ask(f"same{number}", "when?", words, task_id=f"t{number}") for number in range(3)]
    rows += [ask(f"near{number}", "when?", f"{words} {number}") for number in range(4)]
    rows += [ask("far", "where?", "at the other end of the harbour, behind the crane")]
    report, read = export("sft", rows)
    assert report.dropped == {"duplicate": 2}
    report, read = export("sft", rows, near_duplicates=0.7)
    assert report.records == 2
    assert "far" in ids(read("train"))
    _, read_again = export("sft", list(reversed(rows)), near_duplicates=0.7)
    assert ids(read_again("train")) == ids(read("train")), "the order of the rows makes no difference"
    report, _ = export("sft", rows, keep_duplicates=True)
    assert report.records == 8


def test_overlap_with_a_held_out_lake_or_file(export: Callable[..., Exported], tmp_path: Path) -> None:
    long = "please move my booking from the seventh of march to the ninth of march and tell the harbour master"
    rows = [
        ask("same-task", "short", "a", task_id="secret"),
        ask("quotes", f"hello, {long.upper()}!", "done"),
        ask("answers", "what did they ask?", f"They asked: {long}"),
        row("policy", system(long), user("good morning to you all"), agent("hello")),
        ask("short", "open the gate for me please", "b"),
        ask("greeting", "hi", "c"),
    ]
    lake = lake_of(tmp_path / "held", [ask("h1", long, "x", task_id="secret"), ask("h2", "hi", "y", task_id="other")])
    report, read = export("openai", rows, held_out=[lake])
    assert report.dropped == {"held_out": 3}
    assert {record["messages"][-1]["content"] for record in read("train")} == {"hello", "b", "c"}
    file = tmp_path / "test.jsonl"
    file.write_text(json.dumps({"question": "Open the gate for me, please.", "answer": "yes"}) + "\n", encoding="utf-8")
    report, _ = export("sft", rows, held_out=[file])
    assert report.dropped == {"held_out": 1}
    with pytest.raises(etl.EtlError, match="neither a lake nor a file"):
        export("sft", rows, held_out=[tmp_path / "nothing"])


def test_caps_take_whole_pairs_and_the_same_rows_every_time(export: Callable[..., Exported]) -> None:
    rows = [ask(f"{source}{n}", f"{source} {n}", "a", source=source) for source in ("big", "small") for n in range(20)]
    report, read = export("sft", rows, max_per_source=5)
    assert report.dropped == {"source_cap": 30}
    assert sum(found.startswith("small") for found in ids(read("train"))) == 5
    report, first = export("sft", rows, max_rows=7)
    _, second = export("sft", rows, max_rows=7)
    assert first("train") == second("train")
    _, more = export("sft", rows, max_rows=9)
    assert ids(first("train")) < ids(more("train"))
    pairs = [made for task in range(6) for made in attempts(f"p{task}", 1.0, 0.0)]
    report, read = export("dpo", pairs, max_rows=2)
    assert (report.records, report.used, report.dropped) == (2, 4, {"max_rows": 8})


def test_long_conversations_are_left_out(export: Callable[..., Exported]) -> None:
    report, read = export("sft", [ask("short", "a" * 40, "b"), ask("long", "a" * 60, "b")], max_chars=50)
    assert ids(read("train")) == {"short"}
    assert report.dropped == {"too_long": 1}


def test_planted_mistakes_are_for_those_who_judge(export: Callable[..., Exported]) -> None:
    made = {"origin": "simulation", "faults": "{}", "seed": 1}
    rows = [
        ask("good", "q", "a", reward=1.0, seeded=[], **made),
        ask("bad", "q", "so sorry", reward=0.0, seeded=["apology"], **made),
        ask("leak", "q", "the state says forty-two", reward=0.0, seeded=["leak"], **made),
    ]
    report, read = export("sft", rows)
    assert ids(read("train")) == {"good"}
    assert report.dropped == {"planted_leak": 1, "planted_mistake": 1}
    for target in ("dpo", "kto", "grpo", "atif", "otlp", "whileai", "verifiers"):
        report, _ = export(target, rows)
        assert report.dropped["planted_leak"] == 1
        out = Path(report.folder)
        assert not any("forty-two" in path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())


def test_what_a_preference_set_rejects_is_imitated_only_where_that_is_asked(export: Callable[..., Exported]) -> None:
    def judged(name: str, kind: str, value: float) -> list[dict[str, Any]]:
        return [{"name": name, "kind": kind, "value": value}]

    rows = [
        ask("chosen", "q", "a", task_id="t", group_id="g", judgments=judged("preference", "marker", 1.0)),
        ask("rejected", "q", "b", task_id="t", group_id="g", reward=0.7, judgments=judged("preference", "marker", 0.0)),
        ask("tie", "p", "c", judgments=judged("preference", "human", 0.5)),
        ask("undesirable", "r", "d", judgments=judged("kto_tag", "marker", 0.0)),
        ask("judged", "s", "e", judgments=judged("politeness", "judge", 0.0)),
    ]
    for target in ("sft", "sft-pc", "openai"):
        report, read = export(target, rows)
        assert (report.records, report.dropped) == (3, {"rejected_answer": 2})
    report, read = export("sft", rows)
    assert ids(read("train")) == {"chosen", "tie", "judged"}
    report, read = export("sft", rows, keep_rejected=True)
    assert (report.records, report.dropped) == (5, {})
    assert "rejected_answer" not in export("kto", rows)[0].dropped
