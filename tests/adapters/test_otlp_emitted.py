"""Spans that are events of one execution: told once, each as the call, the answer or the turn that it belongs to."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters import runs
from tests.adapters.traces import batch, span

SYSTEM, ASKED = "Ask the almanac first.", "Message: When is the tide?"
OUTPUT = '{"high": "06:10",\n "low": "12:20"}'
FIRST = 'Thought: I look it up.\nFunction Name: Almanac\nFunction Input: {"day": "today"}'
FINAL = "High tide is at 06:10, low tide at 12:20."
ACTED = {"tool.name": "Almanac", "tool.parameters": '{"day": "today"}', "thought": "I look it up."}


class Emitted:
    """A trace of events, each a span as the first instrumentations of BeeAI make it."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, float, str | None, dict[str, Any]]] = []
        self._counts: dict[str, int] = {}
        self.root = self._add("beeai-framework-main", 0.0, None, _kind("AGENT", source="ReActAgent"))

    def _add(self, name: str, at: float, parent: str | None, attributes: dict[str, Any]) -> str:
        self.spans.append((name, at, parent, attributes))
        return name

    def group(self, number: int, at: float) -> str:
        """A turn of the agent."""
        name = f"iteration-{number}"
        return self._add(name, at, self.root, {"target": "groupId", "name": name, **_kind("CHAIN")})

    def event(self, kind: str, target: str, at: float, parent: str, **attributes: Any) -> str:
        """An event of what `target` names."""
        self._counts[target] = self._counts.get(target, 0) + 1
        told = {"target": target, "name": target.rpartition(".")[2], "traceId": "x", **_kind(kind, **attributes)}
        return self._add(f"{target}-{self._counts[target]}", at, parent, told)

    def asks(self, at: float, parent: str, *said: tuple[str, str]) -> str:
        """A model begins to answer."""
        messages = _messages("llm.input_messages", said)
        given = json.dumps([{"role": role, "content": content} for role, content in said])
        about = {"llm.model_name": "demo-tide", "llm.provider": "demo"}
        return self.event("LLM", "backend.demo.chat.start", at, parent, **messages, **about, **{"input.value": given})

    def as_otlp(self) -> list[dict[str, Any]]:
        """The trace as an exporter of OTLP writes it: every span ends when the trace was sent."""
        ids = {name: number for number, (name, *_) in enumerate(self.spans, 1)}
        return [
            span(ids[name], at, 30, {k: v for k, v in told.items() if v is not None},
                 None if parent is None else ids[parent], name=name)
            for name, at, parent, told in self.spans
        ]  # fmt: skip

    def as_langfuse(self) -> Iterator[dict[str, Any]]:
        """The same as observations."""
        for name, at, parent, told in self.spans:
            words = {side: told.get(f"{side}.value") for side in ("input", "output")}
            metadata = {"attributes": {key: value for key, value in told.items() if value is not None}}
            sort = "GENERATION" if told["openinference.span.kind"] == "LLM" else "SPAN"
            about = {"model": told.get("llm.model_name"), "metadata": metadata}
            yield runs.observation(sort, at, 30, parent, id=name, name=name, **words, **about)

    def as_phoenix(self) -> Iterator[dict[str, Any]]:
        """The same as Phoenix gives its spans away."""
        ids = {name: number for number, (name, *_) in enumerate(self.spans, 1)}
        for name, at, parent, told in self.spans:
            yield {
                "name": name,
                "span_kind": told["openinference.span.kind"],
                "context": {"trace_id": "5f1c" * 8, "span_id": f"{ids[name]:016x}"},
                "parent_id": None if parent is None else f"{ids[parent]:016x}",
                "start_time": runs.at(at),
                "end_time": runs.at(30),
                "status_code": "OK",
                "status_message": "",
                "attributes": {key: value for key, value in told.items() if value is not None},
                "events": [],
            }


def _kind(kind: str, **more: Any) -> dict[str, Any]:
    return {"openinference.span.kind": kind, **more}


def _messages(prefix: str, said: Any, first: int = 0) -> dict[str, str]:
    told: dict[str, str] = {}
    for number, (role, content) in enumerate(said, first):
        told |= {f"{prefix}.{number}.message.role": role, f"{prefix}.{number}.message.content": content}
    return told


def agent_run(*, tool_events: bool = True, first_answer: bool = False, cut: int = 0) -> Emitted:
    """An agent that looks something up and answers. `cut`: how many pieces of the last answer are lost."""
    made = Emitted()
    one = made.group(1, 1)
    listed = json.dumps([{"tool.name": "Almanac", "tool.description": "Tides by day."}])
    start = made.event("AGENT", "agent.react.start", 1, one, **{"llm.tools": listed})
    made.asks(1.1, start, ("system", SYSTEM), ("user", ASKED))
    made.event("AGENT", "agent.react.update", 2, one, thought="I look it up.", **{"tool.parameters": "null"})
    update = made.event("AGENT", "agent.react.update", 2.1, one, **ACTED)
    if first_answer:
        answer = _messages("llm.output_messages", [("assistant", FIRST)])
        made.event("LLM", "backend.demo.chat.success", 2, start, **answer)
        made.event("LLM", "backend.demo.chat.finish", 2, start)
    if tool_events:
        given = {"tool.parameters": '{"day": "today", "place": null}'}
        made.event("TOOL", "tool.almanac.finish", 3, update)
        made.event("TOOL", "tool.almanac.start", 2.2, update, **given)
        made.event("TOOL", "tool.almanac.success", 3, update, **given, **{"output.value": OUTPUT})
    made.event("AGENT", "agent.react.update", 3, one, **ACTED, **{"output.value": OUTPUT})
    two = made.group(2, 3)
    start = made.event("AGENT", "agent.react.start", 3, two)
    history = f"{FIRST}\nFunction Output: {OUTPUT}"
    made.asks(3.1, start, ("system", SYSTEM), ("user", ASKED), ("assistant", history))
    partial = made.event("AGENT", "agent.react.partial_update", 5, two, thought="Now I know.")
    pieces = [("assistant", piece) for piece in _pieces(f"Thought: Now I know.\nFinal Answer: {FINAL}")]
    ended = made.event(
        "LLM", "backend.demo.chat.success", 5, partial, **_messages("llm.output_messages", pieces[cut:], cut)
    )
    if cut:  # beyond the limit of attributes the oldest of a span go
        (lost,) = (attributes for name, _, _, attributes in made.spans if name == ended)
        del lost["target"], lost["name"]
    made.event("LLM", "backend.demo.chat.finish", 5, partial)
    made.event("AGENT", "agent.react.update", 5.1, two, thought="Now I know.", **{"output.value": FINAL})
    said = json.dumps({"role": "assistant", "content": [{"type": "text", "text": FINAL}]})
    made.event("AGENT", "agent.react.success", 5.2, two, **{"output.value": said})
    return made


def _pieces(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def _row(made: Emitted, tool: str) -> dict[str, Any]:
    ways = {"otlp": made.as_otlp, "langfuse": made.as_langfuse, "phoenix": made.as_phoenix}
    spans = list(ways[tool]())
    random.Random(1).shuffle(spans)
    (row,) = runs.read(tool, [batch(spans)] if tool == "otlp" else spans)
    return row


@pytest.mark.parametrize("tool", ["otlp", "langfuse", "phoenix"])
@pytest.mark.parametrize("tool_events", [True, False])
@pytest.mark.parametrize("first_answer", [True, False])
@pytest.mark.parametrize("cut", [0, 9])
def test_events_of_one_execution_are_told_once(tool: str, tool_events: bool, first_answer: bool, cut: int) -> None:
    made = agent_run(tool_events=tool_events, first_answer=first_answer, cut=cut)
    row = _row(made, tool)
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        ("system", SYSTEM),
        ("user", ASKED),
        ("assistant", FIRST),
        ("tool", f"Function Output: {OUTPUT}"),
        ("assistant", FINAL if cut else f"Thought: Now I know.\nFinal Answer: {FINAL}"),
    ]
    (step,) = row["steps"]
    assert (step["tool"], json.loads(step["arguments"]), step["status"]) == ("Almanac", {"day": "today"}, "ok")
    assert step["duration_ms"] == (800 if tool_events else None)
    assert (row["agent"], row["model"], row["status"], row["flags"]) == ("ReActAgent", "demo-tide", "completed", [])
    assert json.loads(row["tools"])[0]["function"]["name"] == "Almanac"
    assert row["n_records"] == len(made.spans)


@pytest.mark.parametrize("tool", ["otlp", "langfuse", "phoenix"])
def test_a_tool_that_failed_and_one_that_was_tried_again(tool: str) -> None:
    made = Emitted()
    one = made.group(1, 1)
    start = made.event("AGENT", "agent.react.start", 1, one)
    made.asks(1.1, start, ("user", ASKED))
    said = _messages("llm.output_messages", [("assistant", "I look it up.")])
    made.event("LLM", "backend.demo.chat.success", 2, start, **said)
    for day, ends, at in (("today", "success", 3.0), ("never", "error", 3.1)):
        given = {"tool.parameters": json.dumps({"day": day})}
        made.event("TOOL", "tool.almanac.start", at, start, **given)
        failed = {"exception.message": f"no {day}"}
        made.event("TOOL", "tool.almanac.retry", at + 0.1, start, **given, **failed)
        more = failed if ends == "error" else {"output.value": "06:10"}
        made.event("TOOL", f"tool.almanac.{ends}", at + 0.5, start, **given, **more)
    row = _row(made, tool)
    assert [(json.loads(s["arguments"]), s["status"], s["duration_ms"]) for s in row["steps"]] == [
        ({"day": "today"}, "ok", 500),
        ({"day": "never"}, "error", 500),
    ]
    assert [message["content"] for message in row["messages"] if message["role"] == "tool"] == ["06:10", "no never"]


def test_a_span_of_such_a_name_that_is_no_event_stays() -> None:
    alone = span(1, 0, 1, {"openinference.span.kind": "TOOL", "tool.name": "a", "output.value": "b"}, name="x.start-1")
    (row,) = runs.read("otlp", [batch([alone])])
    assert [step["tool"] for step in row["steps"]] == ["a"]
