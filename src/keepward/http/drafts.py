"""Drafts: changes that a caller collects over several calls, and proposes together.

Invariants
(1) A draft is kept in memory alone, for an hour at most: what no gate has judged is never written to disk. Nothing
    staged is judged or visible before the end.
(2) It is seen and used by the principal who began it and by nobody else, in the tenant and scope it was begun in.
(3) It is proposed once. When that fails by an error, as against a refusal, it stays and can be finished later.
(4) There is a limit to what one principal, and all of them together, can have begun.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.http.answers import json_response, proposed, staged, write_response
from keepward.http.credentials import Handle, Writes, principal_of, serving_of
from keepward.http.documented import answered, link, problems_of
from keepward.http.models import Body, Ops, typed
from keepward.http.problems import Problem
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Instant, Written
from keepward.http.serving import DRAFT
from keepward.http.state import State
from keepward.memory import Memory
from keepward.model.change import Change
from keepward.verbs import Judged, Limit
from keepward.verbs.fields import ReadLine

drafts = APIRouter(route_class=KeepwardRoute, tags=["drafts"])

#: Most drafts of one principal; most changes in one draft, and most characters of their JSON.
MOST_OWN = 16
MOST_CHANGES = 500
MOST_CHARACTERS = 4_000_000
_GONE = "there is no draft by that id; drafts are kept for an hour, and not over a restart"


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """A draft under way."""

    id: str
    tenant: str
    scope: str
    reason: str = field(repr=False)
    session: str | None = field(repr=False)
    expires_at: datetime
    changes: list[Change] = field(default_factory=list, repr=False)
    #: (op, id) of each change, in order.
    items: list[tuple[str, str]] = field(default_factory=list)
    characters: int = 0
    #: Held by the one call that uses it.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``DraftState``."""
        return {
            "id": self.id,
            "reason": self.reason,
            "session": self.session,
            "changes": len(self.items),
            "expires_at": present.instant(self.expires_at),
            "items": [{"op": op, "id": name} for op, name in self.items],
        }


@contextmanager
def _held(request: Request, memory: Memory, name: str) -> Iterator[tuple[State, Draft]]:
    """Give a draft of the handle's principal, to one caller at a time.

    Raises:
        NotFound: there is none by that name, it has ended, or it is somebody else's (2).
    """
    state = serving_of(request).state

    def find() -> Draft:
        draft: Draft | None = state.get(DRAFT, name, owner=principal_of(memory))
        if draft is None or (draft.tenant, draft.scope) != (memory.tenant, memory.scope):
            raise NotFound(_GONE)
        return draft

    draft = find()
    with draft.lock:
        # Finished or discarded while this call waited for it.
        find()
        yield state, draft


DraftId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="As `POST /memory/drafts` gave it.")]
_Reason = Annotated[str, Limit(maxLength=1000), Judged("Why.", minLength=1, pattern=r"\S")]


class Begin(Body):
    """A draft to be."""

    reason: typed(_Reason)  # type: ignore[valid-type]
    session: typed(ReadLine) | None = None  # type: ignore[valid-type]


class Stage(Body):
    """Changes to add to a draft."""

    changes: Ops


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


_NEXT = {
    word: link(operation, draft_id="$response.body#/id")
    for word, operation in {
        "draft": "get_draft",
        "stage": "stage_draft",
        "finish": "finish_draft",
        "discard": "discard_draft",
    }.items()
}


@drafts.post(
    "/memory/drafts",
    operation_id="begin_draft",
    status_code=201,
    dependencies=[Writes],
    responses=answered(DraftState, status=201, problems=(409,), body=True, changes=True, links=_NEXT),
)
def begin(request: Request, memory: Handle, body: Begin) -> Response:
    """Begin a draft; it is kept in memory alone, for an hour, for the principal who began it."""
    if not body.reason.strip():
        raise InvalidInput("say why: a change carries a `reason`")
    serving, principal = serving_of(request), principal_of(memory)
    own = serving.state.count(DRAFT, owner=principal)
    if own >= MOST_OWN:
        raise Conflict(f"there are {own} drafts of yours already; finish or discard one")
    if serving.state.count(DRAFT) >= DRAFT.most:
        raise Conflict("this server keeps no more drafts now; finish one, or send the changes in one edit")
    draft = Draft(
        id=serving.random(16).hex(),
        tenant=memory.tenant,
        scope=memory.scope,
        reason=body.reason,
        session=body.session,
        expires_at=memory.now + timedelta(seconds=DRAFT.seconds),
    )
    serving.state.change(DRAFT, draft.id, lambda _: draft, owner=principal)
    return json_response(draft.as_dict(), 201, {"Location": f"/memory/drafts/{draft.id}"})


@drafts.get("/memory/drafts/{draft_id}", operation_id="get_draft", responses=answered(DraftState, problems=(404,)))
def look(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Return a draft: what is staged, by operation and id."""
    with _held(request, memory, draft_id) as (_, draft):
        return json_response(draft.as_dict())


@drafts.post(
    "/memory/drafts/{draft_id}/changes",
    operation_id="stage_draft",
    dependencies=[Writes],
    responses=answered(Staged, problems=(404,), body=True, changes=True),
)
def stage(request: Request, memory: Handle, draft_id: DraftId, body: Stage) -> Response:
    """Add changes to a draft; later ones may name what earlier ones will make."""
    with _held(request, memory, draft_id) as (_, draft):
        size = sum(len(each.model_dump_json(exclude_unset=True)) for each in body.changes)
        if len(draft.items) + len(body.changes) > MOST_CHANGES or draft.characters + size > MOST_CHARACTERS:
            detail = f"a draft holds at most {MOST_CHANGES} changes and 4 MB; finish this one and begin another"
            raise Problem(413, "too_large", detail)
        # All are read before one is staged: one that cannot be read must not leave half of a call behind.
        made = [staged(memory, each.given()) for each in body.changes]
        draft.changes += made
        draft.items += [(each.op, change.id) for each, change in zip(body.changes, made, strict=True)]
        draft.characters += size
        ids = [change.id if each.op == "insert" else None for each, change in zip(body.changes, made, strict=True)]
        return json_response({"id": draft.id, "changes": len(draft.items), "ids": ids})


@drafts.post(
    "/memory/drafts/{draft_id}/finish",
    operation_id="finish_draft",
    status_code=201,
    dependencies=[Writes],
    responses=answered(
        Written, status=201, also={200: Written, 202: Written}, problems=(404, 409, 413, 415), changes=True
    ),
)
def finish(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Propose what was staged, together; after an error the draft is still there."""
    with _held(request, memory, draft_id) as (state, draft):
        outcome = proposed(memory, draft.changes, reason=draft.reason, session=draft.session)
        state.change(DRAFT, draft.id, lambda _: None, owner=principal_of(memory))
    return write_response(outcome)


@drafts.delete(
    "/memory/drafts/{draft_id}",
    operation_id="discard_draft",
    status_code=204,
    dependencies=[Writes],
    responses={204: {"description": "Gone."}, **problems_of(400, 401, 403, 404, 421, 422, 429, 503)},
)
def discard(request: Request, memory: Handle, draft_id: DraftId) -> Response:
    """Drop a draft and everything staged in it."""
    with _held(request, memory, draft_id) as (state, draft):
        state.change(DRAFT, draft.id, lambda _: None, owner=principal_of(memory))
    return Response(status_code=204)
