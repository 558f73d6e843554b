"""Documented: every status that a route answers, and what hangs on its answers, for the description of the API.

A route that takes a token may always answer 400, 401, 403, 421 and 503; what more there is follows from what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, create_model

from keepward.http.frame import told
from keepward.http.schemas import Written

#: What each call takes, by the name of its operation. Every token reads; ``owner`` is a class and not a right.
RIGHTS: dict[str, tuple[str, ...]] = {
    "read": (
        *("status", "core", "search", "compile", "memory_block", "snapshot", "find", "get", "history"),
        *("pending", "get_proposal", "notices", "log", "show", "diff", "receipt", "replay", "context_diff"),
        *("blame", "bisect", "feedback", "verify", "doctor", "jobs", "merge_candidates"),
        *("blob", "read_blob", "events"),
    ),
    "propose": (
        *(
            "remember",
            "remember_many",
            "merge",
            "forget_many",
            "revise",
            "forget",
            "append",
            "move",
            "archive",
            "restore",
        ),
        *("reinforce", "promote", "supersede", "update_by_key", "propose"),
        *("begin_draft", "get_draft", "stage_draft", "finish_draft", "discard_draft", "put_blob", "import", "rollback"),
    ),
    "approve": ("approve", "reject", "approve_many", "reject_many", "impact", "plan_contain"),
    "erase": ("plan_erase", "erase", "certificate", "lift_erasure"),
    "owner": (
        *("contain", "learn_importance", "train_reranker", "rebuild", "reindex", "tenants", "run_job", "run_due"),
        *(
            "tokens",
            "create_token",
            "revoke_token",
            "plan_adopt",
            "adopt",
            "export",
            "plan_restore_export",
            "restore_export",
        ),
    ),
}


def right_of(operation: str) -> str:
    """Return what an operation takes: the first of ``RIGHTS`` that names it."""
    return next(right for right, operations in RIGHTS.items() if operation in operations)


def answers(
    model: Any,
    *,
    status: int = 200,
    also: Mapping[int, Any] | None = None,
    problems: tuple[int, ...] = (),
    body: bool = False,
    changes: bool = False,
    links: Mapping[str, Any] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of every status that a route which takes a token answers.

    ``body`` adds what a JSON body can do wrong, ``changes`` the rate of changes; ``links`` hang on ``status``.
    """
    found: dict[int | str, dict[str, Any]] = {status: {"model": model, "description": _said(status)}}
    if links:
        found[status]["links"] = dict(links)
    found |= {code: {"model": each, "description": _said(code)} for code, each in (also or {}).items()}
    # 422 is told of in any case: for a route that says nothing of it the framework describes a body that is never sent.
    codes = {400, 401, 403, 421, 422, 503, *problems, *((413, 415) if body else ()), *((429,) if changes else ())}
    return found | told(*sorted(codes - found.keys()))


def written(*problems: int, links: Mapping[str, Any] | None = None) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a write; ``links`` hang on what was committed."""
    return answers(
        Written,
        status=201,
        also={200: Written, 202: Written},
        problems=(409, 413, 415, 422, *problems),
        changes=True,
        links=links,
    )


def link(operation: str, *, body: Mapping[str, Any] | None = None, **parameters: str) -> dict[str, Any]:
    """Return a link from an answer to an operation that takes something of it; ``If_Match`` stands for the header."""
    named = {name.replace("If_Match", "If-Match"): value for name, value in parameters.items()}
    found: dict[str, Any] = {"operationId": operation, "parameters": named}
    return found | ({"requestBody": dict(body)} if body else {})


def _said(status: int) -> str:
    return {
        200: "Done; of a write: the same was there already.",
        201: "Made; of a write: committed.",
        202: "Held for review.",
        304: "As it was.",
    }[status]


def page(item: Any, name: str, **more: Any) -> type[BaseModel]:
    """Return the model of one page of a list."""
    fields: dict[str, Any] = {"items": list[item], "cursor": str | None, **more}
    asked: dict[str, Any] = {field: (hint, ...) for field, hint in fields.items()}
    made: type[BaseModel] = create_model(name, __doc__="One page.", **asked)
    return made
