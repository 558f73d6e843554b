"""The class of every route that takes a token: credential first, then a strict reading, then the call.

    router = APIRouter(route_class=KeepwardRoute)

Invariants
(1) Who has no credential learns nothing of how a call is read.
(2) Query and body are read by ``strict``; a body that is parsed comes as ``application/json``, else 415.
(3) A POST may carry an ``Idempotency-Key``; where ``openapi_extra`` holds ``x-streaming`` it may not.
(4) An endpoint is only called while the credential of its handle still holds.
(5) Every error leaves as a problem.
"""

from __future__ import annotations

import functools
import inspect
import typing
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

from keepward.app import Memory
from keepward.errors import KeepwardError
from keepward.http.deps import SCOPE, TENANT, Caller, confirm, identify, serving_of
from keepward.http.idempotency import HEADER, REPLAYED, Kept, fingerprint
from keepward.http.problems import Problem, answer_of
from keepward.http.spans import operation_of
from keepward.http.strict import StrictRequest, check_query, is_many

STREAMING = "x-streaming"
ERASE = "/memory/erase"
#: Errors that are an answer; any other is the server's own to tell of, with its place.
FORESEEN = (KeepwardError, HTTPException, RequestValidationError)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class QuickRoute(APIRoute):
    """A route that is ruled out by the text before its first parameter, before its expression is tried.

    Most of the table is, and to try every expression takes a few hundredths of the time of a call.
    """

    @functools.cached_property
    def _start(self) -> str:
        return self.path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route answers a request, as its base does."""
        if not scope.get("root_path") and not scope["path"].startswith(self._start):
            return Match.NONE, {}
        return super().matches(scope)


class KeepwardRoute(QuickRoute):
    """A route that takes a token."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.confirms = _takes_handle(endpoint)
        super().__init__(path, _confirming(endpoint), **options)

    def get_route_handler(self) -> Handler:
        """Return what answers a request to this route."""
        inner = super().get_route_handler()
        known = _parameters(self)
        streaming = bool((self.openapi_extra or {}).get(STREAMING))
        parsed = self.body_field is not None

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            try:
                caller = await identify(strict)
                if not self.confirms:
                    await run_in_threadpool(confirm, caller.handle)
                check_query(strict, known)
                if parsed:
                    check_type(strict)
                if strict.method != "POST" or HEADER.lower() not in strict.headers:
                    return await inner(strict)
                if streaming:
                    raise Problem(400, "bad_request", f"this call is a stream and takes no {HEADER}; leave it out")
                return await _once(strict, caller, inner)
            except FORESEEN as fault:
                return answer_of(strict, fault)

        async def watched(request: Request) -> Response:
            spans, operation = serving_of(request).spans, operation_of(request.method, self.path_format)
            if spans is None or operation is None:
                response = await answer(request)
            else:
                with spans.of(operation, request.headers) as span:
                    response = await answer(request)
                    span.answered(response.status_code)
            if self.path == ERASE and response.status_code < 400:
                serving_of(request).answers.clear()
            return response

        return watched


class PublicRoute(QuickRoute):
    """A route that takes no token; its query and body are read as strictly."""

    def get_route_handler(self) -> Handler:
        """Return what answers a request to this route."""
        inner = super().get_route_handler()
        known, parsed = _parameters(self), self.body_field is not None

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            try:
                check_query(strict, known)
                if parsed:
                    check_type(strict)
                return await inner(strict)
            except FORESEEN as fault:
                return answer_of(strict, fault)

        return answer


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
    kept = serving.answers.begin(caller.principal, key, asked)
    if kept is not None:
        await run_in_threadpool(confirm, caller.handle)
        if await run_in_threadpool(serving.erased_since, kept.tenant, kept.seq):
            serving.answers.clear()
            raise Problem(409, "conflict", "something was erased since this call was answered; read what holds now")
        replay = Response(kept.body, kept.status)
        replay.raw_headers = [*kept.headers, (REPLAYED.lower().encode(), b"true")]
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
            given = Kept(status=response.status_code, headers=headers, body=body, tenant=tenant, seq=seq)
            serving.answers.keep(caller.principal, key, given)
            done = True
        return response
    finally:
        if not done:
            serving.answers.drop(caller.principal, key)


def check_type(request: Request) -> None:
    """See that a body, if there is one, is JSON.

    Raises:
        Problem: it is announced as something else: 415.
    """
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().replace('"', "").replace(" ", "")
    if kind.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise Problem(415, "unsupported_media_type", "send the body as application/json")


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


def _takes_handle(endpoint: Callable[..., Any]) -> bool:
    if inspect.isgeneratorfunction(endpoint) or inspect.isasyncgenfunction(endpoint):
        return False
    hints = typing.get_type_hints(endpoint)
    return any(isinstance(hint, type) and issubclass(hint, Memory) for hint in hints.values())


def _confirming(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return an endpoint that first sees whether its handle still holds (4), in the thread it runs in."""
    if not _takes_handle(endpoint):
        return endpoint

    if inspect.iscoroutinefunction(endpoint):

        @functools.wraps(endpoint)
        async def later(**values: Any) -> Any:
            for handle in _handles(values):
                await run_in_threadpool(confirm, handle)
            return await endpoint(**values)

        return _resolved(later, endpoint)

    @functools.wraps(endpoint)
    def now(**values: Any) -> Any:
        for handle in _handles(values):
            confirm(handle)
        return endpoint(**values)

    return _resolved(now, endpoint)


def _handles(values: Mapping[str, Any]) -> list[Memory]:
    return [each for each in values.values() if isinstance(each, Memory)]


def _resolved(wrapped: Callable[..., Any], endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Give a wrapper its endpoint's signature, with names resolved where that was written."""
    hints = typing.get_type_hints(endpoint, include_extras=True)
    signature = inspect.signature(endpoint)
    parameters = [each.replace(annotation=hints[each.name]) for each in signature.parameters.values()]
    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=hints.get("return", signature.return_annotation)
    )
    wrapped.__annotations__ = hints
    return wrapped
