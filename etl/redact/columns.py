"""Credentials in tables: the head of a column says what the cells below it are, in CSV, Markdown and INSERT alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from etl.redact.credentials import Credential, credential, is_value, looks_random, memorable
from etl.redact.escapes import View
from etl.redact.families import Closer, Kind, Shown
from etl.redact.regex import regex
from etl.redact.spans import Span

_HEAD = regex(r"[\"'`]?(?P<name>[A-Za-z][A-Za-z0-9_ -]{2,40}?)[\"'`*]{0,2}[ ]{0,24}")
_OF_CREDENTIAL = regex(r"(?i)pass|pw|psk|secret|key|token|credential")
"""In every name that promises one."""
_SEPARATORS = (",", ";", "|", "\t", "?")
_DRAWN = set("-=+|: ?")
"""What lines between rows consist of; `?` stands for what is drawn."""
_NOUNS = ("passw", "pwd", "secret", "token", "key")
_CLOSED = regex(r"""(?<=[^\s,;|])["'](?=[,}\]]|\Z)""")
"""Where the text ends that a table is the last of."""
_OPENED = regex(r"""[:\[][ ]?["']""")
"""Where the text begins that a table is the first of."""
_ROWS = 60
"""Rows that are looked at below a head."""
_WIDEST = 40
_INSERT = regex(
    r"(?i)(?:insert|replace)[ ]+(?:ignore[ ]+)?into[ ]+[\w.\"`\[\]]{1,80}[ ]*\((?P<names>[^()]{3,600})\)\s*(?:values|"
    r"select)\s*(?P<rows>\([^;]{3,4000})"
)
_CELL = regex(r"""\s*(?:N|E|b)?'(?P<value>(?:[^'\\]|'')*)'\s*|\s*"(?P<other>[^"]*)"\s*|[^,()'"]*(?:\([^()]*\))?""")
_ALIGNED = regex(r"\S+(?: \S+)*")
"""A cell of a table whose columns are kept apart by two spaces at least."""


def _below(view: View) -> Iterator[Span]:
    """Cells below a head that names a credential."""
    seen: set[int] = set()
    for noun in _NOUNS:
        for place in view.places(noun):
            start = view.text.rfind("\n", 0, place) + 1
            if start in seen or len(view.text) == start:
                continue
            seen.add(start)
            yield from _table(view, start)


def _table(view: View | Shown, start: int) -> Iterator[Span]:
    text = view.text
    end = text.find("\n", start)
    if end < 0 or end - start > 800:
        return
    opened = max((match.end() for match in _OPENED.finditer(text, start, end)), default=start)
    head = text[opened:end]
    for separator in _SEPARATORS:
        names = head.split(separator)
        if separator not in ("|", "?") and not all(name.strip(" \"'") for name in names):
            continue
        if not 2 <= len(names) <= _WIDEST or any(len(name) > 60 for name in names[1:-1]):
            continue
        wanted = {index: promise for index, name in enumerate(names) if (promise := _promise(name, index))}
        if wanted:
            yield from _rows(view, end + 1, separator, len(names), wanted)
            return
    yield from _aligned(view, opened, end)


def _aligned(view: View | Shown, start: int, end: int) -> Iterator[Span]:
    """Columns of the output of a command: a cell begins where its head does, or ends there."""
    text = view.text
    heads = [head for head in _ALIGNED.finditer(text, start, end) if head.group() != "|"]
    if len(heads) < 2 or not re.search(r"\S {2,}\S", text[start:end]):
        return
    wanted = [
        (head.start() - start, head.end() - start, promise)
        for head in heads
        if head.group().strip("_ ").replace(" ", "").isidentifier()
        and (promise := credential(head.group().replace(" ", "_")))
    ]
    at = end + 1
    for _ in range(_ROWS if wanted else 0):
        stop = text.find("\n", at)
        line_end = stop if stop >= 0 else len(text)
        cells = [(cell.start() - at, cell.end() - at, cell.group()) for cell in _ALIGNED.finditer(text, at, line_end)]
        if len(cells) < 2 and not set("-=+ ").issuperset(text[at:line_end]):
            return
        for first, last, promise in wanted:
            for begin, finish, cell in cells:
                value = _CLOSED.split(cell, maxsplit=1)[0]
                if (begin == first or finish == last) and (
                    _fits(value, promise) if promise.rule != "secret" else looks_random(value)
                ):
                    yield view.span(at + begin, at + begin + len(value), promise.rule, 1)
        if stop < 0:
            return
        at = stop + 1


def _promise(name: str, index: int) -> Credential | None:
    if not _OF_CREDENTIAL.search(name):
        return None
    bare = name.strip(" \"'`*#+>")
    if index == 0:
        bare = re.sub(r"^(?:.*[\s:>?|]|[+-])", "", bare)
    found = _HEAD.fullmatch(bare)
    return credential(found["name"].replace(" ", "_")) if found else None


def _rows(view: View | Shown, at: int, separator: str, width: int, wanted: dict[int, Credential]) -> Iterator[Span]:
    text = view.text
    for _ in range(_ROWS):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        cells = line.split(separator)
        if len(line) > 4 and _DRAWN.issuperset(line):
            at = end + 1
            if end < 0:
                return
            continue
        if len(cells) != width:
            line = _CLOSED.split(line, maxsplit=1)[0]
            cells = line.split(separator)
        if len(cells) != width:
            return
        for index, promise in wanted.items():
            cell = cells[index]
            value = _CLOSED.split(cell, maxsplit=1)[0].strip(" \"'`*\r")
            if index == 0:
                value = re.sub(r"^(?:.*[\s>?]|[+-])", "", value)
            if _fits(value, promise):
                start = at + sum(len(each) + 1 for each in cells[:index]) + cell.index(value)
                yield view.span(start, start + len(value), promise.rule, 1)
        if end < 0:
            return
        at = end + 1


def _holds_below(shown: Shown, ends: Sequence[int]) -> bool:
    """Whether one of the lines with a name is the head of a table with a credential in it."""
    starts = dict.fromkeys(shown.text.rfind("\n", 0, end - 1) + 1 for end in ends)
    return any(True for start in starts for _ in _table(shown, start))


def _inserted(view: View) -> Iterator[Span]:
    for insert in _INSERT.finditer(view.text):
        names = [name.strip(' "`[]\n') for name in insert["names"].split(",")]
        wanted = {index: promise for index, name in enumerate(names) if (promise := credential(name))}
        at, end = insert.start("rows"), insert.end("rows")
        while wanted and at < end and view.text[at] == "(":
            at += 1
            for index in range(len(names)):
                cell = _CELL.match(view.text, at, end)
                if cell and index in wanted and cell["value"] and _fits(cell["value"], wanted[index]):
                    yield view.span(*cell.span("value"), wanted[index].rule, 1)
                at = cell.end() + 1 if cell else end
            at = view.text.find("(", at, end) if view.text[at : at + 8].strip().startswith(("(", ",")) else end


def _fits(value: str, promise: Credential) -> bool:
    if not is_value(value, ""):
        return False
    return looks_random(value) or (promise.strong and memorable(value))


_HEAD_SIGN = r"(?i:(?:passw(?:ord|d)|pwd|secret|token|key)[\"'`*]* *(?:[,;|\t\n]|  ))"
KINDS = (
    Kind("inserted", r"(?i:into [^\n(]*\([^)]*(?:passw|pwd|secret|token|key))", _inserted),
    Kind(
        "below a head",
        _HEAD_SIGN,
        _below,
        (Closer(_HEAD_SIGN, _holds_below),),
    ),
)
