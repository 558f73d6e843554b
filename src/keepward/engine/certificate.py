"""The certificate of an erasure: what went, when, by whom, from where, and what nobody can promise.

Invariants
(1) It holds no content: ids, places, and commitments that say nothing without the salt that went as well.
(2) ``commit`` holds all that the hash of the erasing commit covers, so that whoever has a copy of the journal can
    check with a SHA-256 library alone that it was made, and what it names; see docs/journal.md.
(3) One that is final is kept in the store and never changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepward.engine.kit import Kit, Who
from keepward.engine.learned import KEY as RERANKER
from keepward.engine.view import fetch
from keepward.errors import NotFound
from keepward.model.codec import digest
from keepward.model.commit import OWN, Commit, Event, decode_details, parse_place
from keepward.model.memory import Record
from keepward.model.value import to_micros

FORMAT = "keepward-erasure/1"
#: Kinds of kept texts: what went beside the journal, by the first memory; certificates, by commit.
COUNTS = "erasure"
CERTIFICATE = "certificate"
LIMITS = (
    "Copies of the store, of its exports and of its backups that were made elsewhere are out of reach.",
    "An older journal or backup that is brought back on this machine is held against the list of erasures.",
    "A disk that moves blocks (an SSD, a file system with snapshots) may keep old ones until it reuses them.",
    "Processes that recalled it may hold it in memory, and models and their hosts keep what they were given.",
    "Documents outside the store, such as an identity or user file, are their owner's to edit.",
    "Memories derived from it that were left in place, and those that say the same in other words, still say so.",
    "Names of scopes, tenants and actors stay; so do ids, times, and how many versions there were.",
)


def counts(
    receipts: Sequence[str],
    proposals: Sequence[str],
    artefacts: Sequence[tuple[str, str]],
    feedback: Sequence[int],
    blobs: Sequence[str],
) -> str:
    """Return, as JSON text, how much beside the journal an erasure cleaned."""
    weights = sum(1 for kind, _ in artefacts if kind == RERANKER)
    found = {
        "receipts": len(receipts),
        "proposals": len(proposals),
        "documents": len(artefacts) - weights,
        "feedback": len(feedback),
        "weights": weights,
        "blobs": len(blobs),
    }
    return json.dumps(found)


def erasures(kit: Kit, tenant: str) -> list[tuple[Commit, list[Event]]]:
    """Return the commits of a tenant that erased something, oldest first."""
    return [(commit, events) for commit, events in kit.store.events(tenant) if commit.kind == "erase"]


def find(kit: Kit, who: Who, name: str) -> tuple[Commit, list[Event]]:
    """Return the erasing commit of an erased memory, or by its own id, number or first letters.

    Raises:
        NotFound: nothing was erased under that name.
    """
    try:
        record: Record = fetch(kit, who, name)
        # A tombstone may have been lifted since.
        made = [view.commit.id for view, step in kit.store.history(who.tenant, record.id) if step.op == "erase"]
        name = made[-1] if made else name
    except NotFound:
        pass
    view = kit.store.commit(who.tenant, name)
    if view is None or view.commit.kind != "erase":
        raise NotFound("nothing was erased under that name; give an erased memory's id or the commit's")
    return at(kit, who.tenant, view.commit.seq)


def at(kit: Kit, tenant: str, seq: int) -> tuple[Commit, list[Event]]:
    """Return one commit with its events as stored."""
    rows = iter(kit.store.events(tenant, after=seq - 1))
    try:
        return next(rows)
    finally:
        close = getattr(rows, "close", None)
        if close is not None:
            close()


def entry(kit: Kit, commit: Commit, events: Sequence[Event]) -> dict[str, Any]:
    """Return what the list of erasures keeps of one."""
    names = decode_details(commit.payload or b"").erased
    places: list[list[Any]] = []
    held: tuple[int, Commit | None, dict[int, bytes]] = (0, None, {})
    for seq, n in sorted(parse_place(name) for name in names):
        if seq != held[0]:
            made, own = at(kit, commit.tenant, seq)
            held = (seq, made, {event.n: event.payload_commit for event in own})
        promise = held[1].commitment() if n == OWN and held[1] is not None else held[2][n]
        places.append([seq, n, promise.hex()])
    return {
        "entry": "erasure",
        "store": kit.store.store_id,
        "tenant": digest("tenant", commit.tenant.encode()).hex(),
        "commit": commit.id,
        "seq": commit.seq,
        "at": to_micros(commit.at),
        "memories": sorted(event.memory_id for event in events if event.op == "erase"),
        "places": places,
    }


def certificate(
    kit: Kit, commit: Commit, events: Sequence[Event], *, file: str, backups: Sequence[dict[str, str]]
) -> dict[str, Any]:
    """Return the certificate as JSON values. ``file`` and ``backups`` say in words how far they are clean."""
    details = decode_details(commit.payload or b"")
    told = entry(kit, commit, events)
    versions = sum(1 for _, n, _ in told["places"] if n != OWN)
    kept = kit.store.artefact(commit.tenant, COUNTS, events[0].memory_id) if events else None
    beside = json.loads(kept) if kept else {}
    return {
        "certificate": FORMAT,
        "store": told["store"],
        "tenant": told["tenant"],
        "at": commit.at.isoformat(),
        "by": details.actor,
        "reason": details.reason,
        "memories": told["memories"],
        "places": told["places"],
        "cleaned": {
            "versions": versions,
            "commit_details": len(told["places"]) - versions,
            "words_vectors_and_marks_of": len(told["memories"]),
            "receipts": beside.get("receipts"),
            "proposals": beside.get("proposals"),
            "kept_documents": beside.get("documents"),
            "feedback": beside.get("feedback"),
            "learned_weights": beside.get("weights"),
            "blobs": beside.get("blobs"),
            "file_and_log": file,
            "backups": list(backups),
        },
        "recognised_again": kit.erasures is not None and kit.erasures.key() is not None,
        "limits": list(LIMITS),
        "commit": {
            "id": commit.id,
            "seq": commit.seq,
            "at": to_micros(commit.at),
            "kind": commit.kind,
            "actor_kind": commit.actor_kind,
            "prev": commit.prev.hex(),
            "events": commit.events_hash.hex(),
            "details": (commit.payload or b"").decode(),
            "salt": commit.salt.hex(),
            "hash": commit.hash.hex(),
        },
    }
