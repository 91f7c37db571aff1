"""Calls of chat messages in every spelling met in the wild (B27, B30, B31, B32, B34)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, agrees, given, read_in, told_by_id
from tests.lakes import by_id, rows, said

__all__ = ["given"]


def _line(key: str, *messages: dict[str, Any], asked: Any = "ask", **more: Any) -> str:
    return json.dumps({"id": key, "messages": [{"role": "user", "content": asked}, *messages], **more})


def _call(name: str, arguments: Any, call_id: str = "k1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _says(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **({"tool_calls": list(calls)} if calls else {}), **more}


def _answer(content: Any, call_id: str = "k1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


REUSED = Ours(
    "reused.jsonl",
    (
        _line(
            "again",
            _says(_call("find", '{"q":"bus"}', "find:0"), _call("find", '{"q":"tram"}', "find:1")) | {"content": None},
            _answer("bus 12", "find:0"),
            _answer("tram 3", "find:1"),
            _says(_call("find", '{"q":"night bus"}', "find:0")),
            _answer("bus N2", "find:0"),
            {"role": "assistant", "content": "Take N2."},
        ),
    ),
)


@pytest.mark.parametrize(
    ("log", "key", "steps", "final"),
    [
        (
            Shared("B27.jsonl"),
            "conv-27",
            [({"q": "Oslo"}, "Oslo: 700k"), ({"q": "Bergen"}, "Bergen: 290k"), ({"q": "Oslo area"}, "Oslo: 454 km2")],
            "Oslo is larger.",
        ),
        (
            REUSED,
            "again",
            [({"q": "bus"}, "bus 12"), ({"q": "tram"}, "tram 3"), ({"q": "night bus"}, "bus N2")],
            "Take N2.",
        ),
    ],
    ids=["B27", "ours"],
)
def test_an_id_used_again_names_another_call(
    log: Shared | Ours, key: str, steps: list[Any], final: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    (row,) = rows(lake)
    found = told_by_id(lake)[key]
    assert [(arguments, result) for _, arguments, result, _ in found["steps"]] == steps
    assert (len(found["messages"]), found["final_text"]) == (7, final)
    first, second = found["calls"]
    assert second == [f"{first[0]}#2"]
    assert json.loads(row["message_info"][4]["extra"])["logged_call_ids"] == {second[0]: first[0]}
    assert "reused_call_id" in row["flags"]


def test_an_id_used_again_after_its_first_call_got_nothing(given: Given, lake: Path) -> None:
    asked = {"role": "user", "content": "again?"}
    line = _line("k", _says(_call("f", "{}")), asked, _says(_call("f", "{}")), _answer("second"))
    read_in(lake, given(Ours("again.jsonl", (line,))))
    assert [step[2:] for step in told_by_id(lake)["k"]["steps"]] == [(None, "missing"), ("second", "ok")]


ARGUMENTS = {"city": "Lima", "n": 3}
TEXT = json.dumps(ARGUMENTS)
SPELLINGS = Ours(
    "spellings.jsonl",
    (
        _line("v1", _says(_call("lookup", TEXT))),
        _line("v2", _says(_call("lookup", ARGUMENTS))),
        _line("v3", _says(_call("lookup", json.dumps(TEXT)))),
        _line("v4", _says({"id": "k1", "name": "lookup", "arguments": ARGUMENTS})),
        _line(
            "v5",
            _says(function_call={"name": "lookup", "arguments": TEXT}),
            {"role": "function", "name": "lookup", "content": "ok"},
        ),
        _line("v6", _says() | {"tool_calls": json.dumps([_call("lookup", TEXT)])}),
        _line("v7", _says(_call("echo", '"hi"'))),
        _line("v8", _says(_call("lookup", '{"city": "Li'))),
    ),
)


@pytest.mark.parametrize(
    ("log", "arguments", "cut"),
    [(Shared("B30.jsonl"), {"city": "Paris", "n": 2}, '{"city": "Par'), (SPELLINGS, ARGUMENTS, '{"city": "Li')],
    ids=["B30", "ours"],
)
def test_one_call_in_every_spelling(
    log: Shared | Ours, arguments: dict[str, Any], cut: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    found, stored = told_by_id(lake), by_id(lake)
    assert set(found) == {f"v{number}" for number in range(1, 9)}
    for key in ("v1", "v2", "v3", "v4", "v5", "v6"):
        ((tool, read_as, result, status),) = found[key]["steps"]
        assert (tool, read_as, type(read_as["n"])) == ("lookup", arguments, int)
        assert (result, status) == (("ok", "ok") if key == "v5" else (None, "missing"))
    assert found["v5"]["calls"] == [["call_1"]]
    for key, raw in (("v7", '"hi"'), ("v8", cut)):
        (step,) = stored[key]["steps"]
        assert (step["arguments"], step["raw_arguments"]) == ("{}", raw)
        assert "invalid_arguments" in stored[key]["flags"]
        assert stored[key]["error"] is None


def _definition(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


OBJECTS = [
    ("n0", "area", {"place": "Faro"}, {"place": {"type": "string"}}),
    ("n1", "post", {"to": "y@example.org", "cc": None}, {"to": {"type": "string"}, "cc": {"type": "string"}}),
    ("n2", "today", {}, {}),
    ("n3", "walk", {"path": ".", "opts": {"deep": 1}}, {"path": {"type": "string"}, "opts": {"type": "string"}}),
    ("n4", "walk", {"path": ".", "opts": [0, "one", None]}, {"path": {"type": "string"}, "opts": {"type": "string"}}),
]
UNEQUAL = Ours(
    "unequal.jsonl",
    tuple(
        _line(key, _says(_call(tool, arguments)), _answer("ok"), tools=[_definition(tool, properties)])
        for key, tool, arguments, properties in OBJECTS
    ),
)
B31 = [
    '{"city":"Oslo"}',
    '{"to":"x@example.org","cc":null}',
    "{}",
    '{"path":"/","opts":{"depth":2}}',
    '{"path":"/","opts":[1,"two",null]}',
]


@pytest.mark.parametrize(
    ("log", "arguments"),
    [(Shared("B31.jsonl"), B31), (UNEQUAL, [json.dumps(o[2], separators=(",", ":")) for o in OBJECTS])],
    ids=["B31", "ours"],
)
def test_no_key_is_added_to_arguments_or_tools(
    log: Shared | Ours, arguments: list[str], given: Given, tmp_path: Path
) -> None:
    path = given(log)
    read_in(tmp_path / "lake", path)
    found = by_id(tmp_path / "lake")
    assert [found[f"n{number}"]["steps"][0]["arguments"] for number in range(5)] == arguments
    for number, text in enumerate(arguments):
        (tool,) = json.loads(found[f"n{number}"]["tools"])
        assert tool["function"]["parameters"]["properties"].keys() == json.loads(text).keys()
    backwards = tmp_path / "backwards.jsonl"
    backwards.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[::-1]), encoding="utf-8")
    read_in(tmp_path / "other", backwards)
    assert said(tmp_path / "other") == said(tmp_path / "lake")


PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


OK = {"role": "assistant", "content": "ok"}
CHANGING = Ours(
    "changing.jsonl",
    (
        _line("t1", OK, asked="words", metadata={"score": 1, "tags": ["a"]}),
        _line(
            "t2",
            {"role": "assistant", "content": [_text("ok")]},
            asked=[_text("one "), _text("and two"), PIXEL],
            metadata={"score": "high", "tags": "a"},
        ),
        _line("t3", _says(_call("calc", '{"x":1}')), _answer(42), OK | {"content": "42"}, metadata=None),
        _line(
            "t4",
            _says(_call("calc", '{"x":"one"}')),
            _answer([_text("forty-two")]),
            OK | {"content": "42"},
            metadata=[],
        ),
    ),
)


@pytest.mark.parametrize(
    ("log", "prompts"),
    [(Shared("B32.jsonl"), ("plain string", "part one part two")), (CHANGING, ("words", "one and two"))],
    ids=["B32", "ours"],
)
def test_one_field_of_many_types(log: Shared | Ours, prompts: tuple[str, str], given: Given, lake: Path) -> None:
    read_in(lake, given(log))
    found, stored = told_by_id(lake), by_id(lake)
    assert (found["t1"]["prompt"], found["t2"]["prompt"]) == prompts
    assert json.loads(stored["t2"]["message_info"][0]["parts"]) == [PIXEL]
    assert [found[key]["steps"][0][1:3] for key in ("t3", "t4")] == [({"x": 1}, "42"), ({"x": "one"}, "forty-two")]
    assert json.loads(stored["t3"]["message_info"][2]["extra"]) == {"content": 42}
    metadata = [found[f"t{number}"]["extra"]["metadata"] for number in range(1, 5)]
    assert metadata == [{"score": 1, "tags": ["a"]}, {"score": "high", "tags": "a"}, None, []]
    assert [found[f"t{number}"]["final_text"] for number in range(1, 5)] == ["ok", "ok", "42", "42"]


LATE = Ours(
    "late.jsonl",
    (
        *(_line(f"k{number:03}", OK) for number in range(120)),
        *(
            _line(f"k{number:03}", _says(_call("t", "{}")), _answer("x"), reward=0.5, error="late")
            for number in range(120, 130)
        ),
    ),
)


@pytest.mark.parametrize("log", [Shared("B34.jsonl"), LATE], ids=["B34", "ours"])
def test_a_key_that_comes_late_is_kept(log: Shared | Ours, given: Given, tmp_path: Path) -> None:
    path = given(log)
    read_in(tmp_path / "lake", path)
    found = told_by_id(tmp_path / "lake")
    assert len(found) == 130
    for key, row in found.items():
        late = int(key[1:]) >= 120
        agrees(row, {"reward": 0.5, "error": "late"} if late else {"reward": None, "error": None})
        assert len(row["steps"]) == (1 if late else 0)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    for number, part in enumerate((lines[:47], lines[47:])):
        (tmp_path / f"part{number}.jsonl").write_text("".join(part), encoding="utf-8")
    read_in(tmp_path / "other", tmp_path / "part0.jsonl", tmp_path / "part1.jsonl")
    assert said(tmp_path / "other") == said(tmp_path / "lake")
