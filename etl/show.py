"""One row, read top to bottom in a terminal: who and when, then each turn, each call and what came back.

Colours only help: every mark is also a word, so that a pipe says as much as a screen. Everything that comes out of a
log passes `harmless`, since log text can attack a terminal.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from etl.flags import FLAGS
from etl.harmless import harmless, harmless_line
from etl.query import Kin, Relative

_ROLES = {"system": "magenta", "developer": "magenta", "user": "bold green", "assistant": "bold cyan", "tool": "yellow"}
_STATUSES = {"ok": "green", "completed": "green", "error": "bold red", "missing": "bold red", "aborted": "bold red"}
_INLINE_ARGUMENTS = 100
"""Characters of call arguments that stay on the line of the call."""
_MIN_WIDTH = 20
_RELATIVES = 20
"""Rows that belong to a row which are named in its header."""
_SHORT = 60
"""Characters of a prompt that stand in one line with other things."""


class Fold(NamedTuple):
    """How much of a text is shown."""

    lines: int
    characters: int


_FOLDS = {
    "system": Fold(3, 300),
    "developer": Fold(3, 300),
    "user": Fold(60, 6000),
    "assistant": Fold(60, 6000),
    "tool": Fold(12, 1200),
    "reasoning": Fold(12, 1200),
    "arguments": Fold(30, 2000),
}


def render(row: Mapping[str, Any], *, full: bool = False, kin: Kin | None = None) -> RenderableType:
    """A row of `rollouts` (as `etl.query.find_rollout` gives it) for a rich console; `full` folds nothing."""
    calls: dict[int, list[Mapping[str, Any]]] = {}
    answered: dict[int, Mapping[str, Any]] = {}
    for step in row["steps"]:
        calls.setdefault(step["message_index"], []).append(step)
        if step["result_index"] is not None:
            answered[step["result_index"]] = step
    turns = (
        _turn(index, message, info, calls.get(index, []), answered.get(index), row, full=full)
        for index, (message, info) in enumerate(zip(row["messages"], row["message_info"], strict=True))
    )
    header = _header(row, kin or Kin())
    return Group(*header, *(part for turn in turns for part in turn), *_footer(row, full=full))


class _Indented:
    """Text some columns from the left, wrapped where the window ends, without trailing blanks: a pipe stays clean."""

    def __init__(self, text: Text, indent: int) -> None:
        self._text = text
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - self._indent, _MIN_WIDTH)
        for line in self._text.wrap(console, width, overflow="fold"):
            line.rstrip()
            if line:
                yield Segment(" " * self._indent)
                yield from line.render(console)
            yield Segment.line()


def _header(row: Mapping[str, Any], kin: Kin) -> Iterator[RenderableType]:
    """What is known of the row before anything is said in it."""
    title = Text.assemble((harmless_line(row["rollout_id"]), "bold"), "  ", _word(row["status"]), *_reward(row))
    yield _Indented(title, 0)
    if row["seeded"]:
        planted = ", ".join(harmless_line(name) for name in row["seeded"])
        yield _Indented(Text.assemble(("planted mistake  ", "bold magenta"), (planted, "bold magenta")), 2)
    for label, value in facts(row):
        yield _Indented(Text.assemble((f"{label}  ", "dim"), harmless_line(value)), 2)
    yield from _relatives(row, kin)
    for flag in row["flags"]:
        meaning = FLAGS.get(flag, "")
        yield _Indented(Text.assemble((f"flag {harmless_line(flag)}  ", "yellow"), (meaning, "dim")), 2)
    for judgment in row["judgments"]:
        yield _Indented(_judgment(judgment), 2)


def _reward(row: Mapping[str, Any]) -> Iterator[str | tuple[str, str]]:
    if row["reward"] is None:
        yield ("  not scored", "dim")
    else:
        yield ("  reward ", "dim")
        yield (f"{row['reward']:g}", "bold green" if row["reward"] > 0 else "bold red")
        if row["rewards"]:
            yield (f"  {harmless_line(row['rewards'])}", "dim")


def facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of everything that is known of a row before anything is said in it."""
    lines = (
        ("task", _joined(row["task_id"])),
        ("group", _joined(row["group_id"], _labelled("attempt", row["sample_index"]))),
        ("model", _joined(row["model"], row["provider"], row["policy_version"])),
        ("agent", _joined(row["agent"])),
        ("log", _joined(row["origin"], row["adapter"], row["source"], row["day"])),
        ("file", _place(row)),
        ("time", _span(row["started_at"], row["ended_at"])),
        ("size", _joined(_count(row["n_turns"], "user turn"), _count(row["n_steps"], "call"), *_usage(row["usage"]))),
        ("end", _joined(row["finish_reason"], row["error"])),
        ("scenario", _scenario(row["scenario"])),
        ("faults", row["faults"] or ""),
        ("redacted", row["redactions"] or ""),
    )
    return ((label, text) for label, text in lines if text)


def _relatives(row: Mapping[str, Any], kin: Kin) -> Iterator[RenderableType]:
    """A line for each row that belongs to this one: what it came from, what came from it, what lies beside it."""
    parent = kin.parent or (Relative(row["parent_id"]) if row["parent_id"] else None)
    found = [("came from", relative) for relative in ([parent] if parent else [])]
    found += [("its sub-agent or branch", relative) for relative in kin.children]
    found += [("beside it", relative) for relative in kin.siblings]
    for label, relative in found[:_RELATIVES]:
        reward = None if relative.reward is None else f"reward {relative.reward:g}"
        prompt = harmless_line(relative.prompt or "")
        said = _joined(relative.rollout_id, relative.agent, relative.status, reward, prompt[:_SHORT])
        yield _Indented(Text.assemble((f"{label}  ", "dim"), harmless_line(said)), 2)
    if len(found) > _RELATIVES:
        yield _Indented(Text(f"and {len(found) - _RELATIVES} more that belong to it", style="dim"), 2)


def _judgment(judgment: Mapping[str, Any]) -> Text:
    value = None if judgment["value"] is None else f"{judgment['value']:g}"
    said = _joined(value, judgment["label"], judgment["status"], judgment["reason"])
    return Text.assemble((f"{harmless_line(judgment['kind'])} ", "dim"), harmless_line(f"{judgment['name']}  {said}"))


def _turn(
    index: int,
    message: Mapping[str, Any],
    info: Mapping[str, Any],
    calls: Sequence[Mapping[str, Any]],
    answers: Mapping[str, Any] | None,
    row: Mapping[str, Any],
    *,
    full: bool,
) -> Iterator[RenderableType]:
    """One message: its heading, its reasoning, its text, its calls."""
    role = message["role"]
    style = "dim" if info["inherited"] else _ROLES.get(role, "")
    yield Text("")
    yield _Indented(_heading(index, message, info, answers, row), 0)
    if message["reasoning_content"]:
        thought = _folded(message["reasoning_content"], _FOLDS["reasoning"], full=full)
        yield _Indented(Text("reasoning  ", style="dim").append_text(_with_note(thought, "dim italic")), 4)
    if message["content"]:
        body = "" if role in ("user", "assistant") and not info["inherited"] else "dim" if style == "dim" else style
        yield _Indented(_with_note(_folded(message["content"], _FOLDS[role], full=full), body), 2)
    if info["parts"]:
        yield _Indented(Text(f"[{_kinds(info['parts'])}]", style="blue"), 2)
    for number, step in enumerate(calls, 1):
        yield from _call(step, f"{number}/{len(calls)} " if len(calls) > 1 else "", full=full)


def _heading(
    index: int,
    message: Mapping[str, Any],
    info: Mapping[str, Any],
    answers: Mapping[str, Any] | None,
    row: Mapping[str, Any],
) -> Text:
    role = message["role"]
    text = Text.assemble((role, _ROLES.get(role, "")), (f" #{index}", "dim"))
    if role == "tool":
        tool = answers["tool"] if answers else message["name"]
        text.append(f"  {harmless_line(tool)}" if tool else "", style="yellow")
        if answers is None:
            text.append("  answers no call", style="bold red")
        else:
            text.append("  ").append_text(_outcome(answers, said=message["content"]))
    elif message["name"]:
        text.append(f"  {harmless_line(message['name'])}")
    marks = [mark for mark in ("inherited", "synthetic") if info[mark]]
    if info["model"] and info["model"] != row["model"]:
        marks.append(harmless_line(info["model"]))
    if info["finish_reason"] and info["finish_reason"] not in ("stop", "tool_calls", "end_turn", "tool_use"):
        marks.append(harmless_line(info["finish_reason"]))
    if info["at"] is not None:
        marks.append(f"{info['at'].astimezone(dt.UTC):%H:%M:%S}")
    return text.append(f"  {' · '.join(marks)}" if marks else "", style="dim")


def _call(step: Mapping[str, Any], number: str, *, full: bool) -> Iterator[RenderableType]:
    """A call; its result is a message of its own further down, so only what is wrong is said here."""
    line = Text.assemble((f"→ {number}", "dim"), (harmless_line(step["tool"]), "bold yellow"))
    if step["actor"] != "agent":
        line.append(f"  by the {harmless_line(step['actor'])}", style="blue")
    arguments = step["arguments"]
    inline = len(arguments) <= _INLINE_ARGUMENTS and step["raw_arguments"] is None
    if inline:
        line.append(f" {harmless_line(arguments)}")
    if step["status"] != "ok" and step["result_index"] is None:
        line.append("  ").append_text(_outcome(step))
    yield _Indented(line, 2)
    if step["raw_arguments"] is not None:
        yield _Indented(Text("arguments are not a JSON object:", style="bold red"), 4)
        yield _Indented(_with_note(_folded(step["raw_arguments"], _FOLDS["arguments"], full=full), ""), 4)
    elif not inline:
        yield _Indented(_with_note(_folded(pretty(arguments), _FOLDS["arguments"], full=full), ""), 4)


def _outcome(step: Mapping[str, Any], said: str = "") -> Text:
    """Status, condition, error (unless the result says it) and duration of a call."""
    missing = "no result was logged" if step["actor"] != "server" else "no result here: it ran at the provider"
    text = Text.assemble(_word(step["status"]) if step["status"] != "missing" else (missing, _STATUSES["missing"]))
    if step["condition"] and step["condition"] not in ("success", step["status"]):
        text.append(f" {harmless_line(step['condition'])}", style="red")
    if step["error"] and step["error"] not in said:
        text.append(f" {harmless_line(step['error'])[:200]}", style="red")
    if step["duration_ms"] is not None:
        text.append(f" {step['duration_ms']:,.0f} ms", style="dim")
    return text


def _footer(row: Mapping[str, Any], *, full: bool) -> Iterator[RenderableType]:
    if full and row["tools"]:
        yield Text("")
        yield Text("tools offered", style="magenta")
        yield _Indented(Text(harmless(pretty(row["tools"]))), 2)
    if full and row["extra"]:
        yield Text("")
        yield Text("other fields of the log", style="magenta")
        yield _Indented(Text(harmless(pretty(row["extra"]))), 2)


class _Shown(NamedTuple):
    text: str
    left_out: str
    """What was folded away, in words; empty where nothing was."""


def _folded(text: str, fold: Fold, *, full: bool) -> _Shown:
    """The beginning of a text, cut at a number of lines and of characters."""
    if full:
        return _Shown(harmless(text), "")
    lines = text.split("\n", fold.lines)
    kept = "\n".join(lines[: fold.lines])[: fold.characters]
    rest = len(text) - len(kept)
    if rest <= 0 or not text[len(kept) :].strip():
        return _Shown(harmless(kept), "")
    return _Shown(harmless(kept), f"… {rest:,} more characters")


def _with_note(shown: _Shown, style: str) -> Text:
    text = Text(shown.text, style=style)
    return text.append(f"\n{shown.left_out}", style="blue") if shown.left_out else text


def pretty(text: str) -> str:
    """JSON over several lines, its numbers as written; other text as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text


def _kinds(parts: str) -> str:
    """The types of the non-text parts of a message."""
    try:
        found = msgspec.json.decode(parts)
    except msgspec.DecodeError:
        return "parts"
    kinds = Counter(str(part.get("type", "part")) if isinstance(part, dict) else "part" for part in _as_list(found))
    return harmless_line(", ".join(kind if n == 1 else f"{n} × {kind}" for kind, n in kinds.items()))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _word(status: str) -> tuple[str, str]:
    return (harmless_line(status), _STATUSES.get(status, "yellow"))


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _labelled(label: str, value: int | None) -> str | None:
    return None if value is None else f"{label} {value}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _usage(usage: Mapping[str, Any] | None) -> Iterable[str]:
    if usage is None:
        return
    for key, label in (("input_tokens", "tokens in"), ("output_tokens", "out"), ("reasoning_tokens", "reasoning")):
        if usage[key] is not None:
            yield f"{usage[key]:,} {label}"
    if usage["cost_usd"] is not None:
        yield f"${usage['cost_usd']:.4g}"


def _scenario(scenario: Mapping[str, Any] | None) -> str:
    return _joined(*(f"{axis} {value}" for axis, value in (scenario or {}).items() if value))


def _place(row: Mapping[str, Any]) -> str:
    line = row["source_line"]
    return f"{row['source_uri']}{'' if line is None else f':{line}'}"


def _span(start: dt.datetime | None, end: dt.datetime | None) -> str:
    """Start and length; UTC."""
    if start is None:
        return ""
    text = f"{start.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    return text if end is None else f"{text}, {str(end - start).partition('.')[0]} long"
