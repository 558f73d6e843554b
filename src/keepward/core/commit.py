"""Events, commits and receipts of the journal, the hash chain, and what an erasure leaves.

* The commits of a tenant are numbered from 1 without a gap. Commit n contains the hash of commit n-1; commit 1
  contains the empty hash.
* A header has no content: no text, no reason, no name that a user chose. It commits to each payload by a salted
  hash, so the chain still verifies after a payload was erased.
* The hash of a commit covers its header and, through ``events``, all its events in order.
* A receipt is stored in the transaction of its decision. It has no secret, and names memories by id and version,
  never by text.
* A tombstone contains nothing that a person wrote except its scope. Its fingerprints need a key outside the store.
* Erased content is named by its position: ``seq.n`` for an event, ``seq`` for the details of a commit.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from keepward.core.json_form import HexBytes, encode, safe_integer
from keepward.core.memory import Record, Status
from keepward.core.principals import Trust
from keepward.core.serialization import commitment, digest, tenant_digest
from keepward.core.value import Data, Instant, Value, to_micros
from keepward.errors import Tampered

#: The previous hash of commit 1.
EMPTY_HASH = bytes(32)
_EVENT_LABEL = b"keepward/event/v1\0"


class Event(Value):
    """One change of one memory."""

    seq: int
    #: Position within the commit, from 0.
    n: int
    op: str
    memory_id: str
    #: The new version.
    version: int
    #: 16 random bytes.
    salt: bytes
    #: Canonical record after the change; None if erased.
    payload: bytes | None
    #: SHA-256 of salt and payload.
    payload_commit: bytes

    def hash(self) -> bytes:
        """Return the 32-byte hash of the header, which has no content."""
        return event_hash(self.n, self.op, self.memory_id, self.version, self.payload_commit)


class Commit(Value):
    """One transaction of the journal."""

    id: str
    tenant: str
    seq: int
    at: Instant
    #: ``write``, ``approve``, ``rollback``, ``contain``, ``erase``, ``import``, ``job``.
    kind: str
    #: Kind of the actor, such as ``agent``; the name is in the details.
    actor_kind: str
    prev: HexBytes
    #: SHA-256 over the hashes of the events, in order.
    events_hash: HexBytes
    #: 16 random bytes; empty if erased.
    salt: HexBytes
    #: Canonical ``CommitDetails``; None if erased.
    payload: HexBytes | None
    hash: HexBytes
    #: SHA-256 of salt and payload, if these were erased.
    payload_commit: HexBytes | None = None

    def commitment(self) -> HexBytes:
        """Return the commitment to the details of the commit, which stays after their erasure."""
        if self.payload is None:
            return self.payload_commit or HexBytes()
        return HexBytes(commitment(self.salt, self.payload))


class CommitDetails(Data):
    """The content of a commit: actor, reason and the like."""

    actor: str
    reason: str
    receipt: str
    policy: str
    session: str | None = None
    #: Id of the approved proposal.
    proposal: str | None = None
    #: ``kind:name`` of the approver.
    approved_by: str | None = None
    #: Digest of the exact diff that was approved.
    approved_digest: str | None = None
    #: Ids of the commits that this one undoes.
    undoes: tuple[str, ...] = ()
    #: For an erasure: the positions of the erased content.
    erased: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return the canonical payload, without empty fields."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value not in (None, ())}
        return encode({"v": 1, **given})


def decode_details(payload: bytes) -> CommitDetails:
    """Return the details of a commit's payload.

    Raises:
        Tampered: ``CommitDetails.encode`` did not write it.
    """
    try:
        fields = msgspec.json.decode(payload, type=dict[str, Any])
        if fields["v"] != 1:
            raise Tampered("a commit is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        return msgspec.convert(fields, CommitDetails)
    except (KeyError, ValueError, RecursionError) as exc:
        raise Tampered("a commit's details are damaged; run `keepward verify`") from exc


class Step(Value):
    """One event before it is committed: the operation, the memory before and after."""

    op: str
    before: Record | None
    after: Record


class Head(Value):
    """The newest commit of a tenant; before the first commit, ``seq`` is 0 and the hash is empty."""

    seq: int
    hash: bytes

    @property
    def name(self) -> str:
        """``<seq>:<first 16 hex digits of the hash>``."""
        return f"{self.seq}:{self.hash.hex()[:16]}"


def event_hash(n: int, op: str, memory_id: str, version: int, payload_commit: bytes) -> bytes:
    """Return the hash of an event's header."""
    # In canonical order, and hashed in one call, for speed.
    header = {"memory": memory_id, "n": n, "op": op, "payload_commit": payload_commit.hex(), "version": version}
    return hashlib.sha256(_EVENT_LABEL + msgspec.json.encode(header)).digest()


def events_hash(events: tuple[Event, ...] | list[Event]) -> bytes:
    """Return the hash over the hashes of the events, in order."""
    return digest("events", *(event.hash() for event in events))


def commit_hash(commit: Commit) -> bytes:
    """Return the hash of a commit's header. It contains a digest of the tenant, whose name a person may have chosen."""
    header = {
        "actor": commit.actor_kind,
        "at": safe_integer(to_micros(commit.at)),
        "events": commit.events_hash.hex(),
        "id": commit.id,
        "kind": commit.kind,
        "payload_commit": commit.commitment().hex(),
        "prev": commit.prev.hex(),
        "seq": safe_integer(commit.seq),
        "tenant": tenant_digest(commit.tenant),
        "v": 1,
    }
    return digest("commit", encode(header))


def recompute_commit_hash(commit: Commit, events: list[Event]) -> bytes:
    """Return the hash that a commit with these events must have."""
    return commit_hash(replace(commit, events_hash=events_hash(events)))


ReceiptKind = Literal[
    "commit",
    "duplicate",
    "refusal",
    "quarantine",
    "approval",
    "rejection",
    "reopening",
    "rollback",
    "contain",
    "compile",
    "import",
    "job",
    "recall",
    "token",
    "erase",
]


class Reason(Value):
    """Why a gate decided as it did, or why a memory is not in a context."""

    #: Name of the gate or compiler step.
    gate: str
    #: Stable snake_case code.
    code: str
    #: One sentence for a person; never memory content.
    detail: str

    def as_dict(self) -> dict[str, str]:
        """Return the reason as JSON values."""
        return msgspec.structs.asdict(self)


class Receipt(Value):
    """The record of one decision."""

    id: str
    tenant: str
    kind: ReceiptKind
    at: Instant
    #: ``kind:name`` of the actor.
    actor: str
    #: Version of the policy in force.
    policy: str
    #: Name of the head after the decision.
    head: str
    reasons: tuple[Reason, ...] = ()
    #: JSON values specific to this kind of receipt.
    facts: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as JSON values."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "kind": self.kind,
            "at": self.at.isoformat(),
            "actor": self.actor,
            "policy": self.policy,
            "head": self.head,
            "reasons": [reason.as_dict() for reason in self.reasons],
            **self.facts,
        }


def receipt_from(fields: Mapping[str, Any]) -> Receipt:
    """Return the receipt of ``Receipt.as_dict``."""
    own = {name: fields[name] for name in Receipt.__struct_fields__ if name != "facts"}
    return msgspec.convert({**own, "facts": {name: fields[name] for name in fields if name not in own}}, Receipt)


def items_in(receipt: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the memories in the receipt of a recall or a context."""
    yield from receipt.get("items", ())
    for section in receipt.get("sections", ()):
        yield from section["items"]


#: Replaces an erased reason, digest or name.
ERASED = "[erased]"
#: Prefix of the aliases of a tombstone; other memories may not use it.
ERASED_ALIAS_PREFIX = "erased:"
#: Reasons of an erasure. They are codes, so that a reason cannot repeat erased content.
ErasureReason = Literal["request", "consent", "retention", "mistake", "secret", "other"]
#: The ``n`` of the details of a commit.
DETAILS = -1

EventPosition = tuple[int, int]
FingerprintKind = Literal["text", "folded", "name"]


def erasure_fingerprint(key: bytes, tenant: str, kind: FingerprintKind, content: bytes) -> str:
    """Return the keyed fingerprint of a normalized text's digest, or of an alias or reference.

    It is the first 16 bytes of HMAC-SHA256 over ``keepward/tombstone/v1``, the tenant, the kind and the content.
    """
    body = b"\0".join((b"keepward/tombstone/v1", tenant.encode(), kind.encode(), content))
    return f"{ERASED_ALIAS_PREFIX}{kind}:{hmac.digest(key, body, 'sha256')[:16].hex()}"


def erased_record(record: Record, version: int) -> Record:
    """Return a version of a memory without its content."""
    return Record(
        id=record.id,
        version=version,
        tier=record.tier,
        kind=record.kind,
        text="",
        scope=record.scope,
        source="unknown",
        trust=Trust.UNKNOWN,
        confidence=0.0,
        importance=0.0,
        status=Status.ERASED,
        author=record.author,
        text_by=record.text_by,
        created_at=record.created_at,
        text_at=record.text_at,
        updated_at=record.updated_at,
        reinforced_at=record.reinforced_at,
    )


def tombstone(record: Record, *, now: datetime, by: str, fingerprints: tuple[str, ...]) -> Record:
    """Return the last version of an erased memory; ``by`` is ``kind:name`` of the actor who erased it."""
    return replace(
        erased_record(record, record.version + 1),
        author=by,
        text_by=by,
        text_at=now,
        aliases=fingerprints,
        updated_at=now,
        reinforced_at=now,
    )


def format_event_position(position: EventPosition) -> str:
    """Return ``seq.n``, or ``seq`` for the details of a commit."""
    seq, n = position
    return str(seq) if n == DETAILS else f"{seq}.{n}"


def parse_event_position(name: str) -> EventPosition:
    """Return the position of its text.

    Raises:
        Tampered: ``format_event_position`` did not write it.
    """
    seq, dot, n = name.partition(".")
    try:
        position = (int(seq), int(n) if dot else DETAILS)
    except ValueError as exc:
        raise Tampered("an erasure names an invalid position; run `keepward verify`") from exc
    if format_event_position(position) != name:
        raise Tampered("an erasure names an invalid position; run `keepward verify`")
    return position


class ReceiptLine(Data):
    """The summary of a receipt; fields that do not apply are None."""

    id: str
    kind: str
    at: Instant
    actor: str
    head: str
    #: Id of its commit.
    commit: str | None
    #: For a context or a recall: the query, its purpose and scope.
    objective: str | None
    purpose: str | None
    scope: str | None
    #: For a context: ``context``, ``snapshot`` or ``memory_block``; its tokens and its budget.
    compiled: str | None
    tokens: int | None
    budget_tokens: int | None
    #: Number of memories shown, and of those left out.
    shown: int | None
    left_out: int | None


class ReceiptPage(Value):
    """Receipts, newest first."""

    items: tuple[ReceiptLine, ...]
    #: ``before`` of the next page; None at the end. A page before the end may be short or empty.
    before: str | None
    #: Ids of receipts that do not match their seals, which are not shown.
    damaged: tuple[str, ...] = ()
