"""The lines of one thread of Claude Code in order, and the paths through them where a person went back and asked again.

Order is a function of what the lines say, not of the file that they were read from: a line comes after the line it
names as its parent and else by its time; file offsets only part lines that are equal in both. A line whose parent is
not there stands where its time puts it, and is marked.

A fork is a line after which the log goes on twice with a person's turn, or twice with a different response of the
model. The earlier continuation goes on with the path it is on; each later one is a path of its own, which begins with
what came before the fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from etl.adapters._claude_lines import Line, canonical
from etl.adapters._claude_text import has_result, is_command, is_synthetic, text_of
from etl.identity import digest

_NOBODY = ("", "")
Speaker = tuple[str, str]


class Path(msgspec.Struct, gc=False):
    """One way through a thread, from its beginning to an end of it."""

    branch: str
    """Empty for the path that holds the first turn, else the id of the first line that is its own."""
    lines: list[Line]
    own: int = 0
    """`lines[own:]` are on no earlier path."""
    parent: int | None = None
    """Number of the path it leaves, among those of its thread."""
    fork: str | None = None
    """Id of the line after which this path and others part."""
    abandoned: bool = False
    """True where the log went on elsewhere."""


class Thread(NamedTuple):
    """Lines in order; `up` is the line before each in its chain, by `id` (a chain of objects is too deep to free)."""

    lines: list[Line]
    up: dict[int, Line]


def ordered(lines: list[Line]) -> Thread:
    """Put the lines of one thread in order; marks those whose parent is not there."""
    by_uuid: dict[str, Line] = {}
    for line in lines:
        if line.uuid is not None:
            known = by_uuid.get(line.uuid)
            if known is None or _rank(line) < _rank(known):
                by_uuid[line.uuid] = line
    kept = _kept_by_compaction(lines)
    up: dict[int, Line] = {}
    seen: set[int] = set()
    downwards = True
    for line in lines:
        line.dangling = False
        if line.parents:
            anchor = kept.get(line.uuid) if line.uuid is not None else None
            parents = [name for name in line.parents if name != anchor] if anchor is not None else line.parents
            before = None
            for name in parents:
                before = by_uuid.get(name)
                if before is not None and before is not line:
                    up[id(line)] = before
                    downwards = downwards and id(before) in seen
                    break
                before = None
            line.dangling = before is None and bool(parents)
        seen.add(id(line))
    if not downwards:  # else every line stands below the one before it, and there is no circle
        _cut_circles(lines, up)
    for line in sorted((line for line in lines if id(line) not in up), key=_rank):
        _join_logically(line, by_uuid, up)
    return Thread(_sorted(lines, up), up)


def _rank(line: Line) -> tuple[int, str, str, tuple[int, int]]:
    return (line.at or 0, line.uuid or "", line.uri, line.place)


def _kept_by_compaction(lines: Iterable[Line]) -> dict[str, str]:
    """Lines that a compaction kept and hung under its summary (line → summary): a parent that says nothing of order."""
    kept: dict[str, str] = {}
    for line in lines:
        metadata = line.value.get("compactMetadata")
        preserved = metadata.get("preservedMessages") if isinstance(metadata, dict) else None
        if not isinstance(preserved, dict):
            continue
        anchor, names = text_of(preserved, "anchorUuid"), preserved.get("uuids")
        if anchor and isinstance(names, list):
            kept.update((name, anchor) for name in names if isinstance(name, str))
    return kept


def _cut_circles(lines: Iterable[Line], up: dict[int, Line]) -> None:
    """Part parents that lead back to their own children, at the earliest line of the circle."""
    sound: set[int] = set()
    for line in lines:
        walk: list[Line] = []
        on_walk: set[int] = set()
        node: Line | None = line
        while node is not None and id(node) not in sound and id(node) not in on_walk:
            walk.append(node)
            on_walk.add(id(node))
            node = up.get(id(node))
        if node is not None and id(node) in on_walk:
            first = min(walk[next(i for i, one in enumerate(walk) if one is node) :], key=_rank)
            first.dangling = True
            del up[id(first)]
        sound |= on_walk


def _join_logically(line: Line, by_uuid: dict[str, Line], up: dict[int, Line]) -> None:
    """A line after a compaction names the line before it apart from the chain."""
    before = by_uuid.get(text_of(line.value, "logicalParentUuid") or "")
    node = before
    while node is not None:
        if node is line:
            return
        node = up.get(id(node))
    if before is not None:
        up[id(line)] = before
        line.dangling = False


def _sorted(lines: list[Line], up: dict[int, Line]) -> list[Line]:
    times = _filled_times(lines)
    one_file = len({line.uri for line in lines}) <= 1
    keys: dict[int, tuple[int, int]] = {}
    for line in lines:
        walk = []
        node: Line | None = line
        while node is not None and id(node) not in keys:
            walk.append(id(node))
            node = up.get(id(node))
        before = keys[id(node)] if node is not None else None
        for name in reversed(walk):
            at = times[name]
            keys[name] = before = (at, 0) if before is None or at > before[0] else (before[0], before[1] + 1)
    # At one time the line comes first whose parent does; what is still equal stands as in its file, if that is one.
    above = dict.fromkeys(keys, (0, 0))
    above.update((name, keys[id(before)]) for name, before in up.items())
    if one_file:
        return sorted(lines, key=lambda line: (keys[id(line)], above[id(line)], line.place))
    return sorted(lines, key=lambda line: (keys[id(line)], above[id(line)], line.uuid or "", line.uri, line.place))


def _filled_times(lines: list[Line]) -> dict[int, int]:
    """The time of every line; one without gets that of the line before it in its file, or of the first after it."""
    times = {id(line): line.at for line in lines if line.at is not None}
    if len(times) < len(lines):
        in_files = sorted(lines, key=lambda line: (line.uri, line.place))
        for run in (in_files, in_files[::-1]):
            last: tuple[str, int] | None = None
            for line in run:
                at = times.get(id(line))
                if at is not None:
                    last = (line.uri, at)
                elif last is not None and last[0] == line.uri:
                    times[id(line)] = last[1]
    return {id(line): times.get(id(line), 0) for line in lines}


def paths(thread: Thread) -> list[Path]:
    """The ways through a thread; the first holds the first turn, each later one begins with what it shares."""
    lines, up = thread
    forks = _forks(thread)
    if not forks.heads:
        return [Path("", lines)]
    segments: list[_Segment] = [_Segment(None, True)]
    at: dict[int, int] = {}
    previous = 0
    for line in lines:
        head = forks.heads.get(id(line))
        before = forks.beside.get(id(line), up.get(id(line)))
        if head is not None:
            segments.append(_Segment(None if head.fork is None else at[id(head.fork)], head.goes_on, line, head.fork))
            here = len(segments) - 1
        else:
            here = at[id(before)] if before is not None else previous
        at[id(line)] = previous = here
        segments[here].lines.append(line)
    return _joined(segments, {id(line): number for number, line in enumerate(lines)})


class _Segment:
    """Lines between forks."""

    __slots__ = ("before", "fork", "goes_on", "head", "lines")

    def __init__(self, before: int | None, goes_on: bool, head: Line | None = None, fork: Line | None = None) -> None:
        self.before = before
        self.goes_on = goes_on
        self.head = head
        self.fork = fork
        self.lines: list[Line] = []


class _Head(msgspec.Struct, gc=False):
    """What begins with a line after a fork; `goes_on` where it continues the path it comes from."""

    fork: Line | None
    goes_on: bool


class _Forks(msgspec.Struct, gc=False):
    """Where a log goes on more than once (lines by `id`)."""

    heads: dict[int, _Head]
    beside: dict[int, Line]
    """Further lines of a response that begins after a fork → its first line."""


def _joined(segments: list[_Segment], number: dict[int, int]) -> list[Path]:
    """Segments into paths."""
    path_of: list[int] = []
    found: list[Path] = []
    own: list[list[Line]] = []
    for segment in segments:
        if segment.goes_on and segment.before is not None:
            path_of.append(path_of[segment.before])
            path = found[path_of[-1]]
            path.fork = path.fork or (segment.fork.uuid if segment.fork else None)
            own[path_of[-1]] += segment.lines
            continue
        path_of.append(len(found))
        shared: list[Line] = []
        before = segment.before
        while before is not None:
            shared += segments[before].lines
            before = segments[before].before
        head = segment.head
        branch = "" if not found or head is None else head.uuid or digest(canonical(head.value).encode())
        parent = path_of[segment.before] if segment.before is not None else (0 if found else None)
        fork = segment.fork.uuid if segment.fork else None
        found.append(Path(branch, sorted(shared, key=lambda line: number[id(line)]), len(shared), parent, fork))
        own.append(list(segment.lines))
    for path, mine in zip(found, own, strict=True):
        path.lines += sorted(mine, key=lambda line: number[id(line)])
    last = max(range(len(found)), key=lambda index: max((number[id(line)] for line in own[index]), default=-1))
    for index, path in enumerate(found):
        path.abandoned = index != last
    return found


def _forks(thread: Thread) -> _Forks:
    children: dict[int, list[Line]] = {}
    for line in thread.lines:
        before = thread.up.get(id(line))
        if before is not None:
            children.setdefault(id(before), []).append(line)
    forks = _Forks({}, {})
    forks.heads.update(_new_beginnings(thread))
    if not any(len(below) > 1 for below in children.values()):
        return forks
    speakers, asked = _speakers(thread, children)
    for line in thread.lines:
        below = children.get(id(line), ())
        if len(below) < 2:
            continue
        asking = [child for child in below if id(child) in asked]
        if sum(1 for child in asking if speakers[id(child)][0] == "person") > 1:
            parting = asking
        else:
            parting = _other_responses(line, below, forks)
        for number, child in enumerate(parting):
            forks.heads.setdefault(id(child), _Head(line, number == 0))
    return forks


def _speakers(thread: Thread, children: dict[int, list[Line]]) -> tuple[dict[int, Speaker], set[int]]:
    """Who speaks first in or below each line; and the lines in or below which a person does."""
    speakers: dict[int, Speaker] = {}
    asked: set[int] = set()
    for line in reversed(thread.lines):
        speaker = _speaker(line)
        if speaker is None:
            below = (speakers[id(child)] for child in children.get(id(line), ()))
            speaker = next((one for one in below if one != _NOBODY), _NOBODY)
        speakers[id(line)] = speaker
        if line.person:
            asked.add(id(line))
        if id(line) in asked and id(line) in thread.up:
            asked.add(id(thread.up[id(line)]))
    return speakers, asked


def _speaker(line: Line) -> Speaker | None:
    """Who speaks in a line; None where nobody does, or only the program."""
    if line.kind == "user":
        if line.person or is_command(line.value):
            return ("person", "")
        return ("tool", "") if has_result(line.value) else None
    if line.kind == "assistant":
        return ("model", line.message_id or "") if not is_synthetic(line.value) else None
    return None


def _other_responses(line: Line, below: Sequence[Line], forks: _Forks) -> list[Line]:
    """The first lines of different responses of the model to the same line; none or one where there is no choice."""
    responses: dict[str, Line] = {}
    beside: dict[int, Line] = {}
    for child in below:
        if child.message_id and child.message_id != line.message_id and not is_synthetic(child.value):
            first = responses.setdefault(child.message_id, child)
            if first is not child:
                beside[id(child)] = first
    if len(responses) < 2:
        return []
    forks.beside.update(beside)
    return list(responses.values())


def _new_beginnings(thread: Thread) -> dict[int, _Head]:
    """Turns with which a person went back to before the first one: the log begins again, without a parent.

    Only in logs whose other turns name their parents; in others a missing parent says nothing.
    """
    turns = [line for line in thread.lines if line.person][1:]
    if not any(id(line) in thread.up for line in turns):
        return {}
    again = [line for line in turns if id(line) not in thread.up and line.value.get("parentUuid", 0) is None]
    return {id(line): _Head(None, False) for line in again if "logicalParentUuid" not in line.value}
