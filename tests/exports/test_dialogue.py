"""What every export must hold: complete pairs, own turns, nothing planted. Whatever comes in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.exports.dialogue import Policy, Turn, dialogue
from etl.exports.reasons import DROPS, REPAIRS, Dropped
from tests.exports.talk import Message, agent, row, system, tool, user
from tests.lakes import REPO


def full(*messages: Message, **values: Any) -> dict[str, Any]:
    """A row with every key that the lake would give."""
    made = row("r", *messages, **values)
    keys = {"reasoning_content": None, "tool_calls": None, "tool_call_id": None, "name": None}
    made["messages"] = [{**keys, **message} for message in made["messages"]]
    made["message_info"] = [{"parts": None, **info} for info in made["message_info"]]
    made["steps"] = [{"raw_arguments": None, **step} for step in made["steps"]]
    return {"tools": None, "seeded": None, **made}


def reason(found: dict[str, Any], policy: Policy | None = None) -> str:
    with pytest.raises(Dropped) as dropped:
        dialogue(found, policy or Policy())
    return dropped.value.reason


def shape(turns: list[Turn]) -> list[tuple[str, str]]:
    return [(turn.role, turn.content or ",".join(call.id for call in turn.calls)) for turn in turns]


CALLED = agent("", ("c1", "look", {}))


def test_whole_conversation_stays_as_it_is() -> None:
    said = dialogue(full(system(), user("Is it?"), CALLED, tool("c1"), agent("Yes.")), Policy())
    assert shape(said.turns) == [
        ("system", "Be brief."), ("user", "Is it?"), ("assistant", "c1"), ("tool", "ok"), ("assistant", "Yes."),
    ]  # fmt: skip
    assert said.ask == 2
    assert not said.repairs


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "no_messages"),
        ([user("a"), CALLED, agent("b")], "missing_result"),
        ([user("a"), CALLED], "missing_result"),
        ([user("a"), CALLED, user("b")], "missing_result"),
        ([user("a"), CALLED, agent("b"), tool("c1"), agent("c")], "late_result"),
        ([user("a"), tool("c9"), agent("b")], "orphan_result"),
        ([user("a"), CALLED, tool("c1"), tool("c1"), agent("b")], "orphan_result"),
        ([user("a"), CALLED, tool(None), agent("b")], "orphan_result"),
        ([user("a")], "nothing_to_train"),
        ([user("a"), agent("b", inherited=True)], "nothing_to_train"),
        ([user("a"), agent("API error", synthetic=True)], "nothing_to_train"),
        ([user("a", parts='[{"type":"image_url"}]'), agent("b")], "media"),
    ],
)
def test_rows_that_are_left_out(messages: list[Message], why: str) -> None:
    assert reason(full(*messages)) == why


def test_rows_that_are_in_no_file() -> None:
    asked = (user("a"), agent("b"))
    assert reason(full(*asked, flags=["content_not_captured"])) == "content_not_captured"
    assert reason(full(*asked, seeded=["leak"])) == "planted_leak"
    assert reason(full(*asked, seeded=["leak"]), Policy(imitates=False)) == "planted_leak"
    assert reason(full(*asked, seeded=["sycophancy"])) == "planted_mistake"
    assert dialogue(full(*asked, seeded=["sycophancy"]), Policy(imitates=False)).ask == 1
    assert dialogue(full(*asked, seeded=[]), Policy()).ask == 1


def test_arguments_that_were_no_object_leave_the_row_out() -> None:
    found = full(user("a"), CALLED, tool("c1"), agent("b"))
    found["steps"][0]["raw_arguments"] = '{"city": "Par'
    assert reason(found) == "invalid_arguments"
    assert dialogue(found, Policy(only_prompt=True)).prompt()[0].content == "a"


def test_reasoning_signatures_are_no_media() -> None:
    said = dialogue(full(user("a"), agent("b", parts='[{"type":"thinking","signature":"c2ln"}]')), Policy())
    assert len(said.turns) == 2


def test_missing_results_are_cut_or_allowed_by_name() -> None:
    broken = full(user("a"), CALLED, tool("c1"), agent("b"), user("c"), agent("", ("c2", "look", {})))
    cut = dialogue(broken, Policy(missing_results="cut"))
    assert shape(cut.turns)[-1] == ("assistant", "b")
    assert cut.repairs == {"cut_at_missing_result", "tail_cut"}
    allowed = dialogue(broken, Policy(missing_results="allow-last"))
    assert shape(allowed.turns)[-1] == ("assistant", "c2")
    assert allowed.repairs == {"ends_in_open_calls"}
    middle = full(user("a"), CALLED, user("b"), agent("c"))
    assert reason(middle, Policy(missing_results="allow-last")) == "missing_result"
    assert reason(middle, Policy(missing_results="cut")) == "missing_result", "nothing is left before the call"


def test_results_follow_their_call() -> None:
    said = dialogue(full(user("a"), CALLED, user("still there?"), tool("c1"), agent("b")), Policy())
    assert [turn.role for turn in said.turns] == ["user", "assistant", "tool", "user", "assistant"]
    assert said.repairs == {"results_moved_up"}


def test_calls_of_a_simulated_user_are_not_the_agents() -> None:
    own = agent("", ("u1", "toggle", {})) | {"role": "user"}
    said = dialogue(full(agent("Hello."), user("My data is off."), own, tool("u1"), agent("Toggle it.")), Policy())
    assert shape(said.turns) == [("assistant", "Hello."), ("user", "My data is off."), ("assistant", "Toggle it.")]
    assert said.repairs == {"user_calls_left_out"}
    assert said.ask == 2, "a greeting is part of the prompt"


def test_templates_get_one_system_message_and_no_developer() -> None:
    talk = (system("One."), {"role": "developer", "content": "Two."}, user("a"), system("Mind the gap."), agent("b"))
    said = dialogue(full(*talk), Policy())
    assert shape(said.turns) == [
        ("system", "One.\n\nTwo."), ("user", "a"), ("user", "Mind the gap."), ("assistant", "b"),
    ]  # fmt: skip
    assert said.repairs == {"developer_as_system", "systems_merged", "late_system_as_user"}
    assert [turn.role for turn in dialogue(full(*talk), Policy(templated=False)).turns][:2] == ["system", "developer"]


def test_inherited_turns_lie_in_the_prompt() -> None:
    said = dialogue(full(user("a"), agent("old", inherited=True), user("b"), agent("new")), Policy())
    assert shape(said.completion()) == [("assistant", "new")]
    assert said.masked()
    inside = dialogue(
        full(user("a"), agent("one"), user("b"), agent("old", inherited=True), user("c"), agent("d")), Policy()
    )
    with pytest.raises(Dropped, match="cannot be masked"):
        inside.completion()


_TURNS = st.lists(
    st.one_of(
        st.sampled_from([user("hi"), system("s"), {"role": "developer", "content": "d"}, agent("said")]),
        st.sampled_from([agent("old", inherited=True), agent("err", synthetic=True)]),
        st.integers(0, 3).map(lambda n: agent("", (f"c{n}", "look", {"n": n}))),
        st.integers(0, 3).map(lambda n: agent("both", (f"c{n}", "look", {}), (f"d{n}", "book", {}))),
        st.sampled_from(["c0", "c1", "c2", "c3", "d0", "d1", None]).map(tool),
    ),
    max_size=12,
)


@given(_TURNS, st.sampled_from(["drop", "cut", "allow-last"]), st.booleans(), st.booleans())
def test_what_stays_is_sound(messages: list[Message], missing: str, templated: bool, only_prompt: bool) -> None:
    policy = Policy(missing_results=missing, templated=templated, only_prompt=only_prompt)
    try:
        said = dialogue(full(*json.loads(json.dumps(messages))), policy)
    except Dropped:  # by a rule that has a name, else there is none
        return
    assert said.repairs <= REPAIRS.keys()
    open_calls: list[str] = []
    for place, turn in enumerate(said.turns):
        if turn.role == "tool":
            assert turn.call_id in open_calls
            open_calls.remove(turn.call_id)
        else:
            assert not open_calls, "a call is answered before anybody speaks"
            open_calls = [call.id for call in turn.calls]
        if templated:
            assert turn.role in ("user", "assistant", "tool") or place == 0
    assert not open_calls or missing == "allow-last"
    if not only_prompt:
        last = max(place for place, turn in enumerate(said.turns) if turn.trained)
        assert all(turn.role == "tool" for turn in said.turns[last + 1 :])
        assert said.turns[said.ask].trained


def test_every_rule_is_used_and_every_use_is_a_rule() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (REPO / "etl" / "exports").rglob("*.py"))
    for name in (*DROPS, *REPAIRS):
        assert text.count(f'"{name}"') + text.count(f"'{name}'") >= 2, f"the rule {name} is nowhere applied"
