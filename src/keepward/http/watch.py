"""The watch: one line and one count for each request, and the last stop of an error that nobody foresaw.

Invariants
(1) A line holds method, path as it is documented, status and duration; no query, no id, no content.
(2) Each request has an id: the caller's own ``X-Request-Id`` where that is 1 to 64 letters, digits or ``. _ -``, else a
    new one. The answer carries it, and so do the line and a problem.
(3) ``HEAD`` is answered where ``GET`` is, by the same route, without a body.
(4) An unforeseen error is answered with 500 and told by its type and place, without its message.
"""

from __future__ import annotations

import logging
import re
import traceback
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepward.http.problems import REQUEST, Problem
from keepward.http.serving import Serving

logger = logging.getLogger("keepward.server")
#: What is counted where the caller went away before its body was whole.
GONE = 499
#: Route of a request to a path that there is not.
NOWHERE = "(none)"


HEADER = b"x-request-id"
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Watch:
    """Counts and tells of what goes on behind it."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app, self._serving = app, serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, head = self._serving.monotonic(), 0, scope["method"] == "HEAD"
        request = scope[REQUEST] = self._named(scope)
        ended = False

        async def noting(message: Message) -> None:
            nonlocal status, ended
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (HEADER, request.encode("ascii"))]}
            elif head and message["type"] == "http.response.body":
                if ended:
                    # (3) What would go on for ever ends as if its reader had gone.
                    raise OSError("the answer to HEAD has no body")
                ended, message = True, {"type": "http.response.body", "body": b""}
            await send(message)

        try:
            if head:
                scope["method"] = "GET"
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            # Whoever asked has gone, so there is nobody to answer.
            status = status or GONE
        except Exception as fault:  # noqa: BLE001  (4)
            _tell(fault)
            if not status:
                detail = "something went wrong in the server; its log has the place. Nothing was lost."
                await Problem(500, "internal", detail).response()(scope, receive, noting)
        finally:
            scope["method"] = "HEAD" if head else scope["method"]
            route = route_of(scope)
            seconds = self._serving.monotonic() - began
            if self._serving.meters is not None:
                self._serving.meters.count(_method(scope), route, status, seconds)
            facts: dict[str, Any] = {
                "action": "request",
                "method": _method(scope),
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 3),
                "request": request,
            }
            logger.info("%s %s %s", facts["method"], route, status, extra=facts)

    def _named(self, scope: Scope) -> str:
        """Return the id of a request (2)."""
        given = [value for name, value in scope["headers"] if name.lower() == HEADER]
        if len(given) == 1 and _ID.fullmatch(given[0]):
            return str(given[0].decode("ascii"))
        return self._serving.random(8).hex()


def route_of(scope: Scope) -> str:
    """Return the path of the route that took a request, as it is documented."""
    path = getattr(scope.get("route"), "path_format", None)
    if path is None and "endpoint" in scope and scope["path"] == "/mcp":
        path = "/mcp"
    return str(path or NOWHERE)


def _method(scope: Scope) -> str:
    known = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
    # A method is free text from the network; it must not make labels.
    return scope["method"] if scope["method"] in known else "OTHER"


def _tell(fault: BaseException) -> None:
    frames = traceback.extract_tb(fault.__traceback__)
    place = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-4:]))
    facts = {"action": "internal", "error": type(fault).__name__, "place": place}
    logger.error("unexpected %s at %s", facts["error"], place, extra=facts)
