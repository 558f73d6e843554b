"""Security middleware around every request and response.

* ``Host`` must be a name of this server; this prevents DNS rebinding.
* Requests from pages of other sites are refused, by ``Origin`` and ``Sec-Fetch-Site``. There are no CORS headers.
* Every response has ``SECURITY_HEADERS`` and an ``X-Request-Id``, a valid one of the caller or a new one. The log line
  and the problem document have the same id.
* A path or query with NUL or invalid UTF-8 is refused.
* A body over its limit gets 413, also a chunked one. A body must arrive within ``body_timeout`` seconds plus one
  second for each 64 KB, else 408: a slow sender blocks nothing. The rest of a body over the limit is read for some
  seconds before the response, because a connection closed during an upload loses the response.
* ``?user=ana``, ``&agent=...`` and ``&project=...`` name a handle as the headers ``Keepward-User`` and so on do.
* ``HEAD`` has the route of ``GET``, without a body.
* Each request is counted and logged once, by its documented path. An unexpected error gets 500 and is logged by type
  and location, without its message.
* A client that does not read 64 KB of a response within ``SEND_TIMEOUT_S`` seconds is disconnected.
* A request must give the length of its body once: Content-Length, or in HTTP/1.1 Transfer-Encoding: chunked. Otherwise
  it is refused and the connection closed. ``protocol`` refuses loose line ends.
"""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepward.core.value import is_loopback
from keepward.handles import NAMED_HANDLE_HEADERS, NAMES_HEADER
from keepward.http.app_state import LOOPBACK, RELEASE_STACK_KEY, AppState, ServerOptions, has_port
from keepward.http.requests import PATHS_WITH_OWN_USER, REQUEST_ID_KEY, Problem

logger = logging.getLogger("keepward.server")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "media-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_ENCODED_HEADERS = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in SECURITY_HEADERS.items()]
#: Headers that a response may override, because static files are cached.
_OVERRIDABLE_HEADERS = frozenset({b"cache-control"})
_FIXED_HEADERS = frozenset(name for name, _ in _ENCODED_HEADERS) - _OVERRIDABLE_HEADERS
_REQUEST_ID_HEADER = b"x-request-id"
_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
#: Static files without data, which other sites may link to.
PUBLIC_PATHS = frozenset({"/", "/console", "/docs.css", "/docs.js", "/health"})
#: Paths of file uploads.
UPLOAD_PATHS = ("/memory/import", "/memory/restore-export", "/memory/restore-export/plan")
_NAMED_IN_QUERY = re.compile(r"(?:^|&)(?:user|agent|project|branch)=")
#: Minimum upload rate.
_MIN_UPLOAD_BYTES_PER_S = 65_536
#: Maximum bytes, and seconds, of reading the rest of a body over its limit.
_MAX_DRAINED_BYTES, _DRAIN_TIMEOUT_S = 64 << 20, 5
#: Maximum seconds for a client to read a chunk of a response, and the size of a chunk.
SEND_TIMEOUT_S, _SEND_CHUNK_BYTES = 30.0, 65_536
#: Status in the metrics if the client disconnected before its body was complete.
CLIENT_CLOSED_REQUEST = 499
#: Route of a request to an unknown path.
NO_ROUTE = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class SecurityMiddleware:
    """The middleware of the application."""

    def __init__(self, app: ASGIApp, serving: AppState) -> None:
        options = serving.options
        self.app, self.serving, self.timeout = app, serving, options.body_timeout
        self._hosts = hosts_of(options)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allow_origins)
        self._schemes = ("https", "http") if options.behind_proxy else (options.scheme,)
        self._limit = options.body_limit
        self._limits = {"/memory/blobs": options.blob_limit, **dict.fromkeys(UPLOAD_PATHS, options.import_limit)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        match scope["type"]:
            case "http":
                await _RequestState(self, scope, receive, send).run()
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self.app(scope, receive, send)

    def check(self, scope: Scope) -> int:
        """Return the maximum body length of a request after checking host, origin, address and framing."""
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        host = headers.get(b"host", [])
        if len(host) != 1 or host[0].lower() not in self._hosts:
            detail = "this server does not have that host name; add it to allow_hosts of [server] if it should"
            raise Problem(421, "bad_host", detail)
        own = {f"{scheme}://{host[0].lower()}" for scheme in self._schemes} | self._origins
        path = scope["path"]
        linked = scope["method"] == "GET" and (path in PUBLIC_PATHS or path.startswith("/console/"))
        sites = [] if linked or b"origin" in headers else headers.get(b"sec-fetch-site", [])
        if any(origin.lower() not in own for origin in headers.get(b"origin", [])) or {*sites} - {
            "same-origin",
            "none",
        }:
            raise Problem(403, "foreign_origin", "a page of another site may not call this server")
        if not _clean(scope.get("raw_path") or b"") or not _clean(scope["query_string"]) or "\0" in scope["path"]:
            raise Problem(400, "bad_request", "the address contains NUL or is not UTF-8; send it percent-encoded")
        limit = self._limits.get(scope["path"], self._limit)
        lengths, codings = headers.get(b"content-length", []), headers.get(b"transfer-encoding", [])
        old = scope.get("http_version") == "1.0"
        if len(lengths) + len(codings) > 1 or any(old or coding.strip().lower() != "chunked" for coding in codings):
            # A proxy that uses the other header would treat the rest of the body as a request.
            detail = "a body needs one Content-Length, or one Transfer-Encoding: chunked"
            raise Problem(400, "bad_request", detail, headers={"Connection": "close"})
        announced = lengths[0] if lengths else "0"
        if not (announced.isascii() and announced.isdigit()):
            raise Problem(400, "bad_request", "Content-Length is a whole number")
        if len(announced) > 18 or int(announced) > limit:
            raise _too_large(limit, scope["path"])
        return limit


_BRANCH = NAMED_HANDLE_HEADERS["branch"]


def _names_to_headers(scope: Scope) -> None:
    """Move ``user``, ``agent``, ``project`` and ``branch`` of the query to the headers that name a handle.

    A client cannot add to the names that its proxy sends: a request has them in headers or in the address, not in both.
    A branch alone is no more than the handle reaches.
    """
    path, query = scope["path"], scope["query_string"].decode("utf-8")
    if not path.startswith("/memory/") or path in PATHS_WITH_OWN_USER or not _NAMED_IN_QUERY.search(query):
        return
    pairs = parse_qsl(query, keep_blank_values=True)
    named = [(NAMED_HANDLE_HEADERS[name], value) for name, value in pairs if name in NAMED_HANDLE_HEADERS]
    if not named:
        return
    sent = {name.lower().decode("latin-1") for name, _ in scope["headers"]}
    if {name for name, _ in named} == {_BRANCH}:
        sent &= {_BRANCH.lower()}
    if sent & {name.lower() for name in (*NAMED_HANDLE_HEADERS.values(), NAMES_HEADER)}:
        detail = "name the user, agent and project in headers or in the address, not in both"
        raise Problem(400, "bad_request", detail)
    added = [(name.lower().encode("ascii"), value.encode("latin-1", "replace")) for name, value in named]
    scope["headers"] = [*scope["headers"], *added]
    scope["query_string"] = urlencode([pair for pair in pairs if pair[0] not in NAMED_HANDLE_HEADERS]).encode("ascii")


class _RequestState:
    """One request and its response."""

    def __init__(self, edge: SecurityMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._edge, self._scope, self._receive, self._send = edge, scope, receive, send
        self._head = scope["method"] == "HEAD"
        given = [value for name, value in scope["headers"] if name.lower() == _REQUEST_ID_HEADER]
        own = given[0] if len(given) == 1 and _REQUEST_ID_PATTERN.fullmatch(given[0]) else None
        self._id = own.decode("ascii") if own else edge.serving.random(8).hex()
        self._began = edge.serving.monotonic()
        self._until = asyncio.get_running_loop().time() + edge.timeout
        self._limit = self._read = self._status = 0
        self._complete = self._ended = self._slow = False
        #: The problem of the body; it replaces the response of a route that read a part of it.
        self._fault: Problem | None = None

    async def run(self) -> None:
        scope = self._scope
        scope[REQUEST_ID_KEY], scope[RELEASE_STACK_KEY] = self._id, ExitStack()
        try:
            if self._head:
                scope["method"] = "GET"
            await self._answer()
        except ClientDisconnect:
            # The client has disconnected, so no response is sent.
            self._status = self._status or CLIENT_CLOSED_REQUEST
        except Exception as exc:  # noqa: BLE001  logged
            if self._slow:
                return
            _log_exception(exc)
            if not self._status:
                detail = "an error occurred in the server; its log has the location. Nothing was lost."
                await self._send_problem(Problem(500, "internal", detail))
        finally:
            scope[RELEASE_STACK_KEY].close()
            scope["method"] = "HEAD" if self._head else scope["method"]
            self._log_request()

    async def _answer(self) -> None:
        try:
            self._limit = self._edge.check(self._scope)
            _names_to_headers(self._scope)
            await self._edge.app(self._scope, self._receive_limited, self._send_message)
        except Problem as problem:
            if self._status:
                raise
            self._fault = self._fault or problem
        if self._fault is not None and not self._status:
            await self._send_problem(self._fault)

    async def _send_problem(self, problem: Problem) -> None:
        self._fault = None
        # A client with ``Expect`` has not sent the body yet.
        if problem.status == 413 and not any(name.lower() == b"expect" for name, _ in self._scope["headers"]):
            await self._drain_body()
        await problem.response()(self._scope, self._receive, self._send_message)

    async def _drain_body(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                passed = 0
                while not self._complete and passed < _MAX_DRAINED_BYTES:
                    message = await self._receive()
                    passed += len(message.get("body", b""))
                    self._complete = not message.get("more_body", False)

    async def _receive_limited(self) -> Message:
        try:
            async with asyncio.timeout_at(
                None if self._complete else self._until + self._read / _MIN_UPLOAD_BYTES_PER_S
            ):
                message = await self._receive()
        except TimeoutError:
            detail = "the body did not arrive in time; send it without pauses, or raise body_timeout of [server]"
            self._fault = Problem(408, "timeout", detail, headers={"Connection": "close"})
            raise self._fault from None
        if message["type"] == "http.request":
            self._complete = not message.get("more_body", False)
            self._read += len(message.get("body", b""))
            if self._read > self._limit:
                self._fault = _too_large(self._limit, self._scope["path"])
                raise self._fault
        return message

    async def _send_message(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._fault is not None:
                return
            self._status = message["status"]
            own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in _FIXED_HEADERS]
            overridden = {name.lower() for name, _ in own} & _OVERRIDABLE_HEADERS
            always = [pair for pair in _ENCODED_HEADERS if pair[0] not in overridden]
            message = {**message, "headers": [*own, (_REQUEST_ID_HEADER, self._id.encode("ascii")), *always]}
        elif not self._status:
            return
        elif self._head and message["type"] == "http.response.body":
            if self._ended:
                # End a HEAD on an endless stream as if the client had disconnected.
                raise OSError("the response to HEAD has no body")
            self._ended, message = True, {"type": "http.response.body", "body": b""}
        body = memoryview(message.get("body", b""))
        for start in range(0, max(len(body), 1), _SEND_CHUNK_BYTES):
            piece = dict(message)
            if message["type"] == "http.response.body":
                last = start + _SEND_CHUNK_BYTES >= len(body)
                more = not last or message.get("more_body", False)
                piece |= {"body": bytes(body[start : start + _SEND_CHUNK_BYTES]), "more_body": more}
            await self._send_in_time(piece)

    async def _send_in_time(self, message: Message) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._send(message)
        except TimeoutError:
            # End the response as if the client had disconnected, and release its resources.
            self._slow = True
            raise ClientDisconnect from None

    def _log_request(self) -> None:
        """Count and log the request."""
        serving, scope = self._edge.serving, self._scope
        seconds = serving.monotonic() - self._began
        route = getattr(scope.get("route"), "path_format", None)
        if route is None and "endpoint" in scope and scope["path"] == "/mcp":
            route = "/mcp"
        # A method is arbitrary text from the network, so it must not become a label.
        method, route = scope["method"] if scope["method"] in _METHODS else "OTHER", str(route or NO_ROUTE)
        if serving.meters is not None:
            serving.meters.count(method, route, self._status, seconds)
        facts: dict[str, Any] = {
            "action": "request",
            "method": method,
            "route": route,
            "status": self._status,
            "ms": round(seconds * 1000, 3),
            "request": self._id,
        }
        logger.info("%s %s %s", method, route, self._status, extra=facts)


def hosts_of(options: ServerOptions) -> frozenset[str]:
    """Return the valid values of ``Host`` in lower case."""
    names = {f"[{name}]" if ":" in name else name for name in LOOPBACK}
    if is_loopback(options.host) or options.host not in {"", "0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        names.add(options.host_in_addresses.lower())
    hosts = {f"{name}:{options.port}" for name in names}
    if options.port in {80, 443}:
        hosts |= names
    for name in options.allow_hosts:
        lower = name.lower()
        hosts |= {lower} if has_port(lower) else {lower, f"{lower}:{options.port}"}
    return frozenset(hosts)


def _clean(raw: bytes) -> bool:
    data = unquote_to_bytes(raw)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _too_large(limit: int, path: str) -> Problem:
    advice = "import the file on the server's machine" if path in UPLOAD_PATHS else "send less at once"
    size = f"{limit // (1 << 20)} MB" if limit >= 1 << 20 else f"{limit} bytes"
    # The rest of the body is not read, so the connection cannot be reused.
    return Problem(413, "too_large", f"the body may have at most {size}; {advice}", headers={"Connection": "close"})


def _log_exception(exc: BaseException) -> None:
    frames = traceback.extract_tb(exc.__traceback__)
    location = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-4:]))
    facts = {"action": "internal", "error": type(exc).__name__, "place": location}
    logger.error("unexpected %s at %s", facts["error"], location, extra=facts)
