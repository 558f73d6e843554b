"""Reading: what a client sends is understood in one way or refused by a problem; versions and cursors too.

Invariants
(1) JSON is UTF-8 without duplicate names, NaN, Infinity, numbers out of range, NUL, lone surrogates or more
    than 32 levels; anything else is a 400, never a 500. A body that is parsed comes as ``application/json``, else 415.
(2) A query names each parameter that there is, once, and none that there is not.
(3) ETags are strong: two are equal only where what they stand for is, byte for byte. ``If-Match`` takes one tag,
    several, or, in an edit, ``*``; a weak tag matches nothing.
(4) A cursor belongs to one query: path, parameters other than ``cursor`` and ``limit``, tenant and scope. It holds
    numbers, ids and names of heads, no content; what it leads to is asked for under the caller's own rights; it
    survives a restart of the server. One of another query, or that was changed, is a 400.
(5) Every error is RFC 9457 ``application/problem+json``: ``code`` is stable and ``type`` is
    ``urn:keepward:problem:<code>``; sentences may change. An error of Keepward's keeps its code; its status is in
    ``STATUS_OF_CODE``. What nobody foresaw is ``internal``, status 500, without a trace.
(6) A problem repeats no value and no path that was sent. It names an unknown field or parameter where that is a short
    word of letters. Where the request has an id, ``request_id`` is it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keepward import errors
from keepward.core.memory import Record
from keepward.core.patterns import load_toml
from keepward.core.serialization import encode_record
from keepward.core.value import from_micros, to_micros, unknown_field_message
from keepward.handles import NAMED_HANDLE_HEADERS
from keepward.interchange import parsing
from keepward.mcp import jsonrpc_error
from keepward.services.splitter import UnusableItem
from keepward.types import MAX_PAGE_SIZE

#: Where a request is about, by header.
TENANT = "Keepward-Tenant"
SCOPE = "Keepward-Scope"
SCOPE_HEADERS = (TENANT, SCOPE, *NAMED_HANDLE_HEADERS.values())
MEDIA_TYPE = "application/problem+json"
_PROBLEMS = load_toml(__package__, "problems.toml")
#: Status by the code of an error of Keepward's, any other store error is 500; and title by code.
STATUS_OF_CODE: dict[str, int] = {code: each["status"] for code, each in _PROBLEMS.items() if "status" in each}
TITLE_OF_CODE: dict[str, str] = {code: each["title"] for code, each in _PROBLEMS.items()}
#: Where the id of a request stands in its scope.
REQUEST_ID_KEY = "keepward.request"
#: Kinds of validation errors whose message says nothing of what was sent (6).
_SAFE_ERROR_TYPES = re.compile(
    r"missing|unknown_field|none_required|value_error|literal_error|enum|finite_number|multiple_of|frozen_\w+"
    r"|(string|int|float|bool|list|tuple|set|dict|mapping|model|dataclass|model_attributes|bytes)_type"
    r"|(int|float|bool)_parsing|int_from_float|int_parsing_size|string_too_(short|long)|string_pattern_mismatch"
    r"|too_(short|long)|(greater|less)_than(_equal)?|timezone_(aware|naive)|datetime_(type|past|future)"
)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII | re.IGNORECASE)


class Problem(HTTPException):
    """An answer that is an error, with a stable code and what to do about it.

    ``extra`` holds further members of the body, such as ``reasons``.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.status, self.code, self.extra = status, code, extra

    def facts(self) -> dict[str, Any]:
        """Return it as part of an answer that has begun."""
        return {"code": self.code, "detail": str(self.detail), "status": self.status}

    def response(self) -> Response:
        kind = {
            "type": f"urn:keepward:problem:{self.code}",
            "title": TITLE_OF_CODE.get(self.code, "Something went wrong"),
        }
        body = {**kind, **self.facts(), **self.extra}
        return _ProblemResponse(body, self.status, dict(self.headers or {}))


class _ProblemResponse(Response):
    """A problem as an answer; its request's id is added when it is sent (6)."""

    media_type = MEDIA_TYPE

    def render(self, content: dict[str, Any]) -> bytes:
        self._content = content
        # Escaped to ASCII: whatever a message holds, it can be sent.
        return json.dumps(content).encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get(REQUEST_ID_KEY):
            self.body = self.render({**self._content, "request_id": scope[REQUEST_ID_KEY]})
            self.headers["content-length"] = str(len(self.body))
        if scope["path"] == "/mcp":
            # What is not in the protocol's own form its clients tell nobody.
            self.body = json.dumps(jsonrpc_error(self._content["code"], self._content["detail"])).encode("ascii")
            self.headers.update({"content-length": str(len(self.body)), "content-type": "application/json"})
        await super().__call__(scope, receive, send)


def error_response(request: Request, exc: Exception) -> Response:
    return problem_of(exc, conditional="if-match" in request.headers).response()


def problem_of(exc: Exception, *, conditional: bool = False) -> Problem:
    """Return the problem that an exception is; ``conditional`` where the request named a version in ``If-Match``."""
    match exc:
        case Problem():
            return exc
        case errors.KeepwardError():
            status = 412 if conditional and isinstance(exc, errors.StaleVersion) else STATUS_OF_CODE.get(exc.code, 500)
            return Problem(status, exc.code, str(exc), headers={"Retry-After": "1"} if status == 503 else None)
        case RequestValidationError():
            return _validation_problem(exc.errors())
        case HTTPException():
            code, detail = _PROBLEM_OF_STATUS.get(exc.status_code, ("bad_request", "The request cannot be read."))
            return Problem(exc.status_code, code, detail, headers=exc.headers)
    return Problem(500, "internal", "Something went wrong in the server; its log has the place. Nothing was lost.")


#: Code and detail of what the framework answers by itself.
_PROBLEM_OF_STATUS = {
    401: ("unauthenticated", "Send a token as `Authorization: Bearer kw_...`."),
    404: (errors.NotFound.code, "There is no such path; /docs lists what there is."),
    405: ("method_not_allowed", "Use one of the methods in the Allow header."),
    413: ("too_large", "Send less at once."),
    415: ("unsupported_media_type", "Send JSON as application/json."),
}


def _validation_problem(found: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of arguments that do not have the shape of a call: 422 for a body, else 400.

    ``errors`` lists what is wrong, first first: ``where`` is a path such as ``body.changes.0.op``.
    """
    # What may be left out is None inside; nobody can send that in a query, and in a body it is beside the point.
    found = [each for each in found if each["type"] != "none_required"] or found
    listed = [{"where": _where(each), "message": _message(each)} for each in found[:20]]
    in_body = all(each["loc"][:1] == ("body",) for each in found)
    first = listed[0] if listed else {"where": "body", "message": "is not usable"}
    status, code = (422, "invalid_body") if in_body else (400, errors.InvalidInput.code)
    return Problem(status, code, f"{first['where']}: {first['message']}", errors=listed)


def _where(error: Mapping[str, Any]) -> str:
    # Pydantic's names for the branches of a union; no name of ours has a bracket or begins so.
    place: Iterable[Any] = (
        part for part in error["loc"] if "[" not in str(part) and not str(part).startswith("constrained-")
    )
    parts = [str(part) if isinstance(part, int) or _NAME.fullmatch(str(part)) else "?" for part in place]
    if error["type"] == "extra_forbidden" and re.search("[0-9]", parts[-1]):
        # (6): a name with digits may be a value.
        parts[-1] = "?"
    return ".".join(parts)


def _message(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    if kind == "union_tag_invalid":
        return f"must be one of {context.get('expected_tags', 'the documented ones')}"
    if kind == "union_tag_not_found":
        return f"needs {context.get('discriminator', 'a name')} to say what it is"
    if kind == "extra_forbidden":
        return "there is no such field; leave it out"
    if "limit" in error["loc"] and kind in ("greater_than_equal", "less_than_equal"):
        return f"limit is from 1 to {MAX_PAGE_SIZE}"
    if _SAFE_ERROR_TYPES.fullmatch(kind):
        return str(error["msg"]).removeprefix("Value error, ")
    return "is not usable here; see /docs"


#: Deepest nesting of a body.
MAX_BODY_DEPTH = 32
#: Longest cursor, in characters, and how much of it is a sum over the query.
MAX_CURSOR_LENGTH = 512
_CURSOR_CHECKSUM_LENGTH = 12
_ETAG_PATTERN = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]*)"\s*(?:,|$)')


class StrictRequest(Request):
    """A request whose JSON is read by ``parse``."""

    async def json(self) -> Any:
        """Return the body as JSON values."""
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


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
    level = [value] if text.count("[") + text.count("{") > MAX_BODY_DEPTH else []
    for _ in range(MAX_BODY_DEPTH):
        inside = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [inner for each in inside for inner in each]
    if any(isinstance(each, dict | list) for each in level):
        raise _bad_request(f"the body is nested more than {MAX_BODY_DEPTH} levels deep")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _bad_request("a name stands twice in one object; send it once")
    return value


def _bad_request(detail: str) -> Problem:
    return Problem(400, "bad_json", detail)


def check_content_type(request: Request) -> None:
    """See that a body, if there is one, is JSON."""
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().replace('"', "").replace(" ", "")
    if kind.strip().lower() != "application/json":
        raise Problem(415, "unsupported_media_type", "send the body as application/json")
    if charset not in {"", "charset=utf-8"}:
        raise Problem(415, "unsupported_media_type", "send the body in UTF-8, as JSON is; no other charset is read")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415, "unsupported_media_type", "send the body as it is, without Content-Encoding")


def check_query(request: Request, known: Mapping[str, bool]) -> None:
    """See that a query fits; ``known`` says of each parameter whether it may stand more than once."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            raise Problem(400, "invalid_input", f"query: {unknown_field_message('parameter', name, sorted(known))}")
        if not known[name] and names.count(name) > 1:
            raise Problem(400, "invalid_input", f"{name} may stand once in the query")


def accepts_many(annotation: Any) -> bool:
    """Whether a parameter's annotation takes several values."""
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, (list, tuple, set, frozenset)):
        return True
    return any(accepts_many(each) for each in get_args(annotation) if each is not annotation)


def memory_etag(record: Record) -> str:
    """Return the ETag of a memory at one version, in its quotes: what is stored, whatever has faded since."""
    return f'"{hashlib.sha256(encode_record(record)).hexdigest()[:32]}"'


def text_etag(text: str) -> str:
    """Return the ETag of a text that names a state already, such as a digest or a head: itself, in quotes."""
    return f'"{text}"'


def require_match(
    request: Request, *current: str, required: bool = True, where: str = "what you read", any_version: bool = True
) -> str | None:
    """See that a call is about the present version, by one of its ETags; return the first that it names.

    None where it names none; ``*`` stands for the first, unless ``any_version`` is False: a decision names what was
    seen. ``where`` says which answer has the tag as its header.

    Raises:
        Problem: no ``If-Match`` where one is required, or ``*`` where that is not taken: 428; none of its tags is the
            current one: 412; it is not a list of tags: 400.
    """
    sent = request.headers.getlist("if-match")
    if not sent:
        if required:
            raise precondition_required(where)
        return None
    tags = _parse_etags(", ".join(sent), "If-Match")
    if tags is None:
        if not any_version:
            raise precondition_required(where, "* does not say what was seen; ")
        return current[0]
    for each in current:
        if each in tags:
            return each
    raise Problem(412, "precondition_failed", "it has changed since; read it again and decide anew")


def precondition_required(where: str, said: str = "") -> Problem:
    """Return the problem of a call that does not say what its caller saw."""
    detail = f"{said}send If-Match with the ETag header of {where}, so that nothing unseen is changed"
    return Problem(428, "precondition_required", detail, header="If-Match")


def not_modified(request: Request, current: str) -> Response | None:
    """Return a 304 where ``If-None-Match`` names the present version, else None."""
    sent = request.headers.getlist("if-none-match")
    if not sent:
        return None
    tags = _parse_etags(", ".join(sent).replace("W/", ""), "If-None-Match")
    return Response(status_code=304, headers={"ETag": current}) if tags is None or current in tags else None


def _parse_etags(text: str, header: str) -> frozenset[str] | None:
    """Return the strong tags of a list, in their quotes; None for ``*``."""
    if text.strip() == "*":
        return None
    found, at = set(), 0
    while at < len(text) or not at:
        match = _ETAG_PATTERN.match(text, at)
        if match is None:
            raise Problem(400, "bad_request", f'{header} takes tags in quotes, as in {header}: "abc", or *')
        if not match[1]:
            found.add(f'"{match[2]}"')
        at = match.end()
    return frozenset(found)


def encode_cursor(request: Request, position: Mapping[str, int | str | None]) -> str:
    """Return the cursor of a position in the answer to a request: base64url text."""
    payload = json.dumps(dict(position), sort_keys=True, separators=(",", ":")).encode("ascii")
    return base64.urlsafe_b64encode(_cursor_checksum(request, payload) + payload).rstrip(b"=").decode("ascii")


def decode_cursor(request: Request, cursor: str) -> dict[str, Any]:
    """Return the position that a cursor of the same query stands for."""
    try:
        if len(cursor) > MAX_CURSOR_LENGTH:
            raise ValueError("too long")
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        given, payload = data[:_CURSOR_CHECKSUM_LENGTH], data[_CURSOR_CHECKSUM_LENGTH:]
        if not hmac.compare_digest(given, _cursor_checksum(request, payload)):
            raise ValueError("another query")
        return dict(json.loads(payload))
    except ValueError as exc:
        raise bad_cursor() from exc


def bad_cursor(why: str = "is not of this query") -> Problem:
    """Return the problem of a cursor that leads nowhere."""
    return Problem(400, "bad_cursor", f"the cursor {why}; begin again without one")


def _cursor_checksum(request: Request, payload: bytes) -> bytes:
    asked = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("cursor", "limit"))
    query = json.dumps([request.url.path, asked, *(request.headers.get(name) for name in SCOPE_HEADERS)])
    return hashlib.sha256(b"keepward/cursor/v1\0" + query.encode("ascii") + b"\0" + payload).digest()[
        :_CURSOR_CHECKSUM_LENGTH
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """A state and the clock it is read by: what makes the second page of a list belong to the first."""

    #: Number of the newest commit of that state; 0 is the empty store.
    seq: int
    at: datetime


def page_offset(request: Request, cursor: str | None) -> tuple[int, PageState | None]:
    """Return how many items come before a page, and the state that its first page was read from.

    None stands for the state that the query itself names, and without a cursor for the present.
    """
    if cursor is None:
        return 0, None
    start, seq, at = (decode_cursor(request, cursor).get(name) for name in ("start", "seq", "at"))
    if not _is_count(start) or (seq is not None and not (_is_count(seq) and _is_count(at))):
        raise bad_cursor()
    return int(start or 0), None if seq is None else PageState(seq=seq, at=from_micros(int(at or 0)))


def _is_count(value: Any) -> bool:
    # As microseconds this is well within the years that an instant can have.
    return isinstance(value, int) and 0 <= value < 2**53


def cursor_of(request: Request, start: int, moment: PageState | None) -> str:
    """Return the cursor of the page that begins after ``start`` items of a state; None is the state of the query."""
    seq, at = (None, None) if moment is None else (moment.seq, to_micros(moment.at))
    return encode_cursor(request, {"start": start, "seq": seq, "at": at})


def head_seq(head: str) -> int:
    """Return the number of the commit that the name of a head begins with."""
    return int(head.partition(":")[0])
