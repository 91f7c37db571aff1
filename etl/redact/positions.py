"""Credentials by where they stand: options and lines of commands, SQL, files of logins, table rows, sentences.

Nothing names these values but the form of the line they are in. Each rule starts from a literal that is cheap to find.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from etl.redact.credentials import credential, is_value, looks_random, memorable, mixed
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span

_VALUE = r"""["']?(?P<value>[^\s"'`<>]{4,128})"""
_BACK = 240
"""Characters before a literal that a rule which looks back may ask for."""


class Position(NamedTuple):
    """A form that is matched where a literal stands, with the value in it."""

    literal: str
    """In lower case."""
    form: re.Pattern[str]
    rule: str
    suspect: str
    """What a string must match (in RE2, on its padded form) before this can find something."""
    test: str = "value"
    """value: no placeholder; mixed: digits in it too; random: a long run; letters of both cases and digits: key."""
    back: bool = False
    """The form ends where the literal begins."""


def _form(pattern: str) -> re.Pattern[str]:
    return regex(pattern, re.IGNORECASE | re.DOTALL)


_OPTION = r"(?:-a|--pass)"
_COOKIE_LINE = r"[ \t]/\S*[ \t](?:true|false)[ \t][0-9]{1,12}[ \t]\S{1,64}[ \t](?P<value>[^\s\"']{12,4096})"
_COOKIE_LINE_SIGN = r"(?:TRUE|FALSE)[ \t]+/[^ \t]*[ \t]+(?:TRUE|FALSE)"
_COOKIE_OBJECT = (
    r"""["']name["']\s{0,3}:\s{0,3}["'][^"']{1,64}["']\s{0,3},\s{0,8}["']value["']\s{0,3}:\s{0,3}"""
    r"""["'](?P<value>[^"'\s]{12,4096})["'][^{}]{0,120}["']\Z"""
)
_PIPED = r"""(?:echo|printf)[ ](?:-\w+ )?["']?[^\s:"']{1,64}:(?P<value>[^\s"']{4,128})["']?[ ]?\|[ ]?(?:sudo )?\Z"""
_AWS_PAIR = r"(?:AK|AS)IA[A-Z0-9]{16}.{1,160}?(?<![A-Za-z0-9/+=])(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
_AWS_SIGN = r"A[KS]IA[A-Z0-9]{2}"
_TWILIO_PAIR = r"""AC[0-9a-f]{32}["'\s,:/]{1,8}(?:auth_?token["'\s,:=]{1,6})?(?P<value>[0-9a-f]{32})(?![0-9a-f])"""
_UPPER = r"(?P<name>[A-Z][A-Z0-9_]{3,63})\Z"
_SIGN_IN = (
    r"(?:log-?in|sign-?in|auth\w*|passw[\w-]*|passphrase[\w-]*|kinit|secrets?|"
    r"tokens?|unlock|insert|stdin|sudo[ ]-s\w*)(?:[ ][^\s<|;&]{1,40}){0,4}[ ]?\Z"
)
_UPPER_SIGN = r" --(?:body|value)[ =]"
_SQL = r"password(?:[ ]?=[ ]?|\([ ]?|[ ])[NEU]?'(?P<value>(?!\))[^'\n]{4,128})'"
_SQL_SIGN = r"(?i:password[ (]*(?:= *)?[NEU]? *')"
_POWERSHELL = r"""convertto-securestring[ ](?:-string[ ])?["'](?P<value>[^"'\n]{4,128})["']"""
_NETRC = r"machine[ ]\S{1,128}\s{1,8}login[ ]\S{1,128}\s{1,8}password[ ]"
_POSITIONS = (
    Position("pass", _form(r"pass(?:word)?[ =:]{1,2}" + _VALUE), "password", r"(?i:storepass|keypass)", "option"),
    Position(
        "redis-cli", _form(rf"redis-cli\b[^\n|;&]{{0,200}}?[ ]{_OPTION}[ ]{_VALUE}"), "password",
        rf"(?i:redis-cli[^\n]* {_OPTION} )",
    ),
    Position("/user:", _form(r"/user:\S{1,80}[ ](?!/)" + _VALUE), "password", r"(?i:/user:)", "mixed"),
    Position(
        "/user:", _form(r"net use [^\n]{0,160}[ ](?!/)(?P<value>[^\s\\:/]{6,64})[ ]\Z"), "password", r"(?i:/user:)",
        "mixed", back=True,
    ),
    Position("pass ", _form(r"pass[ ]" + _VALUE), "password", r"(?i:user [^\n]*[\n ]+pass )", "ftp"),
    Position("chpasswd", _form(_PIPED), "password", r"(?i:chpasswd)", back=True),
    Position("convertto-securestring", _form(_POWERSHELL), "password", r"(?i:convertto-securestring)"),
    Position("machine ", _form(_NETRC + _VALUE), "password", r"(?i:machine [^ ]+\s+login )"),
    Position(
        "identified", _form(r"identified[ ](?:with[ ]\S{1,40}[ ])?(?:by|"
r"as)[ ](?:values[ ])?(?:password[ ])?(?:['\"](?P<quoted>[^'\"\n]{4,128})['\"]|(?P<value>[A-Za-z][\w#$]{5,64}))"),
        "password", r"(?i:identified (?:with|by))", "oracle",
    ),
    Position("password", _form(_SQL), "password", _SQL_SIGN, "sql"),
    Position("<<<", _form(_SIGN_IN), "secret", r"<<<", "here", back=True),
    Position(
        "<<<", _form(r"(?P<name>[A-Za-z][A-Za-z0-9_]{3,63})(?:[ ][^\s<]{1,40}){0,3}[ ]?\Z"), "secret", r"<<<",
        "after", back=True,
    ),
    Position(" --body", _form(_UPPER), "secret", _UPPER_SIGN, "after", back=True),
    Position(" --value", _form(_UPPER), "secret", _UPPER_SIGN, "after", back=True),
    Position("ac", _form(_TWILIO_PAIR), "twilio_token", r"AC[0-9a-f]{6}", "mixed"),
    Position("akia", _form(_AWS_PAIR), "aws_secret_key", _AWS_SIGN, "key"),
    Position("asia", _form(_AWS_PAIR), "aws_secret_key", _AWS_SIGN, "key"),
    Position("true", _form("true" + _COOKIE_LINE), "cookie", _COOKIE_LINE_SIGN, "random"),
    Position("false", _form("false" + _COOKIE_LINE), "cookie", _COOKIE_LINE_SIGN, "random"),
    Position("httponly", _form(_COOKIE_OBJECT), "cookie", r"(?i:httponly)", "random", back=True),
    Position("samesite", _form(_COOKIE_OBJECT), "cookie", r"(?i:samesite)", "random", back=True),
)  # fmt: skip
_HERE = regex(r"""<<<[ ]?["']?(?P<value>[^\s"'`<>]{6,512})""")
_AFTER = regex(r"""(?:<<<|--?[a-z]{4,5})[ =]?["']?(?P<value>[^\s"'`<>]{6,512})""")


def _at(position: Position, view: View) -> Iterator[Span]:
    text = view.text
    for place in view.places(position.literal):
        if position.back:
            match = position.form.search(text, max(0, place - _BACK), place)
        else:
            match = position.form.match(text, place)
        if not match:
            continue
        found: re.Match[str] | None = match
        if position.test in ("after", "here"):
            follows = _AFTER if position.test == "after" else _HERE
            found = follows.match(text, place + text[place : place + 1].isspace())
        if found and _holds(position.test, text, match, found):
            group = "quoted" if "quoted" in found.groupdict() and found["quoted"] else "value"
            yield view.span(*found.span(group), position.rule, 1)


def _holds(test: str, text: str, match: re.Match[str], found: re.Match[str]) -> bool:
    """Whether a value is one, and its surroundings are what the rule asks for."""
    quoted = found.groupdict().get("quoted")
    value = quoted or found["value"]
    if not is_value(value, ""):
        return False
    if test == "oracle":
        return bool(quoted) or memorable(value)
    before = text[max(0, match.start() - _BACK) : match.start()].lower()
    if test == "option":
        return before.endswith(("-store", "-key", "-src", "-dest", "-deststore", "-srcstore"))
    if test == "ftp":
        return bool(re.search(r"user \S+[ \r]?\n\Z", before))
    if test == "sql":
        return bool(re.search(r"\b(?:create|alter|set|grant|role|user)\b", before))
    if test == "after":
        name = credential(match["name"])
        return name is not None and (name.strong or looks_random(value))
    if test == "here":
        return memorable(value) or looks_random(value)
    if test == "key":
        return any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))
    if test == "random":
        return looks_random(value)
    return mixed(value) if test == "mixed" else True


KINDS = tuple(
    Kind(f"position {place}", position.suspect, functools.partial(_at, position))
    for place, position in enumerate(_POSITIONS)
)
