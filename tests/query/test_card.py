"""The dataset card names the data files and every column, and `datasets` reads a lake by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from etl.card import DATA_FILES, card
from etl.schema import arrow_schema
from tests.lake.rows import put
from tests.query.support import make_lake, refund


def test_both_configurations_have_every_column_in_order() -> None:
    _, head, text = card().split("---\n", 2)
    names = arrow_schema("rollouts").names
    columns = [line.removeprefix("  - name: ") for line in head.splitlines() if line.startswith("  - name: ")]
    assert columns == names * 2
    assert head.count(f"path: {DATA_FILES}") == 2
    assert head.count("dtype: json") == 3
    assert text.startswith("\n# Rollouts")


def test_the_pattern_matches_data_files_only(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, [refund(), refund("r_2", source="a b")])
    assert sorted(map(str, tmp_path.glob(DATA_FILES))) == [file.path for file in lake.live("rollouts")]
    assert list(tmp_path.glob("rollouts/_delta_log/*.parquet"))


def test_datasets_reads_the_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="needs the optional package datasets")
    tools = '[{"type":"function"}]'
    make_lake(tmp_path / "lake", [refund(tools=tools), refund("r_2", source="a b/007", tools=tools)])
    for streaming in (False, True):
        rows = list(datasets.load_dataset(str(tmp_path / "lake"), split="train", streaming=streaming))
        assert sorted((row["rollout_id"], row["source"]) for row in rows) == [
            ("r_2", "a b/007"),
            ("r_refund", "support"),
        ]
        assert rows[0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"id": "W1"}
        assert rows[0]["messages"][1]["tool_calls"] is None
        assert rows[0]["tools"] == [{"type": "function"}]
        plain = list(datasets.load_dataset(str(tmp_path / "lake"), "text", split="train", streaming=streaming))
        assert plain[0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"id":"W1"}'
        assert plain[0]["tools"] == tools


def test_the_card_names_the_state_of_the_lake_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [refund()])
    path = tmp_path / "lake" / "README.md"
    first = path.read_text(encoding="utf-8")
    path.write_text(f"{first}\nOurs: see the wiki.\n", encoding="utf-8")
    put(lake, [refund("r_2")])
    second = path.read_text(encoding="utf-8")
    assert second.endswith("Ours: see the wiki.\n")
    states = [{line for line in text.splitlines() if "of state" in line} for text in (first, second)]
    assert [len(state) for state in states] == [1, 1], "both configurations name the same"
    assert states[0] != states[1]
    assert "of state none" not in first
    put(lake, [refund("r_2")])
    assert path.read_text(encoding="utf-8") == second
