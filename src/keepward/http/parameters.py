"""Parameters: what stands in paths and queries, read strictly.

Invariants
(1) A number is written in digits, a switch is ``true`` or ``false``; nothing else is taken for one.
(2) A name in a path is never one of the words that stand there for a call, such as ``merge``: these answer 405.
(3) A cursor that was made elsewhere leads at most to what the caller may read anyhow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request

from keepward.errors import NotFound
from keepward.http.bodies import AS_OF_PATTERN
from keepward.http.cursors import LONGEST, decode_cursor, encode_cursor
from keepward.http.problems import Problem
from keepward.model.value import from_micros, to_micros

#: Most items on one page.
PAGE = 500
#: The most hits of one query, over all its pages.
MOST_HITS = 1_000
_DIGITS = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


_MOMENT = re.compile(r"[0-9A-Za-z][0-9A-Za-z:.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A state and the clock it is read by: what makes the second page of a list belong to the first."""

    #: Number of the newest commit of that state; 0 is the empty store.
    seq: int
    at: datetime


class _Named(StringConvertor):
    regex = "(?!(?:approve|batch|forget|merge|reject)(?:/|$))[^/]+"


register_url_convertor("named", _Named())


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            raise ValueError("must be a whole number")
        return int(value)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError("must be a number")
        return float(value)
    return value


def _flag(value: Any) -> Any:
    if isinstance(value, str):
        if value not in {"true", "false"}:
            raise ValueError("must be true or false")
        return value == "true"
    return value


def _moment(value: str) -> str:
    if not _MOMENT.fullmatch(value):
        raise ValueError("must be a commit's number or id, the name of a head, or an ISO 8601 instant")
    return value


def _text(**schema: Any) -> Any:
    return Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]+$", **{"max_length": 256, **schema})


#: Reads a whole number; stands behind its bounds.
WHOLE = BeforeValidator(_whole)
#: Refuses what names no moment, before anything is looked up.
AS_OF = AfterValidator(_moment)
#: Stands for a parameter that was left out; nobody sends it.
Absent = SkipJsonSchema[None]
Name = Annotated[str, Path(min_length=1, max_length=300, pattern=r"^[^/\x00-\x1f\x7f]+$")]
Flag = Annotated[bool, BeforeValidator(_flag)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_number)]
TextQuery = Annotated[Annotated[str, _text()] | Absent, Query()]
LongQuery = Annotated[str, Query(min_length=1, max_length=20_000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Limit = Annotated[int, Field(ge=1, le=PAGE), WHOLE, Query(description="Most items on this page.")]
Cursor = Annotated[
    Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=r"^[A-Za-z0-9_-]+$")] | Absent,
    Query(description="From the page before."),
]
AsOfQuery = Annotated[
    Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"pattern": AS_OF_PATTERN}), AS_OF] | Absent,
    Query(description="A commit's number or id, the name of a head, or an ISO 8601 instant; `0` is the empty store."),
]
Tiers = Annotated[
    list[Literal["core", "working", "episodic", "archival"]], Query(description="Any of them.", max_length=16)
]
Kinds = Annotated[
    list[Literal["identity", "rule", "fact", "state", "event", "summary", "document"]],
    Query(description="Any of them.", max_length=16),
]
ContentTypes = Annotated[
    list[Literal["text", "image", "file", "audio", "video", "structured"]],
    Query(description="Any of them.", max_length=16),
]
IfMatch = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": r'^(\*|"[!#-~]*")$'})] | Absent,
    Header(alias="If-Match", description="The ETag that was read."),
]
IfNoneMatch = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": r'^(\*|"[!#-~]*")$'})] | Absent,
    Header(alias="If-None-Match", description="An ETag; 304 where it is still that of the answer."),
]
TagsQuery = Annotated[list[Annotated[str, _text()]], Query(description="Any of them.", max_length=64)]


def place(request: Request, cursor: str | None) -> tuple[int, Moment | None]:
    """Return how many items come before a page, and the state that its first page was read from.

    None stands for the state that the query itself names, and without a cursor for the present.

    Raises:
        Problem: the cursor is not one of this query: 400.
    """
    if cursor is None:
        return 0, None
    found = decode_cursor(request, cursor)
    start, seq, at = (found.get(name) for name in ("start", "seq", "at"))
    if not _is_count(start) or (seq is not None and not (_is_count(seq) and _is_count(at))):
        raise Problem(400, "bad_cursor", "the cursor is not of this query; begin again without one")
    return int(start or 0), None if seq is None else Moment(seq=seq, at=from_micros(int(at or 0)))


def _is_count(value: Any) -> bool:
    # As microseconds this is well within the years that an instant can have.
    return isinstance(value, int) and 0 <= value < 2**53


def cursor_of(request: Request, start: int, moment: Moment | None) -> str:
    """Return the cursor of the page that begins after ``start`` items of a state; None is the state of the query."""
    return encode_cursor(
        request,
        {
            "start": start,
            "seq": None if moment is None else moment.seq,
            "at": None if moment is None else to_micros(moment.at),
        },
    )


def gone(fault: NotFound, cursor: str | None) -> Exception:
    """Return the error of a state that is not there: with a cursor it is the cursor that is wrong."""
    if cursor is None:
        return fault
    return Problem(400, "bad_cursor", "the cursor is of a state that is gone; begin again without one")


def seq_of(head: str) -> int:
    """Return the number of the commit that the name of a head begins with."""
    return int(head.partition(":")[0])
