"""Branches, resumed sessions and sub-agents of Claude Code: rows of their own, nothing counted or trained twice."""

from __future__ import annotations

from typing import Any

from tests.adapters.claude_sessions import Session, call, rows, said, text

OLD = "7c311c86-7836-4f47-bffc-aa8c3cbf26{:02}"


def _words(row: dict[str, Any]) -> list[str]:
    return [words for _, words in said(row)]


def _inherited(row: dict[str, Any]) -> list[bool]:
    return [info["inherited"] for info in row["message_info"]]


def _forked() -> Session:
    session = Session()
    session.user("Sort.")
    root = session.assistant(text("Which way?"))
    session.user("Quick.")
    session.assistant(text("Quick it is."), tokens=7)
    session.user("Merge.", parent=root["uuid"])
    session.assistant(text("Merge it is."), tokens=8)
    return session


def test_going_back_makes_a_branch() -> None:
    first, second = rows(_forked().lines)
    assert _words(first) == ["Sort.", "Which way?", "Quick.", "Quick it is."]
    assert _words(second) == ["Sort.", "Which way?", "Merge.", "Merge it is."]
    assert _inherited(first) == [False] * 4
    assert _inherited(second) == [True, True, False, False]
    assert second["parent_id"] == first["rollout_id"]
    assert first["group_id"] == second["group_id"] is not None
    assert (first["flags"], second["flags"]) == (["abandoned"], [])
    assert (first["prompt_len"], second["prompt_len"]) == (1, 3)
    assert [row["usage"]["output_tokens"] for row in (first, second)] == [5 + 7, 8]


def test_a_branch_of_a_branch() -> None:
    session = _forked()
    again = session.lines[-2]["parentUuid"]
    session.user("Heap.", parent=again)
    end = session.assistant(text("Heap it is."))
    session.user("Now test.")
    session.user("Now ship.", parent=end["uuid"])
    found = rows(session.lines)
    assert [_words(row)[2:] for row in found] == [
        ["Quick.", "Quick it is."],
        ["Merge.", "Merge it is."],
        ["Heap.", "Heap it is.", "Now test."],
        ["Heap.", "Heap it is.", "Now ship."],
    ]
    assert [row["parent_id"] for row in found[1:]] == [found[0]["rollout_id"]] * 2 + [found[2]["rollout_id"]]
    assert ["abandoned" in row["flags"] for row in found] == [True, True, True, False]


def test_a_new_branch_leaves_the_names_of_the_old_rows() -> None:
    session = _forked()
    before = {row["rollout_id"] for row in rows(session.lines)}
    session.user("Heap.", parent=session.lines[1]["uuid"])
    after = {row["rollout_id"] for row in rows(session.lines)}
    assert before < after


def test_going_back_to_before_the_first_turn() -> None:
    session = _forked()
    session.user("Something else.", parent=None)
    *_, last = rows(session.lines)
    assert _words(last) == ["Something else."]
    assert _inherited(last) == [False]


def test_turns_that_never_name_a_parent_are_one_conversation() -> None:
    session = Session()
    for number in range(3):
        session.user(f"Ask {number}.", parent=None)
        session.assistant(text(f"Answer {number}."), parent=None)
    (row,) = rows(session.lines)
    assert len(row["messages"]) == 6


def test_results_and_lines_of_the_program_beside_the_chain_are_no_branch() -> None:
    session = Session()
    session.user("Both.")
    session.assistant(text("Both then."), call("t1"), call("t2"))
    one, two = session.lines[-2]["uuid"], session.lines[-1]["uuid"]
    session.result("t1", "one", parent=one)
    session.line("progress", parent=one, data={"type": "hook_progress"})
    session.line("attachment", parent=two, attachment={"type": "todo_reminder", "content": []})
    session.result("t2", "two", parent=two)
    session.assistant(text("Done."))
    session.line("system", subtype="local_command", content="<command-name>/cost</command-name>", parent=session.last)
    session.user("<command-name>/cost</command-name>", parent=session.lines[-2]["uuid"])
    session.user("Thanks.", parent=session.lines[-3]["uuid"])
    (row,) = rows(session.lines)
    assert [step["status"] for step in row["steps"]] == ["ok", "ok"]
    assert row["flags"] == ["incomplete"]


def test_two_responses_to_one_turn_are_branches() -> None:
    session = Session()
    ask = session.user("Say it.")
    session.assistant(text("So."))
    session.assistant(text("Thus,"), text("or so."), parent=ask["uuid"])
    session.user("Good.")
    first, second = rows(session.lines)
    assert _words(first) == ["Say it.", "So."]
    assert _words(second) == ["Say it.", "Thus,\nor so.", "Good."]
    assert second["parent_id"] == first["rollout_id"]
    assert first["flags"] == ["abandoned"]


def _resumed() -> tuple[Session, Session]:
    first = Session("s-a")
    first.user("Plan.")
    first.assistant(text("Planned."), tokens=10)
    second = Session("s-b", minute=5)
    second.lines = [{**line, "sessionId": "s-b"} for line in first.lines]
    second.last = first.last
    second.user("Step two.")
    second.assistant(text("Stepped."), tokens=30)
    return first, second


def test_a_resumed_session_inherits_what_it_copied() -> None:
    first, second = _resumed()
    found = rows(first.lines, second.lines)
    assert [row["conversation_id"] for row in found] == ["s-a", "s-b"]
    assert _inherited(found[0]) == [False, False]
    assert _inherited(found[1]) == [True, True, False, False]
    assert found[1]["parent_id"] == found[0]["rollout_id"]
    assert sum(row["usage"]["output_tokens"] for row in found) == 40
    assert [row["row_hash"] for row in rows(second.lines, first.lines)] == [row["row_hash"] for row in found]


def test_a_forked_session_names_the_lines_that_it_copied() -> None:
    first, second = _resumed()
    for number, line in enumerate(second.lines[:2]):
        line["forkedFrom"] = {"sessionId": "s-a", "messageUuid": line["uuid"]}
        line["uuid"] = f"new-{number}"
    second.lines[1]["parentUuid"] = "new-0"
    second.lines[2]["parentUuid"] = "new-1"
    found = rows(second.lines, first.lines)
    assert [row["conversation_id"] for row in found] == ["s-a", "s-b"]
    assert _inherited(found[1]) == [True, True, False, False]
    assert found[1]["parent_id"] == found[0]["rollout_id"]


def test_who_owns_copied_lines_is_told_by_the_set_of_lines() -> None:
    first, second = _resumed()
    third = Session("s-0", minute=9)
    third.lines = [{**line, "sessionId": "s-0"} for line in second.lines]
    third.last = second.last
    third.user("Step three.")
    found = {row["conversation_id"]: row for row in rows(third.lines, second.lines, first.lines)}
    assert [sum(_inherited(found[name])) for name in ("s-a", "s-b", "s-0")] == [0, 2, 4]
    assert found["s-0"]["parent_id"] == found["s-b"]["rollout_id"]


def test_sessions_with_equal_ids_of_lines_that_say_other_things_have_nothing_in_common() -> None:
    first, second = Session("s-a"), Session("s-b", minute=3)
    for session in (first, second):
        session.user(f"Hello from {session.name}.")["uuid"] = "u1"
    found = rows(first.lines, second.lines)
    assert [_inherited(row) for row in found] == [[False], [False]]
    assert [row["parent_id"] for row in found] == [None, None]


def test_a_file_that_goes_on_under_a_new_session_id() -> None:
    session = Session("s-a")
    for number, line in enumerate((session.user("Plan."), session.assistant(text("Planned.")))):
        line["uuid"] = OLD.format(number)
    session.lines[1]["parentUuid"] = OLD.format(0)
    later = Session("s-b", minute=5)
    later.user("Go on.", parent=OLD.format(1))
    first, second = rows([*session.lines, *later.lines])
    assert _words(second) == ["Plan.", "Planned.", "Go on."]
    assert _inherited(second) == [True, True, False]
    assert second["parent_id"] == first["rollout_id"]
    assert "ambiguous_parent" not in second["flags"]


def _agents() -> tuple[Session, Session]:
    main = Session()
    main.user("Check.")
    main.assistant(call("task-1", "Task", prompt="Check north.", subagent_type="inspector"), tokens=4)
    agent = Session(agent="a1")
    agent.second = 10
    agent.user("Check north.", parent=None)
    agent.assistant(call("n1", "Read"), tokens=6)
    agent.result("n1", "open")
    agent.assistant(text("It is open."), tokens=2)
    main.second = 30
    main.result("task-1", [text("It is open.")], toolUseResult={"agentId": "a1", "status": "completed"}, agentId="a1")
    main.assistant(text("Open."), tokens=3)
    return main, agent


def test_a_sub_agent_in_a_file_of_its_own_is_a_row() -> None:
    main, agent = _agents()
    first, second = rows(main.lines, agent.lines)
    assert _words(first) == ["Check.", "", "It is open.", "Open."]
    assert _words(second) == ["Check north.", "", "open", "It is open."]
    assert second["parent_id"] == first["rollout_id"]
    assert second["agent"] == "inspector"
    assert second["extra"]["tool_use_id"] == "task-1"
    assert second["prompt"] == "Check north."
    assert [row["usage"]["output_tokens"] for row in (first, second)] == [7, 8]


def test_a_sub_agent_read_before_its_session_has_the_same_name() -> None:
    main, agent = _agents()
    (alone,) = rows(agent.lines)
    _, second = rows(main.lines, agent.lines)
    assert alone["rollout_id"] == second["rollout_id"]
    assert alone["parent_id"] == second["parent_id"]


def test_sidechains_of_the_same_file_are_told_apart_by_their_beginnings() -> None:
    main, agent = _agents()
    other = Session("s-1", agent="x")
    other.second = 11
    other.user("Check south.", parent=None)
    other.assistant(text("Closed."))
    for number, line in enumerate([*agent.lines, *other.lines]):
        line.pop("agentId")
        line["uuid"] = f"side-{number}"
        line["parentUuid"] = None if number in (0, 4) else f"side-{number - 1}"
    found = rows([*main.lines, *agent.lines, *other.lines])
    assert [_words(row)[0] for row in found] == ["Check.", "Check north.", "Check south."]
    assert [row["agent"] for row in found] == ["claude-code", "inspector", "claude-code"]


def _shown(main: Session, agent: Session) -> list[dict[str, Any]]:
    """The sub-agent's lines inside progress lines of the session."""
    inside = []
    for number, line in enumerate(agent.lines):
        message = {key: line[key] for key in ("type", "message", "uuid", "timestamp")}
        inside.append(
            {
                "type": "progress",
                "sessionId": main.name,
                "uuid": f"p{number}",
                "parentUuid": main.lines[1]["uuid"],
                "isSidechain": False,
                "timestamp": line["timestamp"],
                "parentToolUseID": "task-1",
                "data": {"type": "agent_progress", "agentId": "a1", "prompt": "Check north.", "message": message},
            }
        )
    return inside


def test_a_sub_agent_inside_progress_lines_is_the_same_row() -> None:
    main, agent = _agents()
    shown = _shown(main, agent)
    first, second = rows([*main.lines[:2], *shown, *main.lines[2:]])
    in_file = rows(main.lines, agent.lines)
    assert _words(second) == _words(in_file[1])
    assert second["rollout_id"] == in_file[1]["rollout_id"]
    assert second["usage"] == in_file[1]["usage"]
    assert first["usage"] == in_file[0]["usage"]


def test_a_sub_agent_that_is_there_twice_is_read_once() -> None:
    main, agent = _agents()
    shown = _shown(main, agent)
    for line in shown:
        line["data"]["message"]["uuid"] += "-shown"
    _, second = rows([*main.lines[:2], *shown, *main.lines[2:]], agent.lines)
    assert _words(second) == ["Check north.", "", "open", "It is open."]
    assert second["usage"]["output_tokens"] == 8


def test_a_sub_agent_started_by_a_sub_agent_has_it_as_parent() -> None:
    main, agent = _agents()
    agent.assistant(call("task-2", "Task", prompt="Look closer.", subagent_type="reader"))
    inner = Session(agent="a2")
    inner.second = 20
    inner.user("Look closer.", parent=None)
    inner.assistant(text("Closer."))
    _, second, third = rows(main.lines, agent.lines, inner.lines)
    assert third["parent_id"] == second["rollout_id"]
    assert third["agent"] == "reader"


def test_a_sub_agent_of_a_branch_has_the_branch_as_parent() -> None:
    session = _forked()
    session.assistant(call("task-9", "Task", prompt="Merge files.", subagent_type="merger"))
    agent = Session(agent="a9", minute=2)
    agent.user("Merge files.", parent=None)
    found = rows(session.lines, agent.lines)
    assert found[2]["parent_id"] == found[1]["rollout_id"]


def test_copies_of_branches_and_sub_agents_in_a_resumed_session_are_no_rows_again() -> None:
    main, agent = _agents()
    lines = [*main.lines, *agent.lines]
    copied = [{**line, "sessionId": "s-2"} for line in lines]
    later = Session("s-2", minute=8)
    later.user("And south?", parent=main.last)
    found = rows(lines, [*copied, *later.lines])
    assert [(row["conversation_id"], _words(row)[0]) for row in found] == [
        ("s-1", "Check."),
        ("s-1", "Check north."),
        ("s-2", "Check."),
    ]
    assert _inherited(found[2]) == [True] * 4 + [False]
