"""Routes of the verbs: each is made from its request in the registry, and from what a row says beside.

Invariants
(1) A write answers 201 committed, 202 held for review, 200 the same was there already, 422 refused by a gate.
(2) Where a call names the version it saw, a change made since refuses it before and while it is written; mere
    bookkeeping does not. An approval is bound to the digest of what its reviewer saw, a rollback to the head.
(3) What changes something counts against the rate of changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import Field
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from keepward import verbs
from keepward.http import answers, schemas
from keepward.http.credentials import Handle, Writes, confirm
from keepward.http.documented import answered, link, page
from keepward.http.models import Absent, Body, body_of, typed
from keepward.http.reading import LONGEST
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given, Written
from keepward.verbs import MISSING, Limit, Verb, fields, registry
from keepward.verbs import Request as Asked

_TAG = r'^(\*|"[!#-~]*")$'


class _Named(StringConvertor):
    # A name in a path is never one of the words that stand there for a call, such as `merge`: these answer 405.
    regex = "(?!(?:approve|batch|forget|merge|reject)(?:/|$))[^/]+"


register_url_convertor("named", _Named())


class VerbRoute(KeepwardRoute):
    """A route whose endpoint confirms the credential itself, in the thread in which it reads the store."""

    confirms = True


def _header(name: str, about: str) -> Any:
    tag = Annotated[str, Field(json_schema_extra={"pattern": _TAG})] | Absent
    return Annotated[tag, Header(alias=name, description=about)]


IfMatch: Any = _header("If-Match", "The ETag that was read.")
IfNoneMatch: Any = _header("If-None-Match", "An ETag; 304 where it is still that of the answer.")
Cursor = Annotated[
    Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=r"^[A-Za-z0-9_-]+$")] | Absent,
    Query(description="From the page before."),
]
_Why = Annotated[str, Limit(minLength=1, maxLength=1000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]


def _query(kind: Any, doc: str = "") -> Any:
    """Return an argument's type as a parameter of a query; what is said of it stands beside its schema."""
    return Annotated[typed(kind, query=True, described=False), Query(description=doc or None)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a route has beside its verb."""

    #: Model of the answer, and the problems that are not every route's.
    model: Any
    problems: tuple[int, ...]
    answer: Callable[[answers.Call], Response] = answers.plain
    #: What a caller may do next, on the answer that carried it out.
    links: Mapping[str, Any] | None = None
    #: Models of answers with another status.
    also: Mapping[int, Any] | None = None
    #: Parameters of HTTP alone, with their defaults.
    beside: Mapping[str, tuple[Any, Any]] | None = None
    #: Types of parameters that are narrower in a query.
    kinds: Mapping[str, Any] | None = None
    #: Whether a version can, or has to, be named in `If-Match`.
    match: str = ""
    #: What the description calls it, where that is not the name of the operation.
    title: str = ""


def row(model: Any, *problems: int, **more: Any) -> Row:
    """Return a row; see ``Row``."""
    return Row(model=model, problems=problems, **more)


def _write(*problems: int, **more: Any) -> Row:
    more.setdefault("also", {200: Written, 202: Written})
    return Row(model=Written, problems=(404, 409, 413, 415, *problems), **more)


def _edit(*problems: int, match: str = "can", **more: Any) -> Row:
    return _write(412, *problems, answer=answers.edited, match=match, **more)


_CURSOR = {"cursor": (Cursor, None)}
_READ = {"memory": link("get", id="$response.body#/id"), "history": link("history", id="$response.body#/id")}
_UNDO = {"commit": link("show", commit_id="$response.body#/commit")}
_RECEIPT = "$response.body#/receipt"
_TAGGED: Any = {"id": "$response.body#/id", "If_Match": "$response.header.ETag"}
_FIRST = link("get", id="$response.body#/items/0/id")

#: Rows by tag and operation, in the order of the description.
ROWS: Mapping[str, Mapping[str, Row]] = {
    "erase": {
        "plan_erase": row(Given["ErasePlan"], 404, 409),
        "erase": row(
            schemas.Destroyed,
            404,
            409,
            answer=answers.erase,
            links={"certificate": link("certificate", name="$response.body#/commit")},
        ),
        "lift_erasure": row(Given["Lifted"], 404, 409),
        "certificate": row(schemas.Certificate, 404),
        "plan_adopt": row(Given["Adoption"], links={"adopt": link("adopt", body={"digest": "$response.body#/digest"})}),
        "adopt": row(Given["Adoption"], 409),
    },
    "inquiry": {
        "blame": row(Given["Blame"], 404),
        "impact": row(Given["Impact"], 404, kinds=dict.fromkeys(verbs.inquiry.Selected.names, fields.Word | None)),
        "plan_contain": row(Given["Containment"], 404),
        "contain": row(Given["Containment"], 404, 409),
        "bisect": row(Given["Bisection"], 404, 409),
    },
    "journal": {
        "log": row(
            schemas.Commits,
            answer=answers.log,
            beside={"events": (_query(bool, "Each memory before and after as well."), False)},
            links={
                "commit": link("show", commit_id="$response.body#/items/0/id"),
                "rollback": link("rollback", commit_id="$response.body#/items/0/id", If_Match="$response.body#/etag"),
            },
        ),
        "show": row(schemas.Commit, 404, links={"receipt": link("receipt", id=_RECEIPT)}),
        "diff": row(
            page(Given["Difference"], "Differences", **{"from": str, "to": str | None, "count": int}),
            404,
            answer=answers.diff,
        ),
        "rollback": row(schemas.RolledBack, 404, 409, 428, answer=answers.rollback, match="can"),
        "receipt": row(schemas.AnyReceipt, 404),
        "replay": row(Given["Replayed"], 404),
        "context_diff": row(Given["ContextDifference"], 404),
    },
    "read": {
        "status": row(schemas.Status, answer=answers.status),
        "core": row(schemas.Core, answer=answers.core),
        "search": row(
            schemas.Found,
            404,
            answer=answers.search,
            beside=_CURSOR,
            links={"memory": link("get", id="$response.body#/hits/0/id")},
        ),
        "compile": row(
            Given["CompiledContext"],
            404,
            409,
            title="compile_context",
            links={
                "receipt": link("receipt", id=_RECEIPT),
                "feedback": link("feedback", body={"receipt": _RECEIPT}),
                "replay": link("replay", id=_RECEIPT),
            },
        ),
        "memory_block": row(Given["CompiledContext"], 409, title="block"),
        "snapshot": row(Given["CompiledContext"], 409),
        "find": row(
            page(schemas.Memory, "Memories", head=str, withheld=list[str], notes=list[str]),
            404,
            answer=answers.find,
            beside=_CURSOR,
            links={"memory": _FIRST},
        ),
        "get": row(
            schemas.Memory,
            404,
            answer=answers.get,
            beside={"if_none_match": (IfNoneMatch, None)},
            links={
                "revise": link("revise", **_TAGGED),
                "forget": link("forget", **_TAGGED),
                "history": link("history", id="$response.body#/id"),
            },
            also={304: {"description": "It is still the version that was named."}},
        ),
        "history": row(page(schemas.MemoryVersion, "Versions", id=str), 404, answer=answers.history),
    },
    "review": {
        "pending": row(
            page(schemas.Reviewed, "Proposals"),
            answer=answers.pending,
            beside={"limit": (_query(fields.Most, "Most items on this page."), 50), **_CURSOR},
            links={
                "proposal": link("get_proposal", id="$response.body#/items/0/id"),
                "reject": link("reject", id="$response.body#/items/0/id"),
            },
        ),
        "get_proposal": row(
            schemas.Reviewed,
            404,
            answer=answers.get_proposal,
            links={"approve": link("approve", **_TAGGED), "reject": link("reject", id="$response.body#/id")},
        ),
        "approve": row(Written, 404, 409, 412, 428, answer=answers.approve, match="only"),
        "reject": row(schemas.Rejected, 404, 409, answer=answers.reject),
        "approve_many": row(schemas.Approved, answer=answers.decisions),
        "reject_many": row(schemas.RejectedMany, answer=answers.decisions),
        "notices": row(page(schemas.Proposal, "Notices")),
    },
    "tokens": {
        "tokens": row(page(schemas.TokenState, "Tokens"), answer=answers.tokens),
        "create_token": row(
            schemas.IssuedToken,
            answer=answers.create_token,
            links={"revoke": link("revoke_token", id="$response.body#/token/id")},
        ),
        "revoke_token": row(schemas.Revoked, 404, 409, answer=answers.revoke_token),
    },
    "upkeep": {
        "feedback": row(Given["Feedback"], 404, 409),
        "learn_importance": row(Given["Reinforced"], 409, title="learn"),
        "train_reranker": row(Given["Training"], 409, title="train"),
        "verify": row(Given["Verification"]),
        "rebuild": row(schemas.Rebuilt, answer=answers.rebuild),
        "reindex": row(schemas.Reindexed),
        "doctor": row(page(Given["Check"], "Checks", ok=bool), answer=answers.doctor),
        "tenants": row(page(str, "Tenants")),
        "jobs": row(
            page(Given["JobState"], "Jobs"), links={"run": link("run_job", name="$response.body#/items/0/name")}
        ),
        "run_due": row(page(Given["Run"], "Runs"), 409),
        "run_job": row(Given["Run"], 404, 409),
        "merge_candidates": row(page(Given["Alike"], "Candidates")),
    },
    "write": {
        "remember": _write(links=_READ | _UNDO),
        "remember_many": row(schemas.Outcomes, 404, 409, answer=answers.remember_many),
        "merge": _write(
            answer=answers.merge,
            also={
                200: {
                    "model": Written | schemas.Merged,
                    "description": "The same was there already, or there was nothing to merge.",
                },
                202: Written,
            },
        ),
        "forget_many": row(schemas.Forgotten, 409, answer=answers.forget_many),
        "revise": _edit(428, match="has to", links=_READ),
        "forget": _edit(kinds={"reason": _Why}),
        "append": _edit(),
        "move": _edit(),
        "archive": _edit(),
        "restore": _edit(),
        "reinforce": _write(),
        "promote": _write(),
        "supersede": _write(),
        "update_by_key": _write(links=_READ),
        "propose": _write(links=_UNDO, title="edit", answer=answers.propose),
    },
}


class Core(Asked[Any]):
    """Return the core blocks as they stand now; of two with one key the nearer scope's counts."""


class GetProposal(Asked[Any]):
    """Return a proposal, whatever became of it; its ETag is the digest that an approval is bound to."""

    id: fields.Name


def _read(operation: str, request: type[Asked[Any]], path: str) -> Verb:
    return Verb(
        name=operation, request=request, right="read", group="read", method="GET", path=path, operation=operation
    )


#: What is read over HTTP alone.
_HERE = (_read("core", Core, "/memory/core"), _read("get_proposal", GetProposal, "/memory/quarantine/{id}"))
#: What the calls that are no verbs take.
_OTHERS = {
    "read": "events",
    "propose": "begin_draft get_draft stage_draft finish_draft discard_draft import",
    "owner": "export plan_restore_export restore_export",
}
#: What each call takes, by the name of its operation. Every token reads; ``owner`` is a class and not a right.
RIGHTS: Mapping[str, str] = {each.operation: each.right for each in (*registry().values(), *_HERE)} | {
    operation: right for right, operations in _OTHERS.items() for operation in operations.split()
}
#: Operations whose body may be left out.
_BODILESS = frozenset({"rollback", "run_job"})


@cache
def router(tag: str) -> APIRouter:
    """Return the routes of a tag; they are the same for every application."""
    made = APIRouter(route_class=VerbRoute, tags=[tag])
    verbs = {each.operation: each for each in (*registry().values(), *_HERE)}
    for operation, each in ROWS[tag].items():
        _add(made, verbs[operation], each)
    return made


def _add(made: APIRouter, verb: Verb, row: Row) -> None:
    body = body_of(verb)
    parameters = {each.name: each for each in _parameters(verb, row, body)}
    beside = {*(row.beside or ()), "if_match", "http", "handle", "body"}

    def endpoint(**sent: Any) -> Response:
        confirm(sent["handle"])
        given = {name: value for name, value in sent.items() if name not in beside and value is not None}
        given |= sent["body"].given() if sent.get("body") is not None else {}
        apart = {name: sent[name] for name in row.beside or ()}
        call = answers.Call(http=sent["http"], memory=sent["handle"], verb=verb, given=given, beside=apart)
        return row.answer(call)

    endpoint.__name__, endpoint.__doc__ = row.title or verb.operation, verb.doc
    endpoint.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    made.add_api_route(
        verb.path.replace("{id}", "{id:named}"),
        endpoint,
        methods=[verb.method],
        operation_id=verb.operation,
        status_code=verb.status,
        dependencies=[Writes] if verb.changes else None,
        response_class=Response,
        responses=answered(
            row.model,
            status=verb.status,
            also=row.also,
            problems=(*row.problems, *((412,) if row.match else ())),
            body=body is not None,
            changes=verb.changes,
            links=row.links,
        ),
    )


def _parameters(verb: Verb, row: Row, body: type[Body] | None) -> Iterator[Parameter]:
    """Yield the parameters of an endpoint: of its path, of its query where it has no body, and of HTTP alone."""

    def named(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)

    yield named("http", Request)
    yield named("handle", Handle)
    # What has to be given stands first.
    for wire, each in sorted(verb.arguments.items(), key=lambda item: item[1].default is not MISSING):
        kind, doc = ((row.kinds or {}).get(wire), "") if wire in (row.kinds or {}) else (each.kind, each.doc)
        if f"{{{wire}}}" in verb.path:
            yield named(wire, Annotated[typed(kind, query=True, described=False), Path(description=doc or None)])
        elif verb.method in ("GET", "DELETE") and wire != "if_version":
            default = [] if each.default == () else each.default
            yield named(wire, _query(kind, doc), Parameter.empty if default is MISSING else default)
    for name, (kind, default) in (row.beside or {}).items():
        yield named(name, kind, default)
    if body is not None:
        optional = verb.operation in _BODILESS
        yield named("body", body | None if optional else body, None if optional else Parameter.empty)
    if row.match:
        yield named("if_match", IfMatch, None)
