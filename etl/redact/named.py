"""Credentials by name: `"API_TOKEN": "…"`, `password=…`, `--token …`, wherever they stand.

Names and values meet in many ways: JSON keys (and JSON in JSON), assignments in every language, environment files,
connection strings, command lines, headers as pairs or objects, XML elements, plain sentences. `_LINK` knows these;
what a name promises and what a value must look like is `etl/redact/credentials.py`.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from etl.redact.credentials import Credential, Place, credential, is_owner, mixed, plausible
from etl.redact.escapes import View, literal_end, literal_text
from etl.redact.families import Closer, Kind, Shown
from etl.redact.regex import regex
from etl.redact.spans import LABEL, Span

_STEMS = ("pass", "pwd", "pw", "psk", "secret", "token", "credential", "key")
_SUFFIX = r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|test|staging|live|local|default|value|string|base))?"
_NOUN = regex(
    r"(?i)(?:passw(?:or)?d|pass[_-]?(?:word|phrase|code)|(?<=[_.-])pass|(?<=[a-z])(?-i:Pass)(?![a-z])"
    r"|(?<=db|tp|il|er|in|ot|sh|do|me|lt|ap|is|ql|pg|fi|xy|ey|re)pass(?![a-z])|"
    r"pwd|(?<![a-z])(?:pw|psk)(?![a-z])|secret|token|credentials?|key)" + _SUFFIX
)
_LINK = regex(
    r"""(?:
      (?P<pair>["'`]\s{0,12},\s{0,12}["'`]value["'`]\s{0,3}:\s{0,3}(?:\{\s{0,12}["'`]string_?value["'`]\s{0,3}:\s{0,3})?
        | ["'`]\s{1,12}value=)
    | (?P<line>["']?[ \t]{0,3}\n[ \t]{0,40}value:[ \t]{1,3})
    | (?P<cell>["'`]?[ \t]{0,12}\|[ \t]{0,3})
    | (?P<prompt>[ ]\[[^\]\n]{0,40}\]:[ ])
    | (?P<told>["'`]?,?[ ](?:(?:answer|reply|respond)[ ]with|with|to|as|be)[ ])
    | (?P<answer>["'`]?\]?\)\n(?=["']))
    | (?P<close>["'`]?\]?["'`]?)
      (?:[ \t]{0,2}:[ \t]{0,2}[A-Za-z_][\w.\[\]| ]{0,30}?(?=[ \t]=))?
      (?: [ \t]{0,40}(?P<sign>=>|[!=]==?|(?:\|\||&&|\?\??|\+|:)?=|<-|->|:)[ \t]{0,24}
        | (?P<next>[ \t]{0,3},[ \t]{0,24}(?=["'`]))
        | [ ](?:is|was):?[ ]
        | (?P<element>>)
        | (?P<gap>[ \t]{1,3})
      )
    )
    (?P<list>\[\s{0,12})?
    (?:[bfru]{0,2}(?P<open>["'`]))?""",
    re.VERBOSE | re.IGNORECASE,
)
_COMMAND = regex(r"(?:#[ \t]*define|\bENV|\bsetx|\b[Ss]et(?:[ \t]+-g?x)?|_header|[aA]dd_?[hH]eader)[ \t]+\Z")
"""What makes a name and a value of two neighbouring words."""
NAME_CHARACTERS = string.ascii_letters + string.digits + "_.:$-"
_LONGEST_NAME = 64
_OWNER = regex(r"([A-Za-z]{2,16}) \Z")
"""The word before a noun that stands alone, as in "my api key is"."""
_BARE = regex(r"""[^\s"'`,;&|<>(){}\[\]\\]{4,4096}""")
_MARKED = regex(r"base64:|django-insecure-")
"""What says how a key is written or was made, and is no part of it."""
_INNER_LITERAL = regex(r"""\\+["'](?P<value>[^"'\\]+)\\+["']""")
"""A literal that holds nothing but another one, as code that makes code has."""
_ASSIGNMENT = regex(r"\.\*/[A-Za-z_.-]+=[^=\s]|-{0,2}(?:[a-z_.-]{4,}|[A-Z_]{4,}|[a-z]+(?:[A-Z][a-z]+)+)=[^=\s]")
"""A value that is itself a name with a value (`--set=password=…`): the inner one counts."""
_PARTNERS = (
    *("host", "hostaddr", "server", "dbname", "database", "data source", "initial catalog", "user id", "uid", "user"),
    *("username", "sslmode", "port", "accountname", "endpoint"),
)
"""What stands beside a password in a connection string."""
_CONNECTION = regex(rf"(?i)\b(?:{'|'.join(_PARTNERS)}) ?= ?[^\s,()=]+(?:[ ;&\"']|\Z)")

_NAMES = (
    r"(?:passw(?:or)?d|pass[_-]?(?:word|phrase|code)|[_.-]pass|(?:db|tp|il|er|in|"
    r"ot|sh|do|me|lt|ap|is|ql|pg|fi|xy|ey|re)pass|psk|pwd|secret|token|credentials?|"
    r"[a-z0-9]{2,16}[_. -]?key)" + _SUFFIX
)


class _Name(NamedTuple):
    """A name of a credential, and what is between it and its value."""

    start: int
    name: str
    promise: Credential
    link: re.Match[str]


def _named(view: View) -> Iterator[Span]:
    """Values that are secret because of the name they go by."""
    for stem in _STEMS:
        for place in view.places(stem):
            named = _name_at(view.text, place)
            if named:
                span = _quoted_value(view, named) if named.link["open"] else _bare_value(view, named)
                if span:
                    yield span


def _name_at(text: str, place: int) -> _Name | None:
    """The name whose stem is at a place, where a value may follow."""
    noun = _NOUN.match(text, place)
    link = _LINK.match(text, noun.end()) if noun else None
    if not noun or not link:
        return None
    start, name = name_before(text, place, noun.end(), alone=link.group() == "=")
    promise = credential(name)
    if promise is None or "arn:" in name or (link["told"] and not (name.isupper() and "_" in name)):
        return None
    if link["gap"] and not name.startswith("--") and not _COMMAND.search(text, max(0, start - 20), start):
        return None
    if link["line"] and not text[max(0, start - 20) : start].rstrip("\"'").endswith("name: "):
        return None
    return _Name(start, name, promise, link)


def _holds_named(stem: str, shown: Shown, ends: Sequence[int]) -> bool:
    """Whether a value may follow one of the places where a stem ends."""
    for end in ends:
        named = _name_at(shown.text, end - len(stem))
        if named and (named.link["open"] or _bare_value(shown, named)):
            return True
    return False


def name_before(text: str, place: int, end: int, *, alone: bool = False) -> tuple[int, str]:
    """The whole name whose last word is `text[place:end]`, and where it begins; with its owner (`api key`) in prose."""
    before = text[max(0, place - _LONGEST_NAME) : place]
    start = place - len(before) + len(before.rstrip(NAME_CHARACTERS))
    owner = _OWNER.search(before) if start == place and not alone else None
    if owner and is_owner(owner[1]):
        start -= len(owner.group())
    return start, text[start:end]


def _quoted_value(view: View, named: _Name) -> Span | None:
    """The whole literal that opens where the link ends, at whatever depth of escapes."""
    _, name, promise, link = named
    if link["element"]:
        return None
    is_listed = bool(link["next"] or link["told"])
    opening, content = view.raw_at(link.end() - 1), view.raw_at(link.end())
    end = literal_end(view.raw, opening, content)
    if end is None:
        bare = _BARE.match(view.text, link.end())
        end = view.raw_at(bare.end()) if bare else content
    inner = _INNER_LITERAL.fullmatch(view.raw, content, end)
    if inner:
        content, end = inner.span("value")
    marked = _MARKED.match(view.raw, content, end)
    content = marked.end() if marked else content
    shown = literal_text(view.raw, opening, content, end)
    if LABEL.fullmatch(shown) or shown.lstrip()[:1] in (",", "]", "}", ":"):
        return None
    if is_listed and not (
        name.isupper() or (promise.rule == "password" and len(shown) >= 8 and any(map(str.isdigit, shown)))
    ):
        promise = promise._replace(strong=False)
    if not plausible(shown, name.strip("-._$:"), promise, "quoted"):
        return None
    if is_listed and not mixed(shown):
        return None
    return Span(content, end, promise.rule, 1)


def _bare_value(view: View | Shown, named: _Name) -> Span | None:
    """The run of characters after `name=`, `name: `, `--name `, `name is ` or `<name>`."""
    start, name, promise, link = named
    text = view.text
    flag = name.startswith("--")
    if link["gap"] and not flag and text.startswith("-", link.end()):
        return None
    if link["pair"] or link["next"] or link["list"] or link["close"]:
        return None
    found = _BARE.match(text, link.end())
    if not found or text[found.end() : found.end() + 1] in ("(", "[", "{") or _ASSIGNMENT.match(text, link.end()):
        return None
    if link["cell"] and text.rfind("{{", max(0, start - 80), start) > text.rfind("}}", max(0, start - 80), start):
        return None
    value = found.group().rstrip(".,:")
    if found.group().endswith("..."):
        return None
    if text[start - 3 : start] == "://":  # the login of a URL
        value = value.partition("@")[0]
    if text[start - 1 : start] in ("/", "^"):  # s/^NAME=.*/NAME=value/
        value = value.rstrip("/")
    place: Place = "bare"
    if link["element"]:
        if text[start - 1 : start] != "<" or not text.startswith("</", found.end()):
            return None
        place = "quoted"
    elif flag and not value.isupper() and not value.startswith("-"):
        place = "flag"
    elif (name.isupper() and (link["gap"] or link["line"] or link.group() == "=")) or (
        link.group() == "=" and _in_text(text, start, found.start())
    ):
        place = "environment"
    if not plausible(value, name.strip("-._$:"), promise, place):
        return None
    marked = _MARKED.match(value)
    start = found.start() + (marked.end() if marked else 0)
    return view.span(start, found.start() + len(value), promise.rule)


def _in_text(text: str, start: int, value: int) -> bool:
    """True for `name=` right after a quote or beside the other parts of a connection string: no argument of a call."""
    if text[start - 1 : start] in ('"', "'", "`"):
        return True
    near = text[max(0, start - 200) : value + 200]
    lower = near.lower()
    return any(f"{partner}=" in lower or f"{partner} =" in lower for partner in _PARTNERS) and bool(
        _CONNECTION.search(near)
    )


KINDS = (
    Kind(
        "named",
        "|".join(
            (
                rf"""(?i:{_NAMES})[\x00- "'`\])\x7f]*(?:[:=!,>|?&+]|<-|->|value[:=]|\[[^\]\n]*\]: )""",
                rf"""(?i:{_NAMES})[\x00- "'`\])\x7f]*\)[\x00- ]*["']""",
                rf"""(?i:{_NAMES})["'`]?,? (?:is|was|answer with|reply with|respond with|with|to|as|be):? """,
                r"""(?i:(?:^|[^a-z])pw)["']?(?:[ \t]*[:=]|,? (?:is|was|with|to|as|be):? )""",
                r"""[a-z]Pass["'`]?[ \t]*[:=,>]""",
                rf"(?:--|#[ \t]*define[ \t]|ENV[ \t]|[Ss]etx?[ \t]|[Hh]eader[ \t])[A-Za-z_ \t-]*(?i:{_NAMES})[ \t]",
            )
        ),
        _named,
        tuple(Closer(f"(?i:{stem})", functools.partial(_holds_named, stem)) for stem in _STEMS),
    ),
)
