"""Parse the arguments of callers into the values of changes.

An unknown name or a value of another type raises ``InvalidInput`` with a suggestion, never ``TypeError`` or
``ValueError``. The message does not repeat the value. A value of the right type that is not allowed, such as a too long
text, is left to the gates: their answer is an outcome with a receipt.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from numbers import Integral, Real
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from keepward.core.change import CHANGE_BY_OPERATION, UNSET, Append, Insert, Move, Replace
from keepward.core.json_form import MAX_SAFE_INTEGER
from keepward.core.principals import (
    SHARED_SCOPE,
    is_scope,
    main_scope,
    parse_scope,
    parse_tenant,
    project_of,
    user_of,
)
from keepward.core.reducer import metadata_text
from keepward.core.value import (
    MAX_DURATION,
    Data,
    Duration,
    one_of,
    parse_duration,
    parse_instant,
    require_well_formed,
    unknown_field_message,
)
from keepward.errors import Conflict, InvalidInput
from keepward.types import CHOICES, FIELDS, NEW_ID_PATTERN

ArgumentReader = Callable[[str, Any], Any]
#: Changes whose fields are all parsed here, by how an error message calls them.
_CHANGES: Mapping[type[Any], str] = {Replace: "an edit", Append: "an addition", Move: "a move"}
#: Whether a text may be the id of a new memory.
IS_NEW_ID = re.compile(NEW_ID_PATTERN).match
#: What names a past state, in an error.
PAST_STATE = (
    "a commit's number or id, the name of a head, an aware datetime, or ISO 8601 text such as 2026-03-01T09:30:00Z"
)
#: The tenant if none is named.
DEFAULT = "default"


def valid_tenant(name: str) -> str:
    """Return a tenant's name as it is stored; refuse one that looks like a secret."""
    tenant = parse_tenant(name)
    return tenant if tenant == DEFAULT else _no_secret(tenant)


def valid_scope(name: str) -> str:
    """Return the path of a scope; refuse one that looks like a secret."""
    path = parse_scope(name)
    return path if path == SHARED_SCOPE else _no_secret(path)


def scope_for(scope: str, *, user: str | None = None, agent: str | None = None, project: str | None = None) -> str:
    """Return the scope on main of a user, agent or project, relative to the scope of a handle."""
    scope = main_scope(scope)
    project, user = project or project_of(scope), user or user_of(scope)
    if agent is not None:
        return scope if project or user else f"/agents/{agent}"
    return (f"/projects/{project}" if project else "") + (f"/users/{user}" if user else "")


def check_name(kind: str, name: str) -> str:
    """Return a valid name of a user, agent or project; else raise InvalidInput."""
    if isinstance(name, str) and "/" not in name and is_scope(f"/{kind}s/{name}"):
        return name
    raise InvalidInput(
        f"the name of a {kind} is 1 to 64 ASCII letters, digits and `. _ -`, and starts with none of `. -`: use an id "
        "such as u-1042, not an address; other names of a person go into `names`"
    )


@lru_cache(maxsize=1024)
def _no_secret(name: str) -> str:
    from keepward.gates.content import redact_secrets

    if redact_secrets(name) != name:
        raise InvalidInput("the name of a tenant or scope contains what looks like a secret: choose another")
    return name


def expiry_time(name: str, value: datetime | Duration) -> datetime | timedelta:
    """Return when something expires: an aware instant, or a duration from now."""
    if isinstance(value, datetime) or (isinstance(value, str) and value[:4].isdecimal() and "-" in value):
        return instant(name, value)
    term = duration(name, value)
    if abs(term) > MAX_DURATION:
        raise InvalidInput(f"{name} is an instant, or a duration of at most a hundred years")
    return term


def approvals(items: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Return proposals to approve, each as a mapping with an ``id`` and perhaps a ``digest``."""
    found = [{"id": item} if isinstance(item, str) else item for item in items]
    for item in found:
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            raise InvalidInput('items are ids of proposals, or such as {"id": "...", "digest": "..."}')
        if unknown := next((name for name in item if name not in {"id", "digest"}), None):
            raise InvalidInput(f"items: {unknown_field_message('field', unknown, ('id', 'digest'))}")
        require_well_formed("items", item["id"])
    return found


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    return tuple(plain_text(name, item, "a list of texts") for item in items(name, value, "a list of texts"))


def number(name: str, value: Any, what: str = "a number from 0 to 1") -> float:
    """Return a number; the caller checks its range."""
    if type(value) is not int and type(value) is not float:
        # Numbers of numpy are accepted, booleans are not.
        if isinstance(value, bool) or not isinstance(value, Real):
            raise _type_error(name, what, value)
        return float(value)
    return value


def text(value: Any) -> str:
    """Return a value that must be a text."""
    return plain_text("text", value)


def insert_fields(given: Mapping[str, Any], *, one_of_many: bool = False) -> dict[str, Any]:
    """Return the fields of a new memory; with ``one_of_many`` a gate checks names such as tiers."""
    if "id" in given:
        raise InvalidInput("the store chooses ids; put a foreign id into `aliases`")
    return _fields(Insert, "a memory", given, _GATED_FIELD_READERS if one_of_many else _FIELD_READERS)


def build_change(change_type: type[Any], given: Mapping[str, Any]) -> Any:
    """Return a change of a memory with the given fields."""
    fields = dict(given)
    parsed = {"id": plain_text("id", fields.pop("id"))}
    if "text" in fields:
        value = fields.pop("text")
        parsed["text"] = value if value is UNSET and change_type is Replace else text(value)
    what = _CHANGES.get(change_type, "a change")
    return change_type(**parsed, **_fields(change_type, what, fields, _FIELD_READERS))


def require_content(change: Any) -> Any:
    """Return a change to propose with its fields parsed; refuse an edit without a field, which changes nothing."""
    if not isinstance(change, Insert):
        change = build_change(type(change), msgspec.structs.asdict(change))
    if isinstance(change, Replace) and change == Replace(id=change.id, if_version=change.if_version):
        raise InvalidInput("nothing is changed: a revision needs `text` or another field")
    return change


class NewIds:
    """The ids of the new memories of one proposal, by the names that its changes have for them."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self._ids: dict[str, str] = {}

    def assign(self, change: Any) -> Any:
        """Return a change with ids instead of names.

        A new memory keeps an id that is a UUIDv7, else gets a fresh one. Call this in the order of the changes.

        Raises:
            Conflict: two new memories have the same name.
        """
        if not isinstance(change, Insert):
            # Every other change has the id of its memory; one that supersedes names a second.
            named = {name: plain_text(name, getattr(change, name)) for name in ("id", "by") if hasattr(change, name)}
            return replace(change, **{name: self._ids.get(given, given) for name, given in named.items()})
        given = {field: value for field in change.__struct_fields__ if (value := getattr(change, field)) is not UNSET}
        name = plain_text("id", given.pop("id"))
        if given.get("scope", "") is None:
            del given["scope"]
        change = Insert(text=text(given.pop("text")), **insert_fields(given, one_of_many=True))
        if name in self._ids:
            raise Conflict("two new memories have the same id: give each its own, or leave the id out")
        made = name if IS_NEW_ID(name) else self.new_id()
        parents = tuple(self._ids.get(parent, parent) for parent in change.derived_from)
        if name:
            self._ids[name] = made
        return replace(change, id=made, derived_from=parents)


def _fields(
    kind: type[Data], what: str, given: Mapping[str, Any], readers: Mapping[str, ArgumentReader]
) -> dict[str, Any]:
    known = tuple(name for name in kind.__struct_fields__ if name not in {"id", "text"})
    for name in given:
        if name not in known:
            raise InvalidInput(f"{what}: {unknown_field_message('field', name, known)}")
    never_empty = _NEVER_EMPTY | {"tier", "scope"} if kind is Move else _NEVER_EMPTY
    return {
        name: value if value is UNSET else _value(name, value, readers, never_empty) for name, value in given.items()
    }


def _value(name: str, value: Any, readers: Mapping[str, ArgumentReader], never_empty: frozenset[str]) -> Any:
    if value is None and name not in never_empty:
        # Every memory has a content type.
        return "text" if name == "content_type" else None
    read: ArgumentReader = readers.get(name) or _reader_of_field(name)
    return read(name, value)


@cache
def _reader_of_field(name: str) -> ArgumentReader:
    """Return the parser of a field by its type in the changes, with the limits of a number in ``types.py``."""
    change = next(kind for kind in CHANGE_BY_OPERATION.values() if name in kind.__struct_fields__)
    declared = next(each.type for each in msgspec.structs.fields(change) if each.name == name)
    parts, typed = {declared, *get_args(declared)}, FIELDS.get(name)
    if tuple[str, ...] in parts:
        return texts
    if bool in parts:
        return boolean
    if not {int, float} & parts:
        return plain_text
    notes = [note for part in (typed, *get_args(typed)) for note in getattr(part, "__metadata__", ())]
    limits = {
        name: value
        for note in notes
        if isinstance(note, msgspec.Meta)
        for name in ("ge", "le", "title")
        if (value := getattr(note, name)) is not None
    }
    return number_reader(int if int in parts else float, limits)


def number_reader(kind: type, limits: Mapping[str, Any]) -> ArgumentReader:
    """Return the parser of a number within limits, as ``Meta`` names them; a ``title`` says in words what it is."""
    read: ArgumentReader = integer if kind is int else number
    least, most = limits.get("ge"), limits.get("le")
    if least is None or most is None:
        return read

    def read_number(name: str, value: Any) -> Any:
        given = read(name, value)
        # A NaN is in no range.
        if not least <= given <= most:
            bounds = f"at least {least}" if given < least and most == MAX_SAFE_INTEGER else f"from {least} to {most:,}"
            raise InvalidInput(f"{name} is {limits.get('title', bounds)}")
        return given

    return read_number


def _type_error(name: str, what: str, value: Any) -> InvalidInput:
    return InvalidInput(f"{name} is {what}, not {'None' if value is None else type(value).__name__}")


def reader_of_type(kind: type, what: str) -> ArgumentReader:
    """Return a parser that accepts one type."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise _type_error(name, what, value)
        return value

    return read


def plain_text(name: str, value: Any, what: str = "a text") -> str:
    """Return a plain text; a member of a text enumeration becomes its value."""
    if not isinstance(value, str):
        raise _type_error(name, what, value)
    return value if type(value) is str else "".join(value)


def integer(name: str, value: Any, what: str = "a whole number") -> int:
    """Return an integer; numpy's are accepted, booleans are not."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _type_error(name, what, value)
    return int(value)


def items(name: str, value: Any, what: str = "a list") -> tuple[Any, ...]:
    """Return the items of a list, set, generator or other iterable as a tuple; refuse texts and mappings."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise _type_error(name, what, value)
    return tuple(value)


def _object(name: str, value: Any) -> Mapping[str, Any]:
    mapping: Mapping[str, Any] = reader_of_type(Mapping, "a JSON object")(name, value)
    # Refuse what JSON would change, such as a key that is a number.
    if mapping and json.loads(metadata_text(mapping) or "{}") != mapping:
        raise InvalidInput(f"{name} is a JSON object: its keys are texts, its values what JSON has")
    return mapping


def instant(name: str, value: Any) -> datetime:
    """Return an aware instant, given as such or as ISO 8601 text."""
    try:
        parsed = parse_instant(value) if isinstance(value, str) else value
    except InvalidInput as exc:
        raise InvalidInput(f"{name} is {exc}") from exc
    if not isinstance(parsed, datetime) or parsed.tzinfo is None:
        raise InvalidInput(f"{name} is an aware datetime, or ISO 8601 text such as 2026-03-01T09:30:00Z")
    return parsed


def duration(name: str, value: Any) -> timedelta:
    """Return a duration in any form of ``parse_duration``."""
    try:
        return parse_duration(value)
    except InvalidInput as exc:
        raise InvalidInput(f"{name}: {exc}") from exc


def parse_vector(name: str, value: Any) -> tuple[float, ...]:
    """Return a vector of length one."""
    try:
        numbers = tuple(float(number) for number in value)
    except (TypeError, ValueError, OverflowError) as exc:
        raise InvalidInput(f"a {name} is a list of numbers") from exc
    length = math.hypot(*numbers)
    if isinstance(value, str | bytes | Mapping) or not math.isfinite(length) or not length:
        raise InvalidInput(f"a {name} is a list of finite numbers that are not all zero")
    return tuple(number / length for number in numbers)


boolean = reader_of_type(bool, "True or False")
_NEVER_EMPTY = frozenset({"tags", "evidence", "derived_from", "aliases", "consent", "confirms", "gain", "by"})
#: Parsers of the fields of changes whose type does not say all.
_FIELD_READERS: Mapping[str, ArgumentReader] = {
    **dict.fromkeys(CHOICES, lambda name, value: one_of(name.replace("_", " "), value, CHOICES[name])),
    "ttl": duration,
    "scope": lambda name, value: parse_scope(plain_text(name, value)),
    "metadata": _object,
    **dict.fromkeys(("occurred_at", "valid_from", "valid_until"), instant),
    "to_version": _reader_of_field("if_version"),
    "vector": parse_vector,
}
#: The same for one item of many, whose invalid values a gate reports.
_GATED_FIELD_READERS: Mapping[str, ArgumentReader] = {
    **_FIELD_READERS,
    **dict.fromkeys(CHOICES, plain_text),
    **dict.fromkeys(("confidence", "importance"), lambda _, value: value),
}
