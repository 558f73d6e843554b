"""Conditions on a memory's own fields, its metadata: how they are written, and whether a value meets one.

A field is named by the path to it, keys joined by dots: ``{"user.city": "Linz", "stars": {"$gte": 4}}``. All conditions
have to hold.

Invariants
(1) Equal is what JSON has equal: 1 is 1.0 and not true; lists and objects are compared whole.
(2) Numbers are ordered among numbers and texts among texts; nothing else has an order.
(3) ``$ne`` and ``$nin`` also hold where the field is missing; every other condition needs it, but ``$exists: false``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from keepward.core.value import Data, unknown_name_message
from keepward.errors import InvalidInput

#: Most conditions of one filter, and values of a list in one.
MAX_CONDITIONS = 64
#: Most fields of one memory that it is found by.
MAX_INDEXED_FIELDS = 1_000
#: Most characters of a text that are compared in an order; whether texts are equal is told by all of them.
MAX_COMPARED_CHARS = 256
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = ("$eq", "$ne", "$in", "$nin", *_COMPARISONS, "$exists")
#: What also holds where the field is missing.
_NEGATION_OF = {"$ne": "$in", "$nin": "$in"}


class Condition(Data):
    """What one field has to be."""

    path: str
    #: ``$in``, ``$exists`` or the name of an order.
    operator: str
    #: By ``equality_key``, the values that pass; empty for an order.
    keys: frozenset[str] = frozenset()
    #: What a value is compared with in an order.
    bound: Any = None
    #: Whether it holds where this does not, and where the field is missing.
    negated: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value is in the order that is asked for; see (2)."""
        if isinstance(value, str):
            value = value[:MAX_COMPARED_CHARS]
        alike = isinstance(value, str) and isinstance(self.bound, str)
        return (alike or (_is_number(value) and _is_number(self.bound))) and _COMPARISONS[self.operator](
            value, self.bound
        )


Where = tuple[Condition, ...]


def parse_where(given: Any) -> Where:
    """Return conditions given as an object, or as its JSON text.

    Raises:
        InvalidInput: it is no object, or names an operator that there is not.
    """
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as fault:
            raise InvalidInput("`where` is a JSON object of conditions") from fault
    if given is None:
        return ()
    if (
        not isinstance(given, Mapping)
        or len(given) > MAX_CONDITIONS
        or not all(isinstance(path, str) for path in given)
    ):
        raise InvalidInput(f"`where` is an object of at most {MAX_CONDITIONS} conditions, by the path of the field")
    found: list[Condition] = []
    for path, asked in given.items():
        if path.startswith("$"):
            raise InvalidInput("`where` names fields by their path: all of them have to hold, and nothing joins them")
        named = isinstance(asked, Mapping) and any(str(name).startswith("$") for name in asked)
        if (
            isinstance(asked, Mapping)
            and not named
            and (meant := next((f"${n}" for n in asked if f"${n}" in OPERATORS), ""))
        ):
            raise InvalidInput(
                f"the condition on `{path}` names {meant[1:]!r}; operators begin with $: {', '.join(OPERATORS)}. "
                f"Write {{{path!r}: {{{meant!r}: ...}}}}, or $eq to compare with an object"
            )
        operators = asked if named else {"$eq": asked}
        found += [_condition(path, operator, operand) for operator, operand in operators.items()]
    return tuple(found)


def _condition(path: str, operator: str, operand: Any) -> Condition:
    if operator not in OPERATORS:
        raise InvalidInput(unknown_name_message("operator", operator, OPERATORS))
    if operator in {"$in", "$nin"} and not (isinstance(operand, list | tuple) and len(operand) <= MAX_CONDITIONS):
        raise InvalidInput(f"{operator} takes a list of at most {MAX_CONDITIONS} values")
    if operator in _COMPARISONS:
        if not (isinstance(operand, str) or _is_number(operand)):
            raise InvalidInput(f"{operator} takes a number or a text")
        bound = operand[:MAX_COMPARED_CHARS] if isinstance(operand, str) else operand
        return Condition(path=path, operator=operator, bound=bound)
    if operator == "$exists":
        if not isinstance(operand, bool):
            raise InvalidInput("$exists takes true or false")
        return Condition(path=path, operator="$exists", negated=not operand)
    values = operand if operator in {"$in", "$nin"} else [operand]
    return Condition(
        path=path, operator="$in", keys=frozenset(map(equality_key, values)), negated=operator in _NEGATION_OF
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equality_key(value: Any) -> str:
    """Return a text that is equal for values that are equal (1); what JSON cannot hold equals nothing.

    Raises:
        InvalidInput: it is no value of JSON.
    """
    if isinstance(value, float) and (not math.isfinite(value) or value.is_integer()):
        # What is not finite stands in no memory.
        value = int(value) if math.isfinite(value) else {"": repr(value)}
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError) as fault:
        raise InvalidInput("a condition compares with a value of JSON") from fault
    return (
        text if len(text) <= MAX_COMPARED_CHARS else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    )


def matches(metadata: Mapping[str, Any], where: Where) -> bool:
    """Whether a memory's own fields meet all conditions."""
    if not where:
        return True
    fields = dict(indexed_fields(metadata))
    return all(_matches_condition(fields, each) is not each.negated for each in where)


def _matches_condition(fields: Mapping[str, Any], condition: Condition) -> bool:
    if condition.path not in fields:
        return False
    value = fields[condition.path]
    if condition.operator == "$exists":
        return True
    return equality_key(value) in condition.keys if condition.operator == "$in" else condition.holds(value)


def indexed_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of every field, nested ones too; at most ``MAX_INDEXED_FIELDS`` of them."""
    waiting = [("", metadata)]
    found = 0
    while waiting:
        prefix, holder = waiting.pop()
        for name, value in holder.items():
            if found == MAX_INDEXED_FIELDS:
                return
            found += 1
            path = f"{prefix}{name}"
            yield path, value
            if isinstance(value, Mapping):
                waiting.append((f"{path}.", value))
