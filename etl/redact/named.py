"""Credentials by name: `"API_TOKEN": "…"`, `password=…`, `--token …`, `Authorization: Bearer …`, wherever they stand.

Names and values meet in many ways: JSON keys (and JSON in JSON), assignments in every language, environment files,
connection strings, command lines, headers as pairs or objects, XML elements, plain sentences. `_LINK` knows these;
what a name promises and what a value must look like is `etl/redact/credentials.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator

from etl.redact.credentials import Credential, Place, credential, is_value, looks_random, plausible
from etl.redact.escapes import View, literal_end, literal_text
from etl.redact.spans import LABEL, Span

_STEMS = ("pass", "pwd", "secret", "token", "credential", "key")
_NOUN = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|passcode|(?<=[_.-])pass|pwd|secret|token|credentials?|key)"
    r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|test|staging|live|local|default|value|string))?"
)
_LINK = re.compile(
    r"""(?:
      (?P<pair>["'`]\s{0,12},\s{0,12}["'`]value["'`]\s{0,3}:\s{0,3}(?:\{\s{0,12}["'`]string_?value["'`]\s{0,3}:\s{0,3})?)
    | (?P<close>["'`]?\]?)
      (?:[ \t]{0,2}:[ \t]{0,2}[A-Za-z_][\w.\[\]| ]{0,30}?(?=[ \t]=))?
      (?: [ \t]{0,3}(?P<sign>:=|=>|[!=]==?|=|:)[ \t]{0,3}
        | (?P<next>[ \t]{0,3},[ \t]{0,3}(?=["'`]))
        | [ ](?:is|was):?[ ]
        | (?P<element>>)
        | (?P<gap>[ \t]{1,3})
      )
    )
    (?P<list>\[\s{0,12})?
    (?:[bfru]{0,2}(?P<open>["'`]))?""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.:$-"
_LONGEST_NAME = 64
_QUOTES = ('"', "'", "`")
_BARE = re.compile(r"""[^\s"'`,;&|<>(){}\[\]\\]{4,4096}""")
_PARTNERS = (
    *("host", "hostaddr", "server", "dbname", "database", "data source", "initial catalog", "user id", "uid", "user"),
    *("username", "sslmode", "port", "accountname", "endpoint"),
)
"""What stands beside a password in a connection string."""
_CONNECTION = re.compile(rf"(?i)\b(?:{'|'.join(_PARTNERS)}) ?= ?[^\s,()=]+(?:[ ;&\"']|\Z)")

_HEADER = re.compile(
    r"""authorization(?:["'`]\]?)?
    (?: [ \t]{0,3}(?:[:=]|=>)\s{0,12}
      | \s{0,12},\s{0,12}(?:["'`]value["'`]\s{0,3}:\s{0,3}(?:\{\s{0,12}["'`]string_?value["'`]\s{0,3}:\s{0,3})?)? )
    (?:\[\s{0,12}|-[ ])?[bfru]{0,2}["'`]?
    (?P<scheme>(?:bearer|basic|token|apikey|api-key|key)[ ]{1,3})?
    (?!AWS4-HMAC)(?P<value>[A-Za-z0-9+/=_.~:-]{8,2048})""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)bearer[ ]{1,3}(?P<value>[A-Za-z0-9+/=_.~-]{16,})")
_BASIC = re.compile(r"(?i)basic[ ]{1,3}(?P<value>[A-Za-z0-9+/]{8,}={0,2})")
_COOKIE = re.compile(r"""(?i)cookie["'`]?[ \t]{0,3}[:=]\s{0,12}(?:\[\s{0,12}|-[ ])?["'`]?(?P<value>[^\n"'`]{8,4096})""")
_COOKIE_VALUE = re.compile(r"=([^;,\s]{16,})")
_LOGIN = re.compile(
    r"""curl\b[^\n]{0,400}?[ ](?:-u|--user|--proxy-user)[ =]?["']?[^\s:"']{1,64}:(?P<value>[^\s"']{4,128})"""
)

_NAMES = (
    r"(?:passw(?:or)?d|passphrase|passcode|[_.-]pass|pwd|secret|token|credentials?|"
    r"(?:api|access|secret|private|account|auth|encryption|signing|master|subscription|storage|service|deploy|admin|"
    r"shared|app|application|client|server|session|jwt|hmac)[_. -]?key)"
    r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|test|staging|live|local|default|value|string))?"
)
SUSPECT = "|".join(
    (
        rf"""(?i:{_NAMES})(?:[\x00- "'`\]\x7f]*[:=!,>]| is | was )""",
        rf"--[A-Za-z-]*(?i:{_NAMES}) ",
        "(?i:authorization|bearer |cookie)|(?i:basic) +[A-Za-z0-9+/]{8}|curl",
    )
)
"""What a string must match (in RE2, on its padded form) before `spans` can find something."""


def spans(view: View) -> Iterator[Span]:
    """Values that are secret because of the name they go by."""
    yield from _assignments(view)
    yield from _headers(view)
    yield from _cookies(view)
    for place in view.places("curl"):
        login = _LOGIN.match(view.text, place)
        if login and is_value(login["value"], "password"):
            yield view.span(*login.span("value"), "password", 3)


def _assignments(view: View) -> Iterator[Span]:
    text = view.text
    for stem in _STEMS:
        for place in view.places(stem):
            noun = _NOUN.match(text, place)
            link = _LINK.match(text, noun.end()) if noun else None
            if not noun or not link:
                continue
            before = text[max(0, place - _LONGEST_NAME) : place]
            start = place - len(before) + len(before.rstrip(_NAME_CHARACTERS))
            name = text[start : noun.end()]
            promise = credential(name)
            if promise is None:
                continue
            if link["open"]:
                span = _quoted_value(view, link, name, promise)
            else:
                span = _bare_value(view, link, start, name, promise)
            if span:
                yield span


def _quoted_value(view: View, link: re.Match[str], name: str, promise: Credential) -> Span | None:
    """The whole literal that opens where the link ends, at whatever depth of escapes."""
    if link["element"] or (link["gap"] and not name.startswith("--")):
        return None
    if link["next"]:
        promise = promise._replace(strong=False)
    opening, content = view.raw_at(link.end() - 1), view.raw_at(link.end())
    end = literal_end(view.raw, opening, content)
    if end is None:
        bare = _BARE.match(view.text, link.end())
        end = view.raw_at(bare.end()) if bare else content
    shown = literal_text(view.raw, opening, content, end)
    if LABEL.fullmatch(shown) or shown.lstrip()[:1] in (",", "]", "}", ":"):
        return None
    if not plausible(shown, name.strip("-._$:"), promise, "quoted"):
        return None
    return Span(content, end, promise.rule, 1)


def _bare_value(view: View, link: re.Match[str], start: int, name: str, promise: Credential) -> Span | None:
    """The run of characters after `name=`, `name: `, `--name `, `name is ` or `<name>`."""
    text = view.text
    flag = name.startswith("--")
    if link["pair"] or link["next"] or link["list"] or link["close"] or (link["gap"] and not flag):
        return None
    found = _BARE.match(text, link.end())
    if not found or text[found.end() : found.end() + 1] in ("(", "[", "{"):
        return None
    value = found.group().rstrip(".,:")
    place: Place = "bare"
    if link["element"]:
        if text[start - 1 : start] != "<" or not text.startswith("</", found.end()):
            return None
        place = "quoted"
    elif flag and not value.isupper() and not value.startswith("-"):
        place = "flag"
    elif link.group() == "=" and (
        text[start - 1 : start] in _QUOTES
        or name.isupper()
        or _CONNECTION.search(text, max(0, start - 200), found.start() + 200)
    ):
        place = "environment"
    if not plausible(value, name.strip("-._$:"), promise, place):
        return None
    return view.span(found.start(), found.start() + len(value), promise.rule)


def _in_connection_string(text: str) -> bool:
    lower = text.lower()
    return any(f"{partner}=" in lower or f"{partner} =" in lower for partner in _PARTNERS) and bool(
        _CONNECTION.search(text)
    )


def _headers(view: View) -> Iterator[Span]:
    done = 0
    for place in view.places("authorization"):
        match = _HEADER.match(view.text, place) if place >= done else None
        if not match:
            continue
        done = match.end()
        value = match["value"].rstrip(".:")
        named = bool(match["scheme"]) and plausible(value, "token", Credential("token", True), "quoted")
        if named or looks_random(value):
            yield view.span(match.start("value"), match.start("value") + len(value), "authorization", 3)
    for scheme, form, holds in (("bearer ", _BEARER, looks_random), ("basic ", _BASIC, _is_login)):
        for place in view.places(scheme):
            match = form.match(view.text, place)
            if match and holds(match["value"].rstrip(".")):
                yield view.span(*match.span("value"), "authorization", 3)


def _is_login(value: str) -> bool:
    """True for the base64 of `user:password`."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded[1:] and decoded.isascii() and decoded.decode("ascii").isprintable()


def _cookies(view: View) -> Iterator[Span]:
    done = 0
    for place in view.places("cookie"):
        match = _COOKIE.match(view.text, place) if place >= done else None
        if not match:
            continue
        done = match.end()
        for value in _COOKIE_VALUE.finditer(match["value"]):
            if looks_random(value[1]):
                start = match.start("value") + value.start(1)
                yield view.span(start, start + len(value[1]), "cookie")
