"""Logs read by a map: one row a message over files and nights, one row a conversation, and what a wrong map says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.errors import UsageError
from etl.mapping import EXAMPLE, Mapping, load_map
from etl.pipeline import ingest, replay
from tests.examples import examples
from tests.lakes import NOW, rows

COLUMNS = ["ticket", "from", "body", "sent_at", "tool", "tool_input", "tool_output", "queue", "lang"]
T1 = [
    ["T1", "customer", "Where is\nmy order?", "2026-03-01T10:00:00Z", "", "", "", "shop", "en"],
    ["T1", "Bot", "I look.", "2026-03-01T10:00:05Z", "find_order", '{"order": 7}', '{"state": "sent"}', "shop", "en"],
    ["T1", "note", "he is a regular", "2026-03-01T10:00:06Z", "", "", "", "shop", "en"],
    ["T1", "bot", "It was sent.", "2026-03-01T10:00:07Z", "", "", "", "shop", "en"],
]


def _csv(path: Path, cells: list[list[str]], columns: list[str] = COLUMNS) -> Path:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([columns, *cells])
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


def _map(folder: Path, text: str = EXAMPLE, **changes: str) -> Path:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "map.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_is_a_map(tmp_path: Path) -> None:
    mapping = load_map(_map(tmp_path))
    assert (mapping.name, mapping.version, mapping.rows) == ("helpdesk", 1, "messages")


def test_one_row_a_message(tmp_path: Path) -> None:
    path, lake = _csv(tmp_path / "chat.csv", T1), tmp_path / "lake"
    report = ingest([path], lake=lake, map=_map(tmp_path), now=NOW, strict=True)
    (row,) = rows(lake)
    assert [(m["role"], m["content"]) for m in row["messages"]] == [
        ("user", "Where is\nmy order?"), ("assistant", "I look."), ("tool", '{"state": "sent"}'),
        ("assistant", "It was sent."),
    ]  # fmt: skip
    (step,) = row["steps"]
    assert (step["tool"], json.loads(step["arguments"]), step["result_index"]) == ("find_order", {"order": 7}, 2)
    assert (row["source"], row["agent"], json.loads(row["extra"])) == ("helpdesk", "shop", {"lang": "en"})
    assert report.to_json()["ignored"] == {"map_ignores": 1}
    assert ingest([path], lake=lake, map=tmp_path / "map.toml", now=NOW).to_json()["files"]["unchanged"] == 1


def test_a_conversation_goes_on_in_another_file(tmp_path: Path) -> None:
    lake, map_path = tmp_path / "lake", _map(tmp_path)
    ingest([_csv(tmp_path / "b.csv", T1[3:])], lake=lake, map=map_path, now=NOW, strict=True)
    ingest([_csv(tmp_path / "a.csv", T1[:3])], lake=lake, map=map_path, now=NOW, strict=True)
    (row,) = rows(lake)
    assert (row["prompt"], row["final_text"], row["n_records"]) == ("Where is\nmy order?", "It was sent.", 3)


def test_equal_rows_of_a_file_are_kept_apart_and_a_copy_adds_nothing(tmp_path: Path) -> None:
    said = [["T2", "customer", "ok", "", "", "", "", "shop", "en"]] * 2
    lake, map_path = tmp_path / "lake", _map(tmp_path)
    ingest([_csv(tmp_path / "one.csv", said), _csv(tmp_path / "copy.csv", said)], lake=lake, map=map_path, now=NOW)
    (row,) = rows(lake)
    assert [message["content"] for message in row["messages"]] == ["ok", "ok"]


def test_a_map_that_changes_reads_again_and_its_rows_are_those_that_stay(tmp_path: Path) -> None:
    """Back and forth, with and without another version: the rows are those of the map that is used."""
    path, lake = _csv(tmp_path / "chat.csv", T1), tmp_path / "lake"
    ingest([path], lake=lake, map=_map(tmp_path), now=NOW)
    for changed in (
        {'agent = "queue"': 'model = "queue"'},
        {'agent = "queue"': 'provider = "queue"'},
        {'agent = "queue"': 'model = "queue"', "version = 1": "version = 2"},
        {'agent = "queue"': 'provider = "queue"'},
        {},
    ):
        again = ingest([path], lake=lake, map=_map(tmp_path, **changed), now=NOW)
        (row,) = rows(lake)
        setting = changed.get('agent = "queue"', "agent").split(" ")[0]
        told = {name: row[name] for name in ("agent", "model", "provider")}
        assert told == {name: "shop" if name == setting else None for name in told}
        assert again.to_json()["rows"]["replaced"] == 1
        assert ingest([path], lake=lake, map=_map(tmp_path, **changed), now=NOW).rows.replaced == 0


def test_a_row_a_conversation_is_that_of_the_map_that_is_used_too(tmp_path: Path) -> None:
    """Such rows do not go through the events."""
    line = {"case": 1, "meta": {"bot": "b", "score": 0.5}, "turns": [{"who": "visitor", "said": "hi"}]}
    path, lake = tmp_path / "cases.jsonl", tmp_path / "lake"
    path.write_text(json.dumps(line))
    for name in ("agent", "model", "provider", "agent", "finish_reason", "model"):
        text = CONVERSATIONS.replace("agent =", f"{name} =")
        ingest([path], lake=lake, map=_map(tmp_path, text), now=NOW)
        (row,) = rows(lake)
        assert [key for key in ("agent", "model", "provider", "finish_reason") if row[key] == "b"] == [name]


def test_a_replay_leaves_to_its_map_what_a_map_read(tmp_path: Path) -> None:
    lake, robot = tmp_path / "lake", ["T3", "robot", "?", "", "", "", "", "shop", "en"]
    ingest([_csv(tmp_path / "chat.csv", [*T1, robot])], lake=lake, map=_map(tmp_path), now=NOW, strict=True)
    before = rows(lake, "rejects"), rows(lake, "sources")
    assert replay(lake, now=NOW).failed() == []
    assert (rows(lake, "rejects"), rows(lake, "sources")) == before
    added = {'bot = "assistant"': 'bot = "assistant"\nrobot = "assistant"', "version = 1": "version = 2"}
    ingest([tmp_path / "chat.csv"], lake=lake, map=_map(tmp_path, **added), now=NOW, strict=True)
    assert (len(rows(lake)), rows(lake, "rejects")) == (2, [])


CONVERSATIONS = """
name = "cases"
rows = "conversations"
html = true
[conversation]
id = "case"
agent = "meta.bot"
reward = "meta.score"
[message]
list = "turns"
role = "who"
text = "said"
[roles]
visitor = "user"
"""


def _cases() -> list[dict[str, Any]]:
    turns = [
        {"who": "visitor", "said": "<p>Hi &amp; <b>bye</b></p>", "mood": "ok"},
        {"who": "assistant", "said": "Yes?"},
    ]
    return [
        {"case": "c1", "meta": {"bot": "b-1", "score": -0.5, "site": "x"}, "turns": json.dumps(turns), "region": "no"},
        {"case": "c2", "meta": {"bot": "b-1"}, "turns": [{"who": "alien", "said": "?"}], "region": None},
        {"case": "c3", "meta": {"bot": "b-1"}, "turns": [], "region": None},
    ]


def test_one_row_a_conversation(tmp_path: Path) -> None:
    path, lake = tmp_path / "cases.jsonl", tmp_path / "lake"
    path.write_text("".join(json.dumps(case) + "\n" for case in _cases()))
    report = ingest([path], lake=lake, map=_map(tmp_path, CONVERSATIONS), now=NOW, strict=True)
    (row,) = rows(lake)
    assert [m["content"] for m in row["messages"]] == ["Hi & bye", "Yes?"]
    assert json.loads(row["message_info"][0]["extra"]) == {"html": "<p>Hi &amp; <b>bye</b></p>", "mood": "ok"}
    assert (row["conversation_id"], row["agent"], row["reward"]) == ("c1", "b-1", -0.5)
    assert json.loads(row["extra"]) == {"region": "no", "meta": {"site": "x"}}
    assert report.to_json()["rejects"] == {"unknown_role": 1, "no_messages": 1}


def test_a_column_a_turn_in_parquet(tmp_path: Path) -> None:
    table = pa.table({"no": [1, 2], "question": ["How deep?", "How often?"], "answer": ["Two inches.", None]})
    pq.write_table(table, tmp_path / "qa.parquet")
    turns = '[[turns]]\nrole = "user"\ntext = "question"\n[[turns]]\nrole = "assistant"\ntext = "answer"\n'
    text = f'name = "qa"\nrows = "conversations"\n[conversation]\nid = "no"\n{turns}'
    ingest([tmp_path / "qa.parquet"], lake=tmp_path / "lake", map=_map(tmp_path, text), now=NOW, strict=True)
    found = {row["conversation_id"]: row["final_text"] for row in rows(tmp_path / "lake")}
    assert found == {"1": "Two inches.", "2": None}


def test_a_column_that_no_row_has_is_named(tmp_path: Path) -> None:
    path, lake = _csv(tmp_path / "chat.csv", T1), tmp_path / "lake"
    report = ingest([path], lake=lake, map=_map(tmp_path, **{'"body"': '"bodi"'}), now=NOW)
    assert report.to_json()["rejects"] == {"no_column": len(T1)}
    assert "`bodi`" in rows(lake, "rejects")[0]["message"]
    lenient = _map(tmp_path, f'optional = ["bodi"]\n{EXAMPLE}', **{'"body"': '"bodi"'})
    assert ingest([path], lake=tmp_path / "other", map=lenient, now=NOW).to_json()["rows"]["added"] == 1


def test_a_key_that_no_listed_message_has_is_named(tmp_path: Path) -> None:
    thread = [{"from": "customer", "body": "Where is it?"}, {"from": "bot", "body": "", "do": [{"fn": "look"}]}]
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"no": "a", "thread": thread}) + "\n")
    keys = '[message]\nlist = "thread"\nrole = "from"\ntext = "body"\ntool = "{}"\n'
    keys += '[roles]\ncustomer = "user"\nbot = "assistant"\n'
    text = 'name = "x"\nrows = "conversations"\n{}[conversation]\nid = "no"\n'
    report = ingest([path], lake=tmp_path / "lake", map=_map(tmp_path, text.format("") + keys.format("do.fn")), now=NOW)
    assert report.to_json()["rejects"] == {"no_column": 1}
    (told,) = rows(tmp_path / "lake", "rejects")
    assert "no message in `thread` has the map's key `do.fn` (`do` is a list: " in told["message"]
    optional = text.format('optional = ["do.fn"]\n') + keys.format("do.fn")
    assert ingest([path], lake=tmp_path / "b", map=_map(tmp_path, optional), now=NOW).to_json()["rows"]["added"] == 1


def test_what_holds_no_rows_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Chats\n\nThese are chats.\n")
    report = ingest([tmp_path / "README.md"], lake=tmp_path / "lake", map=_map(tmp_path), now=NOW)
    assert report.to_json()["files"]["skipped"] == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('role = "from"', 'rol = "from"', "message: unknown key `rol`, did you mean `role`?"),
        ('rows = "messages"', 'rows = "table"', "rows: "),
        ('id = "ticket"', "", "conversation.id is missing"),
        ('role = "from"', "", "message.role is missing"),
        ('name = "helpdesk"', "", "`name` is missing"),
        ('bot = "assistant"', 'bot = "robot"', "roles.bot: "),
        (
            'id = "ticket"',
            'id = "ticket"\nlist = "thread"',
            "conversation: unknown key `list`, it is a key of [message]",
        ),
        ('rows = "messages"', "rows = ", "not valid TOML"),
        ('rows = "messages"', 'rows = "conversations"', "message.list or [[turns]] is missing"),
    ],
)
def test_a_wrong_map_is_named_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        load_map(_map(tmp_path, **{old: new}))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_map_and_a_format_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--map"):
        ingest([tmp_path], lake=tmp_path / "lake", map=_map(tmp_path), format="otlp", now=NOW)
    with pytest.raises(UsageError, match="cannot be read"):
        ingest([tmp_path], lake=tmp_path / "lake", map=tmp_path / "none.toml", now=NOW)


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(COLUMNS), inner, max_size=4),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), _VALUE), min_size=1, max_size=6), st.booleans())
@examples(60)
def test_any_values_are_read_or_rejected(values: list[dict[str, Any]], as_messages: bool) -> None:
    from etl.mapped import Mapped
    from tests.contract.harness import read

    optional = tuple(COLUMNS)
    message = {"role": "from", "text": "body", "tool": "tool", "arguments": "tool_input", "result": "tool_output"}
    if as_messages:
        whole = {"rows": "messages", "conversation": {"id": "ticket"}, "message": message}
    else:
        whole = {"rows": "conversations", "conversation": {"id": "ticket"}, "message": {**message, "list": "queue"}}
    mapping = Mapping.model_validate({"name": "any", "optional": optional, **whole})
    read("".join(json.dumps(value) + "\n" for value in values).encode(), Mapped(mapping))
