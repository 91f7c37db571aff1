"""Credentials of API calls are taken out before anything else is done: they say nothing about a conversation."""

from __future__ import annotations

import functools
import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

REMOVED = "[credential]"
_NAMES = re.compile(
    r"(?i)^(.*[-_])?(authorization|cookies?|set-cookie|api[-_]?keys?|x-api-key|secret|password|passwd|"
    r"access[-_]?token|(auth|authorization|bearer|refresh|security|session|id)[-_]?token|signature|credentials?|"
    r"connection[-_]?string|encoded[-_]api[-_]key|aws_\w*key\w*)$"
)
_COOKIE = re.compile(r"(?i)[^=;\s]+=[^;]*;.*\b(path|domain|expires|max-age|httponly|secure|samesite)\b")
_ADDRESS = re.compile(r"https?://\S+$")
_PARAMETERS = re.compile(r"(?i)^(api[-_]?)?key$|token|secret|sig(nature)?$|credential|password|auth")


@functools.lru_cache(4096)
def is_credential(name: str) -> bool:
    """Whether a header, a parameter or a setting of this name holds a credential.

    >>> [is_credential(name) for name in ("Authorization", "x-goog-api-key", "max_tokens", "api_key")]
    [True, True, False, True]
    """
    return _NAMES.match(name) is not None


def without_credentials(settings: dict[str, Any]) -> dict[str, Any]:
    """Headers, the settings of a request, an envelope: every credential in them, at any depth, replaced by a label.

    >>> without_credentials({"mcp": [{"authorization_token": "abc", "url": "https://h.example/?key=abc"}]})
    {'mcp': [{'authorization_token': '[credential]', 'url': 'https://h.example/?key=[credential]'}]}
    """
    keyed = type(kind := settings.get("type")) is str and is_credential(kind)  # Azure: {type: api_key, key: …}
    made = {}
    for key, value in settings.items():
        if value and type(value) is not dict and (is_credential(key) or (keyed and key == "key")):
            made[key] = REMOVED
        else:
            made[key] = cleaned(value)
    return made


def without_cookie(value: Any) -> Any:
    """The value of a header, unless it is a cookie that a recorder put under another header's name.

    >>> without_cookie("__bm=abc; path=/; HttpOnly"), without_cookie("text/plain; charset=utf-8")
    ('[credential]', 'text/plain; charset=utf-8')
    """
    return REMOVED if type(value) is str and _COOKIE.match(value) else value


def cleaned(value: Any) -> Any:
    """A value of an envelope without the credentials in it, those in addresses too."""
    kind = type(value)
    if kind is dict:
        return without_credentials(value)
    if kind is list:
        return [cleaned(item) for item in value]
    if kind is str and value[:4] == "http" and ("?" in value or "@" in value) and _ADDRESS.match(value):
        return clean_url(value)
    return value


@functools.lru_cache(4096)
def clean_url(url: str) -> str:
    """The address without user, password and credentials among its parameters.

    >>> clean_url("https://me:pw@h.example/v1?key=abc&alt=sse")
    'https://h.example/v1?key=[credential]&alt=sse'
    """
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return REMOVED
    if host == parts.netloc and not any(_PARAMETERS.search(name) for name, _ in query):
        return url
    kept = [f"{quote(name)}={REMOVED if _PARAMETERS.search(name) else quote(value)}" for name, value in query]
    return urlunsplit((parts.scheme, host, parts.path, "&".join(kept), parts.fragment))
