"""Parameters: what stands in paths and queries, read strictly.

Invariants
(1) A number is written in digits, a switch is ``true`` or ``false``; nothing else is taken for one.
(2) A name in a path is never one of the words that stand there for a call, such as ``merge``: these answer 405.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema
from starlette.convertors import StringConvertor, register_url_convertor

from keepward.http.bodies import AS_OF_PATTERN
from keepward.http.reading import LONGEST

#: Most items on one page.
PAGE = 500
#: The most hits of one query, over all its pages.
MOST_HITS = 1_000
_DIGITS = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


_MOMENT = re.compile(r"[0-9A-Za-z][0-9A-Za-z:.+-]*", re.ASCII)


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
