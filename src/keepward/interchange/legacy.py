"""The legacy vault: an append-only JSONL file with three tiers, one line a version.

What becomes of a tier stands in docs/interchange.md. Of equal versions of an id the later line counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepward.core.trust import parse_scope
from keepward.core.value import parse_instant
from keepward.errors import InvalidInput
from keepward.interchange.reading import Flaw, Item, Plan, Source, well_formed
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory

SOURCES = ("chat", "manual", "tool", "operator", "promotion")
TIERS = ("canon", "register", "log")
_ID = re.compile(r"[0-9a-f]{12}")
_KNOWN = {"scope", "category", "tier", "topic_id", "version", "created_at"}


def looks_like(value: Any) -> bool:
    """Whether a JSON value is a line of this format."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    return isinstance(value.get("id"), str) and bool(_ID.fullmatch(value["id"])) and bool(_KNOWN & value.keys())


def plan(source: Source, mem: Memory) -> Plan:
    """Read the newest live version of each memory, in the order of their lines."""
    source.checked_lines()
    newest: dict[str, tuple[int, int]] = {}
    deleted: set[str] = set()
    lines = flaws = 0
    for number, value in source.values():
        lines += 1
        try:
            row = _row(value)
            version = _version(row)
        except Unusable:
            flaws += 1
            continue
        if version >= newest.get(row["id"], (0, 0))[0]:
            newest[row["id"]] = (version, number)
            (deleted.add if row.get("deleted_at") else deleted.discard)(row["id"])
    wanted = {number for name, (_, number) in newest.items() if name not in deleted}
    left = {"earlier versions": lines - flaws - len(newest), "deleted memories": len(deleted)}
    entries = _entries(source, wanted, frozenset(mem.policy.core_keys))
    return Plan(total=len(wanted) + flaws, entries=entries, left=Counter(left))


def _entries(source: Source, wanted: set[int], core_keys: frozenset[str]) -> Iterator[Item | Flaw]:
    for number, value in source.values():
        try:
            row = _row(value)
            _version(row)
            if number in wanted:
                yield _item(number, row, core_keys)
        except Unusable as fault:
            yield Flaw(number=number, reason=str(fault))


def _row(row: Any) -> dict[str, Any]:
    if isinstance(row, Unusable):
        raise row
    if not isinstance(row, dict):
        raise Unusable("a line is an object")
    name = row.get("id")
    if not isinstance(name, str) or not name.strip() or len(name) > 128:
        raise Unusable("the id is a text, 12 hexadecimal digits in this format")
    return row


def _version(row: dict[str, Any]) -> int:
    version = row.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Unusable("the version is a whole number from 1")
    return version


def _item(number: int, row: dict[str, Any], core_keys: frozenset[str]) -> Item:
    well_formed(row)
    tier = row.get("tier") or "canon"
    if tier not in TIERS:
        raise Unusable(f"the tier is one of {', '.join(TIERS)}")
    source = row.get("source")
    if source is not None and source not in SOURCES:
        raise Unusable(f"the source is one of {', '.join(SOURCES)}")
    text, tags = row.get("text"), row.get("tags") or []
    if not isinstance(text, str) or not text.strip():
        raise Unusable("the text is missing")
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
        raise Unusable("the tags are a list of texts")
    topic, category = (_label(row, name) for name in ("topic_id", "category"))
    created = _instant(row, "created_at")
    origin = {"source": source, "version": row.get("version", 1)}
    origin |= {name: row[name] for name in ("created_at", "updated_at") if _instant(row, name)}
    fields: dict[str, Any] = {
        "text": text.strip(),
        "scope": _scope(row.get("scope", "shared")),
        "category": category,
        "tags": tuple(tags),
        "aliases": (row["id"],),
        "metadata": {"legacy": {name: value for name, value in origin.items() if value is not None}},
    }
    place = "core" if topic in core_keys else "archival"
    if tier == "canon":
        fields |= {"tier": place, "key": topic, "stability": "permanent", "confidence": 0.9}
    elif tier == "register":
        # A keyed line of state is not an event; it has no term of its own.
        fields |= {"tier": place, "key": topic, "kind": "state", "stability": "stable", "confidence": 0.8}
    else:
        fields |= {"tier": "episodic", "kind": "event", "occurred_at": created}
    return Item(number=number, fields=fields, review="unless_owner" if tier == "canon" else "no", named=True)


def _scope(name: Any) -> str:
    wrong = "the scope is shared or the name of an agent"
    if not isinstance(name, str) or not name:
        raise Unusable(wrong)
    try:
        return parse_scope(name)
    except InvalidInput as fault:
        raise Unusable(wrong) from fault


def _label(row: dict[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise Unusable(f"the {name} is a text")
    return value.strip() or None


def _instant(row: dict[str, Any], name: str) -> Any:
    value = row.get(name)
    if value is None:
        return None
    try:
        return parse_instant(value if isinstance(value, str) else "")
    except InvalidInput as fault:
        raise Unusable(f"{name} is an instant in ISO 8601") from fault
