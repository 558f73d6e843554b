"""Routes of events: commits as they come, as server-sent events.

Invariants
(1) The id of an event is the number of its commit. Whoever names the last one it saw gets every later one that it
    may see, in order, each once; commits of other processes too.
(2) An event says which memories were touched and how: ids, operations, tiers; never a text or a reason.
(3) A stream ends when its credential no longer holds, and when the server stops.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Header, Query
from pydantic import Field
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.errors import KeepwardError, NotFound
from keepward.http.credentials import Handle, serving_of
from keepward.http.frame import told
from keepward.http.parameters import WHOLE, Absent
from keepward.http.problems import Problem
from keepward.http.reading import seq_of
from keepward.http.route import KeepwardRoute
from keepward.http.serving import Serving
from keepward.memory import Memory
from keepward.model.journal import CommitView

router = APIRouter(route_class=KeepwardRoute, tags=["events"])

#: Seconds between two looks at the head, and between two signs of life.
LOOK = 0.5
HEARTBEAT = 15
#: Commits that are read in one go, and streams that one server keeps open.
BATCH = 100
MOST = 64

LastSeen = Annotated[
    Annotated[str, Field(max_length=16, pattern=r"^(0|[1-9][0-9]{0,15})$")] | Absent,
    Header(alias="Last-Event-ID", description="As for `after`, which it takes the place of."),
]


@router.get(
    "/memory/events",
    operation_id="events",
    response_class=Response,
    responses={
        200: {
            "description": "`event: commit`, `id:` the commit's number, `data:` an object; `event: end` says why.",
            "content": {"text/event-stream": {}},
        },
        **told(400, 401, 403, 404, 421, 422, 429, 503),
    },
)
async def events(
    request: Request,
    memory: Handle,
    after: Annotated[
        Annotated[int, Field(ge=0, le=2**53), WHOLE] | Absent,
        Query(description="Number of the last commit that was seen."),
    ] = None,
    last_event_id: LastSeen = None,
) -> Response:
    """Return commits as they come: ids, operations and tiers of what the caller may see, no text.

    Without `after` or `Last-Event-ID` it begins with what comes next.
    """
    serving = serving_of(request)
    start = int(last_event_id) if last_event_id is not None else after
    newest = await run_in_threadpool(lambda: seq_of(memory.head))
    if start is not None and start > newest:
        raise NotFound("there is no such commit yet")
    if serving.streams >= MOST:
        detail = "too many streams are open; close one, or ask for commits by number"
        raise Problem(429, "rate_limited", detail, headers={"Retry-After": "5"})
    body = _stream(memory, serving, newest if start is None else start)
    return EventSourceResponse(body, ping=HEARTBEAT, ping_message_factory=lambda: ServerSentEvent(comment="still here"))


async def _stream(memory: Memory, serving: Serving, seq: int) -> AsyncIterator[ServerSentEvent]:
    serving.streams += 1
    try:
        # The head of the answer goes out with the first piece; a comment lets the caller know that it is heard.
        yield ServerSentEvent(comment="commits after " + str(seq))
        while not serving.stopping.is_set():
            try:
                found, seq = await run_in_threadpool(_later, memory, seq)
            except KeepwardError as fault:
                yield _event("end", {"code": fault.code, "detail": str(fault)})
                return
            for view in found:
                yield _event("commit", told_of(view), view.commit.seq)
            if not found:
                await anyio.sleep(LOOK)
    finally:
        serving.streams -= 1


def _later(memory: Memory, seq: int) -> tuple[list[CommitView], int]:
    """Return commits after a number that the handle may see, oldest first, and the number of the last one looked at."""
    newest = seq_of(memory.head)
    found: list[CommitView] = []
    while seq < newest and len(found) < BATCH:
        seq += 1
        try:
            found.append(memory.show(str(seq)))
        except NotFound:
            # Nothing in it is within the caller's reach.
            continue
    return found, seq


def told_of(view: CommitView) -> dict[str, Any]:
    """Return what an event says of a commit; see (2)."""
    touched = [
        {"op": each.op, "id": each.after.id, "version": each.after.version, "tier": each.after.tier.value}
        for each in view.steps
    ]
    return {
        "seq": view.commit.seq,
        "id": view.commit.id,
        "at": present.instant(view.commit.at),
        "kind": view.commit.kind,
        "actor": view.details.actor,
        "changes": touched,
    }


def _event(kind: str, data: dict[str, Any], seq: int | None = None) -> ServerSentEvent:
    return ServerSentEvent(
        data=json.dumps(data, separators=(",", ":")), event=kind, id=None if seq is None else str(seq), sep="\n"
    )
