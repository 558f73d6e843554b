"""Documented: every status that a route answers, and what hangs on its answers, for the description of the API.

A route that takes a token may always answer 400, 401, 403, 421 and 503; what more there is follows from what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keepward.http.problems import MEDIA_TYPE

_SAID = {
    200: "Done; of a write: the same was there already.",
    201: "Made; of a write: committed.",
    202: "Held for review.",
}
#: What a caller may do next, by operation: a name, and the operation with where its arguments are in the answer.
#: `body.digest=digest` is a field of the next body.
_LINKS: Mapping[str, Mapping[str, str]] = {
    "put_blob": {"bytes": "read_blob ref=ref", "about": "blob ref=ref"},
    "begin_draft": {
        "draft": "get_draft draft_id=id",
        "stage": "stage_draft draft_id=id",
        "finish": "finish_draft draft_id=id",
        "discard": "discard_draft draft_id=id",
    },
    "erase": {"certificate": "certificate name=commit"},
    "plan_adopt": {"adopt": "adopt body.digest=digest"},
    "log": {
        "commit": "show commit_id=items/0/id",
        "rollback": "rollback commit_id=items/0/id If-Match=etag",
    },
    "show": {"receipt": "receipt id=receipt"},
    "search": {"memory": "get id=hits/0/id"},
    "compile": {
        "receipt": "receipt id=receipt",
        "feedback": "feedback body.receipt=receipt",
        "replay": "replay id=receipt",
    },
    "find": {"memory": "get id=items/0/id"},
    "get": {
        "revise": "revise id=id If-Match=header.ETag",
        "forget": "forget id=id If-Match=header.ETag",
        "history": "history id=id",
    },
    "pending": {"proposal": "get_proposal id=items/0/id", "reject": "reject id=items/0/id"},
    "get_proposal": {"approve": "approve id=id If-Match=header.ETag", "reject": "reject id=id"},
    "create_token": {"revoke": "revoke_token id=token/id"},
    "jobs": {"run": "run_job name=items/0/name"},
    "remember": {"memory": "get id=id", "history": "history id=id", "commit": "show commit_id=commit"},
    "revise": {"memory": "get id=id", "history": "history id=id"},
    "update_by_key": {"memory": "get id=id", "history": "history id=id"},
    "propose": {"commit": "show commit_id=commit"},
}


def problems_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of statuses that are problems, for ``responses`` of a route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {each: {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": schema}}} for each in statuses}


def answered(
    operation: str, status: int, answers: Mapping[int, Any], problems: tuple[int, ...]
) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of every status that a route which takes a token answers.

    ``answers`` has models, or the whole documentation, by status; links hang on ``status``.
    """
    found: dict[int | str, dict[str, Any]] = {
        code: dict(each) if isinstance(each, dict) else {"model": each, "description": _SAID[code]}
        for code, each in answers.items()
    }
    if operation in _LINKS:
        found[status]["links"] = {name: _link(*words.split()) for name, words in _LINKS[operation].items()}
    # 422 is told of in any case: for a route that says nothing of it the framework describes a body that is never sent.
    return found | problems_of(*sorted({400, 401, 403, 421, 422, 503, *problems} - found.keys()))


def _link(operation: str, *pairs: str) -> dict[str, Any]:
    parameters, body = {}, {}
    for pair in pairs:
        name, _, place = pair.partition("=")
        value = f"$response.{place}" if place.startswith("header.") else f"$response.body#/{place}"
        if name.startswith("body."):
            body[name.removeprefix("body.")] = value
        else:
            parameters[name] = value
    return {"operationId": operation, "parameters": parameters} | ({"requestBody": body} if body else {})
