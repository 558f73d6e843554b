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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keepward import durable
from keepward.core.change import Insert
from keepward.core.memory import Record, Tier
from keepward.core.messages import instant_of
from keepward.errors import InvalidInput, StoreUnavailable, Unauthorised
from keepward.interchange.reading import Flaw, Item, Plan, Source, parse, records, well_formed
from keepward.memory import session_of
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.memory import Memory

#: What a memory brings from one store to another as it is.
CARRIED = set(Insert.__struct_fields__) & set(Record.__struct_fields__) - {
    *("id", "source", "derived_from"),
}
#: What is left out of another store's memories.
ENDED = "memories that are not active"
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
    """Read memories as the API or another program gives them: a list, an object a line, or an answer that lists them.

    Parents come before what was made from them, in whatever order the file names them.
    """
    (total, rows), left = records(source, "items", "memories"), Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, row in _parents_first(rows):
            each = _entry(number, row, mem, left)
            if each is not None:
                yield each

    return Plan(total=total, entries=entries(), left=left)


def plan_note(properties: Mapping[str, Any], text: str, mem: Memory) -> Plan:
    """Read a note that is one memory."""
    left = Counter[str]()
    each = _entry(1, {**properties, "id": properties[ID], "text": text}, mem, left)
    return Plan(total=1, entries=iter(() if each is None else (each,)), left=left)


def review_of(tier: str, *, pinned: bool) -> Literal["no", "unless_owner", "always"]:
    """Return when a memory of another store waits for a person: core always does, what lasts unless the owner asks."""
    # A block that is there already must not be overwritten by a file without anybody looking.
    return "always" if tier == Tier.CORE else "unless_owner" if pinned else "no"


#: Fields by which programs say that a record is not active: false, true, or set to anything but null.
_FALSE = ("active", "is_active", "enabled")
_TRUE = ("archived", "is_archived", "deleted", "is_deleted", "inactive", "superseded", "disabled", "retired", "expired")
_SET = ("deleted_at", "archived_at", "retired_at", "superseded_at", "superseded_by", "invalid_at", "expired_at")
#: Where records name a date, a term, what they were made from, their vector and its model; the first one counts.
_WHEN = ("occurred_at", "created_at", "created", "timestamp", "date")
_ENDS = ("expires_at", "expiration_date", "valid_until")
_PARENTS = ("derived_from", "parent_id", "parent_ids", "parent", "parents")
_VECTOR, _MODEL = ("vector", "embedding"), ("embedding_model", "vector_model")
#: Fields that a read computes or that each store counts for itself; `list --json` names them.
_OF_THE_STORE = frozenset(
    {
        "id",
        "version",
        "status",
        "state",
        "reinforced_at",
        "children",
        "base_confidence",
        "base_importance",
    }
)
_READ = frozenset({*CARRIED, *_FALSE, *_TRUE, *_SET, *_WHEN, *_ENDS, *_PARENTS, *_VECTOR, *_MODEL, *_OF_THE_STORE, ID})
#: How often a file is read for parents that come after what was made from them.
_PASSES = 16
#: How many names of fields are listed among those left out, and what is listed as a name.
_NAMED, _NAME = 20, re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def _entry(number: int, row: Any, mem: Memory, left: Counter[str]) -> Item | Flaw | None:
    """Return what a memory asks for; None for one that is not active. What is left out is counted in ``left``."""
    try:
        if isinstance(row, Unusable):
            raise row
        if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not isinstance(row.get("text"), str):
            raise Unusable("a memory has an id and a text")
        well_formed(row)
        now, ends = mem.now, _instant(row, _ENDS)
        if _is_inactive(row) or (ends is not None and ends <= now):
            left[ENDED] += 1
            return None
        lists = {name: [*(row.get(name) or ())] for name in ("aliases", "evidence")}
        parents, when = _parents(row), _instant(row, _WHEN)
        given = {name: row[name] for name in sorted(CARRIED) if row.get(name) not in (None, [], {})}
        given |= {
            "metadata": row.get("metadata") or None,
            # A core block was judged by a person there, and is judged again here: its floor is not in question.
            "confidence": None if row.get("tier") == Tier.CORE else row.get("confidence"),
            "ttl": None if ends is None else ends - now,
            "occurred_at": when,
            "aliases": (row["id"], *lists["aliases"]),
            "evidence": (*lists["evidence"],),
        }
        given |= _vector(row, mem, left)
        _count_left(row, left)
        pinned = row.get("stability") == "permanent" or row.get("key") is not None
        review = review_of(str(row.get("tier")), pinned=pinned)
        return Item(number=number, fields=given, named=True, review=review, parents=parents)
    except (Unusable, InvalidInput, TypeError) as fault:
        return Flaw(number=number, reason=str(fault) if isinstance(fault, Unusable) else "a field of it is damaged")


def _is_inactive(row: Mapping[str, Any]) -> bool:
    """Whether a record says of itself, in one of the usual ways, that it is not active."""
    no, yes = (False, 0, "false", "no", "0"), (True, 1, "true", "yes", "1")
    status = str(row.get("status") or row.get("state") or "active").lower()
    return (
        status != "active"
        or any(row.get(name) is not None and row[name] in no for name in _FALSE)
        or any(row.get(name) is not None and row[name] in yes for name in _TRUE)
        or any(row.get(name) not in (None, "", False, 0) for name in _SET)
    )


def _instant(row: Mapping[str, Any], names: tuple[str, ...]) -> datetime | None:
    """Return the first of these fields that is set, as an instant."""
    value = next((row[name] for name in names if row.get(name) not in (None, "")), None)
    return None if value is None else instant_of(value)


def _parents(row: Mapping[str, Any]) -> tuple[str, ...]:
    named = [row[name] for name in _PARENTS if row.get(name)]
    flat = [each for value in named for each in (value if isinstance(value, list) else [value])]
    return tuple(dict.fromkeys(each for each in flat if isinstance(each, str) and each.strip()))


def _vector(row: Mapping[str, Any], mem: Memory, left: Counter[str]) -> dict[str, Any]:
    """Return the vector of a record where its model is this store's; vectors of different models cannot be compared."""
    vector = next((row[name] for name in _VECTOR if row.get(name)), None)
    if vector is None:
        return {}
    embedder = session_of(mem).embedder
    model = next((row[name] for name in _MODEL if row.get(name)), None)
    may = mem.actor.credential is None or mem.actor.is_owner
    fits = embedder is not None and may and isinstance(vector, list) and len(vector) == embedder.dim
    if embedder is not None and fits and model == embedder.id:
        return {"vector": vector}
    left["vectors of another model, or of none that is named: texts are embedded here"] += 1
    return {}


def _count_left(row: Mapping[str, Any], left: Counter[str]) -> None:
    """Count the fields of a record that have no place in an imported memory."""
    for name, value in row.items():
        if name in _READ or value in (None, "", 0, False, [], {}):
            continue
        listed = name if _NAME.fullmatch(name) and len(left) < _NAMED else "of other names"
        left[f"fields `{listed}`" if listed == name else f"fields {listed}"] += 1
    if row.get("occurred_at") and row.get("created_at") and row["occurred_at"] != row["created_at"]:
        left["fields `created_at`"] += 1


def _parents_first(read: Callable[[], Iterator[tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
    """Yield rows in passes over their file, each behind those that it was made from.

    In the last pass come those whose parents are made from themselves, or stand in too deep a row of descent.
    """
    numbers = {row["id"]: number for number, row in read() if isinstance(row, dict) and isinstance(row.get("id"), str)}
    done: set[int] = set()
    for last in (*[False] * (_PASSES - 1), True):
        waits = False
        for number, row in read():
            if number in done:
                continue
            at = {numbers.get(name, number) for name in (_parents(row) if isinstance(row, dict) else ())}
            if last or done.issuperset(at - {number}):
                done.add(number)
                yield number, row
            else:
                waits = True
        if not waits:
            return


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
