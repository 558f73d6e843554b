"""Tables of other memories: a LangGraph store, a table of notes and a MemoryBank in SQLite, and blocks of PostgreSQL.

docs/howto/import-stores.md says how each part is imported. The columns of a table determine its format. Names of
columns may be written ``like_this`` or ``likeThis``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, Literal

from keepward.core.blob import MAX_BLOB_BYTES
from keepward.core.memory import CORE_BLOCKS
from keepward.core.messages import parse_timestamp
from keepward.core.value import parse_instant
from keepward.errors import InvalidInput
from keepward.integrations.namespaces import index_text, key_of, segment_of, texts_of, to_scope
from keepward.interchange.parsing import ImportSource, Row, parse, require_well_formed, rows
from keepward.interchange.records import item_of
from keepward.interchange.run import ImportRun
from keepward.interchange.sqlite_file import columns_in, rows_in
from keepward.services.writing.splitter import UnusableItem

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_Format = Literal["langgraph", "notes-table", "memory-bank"]
#: The usual name of a table, and the columns that identify it.
_TABLES: dict[_Format, tuple[str, frozenset[str]]] = {
    "langgraph": ("store", frozenset({"prefix", "key", "value"})),
    "notes-table": ("memory_notes", frozenset({"kind", "content", "stability"})),
    "memory-bank": ("memories", frozenset({"text", "content_type", "importance"})),
}


def detect(source: ImportSource) -> _Format:
    """Return the format of a SQLite file, by the columns of its tables."""
    tables = columns_in(source)
    for name, (_, wanted) in _TABLES.items():
        if any(there.issuperset(wanted) for there in tables.values()):
            return name
    kind = "holds checkpoints of a LangGraph graph and no store" if "checkpoints" in tables else "holds no store"
    raise InvalidInput(
        f"{source.name} {kind}: no table of it has the columns of a LangGraph store (prefix, key, value), of notes "
        "(kind, content, stability) or of a MemoryBank (text, content_type, importance); views and virtual tables are "
        "not read"
    )


def _rows_of(source: ImportSource, name: _Format) -> Iterator[dict[str, Any]]:
    usual, columns = _TABLES[name]
    return rows_in(source, columns, usual)


def _record(
    number: int, row: dict[str, Any], as_record: Callable[[dict[str, Any]], dict[str, Any]], run: ImportRun
) -> Iterator[Row]:
    """Yield the item of a row, which ``as_record`` makes a record."""
    named = {_CAMEL.sub(r"_\1", name).lower(): value for name, value in row.items()}
    try:
        record = as_record({name: value for name, value in named.items() if value not in (None, "")})
    except UnusableItem as exc:
        yield number, exc
        return
    also = {name: record.pop(name) for name in ("identity", "uses") if record.get(name)}
    for row_number, item in item_of(number, record, run):
        yield row_number, item | also if isinstance(item, dict) else item


def _value_of(text: Any) -> Any:
    """Return the value of a column with JSON; other text is a list of words separated by commas."""
    if not isinstance(text, str):
        return text
    try:
        return parse(text)
    except UnusableItem:
        return [each.strip() for each in text.split(",") if each.strip()]


# --- a store of LangGraph


def read_langgraph(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the items of a LangGraph store that have not expired; each goes to a scope below the handle's."""
    for number, row in enumerate(_rows_of(source, "langgraph"), 1):
        try:
            expires = row.get("expires_at")
            ends = None if expires is None else parse_instant(str(expires).replace(" ", "T", 1))
            if ends is not None and ends <= run.mem.now:
                run.skipped["items that expired"] += 1
                continue
            item = _stored_item(row["prefix"], row["key"], row["value"], run)
            yield number, item | {"ttl": None if ends is None else ends - run.mem.now}
        except UnusableItem as exc:
            yield number, exc
        except (ValueError, InvalidInput):
            yield number, UnusableItem("its time or name is damaged")


def _stored_item(prefix: object, key: object, value: object, run: ImportRun) -> dict[str, Any]:
    value = value.decode() if isinstance(value, bytes) else value
    if not (isinstance(prefix, str) and isinstance(key, str) and isinstance(value, str)):
        raise UnusableItem("an item has a namespace, a key and a value")
    fields = parse(value)
    if not isinstance(fields, dict):
        raise UnusableItem("the value of an item is an object")
    require_well_formed([prefix, key])
    text = index_text(texts_of(fields), run.mem.policy.text_limit["archival"])  # type: ignore[index]
    return {
        # An item without text is found by its key.
        "text": text if text.strip() else key,
        "key": key_of(key),
        "scope": to_scope(run.scope, prefix.split(".") if prefix else ()),
        "metadata": fields,
        "content_type": "structured",
        "tier": "archival",
        "kind": "fact",
        # A program goes on writing its own values.
        "access": "read_write",
        "name": f"langgraph:{prefix}:{key}",
    }


# --- a table of notes

#: Tier and kind of each kind of note. Souls become the identity.
_NOTE_KINDS: dict[str, dict[str, Any]] = {
    "log": {"tier": "episodic", "kind": "event"},
    "summary": {"tier": "episodic", "kind": "summary"},
    "rule": {"tier": "archival", "kind": "rule"},
    "soul": {"tier": "core", "kind": "identity", "identity": True},
}


def read_notes(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the notes that are neither expired nor superseded."""
    for number, row in enumerate(_rows_of(source, "notes-table"), 1):
        yield from _record(number, row, _note, run)


def _note(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("kind") not in _NOTE_KINDS:
        raise UnusableItem(f"the kind of a note is one of {', '.join(_NOTE_KINDS)}")
    names = ("expires_at", "superseded_by", "created_at", "user_id", "confidence", "stability", "sensitivity")
    about = {name: row[name] for name in ("scope", "job_id") if name in row}
    return {
        "id": str(row.get("id", "")),
        "text": row.get("content"),
        **{name: row[name] for name in names if name in row},
        "tags": _value_of(row.get("tags")),
        "evidence": _value_of(row.get("evidence")),
        "job": row.get("job_id"),
        "category": row["kind"],
        "metadata": {"note": about} if about else None,
        **_NOTE_KINDS[row["kind"]],
    }


# --- a MemoryBank


def read_memory_file(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the active memories, and their content in the folder ``blobs`` next to the file."""

    def as_record(row: dict[str, Any]) -> dict[str, Any]:
        record = {**row, "id": str(row.get("id", "")), "kind": row.get("kind") or "fact", "tier": "archival"}
        record |= {name: _value_of(row.get(name)) for name in ("tags", "metadata")}
        about = {name: record.pop(name) for name in ("source", "content_ref") if name in record}
        metadata = record["metadata"] if isinstance(record["metadata"], dict) else {}
        if "content_ref" in about:
            metadata = {"file": PurePath(str(about["content_ref"])).name, **metadata}
        record["metadata"] = {**metadata, "bank": about} if about else metadata
        uses, last = record.pop("access_count", 0), record.pop("last_accessed", None)
        record["uses"] = (uses, parse_timestamp(last)) if _is_count(uses) and last else None
        if "content_ref" in about:
            record |= _blob_of(str(about["content_ref"]), source.path, run)
        return record

    for number, row in enumerate(_rows_of(source, "memory-bank"), 1):
        yield from _record(number, row, as_record, run)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 < value < 1 << 31


def _blob_of(location: str, database: Path | None, run: ImportRun) -> dict[str, Any]:
    """Return the content of a memory as a blob; without it the description stays as a text."""
    root = database.resolve().parent if database is not None else None
    if root is not None:
        for file in ((root / location).resolve(), (root / "blobs" / location).resolve()):
            if file.is_relative_to(root) and file.is_file() and file.stat().st_size <= MAX_BLOB_BYTES:
                return {"blob": run.mem.put_blob(file.read_bytes()).ref} if run.storing else {}
    run.skipped["contents that are not in the folder of the database: their descriptions came as text"] += 1
    return {"content_type": "text"}


# --- blocks of PostgreSQL

_ACCESS = {"readonly": "read_only", "familiar": "approval", "append": "append", "readwrite": "read_write"}
_BLOCK_TIERS = {"core": ("archival", "fact"), "working": ("archival", "state"), "archival": ("archival", "fact")}
_PERSONA = CORE_BLOCKS[0]


def is_block(value: Any) -> bool:
    """Whether a JSON value is a row of the table of blocks."""
    return isinstance(value, dict) and {"owner", "label", "tier", "permission", "content"} <= value.keys()


def read_blocks(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read blocks as JSON rows; rows of other tables are skipped."""
    core_keys = run.mem.policy.core_keys

    def as_record(row: dict[str, Any]) -> dict[str, Any]:
        if row.get("tier") not in _BLOCK_TIERS or row.get("permission") not in _ACCESS:
            tiers, permissions = ", ".join(_BLOCK_TIERS), ", ".join(_ACCESS)
            raise UnusableItem(f"the tier of a block is one of {tiers}, its permission one of {permissions}")
        tier, kind = _BLOCK_TIERS[row["tier"]]
        pinned = row["tier"] == "core"
        label = str(row.get("label", ""))
        try:
            owner = f"/agents/{segment_of(str(row.get('owner', '')))}"
        except ValueError as exc:
            raise UnusableItem(f"its owner cannot be the name of a scope: {exc}") from exc
        return {
            "id": str(row.get("id", "")),
            "text": row.get("content"),
            "tier": "core" if pinned and label in core_keys else tier,
            "kind": kind,
            "scope": owner,
            "created_at": row.get("created_at"),
            **({"embedding": row["embedding"]} if "embedding" in row else {}),
            **(
                {"identity": True}
                if pinned and label == _PERSONA
                else {"key": label or None, "access": _ACCESS[row["permission"]]}
                | ({"stability": "permanent"} if pinned else {})
            ),
        }

    for number, row, _ in rows(source):
        if is_block(row):
            yield from _record(number, row, as_record, run)
        elif isinstance(row, dict):
            run.skipped["rows of other tables, such as events and mutations"] += 1
        else:
            yield number, row if isinstance(row, UnusableItem) else UnusableItem("a row is an object")
