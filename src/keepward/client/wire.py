"""Wire: arguments of verbs as the JSON that a server takes.

Invariants
(1) What stands for "leave it as it is" is left out; None is sent, since it empties a field.
(2) What cannot be sent without a loss is an error, and nothing is sent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

from keepward.errors import InvalidInput
from keepward.model.change import KEEP, Change, Insert, Revert, Supersede, operation
from keepward.verbs import arguments
from keepward.verbs.arguments import texts

if TYPE_CHECKING:
    from keepward.model.query import AsOf

_LISTS = ("tags", "evidence", "derived_from", "aliases")


def plain(value: Any) -> Any:
    """Return an argument as JSON values; a span of time is text such as ``90s``, or a number of seconds.

    Raises:
        InvalidInput: see (2).
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            seconds, rest = divmod(value, timedelta(seconds=1))
            return value.total_seconds() if rest else f"{seconds}s"
        case datetime():
            if value.tzinfo is None:
                raise InvalidInput("an instant needs a time zone")
            return value.isoformat()
        case Mapping():
            return {_name(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted(plain(each) for each in value)
    raise InvalidInput("an argument is not plain JSON: texts, numbers, booleans, lists and objects")


def fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return named arguments of a change, without those that stay as they are; see (1)."""
    kept = {name: value for name, value in given.items() if value is not KEEP}
    for name in _LISTS:
        if name in kept:
            kept[name] = texts(name, kept[name])
    return {name: plain(value) for name, value in kept.items()}


def insert(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a new memory, checked as the library checks them."""
    return {"text": arguments.text(text), **fields(arguments.insert(given))}


def replace(text: str, if_version: int | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an edit, checked as the library checks them."""
    asked = {"text": arguments.text(text, keep=True), **arguments.replace(given)}
    return fields(asked) | present(if_version=if_version)


def append(text: str, if_version: int | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an addition, checked as the library checks them."""
    return {"text": arguments.text(text), **fields(arguments.append(given)), **present(if_version=if_version)}


def move(*, if_version: int | None, **given: Any) -> dict[str, Any]:
    """Return the arguments of a move, checked as the library checks them."""
    return fields(arguments.move(given)) | present(if_version=if_version)


def present(**given: Any) -> dict[str, Any]:
    """Return the arguments that are not None, as JSON values."""
    return {name: plain(value) for name, value in given.items() if value is not None}


def change(item: Change) -> dict[str, Any]:
    """Return a change as ``op`` with its arguments; a new memory gets its id from the server.

    Raises:
        InvalidInput: rollback alone makes changes of this sort.
    """
    if isinstance(item, Revert):
        raise InvalidInput("a change cannot be a Revert: use rollback")
    if not isinstance(item, get_args(Change)):
        raise InvalidInput("a proposal is made of changes, such as Insert(...) or Replace(...)")
    given = {each.name: getattr(item, each.name) for each in dataclasses.fields(item)}
    default = {each.name: each.default for each in dataclasses.fields(item)}
    # Where a memory goes is always said: the default of a handle is its own scope, that of an Insert is shared.
    sent = {name: value for name, value in given.items() if value is not default[name] and value != default[name]}
    if isinstance(item, Insert):
        sent = {name: value for name, value in sent.items() if name != "id"} | {"scope": item.scope}
    return {"op": operation(item), **fields(sent)}


def refers(changes: Sequence[Change]) -> bool:
    """Whether a change names a memory that another one of them makes."""
    made = {item.id for item in changes if isinstance(item, Insert)}
    return any(made.intersection(_named(item)) for item in changes)


def renamed(change: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a change to be sent, with the ids that memories got in place of those that they were given here."""
    found = dict(change)
    for name in ("id", "by"):
        if name in found:
            found[name] = names.get(found[name], found[name])
    if "derived_from" in found:
        found["derived_from"] = [names.get(each, each) for each in found["derived_from"]]
    return found


def _named(item: Change) -> tuple[str, ...]:
    match item:
        case Insert():
            return tuple(item.derived_from)
        case Supersede():
            return item.id, item.by
    return (item.id,)


def moment(as_of: AsOf) -> str | None:
    """Return a moment of the past as text: a commit's number or name, or an instant."""
    if isinstance(as_of, bool) or not (as_of is None or isinstance(as_of, int | str | datetime)):
        raise InvalidInput("a moment is a commit's number, its id, or an instant")
    return None if as_of is None else str(plain(as_of))


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidInput("names in an object are texts")
    return name
