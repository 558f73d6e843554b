"""Memories as JSON objects and as notes: what the console, ``list --json`` and the API give, and a folder for Obsidian.

A note is one memory: its fields as properties, a JSON value each, and its text below. It lies in a folder that is named
as its scope. What it was derived from is among its links, so that Obsidian draws the lineage.

Invariants
(1) A note that was not edited gives the same text and fields again, to the character.
(2) What comes in is new here: under the old id as an alias, through the gates, with the trust of an import.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields as fields_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keepward import durable
from keepward.engine.parts import Unusable
from keepward.errors import InvalidInput, StoreUnavailable, Unauthorised
from keepward.interchange.reading import Flaw, Item, Plan, Source, parse, records, well_formed
from keepward.model.change import Insert
from keepward.model.memory import Record, Tier
from keepward.model.value import parse_instant

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.memory import Memory

#: What a memory brings from one store to another as it is.
CARRIED = {each.name for each in fields_of(Insert)} & {each.name for each in fields_of(Record)} - {
    *("id", "source", "derived_from"),
}
#: What is left out of another store's memories.
ENDED = "memories that no longer hold"
#: The property that holds the id of the memory that a note is.
ID = "keepward"
_MARK = "---"
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_LONGEST_FRONT = 65_536
_PROPERTY = re.compile(r"([^\s:#\-\[{\"'][^:\n]*):(?:[ \t]+(.*))?")
_ENTRY = re.compile(r"[ \t]*-[ \t]+(.*)")
_UNSAFE = re.compile(r"[^\w .,-]+")


def is_record(value: Any) -> bool:
    """Whether a JSON value is a memory as the API gives it, or an object that lists such."""
    if isinstance(value, dict) and "text" not in value:
        value = next(
            (value[name][0] for name in ("items", "memories") if isinstance(value.get(name), list) and value[name]),
            None,
        )
    return isinstance(value, dict) and {"id", "version", "tier", "kind", "text", "trust", "status"} <= value.keys()


def plan_records(source: Source, mem: Memory) -> Plan:
    """Read memories as the API gives them: a list, an object a line, or an answer that lists them."""
    rows, now, left = records(source, "items", "memories"), mem.now, Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, row in rows:
            each = _entry(number, row, now)
            left[ENDED] += each is None
            if each is not None:
                yield each

    return Plan(total=len(rows), entries=entries(), left=left)


def plan_note(properties: Mapping[str, Any], text: str, now: datetime) -> Plan:
    """Read a note that is one memory."""
    each = _entry(1, {**properties, "id": properties[ID], "text": text}, now)
    return Plan(total=1, entries=iter(() if each is None else (each,)))


def review_of(tier: str, *, pinned: bool) -> Literal["no", "unless_owner", "always"]:
    """Return when a memory of another store waits for a person: core always does, what lasts unless the owner asks."""
    # A block that is there already must not be overwritten by a file without anybody looking.
    return "always" if tier == Tier.CORE else "unless_owner" if pinned else "no"


def _entry(number: int, row: Any, now: datetime) -> Item | Flaw | None:
    """Return what a memory asks for; None for one that no longer holds."""
    try:
        if isinstance(row, Unusable):
            raise row
        if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not isinstance(row.get("text"), str):
            raise Unusable("a memory has an id and a text")
        well_formed(row)
        ends = parse_instant(row["expires_at"]) if row.get("expires_at") else None
        if row.get("status", "active") != "active" or (ends is not None and ends <= now):
            return None
        lists = {name: [*row.get(name, ())] for name in ("aliases", "evidence", "derived_from")}
        given = {name: row[name] for name in sorted(CARRIED) if row.get(name) not in (None, [], {})}
        given |= {
            "metadata": row.get("metadata") or None,
            # A core block was judged by a person there, and is judged again here: its floor is not in question.
            "confidence": None if row.get("tier") == Tier.CORE else row.get("confidence"),
            "ttl": None if ends is None else ends - now,
            "aliases": (row["id"], *lists["aliases"]),
            # What it was derived from is known here by its old id, if it came too.
            "evidence": (*lists["evidence"], *lists["derived_from"]),
        }
        pinned = row.get("stability") == "permanent" or row.get("key") is not None
        return Item(number=number, fields=given, named=True, review=review_of(str(row.get("tier")), pinned=pinned))
    except (Unusable, InvalidInput, TypeError) as fault:
        return Flaw(number=number, reason=str(fault) if isinstance(fault, Unusable) else "a field of it is damaged")


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the properties at the beginning of a note, and the text behind them.

    Read are texts, lists of texts and JSON values; what else YAML knows stays as it is written.
    """
    found = _FRONT.match(text[:_LONGEST_FRONT])
    if found is None:
        return {}, text
    properties: dict[str, Any] = {}
    name = ""
    for row in found[1].splitlines():
        if (entry := _ENTRY.fullmatch(row)) and name:
            listed = properties[name] if isinstance(properties[name], list) else []
            properties[name] = [*listed, _value(entry[1])]
        elif given := _PROPERTY.fullmatch(row):
            name = given[1].strip()
            properties[name] = _value(given[2] or "")
    return properties, text[found.end() :]


def _value(written: str) -> Any:
    written = written.strip()
    with suppress(Unusable):
        return parse(written)
    if written[:1] == "[" and written[-1:] == "]":
        return [_value(each) for each in written[1:-1].split(",") if each.strip()]
    return written[1:-1] if len(written) > 1 and written[0] == written[-1] == "'" else written


def write_notes(mem: Memory, folder: str | Path) -> int:
    """Write every live memory of the tenant as a note into a folder that is new or empty; return how many."""
    if not mem.actor.is_owner:
        raise Unauthorised("an export holds every scope of the tenant: open the store as its owner")
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise InvalidInput(f"{root.name} is not an empty folder: name one that is new")
    found = mem.find(within="/", limit=None, sort="created", ascending=True)
    names = {each.id: _name_of(each) for each in found}
    try:
        for each in found:
            path = root.joinpath(*names[each.id].split("/"))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with durable.fresh(path.with_name(path.name + ".md")) as out:
                out.write(_note(each, [names[name] for name in each.derived_from if name in names]).encode())
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {root.name}: {fault.strerror or 'output error'}") from fault
    return len(found)


def _name_of(record: Record) -> str:
    """Return the path of a note without its ending: the folders of its scope, its first words, the end of its id."""
    words = " ".join(_UNSAFE.sub(" ", record.key or record.text[:120]).split())[:60].strip(" .")
    return "/".join((*record.scope.strip("/").split("/"), f"{words or 'note'} {record.id[-8:]}")).lstrip("/")


def _note(record: Record, links: list[str]) -> str:
    values = record.to_dict()
    text = values.pop("text")
    given = {ID: values.pop("id"), **{name: value for name, value in values.items() if value not in (None, [], {})}}
    if links:
        given["links"] = [f"[[{each}]]" for each in links]
    rows = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    return "\n".join((_MARK, *rows, _MARK, "", f"{text}\n"))
