"""Drafts: changes that a caller collects over several calls, and proposes together.

Invariants
(1) A draft is kept for an hour at most, in memory alone, or sealed where servers of one database share it: what no gate
    has judged cannot be read on a disk. Nothing staged is judged or visible before the end.
(2) It is seen and used by the principal who began it and by nobody else, in the tenant and scope it was begun in.
(3) It is proposed once. When that fails by an error, as against a refusal, it stays and can be finished later.
(4) There is a limit to what one principal, and all of them together, can have begun.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from starlette.responses import Response

from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.http.answers import Call, json_response, over_http, proposed, staged, write_response
from keepward.http.credentials import principal_of, serving_of
from keepward.http.problems import Problem
from keepward.http.schemas import Instant, model
from keepward.model import plain
from keepward.model.state import Kind
from keepward.verbs import Judged, Limit
from keepward.verbs import Request as Asked
from keepward.verbs.fields import ReadLine

#: Most drafts of one principal; most changes in one draft, and most characters of their JSON.
MOST_OWN = 16
MOST_CHANGES = 500
MOST_CHARACTERS = 4_000_000
#: Seconds that a call waits while another proposes its draft, and between two looks.
PATIENCE = 30
_LOOK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft under way."""

    id: str
    tenant: str
    scope: str
    reason: str = field(repr=False)
    session: str | None = field(repr=False)
    expires_at: datetime
    #: Each change as it was sent, as JSON, and the id of the memory that it changes or will make; in order.
    changes: tuple[str, ...] = field(default=(), repr=False)
    ids: tuple[str, ...] = ()
    #: Number of the server that proposes it now.
    by: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``DraftState``."""
        return {
            "id": self.id,
            "reason": self.reason,
            "session": self.session,
            "changes": len(self.changes),
            "expires_at": plain.instant(self.expires_at),
            "items": [
                {"op": json.loads(each)["op"], "id": name} for each, name in zip(self.changes, self.ids, strict=True)
            ],
        }


#: Drafts of all principals together.
DRAFT = Kind(name="draft", of=Draft, seconds=3600, most=512)


def _change(call: Call, new: Callable[[Draft], Draft | None]) -> Draft | None:
    """Put what ``new`` makes of the draft that a call names in its place, once nobody proposes it; None ends it.

    Raises:
        NotFound: there is none by that name, it has ended, or it is somebody else's (2).
        Conflict: it is being proposed, and that takes long.
    """
    serving, memory = serving_of(call.http), call.memory
    state, until = serving.state, time.monotonic() + PATIENCE
    busy: int | None = None
    dead: set[int] = set()

    def changed(draft: Draft | None) -> Draft | None:
        nonlocal busy
        if draft is None or (draft.tenant, draft.scope) != (memory.tenant, memory.scope):
            raise NotFound("there is no draft by that id; drafts are kept for an hour, and not over a restart")
        # A server that died finishes nothing.
        busy = None if draft.by in dead else draft.by
        return new(draft) if busy is None else draft

    while True:
        after: Draft | None = state.change(DRAFT, call.given["draft_id"], changed, owner=principal_of(memory))
        if busy is None:
            return after
        if not state.alive(busy):
            dead.add(busy)
        elif time.monotonic() > until:
            raise Conflict("this draft is being proposed; ask for it again, or for what it has become")
        else:
            time.sleep(_LOOK)


DraftId = Annotated[str, Limit("As `POST /memory/drafts` gave it.", pattern=r"^[0-9a-f]{32}$")]


@over_http("begin_draft", "POST /memory/drafts", right="propose", status=201, changes=True)
class Begin(Asked[Any]):
    """Begin a draft; it is kept in memory alone, for an hour, for the principal who began it."""

    reason: Annotated[str, Limit(maxLength=1000), Judged("Why.", minLength=1, pattern=r"\S")]
    session: ReadLine | None = None


@over_http("get_draft", "GET /memory/drafts/{draft_id}", right="propose")
class Look(Asked[Any]):
    """Return a draft: what is staged, by operation and id."""

    draft_id: DraftId


@over_http("stage_draft", "POST /memory/drafts/{draft_id}/changes", right="propose", changes=True)
class Stage(Look):
    """Add changes to a draft; later ones may name what earlier ones will make."""

    changes: list[Any]


@over_http("finish_draft", "POST /memory/drafts/{draft_id}/finish", right="propose", status=201, changes=True)
class Finish(Look):
    """Propose what was staged, together; after an error the draft is still there."""


@over_http("discard_draft", "DELETE /memory/drafts/{draft_id}", right="propose", status=204, changes=True)
class Discard(Look):
    """Drop a draft and everything staged in it."""


_Staged: Any = model(
    "StagedChange",
    "A change of a draft.",
    # The id is of the memory that is changed, or will be made.
    {"op": str, "id": str},
)
DraftState: Any = model(
    "DraftState",
    "A draft under way.",
    {"id": str, "reason": str, "session": str | None, "changes": int, "expires_at": Instant, "items": list[_Staged]},
)
Staged: Any = model(
    "Staged",
    "What was staged: for each change the id that a new memory will have, else null.",
    {"id": str, "changes": int, "ids": list[str | None]},
)


def begin(call: Call) -> Response:
    memory, reason = call.memory, call.given["reason"]
    if not reason.strip():
        raise InvalidInput("say why: a change carries a `reason`")
    serving, principal = serving_of(call.http), principal_of(memory)
    own = serving.state.count(DRAFT, owner=principal)
    if own >= MOST_OWN:
        raise Conflict(f"there are {own} drafts of yours already; finish or discard one")
    if serving.state.count(DRAFT) >= DRAFT.most:
        raise Conflict("this server keeps no more drafts now; finish one, or send the changes in one edit")
    draft = Draft(
        id=serving.random(16).hex(),
        tenant=memory.tenant,
        scope=memory.scope,
        reason=reason,
        session=call.given.get("session"),
        expires_at=memory.now + timedelta(seconds=DRAFT.seconds),
    )
    serving.state.change(DRAFT, draft.id, lambda _: draft, owner=principal)
    return json_response(draft.as_dict(), 201, {"Location": f"/memory/drafts/{draft.id}"})


def look(call: Call) -> Response:
    found = _change(call, lambda draft: draft)
    assert found is not None
    return json_response(found.as_dict())


def stage(call: Call) -> Response:
    sent = [dict(each) for each in call.given["changes"]]
    # All are read before one is staged: one that cannot be read must not leave half of a call behind.
    made = [staged(call.memory, each) for each in sent]
    texts = tuple(json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in sent)

    def more(draft: Draft) -> Draft:
        changes = (*draft.changes, *texts)
        if len(changes) > MOST_CHANGES or sum(map(len, changes)) > MOST_CHARACTERS:
            detail = f"a draft holds at most {MOST_CHANGES} changes and 4 MB; finish this one and begin another"
            raise Problem(413, "too_large", detail)
        return replace(draft, changes=changes, ids=(*draft.ids, *(each.id for each in made)))

    draft = _change(call, more)
    assert draft is not None
    ids = [change.id if each["op"] == "insert" else None for each, change in zip(sent, made, strict=True)]
    return json_response({"id": draft.id, "changes": len(draft.changes), "ids": ids})


def finish(call: Call) -> Response:
    me = serving_of(call.http).state.me
    draft = _change(call, lambda draft: replace(draft, by=me))
    assert draft is not None
    ended: Draft | None = replace(draft, by=None)
    try:
        made = [
            replace(staged(call.memory, json.loads(text)), id=name)
            for text, name in zip(draft.changes, draft.ids, strict=True)
        ]
        outcome = proposed(call.memory, made, reason=draft.reason, session=draft.session)
        ended = None
    finally:
        _put(call, ended)
    return write_response(outcome)


def discard(call: Call) -> Response:
    _change(call, lambda _: None)
    return Response(status_code=204)


def _put(call: Call, draft: Draft | None) -> None:
    """Put a draft back that this call has held, or end it; one that an erasure has ended meanwhile stays so."""
    state, name = serving_of(call.http).state, call.given["draft_id"]
    state.change(DRAFT, name, lambda there: there and draft, owner=principal_of(call.memory))
