"""The rules of our own: what conversation logs hold and a rule set for source code does not look for.

Credentials by name (`etl/redact/named.py`), on the wire (`etl/redact/headers.py`) and by where they stand in a command,
a file or a sentence (`etl/redact/positions.py`), keys of well-known services in any length (`etl/redact/services.py`),
passwords and signatures in URLs, and private keys however they are quoted; every module that `_KINDS` names adds its
`KINDS`. Each works on a `View`, is asked only where its sign is, starts from literals that are cheap to find, and
offers spans of the raw text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Set

from etl.redact import (
    abroad,
    columns,
    commands,
    formats,
    headers,
    kept,
    logins,
    named,
    nearby,
    positions,
    printed,
    services,
    settings,
    spoken,
)
from etl.redact.closer import Closely, Suspect
from etl.redact.credentials import is_value, looks_random
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.sieve import Sieve, by_place
from etl.redact.spans import Span
from etl.redact.texts import UNCLEAR, Texts

HIDDEN = "hidden"
"""The kind of texts in which escapes may hide anything: they are sifted again as `View.flat`."""
VERSION = "secrets-4"
"""Changes when one of these rules does."""


_JWT = regex(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")
_USERINFO = regex(
    r"""(?P<user>[^\s/?#"'`<>@:\\]{0,128})(?::(?P<password>[^\s/?#"'`<>\\]{1,256}))?@(?=[A-Za-z0-9\[._-])"""
)
_URL_VARIABLE = regex(r"[$%<{\[*].*|x+|\.+|passw(?:or)?d|pass|pwd")
_SIGNATURES = ("sig=", "signature=", "key=")
_SIGNATURE = regex(r"=(?P<value>[A-Za-z0-9%+/=_-]{16,2048})")
_PARAMETER = regex(r"(?:[?&;](?:amp;)?[A-Za-z_-]*|(?:^|[^A-Za-z]))\Z")

_PRIVATE_KEY = regex(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_KEY_END = regex(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = regex(
    r"(?:[\s>+|-]*(?:[0-9]{1,5}[ \t?:|]+)?(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/=]+(?=[ \t]*(?:[\n\"']|\Z))"
    r"|(?:Proc-Type|DEK-Info|Comment|Version)[^\n\"']{0,120}))*"
)
"""Lines of base64, numbered or marked as those of a patch, as far as they go."""
_KEY_BODY = regex(r"[A-Za-z0-9+/=]{16}")
_STRUCTURE = ",:[]{}"
"""What follows a quote where a JSON literal has just ended: a piece that begins so is between literals, not in one."""
_BETWEEN_QUOTES = regex(r"""[^"']+""")


def suspects(texts: Texts) -> dict[int, frozenset[str]]:
    """The places of the texts in which a rule may find something, and of which kinds: a superset.

    One of the kinds is the kept rules (`kept.PACKAGE`).
    """
    return by_place(_SIEVE.matching(texts))


def closely(texts: Texts, found: Mapping[int, frozenset[str]]) -> dict[int, Suspect]:
    """The same after a second look at those texts alone: still a superset."""
    return _CLOSELY.kept(texts, found)


def spans(view: View, sought: Set[str] | None = None) -> Iterator[Span]:
    """What the rules of our own find in a view, in places of the raw text; those of the kinds `sought`, or all."""
    found = [span for kind in _asked(_KINDS, sought) for span in kind.spans(view)]
    yield from found
    for kind in _asked(_LAST, sought):
        for span in kind.spans(view):
            if not any(map(span.overlaps, found)):
                yield span


def _asked(kinds: Mapping[str, Kind], sought: Set[str] | None) -> Iterable[Kind]:
    return kinds.values() if sought is None else (kinds[name] for name in sorted(sought & kinds.keys()))


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


_IN_URLS = (
    Kind("web tokens", r"eyJ[A-Za-z0-9_-]+\.eyJ", _web_tokens),
    Kind("logins in URLs", r": */ */[^\n]*@", _logins_in_urls),
    Kind(
        "signatures", r"(?i:sig|signature|key)=", _signatures, closers(r"(?i:sig|signature|key)=[A-Za-z0-9%+/=_-]{16}")
    ),
    Kind("private keys", r"PRIVATE KEY", _private_keys),
)
_KINDS = {
    kind.name: kind
    for kind in itertools.chain(
        positions.KINDS, spoken.KINDS, services.KINDS, headers.KINDS, _IN_URLS, formats.KINDS, printed.KINDS,
        settings.KINDS, logins.KINDS, named.KINDS, columns.KINDS, commands.KINDS,
    )
}  # fmt: skip
_LAST = {kind.name: kind for kind in (*nearby.KINDS, *abroad.KINDS)}
SIGNS = {name: kind.suspect for name, kind in (_KINDS | _LAST).items()} | {HIDDEN: UNCLEAR}
"""By kind, what tells that it is worth asking."""
_SIEVE = Sieve(SIGNS, scanned=kept.SCANNED)
_CLOSELY = Closely(_KINDS | _LAST)
