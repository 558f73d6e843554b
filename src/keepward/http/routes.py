"""Routes, made from the registry of operations and the table of HTTP details.

* If a request names the version it saw, a newer change refuses it, before and during the write. Bookkeeping does not.
  An approval is bound to the digest that its reviewer saw, a rollback to the head.
* Changes count against the rate limit.
* An endpoint checks its credential in the thread that reads the store. A route that receives a file checks it before.
* Authentication runs before validation: a request without a valid token gets 401, never 422.
* A write of one outcome may have an ``Idempotency-Key``; other changes refuse it.
* Every error is sent as a problem.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from inspect import getdoc
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from keepward.api import OPERATIONS as LIBRARY
from keepward.core.browse import Member
from keepward.core.copies import ExportPlan, RestoredExport
from keepward.core.job import Alike, JobState, Run
from keepward.core.journal import Check, Difference
from keepward.core.proposal import Outcome, Proposal
from keepward.errors import KeepwardError, NotFound
from keepward.http import handlers, openapi, schemas, settings, slots, streams
from keepward.http.auth import app_state_of, count_write, identify, require_valid_credential
from keepward.http.handlers import HTTP_OPERATIONS, OperationCall
from keepward.http.idempotency import KEY_HEADER, respond_once
from keepward.http.inputs import Inputs, Parameter, arguments_of, inputs_of
from keepward.http.requests import (
    MAX_CURSOR_LENGTH,
    Problem,
    StrictRequest,
    check_content_type,
    check_query,
    error_response,
)
from keepward.http.schemas import Schema, page_of
from keepward.http.telemetry import OPERATIONS
from keepward.memory import Memory
from keepward.operations import Operation
from keepward.types import gate_limit


class _Named(StringConvertor):
    # A name in a path is never the name of an action, such as `merge`; these get 405.
    regex = "(?!(?:approve|batch|forget|merge|reject)(?:/|$))[^/]+"


register_url_convertor("named", _Named())


_COSTLY_OPERATIONS = (
    "bisect run_tests impact export_subject plan_contain contain contradictions merge_candidates verify doctor replay "
    "receipt export rebuild reindex train_reranker run_jobs plan_erase"
)
#: Kind of work, by operation; default: a call.
WORK_OF_OPERATION: Mapping[str, slots.Work] = {
    **dict.fromkeys(_COSTLY_OPERATIONS.split(), slots.COSTLY),
    **dict.fromkeys(("import", "plan_restore_export", "restore_export"), slots.IMPORT),
    "events": slots.STREAM,
}
#: Errors that become problems; others are logged with their location.
EXPECTED_ERRORS = (KeepwardError, HTTPException)
#: Gets the request, and with a token its handle; called in a thread unless it is a coroutine.
Endpoint = Callable[..., Response | Awaitable[Response]]


class ApiRoute(Route):
    """A route of one method."""

    #: Returns its part of the OpenAPI document, which is built when a client asks for it; None if it has none.
    described: Callable[[], Schema] | None

    def __init__(self, path: str, endpoint: Any, method: str, described: Callable[[], Schema] | None) -> None:
        super().__init__(path, endpoint, methods=[method], include_in_schema=described is not None)
        # The middleware replaces HEAD by GET.
        self.methods, self.described = {method}, described
        self._static_prefix = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether this route matches a request.

        Comparing the text before the first parameter first is much faster than trying every regular expression.
        """
        if not scope.get("root_path") and not scope["path"].startswith(self._static_prefix):
            return Match.NONE, {}
        match, child = super().matches(scope)
        return match, {**child, "route": self}


def route(
    method: str,
    path: str,
    endpoint: Endpoint,
    *,
    name: str = "",
    known: Mapping[str, bool] | None = None,
    parsed: bool = False,
    takes_token: bool = True,
    confirms: bool = False,
    changes: bool = False,
    described: Callable[[], Schema] | None = None,
) -> ApiRoute:
    """Return a route, within its span; its query and body are parsed strictly.

    ``name`` is that of the operation. ``known`` are the parameters of the query, and whether each may be repeated.
    ``parsed`` means that it has a JSON body. With ``confirms``, the endpoint checks the credential itself, in the
    thread that reads the store. ``changes`` means that it counts against the rate limit.
    """
    traced, operation, work = OPERATIONS.get(name), ALL_OPERATIONS.get(name), WORK_OF_OPERATION.get(name, slots.CALL)
    called: Any = endpoint if inspect.iscoroutinefunction(endpoint) else functools.partial(run_in_threadpool, endpoint)

    async def inner(request: Request) -> Response:
        if changes:
            await count_write(request)
        response: Response = await called(request, *([(await identify(request)).handle] if takes_token else []))
        return response

    async def answer(request: StrictRequest) -> Response:
        try:
            if takes_token:
                handle = (await identify(request)).handle
                await app_state_of(request).admit(request.scope, handle, work)
                if not confirms:
                    await run_in_threadpool(require_valid_credential, handle)
            check_query(request, known or {})
            if parsed:
                check_content_type(request)
                await request.parse_body()
            if not (takes_token and changes and KEY_HEADER.lower() in request.headers):
                return await inner(request)
            if operation is None or not operation.is_one_write:
                detail = f"only a call that returns the outcome of one write takes an {KEY_HEADER}; leave it out"
                raise Problem(400, "bad_request", detail)
            return await respond_once(request, inner)
        except EXPECTED_ERRORS as exc:
            return error_response(request, exc)

    async def watched(request: Request) -> Response:
        strict, serving = StrictRequest(request.scope, request.receive), app_state_of(request)
        if serving.spans is None or traced is None:
            return await answer(strict)
        with serving.spans.start_span(traced, request.headers) as note:
            response = await answer(strict)
            note(response.status_code)
        return response

    return ApiRoute(path, watched, method, described)


_ETag = Annotated[str, gate_limit(pattern=r'^(\*|"[!#-~]*")$')]
_Number = Annotated[
    str, Meta(description="As `after`, which it replaces.", max_length=16, pattern=r"^(0|[1-9][0-9]{0,15})$")
]
_Cursor = Annotated[
    str,
    Meta(
        description="`cursor` of the previous page.",
        min_length=1,
        max_length=MAX_CURSOR_LENGTH,
        pattern=r"^[A-Za-z0-9_-]+$",
    ),
]
_Why = Annotated[str, Meta(description="Why; it is stored in the journal.", max_length=1000, pattern=r"^[^\x00]*$")]
_IF_MATCH = {"If-Match": Parameter("header", Annotated[_ETag, Meta(description="The ETag that you read.")])}
_IF_NONE_MATCH = {
    "If-None-Match": Parameter("header", Annotated[_ETag, Meta(description="An ETag; 304 if it is current.")])
}
_LAST_EVENT_ID = {"Last-Event-ID": Parameter("header", _Number)}
_CERTIFICATE_FORMAT = {
    "format": Parameter(
        "query", Annotated[Literal["json", "html"], Meta(description="`html` is a page to read and print.")]
    )
}
_CERTIFICATE_ANSWER = {
    "description": "The certificate.",
    "content": {
        "application/json": {"schema": {"type": "object"}},
        "text/html": {"schema": {"type": "string"}},
    },
}
_CURSOR = {"cursor": Parameter("query", _Cursor)}
_REF = {"ref": streams.Ref, "data": None, "media_type": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec:
    """The HTTP details of an operation."""

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


_PLAIN = RouteSpec()
_UPLOAD: Any = {"receives": streams.receive_upload, "extra": streams.UPLOAD_BODY}
#: By a function, since `from` is a word of Python.
_COMPARED = msgspec.defstruct(
    "Compared",
    [
        ("items", list[Difference]),
        ("offset", int),
        ("total", int),
        ("counts", dict[str, int]),
        ("withheld", list[str]),
        ("notes", list[str]),
        ("from", str),
        ("to", str | None),
        ("next_offset", int | None),
    ],
    namespace={"__doc__": "One page; `counts` is of all: added, changed, removed, and with another importance only."},
    kw_only=True,
)
_EDIT = RouteSpec(answer=handlers.update_memory, http_only=_IF_MATCH)
#: Operations by tag, in the order of the OpenAPI document; others have the tag ``other``.
TAGS: Mapping[str, str] = {
    "blobs": "put_blob read_blob",
    "carry": "export import plan_restore_export restore_export",
    "erase": "plan_erase erase certificate plan_adopt adopt",
    "events": "events",
    "inquiry": "blame impact export_subject plan_contain contain bisect run_tests contradictions",
    "journal": "log show diff rollback receipt replay receipts context_diff",
    "read": "status core recall identity context memory_block snapshot list_memories get history",
    "browse": "facets activity sources news users projects lineage",
    "review": "pending proposal approve amend reject reopen approve_many reject_many notices "
    "create_branch branches branch_changes merge_branch discard_branch",
    "tokens": "tokens create_token revoke_token",
    "upkeep": "feedback train_reranker check verify settings rebuild reindex doctor jobs run_jobs merge_candidates",
    "write": "remember remember_many add merge forget_many plan_forget_matching forget_matching revise forget append "
    "move archive restore reinforce promote supersede update_identity propose",
}
#: HTTP details of the operations that have some.
ROUTE_SPECS: Mapping[str, RouteSpec] = {
    "put_blob": RouteSpec(answer=streams.put_blob, receives=Request.body, kinds=_REF, extra=streams.BLOB_BODY),
    "read_blob": RouteSpec(
        answer=streams.read_blob,
        http_only=_IF_NONE_MATCH,
        kinds=_REF,
        also={200: streams.BLOB_ANSWER, 304: {"description": "The bytes have that ETag."}},
    ),
    "export": RouteSpec(answer=streams.export, also={200: streams.EXPORT_ANSWER}),
    "import": RouteSpec(answer=streams.import_file, also={200: streams.IMPORT_ANSWER}, **_UPLOAD),
    "plan_restore_export": RouteSpec(answer=streams.plan_restore, model=ExportPlan, **_UPLOAD),
    "restore_export": RouteSpec(answer=streams.restore_upload, model=RestoredExport, **_UPLOAD),
    "erase": RouteSpec(answer=handlers.erase, model=schemas.Destroyed),
    "certificate": RouteSpec(
        answer=handlers.certificate, http_only=_CERTIFICATE_FORMAT, also={200: _CERTIFICATE_ANSWER}
    ),
    "events": RouteSpec(answer=streams.events, http_only=_LAST_EVENT_ID, also={200: streams.EVENTS_ANSWER}),
    "log": RouteSpec(answer=handlers.log),
    "diff": RouteSpec(answer=handlers.diff, model=_COMPARED),
    "show": RouteSpec(answer=handlers.show),
    "rollback": RouteSpec(answer=handlers.rollback, model=schemas.RolledBack, http_only=_IF_MATCH),
    "receipt": RouteSpec(model=schemas.AnyReceipt),
    "status": RouteSpec(answer=handlers.status, model=schemas.StatusReport),
    "core": RouteSpec(answer=handlers.core, model=schemas.Core),
    "recall": RouteSpec(answer=handlers.search, model=schemas.Found, http_only=_CURSOR),
    "list_memories": RouteSpec(answer=handlers.find, model=schemas.Listed, http_only=_CURSOR),
    "get": RouteSpec(
        answer=handlers.get, http_only=_IF_NONE_MATCH, also={304: {"description": "The version has that ETag."}}
    ),
    "users": RouteSpec(model=page_of(Member, "Users")),
    "projects": RouteSpec(model=page_of(Member, "Projects")),
    "pending": RouteSpec(answer=handlers.pending, model=schemas.Proposals),
    "proposal": RouteSpec(answer=handlers.get_proposal, model=schemas.Reviewed),
    **dict.fromkeys(("approve", "amend"), RouteSpec(answer=handlers.approve, http_only=_IF_MATCH)),
    "approve_many": RouteSpec(answer=handlers.approve_many, model=schemas.Approved),
    "reject_many": RouteSpec(answer=handlers.reject_many, model=schemas.RejectedMany),
    "notices": RouteSpec(model=page_of(Proposal, "Notices")),
    "branches": RouteSpec(answer=handlers.branches, model=schemas.Branches),
    "branch_changes": RouteSpec(answer=handlers.branch_changes, model=schemas.BranchChanges),
    "tokens": RouteSpec(answer=handlers.tokens, model=page_of(schemas.ShownToken, "Tokens")),
    "create_token": RouteSpec(answer=handlers.create_token, model=schemas.IssuedToken),
    "settings": RouteSpec(answer=settings.settings, model=schemas.SettingsInForce),
    "rebuild": RouteSpec(answer=handlers.rebuild, model=schemas.Rebuilt),
    "reindex": RouteSpec(model=schemas.Reindexed),
    "doctor": RouteSpec(answer=handlers.doctor, model=page_of(Check, "Checks", ok=bool)),
    "jobs": RouteSpec(model=page_of(JobState, "Jobs")),
    "run_jobs": RouteSpec(model=page_of(Run, "Runs")),
    "merge_candidates": RouteSpec(model=page_of(Alike, "Candidates")),
    "remember_many": RouteSpec(answer=handlers.remember_many, model=schemas.Outcomes),
    "forget_many": RouteSpec(model=schemas.Forgotten),
    "forget": replace(_EDIT, kinds={"reason": _Why, "if_version": None}),
    **dict.fromkeys(("revise", "append", "move", "archive", "restore"), _EDIT),
    "propose": RouteSpec(answer=handlers.propose),
}
#: All operations with a route, by name.
ALL_OPERATIONS: Mapping[str, Operation] = LIBRARY | HTTP_OPERATIONS
#: Path below which an operation takes its arguments by their names in Python. Bytes have only routes of their own.
CALL_PATH = "/memory/call"
CALLED_BY_NAME = tuple(name for name in LIBRARY if name not in ("put_blob", "read_blob"))
#: The right of each operation, or the role ``owner``.
RIGHTS: Mapping[str, str] = {name: operation.right for name, operation in ALL_OPERATIONS.items()}


@cache
def routes() -> tuple[ApiRoute, ...]:
    """Return the routes of all operations, by tag; all applications share them."""
    named = {tag: names.split() for tag, names in TAGS.items()}
    tagged = {name for names in named.values() for name in names}
    named["other"] = [name for name in ALL_OPERATIONS if name not in tagged]
    own = (_route_of(tag, ALL_OPERATIONS[name]) for tag, names in named.items() for name in names)
    return (*own, *(_call_route(LIBRARY[name]) for name in CALLED_BY_NAME), _any_call_route())


def _model_of(operation: Operation) -> Any:
    """Return the type of a response with a result of an operation, for one without a model of its own."""
    result = Outcome if operation.is_one_write else operation.result
    keys, name = operation.answer.split(), operation.name.title().replace("_", "") + "Answer"
    if not keys:
        return result
    if keys == ["items"]:
        return page_of(get_args(result)[0], name)
    kinds = get_args(result) if len(keys) > 1 else (result,)
    about = f"The answer of `{operation.name}`."
    return msgspec.defstruct(name, zip(keys, kinds, strict=True), namespace={"__doc__": about}, kw_only=True)


def _route_of(tag: str, operation: Operation) -> ApiRoute:
    row = ROUTE_SPECS.get(operation.name, _PLAIN)
    # An upload is authorized before its body is received.
    confirms = tag not in ("blobs", "carry")
    receives: Any = row.receives
    inputs = inputs_of(operation, row.kinds or {}, row.http_only or {})
    endpoint = _endpoint(operation, row, inputs)

    async def receiving(http: Request, handle: Memory) -> Response:
        return await run_in_threadpool(endpoint, http, handle, await receives(http))

    def described() -> Schema:
        # Of several memories none may be there to change.
        also = {**({200: operation.result, 202: Outcome} if operation.is_one_write else {}), **(row.also or {})}
        answers = openapi.answers(operation, {operation.status: row.model or _model_of(operation), **also}, inputs)
        about = openapi.described(operation.name, operation.doc, tag, answers)
        return {**about, **openapi.inputs(inputs, operation.path), **(row.extra or {})}

    return route(
        operation.http_method,
        operation.path.replace("{id}", "{id:named}"),
        endpoint if receives is None else receiving,
        name=operation.name,
        known=inputs.query,
        parsed=inputs.body is not None,
        confirms=confirms,
        changes=operation.changes,
        described=described,
    )


def _call_route(operation: Operation) -> ApiRoute:
    """Return the route that takes the arguments of an operation by their names in Python, under the same rules."""
    row = ROUTE_SPECS.get(operation.name, _PLAIN)
    inputs = Inputs(row.http_only or {}, arguments_of(operation))
    return route(
        "POST",
        f"{CALL_PATH}/{operation.name}",
        _endpoint(operation, row, inputs, by_name=True),
        name=operation.name,
        known=inputs.query,
        parsed=True,
        confirms=True,
        changes=operation.changes,
    )


def _endpoint(
    operation: Operation, row: RouteSpec, inputs: Inputs, *, by_name: bool = False
) -> Callable[..., Response]:
    """Return the endpoint of an operation."""
    names = {each.name: wire for wire, each in operation.arguments.items()} if by_name else {}
    defaults = inputs_of(operation, {}, {}).defaults if by_name else {}

    def answer(http: Any, handle: Memory, received: Any) -> Response:
        given = defaults | {names.get(name, name): value for name, value in inputs.read(http).items()}
        apart = {name: given.pop(name, None) for name in row.http_only or {}} | {"received": received}
        call = OperationCall(
            http=http, memory=handle, operation=operation, given=given, http_only=apart, by_name=by_name
        )
        # A streamed response continues after this returns; its work has its own limits.
        streamed = WORK_OF_OPERATION.get(operation.name) is slots.STREAM or row.extra
        with nullcontext() if streamed else app_state_of(http).http_limits(handle, reads=not operation.changes):
            return row.answer(call)

    def endpoint(http: Any, handle: Memory, received: Any = None) -> Response:
        try:
            return answer(http, handle, received)
        except EXPECTED_ERRORS:
            # A credential that is no longer valid gets 401, whatever else is wrong. The operation has checked it.
            require_valid_credential(handle)
            raise

    return endpoint


def call_by_name(_: Request, __: Memory) -> Response:
    """Run the operation with this name; the body is an object of the arguments that it has in Python.

    For example, `POST /memory/call/get` takes `{"memory_id": "..."}`. The answer, its limits and its errors are those
    of the route of the operation. `digest` and `if_version` say what you saw, so `If-Match` is not required.
    """
    # Every operation has a route before this one.
    raise NotFound("there is no such operation; /docs lists all of them")


def _any_call_route() -> ApiRoute:
    """Return the route that describes all calls by name, and answers for names of no operation."""
    return route("POST", f"{CALL_PATH}/{{operation}}", call_by_name, described=_describe_calls)


def _describe_calls() -> Schema:
    name = {"type": "string", "enum": list(CALLED_BY_NAME)}
    path = {"name": "operation", "in": "path", "required": True, "schema": name, "description": "Its name in Python."}
    content = {"application/json": {"schema": {"type": "object"}}}
    statuses = (400, 401, 403, 404, 409, 412, 413, 415, 421, 422, 428, 429, 500, 503)
    answers = {
        str(status): {"description": "As the operation answers.", "content": content} for status in (200, 201, 202)
    }
    described = openapi.described(
        "call", getdoc(call_by_name) or "", "server", answers | openapi.problems_of(*statuses)
    )
    asked = {"parameters": [path, *openapi.HANDLE_REFERENCES], "requestBody": {"content": content, "required": False}}
    return {**described, **asked}
