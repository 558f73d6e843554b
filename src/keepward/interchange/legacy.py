"""The legacy vault: an append-only JSONL file with three tiers, one line a version.

docs/reference/formats.md says how a tier is imported. Of equal versions of an id the later line counts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import SHARED_SCOPE, parse_scope
from keepward.core.value import parse_instant
from keepward.errors import InvalidInput
from keepward.interchange.parsing import ImportSource, Row
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

SOURCES = ("chat", "manual", "tool", "operator", "promotion")
TIERS = ("canon", "register", "log")
_ID = re.compile(r"[0-9a-f]{12}")
_KNOWN = {"scope", "category", "tier", "topic_id", "version", "created_at"}
_MAX_TEXT = 1_200
#: Most versions of one memory, the newest ones.
_MAX_VERSIONS = 20


def detect(value: Any) -> bool:
    """Whether a JSON value is a line of this format."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    return isinstance(value.get("id"), str) and bool(_ID.fullmatch(value["id"])) and bool(_KNOWN & value.keys())


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the versions of each memory; each memory comes where its last version is."""
    numbers: dict[str, dict[int, int]] = {}
    lines = 0
    for number, value in source.objects():
        try:
            row, version = _versioned(value)
        except UnusableItem:
            continue
        lines += 1
        numbers.setdefault(row["id"], {})[version] = number
    for name, versions in numbers.items():
        numbers[name] = dict(sorted(versions.items())[-_MAX_VERSIONS:])
    run.skipped["versions that a later line replaced, or that are too old"] += lines - sum(map(len, numbers.values()))
    rows: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, value in source.values():
        try:
            row, version = _versioned(value)
            name = row["id"]
            if numbers[name].get(version) != number:
                continue
            rows.setdefault(name, []).append((version, row))
            if len(rows[name]) == len(numbers[name]):
                yield number, _with_versions(sorted(rows.pop(name), key=itemgetter(0)), run.mem.policy.core_keys)
        except UnusableItem as exc:
            yield number, exc


def _with_versions(rows: list[tuple[int, dict[str, Any]]], core_keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the item of the newest version, with the texts of the earlier ones and when each was written."""
    version, newest = rows[-1]
    item = _item(newest, version, core_keys)
    texts: list[tuple[str, Any]] = []
    for _, row in rows:
        text = row["text"].strip() if isinstance(row.get("text"), str) else ""
        if text and (not texts or texts[-1][0] != text):
            texts.append((text, row.get("updated_at") or row.get("created_at")))
    item |= {"versions": tuple(texts[:-1]), "when": texts[-1][1]}
    if newest.get("deleted_at"):
        # A deleted memory holds no key and is in no block.
        item |= {"retired": True, "key": None, "tier": "archival", "stability": "stable"}
    return item


def _versioned(row: Any) -> tuple[dict[str, Any], int]:
    if isinstance(row, UnusableItem):
        raise row
    if not isinstance(row, dict):
        raise UnusableItem("a line is an object")
    name, version = row.get("id"), row.get("version", 1)
    if not isinstance(name, str) or not name.strip() or len(name) > 128:
        raise UnusableItem("the id is a text, 12 hexadecimal digits in this format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnusableItem("the version is an integer from 1")
    return row, version


def _item(row: dict[str, Any], version: int, core_keys: tuple[str, ...]) -> dict[str, Any]:
    tier, source, tags = row.get("tier") or "canon", row.get("source"), row.get("tags") or []
    if tier not in TIERS:
        raise UnusableItem(f"the tier is one of {', '.join(TIERS)}")
    if source is not None and source not in SOURCES:
        raise UnusableItem(f"the source is one of {', '.join(SOURCES)}")
    if not isinstance(row.get("text"), str) or not row["text"].strip():
        raise UnusableItem("the text is missing")
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
        raise UnusableItem("the tags are a list of texts")
    topic, category = (_label(row, name) for name in ("topic_id", "category"))
    for name in ("created_at", "updated_at"):
        try:
            if row.get(name) is not None:
                parse_instant(row[name] if isinstance(row[name], str) else "")
        except InvalidInput as exc:
            raise UnusableItem(f"{name} is an instant in ISO 8601") from exc
    named = row.get("scope", "shared")
    try:
        scope = parse_scope(named if isinstance(named, str) else "")
    except InvalidInput as exc:
        raise UnusableItem("the scope is shared or the name of an agent") from exc
    origin = {"source": source, "version": version, **{name: row.get(name) for name in ("created_at", "updated_at")}}
    item: dict[str, Any] = {
        "text": row["text"].strip(),
        "name": row["id"],
        "scope": scope,
        "category": category,
        "tags": tuple(tags),
        "metadata": {"legacy": {name: value for name, value in origin.items() if value is not None}},
    }
    if tier == "log":
        return item | {"tier": "episodic", "kind": "event"}
    item |= {"tier": "core" if topic in core_keys else "archival", "key": topic}
    if tier == "canon":
        return item | {"stability": "permanent", "confidence": 0.9}
    # A keyed line of state is not an event; it has no time to live, and agents update it.
    return item | {"kind": "state", "stability": "stable", "confidence": 0.8, "access": "read_write"}


def _label(row: dict[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise UnusableItem(f"the {name} is a text")
    return (value or "").strip() or None


# --- export

_SOURCE_OF = {"user_message": "chat", "user": "chat", "assistant": "chat", "chat": "chat", "tool": "tool"}
_SOURCE_OF |= {"promotion": "promotion", "operator": "operator"}


def lines_of(records: list[Record], skipped: Counter[str]) -> Iterator[str]:
    """Yield a line for each memory that this format can express; the others are counted in ``skipped``."""
    for record in records:
        agent = record.scope.removeprefix("/agents/")
        if record.scope != SHARED_SCOPE and (agent == record.scope or "/" in agent):
            skipped["memories of scopes that are neither shared nor an agent's"] += 1
        elif record.kind is Kind.EVENT or record.tier is Tier.WORKING:
            skipped["events and working memory, which belong to its journal"] += 1
        elif not 0 < len(record.text) <= _MAX_TEXT:
            skipped[f"memories without a text, or with more than {_MAX_TEXT} characters"] += 1
        else:
            yield json.dumps(_line(record, "shared" if record.scope == SHARED_SCOPE else agent), ensure_ascii=False)


def _line(record: Record, scope: str) -> Mapping[str, Any]:
    old = next((alias for alias in record.aliases if _ID.fullmatch(alias)), None)
    return {
        "id": old or hashlib.sha256(record.id.encode()).hexdigest()[:12],
        "text": record.text,
        "scope": scope,
        "category": record.category or record.kind.value,
        "tier": "canon" if record.pinned and record.kind is not Kind.STATE else "register",
        "topic_id": record.key,
        "tags": list(record.tags),
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at and record.updated_at.isoformat(),
        "source": _SOURCE_OF.get(record.source, "manual"),
        "deleted_at": None,
        "version": record.version,
    }
