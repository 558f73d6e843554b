"""Routes of drafts: begin, stage, look, finish, discard. Nothing staged is judged or visible before the end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.http.bodies_changes import Begin, Stage
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, written
from keepward.http.drafts import Begun, drafts_of, finished
from keepward.http.frame import told
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Instant
from keepward.http.shapes import json_response, write_response

router = APIRouter(route_class=KeepwardRoute, tags=["drafts"])

DraftId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="As `POST /memory/drafts` gave it.")]


class StagedChange(BaseModel):
    """A change of a draft."""

    op: str
    #: Of the memory that is changed, or will be made.
    id: str


class DraftState(BaseModel):
    """A draft under way."""

    id: str
    reason: str
    session: str | None
    changes: int
    expires_at: Instant
    items: list[StagedChange]


class Staged(BaseModel):
    """What was staged: for each change the id that a new memory will have, else null."""

    id: str
    changes: int
    ids: list[str | None]


def _state(begun: Begun) -> dict[str, object]:
    return {
        "id": begun.id,
        "reason": begun.reason,
        "session": begun.session,
        "changes": len(begun.staged),
        "expires_at": present.instant(begun.expires_at),
        "items": [{"op": op, "id": name} for op, name in begun.staged],
    }


_NEXT = {
    "draft": link("get_draft", draft_id="$response.body#/id"),
    "stage": link("stage_draft", draft_id="$response.body#/id"),
    "finish": link("finish_draft", draft_id="$response.body#/id"),
    "discard": link("discard_draft", draft_id="$response.body#/id"),
}


@router.post(
    "/memory/drafts",
    operation_id="begin_draft",
    status_code=201,
    dependencies=[Writes],
    responses=answers(DraftState, status=201, problems=(409,), body=True, changes=True, links=_NEXT),
)
def begin(request: Request, memory: Handle, body: Begin) -> Response:
    """Begin a draft; it is kept in memory alone, for an hour, for the principal who began it."""
    begun = drafts_of(request).begin(memory, reason=body.reason, session=body.session)
    return json_response(_state(begun), 201, {"Location": f"/memory/drafts/{begun.id}"})


@router.get("/memory/drafts/{draft_id}", operation_id="get_draft", responses=answers(DraftState, problems=(404,)))
def look(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Return a draft: what is staged, by operation and id."""
    with drafts_of(request).held(memory, draft_id) as begun:
        return json_response(_state(begun))


@router.post(
    "/memory/drafts/{draft_id}/changes",
    operation_id="stage_draft",
    dependencies=[Writes],
    responses=answers(Staged, problems=(404,), body=True, changes=True),
)
def stage(request: Request, memory: Handle, draft_id: DraftId, body: Stage) -> Response:
    """Add changes to a draft; later ones may name what earlier ones will make."""
    with drafts_of(request).held(memory, draft_id) as begun:
        ids = begun.add(body.changes)
        return json_response({"id": begun.id, "changes": len(begun.staged), "ids": ids})


@router.post(
    "/memory/drafts/{draft_id}/finish",
    operation_id="finish_draft",
    status_code=201,
    dependencies=[Writes],
    responses=written(404),
)
def finish(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Propose what was staged, together; after an error the draft is still there."""
    drafts = drafts_of(request)
    with drafts.held(memory, draft_id) as begun:
        outcome = finished(begun.draft)
        drafts.drop(begun)
    return write_response(outcome)


@router.delete(
    "/memory/drafts/{draft_id}",
    operation_id="discard_draft",
    status_code=204,
    dependencies=[Writes],
    responses={204: {"description": "Gone."}, **told(400, 401, 403, 404, 421, 422, 429, 503)},
)
def discard(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Drop a draft and everything staged in it."""
    drafts = drafts_of(request)
    with drafts.held(memory, draft_id) as begun:
        drafts.drop(begun)
    return Response(status_code=204)
