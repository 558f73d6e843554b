"""The journal's values: events and commits and how they are linked, receipts, and what an erasure leaves.

Invariants
(1) A tenant's commits are numbered from 1 without a gap; commit n names the hash of commit n-1, and
    commit 1 the empty hash.
(2) A header holds no content: no text, no reason, no label a user chose. It commits to each payload
    by a salted hash, so that a payload can be erased while the chain still verifies.
(3) A commit's hash covers its header and, through ``events``, every event of it in order.
(4) A receipt is stored in the same transaction as what it tells of. It holds no secret, and names memories by id and
    version, never by their text.
(5) A tombstone holds nothing a person typed but its scope. Its marks say nothing without the key, which is never in
    the store.
(6) What an erasure destroyed is named by places: ``seq.n`` for an event's content, ``seq`` for a commit's own.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from keepward.core.memory import Record, Status
from keepward.core.principals import Trust
from keepward.core.serialization import canonical, commitment, digest, encode, safe_integer, tenant_digest
from keepward.core.value import Data, Value, to_micros
from keepward.errors import Tampered

#: What commit 1 names as the hash before it.
EMPTY_HASH = bytes(32)
_EVENT_LABEL = b"keepward/event/v1\0"


class Event(Value):
    """One change as it happened to one memory."""

    seq: int
    #: Position within the commit, from 0.
    n: int
    op: str
    memory_id: str
    #: Version that the event made.
    version: int
    #: 16 random bytes.
    salt: bytes
    #: Canonical record after the change; None once erased.
    payload: bytes | None
    #: SHA-256 of salt and payload.
    payload_commit: bytes

    def header(self) -> bytes:
        """Return the canonical content-free header.

        Raises:
            InvalidInput: it has no canonical form.
        """
        return canonical(_event_header(self.n, self.op, self.memory_id, self.version, self.payload_commit))

    def hash(self) -> bytes:
        """Return the 32-byte hash of the header."""
        return digest("event", self.header())


class Commit(Value):
    """The atomic unit of the journal."""

    id: str
    tenant: str
    seq: int
    at: datetime
    #: ``write``, ``approve``, ``rollback``, ``contain``, ``import``, ``job``.
    kind: str
    #: Kind of the actor, such as ``agent``; the name is in the details.
    actor_kind: str
    prev: bytes
    #: SHA-256 over the hashes of the events, in order.
    events_hash: bytes
    #: 16 random bytes; none once erased.
    salt: bytes
    #: Canonical ``CommitDetails``; None once erased.
    payload: bytes | None
    hash: bytes
    #: SHA-256 of salt and payload, where these were erased.
    payload_commit: bytes | None = None

    def commitment(self) -> bytes:
        """Return the commitment to the commit's own content, which outlives it."""
        if self.payload is None:
            return self.payload_commit or b""
        return commitment(self.salt, self.payload)


class CommitDetails(Data, omit_defaults=True):
    """What a commit says about itself beyond its content-free header."""

    actor: str
    reason: str
    receipt: str
    policy: str
    session: str | None = None
    #: Id of the proposal this commit carries out.
    proposal: str | None = None
    #: ``kind:name`` of who approved it.
    approved_by: str | None = None
    #: Digest of the exact diff that was approved.
    approved_digest: str | None = None
    #: Ids of the commits this one undoes.
    undoes: tuple[str, ...] = ()
    #: Of an erasure: the places whose content it destroyed, see the invariants of this module.
    erased: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return the canonical payload."""
        return encode({"v": 1, **msgspec.to_builtins(self)})


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
    except (KeyError, ValueError) as exc:
        raise Tampered("a commit's details are damaged; run `keepward verify`") from exc


class Step(Value):
    """One event to be: what changed, from what, to what."""

    op: str
    before: Record | None
    after: Record


class Head(Value):
    """The newest commit of a tenant; ``seq`` 0 and the empty hash before the first."""

    seq: int
    hash: bytes

    @property
    def name(self) -> str:
        """``<seq>:<first 16 hex digits of the hash>``, short enough to compare by eye."""
        return f"{self.seq}:{self.hash.hex()[:16]}"


def event_hash(n: int, op: str, memory_id: str, version: int, payload_commit: bytes) -> bytes:
    """Return the hash of an event's header."""
    header = msgspec.json.encode(_event_header(n, op, memory_id, version, payload_commit))
    return hashlib.sha256(_EVENT_LABEL + header).digest()


def _event_header(n: int, op: str, memory_id: str, version: int, payload_commit: bytes) -> dict[str, Any]:
    # Its keys are in the order of ``canonical``, which ``event_hash`` leaves out: it is asked for every row.
    return {"memory": memory_id, "n": n, "op": op, "payload_commit": payload_commit.hex(), "version": version}


def events_hash(events: tuple[Event, ...] | list[Event]) -> bytes:
    """Return the hash over the events' hashes, in order."""
    return digest("events", *(event.hash() for event in events))


def commit_hash(commit: Commit) -> bytes:
    """Return the hash of a commit's header. The tenant enters as a hash, since people choose its name."""
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
    """Return the hash that a commit with these events must carry."""
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
    """Why a gate decided as it did, or why an item stayed out of a context."""

    #: Name of the gate or compiler step.
    gate: str
    #: Stable snake_case code.
    code: str
    #: One sentence for a person; never memory content.
    detail: str

    def as_dict(self) -> dict[str, str]:
        """Return the reason as plain values."""
        return msgspec.structs.asdict(self)


class Receipt(Value):
    """One decision."""

    id: str
    tenant: str
    kind: ReceiptKind
    at: datetime
    #: ``kind:name`` of who asked.
    actor: str
    #: Version of the policy that decided.
    policy: str
    #: Name of the head after the decision.
    head: str
    reasons: tuple[Reason, ...] = ()
    #: JSON-safe facts of this kind of receipt.
    facts: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as plain JSON values."""
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
    """Return the receipt that ``Receipt.as_dict`` gave."""
    own = {name: fields[name] for name in Receipt.__struct_fields__ if name != "facts"}
    return msgspec.convert({**own, "facts": {name: fields[name] for name in fields if name not in own}}, Receipt)


def items_in(receipt: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the receipt of a recall or a context says of each memory that it shows."""
    yield from receipt.get("items", ())
    for section in receipt.get("sections", ()):
        yield from section["items"]


#: Stands where a reason, a digest or a name stood.
ERASED = "[erased]"
#: What the aliases of a tombstone begin with; no memory may be given such a name.
ERASED_ALIAS_PREFIX = "erased:"
#: Why something is erased: a code, so that the reason repeats nothing.
ERASURE_REASONS = ("request", "consent", "retention", "mistake", "secret", "other")
#: n of a commit's own content among its events.
DETAILS = -1

EventPosition = tuple[int, int]
FingerprintKind = Literal["text", "name"]


def erasure_fingerprint(key: bytes, tenant: str, sort: FingerprintKind, content: bytes) -> str:
    """Return the keyed mark of a text's normalised digest, or of an alias or reference.

    The first 16 bytes of HMAC-SHA256 over ``keepward/tombstone/v1``, the tenant's name, the sort, and the content.
    """
    body = b"\0".join((b"keepward/tombstone/v1", tenant.encode(), sort.encode(), content))
    return f"{ERASED_ALIAS_PREFIX}{sort}:{hmac.digest(key, body, 'sha256')[:16].hex()}"


def erased_record(record: Record, version: int) -> Record:
    """Return a version of a memory without anything it said; see (5)."""
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
        created_at=record.created_at,
        updated_at=record.updated_at,
        reinforced_at=record.reinforced_at,
    )


def tombstone(record: Record, *, now: datetime, by: str, marks: tuple[str, ...]) -> Record:
    """Return the last version of an erased memory; ``by`` is ``kind:name`` of who erased it."""
    return replace(
        erased_record(record, record.version + 1), author=by, aliases=marks, updated_at=now, reinforced_at=now
    )


def format_event_position(place: EventPosition) -> str:
    """Return ``seq.n``, or ``seq`` for a commit's own content."""
    seq, n = place
    return str(seq) if n == DETAILS else f"{seq}.{n}"


def parse_event_position(name: str) -> EventPosition:
    """Return the place of a name.

    Raises:
        Tampered: ``format_event_position`` did not write it.
    """
    seq, dot, n = name.partition(".")
    try:
        place = (int(seq), int(n) if dot else DETAILS)
    except ValueError as fault:
        raise Tampered("an erasure names what is no place; run `keepward verify`") from fault
    if format_event_position(place) != name:
        raise Tampered("an erasure names what is no place; run `keepward verify`")
    return place


class ReceiptLine(Data):
    """A receipt in one line; what a field does not apply to is None."""

    id: str
    kind: str
    at: datetime
    actor: str
    head: str
    #: Id of the commit that it is of.
    commit: str | None
    #: Of a context or a recall: what was asked, for what, where.
    objective: str | None
    purpose: str | None
    scope: str | None
    #: Of a context: ``context``, ``snapshot`` or ``memory_block``; its tokens, and of how many.
    compiled: str | None
    tokens: int | None
    budget_tokens: int | None
    #: How many memories it shows, and how many were left out.
    shown: int | None
    left_out: int | None


class ReceiptPage(Value):
    """Receipts, newest first."""

    items: tuple[ReceiptLine, ...]
    #: What to give as ``before`` to go on; None at the end. A page may be short, or empty, and go on all the same.
    before: str | None
