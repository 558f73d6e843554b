"""The edge: which requests come in at all, and what every answer carries.

Invariants
(1) ``Host`` is a name of this server, so that no other name that leads here (DNS rebinding) is served.
(2) A page of another site cannot call: its ``Origin`` is refused, and so is what a browser marks as cross-site.
    There are no CORS headers.
(3) Every answer carries ``HEADERS``, whoever made it.
(4) A path or query with NUL or broken UTF-8 comes to nothing.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepward.http.options import LOOPBACK, ServerOptions, has_port, is_loopback
from keepward.http.problems import Problem

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_RAW = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in HEADERS.items()]
_OURS = frozenset(name for name, _ in _RAW)
#: Static files without data, which a link elsewhere may lead to.
PUBLIC = frozenset({"/", "/page.css", "/page.js", "/docs.js", "/health"})


class Dress:
    """Gives every answer its headers (3); stands outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in _OURS]
                message = {**message, "headers": [*own, *_RAW]}
            await send(message)

        await self._app(scope, receive, dressed if scope["type"] == "http" else send)


class Edge:
    """Stands before everything that is served."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._hosts = hosts_of(options)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allow_origins)
        self._schemes = ("https", "http") if options.behind_proxy else (options.scheme,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return

        try:
            self._check(scope)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        host = headers.get(b"host", [])
        if len(host) != 1 or host[0].lower() not in self._hosts:
            detail = "this server does not go by that name; name it in allow_hosts of [server] if it should"
            raise Problem(421, "bad_host", detail)
        self._check_site(scope, host[0].lower(), headers)
        if not _clean(scope.get("raw_path") or b"") or not _clean(scope["query_string"]) or "\0" in scope["path"]:
            raise Problem(400, "bad_request", "the address holds NUL or is not UTF-8; send it percent-encoded")

    def _check_site(self, scope: Scope, host: str, headers: dict[bytes, list[str]]) -> None:
        """Refuse a page of another site; see (2)."""
        for origin in headers.get(b"origin", []):
            asked = origin.lower()
            if asked not in self._origins and asked not in {f"{scheme}://{host}" for scheme in self._schemes}:
                raise _foreign()
        own = {"same-origin", "none"}
        if scope["method"] == "GET" and scope["path"] in PUBLIC:
            return
        if b"origin" not in headers and any(site not in own for site in headers.get(b"sec-fetch-site", [])):
            raise _foreign()


def hosts_of(options: ServerOptions) -> frozenset[str]:
    """Return the values of ``Host`` that are this server's, in lower case."""
    names = {f"[{name}]" if ":" in name else name for name in LOOPBACK}
    if is_loopback(options.host) or not _is_wildcard(options.host):
        names.add(options.shown_host.lower())
    found = {f"{name}:{options.port}" for name in names}
    if options.port in {80, 443}:
        found |= names
    for name in options.allow_hosts:
        lower = name.lower()
        found.add(lower)
        if not has_port(lower):
            found.add(f"{lower}:{options.port}")
    return frozenset(found)


def _is_wildcard(host: str) -> bool:
    return host in {"", "0.0.0.0", "::"}  # noqa: S104  compared, not bound


def _clean(raw: bytes) -> bool:
    data = unquote_to_bytes(raw)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _foreign() -> Problem:
    return Problem(403, "foreign_origin", "a page of another site may not call this server")
