"""Secrets of settings whose own name does not say it: salts, lists of keys, a `key` of what has secret keys."""

from __future__ import annotations

from collections.abc import Iterator

from etl.redact.anchors import near
from etl.redact.credentials import credential, is_value, looks_random
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span

_SALT = regex(
    r"(?i)(?P<name>[A-Za-z0-9_]{0,40}(?:auth|logged_in|nonce|token|secure|password|passwd|cookie|session"
    r"|jwt|secret|crypt|encryption|api"
    r"|transfer|admin|app|key|hash(?:ids?)?|security|signed_cookie)_?(?:salt|pepper))[\"']?[ ]{0,3}(?:[:=,]|=>)[ ]{0,3}"
    r"(?:[\"'](?P<quoted>[^\"'\n]{12,256})[\"']|(?P<value>[^\s\"'`<>,;]{12,256}))"
)
_WORDPRESS = regex(
    r"""define\(\s{0,3}["'](?:SECURE_AUTH|AUTH|LOGGED_IN|NONCE)_(?:KEY"""
    r"""|SALT)["'],\s{0,12}["'](?P<value>[^"'\n]{16,128})["']"""
)
_KEYS = regex(
    r"(?i)(?P<name>(?:app|cookie|session|signing|secret|encryption|api|jwt"
    r"|previous)_?keys)[\"']?[ ]{0,3}[:=][ ]{0,3}\[?"
    r"(?P<body>[A-Za-z0-9+/=_,\"' -]{16,1024})"
)
_IN_KEYS = regex(r"[A-Za-z0-9+/_-]{16,100}={0,2}")
_SESSION_KEYS = regex(r"(?i)session\(\{[^{}]{0,200}?\bkeys:[ ]?\[(?P<body>[^\]]{16,400})\]")
_KEY = regex(
    r"""(?<![\w-])["']?[Kk](?:ey|EY)["']?[ ]{0,3}[:=][ ]{0,3}["']?(?P<value>[A-Za-z0-9+/_=-]{16,512})(?![\w./(:-])"""
)
_PARENT = regex(r"""["']?(?P<name>[A-Za-z_][\w-]{1,40})["']?\s{0,3}(?:[:=]|=>)?\s{0,3}\Z""")
_SECTION = regex(r"(?m)(?:^|[\"'])[ \d\t|+>-]{0,12}\[{1,2}[\"']?(?P<name>[\w.-]{2,60})[\"']?\]{1,2}[ ]*$")
_ABOVE = regex(r"""(?:\A|[\s"'])["']?(?P<name>[A-Za-z_][\w-]{1,40})["']?:[ ]*\Z""")
_MARGIN = " \t0123456789|+>-"
"""What stands before the lines of blocks, patches and views of files."""
_SETTINGS = regex(r"(?i)[_-]?(?:settings?|options?|config(?:uration)?|params?|credentials?|service|client|provider)\Z")
_QUERY = regex(
    r"[?&;](?:amp;)?(?:app_?id|auth|api_?auth|ticket|jwt|hmac|sas|auth_?code|pat)=(?P<value>[A-Za-z0-9_.~%-]{16,2048})"
)
_SUFFIXES = regex(
    r"(?<![A-Za-z0-9])[A-Za-z0-9_]{2,40}_(?:PAT|CREDS?|AUTH|SEED|SASL|SAS|HMAC|COOKIE|BEARER|PRIVKEY|SKEY"
    r"|CERTIFICATE|JWT|DSN_KEY"
    r"|pat|creds?|auth|seed|sas|hmac|cookie|bearer"
    r"|privkey)[\"']?[ ]{0,3}[:=][ ]{0,3}[\"']?(?P<value>[A-Za-z0-9_.~+/=:%-]{16,2048})"
)
_NEAR = 600


def _salts(view: View) -> Iterator[Span]:
    for match in near(view, ("salt", "pepper"), _SALT):
        group = "quoted" if match["quoted"] else "value"
        if looks_random(match[group]) or (group == "quoted" and len(match[group]) >= 32):
            yield view.span(*match.span(group), "secret", 1)


def _of_wordpress(view: View) -> Iterator[Span]:
    for match in _WORDPRESS.finditer(view.text):
        if "unique phrase" not in match["value"]:
            yield view.span(*match.span("value"), "secret", 1)


def _in_lists(view: View) -> Iterator[Span]:
    for form in (_KEYS, _SESSION_KEYS):
        for match in near(view, ("keys",), form, reach=1_200):
            for key in _IN_KEYS.finditer(view.text, *match.span("body")):
                padded = key.group().endswith("=") and len(key.group()) >= 20
                if (padded or looks_random(key.group())) and is_value(key.group(), ""):
                    yield view.span(*key.span(), "secret_key", 1)


def _by_suffix(view: View) -> Iterator[Span]:
    for match in _SUFFIXES.finditer(view.text):
        if looks_random(match["value"], strict=True) and "://" not in match["value"] and is_value(match["value"], ""):
            yield view.span(*match.span("value"), "secret", 1)


def _in_queries(view: View) -> Iterator[Span]:
    for match in _QUERY.finditer(view.text):
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
    """The name of the block, object or section that what begins at `start` is in; empty where there is none."""
    before = text[max(0, start - _NEAR) : start]
    return _block(before) or _object(before) or _section(before)


def _block(before: str) -> str:
    """Of YAML: the line above that begins further left."""
    *above, line = before.split("\n")
    if line.strip(_MARGIN):
        return ""
    for each in reversed(above):
        if each.strip() and len(each) - len(each.lstrip(_MARGIN)) < len(line.rstrip("-")):
            block = _ABOVE.search(each)
            return block["name"] if block else ""
    return ""


def _object(before: str) -> str:
    """Of JSON, HCL and code: what stands before the brace that is still open."""
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        depth += (before[at] == "}") - (before[at] == "{")
        if depth < 0:
            named = _PARENT.search(before, 0, at)
            return named["name"] if named else ""
    return ""


def _section(before: str) -> str:
    names = [match["name"] for match in _SECTION.finditer(before)]
    return names[-1].rpartition(".")[2] if names else ""


KINDS = (
    Kind("salts", r"(?i:(?:salt|pepper) *[\"']? *(?:[:=,]|=>) *[\"']?[^\s\"']{4})", _salts),
    Kind("wordpress", r"(?i:define\( *[\"'][a-z_]+_(?:key|salt) *[\"'],)", _of_wordpress),
    Kind(
        "lists of secrets",
        r"(?i:(?:app|cookie|session|signing|secret|encryption|api|jwt|previous)_?keys *[\"']? *[:=]"
        r"|session\(\{[^{}]*keys:)",
        _in_lists,
    ),
    Kind("keys of something", r"(?:^|[^\w-])(?i:key) *[\"']? *[:=] *[\"']?[A-Za-z0-9+/_=-]{16}", _of_parents),
    Kind(
        "suffixes",
        r"_(?i:pat|creds?|auth|seed|sasl|sas|hmac|cookie|bearer|privkey|skey|certificate|jwt|dsn_key)"
        r"[\"']? *[\"']? *[:=] *[\"']?[A-Za-z0-9_.~+/=:%-]{16}",
        _by_suffix,
    ),
    Kind(
        "queries",
        r"(?i:[?&;](?:amp;)?(?:app_?id|auth|api_?auth|ticket|jwt|hmac|sas|auth_?code|pat)=[a-z0-9_.~%-]{16})",
        _in_queries,
    ),
)
