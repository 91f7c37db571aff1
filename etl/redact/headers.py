"""Credentials of the wire and the command line: authorization headers, cookies, logins given to commands."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from etl.redact.anchors import near, starting
from etl.redact.credentials import Credential, is_value, looks_random, mixed, plausible
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.spans import Span

_HEADER = regex(
    r"""authorization(?:["'`]\]?)?
    (?: [ \t]{0,3}(?:[:=]|=>)\s{0,12}
      | [ ]{1,3}(?=["'])
      | \s{0,12},\s{0,12}(?:["'`]value["'`]\s{0,3}:\s{0,3}(?:\{\s{0,12}["'`]string_?value["'`]\s{0,3}:\s{0,3})?)? )
    (?:\[\s{0,12}|-[ ])?(?:[bfru]{0,2}["'`])?
    (?P<scheme>(?!digest|aws4|is\b|header|must|should|required)[A-Za-z][A-Za-z0-9-]{1,24}[ ]{1,3}(?:token[ ]?=[ ]?)?)?
    (?!AWS4-HMAC|digest\b)(?P<value>[A-Za-z0-9+/=_.~:-]{8,2048})""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = regex(r"(?i)bearer[ ]{1,3}(?:[\"'][ ]?[+.,][ ]?[\"'])?(?P<value>(?!--)[A-Za-z0-9+/_.~-]{16,}={0,3})")
_BASIC = regex(r"(?i)basic[ ]{1,3}(?P<value>[A-Za-z0-9+/]{8,}={0,2})")
_COOKIE = regex(
    r"""(?i)cookie(?:["'`]?[ \t]{0,3}[:=]\s{0,12}(?:\[\s{0,12}|-[ ])?["'`]?"""
    r"""|["']\s{0,3},\s{0,3}(?:["']value["']\s{0,3}:\s{0,3})?["'])(?P<value>[^\n"'`{]{8,4096})"""
)
_JAR = regex(
    r"""(?i)cookies?(?:["']?\]?\s{0,3}[:=]\s{0,3}|[ _]?jar:?[ ]?|"""
    r"""[ ]?[:=]?[ ]?dict\(|s?\(\[?)\s{0,3}\{?(?P<body>[^{}]{0,4096})"""
)
_SESSION_COOKIE = regex(
    r"""(?i)(?<![\w.-])(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|laravel_session|ci_session"""
    r"""|_[a-z][a-z_]{2,24}_session|\.aspxauth|\.aspnetcore\.[a-z.]{4,40}|wordpress_logged_in_[0-9a-f]{32})="""
    r"""(?:s%3A|s:)?(?P<value>[A-Za-z0-9_.~+/%=-]{20,4096})"""
)
_SET = regex(
    r"""(?i)(?:cookies?|jar)(?:\(\))?(?:\.set\w*|\.put|\.add|\.create)?(?:\(|\[)(?:request|response|"""
    r"""res|req)?,?[ ]?["'](?P<name>[\w.-]{1,64})["'](?:\][ ]?=|,)[ ]?["'](?P<value>[^"'\s]{12,4096})["']"""
)
_NAMED_SESSION = regex(
    r"""(?i)["']?name["']?[ ]?:[ ]?["'](?P<name>[\w.-]*(?:sess|sid|auth|token|login|csrf|"""
    r"""jwt)[\w.-]*)["'],\s{0,8}["']?value["']?[ ]?:[ ]?["'](?P<value>[^"'\s]{16,4096})["']"""
)
_CURL_COOKIE = regex(r"""(?i)(?:curl|http)\b[^\n]{0,400}?[ ](?:-b|--cookie)[ =]["']?(?P<value>[^\n"'`]{8,4096})""")
_IN_JAR = regex(r"""["']?(?P<name>[\w.-]{1,64})["']?\s{0,3}[:=]\s{0,3}["'](?P<value>[^"'\s]{16,4096})["']""")
_STORED = regex(
    r"""(?i)\bcookies["']?[ ]?[:=][ ]?\[[^\]]{0,400}?["']?name["']?[ ]?:[ ]?["'](?P<name>[\w.-]{1,64})"""
    r"""["'],\s{0,8}["']?value["']?[ ]?:[ ]?["'](?P<value>[^"'\s]{12,4096})["']"""
)
_COOKIE_VALUE = regex(r"(?P<name>[\w.-]{0,64})=(?:s%3A)?(?P<value>[^;,\s]{12,})")
_SESSION = regex(
    r"(?i)sess|sid\Z|auth|token|login|jwt|csrf|xsrf|remember|identity|secure|ticket|sso|^id\Z|li_at|credential"
)
"""Names of cookies that open something."""
_X_HEADER = regex(
    r"""(?i)(?<![\w-])x-(?!request|trace|correlation|amz-(?:id|request)|amzn|github-request)[a-z-]{0,40}?(?:api|auth|token|key|"""
    r"""secret|session|credential|access|bot|pass(?:word)?|signature)[a-z-]{0,16}?(?<!-id)(?<!-version)(?<!-build)(?<!-commit)(?<!-data)"""
    r"""["'`]?[ ]?:[ ]{0,3}["'`]?(?P<value>[A-Za-z0-9_.~+/=-]{20,1024})(?=["'`\s,;\\]|\Z)"""
)
_SCHEMES = ("bearer", "basic", "token", "apikey", "api-key", "key")
_SETTING = regex(
    r"(?i)consent|theme|lang|locale|_ga|_gid|_gcl|utm|timezone|"
    r"\Atz\Z|banner|prefer|currency|country|region|variant|experiment|callback|redirect|return|next_?url|referr?er"
)
_SAYABLE = regex(r"(?i)(?:[a-z]+[-_.|])*[a-z]*[0-9]{0,3}")
_LOGINS = {
    "curl": regex(
        r"""curl\b[^\n]{0,400}?[ ](?:-[A-Za-z]{0,4}u|--user|"""
        r"""--proxy-user)[ =]?["']?[^\s:"']{1,64}:(?P<value>[^\s"']{4,128})"""
    ),
    "sshpass": regex(r"""sshpass[ ]{1,3}-p[ ]?["']?(?P<value>[^\s"']{4,128})"""),
    "login": regex(r"""login\b[^\n|;&]{0,200}?[ ]-p[ ]["']?(?P<value>(?![0-9]+\b)[^\s"']{4,128})"""),
    "mysql": regex(r"""mysql(?:dump|admin)?\b[^\n|;&]{0,200}?[ ]-p["']?(?P<value>[^\s"'-][^\s"']{3,128})"""),
}
"""Commands that take a password as an option."""

_AUTH = regex(r"""(?i)_?auth["']?\s{0,3}[:=]\s{0,3}["']?(?P<value>[A-Za-z0-9+/]{8,}={0,2})""")
"""What npm, Docker and pip keep: a login in base64."""


def _options(view: View) -> Iterator[Span]:
    """Passwords that commands are given as options."""
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
        if view.text[match.end() : match.end() + 1] == "(":
            continue
        named = bool(match["scheme"]) and plausible(value, "token", Credential("token", True), "quoted")
        if (named and (mixed(value) or len(value) > 20 or match["scheme"].strip().lower() in _SCHEMES)) or looks_random(
            value
        ):
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


def _named_for(view: View) -> Iterator[Span]:
    """Values of headers whose names say that they let in: `X-…-Api: …`."""
    for match in near(view, ("-h ", "x-"), _X_HEADER, reach=400):
        if looks_random(match["value"], strict=True) and is_value(match["value"], ""):
            yield view.span(*match.span("value"), "api_key", 2)


def _is_login(value: str) -> bool:
    """True for the base64 of `user:password`."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded[1:] and decoded.isascii() and decoded.decode("ascii").isprintable()


def _cookies(view: View) -> Iterator[Span]:
    text, done = view.text, 0
    for form, words in ((_SET, ("cookie", "jar")), (_NAMED_SESSION, ("name",)), (_STORED, ("cookies",))):
        for kept in starting(view, words, form):
            if _opens(kept["name"], kept["value"]):
                yield view.span(*kept.span("value"), "cookie")
    for place in view.places("curl"):
        sent = _CURL_COOKIE.match(text, place)
        if sent:
            yield from _cookies_of(view, *sent.span("value"))
    for place in view.places("cookie"):
        jar = _JAR.match(text, place)
        for kept in _IN_JAR.finditer(text, *jar.span("body")) if jar else ():
            if _opens(kept["name"], kept["value"]):
                yield view.span(*kept.span("value"), "cookie")
        match = _COOKIE.match(text, place) if place >= done else None
        if match:
            done = match.end()
            yield from _cookies_of(view, *match.span("value"))


def _sessions(view: View) -> Iterator[Span]:
    """Cookies whose names are those that frameworks give to sessions, wherever they stand."""
    for match in near(view, ("sess", "connect.sid", "auth"), _SESSION_COOKIE, reach=600):
        if looks_random(match["value"]) and is_value(match["value"], ""):
            yield view.span(*match.span("value"), "cookie", 1)


def _cookies_of(view: View, start: int, end: int) -> Iterator[Span]:
    for cookie in _COOKIE_VALUE.finditer(view.text, start, end):
        if _opens(cookie["name"], cookie["value"]):
            yield view.span(*cookie.span("value"), "cookie")


def _opens(name: str, value: str) -> bool:
    """Whether who has the cookie is let in: by its name, and whatever its name where its value is a long random one."""
    if _SETTING.search(name) or not is_value(value, name) or value.startswith(("http%3A", "https%3A", "%2F")):
        return False
    if _SESSION.search(name):
        return looks_random(value) or (len(value) >= 12 and not _SAYABLE.fullmatch(value))
    return len(value) >= 16 and looks_random(value)


KINDS = (
    Kind(
        "headers",
        r"(?i:authorization|bearer |auth[\x00- \"']*[:=]|basic +[a-z0-9+/]{8})",
        _headers,
    ),
    Kind(
        "cookies",
        r"(?i:cookie|jar(?:\.set|\.put|\[)|name[\"']?: ?[\"'][\w.-]*(?:sess|sid|auth|token|login|csrf|jwt))"
        r"|curl[^\n]* (?:-[A-Za-z]*b|--cookie)",
        _cookies,
        closers(
            r"(?i:(?:cookies?|jar)(?:\(\))?(?:\.set\w*|\.put|\.add|\.create)?(?:\(|\[)(?:request|response|res|req)?,?"
            r" ?[\"'][\w.-]{1,64}[\"'](?:\] ?=|,) ?[\"'][!#-&(-~]{12})",
            r"(?i:name[\"']? ?: ?[\"'][\w.-]*(?:sess|sid|auth|token|login|csrf|jwt)[\w.-]*[\"'],\s{0,8}"
            r"[\"']?value[\"']? ?: ?[\"'][!#-&(-~]{16})",
            r"(?i:cookies[\"']? ?[:=] ?\[[^\]]{0,400}name[\"']? ?: ?[\"'][\w.-]{1,64}[\"'],\s{0,8}"
            r"[\"']?value[\"']? ?: ?[\"'])",
            r"(?i:curl[^\n]{0,420} (?:-b|--cookie)[ =][\"']?[^\n\"'`]{0,4096}=[!-+\--:<-~]{12})",
            r"(?i:cookies?(?:[\"']?\]?\s{0,3}[:=]\s{0,3}|[ _]?jar:? ?| ?[:=]? ?dict\(|s?\(\[?)\s{0,3}\{?[^{}]*"
            r"[:=]\s{0,3}[\"'][!#-&(-~]{16})",
            r"(?i:cookie(?:[\"'`]?[ \t]{0,3}[:=]\s{0,12}(?:\[\s{0,12}|- )?[\"'`]?"
            r"|[\"']\s{0,3},\s{0,3}(?:[\"']value[\"']\s{0,3}:\s{0,3})?[\"'])[^\n\"'`{]*=[!-+\--:<-~]{12})",
        ),
    ),
    Kind(
        "sessions",
        r"(?i:(?:sess(?:ion)?_?(?:id)?|connect\.sid|aspxauth|aspnetcore\.[a-z.]*|logged_in_[0-9a-f]{32})=(?:s%3A|s:)?[a-z0-9_.~+/%=-]{16})",
        _sessions,
    ),
    Kind(
        "headers by name",
        r"(?i:(?:^|[^a-z0-9_-])x-[a-z-]*(?:api|auth|token|key|secret|session|credential|access|bot|pass"
        r"|signature)[a-z-]*[\"'`]? *[\"'`]? ?: *[\"'`]?[a-z0-9_.~+/=-]{20})",
        _named_for,
    ),
    Kind("options", r"curl[^\n]* (?:-[A-Za-z]*u|--user|--proxy-user)|(?:sshpass|mysql|login)[^\n]* -p", _options),
)
