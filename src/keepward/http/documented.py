"""Documented: every status that a route answers, and what hangs on its answers, for the description of the API.

A route that takes a token may always answer 400, 401, 403, 421 and 503; what more there is follows from what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, create_model

from keepward.http.problems import MEDIA_TYPE


def problems_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of statuses that are problems, for ``responses`` of a route."""
    return {
        status: {
            "description": "A problem.",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def answered(
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
    for code, each in (also or {}).items():
        found[code] = each if isinstance(each, dict) else {"model": each, "description": _said(code)}
    # 422 is told of in any case: for a route that says nothing of it the framework describes a body that is never sent.
    codes = {400, 401, 403, 421, 422, 503, *problems, *((413, 415) if body else ()), *((429,) if changes else ())}
    return found | problems_of(*sorted(codes - found.keys()))


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
