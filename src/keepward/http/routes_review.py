"""Routes of the review queue: look, approve, reject, one by one or many, with the same verbs as everywhere.

Invariants
(1) An approval is bound to the digest of what its reviewer saw: by ``If-Match`` for one, by item for many.
(2) Nobody decides on what it proposed itself, by whatever call.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.errors import NotFound
from keepward.http import schemas
from keepward.http.bodies_calls import Approvals, Reject, Rejections
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, page
from keepward.http.parameters import Cursor, IfMatch, Limit, Name
from keepward.http.reading import bad_cursor, decode_cursor, encode_cursor, etag_of_text, require_match
from keepward.http.route import KeepwardRoute
from keepward.http.shapes import decided, json_response, listed, reviewed, waiting, write_response
from keepward.memory import Memory
from keepward.model.proposal import Waiting

router = APIRouter(route_class=KeepwardRoute, tags=["review"])

States = Literal["pending", "approved", "rejected", "expired", "stale", "all"]
Queue = page(schemas.Reviewed, "Proposals")
Notices = page(schemas.Proposal, "Notices")


class Rejected(BaseModel):
    """A proposal that was rejected."""

    id: str
    state: Literal["rejected"]
    receipt: str
    receipt_record: schemas.ReceiptRecord  # type: ignore[valid-type]


class Approved(BaseModel):
    """What became of each, in the order given."""

    results: list[schemas.Decision]
    approved: int
    failed: int


class RejectedMany(BaseModel):
    """What became of each, in the order given."""

    results: list[schemas.Decision]
    rejected: int
    failed: int


@router.get(
    "/memory/quarantine",
    operation_id="pending",
    responses=answers(
        Queue,
        links={
            "proposal": link("get_proposal", id="$response.body#/items/0/id"),
            "reject": link("reject", id="$response.body#/items/0/id"),
        },
    ),
)
def pending(
    request: Request,
    memory: Handle,
    state: Annotated[States, Query()] = "pending",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Return proposals that the caller may read, oldest first: what, why, from where, and the digest to approve."""
    after = _after(request, cursor)
    queue = memory.pending(state=None if state == "all" else state)
    found = [each for each in queue if (present.instant(each.created_at), each.id) > after]
    shown = found[:limit]
    onward = None
    if len(found) > limit:
        last = shown[-1]
        onward = encode_cursor(request, {"at": present.instant(last.created_at), "id": last.id})
    return json_response(listed([reviewed(memory, each) for each in shown], onward))


def _after(request: Request, cursor: str | None) -> tuple[str, str]:
    found = decode_cursor(request, cursor) if cursor else {"at": "", "id": ""}
    at, name = found.get("at"), found.get("id")
    if not isinstance(at, str) or not isinstance(name, str):
        raise bad_cursor()
    return at, name


@router.get(
    "/memory/quarantine/{id:named}",
    operation_id="get_proposal",
    responses=answers(
        schemas.Reviewed,
        problems=(404,),
        links={
            "approve": link("approve", id="$response.body#/id", If_Match="$response.header.ETag"),
            "reject": link("reject", id="$response.body#/id"),
        },
    ),
)
def get_proposal(memory: Handle, id: Name) -> Response:  # noqa: A002
    """Return a proposal, whatever became of it; its ETag is the digest that an approval is bound to."""
    item = _proposal(memory, id)
    return json_response(reviewed(memory, item), headers={"ETag": etag_of_text(item.digest)})


@router.post(
    "/memory/quarantine/{id:named}/approve",
    operation_id="approve",
    status_code=201,
    dependencies=[Writes],
    responses=answers(schemas.Written, status=201, problems=(404, 409, 412, 428), changes=True),
)
def approve(request: Request, memory: Handle, id: Name, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Store exactly what was proposed; `If-Match` carries the ETag of what was seen."""
    del if_match
    item = _proposal(memory, id)
    require_match(request, etag_of_text(item.digest))
    return write_response(memory.approve(item.id, digest=item.digest))


@router.post(
    "/memory/quarantine/{id:named}/reject",
    operation_id="reject",
    dependencies=[Writes],
    responses=answers(Rejected, problems=(404, 409), body=True, changes=True),
)
def reject(memory: Handle, id: Name, body: Reject) -> Response:  # noqa: A002
    """Discard a proposal; what held before still holds, and the proposer is told the reason once."""
    receipt = memory.reject(id, reason=body.reason)
    return json_response(
        {"id": id, "state": "rejected", "receipt": receipt.id, "receipt_record": present.plain(receipt)}
    )


@router.post(
    "/memory/quarantine/approve",
    operation_id="approve_many",
    dependencies=[Writes],
    responses=answers(Approved, body=True, changes=True),
)
def approve_many(memory: Handle, body: Approvals) -> Response:
    """Approve each by the digest that was seen; each gets its own answer, and one that fails stops no other."""
    found = [decided(each) for each in memory.approve_many({each.id: each.digest for each in body.items})]
    return json_response(_counted(found, "approved"))


@router.post(
    "/memory/quarantine/reject",
    operation_id="reject_many",
    dependencies=[Writes],
    responses=answers(RejectedMany, body=True, changes=True),
)
def reject_many(memory: Handle, body: Rejections) -> Response:
    """Reject each for one reason; each gets its own answer, and one that fails stops no other."""
    found = [decided(each) for each in memory.reject_many(body.ids, reason=body.reason)]
    return json_response(_counted(found, "rejected"))


@router.get("/memory/notices", operation_id="notices", responses=answers(Notices))
def notices(memory: Handle) -> Response:
    """Return, once, the decisions on the caller's own proposals that went against them."""
    return json_response(listed([waiting(each) for each in memory.notices()]))


def _counted(results: list[dict[str, Any]], word: str) -> dict[str, Any]:
    done = sum(1 for each in results if each["ok"])
    return {"results": results, word: done, "failed": len(results) - done}


def _proposal(memory: Memory, name: str) -> Waiting:
    for each in memory.pending(state=None):
        if each.id == name:
            return each
    raise NotFound("there is no proposal by that id in this tenant")
