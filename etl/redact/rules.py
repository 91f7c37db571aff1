"""The rules of our own: what conversation logs hold and a rule set for source code does not look for.

Credentials by name (`etl/redact/named.py`), on the wire (`etl/redact/headers.py`) and by where they stand in a command,
a file or a sentence (`etl/redact/positions.py`), keys of well-known services in any length (`etl/redact/services.py`),
passwords and signatures in URLs, and private keys however they are quoted. Each rule works on a `View`, starts from
literals that are cheap to find, and offers spans of the raw text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

import pyarrow as pa

from etl.redact import columns, commands, formats, headers, logins, named, nearby, positions, services
from etl.redact.credentials import is_value, looks_random
from etl.redact.escapes import View
from etl.redact.sieve import Sieve, matching
from etl.redact.spans import Span
from etl.redact.texts import UNCLEAR, Texts

VERSION = "secrets-3"
"""Changes when one of these rules does."""


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
_KEY_LINES = re.compile(
    r"(?:[\s>+|-]*(?:[0-9]{1,5}[ \t?:|]+)?(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/=]+(?=[ \t]*(?:[\n\"']|\Z))"
    r"|(?:Proc-Type|DEK-Info|Comment|Version)[^\n\"']{0,120}))*"
)
"""Lines of base64, numbered or marked as those of a patch, as far as they go."""
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{16}")
_STRUCTURE = ",:[]{}"
"""What follows a quote where a JSON literal has just ended: a piece that begins so is between literals, not in one."""
_BETWEEN_QUOTES = re.compile(r"""[^"']+""")


class _Kind(NamedTuple):
    """Rules that are asked together."""

    name: str
    suspect: str
    """What a string must match (in RE2, on its padded form) before `spans` can find something."""
    spans: Callable[[View], Iterator[Span]]
    sign: str = ""
    """Tells in less time which strings `suspect` is worth asking for."""


def suspects(texts: Texts) -> dict[int, frozenset[str] | None]:
    """The places of the texts that may hold something that a rule here finds, and of which kinds; None where anything
    may stand. A superset, found natively.
    """
    sifted = _SIEVE.matching(texts)
    unclear = dict.fromkeys(sifted.pop(_UNCLEAR, ()))
    found: defaultdict[int, set[str]] = defaultdict(set)
    for kind in _KINDS:
        places = sifted.get(kind.name, [])
        if kind.sign and places:
            few = texts.padded.take(pa.array(places, pa.int64()))
            places = [places[index] for index in matching(few, kind.suspect)]
        for place in places:
            found[place].add(kind.name)
    return {place: frozenset(names) for place, names in found.items()} | unclear


def spans(view: View, sought: Set[str] | None = None) -> Iterator[Span]:
    """What the rules of our own find in a view, in places of the raw text; those of the kinds `sought`, or all."""
    found: list[Span] = []
    for kind in _KINDS:
        if sought is None or kind.name in sought:
            offers = kind.spans(view)
            if kind.spans is nearby.spans:  # the last: it takes what nothing else has found
                offers = (span for span in offers if not any(map(span.overlaps, found)))
            found += offers
    yield from found


def _web_tokens(view: View) -> Iterator[Span]:
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


def _in_urls(view: View) -> Iterator[Span]:
    yield from _web_tokens(view)
    yield from _logins_in_urls(view)
    yield from _signatures(view)
    yield from _private_keys(view)


_WORDS = (
    r"(?i:pass|pwd|(?:^|[^a-z])pw|psk|secret|token(?:$|[^s]|s(?:$|[^\"_ ]| [^\":=]))|credential|[a-z0-9]{2}[_. -]?key)"
)
"""One of these is in whatever names a secret."""
_KINDS = (
    _Kind("positions", positions.SUSPECT, positions.spans),
    _Kind("services", services.SUSPECT, services.spans),
    _Kind("headers", headers.SUSPECT, headers.spans),
    _Kind("urls", r": */ */[^\n]*@|(?i:sig|signature|key)=|PRIVATE KEY|eyJ[A-Za-z0-9_-]+\.eyJ", _in_urls),
    _Kind("formats", formats.SUSPECT, formats.spans),
    _Kind("logins", logins.SUSPECT, logins.spans),
    _Kind("named", named.SUSPECT, named.spans, _WORDS),
    _Kind("columns", columns.SUSPECT, columns.spans, _WORDS),
    _Kind("commands", commands.SUSPECT, commands.spans, commands.SIGN),
    _Kind("nearby", nearby.SUSPECT, nearby.spans, nearby.SIGN),
)
_UNCLEAR = "unclear"
SIGNS = {kind.name: kind.sign or kind.suspect for kind in _KINDS} | {_UNCLEAR: UNCLEAR}
_SIEVE = Sieve(SIGNS)
