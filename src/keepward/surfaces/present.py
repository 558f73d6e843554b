"""Present: domain values as plain JSON values, the same for every surface.

Invariants
(1) Keys are a contract: a key may be added and is never renamed, retyped or dropped.
(2) Every value is text, a number, a boolean, null, a list or an object with text keys.
(3) Instants are ISO 8601 in UTC; scores and shares are numbers; what is absent is null, never left out.
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from keepward.domain.commit import CommitDetails, Step
from keepward.domain.memory import READ_FIELDS, Record
from keepward.domain.proposal import Outcome, Waiting
from keepward.domain.query import Hit, Recall
from keepward.domain.receipt import Reason

#: Fields that say who wrote which version when; a diff is about the rest.
_BOOKKEEPING = frozenset({"id", "version", "updated_at", "reinforced_at", "created_at", "author", *READ_FIELDS})
_PLAIN = frozenset({str, int, float, bool, type(None)})
_FIELDS = tuple(each.name for each in dataclasses.fields(Record))
#: Joiners that ordinary writing needs: Persian, Indic scripts, emoji.
_JOINERS = "\u200c\u200d"


def instant(at: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC."""
    return at.astimezone(UTC).isoformat() if at else None


def visible(text: str, *, joiners: bool = True) -> str:
    """Return text with control and invisible characters written out as `<U+202E>`.

    Line breaks and tabs stay. With `joiners` False the two joiners are written out as well, as a
    reviewer needs them. What comes out cannot move a terminal's cursor or hide a word.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(char):04X}>"
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        and char not in "\n\t"
        and not (joiners and char in _JOINERS)
        else char
        for char in text
    )


def counted(number: int, one: str, many: str) -> str:
    """Return `1 memory` or `3 memories`."""
    return f"{number} {one if number == 1 else many}"


def plain(value: Any) -> Any:
    """Return any domain value as JSON values: dataclasses by field, enums by name, instants by (3)."""
    match value:
        case None | bool() | int() | float():
            # An IntEnum, such as trust, has a name that people know.
            return getattr(value, "label", value)
        case str():
            return str(value)
        case datetime():
            return instant(value)
        case Record():
            return record(value)
        case Reason():
            return value.as_dict()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(plain(item) for item in value)
        case bytes():
            return value.hex()
        case _ if dataclasses.is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        case _:
            return str(value)


def record(item: Record) -> dict[str, Any]:
    """Return a memory, every field of it: confidence and importance as read, and as stored beside."""
    # Most fields are what they are already, and a page of memories has thousands of them.
    fields = {name: value if type(value := getattr(item, name)) in _PLAIN else plain(value) for name in _FIELDS}
    return {
        **fields,
        "base_confidence": item.stored_confidence,
        "base_importance": item.stored_importance,
        "metadata": item.metadata and json.loads(item.metadata),
    }


def reasons(items: Iterable[Reason]) -> list[dict[str, str]]:
    """Return reasons in the order in which they were given."""
    return [item.as_dict() for item in items]


def changed(before: Record | None, after: Record | None) -> list[dict[str, Any]]:
    """Return the fields that differ, in the order of `Record`, as {field, before, after}.

    Bookkeeping is left out. One side may be missing: the other side's fields that are not empty count.
    """
    old, new = (record(side) if side else {} for side in (before, after))
    names = [each.name for each in dataclasses.fields(Record) if each.name not in _BOOKKEEPING]
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in names
        if old.get(name) != new.get(name) and not (_empty(old.get(name)) and _empty(new.get(name)))
    ]


def step(item: Step) -> dict[str, Any]:
    """Return one event: what was done to which memory, both sides, and what differs."""
    return {
        "op": item.op,
        "id": item.after.id,
        "version": item.after.version,
        "before": item.before and record(item.before),
        "after": record(item.after),
        "changed": changed(item.before, item.after),
    }


def waiting(item: Waiting) -> dict[str, Any]:
    """Return a proposal in the review queue with its diff and what an approval is bound to."""
    return {
        "id": item.id,
        "state": item.state,
        "proposer": item.proposer.label,
        "reason": item.reason,
        "reasons": reasons(item.reasons),
        "diff": [step(each) for each in item.steps],
        "base": dict(item.base),
        "base_version": max(item.base.values(), default=0),
        "digest": item.digest,
        "created_at": instant(item.created_at),
        "expires_at": instant(item.expires_at),
        "decided_by": item.decided_by,
        "decision": item.decision,
        "decided_at": instant(item.decided_at),
    }


def outcome(result: Outcome) -> dict[str, Any]:
    """Return what became of a write.

    `id` and `version` are those of the memory written, proposed or found to be the same; null when
    refused. `proposal` is the id to approve when it waits.
    """
    records = [each.after for each in result.item.steps] if result.item else result.records
    first = records[0] if records else None
    return {
        "outcome": result.outcome,
        "id": first and first.id,
        "version": first and first.version,
        "commit": result.commit.id if result.commit else None,
        "proposal": result.item.id if result.item else None,
        "receipt": result.receipt.id,
        "reasons": reasons(result.reasons),
        "redacted": list(result.redacted),
        "tier": first and first.tier.value,
        "kind": first and first.kind.value,
        "key": first and first.key,
        "expires_at": instant(first.expires_at) if first else None,
        "memories": [{"id": each.id, "version": each.version} for each in records],
    }


def redaction(kinds: Iterable[str]) -> str:
    """Return the words that say what was replaced and how to keep it; empty where nothing was."""
    named = ", ".join(each.replace("_", " ") for each in kinds)
    return f"redacted: {named} (given with consent, it is kept)" if named else ""


def hit(item: Hit) -> dict[str, Any]:
    """Return one recalled memory."""
    memory = item.memory
    return {
        "rank": item.rank,
        "id": memory.id,
        "text": memory.text,
        "score": round(item.score, 6),
        "parts": {name: round(value, 6) for name, value in sorted(item.parts.items())},
        "tier": memory.tier.value,
        "kind": memory.kind.value,
        "key": memory.key,
        "scope": memory.scope,
        "trust": memory.trust.label,
        "source": memory.source,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "version": memory.version,
        "tags": list(memory.tags),
        "content_type": memory.content_type.value,
        "blob": memory.blob,
        "speaker": memory.speaker,
        "occurred_at": instant(memory.occurred_at),
        "created_at": instant(memory.created_at),
        "why": list(item.why),
    }


def recall(found: Recall) -> dict[str, Any]:
    """Return the answer to a query: how it was found, and the hits, best first."""
    return {
        "used": list(found.used),
        "notes": list(found.notes),
        "head": found.head,
        "now": instant(found.now),
        "hits": [hit(item) for item in found],
        "excluded": [{"id": name, "reason": why} for name, why in found.excluded],
        "reranker": found.reranker,
        "receipt": found.receipt,
        "withheld": list(found.withheld),
    }


def commit(view: Any) -> dict[str, Any]:
    """Return a commit without its events."""
    details: CommitDetails = view.details
    return {
        "id": view.commit.id,
        "seq": view.commit.seq,
        "at": instant(view.commit.at),
        "kind": view.commit.kind,
        "actor": details.actor,
        "reason": details.reason,
        "receipt": details.receipt,
        "policy": details.policy,
        "session": details.session,
        "proposal": details.proposal,
        "approved_by": details.approved_by,
        "undoes": list(details.undoes),
        "hash": view.commit.hash.hex(),
        "prev": view.commit.prev.hex(),
        "changes": [
            {"op": each.op, "id": each.after.id, "version": each.after.version, "tier": each.after.tier.value}
            for each in view.steps
        ],
    }


def difference(item: Any) -> dict[str, Any]:
    """Return how one memory differs between two states."""
    return {
        "id": item.id,
        "before": item.before and record(item.before),
        "after": item.after and record(item.after),
        "changed": changed(item.before, item.after),
    }


def _empty(value: Any) -> bool:
    return value in (None, [], "")
