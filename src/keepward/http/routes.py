"""Routes, made from the registry of operations and the table of HTTP details.

* If a request names the version it saw, a newer change refuses it, before and during the write. Bookkeeping does not.
  An approval is bound to the digest that its reviewer saw, a rollback to the head.
* Changes count against the rate limit.
* An endpoint checks its credential in the thread that reads the store. A route that receives a file checks it before.
* Authentication runs before validation: a request without a valid token gets 401, never 422.
* A POST may have an ``Idempotency-Key``, except with ``x-streaming`` in ``openapi_extra``.
* Every error is sent as a problem.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from keepward import types
from keepward.api import OPERATIONS as LIBRARY
from keepward.core.browse import Member
from keepward.core.copies import ExportPlan, RestoredExport
from keepward.core.job import Alike, JobState, Run
from keepward.core.journal import Check, Difference, Version
from keepward.core.principals import Token
from keepward.core.proposal import Proposal
from keepward.errors import KeepwardError
from keepward.http import handlers, openapi, schemas, settings, slots, streams
from keepward.http.auth import Handle, Writes, app_state_of, identify, require_valid_credential
from keepward.http.handlers import HTTP_OPERATIONS, OperationCall
from keepward.http.idempotency import KEY_HEADER, respond_once
from keepward.http.inputs import Inputs, Parameter, inputs_of
from keepward.http.requests import (
    MAX_CURSOR_LENGTH,
    Problem,
    StrictRequest,
    check_content_type,
    check_query,
    error_response,
)
from keepward.http.schemas import Field, Written, page_of
from keepward.http.telemetry import OPERATIONS
from keepward.memory import Memory
from keepward.operations import Operation
from keepward.types import GateLimit, Limit


class _Named(StringConvertor):
    # A name in a path is never the name of an action, such as `merge`; these get 405.
    regex = "(?!(?:approve|batch|forget|merge|reject)(?:/|$))[^/]+"


register_url_convertor("named", _Named())


_COSTLY_OPERATIONS = (
    "bisect impact plan_contain contain contradictions merge_candidates verify doctor replay "
    "receipt export rebuild reindex train_reranker run_jobs plan_erase"
)
#: Kind of work, by operation; default: a call.
WORK_OF_OPERATION: Mapping[str, slots.Work] = {
    **dict.fromkeys(_COSTLY_OPERATIONS.split(), slots.COSTLY),
    **dict.fromkeys(("import", "plan_restore_export", "restore_export"), slots.IMPORT),
    "events": slots.STREAM,
}
#: Errors that become problems; others are logged with their location.
EXPECTED_ERRORS = (KeepwardError, HTTPException, RequestValidationError)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PublicRoute(APIRoute):
    """A route without a token; its query and body are parsed strictly."""

    takes_token = False
    #: Whether the endpoint checks the credential itself, in the thread that reads the store.
    confirms = False

    @functools.cached_property
    def _static_prefix(self) -> str:
        return self.path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route matches a request.

        Comparing the text before the first parameter first is much faster than trying every regular expression.
        """
        if not scope.get("root_path") and not scope["path"].startswith(self._static_prefix):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Handler:
        """Return the handler of this route, within its span."""
        inner, parsed = super().get_route_handler(), self.body_field is not None
        inputs: Inputs | None = getattr(self.endpoint, "inputs", None)
        # Query parameters, and whether each may be repeated.
        known = {param.alias: _accepts_many(param.field_info.annotation) for param in self.dependant.query_params}
        if inputs is not None:
            known, parsed = dict(inputs.query), inputs.body is not None
        operation = OPERATIONS.get(self.operation_id or self.name)

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            try:
                if self.takes_token:
                    handle = (await identify(strict)).handle
                    work = WORK_OF_OPERATION.get(self.operation_id or "", slots.CALL)
                    await app_state_of(strict).admit(strict.scope, handle, work)
                    if not self.confirms:
                        await run_in_threadpool(require_valid_credential, handle)
                check_query(strict, known)
                if parsed:
                    check_content_type(strict)
                    await strict.json()
                if not self.takes_token or strict.method != "POST" or KEY_HEADER.lower() not in strict.headers:
                    return await inner(strict)
                if (self.openapi_extra or {}).get(streams.STREAMING):
                    raise Problem(400, "bad_request", f"a stream takes no {KEY_HEADER}; leave it out")
                about = ALL_OPERATIONS.get(self.operation_id or self.name)
                return await respond_once(strict, inner, repeats=about is not None and about.is_one_write)
            except EXPECTED_ERRORS as exc:
                return error_response(strict, exc)

        async def watched(request: Request) -> Response:
            serving = app_state_of(request)
            if serving.spans is None or operation is None:
                response = await answer(request)
            else:
                with serving.spans.start_span(operation, request.headers) as note:
                    response = await answer(request)
                    note(response.status_code)
            return response

        return watched


class KeepwardRoute(PublicRoute):
    """A route that requires a token."""

    takes_token = True


class SelfConfirmingRoute(KeepwardRoute):
    """A route whose endpoint checks the credential itself."""

    confirms = True


_ETag = Annotated[str, GateLimit(pattern=r'^(\*|"[!#-~]*")$')]
_Number = Annotated[str, Limit(maxLength=16, pattern=r"^(0|[1-9][0-9]{0,15})$")]
_Cursor = Annotated[str, Limit(minLength=1, maxLength=MAX_CURSOR_LENGTH, pattern=r"^[A-Za-z0-9_-]+$")]
_Why = Annotated[str, Limit(maxLength=1000, pattern=r"^[^\x00]*$")]
_IF_MATCH = {"If-Match": Parameter("header", Field(_ETag, None), "The ETag that you read.")}
_IF_NONE_MATCH = {"If-None-Match": Parameter("header", Field(_ETag, None), "An ETag; 304 if it is current.")}
_LAST_EVENT_ID = {"Last-Event-ID": Parameter("header", Field(_Number, None), "As `after`, which it replaces.")}
_CURSOR = {"cursor": Parameter("query", Field(_Cursor, None), "`cursor` of the previous page.")}
_EVENTS = {"events": Parameter("query", Field(bool, False), "Include each memory before and after.")}
_REF = {"ref": streams.Ref, "data": None, "media_type": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec:
    """The HTTP details of an operation."""

    #: Statuses of problems besides those of every route.
    problems: tuple[int, ...]
    answer: Callable[[OperationCall], Response] = handlers.plain_endpoint
    #: Type of the response; None for that of the operation's result.
    model: Any = None
    #: Documentation of other responses, by status.
    also: Mapping[int, Any] | None = None
    #: HTTP-only parameters, by the names that are sent.
    http_only: Mapping[str, Parameter] | None = None
    #: Receives a body that is not JSON; the handler gets it as ``received``.
    receives: Callable[[Request], Awaitable[Any]] | None = None
    #: Narrower types of parameters in a path or query; None if not sent there.
    kinds: Mapping[str, Any] | None = None
    #: Further parts of the OpenAPI operation.
    extra: dict[str, Any] | None = None
    #: Title in the OpenAPI document, if it differs from the name of the operation.
    title: str = ""


def route_spec(*problems: int, **options: Any) -> RouteSpec:
    return RouteSpec(problems=problems, **options)


def _write_spec(*problems: int, **options: Any) -> RouteSpec:
    options.setdefault("also", {200: Written, 202: Written})
    return RouteSpec(problems=(404, 409, 413, 415, *problems), **options)


def _edit_spec(*problems: int, **options: Any) -> RouteSpec:
    return _write_spec(412, *problems, answer=handlers.update_memory, http_only=_IF_MATCH, **options)


#: HTTP details by tag and operation, in the order of the OpenAPI document.
ROUTE_SPECS: Mapping[str, Mapping[str, RouteSpec]] = {
    "blobs": {
        "put_blob": route_spec(
            409, 413, answer=streams.put_blob, receives=Request.body, kinds=_REF, extra=streams.BLOB_BODY
        ),
        "read_blob": route_spec(
            404,
            500,
            answer=streams.read_blob,
            http_only=_IF_NONE_MATCH,
            kinds=_REF,
            also={200: streams.BLOB_ANSWER, 304: {"description": "The bytes have that ETag."}},
        ),
    },
    "carry": {
        "export": route_spec(500, answer=streams.export, also={200: streams.EXPORT_ANSWER}),
        "import": route_spec(
            409,
            413,
            500,
            answer=streams.import_file,
            receives=streams.receive_upload,
            also={200: streams.IMPORT_ANSWER},
            extra=streams.UPLOAD_BODY,
            title="import_lines",
        ),
        "plan_restore_export": route_spec(
            409,
            413,
            answer=streams.plan_restore,
            model=ExportPlan,
            receives=streams.receive_upload,
            extra=streams.UPLOAD_BODY,
            title="plan_restoring",
        ),
        "restore_export": route_spec(
            409,
            413,
            answer=streams.restore_upload,
            model=RestoredExport,
            receives=streams.receive_upload,
            extra=streams.UPLOAD_BODY,
            title="restore_lines",
        ),
    },
    "erase": {
        "plan_erase": route_spec(404, 409),
        "erase": route_spec(404, 409, answer=handlers.erase, model=schemas.Destroyed),
        "certificate": route_spec(404, model=schemas.Certificate),
        "plan_adopt": route_spec(),
        "adopt": route_spec(409),
    },
    "events": {
        "events": route_spec(
            404, 429, answer=streams.events, http_only=_LAST_EVENT_ID, also={200: streams.EVENTS_ANSWER}
        )
    },
    "inquiry": {
        "blame": route_spec(404),
        "impact": route_spec(
            404, kinds=dict.fromkeys(("source", "actor", "session", "commit", "memory"), types.FilterText | None)
        ),
        "plan_contain": route_spec(404),
        "contain": route_spec(404, 409),
        "bisect": route_spec(404, 409),
        "contradictions": route_spec(),
    },
    "journal": {
        "log": route_spec(404, answer=handlers.log, model=schemas.Commits, http_only=_EVENTS),
        "show": route_spec(404),
        "diff": route_spec(
            404,
            answer=handlers.diff,
            model=page_of(Difference, "Differences", **{"from": str, "to": str | None, "count": int}),
        ),
        "rollback": route_spec(
            404, 409, 412, 428, answer=handlers.rollback, model=schemas.RolledBack, http_only=_IF_MATCH
        ),
        "receipt": route_spec(404, model=schemas.AnyReceipt),
        "replay": route_spec(404),
        "receipts": route_spec(),
        "context_diff": route_spec(404),
    },
    "read": {
        "status": route_spec(answer=handlers.status, model=schemas.Status),
        "core": route_spec(answer=handlers.core, model=schemas.Core),
        "recall": route_spec(404, answer=handlers.search, model=schemas.Found, http_only=_CURSOR),
        "identity": route_spec(404),
        "context": route_spec(404, 409, title="compile_context"),
        "memory_block": route_spec(409, title="block"),
        "snapshot": route_spec(409),
        "list_memories": route_spec(404, answer=handlers.find, model=schemas.Memories, http_only=_CURSOR),
        "get": route_spec(
            404,
            answer=handlers.get,
            http_only=_IF_NONE_MATCH,
            also={304: {"description": "The version has that ETag."}},
        ),
        "history": route_spec(404, answer=handlers.history, model=page_of(Version, "Versions", id=str)),
    },
    "browse": {
        "facets": route_spec(404),
        "activity": route_spec(404),
        "sources": route_spec(404),
        "users": route_spec(model=page_of(Member, "Users")),
        "projects": route_spec(model=page_of(Member, "Projects")),
        "lineage": route_spec(404),
    },
    "review": {
        "pending": route_spec(answer=handlers.pending, model=schemas.Proposals),
        "proposal": route_spec(404, answer=handlers.get_proposal, model=schemas.Reviewed),
        "approve": route_spec(
            404, 409, 412, 428, answer=handlers.approve, http_only=_IF_MATCH, kinds={"id": types.Name, "digest": None}
        ),
        "amend": _write_spec(412, 428, answer=handlers.approve, http_only=_IF_MATCH),
        "reject": route_spec(404, 409, answer=handlers.reject, model=schemas.Rejected),
        "reopen": route_spec(404, 409, answer=handlers.reopen, model=schemas.Reopened),
        "approve_many": route_spec(428, answer=handlers.approve_many, model=schemas.Approved),
        "reject_many": route_spec(answer=handlers.reject_many, model=schemas.RejectedMany),
        "notices": route_spec(model=page_of(Proposal, "Notices")),
    },
    "tokens": {
        "tokens": route_spec(answer=handlers.tokens, model=page_of(Token, "Tokens")),
        "create_token": route_spec(answer=handlers.create_token, model=schemas.IssuedToken),
        "revoke_token": route_spec(404, 409, answer=handlers.revoke_token, model=schemas.Revoked),
    },
    "upkeep": {
        "feedback": route_spec(404, 409),
        "train_reranker": route_spec(409, title="train"),
        "verify": route_spec(),
        "settings": route_spec(answer=settings.settings, model=schemas.SettingsInForce),
        "rebuild": route_spec(answer=handlers.rebuild, model=schemas.Rebuilt),
        "reindex": route_spec(model=schemas.Reindexed),
        "doctor": route_spec(answer=handlers.doctor, model=page_of(Check, "Checks", ok=bool)),
        "jobs": route_spec(model=page_of(JobState, "Jobs")),
        "run_jobs": route_spec(404, 409, model=page_of(Run, "Runs")),
        "merge_candidates": route_spec(model=page_of(Alike, "Candidates")),
    },
    "write": {
        "remember": _write_spec(),
        "remember_many": route_spec(404, 409, answer=handlers.remember_many, model=schemas.Outcomes),
        "add": route_spec(404, 409),
        "merge": _write_spec(model=Written, also={200: Written | schemas.Merged, 202: Written}),
        "forget_many": route_spec(409, model=schemas.Forgotten),
        "plan_forget_matching": route_spec(),
        "forget_matching": route_spec(409),
        "revise": _edit_spec(428),
        "forget": _edit_spec(kinds={"reason": _Why, "if_version": None}),
        "append": _edit_spec(),
        "move": _edit_spec(),
        "archive": _edit_spec(),
        "restore": _edit_spec(),
        "reinforce": _write_spec(),
        "promote": _write_spec(),
        "supersede": _write_spec(),
        "update_by_key": _write_spec(),
        "update_identity": _write_spec(),
        "propose": _write_spec(title="edit", answer=handlers.propose),
    },
}
#: All operations with a route, by name.
ALL_OPERATIONS: Mapping[str, Operation] = LIBRARY | HTTP_OPERATIONS
#: The right of each operation, or the role ``owner``.
RIGHTS: Mapping[str, str] = {name: operation.right for name, operation in ALL_OPERATIONS.items()}
#: Operations without HTTP details.
DEFAULT_ROUTE_SPECS = {
    name: route_spec(*((404,) if "{" in operation.path else ()), *((409,) if operation.changes else ()))
    for name, operation in ALL_OPERATIONS.items()
    if not any(name in rows for rows in ROUTE_SPECS.values())
}


@cache
def routes() -> tuple[APIRouter, ...]:
    """Return the routers by tag; all applications share them."""
    return tuple(_router(tag, rows) for tag, rows in [*ROUTE_SPECS.items(), ("other", DEFAULT_ROUTE_SPECS)] if rows)


def _router(tag: str, rows: Mapping[str, RouteSpec]) -> APIRouter:
    # An upload is authorized before its body is received.
    kind = KeepwardRoute if tag in ("blobs", "carry") else SelfConfirmingRoute
    router = APIRouter(route_class=kind, tags=[tag])
    for name, spec in rows.items():
        _add(router, ALL_OPERATIONS[name], spec, confirms=kind.confirms)
    return router


def _add(router: APIRouter, operation: Operation, row: RouteSpec, *, confirms: bool) -> None:
    http_only: Mapping[str, Parameter] = row.http_only or {}
    receives: Any = row.receives
    inputs = inputs_of(operation, row.kinds or {}, http_only)

    def run(http: Any, handle: Memory, received: Any = None) -> Response:
        if confirms:
            require_valid_credential(handle)
        given = inputs.read(http)
        apart = {name: given.pop(name, None) for name in http_only} | {"received": received}
        call = OperationCall(http=http, memory=handle, operation=operation, given=given, http_only=apart)
        # A streamed response continues after this returns; its work has its own limits.
        streamed = WORK_OF_OPERATION.get(operation.name) is slots.STREAM or row.extra
        with nullcontext() if streamed else app_state_of(http).http_limits(handle, reads=not operation.changes):
            return row.answer(call)

    def endpoint(http: Request, handle: Handle) -> Response:
        return run(http, handle)

    async def receiving(http: Request, handle: Handle) -> Response:
        return await run_in_threadpool(run, http, handle, await receives(http))

    called: Any = endpoint if receives is None else receiving
    called.__name__, called.__doc__, called.inputs = row.title or operation.name, operation.doc, inputs
    responses = {} if operation.status in (row.also or {}) else {operation.status: row.model or operation.result}
    body, changes = inputs.body is not None, operation.changes
    problems = (*row.problems, *((413, 415) if body else ()), *((429,) if changes else ()))
    router.add_api_route(
        operation.path.replace("{id}", "{id:named}"),
        called,
        methods=[operation.http_method],
        operation_id=operation.name,
        status_code=operation.status,
        dependencies=[Writes] if changes else None,
        response_class=Response,
        responses=openapi.answers(operation, {**responses, **(row.also or {})}, problems),
        openapi_extra={**openapi.inputs(inputs, operation.path), **(row.extra or {})},
    )


def _accepts_many(annotation: Any) -> bool:
    """Whether a parameter accepts several values."""
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, (list, tuple, set, frozenset)):
        return True
    return any(_accepts_many(part) for part in get_args(annotation) if part is not annotation)
