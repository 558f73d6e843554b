"""Memories as JSON objects: what the console, ``list --json`` and the API give, and those of other programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from keepward.core.change import Insert
from keepward.core.memory import Record, Tier
from keepward.core.messages import parse_timestamp
from keepward.errors import InvalidInput
from keepward.interchange.messages import user_of
from keepward.interchange.parsing import ImportSource, Row, rows
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

if TYPE_CHECKING:
    from datetime import datetime

#: Fields that are copied unchanged from one store to another.
COPIED_FIELDS = set(Insert.__struct_fields__) & set(Record.__struct_fields__) - {"id", "source", "derived_from"}
#: Description of skipped memories of another store.
INACTIVE_NOTE = "memories that are not active"
#: Fields by which programs say that a record is not active: false, true, or set to anything but null.
_INACTIVE_IF_FALSE = ("active", "is_active", "enabled")
_INACTIVE_IF_TRUE = (
    "archived",
    "is_archived",
    "deleted",
    "is_deleted",
    "inactive",
    "superseded",
    "disabled",
    "retired",
    "expired",
)
_INACTIVE_IF_SET = (
    "deleted_at",
    "archived_at",
    "retired_at",
    "superseded_at",
    "superseded_by",
    "invalid_at",
    "expired_at",
)
#: Fields with a date, an expiry, parents and a vector; the first filled one counts.
_TIME_FIELDS = ("occurred_at", "text_at", "created_at", "created", "timestamp", "date")
_EXPIRY_FIELDS = ("expires_at", "expiration_date")
_PARENTS = ("derived_from", "parent_id", "parent_ids", "parent", "parents")
_VECTORS, _MODELS = ("vector", "embedding"), ("embedding_model", "vector_model")
#: Fields that a read computes, or that each store sets itself.
_COMPUTED_FIELDS = frozenset(
    {"id", "version", "status", "state", "text_by", "reinforced_at", "children", "base_confidence", "base_importance"}
)
_KNOWN_FIELDS = frozenset(
    {
        *COPIED_FIELDS,
        *_INACTIVE_IF_FALSE,
        *_INACTIVE_IF_TRUE,
        *_INACTIVE_IF_SET,
        *_TIME_FIELDS,
        *_EXPIRY_FIELDS,
        *_PARENTS,
        *_VECTORS,
        *_MODELS,
        *_COMPUTED_FIELDS,
    }
)
_KNOWN_FIELDS |= {"user_id", "userId", "metadata"}
#: Maximum number of listed names of skipped fields, and the form of a listed name.
_MAX_LISTED, _NAME = 20, re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def detect(value: Any) -> bool:
    """Whether a JSON value is a memory as the API returns it, or an object that lists some."""
    if isinstance(value, dict) and "text" not in value:
        value = next(
            (value[name][0] for name in ("items", "memories") if isinstance(value.get(name), list) and value[name]),
            None,
        )
    return isinstance(value, dict) and {"id", "version", "tier", "kind", "text", "trust", "status"} <= value.keys()


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read memories: a list, an object a line, or a response that lists them."""
    for number, row, _ in rows(source, "items", "memories"):
        yield from item_of(number, row, run)


def item_of(number: int, row: Any, run: ImportRun) -> Iterator[Row]:
    """Yield the item of a record, or the reason why there is none; nothing for an inactive one."""
    try:
        if isinstance(row, UnusableItem):
            raise row
        if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not isinstance(row.get("text"), str):
            raise UnusableItem("a memory has an id and a text")
        item = _item(row, run)
    except (UnusableItem, InvalidInput, TypeError) as exc:
        yield number, exc if isinstance(exc, UnusableItem) else UnusableItem("a field of it is damaged")
    else:
        if item is not None:
            yield number, item


def _item(row: dict[str, Any], run: ImportRun) -> dict[str, Any] | None:
    """Return the item of a record, None for an inactive one. Skipped fields are counted."""
    now, ends = run.mem.now, _instant(row, _EXPIRY_FIELDS)
    if _is_inactive(row) or (ends is not None and ends <= now):
        run.skipped[INACTIVE_NOTE] += 1
        return None
    named = [row[name] for name in _PARENTS if row.get(name)]
    parents = [each for value in named for each in (value if isinstance(value, list) else [value])]
    item = {name: row[name] for name in sorted(COPIED_FIELDS) if row.get(name) not in (None, [], {})}
    item |= {
        "metadata": row.get("metadata") or None,
        # A person reviewed the core block there and reviews it again here, so no minimum confidence applies.
        "confidence": None if row.get("tier") == Tier.CORE else row.get("confidence"),
        "ttl": None if ends is None else ends - now,
        "when": _instant(row, _TIME_FIELDS),
        "name": row["id"],
        "aliases": (*(row.get("aliases") or ()),),
        "evidence": (*(row.get("evidence") or ()),),
        "parents": tuple(dict.fromkeys(each for each in parents if isinstance(each, str) and each.strip())),
        "user": user_of(row),
    }
    if any(row.get(name) for name in _VECTORS):
        run.skipped["vectors: texts are embedded here"] += 1
    _count_skipped(row, run.skipped)
    return item


def _is_inactive(row: Mapping[str, Any]) -> bool:
    """Whether a usual field of a record says that it is inactive."""
    no, yes = (False, 0, "false", "no", "0"), (True, 1, "true", "yes", "1")
    status = str(row.get("status") or row.get("state") or "active").lower()
    return (
        status != "active"
        or any(row.get(name) is not None and row[name] in no for name in _INACTIVE_IF_FALSE)
        or any(row.get(name) is not None and row[name] in yes for name in _INACTIVE_IF_TRUE)
        or any(row.get(name) not in (None, "", False, 0) for name in _INACTIVE_IF_SET)
    )


def _instant(row: Mapping[str, Any], names: tuple[str, ...]) -> datetime | None:
    """Return the first of these fields that is set, as an instant."""
    value = next((row[name] for name in names if row.get(name) not in (None, "")), None)
    return None if value is None else parse_timestamp(value)


def _count_skipped(row: Mapping[str, Any], skipped: Counter[str]) -> None:
    """Count the fields of a record that an imported memory does not have."""
    for name, value in row.items():
        if name in _KNOWN_FIELDS or value in (None, "", 0, False, [], {}):
            continue
        listed = name if _NAME.fullmatch(name) and len(skipped) < _MAX_LISTED else "of other names"
        skipped[f"fields `{listed}`" if listed == name else f"fields {listed}"] += 1
    if row.get("occurred_at") and row.get("created_at") and row["occurred_at"] != row["created_at"]:
        skipped["fields `created_at`"] += 1
