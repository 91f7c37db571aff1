"""Secrets that programs print: passwords they have made, tokens they were asked for, codes for a second factor.

What a line says before the value, or the command that was typed above it, tells what it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from etl.redact.anchors import near
from etl.redact.credentials import is_value, looks_chosen, looks_random, memorable
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span


class Print(NamedTuple):
    """A form of output with the value in it."""

    marks: tuple[str, ...]
    """In lower case: one of them is in every match."""
    form: re.Pattern[str]
    sign: str
    """What a string must match (in RE2, on its padded form) before the form can match."""
    rule: str
    test: Literal["any", "memorable", "chosen", "shown"] = "any"


_LONGEST = 5_000
"""Characters of a match."""
_LINE_END = r"(?=[\"'`]{0,2}[ \t\r]*(?:\n|\Z|[\"'`]))"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SEED = r"(?-i:[A-Z2-7]{16,64}|(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}|[a-z2-7]{32}|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})"
_SHOWING = (
    r"(?:\b(?:cat|less|head|more|type|bat)[ ][^\n|;&]{0,80}(?:passw|secret|token|api_?key|credential)[^\n|;&]{0,40}"
    r"|argocd admin initial-password[^\n]*|(?:kubectl|oc)[ ][^\n]{0,160}(?:secret|token"
    r"|passw)[^\n]{0,160}(?:base64 (?:-d|-D|--decode)"
    r"|base64decode[^\n]*|create token[^\n]*)|kubectl create token [^\n]*|[\w-]+ auth[: ](?:token"
    r"|print-access-token|print-identity-token)"
    r"[^\n]{0,60}|[\w-]+ auth application-default print-access-token|pass (?:show )?[\w./-]+/[\w./-]+"
    r"|op read [^\n]{4,120}"
    r"|vault (?:kv get|read) [^\n]{0,80}-field[= ][^\n]{0,80}|(?:aws|az|gcloud|doppler|infisical|chamber|bw"
    r"|lpass|gopass)[ ]"
    r"[^\n]{0,60}(?:secret|passw|get-parameter|token)[^\n]{0,200}|heroku config:get [^\n]*(?:SECRET|KEY"
    r"|TOKEN|PASS)[^\n]*"
    r"|(?:echo[ ][\"']?\$\{?|printenv[ ])\w*(?:PASS(?:WORD|WD|PHRASE)?|SECRET(?:_ACCESS)?(?:_KEY)?|TOKEN"
    r"|API_?KEY|PWD)\}?[\"']?"
    r"|openssl rand [^\n]{0,40}|pwgen[^\n]{0,30}"
    r"|security find-(?:generic|internet)-password[^\n]*-w[^\n]*|secret-tool lookup[^\n]*|terraform output -raw [^\n]*"
    r"(?:pass|secret|token|key)[^\n]*|pulumi config get [^\n]*(?:[Pp]ass|[Ss]ecret|[Tt]oken|[Kk]ey)[^\n]*"
    r"|apg[ ][^\n]{0,30}"
    r"|consul acl [^\n]*|step crypto rand[^\n]*|xkcdpass[^\n]{0,20}|diceware[^\n]{0,20})"
)
"""Commands that print a secret and nothing else."""
_SHOWING_SIGN = (
    r"(?i:(?:cat|less|head|more|type|bat) [^\n]*(?:passw|secret|token|api_?key|credential)[^\n]*\n"
    r"|argocd admin|base64 (?:-d|--decode)|base64decode"
    r"|create token|auth[: ](?:token|print)|print-access-token|pass (?:show )?[a-z0-9_.]+/|op read "
    r"|-field[= ]|(?:aws|az|gcloud|doppler"
    r"|infisical|chamber|bw|lpass|gopass) [^\n]*(?:secret|passw|get-parameter|token)[^\n]*\n|config:get"
    r"|echo [\"']?\$\{?[a-z0-9_]*(?:pass|secret"
    r"|token|api_?key|pwd)|printenv |openssl rand|pwgen|find-(?:generic|internet)-pass|secret-tool"
    r"|output -raw|pulumi config get|apg -"
    r"|crypto rand|xkcdpass|diceware)"
)
_PRINTS = (
    Print(
        ("password",),
        regex(r"(?i)password[^\n:]{0,60} for [^\n]{1,100}?:[ \n]{1,8}(?P<value>[^\s\"'`]{6,64})" + _LINE_END),
        r"(?i:password[^\n]* for [^\n]*:\s)",
        "password",
        "memorable",
    ),
    Print(
        ("password",),
        regex(r"(?i)(?:password[^\n]{0,120}\n{1,2}|)[ ]{0,8}New value:[ ](?P<value>[^\s\"'`]{6,64})" + _LINE_END),
        r"(?i:new value: )",
        "password",
        "chosen",
    ),
    Print(
        ("password",),
        regex(
            r"(?i)(?:following|this|generated|new|initial|temporary|one-time|admin|default)[ ](?:\w+[ ]){0,2}password\b"
            r"[^\n]{0,60}?(?::|is)?[ ]?\n{1,3}[ >|*\"'`]{0,8}(?P<value>[^\s\"'`]{8,64})" + _LINE_END
        ),
        r"(?i:(?:following|this|generated|new|initial|temporary|one-time|admin|default) [^\n]*password[^\n]*\n)",
        "password",
        "shown",
    ),
    Print(
        ("password",),
        regex(
            r"(?i)password(?:[ ]\([^()\n]{1,40}\))?(?:[ ](?:is|was|has been))?[ ](?:generated|created"
            r"|assigned|issued|set)"
            r"[^\n:=]{0,80}[:=][ ]{0,4}[\"'`]?(?P<value>[^\s\"'`,;]{6,64})"
        ),
        r"(?i:password[^\n]*(?:generated|created|assigned|issued|set)[^\n]*[:=] )",
        "password",
        "memorable",
    ),
    Print(
        ("::server:", "::node:"),
        regex(r"\bK10[0-9a-f]{64}::(?:server|node):[0-9a-zA-Z.]{16,64}"),
        r"K10[0-9a-f]{64}::",
        "token",
    ),
    Print(
        ("secret id", "secretid", "secret_id"),
        regex(rf"(?i)secret[ _]?id[\"']?[ ]{{0,8}}[:=|]{{0,1}}[ \t]{{0,8}}[\"']?(?P<value>{_UUID})"),
        r"(?i:secret[ _]?id *[\"']? *[:=|]?[ \t]*[\"']?[0-9a-f]{8}-)",
        "token",
    ),
    Print(
        ("totp", "otp", "2fa", "mfa", "two-factor", "two factor", "authenticator", "oathtool", "second factor"),
        regex(
            rf"(?i)(?:\b[th]?otp|2fa|mfa|two[- ]factor|authenticator|oathtool"
            rf"|second factor)(?![^\n]{{0,90}}recovery)[^\n]{{0,90}}?[:=\"'` ]"
            rf"(?P<value>(?=[A-Za-z ]{{0,80}}[2-7]){_SEED})(?![A-Za-z0-9-])"
        ),
        r"(?i:otp|2fa|mfa|two[- ]factor|authenticator|oathtool|second factor)[^\n]*(?:[A-Z2-7]{16}"
        r"|[a-z2-7]{32}|(?:[A-Z2-7]{4}[ -]){3}"
        r"|(?:[a-z2-7]{4}[ -]){3})",
        "otp_seed",
    ),
    Print(
        ("token", "secret", "key", "password"),
        regex(rf"(?m)(?:^|[$#>%][ ]|\n){_SHOWING}\n(?:\w+=)?[\"'`]?(?P<value>[^\s\"'`<>]{{8,4096}}){_LINE_END}"),
        _SHOWING_SIGN,
        "secret",
        "shown",
    ),
    Print(
        ("rand ", "pwgen", "apg", "xkcdpass", "diceware", "auth:", "auth ", "pass "),
        regex(rf"(?m)(?:^|[$#>%][ ]|\n){_SHOWING}\n(?:\w+=)?[\"'`]?(?P<value>[^\s\"'`<>]{{8,4096}}){_LINE_END}"),
        _SHOWING_SIGN,
        "secret",
        "shown",
    ),
    Print(
        ("random_password",),
        regex(r"random_password[\s\S]{0,1500}?[\"']?\bresult[\"']?[ ]?[:=][ ]?[\"'](?P<value>[^\"'\n(]{6,256})[\"']"),
        r"random_password",
        "password",
    ),
)
_CODES = regex(
    r"(?i)(?:backup|recovery|scratch|emergency|one-time|rescue)[ _-]?(?:codes?|keys?)[^\n]{0,80}?[:\[=(\n]\s{0,8}"
    r"(?P<body>(?:[\s\d.)*\"',>|-]{0,12}?(?:[a-zA-Z0-9]{4,6}(?:-[a-zA-Z0-9]{4,6}){1,4}|[0-9a-f]{8,12}"
    r"|[a-z0-9]{10,12}|\d{6,10})"
    r"(?=[\s\"',\])|]|\Z)){1,20})"
)
_CODE = regex(
    r"[a-zA-Z0-9]{4,6}(?:-[a-zA-Z0-9]{4,6}){1,4}|(?<![\w-])(?:[0-9a-f]{8,12}|[a-z0-9]{10,12}|\d{6,10})(?![\w-])"
)


def _printed(printed: Print, view: View) -> Iterator[Span]:
    group = "value" if "value" in printed.form.groupindex else 0
    for match in near(view, printed.marks, printed.form, reach=_LONGEST):
        value = match[group].rstrip(".,")
        if _holds(printed.test, value):
            yield view.span(match.start(group), match.start(group) + len(value), printed.rule, 1)


def _codes(view: View) -> Iterator[Span]:
    for codes in _CODES.finditer(view.text):
        for code in _CODE.finditer(view.text, *codes.span("body")):
            if any(map(str.isdigit, code.group())):
                yield view.span(*code.span(), "recovery_code", 1)


def _holds(test: str, value: str) -> bool:
    if test == "any":
        return True
    if not is_value(value, "") or "/" in value[:1]:
        return False
    if test == "memorable":
        return memorable(value)
    if test == "chosen":
        return looks_chosen(value) or looks_random(value)
    return looks_chosen(value) or looks_random(value) or (memorable(value) and "." not in value and "/" not in value)


KINDS = (
    *(
        Kind(f"printed {place}", printed.sign, functools.partial(_printed, printed))
        for place, printed in enumerate(_PRINTS)
    ),
    Kind("recovery codes", r"(?i:(?:backup|recovery|scratch|emergency|one-time|rescue)[ _-]?(?:code|key))", _codes),
)
