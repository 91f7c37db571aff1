"""Credentials of the wire and the command line: authorization headers, cookies, logins given to commands."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from etl.redact.credentials import Credential, is_value, looks_random, plausible
from etl.redact.escapes import View
from etl.redact.spans import Span

_HEADER = re.compile(
    r"""authorization(?:["'`]\]?)?
    (?: [ \t]{0,3}(?:[:=]|=>)\s{0,12}
      | [ ]{1,3}(?=["'])
      | \s{0,12},\s{0,12}(?:["'`]value["'`]\s{0,3}:\s{0,3}(?:\{\s{0,12}["'`]string_?value["'`]\s{0,3}:\s{0,3})?)? )
    (?:\[\s{0,12}|-[ ])?[bfru]{0,2}["'`]?
    (?P<scheme>(?:bearer|basic|token|apikey|api-key|key)[ ]{1,3})?
    (?!AWS4-HMAC)(?P<value>[A-Za-z0-9+/=_.~:-]{8,2048})""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)bearer[ ]{1,3}(?:[\"'][ ]?[+.,][ ]?[\"'])?(?P<value>[A-Za-z0-9+/=_.~-]{16,})")
_BASIC = re.compile(r"(?i)basic[ ]{1,3}(?P<value>[A-Za-z0-9+/]{8,}={0,2})")
_COOKIE = re.compile(
    r"""(?i)cookie(?:["'`]?[ \t]{0,3}[:=]\s{0,12}(?:\[\s{0,12}|-[ ])?["'`]?"""
    r"""|["']\s{0,3},\s{0,3}(?:["']value["']\s{0,3}:\s{0,3})?["'])(?P<value>[^\n"'`{]{8,4096})"""
)
_JAR = re.compile(r"""(?i)cookies?["']?\]?\s{0,3}[:=]\s{0,3}\{(?P<body>[^{}]{0,4096})\}""")
_IN_JAR = re.compile(r"""["'][^"'\n]{1,64}["']\s{0,3}:\s{0,3}["'](?P<value>[^"'\s]{16,4096})["']""")
_COOKIE_VALUE = re.compile(r"=(?:s%3A)?([^;,\s]{16,})")
_LOGINS = {
    "curl": re.compile(
        r"""curl\b[^\n]{0,400}?[ ](?:-u|--user|--proxy-user)[ =]?["']?[^\s:"']{1,64}:(?P<value>[^\s"']{4,128})"""
    ),
    "sshpass": re.compile(r"""sshpass[ ]{1,3}-p[ ]?["']?(?P<value>[^\s"']{4,128})"""),
    "login": re.compile(r"""login\b[^\n|;&]{0,200}?[ ]-p[ ]["']?(?P<value>(?![0-9]+\b)[^\s"']{4,128})"""),
    "mysql": re.compile(r"""mysql(?:dump|admin)?\b[^\n|;&]{0,200}?[ ]-p["']?(?P<value>[^\s"'-][^\s"']{3,128})"""),
}
"""Commands that take a password as an option."""

_AUTH = re.compile(r"""(?i)_?auth["']?\s{0,3}[:=]\s{0,3}["']?(?P<value>[A-Za-z0-9+/]{8,}={0,2})""")
"""What npm, Docker and pip keep: a login in base64."""

SUSPECT = (
    r"(?i:authorization|bearer |cookie)|(?i:auth)[\x00- \"']*[:=]|(?i:basic) +[A-Za-z0-9+/]{8}"
    r"|curl[^\n]* (?:-u|--user|--proxy-user)|(?:sshpass|mysql|login)[^\n]* -p"
)
"""What a string must match (in RE2, on its padded form) before `spans` can find something."""


def spans(view: View) -> Iterator[Span]:
    """Values that are secret because of the header or the option they belong to."""
    yield from _headers(view)
    yield from _cookies(view)
    for command, form in _LOGINS.items():
        for place in view.places(command):
            login = form.match(view.text, place)
            if login and is_value(login["value"], "password"):
                yield view.span(*login.span("value"), "password", 3)


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
    for scheme, form, holds in (
        ("bearer ", _BEARER, looks_random),
        ("basic ", _BASIC, _is_login),
        ("auth", _AUTH, _is_login),
    ):
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
        jar = _JAR.match(view.text, place)
        for kept in _IN_JAR.finditer(view.text, *jar.span("body")) if jar else ():
            if looks_random(kept["value"]):
                yield view.span(*kept.span("value"), "cookie")
        match = _COOKIE.match(view.text, place) if place >= done else None
        if not match:
            continue
        done = match.end()
        for value in _COOKIE_VALUE.finditer(match["value"]):
            if looks_random(value[1]):
                start = match.start("value") + value.start(1)
                yield view.span(start, start + len(value[1]), "cookie")
