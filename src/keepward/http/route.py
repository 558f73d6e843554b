"""The classes of all routes: credential first, then a strict reading, then the call.

Invariants
(1) Who has no credential learns nothing of how a call is read.
(2) A POST may carry an ``Idempotency-Key``; where ``openapi_extra`` holds ``x-streaming`` it may not.
(3) An endpoint is only called while the credential of its handle still holds.
(4) Every error leaves as a problem.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from keepward.errors import KeepwardError
from keepward.http.credentials import SCOPE, TENANT, Caller, confirm, identify, serving_of
from keepward.http.limits import HEADER, REPLAYED, Answered, fingerprint
from keepward.http.problems import Problem, answer_of
from keepward.http.reading import StrictRequest, check_query, check_type, is_many
from keepward.http.telemetry import OPERATIONS

STREAMING = "x-streaming"
ERASE = "/memory/erase"
#: Errors that are an answer; any other is the server's own to tell of, with its place.
FORESEEN = (KeepwardError, HTTPException, RequestValidationError)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PublicRoute(APIRoute):
    """A route that takes no token; its query and body are read strictly."""

    @functools.cached_property
    def _start(self) -> str:
        return self.path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route answers a request.

        Most of the table is ruled out by the text before the first parameter: to try every expression takes a few
        hundredths of the time of a call.
        """
        if not scope.get("root_path") and not scope["path"].startswith(self._start):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Handler:
        """Return what answers a request to this route."""
        inner = super().get_route_handler()
        known, parsed = _parameters(self), self.body_field is not None

        async def read(request: StrictRequest) -> Response:
            check_query(request, known)
            if parsed:
                check_type(request)
            return await self.carried_out(request, inner)

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            try:
                return await self.let_in(strict, read)
            except FORESEEN as fault:
                return answer_of(strict, fault)

        return self.watched(answer)

    async def let_in(self, request: StrictRequest, read: Callable[[StrictRequest], Any]) -> Response:
        """Read a request, whoever sent it."""
        response: Response = await read(request)
        return response

    async def carried_out(self, request: StrictRequest, inner: Handler) -> Response:
        """Carry out a call that was read."""
        return await inner(request)

    def watched(self, answer: Handler) -> Handler:
        """Return what answers a request and notes how."""
        return answer


class KeepwardRoute(PublicRoute):
    """A route that takes a token."""

    #: Whether the endpoint itself sees to (3), in the thread in which it reads the store.
    confirms = False

    async def let_in(self, request: StrictRequest, read: Callable[[StrictRequest], Any]) -> Response:
        """Read a request of a caller whose credential holds."""
        caller = await identify(request)
        if not self.confirms:
            await run_in_threadpool(confirm, caller.handle)
        return await super().let_in(request, read)

    async def carried_out(self, request: StrictRequest, inner: Handler) -> Response:
        """Carry out a call, once where it came under a key."""
        if request.method != "POST" or HEADER.lower() not in request.headers:
            return await inner(request)
        if (self.openapi_extra or {}).get(STREAMING):
            raise Problem(400, "bad_request", f"this call is a stream and takes no {HEADER}; leave it out")
        return await _once(request, await identify(request), inner)

    def watched(self, answer: Handler) -> Handler:
        """Return what answers a request within its span; after an erasure nothing is held any more."""
        operation = OPERATIONS.get(self.operation_id or self.name)

        async def watched(request: Request) -> Response:
            spans = serving_of(request).spans
            if spans is None or operation is None:
                response = await answer(request)
            else:
                with spans.of(operation, request.headers) as span:
                    response = await answer(request)
                    span.answered(response.status_code)
            if self.path == ERASE and response.status_code < 400:
                serving_of(request).forget()
            return response

        return watched


async def _once(request: StrictRequest, caller: Caller, inner: Handler) -> Response:
    """Answer a call under its key."""
    serving, key = serving_of(request), request.headers[HEADER]
    asked = fingerprint(
        (
            request.method,
            request.scope["path"],
            request.scope["query_string"],
            *(request.headers.get(name) for name in (TENANT, SCOPE, "If-Match", "Content-Type")),
            await request.body(),
        )
    )
    before = serving.answers.begin(caller.principal, key, asked)
    if before is not None:
        await run_in_threadpool(confirm, caller.handle)
        if await run_in_threadpool(serving.erased_since, before.tenant, before.seq):
            serving.answers.clear()
            raise Problem(409, "conflict", "something was erased since this call was answered; read what holds now")
        replay = Response(before.body, before.status)
        replay.raw_headers = [*before.headers, (REPLAYED.lower().encode(), b"true")]
        return replay
    done = False
    try:
        try:
            response = await inner(request)
        except FORESEEN as fault:
            response = answer_of(request, fault)
        body = getattr(response, "body", None)
        if isinstance(body, bytes):
            tenant = caller.handle.tenant
            seq = await run_in_threadpool(serving.newest, tenant)
            headers = tuple(response.raw_headers)
            answer = Answered(status=response.status_code, headers=headers, body=body, tenant=tenant, seq=seq)
            serving.answers.hold(caller.principal, key, answer)
            done = True
        return response
    finally:
        if not done:
            serving.answers.drop(caller.principal, key)


def _parameters(route: APIRoute) -> Mapping[str, bool]:
    """Return the parameters of a route's query, and whether each may stand more than once."""
    found: dict[str, bool] = {}
    for each in _asked(route.dependant):
        annotation = each.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, info in annotation.model_fields.items():
                found[info.alias or name] = is_many(info.annotation)
        else:
            found[each.alias] = is_many(annotation)
    return found


def _asked(dependant: Dependant) -> list[Any]:
    return [*dependant.query_params, *(each for below in dependant.dependencies for each in _asked(below))]
