"""Runs: the same rows on any machine, more rows keep the first, bad specs write nothing, nothing of traffic leaks."""

import json
from typing import Any

import pytest

import etl
from etl.cli import run
from etl.errors import UsageError
from etl.simulator.leaks import NEAR, Asked, minhash
from tests.simulator.shop import PROMPT, TOOLS


def lesson(**more):
    @etl.tool
    def get_order(order_id: str) -> dict:
        """Look up an order."""
        return {"order_id": order_id}

    agent = etl.seeded_agent([get_order])
    asked: dict[str, Any] = {"mode": "rl", "repeats": 4, "budget": 64, "seed": 0, **more}
    return etl.simulate(agent, tools=[get_order], system_prompt="Help customers with orders.", **asked)


def said(rows):
    """What rows say, but for the run that wrote them."""
    kept = [name for name in rows.table.column_names if name not in ("batch_id", "ingested_at")]
    return rows.table.select(kept).sort_by("rollout_id").to_pylist()


def test_the_program_of_the_lesson():
    rows = lesson()
    assert len(rows) == 64
    assert len({row.prompt for row in rows}) == 16
    for row in rows:
        assert row.prompt
        assert row.final_text
        assert row.seeded is not None
        for step in row.steps:
            assert (step.tool, type(step.arguments), type(step.result)) == ("get_order", str, str)
    assert any(row.steps for row in rows)
    assert any(row.seeded for row in rows)
    assert {row.origin for row in rows} == {"simulation"}
    assert (rows[-1].rollout_id, len(rows[:3])) == (list(rows)[-1].rollout_id, 3)


def test_equal_spec_and_seed_give_equal_rows_and_other_seeds_others():
    first, again, other = said(lesson()), said(lesson()), said(lesson(seed=1))
    assert first == again
    assert not {row["prompt"] for row in first} & {row["prompt"] for row in other}
    assert not {row["rollout_id"] for row in first} & {row["rollout_id"] for row in other}


def test_more_rows_keep_the_first_ones():
    few, many = said(lesson(budget=30)), {row["rollout_id"]: row for row in said(lesson(budget=300))}
    assert len(few) == 30
    assert len(many) == 300
    assert all(many[row["rollout_id"]] == row for row in few)


def test_explore_attempts_each_ask_once():
    rows = lesson(mode="explore", repeats=None)
    assert len({row.prompt for row in rows}) == len(rows) == 64


def test_a_lake_takes_rows_once_and_more_rows_keep_the_first(tmp_path, capsys):
    lake = tmp_path / "lake"
    given: dict[str, Any] = {"tools": TOOLS, "system_prompt": PROMPT, "lake": lake, "seed": 3}
    first = etl.simulate(budget=60, **given)
    assert first.report.rows.added == len(first) == 60
    more = etl.simulate(budget=80, **given)
    assert more.report.to_json()["rows"] == {"added": 20, "replaced": 0, "removed": 0, "unchanged": 60}
    assert said(etl.simulate(budget=80, **{**given, "lake": None})) == said(more)
    rows = etl.connect(lake).execute(
        "SELECT count(*), count(DISTINCT rollout_id), min(origin), min(adapter), min(day) FROM rollouts"
    )
    assert rows.fetchall() == [(80, 80, "simulation", "simulator", "unknown")]
    sources = etl.connect(lake).execute("SELECT source, adapter, state, rows FROM sources").fetchall()
    assert sources == [("simulator", "simulator", "done", 80)]
    assert run(["verify", "--lake", str(lake)]) == 0
    assert run(["show", first[0].rollout_id[:12], "--lake", str(lake)]) == 0
    assert first[0].rollout_id[:12] in capsys.readouterr().out


@pytest.mark.slow
def test_the_number_of_workers_changes_no_row(tmp_path):
    given: dict[str, Any] = {"tools": TOOLS, "system_prompt": PROMPT, "seed": 3, "budget": 150}
    spread = etl.simulate(workers=3, lake=tmp_path / "lake", **given)
    assert spread.report.rows.added == 150
    assert said(spread) == said(etl.simulate(**given))
    assert spread.report.to_json()["seeded"] == etl.simulate(**given).report.to_json()["seeded"]


def test_asks_are_never_those_of_traffic(tmp_path):
    asks = [row.prompt for row in lesson(budget=200, repeats=1)]
    logged = [
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]}
        for text in asks[:60]
    ]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, logged)))
    etl.ingest([tmp_path / "chats.jsonl"], lake=tmp_path / "lake")
    rows = lesson(budget=200, repeats=1, lake=tmp_path / "lake")
    assert rows.report.copies >= 60
    traffic = [minhash(text) for text in asks[:60]]
    for row in rows:
        assert row.prompt not in asks[:60]
        assert all(minhash(str(row.prompt)).jaccard(known) < NEAR for known in traffic)


def test_near_copies_count_as_copies():
    asked = Asked(
        ["Please look up order ORD-12345 for me, I need to know where it is today and who has it now, thanks"]
    )
    assert not asked.takes(
        "please look up order ORD-12345 for me, I need to know where it is today and who has it now, thanks!"
    )
    assert asked.takes("Something else entirely.")
    assert not asked.takes("Something  else entirely.")
    assert (asked.copies, asked.repeated) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said_of_it"),
    [
        (["--tools", "none.json"], "the tools cannot be read"),
        (["--tools", "bad.json"], "no valid JSON Schema"),
        (["--tools", "empty.json"], "there are no tools"),
        (["--tools", "text.json"], "not JSON"),
        (["--tools", "tools.json", "--dimension", "mood=calm"], "no dimension is called 'mood'"),
        (["--tools", "tools.json", "--dimension", "stance=sleepy"], "stance has no value 'sleepy'"),
        (["--tools", "tools.json", "--behaviors", "lying"], "no behavior is called 'lying'"),
        (["--tools", "tools.json", "--strength", "9"], "strength must be between"),
        (["--tools", "tools.json", "--system-prompt", "none.md"], "the system prompt cannot be read"),
        (["--tools", "tools.json", "--budget", "0"], "0 is not in the range"),
        (["--fill-gaps"], "there is no lake"),
        ([], "there is no lake"),
    ],
)
def test_a_bad_spec_is_one_line_and_writes_nothing(tmp_path, monkeypatch, capsys, arguments, said_of_it):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "bad.json").write_text('[{"name": "f", "parameters": {"type": "wrong"}}]')
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "text.json").write_text("tools!")
    assert run(["simulate", "--lake", "lake", *arguments]) == 2
    err = capsys.readouterr().err
    assert said_of_it in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "lake").exists()


def test_a_dry_run_writes_nothing(tmp_path):
    done = lesson(budget=8, lake=tmp_path / "lake", dry_run=True)
    assert done.report.attempts == 8
    assert not (tmp_path / "lake").exists()


def test_what_is_no_number_of_rows_is_refused():
    with pytest.raises(UsageError, match="budget must be at least 1"):
        lesson(budget=0)
    with pytest.raises(UsageError, match="no mode is called 'fast'"):
        lesson(mode="fast")
    with pytest.raises(UsageError, match="no reward is called 'gold'"):
        lesson(reward="gold")
