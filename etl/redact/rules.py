"""The few rules of our own: what conversation logs hold and a rule set for source code does not look for.

Credentials by name (`etl/redact/named.py`) and on the wire (`etl/redact/headers.py`), passwords and signatures in
URLs, private keys however they are quoted, and keys of well-known services in any length, because what people type
into a chat is cut, shortened and made up. Each rule works on a `View`, starts from literals that are cheap to find,
and offers spans of the raw text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from etl.redact import headers, named
from etl.redact.credentials import is_value, looks_random
from etl.redact.escapes import View
from etl.redact.spans import Span

VERSION = "secrets-1"
"""Changes when one of these rules does."""


class Service(NamedTuple):
    """Keys of one service: how they begin, what follows, and what must stand before them."""

    rule: str
    prefix: str
    body: str
    sign: str = "[A-Za-z0-9]{2}"
    """What follows at least, as the sifting of whole columns may ask for it."""


_SERVICES = (
    Service("anthropic_key", "sk-", r"ant-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"proj-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"svcacct-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"admin-[A-Za-z0-9_-]{12,}"),
    Service("openai_key", "sk-", r"[A-Za-z0-9]{20,}"),
    Service("openrouter_key", "sk-", r"or-[A-Za-z0-9_-]{12,}"),
    Service("langfuse_secret", "sk-", r"lf-[A-Za-z0-9-]{12,}"),
    Service("aws_access_key", "AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Service("aws_access_key", "ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Service("github_token", "ghp_", r"[A-Za-z0-9]{16,}"),
    Service("github_token", "gho_", r"[A-Za-z0-9]{16,}"),
    Service("github_token", "ghu_", r"[A-Za-z0-9]{16,}"),
    Service("github_token", "ghs_", r"[A-Za-z0-9]{16,}"),
    Service("github_token", "ghr_", r"[A-Za-z0-9]{16,}"),
    Service("github_token", "github_pat_", r"[A-Za-z0-9_]{16,}"),
    Service("gitlab_token", "glpat-", r"[A-Za-z0-9_.-]{12,}"),
    Service("gitlab_token", "gldt-", r"[A-Za-z0-9_.-]{12,}"),
    Service("gitlab_token", "glrt-", r"[A-Za-z0-9_.-]{12,}"),
    Service("slack_token", "xox", r"[abceoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", "[a-z][.-]"),
    Service("slack_token", "xapp-", r"[A-Za-z0-9-]{12,}"),
    Service("slack_webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_]{20,}"),
    Service("discord_webhook", "/webhooks/", r"[0-9]{15,20}/[A-Za-z0-9_-]{20,}"),
    Service("google_key", "AIza", r"[A-Za-z0-9_-]{30,}"),
    Service("google_key", "ya29.", r"[A-Za-z0-9_-]{16,}"),
    Service("google_key", "GOCSPX-", r"[A-Za-z0-9_-]{16,}"),
    Service("huggingface_token", "hf_", r"[A-Za-z0-9]{20,}"),
    Service("npm_token", "npm_", r"[A-Za-z0-9]{20,}"),
    Service("pypi_token", "pypi-", r"[A-Za-z0-9_-]{32,}"),
    Service("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}"),
    Service("stripe_key", "k_live_", r"[A-Za-z0-9]{10,}"),
    Service("stripe_key", "k_test_", r"[A-Za-z0-9]{10,}"),
    Service("stripe_key", "whsec_", r"[A-Za-z0-9+/=]{16,}"),
    Service("groq_key", "gsk_", r"[A-Za-z0-9]{20,}"),
    Service("xai_key", "xai-", r"[A-Za-z0-9]{20,}"),
    Service("langsmith_key", "lsv2_", r"(?:pt|sk)_[A-Za-z0-9_]{20,}"),
    Service("tavily_key", "tvly-", r"[A-Za-z0-9-]{16,}"),
    Service("nvidia_key", "nvapi-", r"[A-Za-z0-9_-]{20,}"),
    Service("perplexity_key", "pplx-", r"[A-Za-z0-9]{20,}"),
)
_BY_PREFIX = {
    prefix: [(service.rule, re.compile(service.body)) for service in group]
    for prefix, group in itertools.groupby(_SERVICES, lambda service: service.prefix)
}
_ADDRESSES = ("hooks.slack.com/", "/webhooks/")
"""Prefixes that only lead to the secret and are no part of it."""
_INNER = ("k_live_", "k_test_")
"""Prefixes that come after a first letter (`sk_live_`, `rk_test_`)."""
_BY_CHANCE = re.compile(r"[0-9]|[a-z][A-Z].*[a-z][A-Z].*[a-z][A-Z]")
_PLACEHOLDER = re.compile(r"(?i)x{5}|\.{3}|your")

_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")
_USERINFO = re.compile(
    r"""(?P<user>[^\s/?#"'`<>@:\\]{0,128})(?::(?P<password>[^\s/?#"'`<>\\]{1,256}))?@(?=[A-Za-z0-9\[._-])"""
)
_URL_VARIABLE = re.compile(r"[$%<{\[*].*|x+|\.+|passw(?:or)?d|pass|pwd")
_SIGNATURES = ("sig=", "signature=", "key=")
_SIGNATURE = re.compile(r"=(?P<value>[A-Za-z0-9%+/=_-]{16,2048})")
_PARAMETER = re.compile(r"(?:[?&;](?:amp;)?[A-Za-z_-]*|(?:^|[^A-Za-z]))\Z")

_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"[\sA-Za-z0-9+/=:,-]{0,16384}")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{16}")
_STRUCTURE = ",:[]{}"
"""What follows a quote where a JSON literal has just ended: a piece that begins so is between literals, not in one."""
_BETWEEN_QUOTES = re.compile(r"""[^"']+""")

SUSPECT = "|".join(
    (
        named.SUSPECT,
        headers.SUSPECT,
        r": */ */[^\n]*@|(?i:sig|signature|key)=|PRIVATE KEY|eyJ[A-Za-z0-9_-]+\.eyJ",
        *(re.escape(service.prefix) + service.sign for service in _SERVICES),
    )
)
"""What a string must match (in RE2, on its padded form) before any rule here can find something."""


def spans(view: View) -> Iterator[Span]:
    """What the rules of our own find in a view, in places of the raw text."""
    yield from named.spans(view)
    yield from headers.spans(view)
    yield from _services(view)
    yield from _logins_in_urls(view)
    yield from _signatures(view)
    yield from _private_keys(view)


def _services(view: View) -> Iterator[Span]:
    for prefix, bodies in _BY_PREFIX.items():
        done = 0
        for place in view.places(prefix, lower=False):
            if place < done or (view.text[place - 1 : place].isalnum() and prefix not in (*_INNER, *_ADDRESSES)):
                continue
            for rule, body in bodies:
                match = body.match(view.text, place + len(prefix))
                if not match:
                    continue
                done = match.end()
                if _BY_CHANCE.search(match.group()) and not _PLACEHOLDER.search(match.group()):
                    start = match.start() if prefix in _ADDRESSES else place - (prefix in _INNER)
                    yield view.span(start, match.end(), rule, 3)
    if "eyJ" in view.text:
        for match in _JWT.finditer(view.text):
            yield view.span(*match.span(), "jwt", 3)


def _logins_in_urls(view: View) -> Iterator[Span]:
    """`scheme://user:password@host`, and a token in place of the user."""
    for place in view.places("://"):
        match = _USERINFO.match(view.text, place + 3)
        if not match or view.text.startswith("sha256:", match.end()):
            continue
        user, password = match["user"], match["password"]
        if "=" not in user and looks_random(user):
            yield view.span(*match.span("user"), "url_token", 3)
        if password and not _URL_VARIABLE.fullmatch(password.lower()):
            yield view.span(*match.span("password"), "url_password", 3)


def _signatures(view: View) -> Iterator[Span]:
    """`?sig=…`, `&X-Amz-Signature=…`, `&key=…`: whoever has the URL has the access."""
    for name in _SIGNATURES:
        done = 0
        for place in view.places(name):
            if place < done:
                continue
            before = _PARAMETER.search(view.text[max(0, place - 24) : place])
            match = _SIGNATURE.match(view.text, place + len(name) - 1) if before else None
            if not match or not before:
                continue
            done = match.end()
            in_query = before.group()[:1] in ("?", "&", ";")
            if (
                (in_query or name == "signature=")
                and any(map(str.isdigit, match["value"]))
                and is_value(match["value"], "")
            ):
                yield view.span(*match.span("value"), "url_signature", 3)


def _private_keys(view: View) -> Iterator[Span]:
    """The block as one span; piece by piece where quotes divide it; all lines of base64 where its end is missing."""
    text, done = view.text, 0
    for place in view.places("-----BEGIN ", lower=False):
        match = _PRIVATE_KEY.match(text, place) if place >= done else None
        if not match:
            continue
        begin = match.end()
        close = _PRIVATE_KEY_END.search(text, begin, begin + (1 << 14))
        lines = _KEY_LINES.match(text, begin)
        end = close.start() if close else lines.end() if lines else begin
        done = end
        if not _KEY_BODY.search(text, begin, end):
            continue
        if close and '"' not in text[begin:end]:
            yield view.span(place, close.end(), "private_key", 3)
            continue
        for piece in _BETWEEN_QUOTES.finditer(text, begin, end):
            body = piece.group().strip()
            if _KEY_BODY.search(body) and body[0] not in _STRUCTURE:
                start = text.index(body, piece.start())
                yield view.span(start, start + len(body), "private_key", 3)
