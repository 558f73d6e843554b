"""The OpenAPI document: parameters, bodies, responses and links of operations, and its components.

Any operation may answer a problem with one of ten statuses; a body and ``If-Match`` add theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keepward.core.patterns import load_toml
from keepward.core.value import Data
from keepward.http.inputs import Inputs, schema_of_struct
from keepward.http.requests import MEDIA_TYPE, PATHS_WITH_OWN_USER
from keepward.http.schemas import SCHEMAS, Schema, schema_of_result
from keepward.operations import Operation

_STATUS_TEXT = {
    200: "Done; for a write: an equal memory existed already.",
    201: "Created; for a write: committed.",
    202: "Quarantined for review.",
}
#: OpenAPI links to next requests, by operation.
_LINKS: Mapping[str, Mapping[str, str]] = load_toml(__package__, "links.toml")
_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"}
#: Parameters of the query of every address below ``/memory``.
_HANDLE_PARAMETERS: Mapping[str, Schema] = {
    name: {"name": name, "in": "query", "required": False, "schema": _NAME, "description": doc}
    for name, doc in {
        "user": "Use the handle of this user, as the header `Keepward-User` does.",
        "agent": "Use the handle of this agent, as the header `Keepward-Agent` does.",
        "project": "Use the handle of this project, as the header `Keepward-Project` does.",
        "branch": "Use the handle on this branch, as the header `Keepward-Branch` does.",
    }.items()
}
HANDLE_REFERENCES = [{"$ref": f"#/components/parameters/{name}"} for name in _HANDLE_PARAMETERS]


class Problem(Data):
    """A problem, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str


def inputs(described: Inputs, path: str) -> Schema:
    """Return the parameters and the body of an operation."""
    parameters = described.described()
    if path not in PATHS_WITH_OWN_USER:
        parameters += HANDLE_REFERENCES
    if described.body is None:
        return {"parameters": parameters}
    schema_of_struct(described.body)
    reference = {"$ref": f"#/components/schemas/{described.body.__name__}"}
    schema = reference if described.needs_body else {"anyOf": [reference, {"type": "null"}]}
    content = {"application/json": {"schema": schema}}
    return {"parameters": parameters, "requestBody": {"content": content, "required": described.needs_body}}


def problems_of(*statuses: int) -> dict[str, dict[str, Any]]:
    """Return the documentation of problem statuses for the ``responses`` of a route."""
    content = {MEDIA_TYPE: {"schema": schema_of_result(Problem)}}
    return {str(status): {"description": "A problem.", "content": content} for status in statuses}


def answers(operation: Operation, types: Mapping[int, Any], inputs: Inputs) -> dict[str, dict[str, Any]]:
    """Return the documentation of all statuses of an operation.

    ``types`` maps statuses to types or complete documentation; links belong to the status of the operation.
    """
    documented: dict[str, dict[str, Any]] = {
        str(status): dict(kind)
        if isinstance(kind, dict)
        else {"description": _STATUS_TEXT[status], "content": {"application/json": {"schema": schema_of_result(kind)}}}
        for status, kind in types.items()
    }
    if operation.name in _LINKS:
        links = {name: _link(*words.split()) for name, words in _LINKS[operation.name].items()}
        documented[str(operation.status)]["links"] = links
    problems = {400, 401, 403, 404, 409, 421, 422, 429, 500, 503}
    problems |= {413, 415} if operation.http_method != "GET" else set()
    problems |= {412, 428} if "If-Match" in inputs.parameters or operation.name == "approve_many" else set()
    return documented | problems_of(*sorted(problems))


def _link(operation: str, *pairs: str) -> dict[str, Any]:
    parameters, body = {}, {}
    for pair in pairs:
        name, _, path = pair.partition("=")
        value = f"$response.{path}" if path.startswith("header.") else f"$response.body#/{path}"
        if name.startswith("body."):
            body[name.removeprefix("body.")] = value
        else:
            parameters[name] = value
    return {"operationId": operation, "parameters": parameters} | ({"requestBody": body} if body else {})


def described(name: str, doc: str, tag: str, answers: Schema) -> Schema:
    """Return the part of an operation that its inputs do not change."""
    summary = name.replace("_", " ").title()
    return {"tags": [tag], "summary": summary, "description": doc, "operationId": name, "responses": answers}


def document(info: Schema, routes: Iterable[Any], cookie: str) -> Schema:
    """Return the document of the routes that are described, with the two credentials."""
    paths: dict[str, Schema] = {}
    for each in routes:
        if described := getattr(each, "described", None):
            paths.setdefault(each.path_format, {}).update({method.lower(): described() for method in each.methods})
    credentials = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token, `kw_` and 43 characters."},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "A console session."},
    }
    components = {"schemas": dict(sorted(SCHEMAS.items())), "parameters": _HANDLE_PARAMETERS}
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {**components, "securitySchemes": credentials},
        "security": [{"token": []}, {"session": []}],
    }
