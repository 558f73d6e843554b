"""Drafts: changes that a caller collects over several calls, and proposes together.

Invariants
(1) A draft is kept in memory alone, for an hour at most: what no gate has judged is never written to disk. Nothing
    staged is judged or visible before the end.
(2) It is seen and used by the principal who began it and by nobody else, in the tenant and scope it was begun in.
(3) It is proposed once. When that fails by an error, as against a refusal, it stays and can be finished later.
(4) There is a limit to what one principal, and all of them together, can have begun.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

from starlette.responses import Response

from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.http.answers import Call, json_response, over_http, proposed, staged, write_response
from keepward.http.credentials import principal_of, serving_of
from keepward.http.problems import Problem
from keepward.http.schemas import Instant, model
from keepward.http.serving import DRAFT
from keepward.model import plain
from keepward.model.change import Change
from keepward.verbs import Judged, Limit
from keepward.verbs import Request as Asked
from keepward.verbs.fields import ReadLine

#: Most drafts of one principal; most changes in one draft, and most characters of their JSON.
MOST_OWN = 16
MOST_CHANGES = 500
MOST_CHARACTERS = 4_000_000


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
            "expires_at": plain.instant(self.expires_at),
            "items": [{"op": op, "id": name} for op, name in self.items],
        }


@contextmanager
def _held(call: Call) -> Iterator[Draft]:
    """Give the draft that a call names, if it is its principal's own (2), to one caller at a time.

    Raises:
        NotFound: there is none by that name, it has ended, or it is somebody else's.
    """
    state, memory = serving_of(call.http).state, call.memory

    def find() -> Draft:
        draft: Draft | None = state.get(DRAFT, call.given["draft_id"], owner=principal_of(memory))
        if draft is None or (draft.tenant, draft.scope) != (memory.tenant, memory.scope):
            raise NotFound("there is no draft by that id; drafts are kept for an hour, and not over a restart")
        return draft

    draft = find()
    with draft.lock:
        # Finished or discarded while this call waited for it.
        find()
        yield draft


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
    with _held(call) as draft:
        return json_response(draft.as_dict())


def stage(call: Call) -> Response:
    sent = call.given["changes"]
    with _held(call) as draft:
        size = sum(len(json.dumps(each, ensure_ascii=False, separators=(",", ":"))) for each in sent)
        if len(draft.items) + len(sent) > MOST_CHANGES or draft.characters + size > MOST_CHARACTERS:
            detail = f"a draft holds at most {MOST_CHANGES} changes and 4 MB; finish this one and begin another"
            raise Problem(413, "too_large", detail)
        # All are read before one is staged: one that cannot be read must not leave half of a call behind.
        made = [staged(call.memory, each) for each in sent]
        named = [(each["op"], change.id) for each, change in zip(sent, made, strict=True)]
        draft.changes += made
        draft.items += named
        draft.characters += size
        ids = [name if op == "insert" else None for op, name in named]
        return json_response({"id": draft.id, "changes": len(draft.items), "ids": ids})


def finish(call: Call) -> Response:
    with _held(call) as draft:
        outcome = proposed(call.memory, draft.changes, reason=draft.reason, session=draft.session)
        _drop(call, draft)
    return write_response(outcome)


def discard(call: Call) -> Response:
    with _held(call) as draft:
        _drop(call, draft)
    return Response(status_code=204)


def _drop(call: Call, draft: Draft) -> None:
    serving_of(call.http).state.change(DRAFT, draft.id, lambda _: None, owner=principal_of(call.memory))
