"""Import a JSON file of memory in tiers: core blocks, and entries of working, episodic and archival memory.

Accepted are an object with a part for each tier, an object of core blocks, a list of entries, and one entry a line. A
part is a list of entries, or an object with entries by id. docs/howto/import-tiers.md says how each field is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from keepward.core.memory import CORE_BLOCKS
from keepward.core.messages import parse_timestamp
from keepward.errors import InvalidInput
from keepward.integrations.namespaces import segment_of
from keepward.interchange.parsing import ImportSource, Row, list_or_empty, rows
from keepward.interchange.records import INACTIVE_NOTE
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

_PARTS = {
    **dict.fromkeys(("core", "core_blocks"), "core"),
    **dict.fromkeys(("working", "working_memory"), "working"),
    **dict.fromkeys(("episodic", "episodic_memory"), "episodic"),
    **dict.fromkeys(("archival", "archival_memory"), "archival"),
}
#: Tuples, because a field of a damaged entry may be a list.
_TIERS = tuple(dict.fromkeys(_PARTS.values()))
_KINDS = {"summary": "summary", "document": "document", "rule": "rule", "pattern": "fact", "receipt": "document"}
_QUESTS = ("quest_id", "task_id", "namespace")
_TEXTS = ("content", "text")
_ACTIVE = (None, "", "active", "verified", "committed", "promoted")
_PERSONA = CORE_BLOCKS[0]


def detect(value: Any) -> bool:
    """Whether a JSON value is a memory of tiers, its core blocks, or one of its entries."""
    if not isinstance(value, dict):
        return False
    if value.get("tier") in _TIERS and isinstance(value.get("content"), str):
        return "permission" not in value
    parts = [name for name in value if name in _PARTS and isinstance(value[name], dict | list)]
    blocks = value.keys() <= {*CORE_BLOCKS} and all(isinstance(_text_of(each), str) for each in value.values())
    return bool(parts) or (bool(value) and blocks)


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the active entries whose time to live has not ended."""
    count = 0
    for number, value, _ in rows(source):
        entries = [(None, value)] if not isinstance(value, dict) or "tier" in value else list(_entries(value))
        for part, entry in entries:
            count += 1
            at = number if len(entries) == 1 else count
            try:
                if isinstance(entry, UnusableItem):
                    raise entry
                item = _item(part, entry, run)
            except (UnusableItem, InvalidInput, ValueError, TypeError) as exc:
                yield at, exc if isinstance(exc, UnusableItem) else UnusableItem("a field of it is damaged")
            else:
                if item is not None:
                    yield at, item


def _entries(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each entry of a document with the name of its tier; a core block has its name as ``block``."""
    parts = {name: value[name] for name in value if name in _PARTS} or {"core": value}
    for name, part in parts.items():
        named = part.items() if isinstance(part, dict) else ((None, each) for each in list_or_empty(part))
        for key, each in named:
            entry = {"content": each} if isinstance(each, str) else each
            if isinstance(entry, dict) and key is not None:
                entry = {("block" if _PARTS[name] == "core" else "id"): key, **entry}
            yield _PARTS[name], entry


def _text_of(entry: Any) -> Any:
    if isinstance(entry, dict):
        return next((entry[name] for name in _TEXTS if isinstance(entry.get(name), str)), None)
    return entry


def _item(part: str | None, entry: Any, run: ImportRun) -> dict[str, Any] | None:
    tier, text = (part or entry.get("tier"), _text_of(entry)) if isinstance(entry, dict) else (None, None)
    if tier not in _TIERS or not isinstance(text, str) or not text.strip():
        raise UnusableItem(f"an entry has a content, and a tier of {', '.join(sorted(_TIERS))}")
    made = entry.get("created_at") or entry.get("timestamp")
    when = parse_timestamp(made) if made else None
    ends = _end(entry, when)
    if entry.get("status") not in _ACTIVE or (ends is not None and ends <= run.mem.now):
        run.skipped[INACTIVE_NOTE] += 1
        return None
    changed = entry.get("updated_at")
    session = entry.get("session_id") or entry.get("session")
    item = {
        "text": text.strip(),
        "tier": tier,
        "name": entry.get("id"),
        "when": parse_timestamp(changed) if changed else when,
        "ttl": None if ends is None else ends - run.mem.now,
        "confidence": entry.get("confidence"),
        "tags": tuple(each for each in list_or_empty(entry.get("tags")) if isinstance(each, str)),
        "evidence": tuple(_references(entry.get("provenance"))),
        "category": entry.get("title") or entry.get("type"),
        "session": session,
        "metadata": {"tiers": about} if (about := _about(entry)) else None,
    }
    quest = next((str(entry[name]) for name in _QUESTS if entry.get(name)), None)
    if quest is not None and tier == "working":
        item["scope"] = f"{run.scope.removesuffix('/')}/tasks/{segment_of(quest.removeprefix('quest:'))}"
    if tier == "core":
        return _core(entry, item, run)
    kind = _KINDS.get(str(entry.get("type") or entry.get("kind")))
    usual = {"working": "state", "episodic": "event", "archival": "fact"}
    if tier == "episodic" and ends is None:
        item["stability"] = "stable"
    return item | {"kind": kind or usual[tier]}


def _core(entry: dict[str, Any], item: dict[str, Any], run: ImportRun) -> dict[str, Any]:
    block = entry.get("block") or entry.get("block_type") or entry.get("label")
    if block == _PERSONA:
        return item | {"identity": True, "category": None, "confidence": None}
    if block not in run.mem.policy.core_keys:
        raise UnusableItem(f"a core block is one of {', '.join(run.mem.policy.core_keys)}")
    # A person reviewed the block there and reviews it again here, so no minimum confidence applies.
    return item | {"key": block, "confidence": None, "category": None}


def _end(entry: Mapping[str, Any], when: datetime | None) -> datetime | None:
    if entry.get("expires_at"):
        return parse_timestamp(entry["expires_at"])
    hours = entry.get("ttl_hours")
    return when + timedelta(hours=float(hours)) if hours and when is not None else None


def _references(provenance: Any) -> Iterator[str]:
    """Yield the references of a provenance: a text, an object with a type and a reference, or a list of these."""
    for each in provenance if isinstance(provenance, list) else [provenance]:
        if isinstance(each, dict):
            named = [str(each[name]) for name in ("type", "ref", "source", "id") if each.get(name)]
            yield ":".join(named[:2])
        elif isinstance(each, str) and each.strip():
            yield each.strip()


def _about(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry that a memory has no field for."""
    names = ("provenance", "quest_id", "task_id", "namespace", "ttl_hours", "commit_id", "receipt_id", "version")
    return {name: entry[name] for name in names if entry.get(name)}
