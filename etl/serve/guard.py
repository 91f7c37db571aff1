"""Who is answered: requests to our own name, with our token. And what a page may do: nothing but show itself.

A page of another site can make a browser send requests here, and a name that it owns can point to 127.0.0.1. The first
lacks the cookie (SameSite=Strict) and the form token, the second has another Host.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OPEN_IT = "Not for you yet: open the address that `etl serve` printed; it holds the token of this start.\n"


class Secret:
    """The token of one start, and what follows from it."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self.cookie = f"etl_{port}"
        self.form = hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    def knows(self, token: str) -> bool:
        """Whether it is the token, told in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def knows_form(self, token: str) -> bool:
        """Whether a form came from a page of ours."""
        return hmac.compare_digest(token.encode(), self.form.encode())


class Guard:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, secret: Secret) -> None:
        self._app = app
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered instead; None where the request may pass."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._secret.hosts:
            return PlainTextResponse("This is not the name of this server.\n", 421)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if given:
            return self._welcome(scope["path"], given[0], [(key, value) for key, value in query if key != "token"])
        if not self._secret.knows(_cookie(headers, self._secret.cookie)):
            return PlainTextResponse(_OPEN_IT, 403)
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin")
            if origin is not None and urlsplit(origin).netloc.lower() not in self._secret.hosts:
                return PlainTextResponse("A page of another site may not change anything here.\n", 403)
        return None

    def _welcome(self, path: str, token: str, rest: list[tuple[str, str]]) -> Response:
        """The token becomes a cookie, and leaves the address."""
        if not self._secret.knows(token):
            return PlainTextResponse(_OPEN_IT, 403)
        where = "/" + path.lstrip("/")  # `//name` would lead to another server
        answer = RedirectResponse(where + (f"?{urlencode(rest)}" if rest else ""), 303)
        answer.set_cookie(self._secret.cookie, token, httponly=True, samesite="strict", path="/")
        return answer


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
