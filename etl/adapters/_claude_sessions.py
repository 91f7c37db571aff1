"""Which lines of Claude Code sessions belong together: sub-agents' threads, and what one session copied from another.

Resuming a session under a new id copies its lines. A line that several sessions have (same id, time and content)
belongs to the one that had it first: sessions without a line of their own come first, then those whose first own line
is earlier, then the shorter, then by id. That is a function of the set of lines, whichever file was read first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from etl.adapters._blocks import identifier
from etl.adapters._claude_lines import Line, canonical, content_text, is_global
from etl.adapters._claude_text import content_of, text_of
from etl.identity import digest

_UNNAMED = "?"


class Copies(NamedTuple):
    """Sessions in the order in which they began, and the lines that a session has from an earlier one."""

    order: list[str]
    owner: dict[int, str]
    """`id` of a copied line → the session that owns it."""


def copies(sessions: dict[str, list[Line]]) -> Copies:
    """Decide which session owns each line that several of them have."""
    if len(sessions) == 1:
        return Copies(list(sessions), {})
    holders = _holders(sessions)

    def rank(key: str) -> tuple[int, int, str]:
        own = [line.at or 0 for line in sessions[key] if line.uuid is not None and id(line) not in holders]
        return (min(own) if own else -1, len(sessions[key]), key)

    order = sorted(sessions, key=rank)
    place = {key: number for number, key in enumerate(order)}
    owner: dict[int, str] = {}
    for key, lines in sessions.items():
        for line in lines:
            first = min(holders.get(id(line), (key,)), key=place.__getitem__)
            if first != key:
                owner[id(line)] = first
    return Copies(order, owner)


def _holders(sessions: dict[str, list[Line]]) -> dict[int, set[str]]:
    """For each line (by `id`) that other sessions have too: all sessions that have it."""
    named: dict[tuple[str, str, str | None], list[tuple[str, Line]]] = {}
    for key, lines in sessions.items():
        for line in lines:
            if line.origin is not None:
                named.setdefault((line.origin, line.kind, line.message_id), []).append((key, line))
    holders: dict[int, set[str]] = {}
    for group in named.values():
        if len({key for key, _ in group}) < 2:
            continue
        alike: list[tuple[str, int | None, list[tuple[str, Line]]]] = []
        for key, line in sorted(group, key=lambda held: (-len(content_text(held[1])), held[0])):
            content = content_text(line)
            for longest, at, members in alike:
                # A response may be copied before it is complete; everything else is copied as it is (or masked).
                begun = line.message_id is not None and content != "" and longest.startswith(content)
                if begun or (at == line.at and (longest == content or is_global(line.origin or ""))):
                    members.append((key, line))
                    break
            else:
                alike.append((content, line.at, [(key, line)]))
        for _, _, members in alike:
            keys = {key for key, _ in members}
            if len(keys) > 1:
                holders.update((id(line), keys) for _, line in members)
    return holders


class Launch(NamedTuple):
    """The call that started a sub-agent."""

    thread: str
    call_id: str | None
    agent: str | None
    """The kind of agent asked for."""
    line: Line | None
    """Where the call is made."""


def name_threads(lines: Iterable[Line]) -> None:
    """Name the threads of sub-agents without an id: by the thread they go on, else by the first line of their chain."""
    side = [line for line in lines if line.thread]
    unnamed = {line.uuid: line for line in side if line.thread == _UNNAMED and line.uuid is not None}
    if not any(line.thread == _UNNAMED for line in side):
        return
    named = {line.uuid: line for line in side if line.thread != _UNNAMED and line.uuid is not None}
    for line in sorted(named.values(), key=lambda line: (line.at or 0, line.uuid or "")):
        for before in _chain(line, unnamed):
            if before.thread == _UNNAMED:
                before.thread = line.thread
    roots: dict[int, str] = {}
    for line in side:
        if line.thread == _UNNAMED:
            *_, first = line, *_chain(line, unnamed)
            above = next((named[name] for name in first.parents if name in named), None)
            roots[id(line)] = (
                above.thread if above is not None else first.uuid or digest(canonical(first.value).encode())
            )
    for line in side:
        line.thread = roots.get(id(line), line.thread)


def _chain(line: Line, among: dict[str, Line]) -> list[Line]:
    """The lines before one, nearest first, as far as they are in `among`; a circle ends where it closes."""
    found: list[Line] = []
    seen = {id(line)}
    before = next((among[name] for name in line.parents if name in among), None)
    while before is not None and id(before) not in seen:
        seen.add(id(before))
        found.append(before)
        before = next((among[name] for name in before.parents if name in among), None)
    return found


def launches(lines: Iterable[Line]) -> dict[str, Launch]:
    """The call that started each sub-agent, as results, progress lines or the words of its task tell."""
    calls: dict[str, tuple[Line, dict[str, Any]]] = {}
    asked: dict[str, str] = {}
    started: dict[str, str] = {}
    first_words: dict[str, tuple[int, str]] = {}
    for line in lines:
        if line.kind == "assistant":
            for block in _blocks(line):
                name, arguments = identifier(block.get("id")), block.get("input")
                if block.get("type") == "tool_use" and name and isinstance(arguments, dict):
                    calls.setdefault(name, (line, arguments))
                    prompt = arguments.get("prompt")
                    if isinstance(prompt, str) and prompt.strip():
                        asked.setdefault(prompt.strip(), name)
        elif line.kind == "user":
            _note_start(line, started)
            if line.thread:
                words = content_of(line.value)
                if isinstance(words, str) and (line.at or 0) < first_words.get(line.thread, (1 << 63, ""))[0]:
                    first_words[line.thread] = (line.at or 0, words.strip())
        elif line.kind == "progress":
            agent = line.value.get("data", {})
            name = text_of(line.value, "parentToolUseID")
            agent_id = text_of(agent, "agentId") if isinstance(agent, dict) else None
            if name:
                started.setdefault(agent_id or name, name)
    for thread, (_, words) in first_words.items():
        if words in asked:
            started.setdefault(thread, asked[words])
    found: dict[str, Launch] = {}
    for thread, name in started.items():
        made = calls.get(name)
        if made is None:
            found[thread] = Launch("", name, None, None)
        elif made[0].thread != thread:
            found[thread] = Launch(made[0].thread, name, text_of(made[1], "subagent_type"), made[0])
    return found


def _note_start(line: Line, started: dict[str, str]) -> None:
    """A result that names the agent it came from."""
    copy = line.value.get("toolUseResult")
    agent = text_of(copy, "agentId") if isinstance(copy, dict) else None
    if agent is None and not line.thread:
        agent = text_of(line.value, "agentId")
    if agent is not None and agent != line.thread:
        for block in _blocks(line):
            name = identifier(block.get("tool_use_id"))
            if block.get("type") == "tool_result" and name:
                started.setdefault(agent, name)


def _blocks(line: Line) -> list[dict[str, Any]]:
    content = content_of(line.value)
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
