"""Routes that read: status, core, search, compiled contexts, memories by id.

Invariants
(1) A page after the first is read from the state, and by the clock, of the first.
(2) Reading changes no memory and writes no commit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.errors import NotFound
from keepward.http import schemas
from keepward.http.bodies_calls import Block, Compile
from keepward.http.credentials import Handle
from keepward.http.documented import answers, link, page
from keepward.http.parameters import (
    MOST_HITS,
    WHOLE,
    Absent,
    AsOfQuery,
    ContentTypes,
    Cursor,
    Flag,
    IfNoneMatch,
    Kinds,
    Limit,
    LongQuery,
    Name,
    Share,
    TagsQuery,
    TextQuery,
    Tiers,
)
from keepward.http.reading import Moment, bad_cursor, cursor_of, etag_of, etag_of_text, not_modified, place, seq_of
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import actor, json_response, listed, parse_as_of, recall, shape, version
from keepward.memory import Memory
from keepward.model.memory import Record
from keepward.model.query import Memories, Recall

router = APIRouter(route_class=KeepwardRoute, tags=["read"])

FormatQuery = Annotated[Literal["markdown", "xml", "messages"], Query()]
TokensQuery = Annotated[Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | Absent, Query()]


class Quarantine(BaseModel):
    """The review queue in numbers."""

    depth: int
    oldest_at: str | None
    oldest_age_seconds: int | None
    stuck: int


class BlockState(BaseModel):
    """A core block in numbers."""

    tokens: int
    budget: int
    id: str | None
    version: int | None


class Status(BaseModel):
    """Counts, sizes, the queue and the use of budgets; ``path`` is the owner's alone to see."""

    model_config = ConfigDict(extra="allow")

    path: str | None
    tenant: str
    scope: str
    actor: str
    actor_record: schemas.Principal  # type: ignore[valid-type]
    now: schemas.Instant
    head: str
    #: For the ``If-Match`` of a rollback.
    etag: str
    policy: str
    enabled: bool
    capture: bool
    recall: bool
    embedder: str | None
    by_tier: dict[str, int]
    by_status: dict[str, int]
    live: int
    total: int
    commits: int
    quarantine: Quarantine
    blocks: dict[str, BlockState]


class CoreBlock(BlockState):
    """A core block; a text without a memory is a document's, kept outside the store and not repeated here."""

    key: str
    text: str | None
    memory: schemas.Memory | None  # type: ignore[valid-type]


class Core(BaseModel):
    """Core memory as the caller's scope sees it."""

    head: str
    scope: str
    #: In the order in which they are compiled.
    blocks: list[CoreBlock]
    #: What else is in the core tier, under no block's key.
    items: list[schemas.Memory]  # type: ignore[valid-type]
    #: Ids of core memories that were edited outside of Keepward or are missing, and a sentence on them.
    withheld: list[str]
    notes: list[str]


Items = page(schemas.Memory, "Memories", head=str, withheld=list[str], notes=list[str])
History = page(schemas.MemoryVersion, "Versions", id=str)


@router.get("/memory/status", operation_id="status", responses=answers(Status))
def status(memory: Handle) -> Response:
    """Return tier sizes, block counts, the depth of the queue and the use of budgets."""
    told = memory.status()
    path = told["path"] if memory.actor.is_owner else None
    return json_response(
        {
            **present.plain(told),
            "path": path,
            "etag": etag_of_text(told["head"]),
            "actor_record": actor(memory.actor),
            "now": present.instant(memory.now),
        },
        headers={"ETag": etag_of_text(told["head"])},
    )


@router.get("/memory/core", operation_id="core", responses=answers(Core))
def core(memory: Handle) -> Response:
    """Return the core blocks as they stand now; of two with one key the nearer scope's counts."""
    told = memory.status()
    listing = memory.find(tiers=["core"], limit=None)
    found = sorted(listing, key=lambda each: (len(each.scope), each.id))
    nearest = {each.key: each for each in found}
    blocks = [
        {
            "key": name,
            **{key: each[key] for key in ("tokens", "budget")},
            **_block(nearest.pop(name, None)),
        }
        for name, each in told["blocks"].items()
    ]
    others = [present.record(each) for each in nearest.values()]
    return json_response(
        {
            "head": told["head"],
            "scope": memory.scope,
            "blocks": blocks,
            "items": others,
            "withheld": list(listing.withheld),
            "notes": list(listing.notes),
        }
    )


def _block(record: Record | None) -> dict[str, Any]:
    return {
        "id": record and record.id,
        "version": record and record.version,
        "text": record and record.text,
        "memory": record and present.record(record),
    }


@router.get(
    "/memory/search",
    operation_id="search",
    responses=answers(schemas.Found, problems=(404,), links={"memory": link("get", id="$response.body#/hits/0/id")}),
)
def search(
    request: Request,
    memory: Handle,
    query: LongQuery,
    tier: Tiers = [],  # noqa: B006  read, never written
    kind: Kinds = [],  # noqa: B006
    tags: TagsQuery = [],  # noqa: B006
    content_type: ContentTypes = [],  # noqa: B006
    subject: TextQuery = None,
    category: TextQuery = None,
    session: TextQuery = None,
    purpose: Annotated[Literal["answer", "act", "core"], Query()] = "answer",
    order: Annotated[Literal["learned", "fused", "cosine"], Query()] = "learned",
    min_importance: Annotated[Share, Query()] = 0.0,
    include_sensitive: Annotated[Flag, Query()] = False,
    as_of: AsOfQuery = None,
    floor: Annotated[
        Share | None, Query(description="Least score of the best hit, below it there are none; 0 for no floor.")
    ] = None,
    receipt: Annotated[Flag, Query(description="Keep a receipt that feedback can name.")] = False,
    limit: Limit = 10,
    cursor: Cursor = None,
) -> Response:
    """Return the memories most relevant to a query, best first; filters apply before limits.

    `tier`, `kind`, `tags` and `content_type` may stand more than once. All pages of a query show at most 1,000.
    """
    start, moment = place(request, cursor)
    asked: dict[str, Any] = {
        "limit": min(start + limit, MOST_HITS),
        "purpose": purpose,
        "tiers": tier,
        "kinds": kind,
        "tags": tags,
        "content_types": content_type,
        "subject": subject,
        "category": category,
        "session": session,
        "min_importance": min_importance,
        "include_sensitive": include_sensitive,
        "order": order,
        "floor": floor,
        "receipt": receipt,
    }
    try:
        found = (
            _again(memory, query, asked, moment) if moment else memory.recall(query, as_of=parse_as_of(as_of), **asked)
        )
    except NotFound as fault:
        raise (bad_cursor("is of a state that is gone") if cursor else fault) from fault
    end = start + limit
    more = len(found.hits) == end < MOST_HITS
    moment = moment or Moment(seq=seq_of(found.head), at=found.now)
    return json_response(recall(found, start=start, cursor=cursor_of(request, end, moment) if more else None))


def _again(memory: Memory, query: str, asked: dict[str, Any], moment: Moment) -> Recall:
    """Recall from the state of an earlier page: by its clock, or where a write has since slipped in before it, by
    the clock of that state's own commit.
    """
    found = memory.recall(query, as_of=moment.at, **asked)
    return found if seq_of(found.head) == moment.seq else memory.recall(query, as_of=moment.seq, **asked)


@router.post(
    "/memory/compile",
    operation_id="compile",
    responses=answers(
        Given["CompiledContext"],
        problems=(404, 409),
        body=True,
        links={
            "receipt": link("receipt", id="$response.body#/receipt"),
            "feedback": link("feedback", body={"receipt": "$response.body#/receipt"}),
            "replay": link("replay", id="$response.body#/receipt"),
        },
    ),
)
def compile_context(memory: Handle, body: Compile) -> Response:
    """Compile what a model should know for an objective, within a budget, with a receipt."""
    return json_response(
        shape(
            memory.context(
                body.objective,
                budget_tokens=body.budget_tokens,
                purpose=body.purpose,
                as_of=parse_as_of(body.as_of),
                format=body.format,
                include_sensitive=body.include_sensitive,
                without=body.without,
                floor=body.floor,
            )
        )
    )


@router.post(
    "/memory/block",
    operation_id="memory_block",
    responses=answers(Given["CompiledContext"], problems=(409,), body=True),
)
def block(memory: Handle, body: Block) -> Response:
    """Compile only what is relevant to a query; the empty text when nothing is."""
    return json_response(
        shape(
            memory.memory_block(
                body.query,
                budget_tokens=body.budget_tokens,
                purpose=body.purpose,
                floor=body.floor,
                format=body.format,
            )
        )
    )


@router.get("/memory/snapshot", operation_id="snapshot", responses=answers(Given["CompiledContext"], problems=(409,)))
def snapshot(
    memory: Handle,
    budget_tokens: TokensQuery = None,
    format: FormatQuery = "markdown",  # noqa: A002
    without: TagsQuery = [],  # noqa: B006
) -> Response:
    """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall."""
    return json_response(shape(memory.snapshot(budget_tokens=budget_tokens, format=format, without=without)))


@router.get(
    "/memory/items",
    operation_id="find",
    responses=answers(Items, problems=(404,), links={"memory": link("get", id="$response.body#/items/0/id")}),
)
def find(
    request: Request,
    memory: Handle,
    tier: Tiers = [],  # noqa: B006
    kind: Kinds = [],  # noqa: B006
    tags: TagsQuery = [],  # noqa: B006
    content_type: ContentTypes = [],  # noqa: B006
    key: TextQuery = None,
    subject: TextQuery = None,
    category: TextQuery = None,
    session: TextQuery = None,
    job: TextQuery = None,
    min_importance: Annotated[Share, Query()] = 0.0,
    include_ended: Annotated[Flag, Query()] = False,
    include_sensitive: Annotated[Flag, Query()] = True,
    as_of: AsOfQuery = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Return the memories that pass all filters, newest first."""
    filters: dict[str, Any] = {
        "tiers": tier,
        "kinds": kind,
        "tags": tags,
        "content_types": content_type,
        "key": key,
        "subject": subject,
        "category": category,
        "session": session,
        "job": job,
        "min_importance": min_importance,
        "include_ended": include_ended,
        "include_sensitive": include_sensitive,
    }
    start, moment = place(request, cursor)
    end, asked = start + limit, parse_as_of(as_of)
    if asked is not None and not (isinstance(asked, datetime) and asked > memory.now):
        # What is past does not move; a future instant is a state that does.
        found = memory.find(**filters, limit=end + 1, as_of=asked)
    elif moment is None:
        found, moment = _settled(memory, filters, end + 1, asked)
    else:
        try:
            found = _as_then(memory, filters, moment)
        except NotFound as fault:
            raise (bad_cursor("is of a state that is gone") if cursor else fault) from fault
    onward = cursor_of(request, end, moment) if len(found) > end else None
    lost = {"withheld": list(found.withheld), "notes": list(found.notes)}
    return json_response(listed([present.record(each) for each in found[start:end]], onward, head=memory.head, **lost))


def _settled(memory: Memory, filters: dict[str, Any], limit: int, asked: datetime | None) -> tuple[Memories, Moment]:
    """Read the present, and return the state that it was; only where writes keep coming is that state asked for."""
    for _ in range(3):
        head, now = memory.head, asked or memory.now
        found = memory.find(**filters, limit=limit, as_of=asked)
        if memory.head == head:
            return found, Moment(seq=seq_of(head), at=now)
    moment = Moment(seq=seq_of(memory.head), at=asked or memory.now)
    return _as_then(memory, filters, moment), moment


def _as_then(memory: Memory, filters: dict[str, Any], moment: Moment) -> Memories:
    """Return all that pass in a state, by a clock that need not be that of its last commit."""
    found = memory.find(**{**filters, "include_ended": True}, limit=None, as_of=moment.seq)
    if filters["include_ended"]:
        return found
    return Memories((each for each in found if each.is_live(moment.at)), withheld=found.withheld, notes=found.notes)


@router.get(
    "/memory/items/{id:named}",
    operation_id="get",
    responses=answers(
        schemas.Memory,
        problems=(404,),
        links={
            "revise": link("revise", id="$response.body#/id", If_Match="$response.header.ETag"),
            "forget": link("forget", id="$response.body#/id", If_Match="$response.header.ETag"),
            "history": link("history", id="$response.body#/id"),
        },
    )
    | {304: {"description": "It is still the version that was named."}},
)
def get(
    request: Request,
    memory: Handle,
    id: Name,  # noqa: A002
    as_of: AsOfQuery = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return a memory by id or alias, whatever its status; its ETag goes into the `If-Match` of a change."""
    del if_none_match
    record = memory.get(id, as_of=parse_as_of(as_of))
    tag = etag_of(record)
    return not_modified(request, tag) or json_response(present.record(record), headers={"ETag": tag})


@router.get("/memory/items/{id:named}/history", operation_id="history", responses=answers(History, problems=(404,)))
def history(memory: Handle, id: Name) -> Response:  # noqa: A002
    """Return every version of a memory, oldest first, each with the commit that made it."""
    versions = memory.history(id)
    return json_response(listed([version(each) for each in versions], id=versions[-1].record.id))
