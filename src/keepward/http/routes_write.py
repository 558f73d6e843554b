"""Routes that propose: every change passes the gates, and its answer says what became of it.

Invariants
(1) A write answers 201 committed, 202 held for review, 200 the same was there already, 422 refused by a gate.
(2) Where a call names the version it saw, a change made since refuses it before and while it is written; mere
    bookkeeping does not.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from keepward.errors import StaleVersion, Unauthorised
from keepward.http import bodies, schemas
from keepward.http.bodies_changes import Edit
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, written
from keepward.http.drafts import finished, stage
from keepward.http.parameters import IfMatch, Name
from keepward.http.reading import etag_of, require_match
from keepward.http.route import KeepwardRoute
from keepward.http.shapes import json_response, outcome, write_response
from keepward.memory import Memory
from keepward.model.change import BOOKKEEPING

router = APIRouter(route_class=KeepwardRoute, tags=["write"], dependencies=[Writes])

_READ = {"memory": link("get", id="$response.body#/id"), "history": link("history", id="$response.body#/id")}
_UNDO = {"commit": link("show", commit_id="$response.body#/commit")}
Key = Annotated[
    str, Path(min_length=1, max_length=256, pattern=r"^[^/\x00-\x1f\x7f]*[^/\s\x00-\x1f\x7f][^/\x00-\x1f\x7f]*$")
]
WhyQuery = Annotated[str, Query(min_length=1, max_length=1000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]


class Outcomes(BaseModel):
    """What became of many memories: with ``each`` one outcome an item, with ``atomic`` one for all ``count`` items."""

    mode: str
    count: int
    outcomes: list[schemas.Written]


class Merged(BaseModel):
    """Nothing was merged: it takes two memories."""

    outcome: None = Field(description="Null: fewer than two memories were named.")


class Forgotten(BaseModel):
    """What became of those that are there, and the names of those that are not."""

    outcome: schemas.Written | None
    missing: list[str]


@router.post("/memory/items", operation_id="remember", status_code=201, responses=written(404, links=_READ | _UNDO))
def remember(memory: Handle, body: bodies.Remember) -> Response:
    """Propose a new memory; with a key that is taken, an update of its holder."""
    fields = body.given("text", "reason")
    return write_response(memory.remember(body.text, reason=body.reason, **fields))


@router.post(
    "/memory/items/batch",
    operation_id="remember_many",
    responses=answers(Outcomes, problems=(404, 409), body=True, changes=True),
)
def remember_many(memory: Handle, body: bodies.RememberMany) -> Response:
    """Propose many memories: each by itself, in the order given, or all or none. It counts as one change."""
    items = [each.given() for each in body.items]
    found = memory.remember_many(items, mode=body.mode, reason=body.reason)
    told = found[:1] if body.mode == "atomic" else found
    return json_response({"mode": body.mode, "count": len(found), "outcomes": [outcome(each) for each in told]})


@router.post(
    "/memory/items/merge",
    operation_id="merge",
    status_code=201,
    responses=written(404)
    | {
        200: {
            "model": schemas.Written | Merged,
            "description": "The same was there already, or there was nothing to merge.",
        }
    },
)
def merge(memory: Handle, body: bodies.Merge) -> Response:
    """Propose one summary in place of several memories of one subject, scope and sensitivity."""
    result = memory.merge(body.ids, body.text, reason=body.reason, **body.given("ids", "text", "reason"))
    return json_response({"outcome": None}) if result is None else write_response(result)


@router.post(
    "/memory/items/forget",
    operation_id="forget_many",
    responses=answers(Forgotten, problems=(409,), body=True, changes=True),
)
def forget_many(memory: Handle, body: bodies.ForgetMany) -> Response:
    """Propose in one commit that memories no longer hold; names that are not there are listed."""
    result, missing = memory.forget_many(body.ids, reason=body.reason)
    return json_response({"outcome": None if result is None else outcome(result), "missing": missing})


@router.patch(
    "/memory/items/{id:named}",
    operation_id="revise",
    status_code=201,
    responses=written(404, 412, 428, links=_READ),
)
def revise(request: Request, memory: Handle, id: Name, body: bodies.Revise, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose new text or fields for a memory; takes the `If-Match` that its GET gave."""
    del if_match
    seen = _matched(request, memory, id, required=True)
    fields = body.given("reason")
    return write_response(memory.revise(id, reason=body.reason, **{**fields, **_agreed(seen, fields)}))


@router.delete("/memory/items/{id:named}", operation_id="forget", status_code=201, responses=written(404, 412))
def forget(request: Request, memory: Handle, id: Name, reason: WhyQuery, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose that a memory no longer holds; it can be restored. `If-Match` is heeded where it is sent."""
    del if_match
    seen = _matched(request, memory, id, required=False)
    return write_response(memory.forget(id, reason=reason, if_version=seen))


@router.post("/memory/items/{id:named}/append", operation_id="append", status_code=201, responses=written(404, 412))
def append(request: Request, memory: Handle, id: Name, body: bodies.AppendBody, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose an addition to a memory, after a line break."""
    del if_match
    seen = _matched(request, memory, id, required=False)
    fields = body.given("text", "reason")
    return write_response(memory.append(id, body.text, reason=body.reason, **{**fields, **_agreed(seen, fields)}))


@router.post("/memory/items/{id:named}/move", operation_id="move", status_code=201, responses=written(404, 412))
def move(request: Request, memory: Handle, id: Name, body: bodies.MoveBody, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose another tier, scope or key."""
    del if_match
    seen = _matched(request, memory, id, required=False)
    fields = body.given("reason")
    return write_response(memory.move(id, reason=body.reason, **{**fields, **_agreed(seen, fields)}))


@router.post("/memory/items/{id:named}/archive", operation_id="archive", status_code=201, responses=written(404, 412))
def archive(request: Request, memory: Handle, id: Name, body: bodies.ArchiveBody, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose to put a memory away: it is not at hand until it is restored."""
    del if_match
    seen = _matched(request, memory, id, required=False)
    fields = body.given("reason")
    return write_response(memory.archive(id, reason=body.reason, **{**fields, **_agreed(seen, fields)}))


@router.post("/memory/items/{id:named}/restore", operation_id="restore", status_code=201, responses=written(404, 412))
def restore(request: Request, memory: Handle, id: Name, body: bodies.RestoreBody, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Propose to bring back a retired, archived, superseded or expired memory."""
    del if_match
    seen = _matched(request, memory, id, required=False)
    fields = body.given("reason")
    return write_response(memory.restore(id, reason=body.reason, **{**fields, **_agreed(seen, fields)}))


@router.post("/memory/items/{id:named}/reinforce", operation_id="reinforce", status_code=201, responses=written(404))
def reinforce(memory: Handle, id: Name, body: bodies.ReinforceBody) -> Response:  # noqa: A002
    """Propose that a memory is confirmed: its confidence starts anew."""
    return write_response(memory.reinforce(id, reason=body.reason, gain=body.gain))


@router.post("/memory/items/{id:named}/promote", operation_id="promote", status_code=201, responses=written(404))
def promote(memory: Handle, id: Name, body: bodies.PromoteBody) -> Response:  # noqa: A002
    """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""
    return write_response(memory.promote(id, body.text, reason=body.reason))


@router.post("/memory/items/{id:named}/supersede", operation_id="supersede", status_code=201, responses=written(404))
def supersede(memory: Handle, id: Name, body: bodies.SupersedeBody) -> Response:  # noqa: A002
    """Propose that one memory is replaced by another."""
    return write_response(memory.supersede(id, body.by, reason=body.reason))


@router.put("/memory/keys/{key}", operation_id="update_by_key", status_code=201, responses=written(404, links=_READ))
def update_by_key(memory: Handle, key: Key, body: bodies.Keyed) -> Response:
    """Propose the text of a keyed state: created when missing, updated in place when there."""
    fields = body.given("text", "reason", "key")
    return write_response(memory.update_by_key(key, body.text, reason=body.reason, **fields))


@router.post("/memory/edit", operation_id="propose", status_code=201, responses=written(404, links=_UNDO))
def edit(memory: Handle, body: Edit) -> Response:
    """Propose one or many changes that are carried out, held or refused together."""
    draft = memory.draft(reason=body.reason, session=body.session)
    for each in body.changes:
        stage(draft, each)
    return write_response(finished(draft))


def _matched(request: Request, memory: Memory, name: str, *, required: bool) -> int | None:
    """Return the version that the caller saw, where it said so in ``If-Match``; see (2)."""
    if not required and "if-match" not in request.headers:
        return None
    try:
        record = memory.get(name)
    except Unauthorised:
        # What one wrote and may not read any more has no version that one saw; the change itself is judged.
        if request.headers.get("if-match", "").strip() == "*":
            return None
        raise
    versions = {etag_of(record): record.version}
    if record.version > 1:
        for each in reversed(memory.history(record.id)):
            versions.setdefault(etag_of(each.record), each.record.version)
            # What was read before mere bookkeeping is still what is there.
            if each.op not in BOOKKEEPING:
                break
    matched = require_match(request, *versions)
    return None if matched is None else versions[matched]


def _agreed(seen: int | None, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the version to insist on: that of ``If-Match``, which the body's own must not contradict."""
    if seen is None:
        return {}
    if fields.get("if_version") not in {None, seen}:
        raise StaleVersion
    return {"if_version": seen}
