"""Routes: each is made from its request in the registry, and from what a row says beside.

Invariants
(1) Where a call names the version it saw, a change made since refuses it before and while it is written; mere
    bookkeeping does not. An approval is bound to the digest of what its reviewer saw, a rollback to the head.
(2) What changes something counts against the rate of changes.
(3) An endpoint confirms the credential of its handle in the thread in which it reads the store; what first receives a
    body of another kind than JSON confirms it before.
(4) Who has no credential learns nothing of how a call is read.
(5) A POST may carry an ``Idempotency-Key``; where ``openapi_extra`` holds ``x-streaming`` it may not.
(6) An endpoint is only called while the credential of its handle still holds. Every error leaves as a problem.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
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
from keepward.core.journal import Check, Difference
from keepward.core.proposal import Outcome
from keepward.errors import KeepwardError
from keepward.http import answers, schemas, settings, slots, streams
from keepward.http.answers import OVER_HTTP, Call
from keepward.http.credentials import Handle, Writes, confirm, identify, serving_of
from keepward.http.idempotency import HEADER, once
from keepward.http.models import body_of, typed
from keepward.http.reading import (
    LONGEST,
    Problem,
    StrictRequest,
    answer_of,
    check_query,
    check_type,
    is_many,
)
from keepward.http.schemas import Written, answered, mirror, page
from keepward.http.telemetry import OPERATIONS
from keepward.operations import REQUIRED, Operation
from keepward.types import Judged, Limit


class _Named(StringConvertor):
    # A name in a path is never one of the words that stand there for a call, such as `merge`: these answer 405.
    regex = "(?!(?:approve|batch|forget|merge|reject)(?:/|$))[^/]+"


register_url_convertor("named", _Named())


_COSTLY = (
    "bisect impact plan_contain contain contradictions merge_candidates verify doctor replay "
    "receipt export rebuild reindex train_reranker run_jobs plan_erase"
)
#: What a call counts as, by operation; any other is a call.
WORK: Mapping[str, slots.Work] = {
    **dict.fromkeys(_COSTLY.split(), slots.COSTLY),
    **dict.fromkeys(("import", "plan_restore_export", "restore_export"), slots.IMPORT),
    "events": slots.STREAM,
}
#: Errors that are an answer; any other is the server's own to tell of, with its place.
FORESEEN = (KeepwardError, HTTPException, RequestValidationError)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PublicRoute(APIRoute):
    """A route that takes no token; its query and body are read strictly."""

    takes_token = False
    #: Whether the endpoint itself sees to (6), in the thread in which it reads the store.
    confirms = False

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
        """Return what answers a request to this route, within its span."""
        inner, parsed = super().get_route_handler(), self.body_field is not None
        # The parameters of the query, and whether each may stand more than once.
        known = {each.alias: is_many(each.field_info.annotation) for each in self.dependant.query_params}
        operation = OPERATIONS.get(self.operation_id or self.name)

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            try:
                if self.takes_token:
                    handle = (await identify(strict)).handle
                    work = WORK.get(self.operation_id or "", slots.CALL)
                    await serving_of(strict).admit(strict.scope, handle, work)
                    if not self.confirms:
                        await run_in_threadpool(confirm, handle)
                check_query(strict, known)
                if parsed:
                    check_type(strict)
                if not self.takes_token or strict.method != "POST" or HEADER.lower() not in strict.headers:
                    return await inner(strict)
                if (self.openapi_extra or {}).get(streams.STREAMING):
                    raise Problem(400, "bad_request", f"this call is a stream and takes no {HEADER}; leave it out")
                about = ALL.get(self.operation_id or self.name)
                return await once(strict, inner, repeats=about is not None and about.is_one_write)
            except FORESEEN as fault:
                return answer_of(strict, fault)

        async def watched(request: Request) -> Response:
            serving = serving_of(request)
            if serving.spans is None or operation is None:
                response = await answer(request)
            else:
                with serving.spans.of(operation, request.headers) as note:
                    response = await answer(request)
                    note(response.status_code)
            return response

        return watched


class KeepwardRoute(PublicRoute):
    """A route that takes a token."""

    takes_token = True


class VerbRoute(KeepwardRoute):
    """A route whose endpoint confirms the credential itself; see (3)."""

    confirms = True


def _query(kind: Any, doc: str = "") -> Any:
    """Return an argument's type as a parameter of a query; what is said of it stands beside its schema."""
    return Annotated[typed(kind, query=True, described=False), Query(description=doc or None)]


def _header(name: str, kind: Any, doc: str) -> Any:
    """Return a header that may be left out, and its default."""
    return Annotated[typed(kind | None, query=True), Header(alias=name, description=doc)], None


_Tag = Annotated[str, Judged(pattern=r'^(\*|"[!#-~]*")$')]
_Number = Annotated[str, Limit(maxLength=16, pattern=r"^(0|[1-9][0-9]{0,15})$")]
_Cursor = Annotated[str, Limit(minLength=1, maxLength=LONGEST, pattern=r"^[A-Za-z0-9_-]+$")]
_Why = Annotated[str, Limit(maxLength=1000, pattern=r"^[^\x00]*$")]
_MATCH = {"if_match": _header("If-Match", _Tag, "The ETag that was read.")}
_UNCHANGED = {"if_none_match": _header("If-None-Match", _Tag, "An ETag; 304 where it is still that of the answer.")}
_SEEN = {"last_event_id": _header("Last-Event-ID", _Number, "As for `after`, which it takes the place of.")}
_CURSOR = {"cursor": (_query(_Cursor | None, "From the page before."), None)}
_EVENTS = {"events": (_query(bool, "Each memory before and after as well."), False)}
_REF = {"ref": streams.Ref, "data": None, "media_type": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a route has beside its operation."""

    #: The problems that are not every route's.
    problems: tuple[int, ...]
    answer: Callable[[Call], Response] = answers.plain
    #: Model of the answer; None for that of the operation's result.
    model: Any = None
    #: Documentation of other answers, by status.
    also: Mapping[int, Any] | None = None
    #: Parameters of HTTP alone, with their defaults.
    beside: Mapping[str, tuple[Any, Any]] | None = None
    #: What receives a body that is no JSON, once all else was read; the answer finds it as ``received``.
    receives: Callable[[Request], Awaitable[Any]] | None = None
    #: Types of parameters that are narrower in a path or query; None for what is not sent there.
    kinds: Mapping[str, Any] | None = None
    #: Further parts of the description.
    extra: dict[str, Any] | None = None
    #: What the description calls it, where that is not the name of the operation.
    title: str = ""


def row(*problems: int, **more: Any) -> Row:
    return Row(problems=problems, **more)


def _write(*problems: int, **more: Any) -> Row:
    more.setdefault("also", {200: Written, 202: Written})
    return Row(problems=(404, 409, 413, 415, *problems), **more)


def _edit(*problems: int, **more: Any) -> Row:
    return _write(412, *problems, answer=answers.edited, beside=_MATCH, **more)


#: Rows by tag and operation, in the order of the description.
ROWS: Mapping[str, Mapping[str, Row]] = {
    "blobs": {
        "put_blob": row(409, 413, answer=streams.put_blob, receives=Request.body, kinds=_REF, extra=streams.BYTES),
        "read_blob": row(
            404,
            500,
            answer=streams.read_blob,
            beside=_UNCHANGED,
            kinds=_REF,
            also={200: streams.READ, 304: {"description": "They are the bytes that were named."}},
        ),
    },
    "carry": {
        "export": row(500, answer=streams.export, also={200: streams.EXPORTED}),
        "import": row(
            409,
            413,
            500,
            answer=streams.bring_in,
            receives=streams.received,
            also={200: streams.IMPORTED},
            extra=streams.FILE,
            title="import_lines",
        ),
        "plan_restore_export": row(
            409,
            413,
            answer=streams.plan_restoring,
            model=mirror(ExportPlan),
            receives=streams.received,
            extra=streams.FILE,
            title="plan_restoring",
        ),
        "restore_export": row(
            409,
            413,
            answer=streams.restore,
            model=mirror(RestoredExport),
            receives=streams.received,
            extra=streams.FILE,
            title="restore_lines",
        ),
    },
    "erase": {
        "plan_erase": row(404, 409),
        "erase": row(404, 409, answer=answers.erase, model=schemas.Destroyed),
        "certificate": row(404, model=schemas.Certificate),
        "plan_adopt": row(),
        "adopt": row(409),
    },
    "events": {"events": row(404, 429, answer=streams.events, beside=_SEEN, also={200: streams.TOLD})},
    "inquiry": {
        "blame": row(404),
        "impact": row(404, kinds=dict.fromkeys(("source", "actor", "session", "commit", "memory"), types.Word | None)),
        "plan_contain": row(404),
        "contain": row(404, 409),
        "bisect": row(404, 409),
        "contradictions": row(),
    },
    "journal": {
        "log": row(404, answer=answers.log, model=schemas.Commits, beside=_EVENTS),
        "show": row(404),
        "diff": row(
            404,
            answer=answers.diff,
            model=page(Difference, "Differences", **{"from": str, "to": str | None, "count": int}),
        ),
        "rollback": row(404, 409, 412, 428, answer=answers.rollback, model=schemas.RolledBack, beside=_MATCH),
        "receipt": row(404, model=schemas.AnyReceipt),
        "replay": row(404),
        "receipts": row(),
        "context_diff": row(404),
    },
    "read": {
        "status": row(answer=answers.status, model=schemas.Status),
        "core": row(answer=answers.core, model=schemas.Core),
        "recall": row(404, answer=answers.search, model=schemas.Found, beside=_CURSOR),
        "identity": row(404),
        "context": row(404, 409, title="compile_context"),
        "memory_block": row(409, title="block"),
        "snapshot": row(409),
        "find": row(404, answer=answers.find, model=schemas.Memories, beside=_CURSOR),
        "get": row(
            404,
            answer=answers.get,
            beside=_UNCHANGED,
            also={304: {"description": "It is still the version that was named."}},
        ),
        "history": row(404, answer=answers.history, model=page(schemas.MemoryVersion, "Versions", id=str)),
    },
    "browse": {
        "facets": row(404),
        "activity": row(404),
        "sources": row(404),
        "users": row(model=page(Member, "Users")),
        "projects": row(model=page(Member, "Projects")),
        "lineage": row(404),
    },
    "review": {
        "pending": row(answer=answers.pending, model=schemas.Proposals),
        "proposal": row(404, answer=answers.get_proposal, model=schemas.Reviewed),
        "approve": row(
            404, 409, 412, 428, answer=answers.approve, beside=_MATCH, kinds={"id": types.Name, "digest": None}
        ),
        "amend": _write(412, 428, answer=answers.approve, beside=_MATCH),
        "reject": row(404, 409, answer=answers.reject, model=schemas.Rejected),
        "reopen": row(404, 409, answer=answers.reopen, model=schemas.Reopened),
        "approve_many": row(428, answer=answers.approve_many, model=schemas.Approved),
        "reject_many": row(answer=answers.reject_many, model=schemas.RejectedMany),
        "notices": row(model=page(schemas.Proposal, "Notices")),
    },
    "tokens": {
        "tokens": row(answer=answers.tokens, model=page(schemas.TokenState, "Tokens")),
        "create_token": row(answer=answers.create_token, model=schemas.IssuedToken),
        "revoke_token": row(404, 409, answer=answers.revoke_token, model=schemas.Revoked),
    },
    "upkeep": {
        "feedback": row(404, 409),
        "train_reranker": row(409, title="train"),
        "verify": row(),
        "settings": row(answer=settings.settings, model=settings.InForceModel),
        "rebuild": row(answer=answers.rebuild, model=schemas.Rebuilt),
        "reindex": row(model=schemas.Reindexed),
        "doctor": row(answer=answers.doctor, model=page(Check, "Checks", ok=bool)),
        "jobs": row(model=page(JobState, "Jobs")),
        "run_jobs": row(404, 409, model=page(Run, "Runs")),
        "merge_candidates": row(model=page(Alike, "Candidates")),
    },
    "write": {
        "remember": _write(),
        "remember_many": row(404, 409, answer=answers.remember_many, model=schemas.Outcomes),
        "add": row(404, 409),
        "merge": _write(model=Written, also={200: schemas.NOTHING_MERGED, 202: Written}),
        "forget_many": row(409, model=schemas.Forgotten),
        "plan_forget_matching": row(),
        "forget_matching": row(409),
        "revise": _edit(428),
        "forget": _edit(kinds={"reason": _Why, "if_version": None}),
        "append": _edit(),
        "move": _edit(),
        "archive": _edit(),
        "restore": _edit(),
        "reinforce": _write(),
        "promote": _write(),
        "supersede": _write(),
        "update_by_key": _write(),
        "update_identity": _write(),
        "propose": _write(title="edit", answer=answers.propose),
    },
}
#: Whatever has a route, by operation.
ALL: Mapping[str, Operation] = LIBRARY | OVER_HTTP
#: What each call takes. Every token reads; ``owner`` is a class and not a right.
RIGHTS: Mapping[str, str] = {name: each.right for name, each in ALL.items()}
#: Operations that need nothing beside their signature.
OTHERS = {
    name: row(*((404,) if "{" in each.path else ()), *((409,) if each.changes else ()))
    for name, each in ALL.items()
    if not any(name in rows for rows in ROWS.values())
}


@cache
def routes() -> tuple[APIRouter, ...]:
    """Return the routes by tag; they are the same for every application."""
    return tuple(_router(tag, rows) for tag, rows in [*ROWS.items(), ("other", OTHERS)] if rows)


def _router(tag: str, rows: Mapping[str, Row]) -> APIRouter:
    # What brings a file is let in before its body is received.
    kind = KeepwardRoute if tag in ("blobs", "carry") else VerbRoute
    made = APIRouter(route_class=kind, tags=[tag])
    for name, each in rows.items():
        _add(made, ALL[name], each, confirms=kind.confirms)
    return made


def _add(made: APIRouter, about: Operation, row: Row, *, confirms: bool) -> None:
    aside = {"http", "handle", "body", "received", *(row.beside or ())}

    def endpoint(**sent: Any) -> Response:
        if confirms:
            confirm(sent["handle"])
        given = {name: value for name, value in sent.items() if name not in aside and value is not None}
        given |= sent["body"].given() if sent.get("body") is not None else {}
        beside = {name: sent.get(name) for name in ("received", *(row.beside or ()))}
        call = Call(http=sent["http"], memory=sent["handle"], operation=about, given=given, beside=beside)
        # A streamed answer goes on after this returns: what makes it is limited by itself.
        streamed = WORK.get(about.name) is slots.STREAM or row.extra
        with nullcontext() if streamed else serving_of(call.http).limited(call.memory, reads=not about.changes):
            return row.answer(call)

    async def receiving(**sent: Any) -> Response:
        received = await receives(sent["http"])
        return await run_in_threadpool(endpoint, **sent, received=received)

    receives: Any = row.receives
    called: Any = endpoint if receives is None else receiving
    called.__name__, called.__doc__ = row.title or about.name, about.doc
    called.__signature__ = Signature(list(_parameters(about, row)))
    own = {}
    if about.status not in (row.also or {}):
        own = {about.status: row.model or (Written if about.result == Outcome else mirror(about.result))}
    body, changes = body_of(about) is not None, about.changes
    problems = (*row.problems, *((413, 415) if body else ()), *((429,) if changes else ()))
    made.add_api_route(
        about.path.replace("{id}", "{id:named}"),
        called,
        methods=[about.http_method],
        operation_id=about.name,
        status_code=about.status,
        dependencies=[Writes] if changes else None,
        response_class=Response,
        responses=answered(about.name, about.status, {**own, **(row.also or {})}, problems),
        openapi_extra=row.extra,
    )


def _parameters(about: Operation, row: Row) -> Iterator[Parameter]:
    """Yield the parameters of an endpoint: of its path, of its query where it has no body, and of HTTP alone."""

    def named(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)

    yield named("http", Request)
    yield named("handle", Handle)
    kinds, body = row.kinds or {}, body_of(about)
    # What has to be given stands first.
    for wire, each in sorted(about.arguments.items(), key=lambda item: item[1].default is not REQUIRED):
        kind = kinds.get(wire, each.kind)
        doc = each.doc if wire not in kinds else next((note.doc for note in getattr(kind, "__metadata__", ())), "")
        if f"{{{wire}}}" in about.path:
            yield named(wire, Annotated[typed(kind, query=True, described=False), Path(description=doc or None)])
        elif body is None and kind is not None:
            default = [] if each.default == () else each.default
            yield named(wire, _query(kind, doc), Parameter.empty if default is REQUIRED else default)
    for name, (kind, default) in (row.beside or {}).items():
        yield named(name, kind, default)
    if body is not None:
        optional = not any(each.is_required() for each in body.model_fields.values())
        yield named("body", body | None if optional else body, None if optional else Parameter.empty)
