"""The lines of a vault file: one event each, to text and back.

People's fields come first; ``more`` holds the rest of the record, as its payload has it; ``seal``
commits to all of it. The first line of a commit carries the commit, the first of the file ``export``.

Invariants
(1) ``payload_of`` a written line gives the payload's own bytes, whatever schema they are in.
(2) A line never holds a raw line end, not even one that only some readers take for one.
(3) A line says nothing that its hashes do not cover: its fields are those of ``event_fields``, all and no more.
"""

from __future__ import annotations

import json
from typing import Any

from keepward.engine.learned import checked, named_in
from keepward.interchange.reading import Unusable
from keepward.model.codec import canonical, commitment
from keepward.model.commit import Commit, Event, Head, events_hash, recompute
from keepward.model.trust import parse_tenant
from keepward.model.value import parse_instant

FORMAT = "keepward-vault/1"
_FIRST = ("id", "version", "tier", "kind", "key", "scope", "text", "status")
#: What a reader wants to see, and what the payload leaves out when it is so.
_IMPLIED: dict[str, Any] = {"key": None, "status": "active"}
# Line ends to some readers, though not to JSON.
_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


def event_line(fields: dict[str, Any]) -> str:
    """Return the line with these fields, without a line end."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).translate(_BREAKS)


def event_fields(
    event: Event,
    commit: Commit | None,
    events: int = 0,
    export: dict[str, Any] | None = None,
    weights: str | None = None,
) -> dict[str, Any]:
    """Return the fields of one event's line.

    ``commit`` is given for the first event of a commit, which has ``events`` events in all; ``export``
    for the first line of the file; ``weights`` for the first that names these weights of the reranker.
    """
    line = _record_fields(event)
    line |= {"op": event.op, "seq": event.seq, "n": event.n}
    line |= {"salt": event.salt.hex(), "seal": event.payload_commit.hex()}
    if weights is not None:
        line["weights"] = weights
    if commit is not None:
        line["commit"] = {
            "id": commit.id,
            "at": commit.at.isoformat(),
            "kind": commit.kind,
            "actor_kind": commit.actor_kind,
            "events": events,
            **_details_fields(commit),
            "prev": commit.prev.hex(),
            "hash": commit.hash.hex(),
        }
    if export is not None:
        line["export"] = export
    return line


def _details_fields(commit: Commit) -> dict[str, Any]:
    if commit.payload is None:
        return {"erased": True, "seal": commit.commitment().hex()}
    return {"details": _open(commit.payload), "salt": commit.salt.hex()}


def export_fields(tenant: str, head: Head) -> dict[str, Any]:
    """Return what the first line says of the whole file."""
    return {"format": FORMAT, "tenant": tenant, "head": {"seq": head.seq, "hash": head.hash.hex()}}


def _record_fields(event: Event) -> dict[str, Any]:
    if event.payload is None:
        return {"id": event.memory_id, "version": event.version, "erased": True}
    record = json.loads(event.payload)
    line = {name: record.pop(name, _IMPLIED.get(name)) for name in _FIRST}
    line["more"] = record
    if payload_of(line) != event.payload:
        # Not in the form this version writes: carried as text, so that no byte changes.
        line = {name: line[name] for name in _FIRST} | {"payload": event.payload.decode()}
    return line


def payload_of(line: dict[str, Any]) -> bytes | None:
    """Return the record's canonical payload, None where it was erased."""
    if line.get("erased") is True:
        return None
    if "payload" in line:
        return str(line["payload"]).encode()
    more = line.get("more")
    if not isinstance(more, dict):
        raise Unusable("the fields of the record are missing")
    first = {name: line[name] for name in _FIRST if name in line}
    return canonical(more | {n: v for n, v in first.items() if n not in _IMPLIED or v != _IMPLIED[n]})


def _open(payload: bytes) -> Any:
    value = json.loads(payload)
    return value if canonical(value) == payload else payload.decode()


def tenant_of(line: dict[str, Any]) -> str:
    """Return the tenant that the first line of a file names.

    Raises:
        Unusable: it is not a first line, or of another format version.
    """
    export = line.get("export")
    if not isinstance(export, dict):
        raise Unusable("the beginning of the file is missing: its first line names no head")
    if export["format"] != FORMAT:
        raise Unusable("written by a newer Keepward; upgrade this one")
    if not isinstance(export["head"]["seq"], int) or len(bytes.fromhex(export["head"]["hash"])) != 32:
        raise Unusable("the head in the first line is damaged")
    return parse_tenant(export["tenant"])


def event_of(line: dict[str, Any], seq: int, n: int) -> Event:
    """Return the event of a line, which must stand at this place.

    Raises:
        Unusable: it stands elsewhere, or its content does not match its seal.
    """
    if (line["seq"], line["n"]) != (seq, n):
        raise Unusable(f"event {seq}.{n} is missing here: lines were taken out, added or moved")
    payload = payload_of(line)
    salt, seal = bytes.fromhex(line["salt"]), bytes.fromhex(line["seal"])
    if payload is not None and commitment(salt, payload) != seal:
        raise Unusable("the content does not match its seal: the line was changed")
    return Event(
        seq=seq,
        n=n,
        op=line["op"],
        memory_id=line["id"],
        version=line["version"],
        salt=salt,
        payload=payload,
        payload_commit=seal,
    )


def weights_in(line: dict[str, Any], payload: bytes | None) -> tuple[str, str] | None:
    """Return name and text of the weights that a line carries, None where it carries none.

    Raises:
        Unusable: they are not those that the line's record names by their SHA-256.
    """
    if "weights" not in line:
        return None
    name = None if payload is None else named_in(payload)
    try:
        if name is None:
            raise ValueError("it names no weights")
        checked(name, line["weights"])
    except (ValueError, TypeError) as fault:
        raise Unusable("the weights of the reranker are not those that the line names: the file was changed") from fault
    return name, line["weights"]


def commit_of(opening: dict[str, Any], tenant: str, seq: int, prev: bytes, events: list[Event]) -> Commit:
    """Return the commit of these events, which must follow the hash ``prev``.

    Raises:
        Unusable: it does not match its hash.
    """
    gone = opening.get("erased") is True
    details = None if gone else opening["details"]
    commit = Commit(
        id=opening["id"],
        tenant=tenant,
        seq=seq,
        at=parse_instant(opening["at"]),
        kind=opening["kind"],
        actor_kind=opening["actor_kind"],
        prev=bytes.fromhex(opening["prev"]),
        events_hash=events_hash(events),
        salt=b"" if gone else bytes.fromhex(opening["salt"]),
        payload=None if gone else details.encode() if isinstance(details, str) else canonical(details),
        hash=bytes.fromhex(opening["hash"]),
        payload_commit=bytes.fromhex(opening["seal"]) if gone else None,
    )
    if commit.prev != prev or recompute(commit, events) != commit.hash:
        raise Unusable(f"commit {seq} does not match its hash: the file was changed")
    return commit
