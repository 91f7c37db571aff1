"""Secrets of settings whose own name does not say it: salts, lists of keys, a `key` of what has secret keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from etl.redact.credentials import credential, is_value, looks_random
from etl.redact.escapes import View
from etl.redact.spans import Span

_SALT = re.compile(
    r"(?i)(?P<name>[A-Za-z0-9_]{0,40}(?:auth|logged_in|nonce|token|secure|password|passwd|cookie|session"
    r"|jwt|secret|crypt|encryption|api"
    r"|transfer|admin|app|key|hash(?:ids?)?|security|signed_cookie)_?(?:salt|pepper))[\"']?[ ]{0,3}(?:[:=,]|=>)[ ]{0,3}"
    r"(?:[\"'](?P<quoted>[^\"'\n]{12,256})[\"']|(?P<value>[^\s\"'`<>,;]{12,256}))"
)
_WORDPRESS = re.compile(
    r"""define\(\s{0,3}["'](?:SECURE_AUTH|AUTH|LOGGED_IN|NONCE)_(?:KEY"""
    r"""|SALT)["'],\s{0,12}["'](?P<value>[^"'\n]{16,128})["']"""
)
_KEYS = re.compile(
    r"(?i)(?P<name>(?:app|cookie|session|signing|secret|encryption|api|jwt"
    r"|previous)_?keys)[\"']?[ ]{0,3}[:=][ ]{0,3}\[?"
    r"(?P<body>[A-Za-z0-9+/=_,\"' -]{16,1024})"
)
_IN_KEYS = re.compile(r"[A-Za-z0-9+/_-]{16,100}={0,2}")
_SESSION_KEYS = re.compile(r"(?i)session\(\{[^{}]{0,200}?\bkeys:[ ]?\[(?P<body>[^\]]{16,400})\]")
_KEY = re.compile(
    r"""(?<![\w-])["']?[Kk](?:ey|EY)["']?[ ]{0,3}[:=][ ]{0,3}["']?(?P<value>[A-Za-z0-9+/_=-]{16,512})(?![\w./(:-])"""
)
_PARENT = re.compile(r"""["']?(?P<name>[A-Za-z_][\w-]{1,40})["']?\s{0,3}(?:[:=]|=>)?\s{0,3}\Z""")
_SECTION = re.compile(r"(?m)^[ \d\t|+>-]{0,12}\[{1,2}[\"']?(?P<name>[\w.-]{2,60})[\"']?\]{1,2}[ ]*$")
_ABOVE = re.compile(r"""[ \d\t|+>-]*["']?(?P<name>[A-Za-z_][\w-]{1,40})["']?:[ ]*""")
_SETTINGS = re.compile(
    r"(?i)[_-]?(?:settings?|options?|config(?:uration)?|params?|credentials?|service|client|provider)\Z"
)
_QUERY = re.compile(
    r"[?&;](?:amp;)?(?:app_?id|auth|api_?auth|ticket|jwt|hmac|sas|auth_?code|pat)=(?P<value>[A-Za-z0-9_.~%-]{16,2048})"
)
_SUFFIXES = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9_]{2,40}_(?:PAT|CREDS?|AUTH|SEED|SASL|SAS|HMAC|COOKIE|BEARER|PRIVKEY|SKEY"
    r"|CERTIFICATE|JWT|DSN_KEY"
    r"|pat|creds?|auth|seed|sas|hmac|cookie|bearer"
    r"|privkey)[\"']?[ ]{0,3}[:=][ ]{0,3}[\"']?(?P<value>[A-Za-z0-9_.~+/=:%-]{16,2048})"
)
_NEAR = 600
SUSPECT = (
    r"(?i:_?(?:salt|pepper)[\"']? *(?:[:=,]|=>) *[\"']?[^\s\"']{4}|define\( *[\"'][a-z_]+_(?:key|salt)[\"'],"
    r"|(?:app|cookie|session|signing|secret|encryption|api|jwt|previous)_?keys *[\"']? *[:=]|session\(\{[^{}]*keys:"
    r"|[{,\s]key *[\"']? *[:=] *[\"']?[a-z0-9+/_=-]{16}|[?&;](?:app_?id|auth|api_?auth|ticket|jwt|hmac|sas"
    r"|auth_?code|pat)=[a-z0-9_.~%-]{16})"
    r"|_(?i:pat|creds?|auth|seed|sasl|sas|hmac|cookie|bearer|privkey|skey|certificate|jwt"
    r"|dsn_key)[\"']? *[\"']? *[:=] *[\"']?[A-Za-z0-9_.~+/=:%-]{16}"
    r"|(?:^|\n|[\"'])(?i:key) *[\"']? *[:=] *[\"']?[A-Za-z0-9+/_=-]{16}"
)
"""What a string must match (in RE2, on its padded form) before `spans` can find something."""


def spans(view: View) -> Iterator[Span]:
    """Values of settings that are secret by what the setting belongs to."""
    text = view.text
    lower = text.lower()
    if "salt" in lower or "pepper" in lower:
        for match in _SALT.finditer(text):
            group = "quoted" if match["quoted"] else "value"
            if looks_random(match[group]) or (group == "quoted" and len(match[group]) >= 32):
                yield view.span(*match.span(group), "secret", 1)
    if "define(" in lower:
        for match in _WORDPRESS.finditer(text):
            if "unique phrase" not in match["value"]:
                yield view.span(*match.span("value"), "secret", 1)
    if "keys" in lower:
        for form in (_KEYS, _SESSION_KEYS):
            for match in form.finditer(text):
                for key in _IN_KEYS.finditer(text, *match.span("body")):
                    if looks_random(key.group()) and is_value(key.group(), ""):
                        yield view.span(*key.span(), "secret_key", 1)
    if "key" in lower:
        yield from _of_parents(view)
    for match in _SUFFIXES.finditer(text) if "_" in text else ():
        if looks_random(match["value"], strict=True) and "://" not in match["value"] and is_value(match["value"], ""):
            yield view.span(*match.span("value"), "secret", 1)
    if "=" in text:
        for match in _QUERY.finditer(text):
            if looks_random(match["value"]) and is_value(match["value"], ""):
                yield view.span(*match.span("value"), "url_token", 1)


def _of_parents(view: View) -> Iterator[Span]:
    """`"Jwt": {"Key": "…"}` and its like: what the key is of stands a level above."""
    text = view.text
    for match in _KEY.finditer(text):
        value = match["value"]
        if len(value) < 20 or not looks_random(value, strict=True) or not is_value(value, ""):
            continue
        name = _SETTINGS.sub("", _parent(text, match.start()))
        promise = credential(f"{name}_key") if name else None
        if promise and promise.strong:
            yield view.span(*match.span("value"), promise.rule, 1)


def _parent(text: str, start: int) -> str:
    """The name of the object, block or section that what begins at `start` is in; empty where there is none."""
    before = text[max(0, start - _NEAR) : start]
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        if before[at] == "}":
            depth += 1
        elif before[at] == "{":
            depth -= 1
            if depth < 0:
                named = _PARENT.search(before, 0, at)
                return named["name"] if named else ""
    line = before.rpartition("\n")[2]
    if not line.strip(" -\t0123456789|+>"):
        for above in reversed(before.split("\n")[:-1]):
            if above.strip() and len(above) - len(above.lstrip(" \t0123456789|+>")) < len(line.rstrip("-")):
                block = _ABOVE.fullmatch(above)
                return block["name"] if block else _section(before)
    return _section(before)


def _section(before: str) -> str:
    names = [match["name"] for match in _SECTION.finditer(before)]
    return names[-1].rpartition(".")[2] if names else ""
