"""Strict reading: what a client sends is understood in one way or refused.

Invariants
(1) JSON is UTF-8 without duplicate names, NaN, Infinity, numbers out of range, NUL, lone surrogates or more
    than 32 levels; anything else is a 400, never a 500.
(2) A query names each parameter that there is, once, and none that there is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, get_args, get_origin

from starlette.requests import Request

from keepward.http.problems import Problem

#: Deepest nesting of a body.
DEPTH = 32
_LARGEST = 1 << 63


class StrictRequest(Request):
    """A request whose JSON is read by ``parse``."""

    async def json(self) -> Any:
        """Return the body as JSON values.

        Raises:
            Problem: see (1).
        """
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


def parse(body: bytes) -> Any:
    """Return the JSON values of a body.

    Raises:
        Problem: see (1); the sentence says what is wrong and repeats nothing of it.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _bad("the body is not UTF-8") from fault
    try:
        value = json.loads(
            text, parse_constant=_constant, parse_int=_integer, parse_float=_number, object_pairs_hook=_object
        )
    except json.JSONDecodeError as fault:
        raise _bad(f"the body is not JSON: line {fault.lineno}, column {fault.colno}") from fault
    except RecursionError as fault:
        raise _bad(f"the body is nested more than {DEPTH} levels deep") from fault
    # Only an escape can bring in what UTF-8 and the parser do not let through.
    escapes = "\\u" in text
    if escapes or text.count("[") + text.count("{") > DEPTH:
        _walk(value, escapes=escapes)
    return value


def _walk(value: Any, *, escapes: bool) -> None:
    level: list[Any] = [value]
    for _ in range(DEPTH):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
                if escapes:
                    below += each.keys()
            elif isinstance(each, list):
                below += each
            elif escapes and isinstance(each, str):
                _text(each)
        if not below:
            return
        level = below
    if any(isinstance(each, (dict, list)) for each in level):
        raise _bad(f"the body is nested more than {DEPTH} levels deep")
    for each in level:
        if isinstance(each, str):
            _text(each)


def _text(text: str) -> None:
    if "\0" in text:
        raise _bad("text holds a NUL character; leave it out")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise _bad("text holds a lone surrogate; send whole characters") from fault


def _constant(_: str) -> NoReturn:
    raise _bad("NaN and Infinity are not JSON; send a finite number or null")


def _integer(digits: str) -> int:
    # Checked by length first: to read a million digits takes a while.
    if len(digits) > 20 or not -_LARGEST <= int(digits) < _LARGEST:
        raise _bad("a whole number is beyond 64 bits; send it as text")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _bad("a number is out of range; send a finite one")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _bad("a name stands twice in one object; send it once")
    return value


def _bad(detail: str) -> Problem:
    return Problem(400, "bad_json", detail)


def check_query(request: Request, known: Mapping[str, bool]) -> None:
    """See that a query fits; ``known`` says of each parameter whether it may stand more than once.

    Raises:
        Problem: see (2).
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise Problem(400, "invalid_input", f"there is no such parameter in the query; there are: {listed}")
        if not known[name] and names.count(name) > 1:
            raise Problem(400, "invalid_input", f"{name} may stand once in the query")


def is_many(annotation: Any) -> bool:
    """Whether a parameter's annotation takes several values."""
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, (list, tuple, set, frozenset)):
        return True
    return any(is_many(each) for each in get_args(annotation) if each is not annotation)
