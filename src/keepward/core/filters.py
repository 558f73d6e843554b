"""Conditions on metadata: syntax and evaluation.

The path of a field is its keys joined by dots: ``{"user.city": "Linz", "stars": {"$gte": 4}}``. All conditions must
match.

* Equality is that of JSON: 1 equals 1.0, not true. Lists and objects are compared completely.
* Numbers are ordered among numbers, texts among texts. Other values have no order.
* ``$ne``, ``$nin`` and ``$exists: false`` also match a missing field; other conditions need the field.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from keepward.core.value import MAX_DEPTH, Data, is_too_deep, load_json, unknown_name_message
from keepward.errors import InvalidInput

#: Maximum number of conditions of a filter, and of values in a list.
MAX_CONDITIONS = 64
#: Maximum number of indexed fields of a memory.
MAX_INDEXED_FIELDS = 1_000
#: Number of characters that order comparisons read; equality compares the complete text.
MAX_COMPARED_CHARS = 256
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = ("$eq", "$ne", "$in", "$nin", *_COMPARISONS, "$exists")
#: They also match a missing field.
_NEGATED_OPERATORS = frozenset({"$ne", "$nin"})


class Condition(Data):
    """The condition on one field."""

    path: str
    #: ``$in``, ``$exists`` or an order comparison.
    operator: str
    #: The matching values by ``equality_key``; empty for an order comparison.
    keys: frozenset[str] = frozenset()
    #: The operand of an order comparison.
    bound: Any = None
    #: Whether the result is negated; a missing field matches then.
    negated: bool = False

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a value satisfies an order comparison."""
        if isinstance(value, str):
            value = value[:MAX_COMPARED_CHARS]
        alike = isinstance(value, str) and isinstance(self.bound, str)
        return (alike or (_is_number(value) and _is_number(self.bound))) and _COMPARISONS[self.operator](
            value, self.bound
        )


Where = tuple[Condition, ...]


def parse_where(given: Any) -> Where:
    """Return the conditions of an object or of its JSON text.

    Raises:
        InvalidInput: it is not an object, or an operator is unknown.
    """
    if isinstance(given, str):
        try:
            given = load_json(given)
        except ValueError as exc:
            raise InvalidInput("`where` is a JSON object of conditions, not nested deeply") from exc
    if given is None:
        return ()
    if (
        not isinstance(given, Mapping)
        or len(given) > MAX_CONDITIONS
        or not all(isinstance(path, str) for path in given)
    ):
        raise InvalidInput(f"`where` is an object of at most {MAX_CONDITIONS} conditions, by the path of the field")
    if is_too_deep(given):
        raise InvalidInput(f"`where` is nested at most {MAX_DEPTH} levels deep")
    conditions: list[Condition] = []
    for path, operand in given.items():
        if path.startswith("$"):
            raise InvalidInput("`where` has no operators such as `$or` between fields. List the fields; all must match")
        named = isinstance(operand, Mapping) and any(str(name).startswith("$") for name in operand)
        if (
            isinstance(operand, Mapping)
            and not named
            and (near := next((f"${n}" for n in operand if f"${n}" in OPERATORS), ""))
        ):
            raise InvalidInput(
                f"the condition on `{path}` names {near[1:]!r}; operators begin with $: {', '.join(OPERATORS)}. "
                f"Write {{{path!r}: {{{near!r}: ...}}}}, or $eq to compare with an object"
            )
        operators = operand if named else {"$eq": operand}
        conditions += [_condition(path, operator, value) for operator, value in operators.items()]
    return tuple(conditions)


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
        path=path, operator="$in", keys=frozenset(map(equality_key, values)), negated=operator in _NEGATED_OPERATORS
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equality_key(value: Any) -> str:
    """Return a text that is equal for equal values. That of an infinite number or NaN equals none of a memory.

    Raises:
        InvalidInput: it is not a JSON value.
    """
    if isinstance(value, float) and (not math.isfinite(value) or value.is_integer()):
        # No memory contains a number that is not finite.
        value = int(value) if math.isfinite(value) else {"": repr(value)}
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput("a condition of `where` compares with a JSON value") from exc
    return (
        text if len(text) <= MAX_COMPARED_CHARS else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    )


def matches(metadata: Mapping[str, Any], where: Where) -> bool:
    """Whether metadata matches all conditions."""
    if not where:
        return True
    fields = dict(indexed_fields(metadata))
    return all(_matches_condition(fields, condition) is not condition.negated for condition in where)


def _matches_condition(fields: Mapping[str, Any], condition: Condition) -> bool:
    if condition.path not in fields:
        return False
    value = fields[condition.path]
    if condition.operator == "$exists":
        return True
    return equality_key(value) in condition.keys if condition.operator == "$in" else condition.is_satisfied_by(value)


def indexed_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of every field, also of nested ones; at most ``MAX_INDEXED_FIELDS``."""
    pending = [("", metadata)]
    count = 0
    while pending:
        prefix, container = pending.pop()
        for name, value in container.items():
            if count == MAX_INDEXED_FIELDS:
                return
            count += 1
            path = f"{prefix}{name}"
            yield path, value
            if isinstance(value, Mapping):
                pending.append((f"{path}.", value))
