"""The server: the HTTP API, the page and `/mcp` as one application over one store, from the first request to the last.

Invariants
(1) Without a credential there is `/health`, `/ready`, the static files of the page, and the exchange of a code. Every
    other route takes a token or a session, whose cookie is HttpOnly, SameSite=Strict, and Secure behind TLS.
(2) What no route answers is a problem too: 404, or 405 with every method of the path in ``Allow``.
(3) The application holds one store; whoever made it closes it.
(4) Nothing is bound that ``ServerOptions.checked`` refuses, and nothing is served before the port is ours.
(5) A stop (SIGTERM, Ctrl-C) lets requests finish for ten seconds, ends streams, and closes the store.
(6) `/mcp` stands among the routes, behind the same edge, limits and watch; its changes count like any other.
"""

from __future__ import annotations

import errno
import gzip
import logging
import math
import socket
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import anyio
import anyio.to_thread
import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from keepward.errors import InvalidInput, KeepwardError
from keepward.http.app_state import AppState, ServerOptions
from keepward.http.auth import (
    SESSION_LIFETIME_S,
    Caller,
    Handle,
    Writes,
    app_state_of,
    csrf_token_of,
    handle_of,
    identify,
    unauthenticated,
)
from keepward.http.middleware import SecurityMiddleware
from keepward.http.requests import Problem, error_response
from keepward.http.routes import KeepwardRoute, PublicRoute
from keepward.http.routes import routes as application_routes
from keepward.http.schemas import problems_of
from keepward.http.slots import CALL, STREAM
from keepward.http.telemetry import logging_to
from keepward.memory import Memory
from keepward.services.request_context import actor_key
from keepward.settings import Settings

PAGE_FOLDER = Path(__file__).parent / "page"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "txt": "text/plain"}


class ProblemDetail(BaseModel):
    """A problem, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Health(BaseModel):
    """The server is there."""

    ok: bool


class LoginCode(BaseModel):
    """The one-time code of a console link."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+$")]


class SessionInfo(BaseModel):
    """A session, as the page needs it."""

    #: ``kind:name`` of who the page acts as.
    principal: str
    #: Whether that is the owner, and not a reviewer, who decides on what waits and changes nothing else.
    owner: bool
    #: To be sent as ``Keepward-Csrf`` with every call that is not a GET.
    csrf: str
    #: Seconds until it ends.
    expires_in: int


class Link(BaseModel):
    """A link that opens the page once, within ten minutes."""

    url: str


#: Seconds within which a worker has to become free, else the server is not ready.
READY_TIMEOUT_S = 2.0
public = APIRouter(route_class=PublicRoute, tags=["server"])
private = APIRouter(route_class=KeepwardRoute, tags=["server"])


@public.get("/health", responses=problems_of(400, 403, 421))
async def health() -> Health:
    """Say that the server is there, and nothing else."""
    return Health(ok=True)


@public.get("/ready", responses=problems_of(400, 403, 421, 503))
async def ready(request: Request) -> Health:
    """Say whether calls are answered: a worker is free, the store can be read, the server is not about to stop."""
    serving = app_state_of(request)
    if serving.stopping.is_set():
        raise Problem(503, "store_unavailable", "the server is about to stop", headers={"Retry-After": "1"})
    try:
        with anyio.fail_after(READY_TIMEOUT_S):
            await anyio.to_thread.run_sync(serving.newest, serving.memory.tenant, abandon_on_cancel=True)
    except TimeoutError:
        detail = f"no worker became free within {READY_TIMEOUT_S:g} seconds: other calls use all of them"
        raise Problem(503, "store_unavailable", detail, headers={"Retry-After": "5"}) from None
    except KeepwardError as exc:
        detail = "the store cannot be read now; `keepward doctor` says why"
        raise Problem(503, "store_unavailable", detail, headers={"Retry-After": "1"}) from exc
    return Health(ok=True)


def _add_static_route(path: str, name: str) -> None:
    async def endpoint(request: Request) -> Response:
        return static(request, name)

    public.add_api_route(path, endpoint, include_in_schema=False)


for file in ("docs.css", "docs.js"):
    _add_static_route(f"/{file}", file)
for file in (*(each.name for each in PAGE_FOLDER.glob("console-*")), "licences.txt"):
    _add_static_route(f"/console/{file}", file)


async def screen(request: Request) -> Response:
    """Return the console, for any deeper address: it is one of its screens, and so is what stands in the query."""
    return static(request, "index.html")


public.routes.append(Route("/console/{path:path}", screen, methods=["GET"], include_in_schema=False))


@public.get("/", include_in_schema=False)
@public.get("/console", include_in_schema=False)
async def console() -> Response:
    """Lead to the console; a browser takes the code of a link along, for it stands behind ``#``."""
    return RedirectResponse("/console/")


@public.post("/session", response_model=SessionInfo, responses=problems_of(400, 401, 403, 413, 415, 421, 422, 429))
def open_session(request: Request, body: LoginCode) -> Response:
    """Exchange the one-time code of a console link for a session."""
    serving = app_state_of(request)
    wait = math.ceil(serving.sessions.wait())
    credential = serving.sessions.redeem(body.code)
    if credential is None:
        if wait:
            held = {"Retry-After": str(wait)}
            raise Problem(429, "rate_limited", "too many wrong codes; wait a minute", headers=held)
        detail = "the code was used or is older than ten minutes; ask for another link with POST /session/link"
        raise Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="keepward"'})
    # Only now: the owner's token is made where there is none, which a wrong code must not cause.
    handle = serving.bearer(credential) if credential else serving.owner()
    name, session = serving.sessions.open(handle.actor.credential, credential)
    caller = Caller(handle=handle, session=session, name=name)
    response = JSONResponse(_session_info(serving, caller).model_dump())
    _set_cookie(serving, response, name, SESSION_LIFETIME_S)
    return response


@private.get("/session", responses=problems_of(400, 401, 403, 421))
async def get_session(request: Request) -> SessionInfo:
    """Return the session of the cookie that came along."""
    caller = await identify(request)
    if caller.session is None:
        raise unauthenticated()
    return _session_info(app_state_of(request), caller)


@private.delete("/session", status_code=204, responses=problems_of(400, 401, 403, 421))
async def end_session(request: Request) -> Response:
    """End the session of the cookie that came along."""
    serving, caller = app_state_of(request), await identify(request)
    if caller.session is None:
        raise unauthenticated()
    await serving.call_state(serving.sessions.end, caller.name)
    response = Response(status_code=204)
    _set_cookie(serving, response, "", 0)
    return response


@private.post("/session/link", dependencies=[Writes], responses=problems_of(400, 401, 403, 421, 429))
def new_link(request: Request, memory: Handle) -> Link:
    """Return a link that opens the console as who calls: the owner, or a reviewer by their token."""
    actor = memory.actor
    if not actor.may_decide:
        raise Problem(
            403, "unauthorised", "the console is for people who decide: call with an owner's or reviewer's token"
        )
    return Link(url=app_state_of(request).console_link("" if actor.is_owner else actor.credential or ""))


@private.get("/metrics", response_class=Response, responses=problems_of(400, 401, 403, 421, 501))
def get_metrics(request: Request, memory: Handle) -> Response:
    """Return counts of requests and the depth of the queue, for Prometheus."""
    meters = app_state_of(request).meters
    if meters is None:
        detail = "this server counts nothing: install keepward[metrics] and start it again"
        raise Problem(501, "not_installed", detail)
    return Response(meters.text(memory), media_type="text/plain; version=0.0.4; charset=utf-8")


@private.get("/openapi.json", responses=problems_of(400, 401, 403, 421))
def openapi(request: Request, memory: Handle) -> Response:
    """Return the description of every call, as OpenAPI 3.1."""
    return JSONResponse(request.app.openapi())


@private.get("/docs", response_class=Response, responses=problems_of(400, 401, 403, 421))
def docs(request: Request, memory: Handle) -> Response:
    """Return the description of every call, for people."""
    return static(request, "docs.html")


_file = cache(lambda name: (PAGE_FOLDER / name).read_bytes())
_compressed = cache(lambda name: gzip.compress(_file(name), mtime=0))


def static(request: Request, name: str) -> Response:
    """Return a file of the page, compressed where that is understood; one whose name has its hash is kept for good."""
    headers = {"Content-Type": f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", "Vary": "Accept-Encoding"}
    if name.startswith("console-"):
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(_file(name), headers=headers)
    return Response(_compressed(name), headers={**headers, "Content-Encoding": "gzip"})


def _session_info(serving: AppState, caller: Caller) -> SessionInfo:
    left = serving.sessions.remaining(caller.session) if caller.session else 0
    actor = caller.handle.actor
    return SessionInfo(principal=actor.label, owner=actor.is_owner, csrf=csrf_token_of(caller.name), expires_in=left)


def _set_cookie(serving: AppState, response: Response, value: str, age: int) -> None:
    settings: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "strict", "secure": serving.options.secure}
    response.set_cookie(serving.cookie, value, max_age=age, **settings)


API_DESCRIPTION = """Memory for AI agents that one can audit, approve and undo.

Every call takes a token as `Authorization: Bearer kw_...`, or the session of the console. Errors are
`application/problem+json` with a stable `code`. A write answers 201 committed, 202 held for review, 200 the same was
there already, 422 refused by a gate."""


def create_app(
    memory: Memory,
    *,
    options: ServerOptions | None = None,
    serving: AppState | None = None,
    routers: Sequence[APIRouter] | None = None,
    lifespan: Any = None,
) -> FastAPI:
    """Return the application that serves the store of an owner's handle.

    ``serving`` takes the place of a fresh one, as with a clock of a test's own, and ``routers`` that of the routes.
    ``lifespan`` is what runs for as long as the application does.

    Raises:
        InvalidInput: the options cannot be served safely.
    """
    chosen = (options or ServerOptions()).checked()
    held = serving or AppState(memory=memory, options=chosen)
    app = FastAPI(
        title="Keepward",
        version=version("keepward"),
        description=API_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # Ours are in `spans`: the framework's would carry the query.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.serving = held
    app.router.routes.extend(_routes(routers))
    for kind in (HTTPException, KeepwardError, RequestValidationError):
        app.add_exception_handler(kind, _answer)
    app.add_middleware(SecurityMiddleware, serving=held)
    _extend_openapi(app, held.cookie)
    return app


def _routes(routers: Sequence[APIRouter] | None) -> list[BaseRoute]:
    routers = application_routes() if routers is None else routers
    # One flat table: a path's methods may stand in several modules, and `Allow` names all of them.
    return [route for each in (public, private, *routers) for route in each.routes]


async def _answer(request: Request, exc: Exception) -> Response:
    response = error_response(request, exc)
    if isinstance(exc, HTTPException) and exc.status_code == 405:
        response.headers["Allow"] = ", ".join(allowed_methods(request))
    return response


def allowed_methods(request: Request) -> list[str]:
    """Return every method of a request's path, sorted; see (2)."""
    routes: list[Any] = request.app.routes
    found = [route.methods for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    named = {method for methods in found for method in methods or ()}
    return sorted(named | {"HEAD"} if "GET" in named else named)


def _extend_openapi(app: FastAPI, cookie: str) -> None:
    """Add to the description what holds for every route: the schema of problems and the two credentials."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        described = made()
        parts = described.setdefault("components", {})
        problem = ProblemDetail.model_json_schema()
        parts.setdefault("schemas", {})["Problem"] = {**problem, "title": "Problem", "additionalProperties": True}
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "A token, `kw_` and 43 characters."},
            "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "A console session."},
        }
        described["security"] = [{"token": []}, {"session": []}]
        for path in ("/health", "/ready"):
            described["paths"][path]["get"]["security"] = []
        described["paths"]["/session"]["post"]["security"] = []
        return described

    app.openapi = openapi  # type: ignore[method-assign]


logger = logging.getLogger("keepward.server")
#: Seconds that a request may take after the server was asked to stop.
SHUTDOWN_TIMEOUT_S = 10


def build(memory: Memory, options: ServerOptions, settings: Settings | None = None) -> FastAPI:
    """Return the whole application for an owner's handle; ``app.state.serving`` is what it shares.

    ``settings`` are those that the store was opened with, to be shown to its owner.
    """
    serving = AppState(memory=memory, options=options.checked(), settings=settings)
    from keepward.mcp import is_installed

    if not (options.mcp and is_installed()):
        return create_app(memory, options=options, serving=serving)
    from keepward.mcp import server as mcp

    def authenticate(request: Request) -> Memory:
        return handle_of(serving, request.headers)

    def admit(handle: Memory) -> float:
        return 0.0 if handle.actor.is_owner else serving.rates.take(actor_key(handle.actor))

    async def enter(scope: Scope, handle: Memory) -> None:
        # A GET is a stream of what a session has to say.
        await serving.admit(scope, handle, STREAM if scope["method"] == "GET" else CALL)

    def bounded(handle: Memory, reads: bool) -> AbstractContextManager[None]:
        return serving.call_limits(handle, reads=reads)

    hooks: dict[str, Any] = {"authenticate": authenticate, "admit": admit, "bounded": bounded}
    hooks |= {"body_limit": options.body_limit}
    hooks |= {"enter": enter, "stateless": serving.shares is not None}
    routes = mcp.routes(memory, profile=options.mcp_profile, **hooks)
    app = create_app(memory, options=options, serving=serving, lifespan=lambda _: mcp.lifespan(routes))
    # Among the routes (6): a mount would answer the exact path with a redirect.
    app.router.routes.extend(routes)
    return app


def bind(options: ServerOptions) -> tuple[socket.socket, ServerOptions]:
    """Return a bound socket, and the options with the port that it has."""
    options = options.checked()
    try:
        found = socket.getaddrinfo(options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise InvalidInput("that host is not a name or address of this machine; give another with --host") from exc
    try:
        # A port that a stopped server left a moment ago can be taken again; one that listens cannot.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as exc:
        bound.close()
        raise InvalidInput(_bind_error(exc, options)) from exc
    bound.setblocking(False)
    return bound, replace(options, port=bound.getsockname()[1])


def _bind_error(exc: OSError, options: ServerOptions) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"port {options.port} is taken; stop what listens there, or name another with --port"
    if exc.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {options.port}; name one above 1023 with --port"
    return "that host is not an address of this machine; give another with --host"


def prepare(app: FastAPI) -> Server:
    """Return the server of an application, ready to run."""
    serving: AppState = app.state.serving
    options = serving.options
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        # One parser, whatever else is installed: it decides where a request ends.
        http="h11",
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    try:
        config.load()
    except OSError as exc:
        # ssl.SSLError is one of these.
        raise InvalidInput("the certificate or its key cannot be read; give PEM files that belong together") from exc
    return Server(config, serving)


class Server(uvicorn.Server):
    """Ends streams when it is asked to stop, and then returns instead of ending the process (5)."""

    def __init__(self, config: uvicorn.Config, serving: AppState) -> None:
        super().__init__(config)
        self._serving = serving

    def answer(self, bound: socket.socket) -> None:
        """Answer requests on a bound socket until the process is asked to stop; the store is the caller's to close."""
        options = self._serving.options
        with logging_to(as_json=options.log_json, quiet=options.quiet):
            self.run(sockets=[bound])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._serving.stopping.set()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take the signals that stop; afterwards the caller closes the store and chooses the exit code."""
        with super().capture_signals():
            try:
                yield
            finally:
                # What was captured would be raised again, and end the process with the store still open.
                self._captured_signals.clear()
