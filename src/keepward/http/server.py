"""The server: HTTP API, console and `/mcp` as one application over one store.

* Without a credential, only `/health`, `/ready`, the static files of the console, and the exchange of a login code
  work. Every other route needs a token or a login session. The session cookie is HttpOnly, SameSite=Strict, and
  Secure behind TLS.
* An unknown path gets a problem too: 404, or 405 with all methods of the path in ``Allow``.
* The application has one store; its creator closes it.
* ``ServerOptions.checked`` runs before the port is bound.
* A stop (SIGTERM, Ctrl-C) lets requests finish for ten seconds, ends streams, and closes the store.
* `/mcp` is one of the routes, with the same middleware and limits; its changes count like others.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import errno
import gzip
import inspect
import logging
import math
import socket
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import anyio
import anyio.to_thread
import uvicorn
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from keepward import __version__
from keepward.core.value import Data
from keepward.errors import InvalidInput, KeepwardError
from keepward.http import openapi
from keepward.http.app_state import AppState, ServerOptions
from keepward.http.auth import Caller, app_state_of, csrf_token_of, handle_of, identify, unauthenticated
from keepward.http.handlers import json_response
from keepward.http.inputs import Inputs
from keepward.http.login_sessions import SESSION_LIFETIME_S
from keepward.http.middleware import SecurityMiddleware
from keepward.http.protocol import StrictProtocol
from keepward.http.requests import Problem, StrictRequest, error_response
from keepward.http.routes import ApiRoute, Endpoint, route
from keepward.http.routes import routes as operation_routes
from keepward.http.schemas import Schema, schema_of_result
from keepward.http.slots import CALL, STREAM
from keepward.http.streams import OCTET_STREAM
from keepward.http.telemetry import logging_to
from keepward.memory import Memory
from keepward.services.read_taint import actor_key
from keepward.settings import Settings
from keepward.storage.server_state import ServerState

PAGE_FOLDER = Path(__file__).parent / "page"
#: Responses of at least so many bytes are compressed for clients that accept it, for example JSON of 840 kB to 60 kB.
#: The secret of a session is in a shorter one.
_COMPRESSED: dict[str, Any] = {
    "minimum_size": 1_000,
    "compresslevel": 5,
    "exclude_content_types": (*DEFAULT_EXCLUDED_CONTENT_TYPES, OCTET_STREAM),
}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "txt": "text/plain"}


class Health(Data):
    """The server is running."""

    ok: bool


class LoginCode(Struct, forbid_unknown_fields=True):
    """The one-time code of a console link."""

    code: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+$")]


LOGIN = Inputs({}, LoginCode)


class SessionInfo(Data):
    """A login session, for the console."""

    #: ``kind:name`` of the actor; without ``owner`` it is a reviewer.
    principal: str
    owner: bool
    #: Requests except GET send it as ``Keepward-Csrf``.
    csrf: str
    #: In seconds.
    expires_in: int


class Link(Data):
    """A link that opens the console once, within ten minutes."""

    url: str


#: The server is not ready if no worker becomes free within so many seconds.
READY_TIMEOUT_S = 2.0


async def health(_: Request) -> Response:
    """Return that the server is running."""
    return json_response({"ok": True})


async def ready(request: Request) -> Response:
    """Return whether requests can be answered: a worker is free, the store is readable, the server is not stopping."""
    serving = app_state_of(request)
    if serving.stopping.is_set():
        raise Problem(503, "store_unavailable", "the server is stopping", headers={"Retry-After": "1"})
    try:
        with anyio.fail_after(READY_TIMEOUT_S):
            await anyio.to_thread.run_sync(serving.newest_seq, serving.memory.tenant, abandon_on_cancel=True)
    except TimeoutError:
        detail = f"no worker became free within {READY_TIMEOUT_S:g} seconds: other requests use all of them"
        raise Problem(503, "store_unavailable", detail, headers={"Retry-After": "5"}) from None
    except KeepwardError as exc:
        detail = "the store cannot be read now; `keepward doctor` says why"
        raise Problem(503, "store_unavailable", detail, headers={"Retry-After": "1"}) from exc
    return json_response({"ok": True})


async def screen(request: Request) -> Response:
    """Return the console for any deeper path: its screens use path and query."""
    return static(request, "index.html")


async def console(_: Request) -> Response:
    """Redirect to the console; the browser keeps the code after ``#``."""
    return RedirectResponse("/console/")


def open_session(request: StrictRequest) -> Response:
    """Exchange the one-time code of a console link for a session."""
    code, serving = LOGIN.read(request)["code"], app_state_of(request)
    wait = math.ceil(serving.sessions.seconds_to_wait())
    credential = serving.sessions.redeem(code)
    if credential is None:
        if wait:
            retry = {"Retry-After": str(wait)}
            raise Problem(429, "rate_limited", "too many wrong codes; wait a minute", headers=retry)
        detail = "the code was used or is older than ten minutes; create another link with POST /session/link"
        raise Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="keepward"'})
    # Only after the check of the code, because this may create the owner's token.
    handle = serving.session_handle(credential) if credential else serving.owner_handle()
    name, session = serving.sessions.open(handle.actor.credential, credential)
    caller = Caller(handle=handle, session=session, name=name)
    response = json_response(_session_info(serving, caller))
    _set_cookie(serving, response, name, SESSION_LIFETIME_S)
    return response


async def get_session(request: Request, _: Memory) -> Response:
    """Return the login session of the cookie."""
    caller = await identify(request)
    if caller.session is None:
        raise unauthenticated()
    return json_response(_session_info(app_state_of(request), caller))


async def end_session(request: Request, _: Memory) -> Response:
    """End the login session of the cookie."""
    serving, caller = app_state_of(request), await identify(request)
    if caller.session is None:
        raise unauthenticated()
    await serving.call_state(serving.sessions.end, caller.name)
    response = Response(status_code=204)
    _set_cookie(serving, response, "", 0)
    return response


def new_link(request: Request, memory: Memory) -> Response:
    """Return a link that opens the console as the caller: the owner, or a reviewer by token."""
    actor = memory.actor
    if not actor.may_decide:
        raise Problem(403, "unauthorised", "the console requires the token of a reviewer or the owner")
    return json_response({"url": app_state_of(request).console_link("" if actor.is_owner else actor.credential or "")})


def get_metrics(request: Request, memory: Memory) -> Response:
    """Return request counts and the length of the review queue, for Prometheus."""
    meters = app_state_of(request).meters
    if meters is None:
        detail = "this server has no metrics: install keepward[metrics] and restart it"
        raise Problem(501, "not_installed", detail)
    return Response(meters.text(memory), media_type="text/plain; version=0.0.4; charset=utf-8")


def get_openapi(request: Request, _: Memory) -> Response:
    """Return the OpenAPI 3.1 document."""
    return json_response(request.app.openapi())


def docs(request: Request, _: Memory) -> Response:
    """Return the documentation of all requests as a page."""
    return static(request, "docs.html")


_file = cache(lambda name: (PAGE_FOLDER / name).read_bytes())
_compressed = cache(lambda name: gzip.compress(_file(name), mtime=0))


def static(request: Request, name: str) -> Response:
    """Return a file of the console, compressed if accepted; a file with a hash in its name may be cached forever."""
    headers = {"Content-Type": f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", "Vary": "Accept-Encoding"}
    if name.startswith("console-"):
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(_file(name), headers=headers)
    return Response(_compressed(name), headers={**headers, "Content-Encoding": "gzip"})


def _session_info(serving: AppState, caller: Caller) -> dict[str, Any]:
    left = serving.sessions.remaining(caller.session) if caller.session else 0
    actor = caller.handle.actor
    csrf = csrf_token_of(caller.name)
    return {"principal": actor.label, "owner": actor.is_owner, "csrf": csrf, "expires_in": left}


def _set_cookie(serving: AppState, response: Response, value: str, age: int) -> None:
    settings: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "strict", "secure": serving.options.secure}
    response.set_cookie(serving.cookie, value, max_age=age, **settings)


def _own_route(
    method: str,
    path: str,
    endpoint: Endpoint,
    model: Any = None,
    *problems: int,
    status: int = 200,
    inputs: Inputs | None = None,
    takes_token: bool = True,
    changes: bool = False,
) -> ApiRoute:
    def described() -> Schema:
        content = {} if model is None else {"content": {"application/json": {"schema": schema_of_result(model)}}}
        common = (400, 401, 403, 421) if takes_token else (400, 403, 421)
        answers = {
            str(status): {"description": "Done.", **content},
            **openapi.problems_of(*sorted({*common, *problems})),
        }
        operation = openapi.described(endpoint.__name__, inspect.getdoc(endpoint) or "", "server", answers)
        if inputs is not None:
            operation["requestBody"] = openapi.inputs(inputs, path)["requestBody"]
        if not takes_token:
            operation["security"] = []
        return operation

    parsed = inputs is not None
    return route(method, path, endpoint, parsed=parsed, takes_token=takes_token, changes=changes, described=described)


def _static_route(path: str, name: str) -> ApiRoute:
    async def endpoint(request: Request) -> Response:
        return static(request, name)

    return route("GET", path, endpoint, takes_token=False)


#: The routes that are no operations.
OWN_ROUTES: Sequence[BaseRoute] = (
    _own_route("GET", "/health", health, Health, takes_token=False),
    _own_route("GET", "/ready", ready, Health, 503, takes_token=False),
    _own_route("POST", "/session", open_session, SessionInfo, 401, 413, 415, 422, 429, inputs=LOGIN, takes_token=False),
    _own_route("GET", "/session", get_session, SessionInfo),
    _own_route("DELETE", "/session", end_session, status=204),
    _own_route("POST", "/session/link", new_link, Link, 429, changes=True),
    _own_route("GET", "/metrics", get_metrics, None, 501),
    _own_route("GET", "/openapi.json", get_openapi, Any),
    _own_route("GET", "/docs", docs),
    *(route("GET", path, console, takes_token=False) for path in ("/", "/console")),
    *(_static_route(f"/{name}", name) for name in ("docs.css", "docs.js")),
    _static_route("/console/licences.txt", "licences.txt"),
    *(_static_route(f"/console/{path.name}", path.name) for path in PAGE_FOLDER.glob("console-*")),
    Route("/console/{path:path}", screen, methods=["GET"], include_in_schema=False),
)
API_DESCRIPTION = """Memory for AI agents with audit, approval and rollback.

Every request needs a token as `Authorization: Bearer kw_...`, or the session of the console. Errors are
`application/problem+json` with a stable `code`. A write answers 201 committed, 202 quarantined, 200 duplicate,
422 refused."""


class Application(Starlette):
    """The HTTP API and the console of a store."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI 3.1 document."""
        info = {"title": "Keepward", "description": API_DESCRIPTION, "version": __version__}
        return openapi.document(info, self.routes, self.state.serving.cookie)


def create_app(
    memory: Memory,
    *,
    options: ServerOptions | None = None,
    serving: AppState | None = None,
    routes: Sequence[BaseRoute] | None = None,
    lifespan: Any = None,
) -> Application:
    """Return the application for the store of an owner's handle.

    ``serving`` replaces the default state, for example with a test clock; ``routes`` replaces those of the operations.
    ``lifespan`` runs as long as the application.

    Raises:
        InvalidInput: the options are not safe.
    """
    chosen = (options or ServerOptions()).checked()
    state = serving or AppState(memory=memory, options=chosen)
    app = Application(
        routes=[*OWN_ROUTES, *(operation_routes() if routes is None else routes)],
        middleware=[Middleware(SecurityMiddleware, serving=state), Middleware(GZipMiddleware, **_COMPRESSED)],
        exception_handlers={HTTPException: _answer, KeepwardError: _answer},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.serving = state
    return app


async def _answer(request: Request, exc: Exception) -> Response:
    response = error_response(request, exc)
    if isinstance(exc, HTTPException) and exc.status_code == 405:
        response.headers["Allow"] = ", ".join(allowed_methods(request))
    return response


def allowed_methods(request: Request) -> list[str]:
    """Return all methods of a request's path, sorted."""
    routes: list[Any] = request.app.routes
    methods_of_routes = [route.methods for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    named = {method for methods in methods_of_routes for method in methods or ()}
    return sorted(named | {"HEAD"} if "GET" in named else named)


logger = logging.getLogger("keepward.server")
#: Maximum seconds of a request after the server was asked to stop.
SHUTDOWN_TIMEOUT_S = 10


def build(
    memory: Memory, options: ServerOptions, settings: Settings | None = None, *, shared: ServerState | None = None
) -> Application:
    """Return the complete application for an owner's handle; ``app.state.serving`` is its state.

    ``settings`` are those of the opened store; its owner can read them. ``shared`` is what workers share.
    """
    serving = AppState(memory=memory, options=options.checked(), settings=settings, shared=shared)
    from keepward.mcp import is_installed

    if not (options.mcp and is_installed()):
        return create_app(memory, options=options, serving=serving)
    from keepward.mcp import server as mcp

    def authenticate(request: Request) -> Memory:
        return handle_of(serving, request.headers)

    def admit(handle: Memory) -> float:
        return 0.0 if handle.actor.is_owner else serving.rates.take(actor_key(handle.actor))

    async def enter(scope: Scope, handle: Memory) -> None:
        # A GET is the event stream of an MCP session.
        await serving.admit(scope, handle, STREAM if scope["method"] == "GET" else CALL)

    def bounded(handle: Memory, reads: bool) -> AbstractContextManager[None]:
        return serving.call_limits(handle, reads=reads)

    hooks: dict[str, Any] = {"authenticate": authenticate, "admit": admit, "bounded": bounded}
    hooks |= {"body_limit": options.body_limit}
    hooks |= {"enter": enter, "stateless": serving.is_one_of_many}
    routes = mcp.routes(memory, profile=options.mcp_profile, **hooks)
    app = create_app(memory, options=options, serving=serving, lifespan=lambda _: mcp.lifespan(routes))
    # Not a mount, which would redirect the exact path.
    app.router.routes.extend(routes)
    return app


def bind(options: ServerOptions) -> tuple[socket.socket, ServerOptions]:
    """Return a bound socket, and the options with its port."""
    options = options.checked()
    try:
        addresses = socket.getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise InvalidInput("that host is not a name or address of this machine; choose another with --host") from exc
    try:
        # Allow the port of a server that stopped a moment ago; on Windows that would allow the port of another server.
        bound.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as exc:
        bound.close()
        raise InvalidInput(_bind_error(exc, options)) from exc
    bound.setblocking(False)
    return bound, replace(options, port=bound.getsockname()[1])


def _bind_error(exc: OSError, options: ServerOptions) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"port {options.port} is in use; stop the process that listens on it, or choose another with --port"
    if exc.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {options.port}; choose one above 1023 with --port"
    return "that host is not an address of this machine; choose another with --host"


def config_of(options: ServerOptions) -> dict[str, Any]:
    """Return how uvicorn serves an application."""
    return {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "lifespan": "on",
        "ws": "none",
        # Always the same parser, because it decides where a request ends.
        "http": StrictProtocol,
        "timeout_graceful_shutdown": SHUTDOWN_TIMEOUT_S,
        "ssl_certfile": options.tls_cert,
        "ssl_keyfile": options.tls_key,
    }


def prepare(app: Application) -> Server:
    """Return the server of an application."""
    serving: AppState = app.state.serving
    config = uvicorn.Config(app, **config_of(serving.options))
    try:
        config.load()
    except OSError as exc:
        # ssl.SSLError is a subclass.
        raise InvalidInput("the certificate or its key cannot be read; give matching PEM files") from exc
    return Server(config, serving)


class Server(uvicorn.Server):
    """A server that ends streams when it is stopped, and then returns instead of ending the process."""

    def __init__(self, config: uvicorn.Config, serving: AppState) -> None:
        super().__init__(config)
        self._serving = serving

    def answer(self, bound: socket.socket) -> None:
        """Answer requests on a bound socket until the process is stopped; the caller closes the store."""
        options = self._serving.options
        with logging_to(as_json=options.log_json, quiet=options.quiet):
            self.run(sockets=[bound])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._serving.stopping.set()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture stop signals; afterwards the caller closes the store and chooses the exit code."""
        with super().capture_signals():
            try:
                yield
            finally:
                # Otherwise uvicorn raises the signals again and ends the process with an open store.
                self._captured_signals.clear()
