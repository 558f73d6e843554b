"""Routes of an inquiry: blame, impact, containment by plan and digest, bisection."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from keepward.http import bodies_calls as bodies
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers
from keepward.http.parameters import Name, TextQuery
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import json_response, shape

router = APIRouter(route_class=KeepwardRoute, tags=["inquiry"])


@router.get("/memory/blame/{name}", operation_id="blame", responses=answers(Given["Blame"], problems=(404,)))
def blame(memory: Handle, name: Name) -> Response:
    """Return which commit, actor, source and approval made each value of a memory, by id or key."""
    return json_response(shape(memory.blame(name)))


@router.get("/memory/impact", operation_id="impact", responses=answers(Given["Impact"], problems=(404,)))
def impact(
    memory: Handle,
    source: TextQuery = None,
    actor: TextQuery = None,
    session: TextQuery = None,
    commit: TextQuery = None,
    memory_id: Annotated[TextQuery, Query(alias="memory")] = None,
) -> Response:
    """Return what exactly one of these touched: memories, all derived from them, every context that held any.

    It spans every scope, and takes a reviewer or the owner.
    """
    found = memory.impact(source=source, actor=actor, session=session, commit=commit, memory=memory_id)
    return json_response(shape(found))


@router.post(
    "/memory/contain/plan",
    operation_id="plan_contain",
    responses=answers(Given["Containment"], problems=(404,), body=True),
)
def plan_contain(memory: Handle, body: bodies.Selected) -> Response:
    """Return what would be taken out of use, under a digest; change nothing."""
    return json_response(shape(memory.contain(None, **_ways(body))))


@router.post(
    "/memory/contain",
    operation_id="contain",
    dependencies=[Writes],
    responses=answers(Given["Containment"], problems=(404, 409), body=True, changes=True),
)
def contain(memory: Handle, body: bodies.Contain) -> Response:
    """Carry out exactly the plan with this digest, in one commit that one rollback undoes; for the owner alone."""
    return json_response(shape(memory.contain(body.digest, **_ways(body), reason=body.reason)))


def _ways(body: bodies.Selected) -> dict[str, Any]:
    return {name: getattr(body, name) for name in ("source", "actor", "session", "commit", "memory")}


@router.post(
    "/memory/bisect", operation_id="bisect", responses=answers(Given["Bisection"], problems=(404, 409), body=True)
)
def bisect(memory: Handle, body: bodies.Bisect) -> Response:
    """Return the commit with which the context for a query began to hold a text."""
    found = memory.bisect(body.query, contains=body.contains, since=body.since, purpose=body.purpose)
    return json_response(shape(found))
