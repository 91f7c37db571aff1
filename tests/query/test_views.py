"""Every view and macro answers the same through `etl.connect`, the library and the `duckdb` program."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from etl.derive import quoted
from etl.pages import facts
from etl.query import connect
from tests.lake.rows import rollout
from tests.query.engines import ENGINES, Ask
from tests.query.support import add_files, attempts, make_lake, refund, step

_PARTITIONS = [("a", "2026-03-01"), ("a", "2026-03-02"), ("b", "2026-03-01"), ("b", "unknown")]
SOURCES = ["007", "a b", "ü/x", "100%", "it's", "a=b", "q?*[z]", "_x:1", "a%20b", '"q"', "new\nline", ".hid", "b\\c"]

pytestmark = pytest.mark.parametrize("ask", ENGINES)


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One lake for all tests that only read."""
    folder = tmp_path_factory.mktemp("views") / "lake"
    rows = [
        refund(),
        *attempts([1.0, 0.0, None, 1.0], task="t_2", group="g_2", content_hash="same", model="demo"),
        *attempts([0.0, 0.0], task="t_3", model="other", source="007", day="unknown", started_at=None),
    ]
    add_files(make_lake(folder, rows), "/logs/a.jsonl", "/logs/b.jsonl")
    return folder


def test_rollouts_have_their_system_prompt_and_results(ask: Ask, support: Path) -> None:
    sql = "SELECT system_prompt, list_transform(steps, lambda s: s.result) AS results FROM rollouts"
    assert ask(support, f"{sql} WHERE rollout_id = 'r_refund'") == [
        {"system_prompt": "You sell shoes.", "results": ['{"status":"delivered"}', None, "Error: not allowed"]}
    ]
    assert ask(support, f"{sql} WHERE rollout_id = 'r_t_2_0'") == [{"system_prompt": None, "results": []}]


def test_messages_have_one_row_each(ask: Ask, support: Path) -> None:
    columns = 'message_index, role, in_prompt, message_id, "at"::VARCHAR AS said, output_tokens'
    rows = ask(support, f"SELECT {columns} FROM messages WHERE rollout_id = 'r_refund' ORDER BY message_index LIMIT 3")
    assert [tuple(row.values()) for row in rows] == [
        (0, "system", True, None, None, None),
        (1, "user", True, "m1", "2026-03-01 12:00:00+00", None),
        (2, "assistant", False, None, "2026-03-01 12:00:02+00", 20),
    ]
    assert ask(support, "SELECT count(*) AS n FROM messages") == [{"n": 7 + 2 * 6}]


def test_steps_have_one_row_each(ask: Ask, support: Path) -> None:
    rows = ask(support, "SELECT step_index, tool, status, condition, result FROM steps ORDER BY step_index")
    assert [tuple(row.values()) for row in rows] == [
        (0, "get_order", "ok", None, '{"status":"delivered"}'),
        (1, "get_user", "missing", None, None),
        (2, "refund", "error", "permission_denied", "Error: not allowed"),
    ]


def test_what_was_read_and_rejected(ask: Ask, support: Path) -> None:
    assert ask(support, "SELECT uri, state FROM sources ORDER BY uri") == [
        {"uri": "/logs/a.jsonl", "state": "done"},
        {"uri": "/logs/b.jsonl", "state": "done"},
    ]
    assert ask(support, "SELECT reason, decode(raw) AS raw FROM rejects") == [{"reason": "bad_json", "raw": "{oops"}]
    tables = ask(support, "SELECT name, live_files, version FROM lake_tables ORDER BY name")
    assert [tuple(row.values()) for row in tables] == [
        ("events", 0, 0),
        ("rejects", 1, 1),
        ("rollouts", 2, 1),
        ("sources", 1, 1),
    ]


def test_partition_keys_are_text(ask: Ask, support: Path) -> None:
    sql = "SELECT DISTINCT source, day, typeof(source) AS kind FROM rollouts ORDER BY source"
    assert ask(support, sql) == [
        {"source": "007", "day": "unknown", "kind": "VARCHAR"},
        {"source": "support", "day": "2026-03-01", "kind": "VARCHAR"},
    ]


def test_pass_rates_count_unscored_attempts_apart(ask: Ask, support: Path) -> None:
    columns = "task_id, model, source, n, passed, unscored, pass_rate, round(low, 4) AS low, round(high, 4) AS high"
    rows = ask(support, f"SELECT {columns} FROM pass_rates ORDER BY task_id")
    assert [tuple(row.values()) for row in rows] == [
        ("t_1", "demo", "support", 1, 0, 0, 0.0, 0.0, 0.7935),
        ("t_2", "demo", "support", 3, 2, 1, pytest.approx(2 / 3), 0.2077, 0.9385),
        ("t_3", "other", "007", 2, 0, 0, 0.0, 0.0, 0.6576),
    ]
    assert ask(support, "SELECT sum(passed)::INTEGER AS n FROM pass_rates_at(0.0)") == [{"n": 6}]


def test_pass_at_k_over_tasks(ask: Ask, support: Path) -> None:
    unknown = {"low": None, "high": None}  # the spread over one task
    assert ask(support, "FROM pass_at(2) ORDER BY model") == [
        {
            "model": "demo",
            "source": "support",
            "origin": "traffic",
            "pass_at_k": 1.0,
            **unknown,
            "tasks": 1,
            "tasks_left_out": 1,
        },
        {
            "model": "other",
            "source": "007",
            "origin": "traffic",
            "pass_at_k": 0.0,
            **unknown,
            "tasks": 1,
            "tasks_left_out": 0,
        },
    ]
    assert ask(support, "SELECT pass_hat_k FROM pass_hat(2) WHERE model = 'demo'") == [
        {"pass_hat_k": pytest.approx(1 / 3)}
    ]


def test_bootstrap_intervals_hold_the_mean_and_shrink(ask: Ask, support: Path, thorough: bool) -> None:
    width = {}
    for tasks in (1, 10, 100, 1000, 4000) if thorough else (1, 10, 400):
        figures = f"(SELECT list((range * 7 % 10 < 3)::INTEGER) AS figures FROM range({tasks}))"
        (row,) = ask(support, f"SELECT bootstrap_low(figures) AS low, bootstrap_high(figures) AS high FROM {figures}")
        if tasks == 1:
            assert row == {"low": None, "high": None}
            continue
        assert row["low"] < 0.3 < row["high"]
        normal = 2 * 1.96 * math.sqrt(0.3 * 0.7 / tasks)
        assert row["high"] - row["low"] == pytest.approx(normal, rel=0.25)
        width[tasks] = row["high"] - row["low"]
    assert sorted(width.values(), reverse=True) == list(width.values())


def test_groups(ask: Ask, support: Path) -> None:
    (group,) = ask(support, "FROM groups")
    assert group["rollout_ids"] == ["r_t_2_0", "r_t_2_1", "r_t_2_2", "r_t_2_3"]
    assert (group["attempts"], group["n"], group["passed"], group["min_reward"]) == (4, 3, 2, 0.0)
    assert group["reward_spread"] == pytest.approx(math.sqrt(2) / 3)
    assert group["low"] < group["pass_rate"] < group["high"]


def test_duplicates(ask: Ask, support: Path) -> None:
    (found,) = ask(support, "FROM duplicates")
    assert (found["content_hash"], found["copies"], found["sources"]) == ("same", 4, ["support"])
    assert len(found["rollout_ids"]) == 4


def test_tool_rates_and_failures(ask: Ask, support: Path) -> None:
    rows = ask(support, "SELECT tool, n, failed, errors, missing, round(low, 4) AS low FROM tool_rates ORDER BY tool")
    assert [tuple(row.values()) for row in rows] == [
        ("get_order", 1, 0, 0, 0, 0.0),
        ("get_user", 0, 0, 0, 1, None),
        ("refund", 1, 1, 1, 0, 0.2065),
    ]
    assert ask(support, "SELECT tool, result, then_said FROM failures ORDER BY step_index") == [
        {"tool": "get_user", "result": None, "then_said": ""},
        {"tool": "refund", "result": "Error: not allowed", "then_said": "I may not refund it."},
    ]


def test_rates_of_traffic_know_who_called_and_leave_simulation_out(ask: Ask, tmp_path: Path) -> None:
    def calls(rollout_id: str, origin: str, *made: tuple[str, str]) -> dict[str, Any]:
        steps = [step("look", f"c{n}", 2, None, status, actor=actor) for n, (actor, status) in enumerate(made)]
        return refund(rollout_id, origin=origin, steps=steps, reward=1.0)

    traffic = calls("r_a", "traffic", ("agent", "ok"), ("agent", "error"), ("agent", "missing"), ("user", "error"))
    make_lake(tmp_path / "lake", [traffic, calls("r_b", "simulation", ("agent", "error"), ("agent", "cancelled"))])
    sql = (
        "SELECT origin, actor, n, failed, missing, cancelled, failure_rate FROM tool_rates ORDER BY origin DESC, actor"
    )
    assert [tuple(row.values()) for row in ask(tmp_path / "lake", sql)] == [
        ("traffic", "agent", 2, 1, 1, 0, 0.5),
        ("traffic", "user", 1, 1, 0, 0, 1.0),
        ("simulation", "agent", 1, 1, 0, 1, 1.0),
    ]
    sql = "SELECT origin, n, passed FROM pass_rates ORDER BY origin"
    assert [tuple(row.values()) for row in ask(tmp_path / "lake", sql)] == [("simulation", 1, 1), ("traffic", 1, 1)]
    with connect(tmp_path / "lake") as connection:
        assert [(row["tool"], row["actor"], row["n"], row["failed"]) for row in facts.tools(connection)] == [
            ("look", "user", 1, 1),
            ("look", "agent", 2, 1),
        ]


def heir(rollout_id: str, parent_id: str | None = None, **values: Any) -> dict[str, Any]:
    """A row that took over the first five messages of `refund`, with its first two calls, and then called itself."""
    return refund(rollout_id, parent_id=parent_id, prompt_len=4, **values)


def test_a_call_counts_once_however_many_rows_repeat_it(ask: Ask, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, [refund("r_a"), heir("r_b", "r_a"), heir("r_c", "r_b", task_id="t_other")])
    sql = "SELECT tool, n, failed, missing FROM tool_rates ORDER BY tool"
    assert [tuple(row.values()) for row in ask(lake, sql)] == [
        ("get_order", 1, 0, 0),
        ("get_user", 0, 0, 1),
        ("refund", 3, 3, 0),
    ]
    assert ask(lake, "SELECT count(*) AS n FROM steps WHERE inherited") == [{"n": 4}]
    assert [row["tool"] for row in ask(lake, "FROM failures ORDER BY tool")] == ["get_user", *["refund"] * 3]
    pairs = "axis_1 = 'tool' AND axis_2 = 'position'"
    sql = f"SELECT value_1, value_2, support, times FROM coverage WHERE {pairs} ORDER BY ALL"
    assert [tuple(row.values()) for row in ask(lake, sql)] == [
        ("get_order", "first", 1, 1),
        ("get_user", "first", 1, 1),
        ("refund", "after_failure", 2, 3),
    ]
    with connect(lake) as connection:
        assert {row["tool"]: row["n"] for row in facts.tools(connection)} == {
            "get_order": 1,
            "get_user": 0,
            "refund": 3,
        }
        assert (facts.totals(connection)["tool_calls"], facts.by_kind(connection)[0]["tool_calls"]) == (5, 5)


@pytest.mark.parametrize(
    "kin",
    [{"group_id": "g"}, {"conversation_id": "c"}],
    ids=lambda kin: next(iter(kin)),
)
def test_a_call_of_which_the_lake_has_only_copies_counts_once(ask: Ask, tmp_path: Path, kin: dict[str, Any]) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, [heir("r_b", **kin), heir("r_c", **kin), heir("r_d", "r_c"), heir("r_e", source="other", **kin)])
    sql = "SELECT source, tool, n + missing AS calls FROM tool_rates ORDER BY source DESC, tool"
    assert [tuple(row.values()) for row in ask(lake, sql)] == [
        ("support", "get_order", 1),
        ("support", "get_user", 1),
        ("support", "refund", 3),
        ("other", "get_order", 1),
        ("other", "get_user", 1),
        ("other", "refund", 1),
    ]
    assert ask(lake, "SELECT DISTINCT rollout_id FROM steps WHERE inherited ORDER BY 1") == [
        {"rollout_id": "r_c"},
        {"rollout_id": "r_d"},
    ]


def test_a_row_of_the_same_conversation_may_own_what_another_took_over(ask: Ask, tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [heir("r_a", conversation_id="c"), refund("r_b", conversation_id="c")])
    sql = "SELECT rollout_id, count(*) AS n FROM steps WHERE NOT inherited GROUP BY ALL ORDER BY ALL"
    assert [tuple(row.values()) for row in ask(tmp_path / "lake", sql)] == [("r_a", 1), ("r_b", 3)]


def test_a_simulated_user_who_calls_first_has_taken_over_nothing(ask: Ask, tmp_path: Path) -> None:
    steps = [step("look", "c1", 1, None, "ok", actor="user")]
    make_lake(tmp_path / "lake", [refund("r_a", steps=steps, conversation_id="c", prompt_len=2)])
    assert ask(tmp_path / "lake", "SELECT tool FROM steps WHERE NOT inherited") == [{"tool": "look"}]


def test_usage_daily(ask: Ask, support: Path) -> None:
    (day,) = ask(support, "FROM usage_daily WHERE input_tokens IS NOT NULL")
    assert (day["day"], day["rollouts"], day["with_usage"], day["input_tokens"], day["cost_usd"]) == (
        "2026-03-01",
        5,
        1,
        450,
        0.01,
    )


def test_transcript(ask: Ask, support: Path) -> None:
    rows = ask(support, "SELECT role, calls, answers FROM transcript('r_refund') ORDER BY message_index")
    assert [row["role"] for row in rows] == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert rows[2]["calls"] == ['get_order({"id":"W1"})', "get_user({})"]
    assert rows[3]["answers"] == "c1"


def test_wilson_bounds(ask: Ask, support: Path) -> None:
    counts = "range(0, 6) a(k), range(0, 6) b(n) WHERE k <= n"
    sql = f"SELECT k, n, wilson_low(k, n) AS low, wilson_high(k, n) AS high FROM {counts}"
    z = 1.959963984540054
    for row in ask(support, sql):
        k, n = row["k"], row["n"]
        if n == 0:
            assert row["low"] is row["high"] is None
            continue
        middle, spread = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
        assert row["low"] == pytest.approx(max(0.0, middle - spread), abs=1e-12)
        assert row["high"] == pytest.approx(min(1.0, middle + spread), abs=1e-12)
        assert row["low"] <= k / n <= row["high"]


def test_pass_at_and_pass_hat_count_subsets(ask: Ask, support: Path) -> None:
    sql = (
        "SELECT n, c, k, pass_at(n, c, k) AS at_k, pass_hat(n, c, k) AS hat_k "
        "FROM range(1, 6) x(n), range(0, 6) y(c), range(0, 7) z(k) WHERE c <= n"
    )
    for row in ask(support, sql):
        n, c, k = row["n"], row["c"], row["k"]
        if not 1 <= k <= n:
            assert row["at_k"] is row["hat_k"] is None
            continue
        drawn = list(itertools.combinations([True] * c + [False] * (n - c), k))
        assert row["at_k"] == pytest.approx(sum(map(any, drawn)) / len(drawn))
        assert row["hat_k"] == pytest.approx(sum(map(all, drawn)) / len(drawn))


def test_pass_at_holds_for_many_attempts(ask: Ask, support: Path) -> None:
    (row,) = ask(support, "SELECT pass_at(20000, 3, 100) AS at_k, pass_hat(20000, 19990, 100) AS hat_k")
    assert row["at_k"] == pytest.approx(1 - math.comb(19997, 100) / math.comb(20000, 100))
    assert row["hat_k"] == pytest.approx(math.comb(19990, 100) / math.comb(20000, 100))


def test_any_source_name_is_read_and_filtered(ask: Ask, tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [rollout(f"r_{n}", source=name) for n, name in enumerate(SOURCES)])
    rows = ask(tmp_path / "lake", "SELECT rollout_id, source FROM rollouts")
    assert {row["rollout_id"]: row["source"] for row in rows} == {f"r_{n}": name for n, name in enumerate(SOURCES)}
    asked = " UNION ALL ".join(
        f"(SELECT {number} AS number, rollout_id FROM rollouts WHERE source = {quoted(name)})"
        for number, name in enumerate(SOURCES)
    )
    found = ask(tmp_path / "lake", asked)
    assert {row["number"]: row["rollout_id"] for row in found} == {n: f"r_{n}" for n in range(len(SOURCES))}


def test_tables_without_a_file_are_empty(ask: Ask, tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    views = ("rollouts", "messages", "steps", "events", "rejects", "sources", "pass_rates", "groups", "failures")
    counts = ", ".join(f"(SELECT count(*) FROM {view}) AS {view}" for view in views)
    assert ask(tmp_path / "lake", f"SELECT {counts}") == [dict.fromkeys(views, 0)]


@pytest.mark.parametrize(
    "name", ["it's [x]*?", *(pytest.param(name, marks=pytest.mark.slow) for name in ("moved", "a b", "ü%20#"))]
)
def test_a_lake_can_be_moved(ask: Ask, name: str, tmp_path: Path) -> None:
    make_lake(tmp_path / "first", [refund()])
    (tmp_path / "first").rename(tmp_path / name)
    assert ask(tmp_path / name, "SELECT rollout_id FROM rollouts") == [{"rollout_id": "r_refund"}]


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which one row was replaced again and again, with a file that no commit names."""
    folder = tmp_path_factory.mktemp("rewritten") / "lake"
    versions = [[rollout("r_1", n_records=number, row_hash=f"h{number}")] for number in range(3, 7)]
    lake = make_lake(folder, [rollout("r_0")], *versions)
    live = Path(lake.live("rollouts")[0].path)
    (live.parent / "stray.parquet").write_bytes(live.read_bytes())
    return folder


@pytest.mark.parametrize("checkpoint", ["first", "newest", "none"])
def test_only_live_files_are_read(ask: Ask, checkpoint: str, rewritten: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(rewritten, tmp_path / "lake")
    checkpoints = lake / "rollouts" / "_delta_log"
    if checkpoint == "newest":
        DeltaTable(lake / "rollouts").create_checkpoint()
        assert len(list(checkpoints.glob("*.checkpoint.parquet"))) == 2
    if checkpoint == "none":
        for file in checkpoints.glob("*checkpoint*"):
            file.unlink()
    assert ask(lake, "SELECT rollout_id, n_records FROM rollouts ORDER BY rollout_id") == [
        {"rollout_id": "r_0", "n_records": 2},
        {"rollout_id": "r_1", "n_records": 6},
    ]


def test_filters_on_partition_keys_open_only_their_files(ask: Ask, tmp_path: Path) -> None:
    rows = [refund(f"r_{number}", source=source, day=day) for number, (source, day) in enumerate(_PARTITIONS)]
    lake = make_lake(tmp_path / "lake", rows)
    for file in lake.live("rollouts"):
        if file.partition != {"source": "a", "day": "2026-03-01"}:
            Path(file.path).write_bytes(b"no Parquet at all")
    only = "source = 'a' AND day = '2026-03-01'"
    assert ask(tmp_path / "lake", f"SELECT count(*) AS n FROM rollouts WHERE {only}") == [{"n": 1}]
    assert ask(tmp_path / "lake", f"SELECT count(content) AS n FROM messages WHERE {only}") == [{"n": 7}]
    assert ask(tmp_path / "lake", f"SELECT count(result) AS n FROM steps WHERE {only}") == [{"n": 2}]
    assert ask(tmp_path / "lake", f"SELECT count(then_said) AS n FROM failures WHERE {only}") == [{"n": 2}]
