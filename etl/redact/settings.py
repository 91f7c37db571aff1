"""Secrets of settings whose own name does not say it: salts, lists of keys, a `key` of what has secret keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from etl.redact.anchors import near
from etl.redact.credentials import credential, is_value, looks_chosen, looks_random, memorable, mixed
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.named import name_before
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
_PLURALS = ("keys", "tokens", "secrets", "passwords", "credentials", "stringdata")
_BLOCK = regex(r"""["']?\]{0,2}[ ]{0,3}(?:(?:[:=]|=>)[ ]{0,3})?(?P<open>[{\n])""")
"""What stands between the name of a block and what is in it."""
_MEMBER = regex(
    r"""(?:\A|[\n{,])[ \t0-9|+>-]{0,24}["']?(?P<name>[A-Za-z][\w.-]{0,40})["']?[ ]{0,3}(?:[:=]|=>)[ ]{0,3}"""
    r"""["']?(?P<value>[^\s"'`<>,{}\[\]]{6,512})["']?[ ]*(?=[,}\n"']|\Z)"""
)
_BLOCK_END = regex(r"[}\[]|\n[ \t0-9|+>-]{0,24}\n|\n(?=[A-Za-z][\w.-]*:[ ]*(?:\n|\Z))")
_NO_MEMBER = regex(
    r"(?i)(?:^|[_.-])(?:id|ids|name|url|uri|host|hash|sha\d*|sum|version|user(?:name)?|email|file|path"
    r"|pub(?:lic)?|type|kind|fingerprint|policy|length|min\w*|max\w*|algorithm|format|rules?|reset|field|commit|image|ref)\Z"
)
_OF_KEYS = regex(r"(?i)(?:api|access|secret|private|service|auth|provider|encryption|signing)_?keys\Z")
_GAP = regex(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|KEY|PAT|CREDENTIALS?)(?P<gap>[ ]{2,48}|\t{1,4})"
    r"(?P<value>[^\s\"'`<>=:|+-][^\s\"'`<>]{5,2047})(?=[ \r]*(?:\n|\Z|[\"']))",
    re.IGNORECASE,
)
_HEADED = regex(r"(?i)key {2,}value|name {2,}value|\n[-=]{3,}")
"""What stands above names and values."""
_KEY_ID = regex(
    r"""access[_-]?key[_-]?id["']?[ ]{0,3}(?:[:=]|=>)[ ]{0,3}["']?(?P<value>[A-Za-z0-9]{16,128})(?![\w./(-])""", 2
)


_KEY_ID_OF_AWS = regex(r"(?=[^0-9]*[0-9])[A-Z0-9]{20}")


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


def _in_blocks(view: View) -> Iterator[Span]:
    """Members of a block, an object or a section whose name says that all of them are credentials."""
    text = view.text
    for noun in _PLURALS:
        for place in view.places(noun):
            opened = _BLOCK.match(text, place + len(noun))
            name = name_before(text, place, place + len(noun))[1]
            promise = credential("secret" if noun == "stringdata" else name.rstrip("sS")) if opened else None
            if not opened or promise is None or (noun == "keys" and not _OF_KEYS.search(name)):
                continue
            start = opened.start("open")
            end = _BLOCK_END.search(text, opened.end(), start + _NEAR)
            for member in _MEMBER.finditer(text, start, end.start() + 1 if end else start + _NEAR):
                value = member["value"]
                if not is_value(value, member["name"]) or _NO_MEMBER.search(member["name"]):
                    continue
                if looks_random(value, strict=True) or (
                    noun in ("passwords", "stringdata") and (looks_chosen(value) or (memorable(value) and mixed(value)))
                ):
                    yield view.span(*member.span("value"), promise.rule, 1)


def _after_gaps(view: View) -> Iterator[Span]:
    """`NAME    value`, as shells print an environment."""
    text = view.text
    for match in near(view, ("pass", "pwd", "secret", "token", "key", "pat", "credential"), _GAP, reach=2_200):
        start, name = name_before(text, match.start(), match.start("gap"))
        value = match["value"]
        stands = (text[start - 1 : start] == "\n" and _HEADED.search(text, max(0, start - _NEAR), start)) or (
            name.isupper() and text[start - 1] in " \t\"'"
        )
        if not stands or not is_value(value, name):
            continue
        promise = credential(name)
        random = looks_random(value, strict=True)
        if (random and (promise or name.endswith("PAT"))) or (
            promise and promise.strong and (looks_chosen(value) or memorable(value))
        ):
            yield view.span(*match.span("value"), promise.rule if promise else "token", 1)


def _key_ids(view: View) -> Iterator[Span]:
    """The half of a pair of keys that is no secret alone, and is not to be told with the other."""
    for match in near(view, ("access",), _KEY_ID, reach=200):
        if (looks_random(match["value"]) or _KEY_ID_OF_AWS.fullmatch(match["value"])) and "EXAMPLE" not in match[
            "value"
        ]:
            yield view.span(*match.span("value"), "access_key", 1)


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
    Kind(
        "salts",
        r"(?i:(?:salt|pepper) *[\"']? *(?:[:=,]|=>) *[\"']?[^\s\"']{4})",
        _salts,
        closers(
            r"(?i:(?:auth|logged_in|nonce|token|secure|password|passwd|cookie|session|jwt|secret|crypt|encryption|api|transfer"
            r"|admin|app|key|hash(?:ids?)?|security|signed_cookie)_?(?:salt|pepper)[\"']? {0,3}(?:[:=,]|=>) {0,3}"
            r"(?:[\"'][\t !#-&(-~]{12}|[!#-&(-+\--:=?-_a-~]{12}))"
        ),
    ),
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
    Kind(
        "blocks of credentials",
        r"(?i:(?:(?:api|access|secret|private|service|auth|provider|encryption|signing)_?keys|tokens|secrets|passwords"
        r"|credentials|stringdata)[\"']?\]* *[\"']? *(?:[:=]|=>)? *(?:\{|\n))",
        _in_blocks,
    ),
    Kind(
        "gaps",
        r"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|KEY|PAT|CREDENTIALS?)(?:  |\t)[ \t]*[^\s\"'`<>]{6}"
        r"|(?:password|passwd|passphrase|pass|pwd|secret|token|key|pat|credentials?)(?:  |\t)[ \t]*[^\s\"'`<>]{6}",
        _after_gaps,
    ),
    Kind("ids of keys", r"(?i:access[_-]?key[_-]?id[\"']? *[\"']? *(?:[:=]|=>) *[\"']?[A-Za-z0-9]{16})", _key_ids),
)
