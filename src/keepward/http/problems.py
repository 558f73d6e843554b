"""Problems: every error over HTTP is RFC 9457 ``application/problem+json``.

Invariants
(1) ``code`` is stable and ``type`` is ``urn:keepward:problem:<code>``; sentences may change.
(2) Nothing that was sent is repeated: neither a value, nor a key, nor a path.
(3) An error of Keepward's keeps its code; its status is in ``STATUS``.
(4) Where the request has an id, ``request_id`` is it.
(5) What nobody foresaw is ``internal``, status 500, without a trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keepward import errors

MEDIA_TYPE = "application/problem+json"
#: Status and title by the code of an error of Keepward's; any other store error is 500.
_ERRORS: dict[type[errors.KeepwardError], tuple[int, str]] = {
    errors.InvalidInput: (400, "An argument is not usable"),
    errors.NotFound: (404, "There is nothing by that name"),
    errors.Conflict: (409, "The state has changed"),
    errors.StaleVersion: (409, "A newer version exists"),
    errors.Unauthorised: (403, "This credential may not do that"),
    errors.ContextTooSmall: (409, "Core memory does not fit the budget"),
    errors.ModelUnavailable: (503, "A model cannot be used"),
    errors.StoreUnavailable: (503, "The store cannot be reached"),
    errors.StoreError: (500, "The store cannot be used"),
    errors.NotAStore: (500, "The file is not a store"),
    errors.NewerSchema: (500, "The store is newer than this server"),
    errors.NotAdopted: (503, "The store is not one of this machine's"),
    errors.Tampered: (500, "A row does not match its seal"),
    errors.KeepwardError: (500, "Something went wrong"),
}
STATUS: dict[str, int] = {kind.code: status for kind, (status, _) in _ERRORS.items()} | {"too_large": 413}
#: Title by code. docs/http.md lists all of them.
TITLES: dict[str, str] = {kind.code: title for kind, (_, title) in _ERRORS.items()} | {
    "bad_request": "The request cannot be read",
    "bad_json": "The body is not JSON that can be stored",
    "bad_cursor": "The cursor is not of this query",
    "bad_host": "The host name is not one of this server's",
    "csrf": "The CSRF header is missing or wrong",
    "foreign_origin": "Calls from another site are refused",
    "idempotency_in_progress": "The same call is being carried out",
    "idempotency_reused": "The Idempotency-Key belongs to another call",
    "internal": "Something went wrong",
    "invalid_body": "The body does not have the shape of this call",
    "method_not_allowed": "The method is not one of this path's",
    "not_installed": "A part is not installed",
    "precondition_failed": "It is not the version that was named",
    "precondition_required": "Say which version is meant",
    "rate_limited": "Too many changes in a minute",
    "refused": "A gate refused the write",
    "timeout": "The body came too slowly",
    "too_large": "The body is too large",
    "unauthenticated": "A token is needed",
    "unsupported_media_type": "The body is of another type",
}
#: Where the id of a request stands in its scope.
REQUEST = "keepward.request"
#: Kinds of validation errors whose message says nothing of what was sent (2).
_PLAIN = re.compile(
    r"missing|extra_forbidden|none_required|value_error|literal_error|enum|finite_number|multiple_of|frozen_\w+"
    r"|(string|int|float|bool|list|tuple|set|dict|mapping|model|dataclass|model_attributes|bytes)_type"
    r"|(int|float|bool)_parsing|int_from_float|int_parsing_size|string_too_(short|long)|string_pattern_mismatch"
    r"|too_(short|long)|(greater|less)_than(_equal)?|union_tag_not_found|timezone_(aware|naive)|datetime_(type|past|future)"
)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII | re.IGNORECASE)


class Problem(HTTPException):
    """An answer that is an error, with a stable code and what to do about it.

    ``extra`` holds further members of the body, such as ``reasons``.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.status, self.code, self.extra = status, code, extra

    def response(self) -> Response:
        """Return the answer."""
        body = {
            "type": f"urn:keepward:problem:{self.code}",
            "title": TITLES.get(self.code, "Something went wrong"),
            "status": self.status,
            "detail": str(self.detail),
            "code": self.code,
            **self.extra,
        }
        return _Body(body, self.status, dict(self.headers or {}))


class _Body(Response):
    """A problem as an answer; its request's id is added when it is sent (4)."""

    media_type = MEDIA_TYPE

    def render(self, content: dict[str, Any]) -> bytes:
        """Return the body."""
        self._content = content
        # Escaped to ASCII: whatever a message holds, it can be sent.
        return json.dumps(content).encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        if scope.get(REQUEST):
            self.body = self.render({**self._content, "request_id": scope[REQUEST]})
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def answer_of(request: Request, fault: Exception) -> Response:
    """Return the answer to a request that ended in an exception."""
    return problem_of(fault, conditional="if-match" in request.headers).response()


def problem_of(fault: Exception, *, conditional: bool = False) -> Problem:
    """Return the problem that an exception is; ``conditional`` where the request named a version in ``If-Match``."""
    match fault:
        case Problem():
            return fault
        case errors.KeepwardError():
            status = 412 if conditional and isinstance(fault, errors.StaleVersion) else STATUS.get(fault.code, 500)
            # (2): the message names what was asked for.
            detail = str(errors.NotFound()) if isinstance(fault, errors.NotFound) else str(fault)
            return Problem(status, fault.code, detail, headers={"Retry-After": "1"} if status == 503 else None)
        case RequestValidationError():
            return _invalid(fault.errors())
        case HTTPException():
            code, detail = _STATUSES.get(fault.status_code, ("bad_request", "The request cannot be read."))
            return Problem(fault.status_code, code, detail, headers=fault.headers)
    return Problem(500, "internal", "Something went wrong in the server; its log has the place. Nothing was lost.")


#: Code and detail of what the framework answers by itself.
_STATUSES = {
    401: ("unauthenticated", "Send a token as `Authorization: Bearer kw_...`."),
    404: (errors.NotFound.code, "There is no such path; /docs lists what there is."),
    405: ("method_not_allowed", "Use one of the methods in the Allow header."),
    413: ("too_large", "Send less at once."),
    415: ("unsupported_media_type", "Send JSON as application/json."),
}


def _invalid(found: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of arguments that do not have the shape of a call: 422 for a body, else 400.

    ``errors`` lists what is wrong, first first: ``where`` is a path such as ``body.changes.0.op``.
    """
    listed = [{"where": _where(each), "message": _message(each)} for each in found[:20]]
    in_body = all(each["loc"][:1] == ("body",) for each in found)
    first = listed[0] if listed else {"where": "body", "message": "is not usable"}
    status, code = (422, "invalid_body") if in_body else (400, errors.InvalidInput.code)
    return Problem(status, code, f"{first['where']}: {first['message']}", errors=listed)


def _where(error: Mapping[str, Any]) -> str:
    place: Iterable[Any] = error["loc"]
    parts = [str(part) if isinstance(part, int) or _NAME.fullmatch(str(part)) else "?" for part in place]
    if error["type"] == "extra_forbidden":
        # (2): the name that is one too many was sent.
        parts = [*parts[:-1], "?"]
    return ".".join(parts)


def _message(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    if kind == "extra_forbidden":
        return "there is no such field; leave it out"
    if kind == "union_tag_invalid":
        return f"must be one of {context.get('expected_tags', 'the documented ones')}"
    if _PLAIN.fullmatch(kind):
        return str(error["msg"]).removeprefix("Value error, ")
    return "is not usable here; see /docs"
