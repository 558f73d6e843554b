"""ETags: a call names the version it is about, and is refused where that is no longer the one.

Invariants
(1) Tags are strong: two are equal only where what they stand for is, byte for byte.
(2) ``If-Match`` takes one tag, several, or ``*``; a weak tag matches nothing.
"""

from __future__ import annotations

import hashlib
import re

from starlette.requests import Request
from starlette.responses import Response

from keepward.http.problems import Problem
from keepward.model.codec import encode_record
from keepward.model.memory import Record

_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]*)"\s*(?:,|$)')


def etag_of(record: Record) -> str:
    """Return the ETag of a memory at one version, in its quotes: what is stored, whatever has faded since."""
    return f'"{hashlib.sha256(encode_record(record)).hexdigest()[:32]}"'


def etag_of_text(text: str) -> str:
    """Return the ETag of a text that names a state already, such as a digest or a head: itself, in quotes."""
    return f'"{text}"'


def require_match(request: Request, *current: str, required: bool = True, where: str = "what you read") -> str | None:
    """See that a call is about the present version, by one of its ETags; return the first that it names.

    None where it names none; ``*`` stands for the first. ``where`` says which answer has the tag as its header.

    Raises:
        Problem: no ``If-Match`` where one is required: 428; none of its tags is the current one: 412; it is
            not a list of tags: 400.
    """
    sent = request.headers.getlist("if-match")
    if not sent:
        if required:
            detail = f"send If-Match with the ETag header of {where}, so that nothing unseen is changed"
            raise Problem(428, "precondition_required", detail)
        return None
    tags = _tags(", ".join(sent), "If-Match")
    if tags is None:
        return current[0]
    for each in current:
        if each in tags:
            return each
    raise Problem(412, "precondition_failed", "it has changed since; read it again and decide anew")


def not_modified(request: Request, current: str) -> Response | None:
    """Return a 304 where ``If-None-Match`` names the present version, else None."""
    sent = request.headers.getlist("if-none-match")
    if not sent:
        return None
    tags = _tags(", ".join(sent).replace("W/", ""), "If-None-Match")
    return Response(status_code=304, headers={"ETag": current}) if tags is None or current in tags else None


def _tags(text: str, header: str) -> frozenset[str] | None:
    """Return the strong tags of a list, in their quotes; None for ``*``."""
    if text.strip() == "*":
        return None
    found, at = set(), 0
    while at < len(text) or not at:
        match = _TAG.match(text, at)
        if match is None:
            raise Problem(400, "bad_request", f'{header} takes tags in quotes, as in {header}: "abc", or *')
        if not match[1]:
            found.add(f'"{match[2]}"')
        at = match.end()
    return frozenset(found)
