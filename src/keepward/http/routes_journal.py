"""Routes of the journal: commits, differences, receipts, replays, and rollback.

Invariants
(1) A rollback names the head that its caller saw; where that is another by now, nothing is undone.
(2) A rollback that meets later changes of the same memories changes nothing and says which.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.http import schemas
from keepward.http.bodies import AS_OF_PATTERN
from keepward.http.bodies_calls import RollBack
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, page
from keepward.http.parameters import AS_OF, WHOLE, Absent, AsOfQuery, Flag, IfMatch, Limit, Name
from keepward.http.problems import Problem
from keepward.http.reading import etag_of_text, require_match
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import commit_view, json_response, listed, parse_as_of, shape

router = APIRouter(route_class=KeepwardRoute, tags=["journal"])

CommitName = Annotated[
    str, Path(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z-]+$", description="Number, id or first letters.")
]
Earlier = Annotated[
    Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"pattern": AS_OF_PATTERN}), AS_OF],
    Query(description="As for `as_of`."),
]
Differences = page(Given["Difference"], "Differences", **{"from": str, "to": str | None, "count": int})
_Rollback: Any = Given["Rollback"]


class Commits(BaseModel):
    """Commits within reach, newest first."""

    items: list[schemas.Commit]
    #: For ``before``, to go on; null at the end.
    next_before: int | None
    #: Of the head, for the ``If-Match`` of a rollback.
    etag: str


class AnyReceipt(BaseModel):
    """The record of one decision; each kind of it holds facts of its own."""

    model_config = ConfigDict(extra="allow")

    id: str
    tenant: str
    kind: str
    at: schemas.Instant
    actor: str
    policy: str
    head: str
    reasons: list[schemas.Why]  # type: ignore[valid-type]


class RolledBack(_Rollback):  # type: ignore[misc]
    """What a rollback did, or would do; ``etag`` is of the head now."""

    dry_run: bool
    etag: str


@router.get(
    "/memory/commits",
    operation_id="log",
    responses=answers(
        Commits,
        links={
            "commit": link("show", commit_id="$response.body#/items/0/id"),
            "rollback": link("rollback", commit_id="$response.body#/items/0/id", If_Match="$response.body#/etag"),
        },
    ),
)
def log(
    memory: Handle,
    limit: Limit = 50,
    before: Annotated[
        Annotated[int, Field(ge=1, le=2**53), WHOLE] | Absent, Query(description="Older than this number.")
    ] = None,
    events: Annotated[Flag, Query(description="Each memory before and after as well.")] = False,
) -> Response:
    """Return commits within reach, newest first."""
    head = memory.head
    found = memory.log(limit=limit, before=before)
    return json_response(
        {
            "items": [commit_view(each, events=events) for each in found],
            "next_before": found[-1].commit.seq if len(found) == limit and found[-1].commit.seq > 1 else None,
            "etag": etag_of_text(head),
        },
        headers={"ETag": etag_of_text(head)},
    )


@router.get(
    "/memory/commits/{commit_id}",
    operation_id="show",
    responses=answers(
        schemas.Commit, problems=(404,), links={"receipt": link("receipt", id="$response.body#/receipt")}
    ),
)
def show(memory: Handle, commit_id: CommitName) -> Response:
    """Return one commit: who, when, why, and each memory before and after."""
    return json_response(commit_view(memory.show(commit_id)))


@router.get("/memory/diff", operation_id="diff", responses=answers(Differences, problems=(404,)))
def diff(memory: Handle, earlier: Earlier, later: AsOfQuery = None) -> Response:
    """Return the memories that differ between the states after two commits; `0` is the empty store."""
    found = memory.diff(parse_as_of(earlier), parse_as_of(later))
    items = [present.difference(each) for each in found]
    return json_response({**listed(items), "from": earlier, "to": later, "count": len(items)})


@router.post(
    "/memory/rollback/{commit_id}",
    operation_id="rollback",
    dependencies=[Writes],
    responses=answers(RolledBack, problems=(404, 409, 412, 428), body=True, changes=True),
)
def rollback(
    request: Request, memory: Handle, commit_id: CommitName, body: RollBack | None = None, if_match: IfMatch = None
) -> Response:
    """Undo one commit exactly; a second call changes nothing and gives the first receipt.

    `If-Match` carries the head's ETag (the header of `/memory/status` and of `/memory/commits`); a dry run needs
    none. Where later commits touched the same memories the answer is 409 with all the keys of the result: nothing was
    changed.
    """
    del if_match
    asked = body or RollBack()
    require_match(
        request, etag_of_text(memory.head), required=not asked.dry_run, where="GET /memory/status or /memory/commits"
    )
    done = memory.rollback(commit_id, with_later=asked.with_later, dry_run=asked.dry_run)
    data: dict[str, Any] = {**shape(done), "dry_run": asked.dry_run, "etag": etag_of_text(memory.head)}
    if done.conflicts and not asked.dry_run:
        said = "later commits touched the same memories, nothing was changed; undo them too by with_later"
        return Problem(409, "conflict", said, **data).response()
    return json_response(data)


@router.get("/memory/receipts/{id}", operation_id="receipt", responses=answers(AnyReceipt, problems=(404,)))
def receipt(memory: Handle, id: Name) -> Response:  # noqa: A002
    """Return a receipt; a commit's comes with the before and after of each target."""
    return json_response(present.plain(memory.receipt(id)))


@router.post(
    "/memory/receipts/{id}/replay", operation_id="replay", responses=answers(Given["Replayed"], problems=(404,))
)
def replay(memory: Handle, id: Name) -> Response:  # noqa: A002
    """Render a compiled context again from its receipt, byte for byte."""
    return json_response(shape(memory.replay(id)))


@router.get(
    "/memory/receipts/{id}/diff/{other}",
    operation_id="context_diff",
    responses=answers(Given["ContextDifference"], problems=(404,)),
)
def context_diff(memory: Handle, id: Name, other: Name) -> Response:  # noqa: A002
    """Return what differs between two compiled contexts, and the commit responsible for each."""
    return json_response(shape(memory.context_diff(id, other)))
