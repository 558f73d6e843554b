"""Parsing of requests: strict JSON, queries, ETags, cursors; and problems.

* JSON is UTF-8 without duplicate names, NaN, Infinity, numbers out of range, NUL, lone surrogates or more than 32
  levels. Anything else gets 400, never 500. A JSON body needs ``application/json``, else 415.
* A query has only known parameters, each once unless it is a list.
* ETags are strong: equal tags mean equal bytes. ``If-Match`` takes one tag, several, or, in an edit, ``*``. A weak tag
  matches nothing.
* A cursor belongs to one query: path, parameters except ``cursor`` and ``limit``, tenant and scope. It contains
  numbers, ids and heads, no content. The next page is read with the caller's rights. A cursor survives a restart of
  the server; a changed one, or one of another query, gets 400.
* Every error is RFC 9457 ``application/problem+json`` with a stable ``code``; ``type`` is
  ``urn:keepward:problem:<code>``. Sentences may change. ``STATUS_OF_CODE`` maps codes to statuses. An unexpected error
  is ``internal``, status 500, without a traceback.
* A problem repeats no sent value or path. It names an unknown field or parameter only if that is a short word of
  letters. ``request_id`` is the id of the request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keepward import errors
from keepward.core.foreign_words import handle_of, known_argument
from keepward.core.memory import Record
from keepward.core.patterns import load_toml
from keepward.core.serialization import encode_record
from keepward.core.value import MAX_DEPTH, is_too_deep, unknown_field_message
from keepward.handles import NAMED_HANDLE_HEADERS
from keepward.interchange import parsing
from keepward.mcp import jsonrpc_error
from keepward.services.writing.splitter import UnusableItem

#: Headers with the tenant and scope of a request.
TENANT = "Keepward-Tenant"
SCOPE = "Keepward-Scope"
SCOPE_HEADERS = (TENANT, SCOPE, *NAMED_HANDLE_HEADERS.values())
_HEADERS_BY_HANDLE = {**NAMED_HANDLE_HEADERS, "tenant": TENANT, "scope": SCOPE}
MEDIA_TYPE = "application/problem+json"
_PROBLEMS = load_toml(__package__, "problems.toml")
#: Status and title by error code; any other store error is 500.
STATUS_OF_CODE: dict[str, int] = {code: problem["status"] for code, problem in _PROBLEMS.items() if "status" in problem}
TITLE_OF_CODE: dict[str, str] = {code: problem["title"] for code, problem in _PROBLEMS.items()}
#: Key of the request id in the scope.
REQUEST_ID_KEY = "keepward.request"
#: Paths whose operation has a parameter ``user`` of its own.
PATHS_WITH_OWN_USER = frozenset({"/memory/import"})


class Problem(HTTPException):
    """An error response with a stable code and advice.

    ``extra`` are further members of the body, such as ``reasons``.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.status, self.code, self.extra = status, code, extra

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as a part of a streamed response."""
        return {"code": self.code, "detail": str(self.detail), "status": self.status}

    def response(self) -> Response:
        kind = {
            "type": f"urn:keepward:problem:{self.code}",
            "title": TITLE_OF_CODE.get(self.code, "Something went wrong"),
        }
        body = {**kind, **self.to_dict(), **self.extra}
        return _ProblemResponse(body, self.status, dict(self.headers or {}))


class _ProblemResponse(Response):
    """The response of a problem; the request id is added when it is sent."""

    media_type = MEDIA_TYPE

    def render(self, content: dict[str, Any]) -> bytes:
        self._content = content
        # ASCII escapes make every message encodable.
        return json.dumps(content).encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get(REQUEST_ID_KEY):
            self.body = self.render({**self._content, "request_id": scope[REQUEST_ID_KEY]})
            self.headers["content-length"] = str(len(self.body))
        if scope["path"] == "/mcp":
            # MCP clients show an error only if it is a JSON-RPC error.
            self.body = json.dumps(jsonrpc_error(self._content["code"], self._content["detail"])).encode("ascii")
            self.headers.update({"content-length": str(len(self.body)), "content-type": "application/json"})
        await super().__call__(scope, receive, send)


def error_response(request: Request, exc: Exception) -> Response:
    return problem_of(exc, conditional="if-match" in request.headers).response()


def problem_of(exc: Exception, *, conditional: bool = False) -> Problem:
    """Return the problem of an exception; ``conditional`` if the request had ``If-Match``."""
    match exc:
        case Problem():
            return exc
        case errors.KeepwardError():
            status = 412 if conditional and isinstance(exc, errors.StaleVersion) else STATUS_OF_CODE.get(exc.code, 500)
            return Problem(status, exc.code, str(exc), headers={"Retry-After": "1"} if status == 503 else None)
        case HTTPException():
            code, detail = _PROBLEM_OF_STATUS.get(exc.status_code, ("bad_request", "The request cannot be read."))
            return Problem(exc.status_code, code, detail, headers=exc.headers)
    return Problem(500, "internal", "An error occurred in the server; its log has the location. Nothing was lost.")


#: Code and detail of errors that the framework raises.
_PROBLEM_OF_STATUS = {
    401: ("unauthenticated", "Send a token as `Authorization: Bearer kw_...`."),
    404: (errors.NotFound.code, "There is no such path; /docs lists all paths."),
    405: ("method_not_allowed", "Use one of the methods in the Allow header."),
    413: ("too_large", "Send a smaller body."),
    415: ("unsupported_media_type", "Send JSON as application/json."),
}


def invalid_input(where: str, message: str) -> Problem:
    """Return the problem of an invalid argument, such as ``body.changes.0.op``: 422 in a body, else 400."""
    status, code = (422, "invalid_body") if where.startswith("body") else (400, errors.InvalidInput.code)
    return Problem(status, code, f"{where}: {message}", errors=[{"where": where, "message": message}])


#: Maximum length of a cursor in characters, and bytes of its checksum.
MAX_CURSOR_LENGTH = 512
_CURSOR_CHECKSUM_LENGTH = 12
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
_ETAG_PATTERN = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]*)"\s*(?:,|$)')


class StrictRequest(Request):
    """A request whose JSON is parsed strictly."""

    #: The JSON values of the body, after ``parse_body``; None without a body.
    parsed: Any = None

    async def parse_body(self) -> None:
        if body := await self.body():
            self.parsed = parse(body)


def parse(body: bytes) -> Any:
    """Return the JSON values of a body."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise _bad_request("the body is not UTF-8") from exc
    if text.startswith("\ufeff"):
        raise _bad_request("the body begins with a byte order mark; send it without")
    try:
        value = parsing.parse(text, pairs=_object)
    except UnusableItem as exc:
        raise _bad_request(f"the body cannot be read: {exc}") from exc
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(value):
        raise _bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _bad_request("an object has a name twice; send it once")
    return value


def _bad_request(detail: str) -> Problem:
    return Problem(400, "bad_json", detail)


def check_content_type(request: Request) -> None:
    """Refuse a body that is not JSON."""
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().replace('"', "").replace(" ", "")
    if kind.strip().lower() != "application/json":
        raise Problem(415, "unsupported_media_type", "send the body as application/json")
    if charset not in {"", "charset=utf-8"}:
        raise Problem(415, "unsupported_media_type", "send the body in UTF-8; no other charset is accepted")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415, "unsupported_media_type", "send the body without Content-Encoding")


def check_query(request: Request, known: Mapping[str, bool]) -> None:
    """Refuse an invalid query; ``known`` says for each parameter whether it may be repeated."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            raise Problem(400, "invalid_input", f"query: {unknown_input_message('parameter', name, sorted(known))}")
        if not known[name] and names.count(name) > 1:
            raise Problem(400, "invalid_input", f"{name} may occur only once in the query")


def unknown_input_message(what: str, given: str, known: Collection[str]) -> str:
    """Return the message about an unknown parameter or field; a header for one that names whose memory is meant."""
    header = _HEADERS_BY_HANDLE.get(handle_of(given) or "") if known_argument(given, known) is None else None
    return (
        unknown_field_message(what, given, known)
        if header is None
        else f"no {what} `{given}`; it is the header {header}"
    )


def memory_etag(record: Record) -> str:
    """Return the ETag of a memory version in quotes: of its stored values, regardless of decay."""
    return f'"{hashlib.sha256(encode_record(record)).hexdigest()[:32]}"'


def text_etag(text: str) -> str:
    """Return the ETag of a text that identifies a state, such as a digest or a head, in quotes."""
    return f'"{text}"'


def require_match(
    request: Request, *current: str, required: bool = True, where: str = "what you read", any_version: bool = True
) -> str | None:
    """Require that ``If-Match`` has a current ETag; return the first that matches.

    None means no tag was sent. ``*`` means the first tag, unless ``any_version`` is False, because a decision must name
    the version seen. ``where`` says which response has the ETag.

    Raises:
        Problem: 428 if a required ``If-Match`` is missing or ``*`` is not allowed, 412 if no tag is current, 400 if it
            is not a list of tags.
    """
    sent = request.headers.getlist("if-match")
    if not sent:
        if required:
            raise precondition_required(where)
        return None
    tags = _parse_etags(", ".join(sent), "If-Match")
    if tags is None:
        if not any_version:
            raise precondition_required(where, "* does not name the version you saw; ")
        return current[0]
    for tag in current:
        if tag in tags:
            return tag
    raise Problem(412, "precondition_failed", "it has changed since you read it; read it again")


def precondition_required(where: str, prefix: str = "") -> Problem:
    """Return the problem of a request without the required ``If-Match``."""
    detail = f"{prefix}send If-Match with the ETag header of {where}, so that only the version you saw is changed"
    return Problem(428, "precondition_required", detail, header="If-Match")


def not_modified(request: Request, current: str) -> Response | None:
    """Return 304 if ``If-None-Match`` has the current ETag, else None."""
    sent = request.headers.getlist("if-none-match")
    if not sent:
        return None
    tags = _parse_etags(", ".join(sent).replace("W/", ""), "If-None-Match")
    return Response(status_code=304, headers={"ETag": current}) if tags is None or current in tags else None


def _parse_etags(text: str, header: str) -> frozenset[str] | None:
    """Return the strong tags of a list in quotes; None for ``*``."""
    if text.strip() == "*":
        return None
    tags, at = set(), 0
    while at < len(text) or not at:
        match = _ETAG_PATTERN.match(text, at)
        if match is None:
            raise Problem(400, "bad_request", f'{header} takes tags in quotes, as in {header}: "abc", or *')
        if not match[1]:
            tags.add(f'"{match[2]}"')
        at = match.end()
    return frozenset(tags)


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    """The state and the clock of the first page, for later pages."""

    #: Number of the newest commit of that state; 0 for the empty store.
    seq: _Count
    at: datetime


class _Position(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a cursor: the number of items before the page, and the state; None for that of the query."""

    start: _Count
    state: PageState | None


def cursor_of(request: Request, start: int, state: PageState | None) -> str:
    """Return the cursor of the page after ``start`` items of a state, as base64url text."""
    payload = msgspec.json.encode(_Position(start=start, state=state))
    return base64.urlsafe_b64encode(_cursor_checksum(request, payload) + payload).rstrip(b"=").decode("ascii")


def page_offset(request: Request, cursor: str | None) -> tuple[int, PageState | None]:
    """Return the number of items before a page, and the state of the first page.

    None means the state that the query names, or the present.
    """
    if cursor is None:
        return 0, None
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        given, payload = data[:_CURSOR_CHECKSUM_LENGTH], data[_CURSOR_CHECKSUM_LENGTH:]
        if not hmac.compare_digest(given, _cursor_checksum(request, payload)):
            raise ValueError("another query")
        position = msgspec.json.decode(payload, type=_Position)
    except ValueError as exc:
        raise bad_cursor() from exc
    return position.start, position.state


def bad_cursor(why: str = "does not belong to this query") -> Problem:
    """Return the problem of an invalid cursor."""
    return Problem(400, "bad_cursor", f"the cursor {why}; start again without one")


def _cursor_checksum(request: Request, payload: bytes) -> bytes:
    params = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("cursor", "limit"))
    # A call by name has its arguments in the body.
    body = {name: value for name, value in (getattr(request, "parsed", None) or {}).items() if name != "limit"}
    names = [request.headers.get(name) for name in SCOPE_HEADERS]
    query = json.dumps([request.url.path, params, *names, *([body] if body else [])], sort_keys=True)
    return hashlib.sha256(b"keepward/cursor/v1\0" + query.encode("ascii") + b"\0" + payload).digest()[
        :_CURSOR_CHECKSUM_LENGTH
    ]


def head_seq(head: str) -> int:
    """Return the commit number of a head."""
    return int(head.partition(":")[0])
