"""Drafts over HTTP: changes that a caller collects over several calls, and proposes together; see ``state``."""

from __future__ import annotations

import json
from typing import Annotated, Any

from starlette.responses import Response

from keepward.http.answers import Call, json_response, over_http, write_response
from keepward.http.credentials import serving_of
from keepward.http.schemas import Instant, model
from keepward.model import plain
from keepward.state import Draft
from keepward.verbs import Judged, Limit
from keepward.verbs import Request as Asked
from keepward.verbs.fields import ReadLine

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
    draft = serving_of(call.http).drafts.begin(call.memory, call.given["reason"], call.given.get("session"))
    return json_response(_state(draft), 201, {"Location": f"/memory/drafts/{draft.id}"})


def look(call: Call) -> Response:
    return json_response(_state(serving_of(call.http).drafts.get(call.memory, call.given["draft_id"])))


def stage(call: Call) -> Response:
    sent = [dict(each) for each in call.given["changes"]]
    draft, made = serving_of(call.http).drafts.stage(call.memory, call.given["draft_id"], sent)
    ids = [change.id if each["op"] == "insert" else None for each, change in zip(sent, made, strict=True)]
    return json_response({"id": draft.id, "changes": len(draft.changes), "ids": ids})


def finish(call: Call) -> Response:
    return write_response(serving_of(call.http).drafts.finish(call.memory, call.given["draft_id"]))


def discard(call: Call) -> Response:
    serving_of(call.http).drafts.discard(call.memory, call.given["draft_id"])
    return Response(status_code=204)


def _state(draft: Draft) -> dict[str, Any]:
    """Return a draft as ``DraftState``."""
    items = [{"op": json.loads(each)["op"], "id": name} for each, name in zip(draft.changes, draft.ids, strict=True)]
    return {
        "id": draft.id,
        "reason": draft.reason,
        "session": draft.session,
        "changes": len(items),
        "expires_at": plain.instant(draft.expires_at),
        "items": items,
    }
