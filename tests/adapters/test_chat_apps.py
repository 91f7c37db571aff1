"""Chats of Open WebUI and LibreChat, which are trees, and sessions of Continue, whose index says when they began."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._branches import Tree
from etl.adapters._open_webui_text import shown
from etl.adapters._tree_rows import Said, Talk, rows
from etl.conversation import Message, Record
from tests.cases.reading import read_in
from tests.lakes import rows as lake_rows
from tests.lakes import said

CHAT = "0d9a4c1e-7a51-4a5e-9b0e-3f6f2f1f0d01"


def _node(name: str, parent: str | None, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parentId": parent,
        "childrenIds": [],
        "role": role,
        "content": content,
        "timestamp": 1_772_400_000,
        **more,
    }


def _chat(current: str, *nodes: dict[str, Any], at: int = 1_772_400_000) -> dict[str, Any]:
    history = {"messages": {node["id"]: node for node in nodes}, "currentId": current}
    return {"id": CHAT, "title": "t", "chat": {"history": history}, "created_at": at, "updated_at": at + len(nodes)}


def _export(path: Path, *chats: dict[str, Any]) -> Path:
    path.write_text(json.dumps(chats, ensure_ascii=False), encoding="utf-8")
    return path


def _by_end(lake: Path) -> dict[str, dict[str, Any]]:
    return {row["messages"][-1]["content"]: row for row in lake_rows(lake)}


def test_a_chat_asked_again_is_its_newest_way_and_the_one_that_was_left(tmp_path: Path, lake: Path) -> None:
    asked, first = _node("q", None, "user", "How deep?"), _node("a", "q", "assistant", "Two fathoms.", done=True)
    read_in(lake, _export(tmp_path / "one.json", _chat("a", asked, first)))
    again = _node("b", "q", "assistant", "Three fathoms.", done=True)
    read_in(lake, _export(tmp_path / "two.json", _chat("b", asked, first, again)))
    found = _by_end(lake)
    assert found.keys() == {"Two fathoms.", "Three fathoms."}
    newest, left = found["Three fathoms."], found["Two fathoms."]
    assert (newest["parent_id"], left["parent_id"], left["flags"]) == (None, newest["rollout_id"], ["abandoned"])
    assert newest["group_id"] == left["group_id"] is not None
    assert [info["inherited"] for info in left["message_info"]] == [True, False]


def test_exports_in_any_order_give_the_same_chat(tmp_path: Path, lake: Path) -> None:
    nodes = [
        _node("q", None, "user", "How deep?"),
        _node("a", "q", "assistant", "Two."),
        _node("r", "a", "user", "Now?"),
    ]
    paths = [_export(tmp_path / f"{n}.json", _chat(nodes[n - 1]["id"], *nodes[:n])) for n in (1, 2, 3)]
    for path in paths:
        read_in(lake, path)
    for path in paths[::-1]:
        read_in(tmp_path / "other", path)
    assert said(lake) == said(tmp_path / "other")
    (row,) = lake_rows(lake)
    assert row["n_turns"] == 2


def test_a_chat_of_a_database_and_its_export_are_one(samples: Path, tmp_path: Path, lake: Path) -> None:
    read_in(lake, samples / "open_webui" / "webui.db")
    before = {row["rollout_id"] for row in lake_rows(lake)}
    database = sqlite3.connect(samples / "open_webui" / "webui.db")
    row = database.execute("SELECT id, user_id, title, chat, created_at, updated_at FROM chat").fetchone()
    database.close()
    chat = dict(zip(("id", "user_id", "title", "chat", "created_at", "updated_at"), row, strict=True))
    read_in(lake, _export(tmp_path / "export.json", {**chat, "chat": json.loads(chat["chat"])}), source="open_webui")
    assert {row["rollout_id"] for row in lake_rows(lake)} == before


def test_pages_of_a_database_that_still_lie_in_its_log_are_read(samples: Path, tmp_path: Path, lake: Path) -> None:
    path = tmp_path / "webui.db"
    path.write_bytes((samples / "open_webui" / "webui.db").read_bytes())
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    chat = _chat("a", _node("q", None, "user", "In the log?"), _node("a", "q", "assistant", "In the log."))
    database.execute(
        "INSERT INTO chat (user_id, title, archived, id, created_at, updated_at, chat)"
        " VALUES ('u', 't', 0, ?, ?, ?, ?)",
        (CHAT, chat["created_at"], chat["updated_at"], json.dumps(chat["chat"])),
    )
    database.commit()
    read_in(lake, path)
    database.close()
    assert any(row["prompt"] == "In the log?" for row in lake_rows(lake))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "<details>\nwhat a model wrote\n</details>",
            [("assistant", "<details>\nwhat a model wrote\n</details>", None)],
        ),
        (
            '<details type="reasoning" done="true">\n<summary>Thought</summary>\n&gt; a &lt; b\n</details>\nYes.',
            [("assistant", "Yes.", "a < b")],
        ),
        (
            'One.\n<details type="code_interpreter" done="true" output="&quot;2&quot;">\n<summary>Analyzed</summary>\n'
            "```python\nprint(2)\n```\n</details>\nTwo.",
            [("assistant", "One.", None), ("tool", "2", None), ("assistant", "Two.", None)],
        ),
    ],
)
def test_the_text_of_an_answer_is_taken_apart(text: str, told: list[tuple[str, str, str | None]]) -> None:
    assert [(message.role, message.content, message.reasoning) for message in shown(text)] == told


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=9))
def test_every_message_of_a_tree_is_owned_by_one_row(links: list[tuple[int, bool]]) -> None:
    """Whatever names what before it, circles and missing ones included."""
    above = {str(n): None if parent == n else str(parent) for n, (parent, _) in enumerate(links)}
    tree = Tree.of(above)
    talk = Talk(
        "k", tree, tree.leaves()[0], lambda name: Said([Message("user", name)]), lambda name: links[int(name)][1]
    )
    made = rows(talk, [Record({}, b"{}")])
    assert not isinstance(made, str)
    own = [message.content for row in made for message in row.messages if not message.inherited]
    assert sorted(own) == sorted(above)
    assert len({row.branch for row in made}) == len(made)
    assert sum(1 for row in made if "abandoned" not in (row.flags or ())) == 1


def test_a_tree_and_a_list_of_one_conversation_say_the_same(samples: Path, tmp_path: Path, lake: Path) -> None:
    tree = json.loads((samples / "librechat" / "tree.json").read_text(encoding="utf-8"))
    listed: list[Any] = []
    stack = tree["messages"][::-1]
    while stack:
        item = dict(stack.pop())
        stack += item.pop("children")[::-1]
        listed.append(item)
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps({**tree, "messages": listed[::-1]}), encoding="utf-8")
    read_in(lake, flat)
    read_in(tmp_path / "tree", samples / "librechat" / "tree.json")
    assert said(lake) == said(tmp_path / "tree")


def test_messages_of_two_conversations_that_lie_mixed_are_two(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "librechat" / "messages.jsonl")
    found = _by_end(lake)
    assert found["The ferry is out."]["prompt"] == "And the ferry?"
    assert "ambiguous_parent" in found["An answer to a message that was deleted."]["flags"]


def test_the_index_of_sessions_tells_when_one_began_in_either_order(samples: Path, tmp_path: Path, lake: Path) -> None:
    session = samples / "continue_dev" / "session.json"
    name = json.loads(session.read_text(encoding="utf-8"))["sessionId"]
    index = tmp_path / "sessions.json"
    card = {"sessionId": name, "title": "Windmill", "dateCreated": "1772700000000", "workspaceDirectory": ""}
    index.write_text(json.dumps([card]), encoding="utf-8")
    other = tmp_path / "other"
    for where, order in ((lake, (index, session)), (other, (session, index))):
        for path in order:
            read_in(where, path)
    assert said(lake) == said(other)
    (row,) = lake_rows(lake)
    assert row["started_at"].isoformat() == "2026-03-05T08:40:00+00:00"


def test_a_session_that_grew_is_one_row_with_each_result_once(samples: Path, tmp_path: Path, lake: Path) -> None:
    whole = json.loads((samples / "continue_dev" / "session.json").read_text(encoding="utf-8"))
    path = tmp_path / "s.json"
    for count in (1, 3, len(whole["history"])):
        path.write_text(json.dumps({**whole, "history": whole["history"][:count]}), encoding="utf-8")
        read_in(lake, path)
    (row,) = lake_rows(lake)
    assert [step["status"] for step in row["steps"]] == ["ok", "error", "cancelled", "missing"]
    assert sum(message["role"] == "tool" for message in row["messages"]) == 3
    assert row["messages"][0] == {**row["messages"][0], "role": "system", "content": "You mind the mill."}


def test_an_answer_of_lm_studio_that_repeats_its_counts_is_counted_once(tmp_path: Path, lake: Path) -> None:
    stats = {"stopReason": "eosFound", "promptTokensCount": 9, "predictedTokensCount": 4}
    steps = [
        {
            "type": "contentBlock",
            "style": {"type": kind},
            "content": [{"type": "text", "text": kind}],
            "genInfo": {"stats": stats},
        }
        for kind in ("thinking", "plain")
    ]
    asked = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Hi"}]}
    answer = {"type": "multiStep", "role": "assistant", "steps": steps}
    messages = [{"versions": [each], "currentlySelected": 0} for each in (asked, answer)]
    path = tmp_path / "1.conversation.json"
    path.write_text(json.dumps({"createdAt": 1_773_200_000_123, "messages": messages}), encoding="utf-8")
    read_in(lake, path)
    (row,) = lake_rows(lake)
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (9, 4)
    assert row["messages"][-1]["reasoning_content"] == "thinking"
    assert (row["final_text"], row["finish_reason"]) == ("plain", "eosFound")


def test_activity_of_gemini_is_put_together_by_conversation(samples: Path, tmp_path: Path, lake: Path) -> None:
    whole = (samples / "gemini_takeout" / "MyActivity.json").read_text(encoding="utf-8")
    entries = json.loads(whole[: whole.rindex(",\n{")] + "]")
    for number, part in enumerate((entries[3:], entries)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(part), encoding="utf-8")
        read_in(lake, path)
    found = {row["prompt"]: row for row in lake_rows(lake)}
    assert len(found) == 4
    boat = next(row for prompt, row in found.items() if "boat" in prompt)
    assert [message["content"] for message in boat["messages"][1:3]] == ["At eight & ten.", "And the ferry?"]
    assert '\n    return "nine"' in found["How do I count ships?"]["final_text"]


def test_a_chain_of_replies_in_discord_is_a_conversation(samples: Path, tmp_path: Path, lake: Path) -> None:
    export = json.loads((samples / "discord_export" / "help.json").read_text(encoding="utf-8"))
    early = {**export, "messages": export["messages"][:3]}
    for name, value in (("late.json", export), ("early.json", early)):
        (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
    report = read_in(lake, tmp_path)
    assert (report["ignored"], report["rejects"]) == ({"channel_event": 1}, {"bad_message": 1})
    found = {row["conversation_id"]: row for row in lake_rows(lake)}
    assert set(found) == {"100", "101", "105"}
    assert [(message["role"], message["name"]) for message in found["100"]["messages"]] == [
        ("user", "Ann"),
        ("assistant", "Helper"),
        ("user", "Ann"),
    ]
    assert found["100"]["messages"][1]["content"] == "Tide\nHigh at nine.\nBerth: 4"
    assert "ambiguous_parent" in found["105"]["flags"]
