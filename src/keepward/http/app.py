"""The application: routes, edge, limits and watch around one store.

Invariants
(1) Every route that is not public takes a token.
(2) What no route answers is a problem too: 404, or 405 with every method of the path in ``Allow``.
(3) The application holds one store; whoever made it closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from keepward.errors import KeepwardError
from keepward.http.edge import Edge
from keepward.http.frame import Told, private, public
from keepward.http.options import ServerOptions
from keepward.http.problems import answer_of
from keepward.http.routes import routes as application_routes
from keepward.http.serving import Serving
from keepward.memory import Memory

ABOUT = """Memory for AI agents that one can audit, approve and undo.

Every call takes a token as `Authorization: Bearer kw_...`, or the session of the console. Errors are
`application/problem+json` with a stable `code`. A write answers 201 committed, 202 held for review, 200 the same was
there already, 422 refused by a gate."""


def create_app(
    memory: Memory,
    *,
    options: ServerOptions | None = None,
    serving: Serving | None = None,
    routers: Sequence[APIRouter] | None = None,
) -> FastAPI:
    """Return the application that serves the store of an owner's handle.

    ``serving`` takes the place of a fresh one, as with a clock of a test's own, and ``routers`` that of the routes.

    Raises:
        InvalidInput: the options cannot be served safely.
    """
    chosen = (options or ServerOptions()).checked()
    held = serving or Serving(memory=memory, options=chosen)
    app = FastAPI(
        title="Keepward",
        version=version("keepward"),
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Ours are in `spans`: the framework's would carry the query.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.serving = held
    app.router.routes.extend(_routes(routers))
    for kind in (HTTPException, KeepwardError, RequestValidationError):
        app.add_exception_handler(kind, _answer)
    app.add_middleware(Edge, serving=held)
    _describe(app, held.cookie)
    return app


def _routes(routers: Sequence[APIRouter] | None) -> list[BaseRoute]:
    routers = application_routes() if routers is None else routers
    # One flat table: a path's methods may stand in several modules, and `Allow` names all of them.
    return [route for each in (public, private, *routers) for route in each.routes]


async def _answer(request: Request, fault: Exception) -> Response:
    response = answer_of(request, fault)
    if isinstance(fault, HTTPException) and fault.status_code == 405:
        response.headers["Allow"] = ", ".join(allowed(request))
    return response


def allowed(request: Request) -> list[str]:
    """Return every method of a request's path, sorted; see (2)."""
    routes: list[Any] = request.app.routes
    found = [route.methods for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    named = {method for methods in found for method in methods or ()}
    return sorted(named | {"HEAD"} if "GET" in named else named)


def _describe(app: FastAPI, cookie: str) -> None:
    """Add to the description what holds for every route: the schema of problems and the two credentials."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        described = made()
        parts = described.setdefault("components", {})
        problem = Told.model_json_schema()
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
