"""Documents: sealed rows of one table for everything outside the journal.

Receipts, proposals, texts that receipts name, uses, feedback, tokens, blobs, jobs and erasures are documents. One has a
kind, an id, optionally a state and an actor for look-ups, instants, the names that it refers to, and a body.

Invariants
(1) A document whose seal does not match is not used: write access to the database is not enough to forge a token,
    receipt or proposal. A list leaves it out and logs it; a read by id is refused.
(2) Every change of a document updates the tenant's sum in the same transaction; see ``tenant.py``.
(3) StoredToken hashes are compared completely and in constant time; the index is queried with their first 4 bytes.
(4) Feedback of a tenant is numbered from 1 without a gap. A second feedback of one actor on one receipt replaces the
    first under the same number.
(5) Rows of ``links`` are computed from records: they can be recomputed, and count only if the record agrees.
(6) The names that a document refers to are stored when it is written, so that no read searches its body for them.
"""

from __future__ import annotations

import heapq
import hmac
import json
import logging
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from keepward.core.blob import StoredBlob
from keepward.core.commit import EventPosition, Receipt
from keepward.core.evidence import CitedSources
from keepward.core.job import JobRow
from keepward.core.json_form import decode, encode, from_json
from keepward.core.principals import StoredToken, Trust, principal_of
from keepward.core.proposal import Proposal, proposal_from_dict, proposal_to_dict
from keepward.core.query import Feedback
from keepward.core.value import to_micros
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Tampered
from keepward.ports.store import MIN_ID_PREFIX
from keepward.storage.rows import json_array
from keepward.storage.seals import Sealer
from keepward.storage.sql import MAX_CHARACTER, SQL, Connection, Snapshot, prefix_range
from keepward.storage.tenant import TenantHead

_HASH_PREFIX_CHARS = 8
#: Most bytes of a receipt.
_MAX_RECEIPT_BYTES = 64_000_000
_BAD_SEAL_WARNING = "a row of %s does not match its seal and was left out: %s"
_DELIVERED = "handed"
#: States of receipts that may be compacted: ``handed`` for low-trust deliveries, ``whole`` for other contexts.
_COMPACTABLE_STATES = (_DELIVERED, "whole")
_log = logging.getLogger(__name__)
#: Id, whether the seal matches, and body.
_Receipt = tuple[str, bool, bytes]
_One = TypeVar("_One")
_Reading = Callable[[], AbstractContextManager[Connection]]
#: The method ``list`` hides the built-in type.
_Values = list
_CheckTenants = Callable[[Iterable[str]], None]
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


class StoredDocument(NamedTuple):
    """One row, in the order of its columns."""

    tenant: str
    kind: str
    id: str
    #: The state of a proposal, the hash of a token, the number of feedback, or what is still to be done with uses and
    #: receipts; None for documents that are only read by id.
    state: str | None
    #: The principal who made a proposal.
    actor: str | None
    at: int
    #: When it expires; None for a proposal whose proposer was notified of its failure.
    until: int | None
    #: Sorted JSON list of the ids and names that it refers to; None if no read needs them.
    refs: str | None
    body: bytes
    seal: bytes = b""

    def sealed(self, sealer: Sealer) -> StoredDocument:
        return self._replace(seal=sealer.row(self.kind, *self[:-1]))

    def has_valid_seal(self, sealer: Sealer) -> bool:
        """Whether its seal matches."""
        return sealer.matches_row(self.seal, self.kind, *self[:-1])

    def json(self) -> dict[str, Any]:
        """Return the body.

        Raises:
            Tampered: it is invalid. Only an unsealed store returns such a row.
        """
        return parse_body(self.kind, self.body)


class ReceiptArtefact(NamedTuple):
    """A text that receipts name, so that a context can be replayed. The first text of a version stays."""

    tenant: str
    kind: str
    version: str
    text: str


#: Documents with a type of their own.
DocumentValue: TypeAlias = Proposal | Feedback | StoredToken | JobRow | StoredBlob | CitedSources | ReceiptArtefact
KINDS: dict[type[Any], str] = {
    Proposal: "proposals",
    Feedback: "feedback",
    StoredToken: "tokens",
    JobRow: "jobs",
    StoredBlob: "blobs",
    CitedSources: "sources",
    ReceiptArtefact: "artefacts",
}
_T = TypeVar("_T", bound=DocumentValue)


def parse_body(kind: str, body: bytes) -> dict[str, Any]:
    """Return the body of a document; raise Tampered if it is invalid."""
    try:
        value = json.loads(decompress_body(body))
    except (ValueError, RecursionError, zlib.error) as exc:
        raise Tampered(f"a row of {kind} is damaged; run `keepward verify`") from exc
    if not isinstance(value, dict):
        raise Tampered(f"a row of {kind} is damaged; run `keepward verify`")
    return value


def compress_body(body: bytes) -> bytes:
    """Compress the body of a receipt, for a context to about a quarter."""
    return zlib.compress(body, 6)


def decompress_body(body: bytes) -> bytes:
    """Return a body as JSON text; decompress that of a receipt."""
    if body[:1] != b"x":
        return body
    reader = zlib.decompressobj()
    found = reader.decompress(body, _MAX_RECEIPT_BYTES)
    if not reader.eof:
        raise zlib.error("the body is cut off, or larger than any receipt")
    return found


def encode_body(value: object) -> bytes:
    """Encode a value as a body; raise InvalidInput if it is not JSON."""
    try:
        return _encode(value).encode()
    except (TypeError, ValueError) as exc:
        raise InvalidInput("the facts of a receipt must be JSON without NaN, infinity or lone surrogates") from exc


def names_in(names: Iterable[str | None]) -> str:
    """Return the names that a document refers to, as its column stores them."""
    return _encode(sorted({name for name in names if name is not None}))


def document_of(value: DocumentValue) -> StoredDocument:
    """Return the unsealed document of a value. The body is the complete value; the columns repeat parts of it."""
    at: datetime | None = None
    until: datetime | None = None
    state: str | None = None
    actor: str | None = None
    refs: str | None = None
    match value:
        case Proposal():
            name, state, actor, at = value.id, value.state, principal_of(value.proposer), value.created_at
            until = None if value.told else value.expires_at
            refs = names_in(_ids_in_proposal(value))
        case Feedback():
            name, state, at = f"{value.receipt} {value.actor}", f"{value.n:012}", value.at
            refs = names_in((value.receipt, *value.used, *value.ignored))
        case StoredToken():
            name, state, at, until = value.id, value.hash.hex(), value.created_at, value.expires_at
        case JobRow():
            name, until = value.job, value.until
        case StoredBlob():
            name, at = value.blob.ref, value.at
        case CitedSources():
            name, at = value.id, value.at
        case ReceiptArtefact():
            name = f"{value.kind}/{value.version}"
    began, ends = 0 if at is None else to_micros(at), None if until is None else to_micros(until)
    if isinstance(value, ReceiptArtefact):
        body = value.text.encode()
    else:
        body = encode(proposal_to_dict(value) if isinstance(value, Proposal) else value)
    return StoredDocument(value.tenant, KINDS[type(value)], name, state, actor, began, ends, refs, body)


def _ids_in_proposal(item: Proposal) -> Iterator[str | None]:
    """Yield the memories that a proposal is about, and the names in those."""
    for step in item.steps:
        for record in (step.before, step.after):
            if record is not None:
                yield from (record.id, record.blob, *record.aliases, *record.evidence, *record.derived_from)


def value_of(kind: type[_T], document: StoredDocument) -> _T:
    """Return the value of a document that ``document_of`` made.

    Raises:
        Tampered: another function made it. Only an unsealed store returns such a row.
    """
    found: Any
    try:
        if kind is Proposal:
            found = proposal_from_dict(document.json())
        elif kind is ReceiptArtefact:
            named, version = document.id.split("/", 1)
            found = ReceiptArtefact(document.tenant, named, version, document.body.decode())
        elif kind is Feedback and isinstance(rank := document.json()["trust"], int):
            # Earlier versions stored the position of a trust.
            found = from_json(Feedback, {**document.json(), "trust": tuple(Trust)[rank].label})
        else:
            found = decode(kind, document.body)
    except (KeyError, ValueError, TypeError) as exc:
        raise Tampered(f"a row of {document.kind} is damaged; run `keepward verify`") from exc
    return found  # type: ignore[no-any-return]


def values_of(kind: type[_T], documents: Iterable[StoredDocument]) -> list[_T]:
    """Return the values of documents; an unreadable one is left out and logged."""
    values = []
    for document in documents:
        try:
            values.append(value_of(kind, document))
        except Tampered as exc:
            _log.warning("%s was left out: %s", document.id, exc, extra={"action": "damaged"})
    return values


#: Conditions that narrow a list of documents.
_CONDITIONS = {
    "tenant": "tenant = :tenant",
    "id": "id = :id",
    "ids": "id IN (SELECT value FROM json_each(:ids))",
    "low": "id >= :low",
    "high": "id < :high",
    "state": "state = :state",
    "actor": "actor = :actor",
    "refs": "EXISTS (SELECT 1 FROM json_each(documents.refs) AS named"
    " WHERE named.value IN (SELECT value FROM json_each(:refs)))",
    "live_at": "until > :live_at",
}


def select_verified(db: Connection, sealer: Sealer, name: str, **values: Any) -> Iterator[StoredDocument]:
    """Yield the documents of a named statement whose seals match."""
    return verified(map(StoredDocument._make, db.stream(name, **values)), sealer)


def verified(documents: Iterable[StoredDocument], sealer: Sealer) -> Iterator[StoredDocument]:
    """Yield the documents whose seals match; log the others."""
    for document in documents:
        if document.has_valid_seal(sealer):
            yield document
        else:
            _log.warning(_BAD_SEAL_WARNING, document.kind, document.id, extra={"action": "damaged"})


def receipts_in(db: Connection, sealer: Sealer, tenant: str, which: str, **asked: Any) -> list[Iterator[_Receipt]]:
    """Return receipts of commits, and all others: ``which`` is ``between`` two ids, or ``before`` one."""
    raw = tenant.encode()
    rows = db.run(f"commit_receipts_{which}", tenant=tenant, **asked)
    own = ((row[0], sealer.matches_commit(row[3], raw, row[1], row[2], row[4]), row[4]) for row in rows)
    rows = db.run(f"documents_{which}", tenant=tenant, kind="receipts", **asked)
    return [own, ((each.id, each.has_valid_seal(sealer), each.body) for each in map(StoredDocument._make, rows))]


def _bodies(receipts: Iterable[_Receipt]) -> Iterator[dict[str, Any]]:
    """Yield the bodies of receipts whose seal matches."""
    for name, matches, body in receipts:
        if matches:
            yield parse_body("receipts", body)
        else:
            _log.warning(_BAD_SEAL_WARNING, "receipts", name, extra={"action": "damaged"})


def _only(what: str, found: Sequence[_One], matches: Callable[[_One], bool]) -> _One | None:
    """Return the only match for an id or its prefix, after checking its seal; None without a match."""
    if len(found) > 1:
        raise InvalidInput(f"more than one {what} begins so; give more of its id")
    if found and not matches(found[0]):
        raise Tampered(f"the {what} does not match its seal; run `keepward verify`")
    return found[0] if found else None


class Repository(Generic[_T]):
    """The documents of one kind as values, of one tenant or of all."""

    def __init__(
        self, kind: type[_T], tenant: str | None, sealer: Sealer, reading: _Reading, check_tenants: _CheckTenants
    ) -> None:
        """``reading`` opens a snapshot. ``check_tenants`` checks the tenants of a read across all tenants."""
        self._kind, self._name, self._tenant = kind, KINDS[kind], tenant
        self._sealer, self._reading, self._check_tenants = sealer, reading, check_tenants

    def get(self, name: str, *, prefix: bool = False) -> _T | None:
        """Return the value with an id, or with ``prefix`` the only one whose id starts with it; None without a match.

        Raises:
            Tampered: its seal does not match.
            InvalidInput: several ids start with it.
        """
        rows = self.rows(id=name)
        if not rows and prefix and len(name) >= MIN_ID_PREFIX:
            rows = self.rows(**prefix_range(name))
        one = _only(self._name.removesuffix("s"), rows, lambda each: each.has_valid_seal(self._sealer))
        return None if one is None else value_of(self._kind, one)

    def list(self, *, strict: bool = False, **asked: Any) -> _Values[_T]:
        """Return values by instant and id. ``asked`` are names of ``_CONDITIONS``; None sets no condition.

        A document whose seal does not match is left out and logged.

        Raises:
            Tampered: ``strict``, and a seal does not match.
        """
        rows = self.rows(**asked)
        if strict and not all(row.has_valid_seal(self._sealer) for row in rows):
            raise Tampered(f"a row of {self._name} does not match its seal; run `keepward verify`")
        values = values_of(self._kind, verified(rows, self._sealer))
        self._check_tenants(value.tenant for value in values)
        return values

    def count(self, *, most: int, **asked: Any) -> int:
        """Return how many have a matching seal, at most ``most``."""
        return sum(1 for _ in islice(verified(self.rows(**asked), self._sealer), most))

    def rows(self, **asked: Any) -> Sequence[StoredDocument]:
        """Return documents without checking their seals; see ``list``."""
        given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        given |= {name: json_array(given[name]) for name in ("ids", "refs") if name in given}
        given |= {"actor": principal_of(given["actor"])} if "actor" in given else {}
        if self._tenant is not None:
            given["tenant"] = self._tenant
        where = " AND ".join([SQL["of_kind"], *(_CONDITIONS[name] for name in given if name in _CONDITIONS)])
        with self._reading() as db:
            found = db.execute(
                f"{SQL['select_documents']} WHERE {where} ORDER BY at, id", {"kind": self._name, **given}
            ).fetchall()
        return [StoredDocument._make(row) for row in found]


class DocumentReads(Snapshot):
    """Reads of documents; a part of ``StoreReader``."""

    def documents(self, kind: type[_T], tenant: str | None) -> Repository[_T]:
        """Return the documents of a kind, of one tenant or of all."""
        reading: _Reading = self._everywhere
        if tenant is not None:
            # An audit runs even if the journal is damaged.
            reading = partial(self._reading_unchecked if kind is JobRow else self._reading, tenant)
        return Repository(
            kind, tenant, self._sealer, reading, self._check_tenants if tenant is None else lambda _: None
        )

    def _check_tenants(self, tenants: Iterable[str]) -> None:
        """Compare tenants with the anchor: an older copy may contain tokens that were revoked since."""
        for tenant in sorted(set(tenants)):
            with self._reading(tenant):
                pass

    def receipt(self, tenant: str, receipt_id: str) -> dict[str, Any] | None:
        """Return a receipt as it was stored, by id or unique prefix.

        Raises:
            Tampered: its seal does not match.
            InvalidInput: several ids start with it.
        """
        with self._reading(tenant) as db:
            one = {"low": receipt_id, "high": f"{receipt_id} "}
            found = [*chain(*receipts_in(db, self._sealer, tenant, "between", **one))]
            if not found and len(receipt_id) >= MIN_ID_PREFIX:
                found = [*chain(*receipts_in(db, self._sealer, tenant, "between", **prefix_range(receipt_id)))]
        found_receipt = _only("receipt", found, lambda each: each[1])
        return None if found_receipt is None else parse_body("receipts", found_receipt[2])

    def receipts(self, tenant: str, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield every receipt whose seal matches and whose id begins with a text, by id."""
        with self._reading(tenant) as db:
            yield from _bodies(heapq.merge(*receipts_in(db, self._sealer, tenant, "between", **prefix_range(prefix))))

    def receipts_of_commits(self, tenant: str, seqs: Iterable[int]) -> list[dict[str, Any]]:
        """Return the receipts of some commits; one whose seal does not match is left out and logged."""
        raw, rows = tenant.encode(), self._run("commit_receipts_at", tenant, seqs=str(sorted(seqs)))
        own = ((row[0], self._sealer.matches_commit(row[3], raw, row[1], row[2], row[4]), row[4]) for row in rows)
        return list(_bodies(own))

    def receipt_texts(
        self, tenant: str, *, above: str = "", ids: Collection[str] | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """Yield id and JSON text of the receipts without a commit, by id: those above an id, or only some.

        Raises:
            Tampered: one is damaged. One whose seal does not match is left out and logged.
        """
        given: dict[str, Any] = {"tenant": tenant, "kind": "receipts"}
        which, chosen = "documents_between", {"low": f"{above} ", "high": MAX_CHARACTER}
        if ids is not None:
            which, chosen = "documents_by_id", {"ids": json_array(ids)}
        with self._reading(tenant) as db:
            for row in select_verified(db, self._sealer, which, **given, **chosen):
                try:
                    yield row.id, decompress_body(row.body)
                except zlib.error as exc:
                    raise Tampered("a row of receipts is damaged; run `keepward verify`") from exc

    def artefact_names(self, tenant: str, kind: str) -> set[str]:
        """Return the versions of the texts of a kind that receipts name."""
        names = (name.partition("/") for (name,) in self._run("document_ids", tenant, kind="artefacts"))
        return {version for own, _, version in names if own == kind}

    def receipts_before(
        self, tenant: str, before: str | None, *, limit: int
    ) -> list[tuple[str, dict[str, Any] | None]]:
        """Return ids and receipts with the highest ids below ``before``, highest first, None for the newest.

        Ids rise with time. A receipt whose seal does not match is None, and is logged.
        """
        asked = {"before": MAX_CHARACTER if before is None else before, "limit": limit}
        with self._reading(tenant) as db:
            found = receipts_in(db, self._sealer, tenant, "before", **asked)
            return [(each[0], next(_bodies([each]), None)) for each in heapq.nlargest(limit, chain(*found))]

    def decisions_since(self, tenant: str, since: datetime) -> dict[str, int]:
        """Return how many approvals, rejections and refusals there were since an instant. No seal is checked."""
        # An id begins with its milliseconds, and may be made before its receipt: an hour is ample.
        millis = f"{max(to_micros(since) // 1000 - 3_600_000, 0):012x}"
        low = f"{millis[:8]}-{millis[8:]}"
        found = self._run("decisions_since", tenant, kind="receipts", since=to_micros(since), low=low)
        return {kind: int(count) for kind, count in found}

    def low_trust_deliveries(self, tenant: str, after: str) -> list[dict[str, Any]]:
        """Return the receipts with an id above ``after`` whose reader received memories of low trust."""
        with self._reading(tenant) as db:
            asked = {"states": json_array([_DELIVERED]), "until": 2**62, "after": after, "limit": 2**31}
            rows = select_verified(db, self._sealer, "documents_in_states", tenant=tenant, kind="receipts", **asked)
            return [row.json() for row in rows]

    def compactable_receipts(self, tenant: str, until: datetime, *, after: str, limit: int) -> list[dict[str, Any]]:
        """Return uncompacted receipts up to an instant that may be compacted, by id, those above ``after``."""
        asked = {"states": json_array(_COMPACTABLE_STATES), "until": to_micros(until), "after": after, "limit": limit}
        with self._reading(tenant) as db:
            rows = select_verified(db, self._sealer, "documents_in_states", tenant=tenant, kind="receipts", **asked)
            return [row.json() for row in rows]

    def ask_artefact(self, tenant: str, kind: str, version: str) -> None:
        """Let the answer to ``artefact`` come with that to the next read."""
        self.ask_ahead("document", tenant, kind="artefacts", id=f"{kind}/{version}")

    def artefact(self, tenant: str, kind: str, version: str) -> str | None:
        """Return a text that receipts name; None without one.

        Raises:
            Tampered: its seal does not match.
        """
        rows = list(map(StoredDocument._make, self._run("document", tenant, kind="artefacts", id=f"{kind}/{version}")))
        found = _only("artefact", rows, lambda row: row.has_valid_seal(self._sealer))
        return None if found is None else value_of(ReceiptArtefact, found).text

    def proposal_fingerprints(self, tenant: str) -> dict[str, tuple[Any, ...]]:
        """Return, by id of every proposal, oldest first, values that change when the proposal is rewritten."""
        return {row[0]: tuple(row[1:]) for row in self._run("proposal_fingerprints", tenant)}

    def count_unnotified(self, tenant: str, now: datetime) -> int:
        """Return how many proposals ended without being stored, and without a notice to their proposer.

        The count trusts the unverified rows; the review queue verifies them.
        """
        return int(self._run("count_unnotified", tenant, now=to_micros(now))[0][0])

    def feedback_count(self, tenant: str) -> int:
        """Return the number of the newest feedback; 0 without any."""
        rows = self._run("newest_feedback", tenant)
        return int(rows[0][0] or 0)

    def token_by_hash(self, digest: bytes) -> StoredToken | None:
        """Return the token with this SHA-256, in any state, compared in constant time; None without one.

        Raises:
            StoreUnavailable: there is none, and the store was resealed with another key since it was opened.
        """
        first = digest.hex()[:_HASH_PREFIX_CHARS]
        with self._everywhere() as db:
            alike = values_of(
                StoredToken, select_verified(db, self._sealer, "tokens_like", low=first, high=first + "g")
            )
            sealed = None if alike else db.run("meta", name="sealed_by").fetchone()
        if self._sealer.active and sealed and sealed[0] not in {"", self._sealer.key_id}:
            raise StoreUnavailable(
                "the store was sealed under another key since it was opened: open it again; start a server again"
            )
        same = [token for token in alike if hmac.compare_digest(token.hash, digest)]
        self._check_tenants(token.tenant for token in same)
        return next(iter(same), None)

    def blob_holders(self, tenant: str, ref: str) -> list[str]:
        """Return the sorted ids of memories whose newest version refers to a blob, in any status."""
        return [name for (name,) in self._run("blob_holders", tenant, ref=ref)]

    def blob_refs(self, tenant: str, *, after: int = 0) -> set[str]:
        """Return the blobs that any unerased version in the journal refers to, or any after a commit."""
        with self._reading(tenant) as db:
            return refs_in(db, tenant, after)

    def blob_positions(self, tenant: str) -> list[tuple[EventPosition, str, str]]:
        """Return position, memory and blob of every unerased version that refers to a blob."""
        with self._reading(tenant) as db:
            return list(blob_positions(db, tenant))

    def blob_tenants(self) -> list[str]:
        """Return the names of tenants with blobs, sorted; for maintenance only."""
        with self._everywhere() as db:
            return [name for (name,) in db.run("document_tenants", kind="blobs")]


class DocumentWrites(DocumentReads):
    """Writes of documents; a part of ``UnitOfWork``."""

    _db: Connection
    #: Returns the row of a tenant, to be changed in this transaction.
    state: Callable[[str], TenantHead]

    def put(self, value: DocumentValue, *, was: str | None = None) -> None:
        """Store a value in place of the one with its id. Of texts that receipts name, the first one stays.

        Raises:
            Conflict: its state is not ``was``. Of two concurrent decisions one wins.
        """
        document = document_of(value)
        if was is not None or isinstance(value, ReceiptArtefact):
            there = self.documents(type(value), value.tenant).rows(id=document.id)
            if was is not None and [each.state for each in there] != [was]:
                raise Conflict("the proposal was decided in the meantime; look at it again")
            if there and isinstance(value, ReceiptArtefact):
                return
        self._put(document, anyway=isinstance(value, JobRow))

    def replace_artefact(self, value: ReceiptArtefact) -> None:
        """Replace the text of the same kind and version, even if the row of the tenant does not match its seal."""
        self._put(document_of(value), anyway=True)

    def put_all(self, values: Iterable[DocumentValue]) -> None:
        """Store values of one tenant and kind, instead of those with their ids."""
        self._put_all([document_of(value) for value in values])

    def delete(self, kind: type[DocumentValue], tenant: str, *names: str) -> None:
        """Delete the documents of a kind with these ids, if they exist."""
        self._drop(KINDS[kind], tenant, names)

    def _put(self, document: StoredDocument, *, new: bool = False, anyway: bool = False) -> None:
        """Write a document in place of the one with its kind and id; ``new`` if there is none.

        ``anyway``: write it uncounted if the tenant's row is damaged, so that the audit can record that.
        """
        state: TenantHead | None = None
        with suppress(Tampered) if anyway else nullcontext():
            state = self.state(document.tenant)
        key = {"tenant": document.tenant, "kind": document.kind, "id": document.id}
        before = None if new else self._db.run("document", key).fetchone()
        sealed = document.sealed(self._sealer)
        self._db.run_many("add_document" if new else "put_document", [sealed])
        if state is not None:
            state.replace_document(self._sealer, document.kind, before and before[-1], sealed.seal)

    def _put_all(self, documents: Sequence[StoredDocument]) -> None:
        """Write documents of one tenant and kind, instead of those with their ids."""
        if not documents:
            return
        tenant, kind = documents[0].tenant, documents[0].kind
        state, sealed = self.state(tenant), [each.sealed(self._sealer) for each in documents]
        before = {each.id: each.seal for each in self._rows(kind, tenant, [each.id for each in documents])}
        self._db.run_many("put_document", sealed)
        for each in sealed:
            state.replace_document(self._sealer, kind, before.get(each.id), each.seal)

    def _rows(self, kind: str, tenant: str, ids: Iterable[str]) -> list[StoredDocument]:
        rows = self._db.run("documents_by_id", tenant=tenant, kind=kind, ids=json_array(ids)).fetchall()
        return [StoredDocument._make(row) for row in rows]

    def _drop(self, kind: str, tenant: str, ids: Collection[str]) -> None:
        """Delete the documents of a kind with these ids, if they exist."""
        state = self.state(tenant)
        rows = self._rows(kind, tenant, ids) if ids else []
        if rows:
            self._db.run("drop_documents", tenant=tenant, kind=kind, ids=json_array(row.id for row in rows))
        for row in rows:
            state.replace_document(self._sealer, kind, row.seal, None)

    def drop_of_memories(self, tenant: str, ids: Collection[str]) -> None:
        """Delete the counted uses of memories and what their sources said; receipts still name the contexts."""
        state, named = self.state(tenant), json_array(ids)
        rows = self._db.run("documents_of_memories", tenant=tenant, ids=named).fetchall() if ids else []
        if rows:
            self._db.run("drop_documents_of_memories", tenant=tenant, ids=named)
        for row in map(StoredDocument._make, rows):
            state.replace_document(self._sealer, row.kind, row.seal, None)

    def put_receipt(self, receipt: Receipt) -> None:
        """Store a receipt of a decision without a commit; for commits see ``PendingCommit.receipt``.

        Raises:
            Conflict: a receipt with this id exists.
            InvalidInput: its facts are not JSON.
        """
        facts = receipt.as_dict()
        delivers = receipt.kind in {"compile", "recall"} and "handed" in receipt.facts
        body = encode_body(facts)
        if receipt.kind in {"compile", "recall"}:
            body = compress_body(body)
        at = to_micros(receipt.at)
        state = _DELIVERED if delivers else {"compile": "whole", "token": "token"}.get(receipt.kind)
        document = StoredDocument(receipt.tenant, "receipts", receipt.id, state, None, at, None, None, body)
        self._put(document, new=True, anyway=True)

    def rewrite_receipts(self, tenant: str, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace receipts, by id, by the part of them that may stay."""
        self.state(tenant)
        encoded, fresh = {name: encode_body(body) for name, body in bodies.items()}, []
        for old in self._rows("receipts", tenant, bodies) if bodies else ():
            state = None if "compacted_at" in bodies[old.id] else old.state
            text = encoded.pop(old.id)
            packed = compress_body(text) if old.body[:1] == b"x" else text
            fresh.append(old._replace(state=state, refs=None, body=packed))
        self._put_all(fresh)
        if not encoded:
            return
        raw, rows = tenant.encode(), self._db.run("commit_receipts_by_id", tenant=tenant, ids=json_array(encoded))
        self._db.run_many(
            "set_receipt",
            [
                (encoded[name], self._sealer.commit(raw, seq, hashed, encoded[name]), tenant, seq)
                for name, seq, hashed, *_ in rows.fetchall()
            ],
        )

    def put_feedback(self, given: Feedback) -> Feedback:
        """Store feedback; return it with its number. A second one of an actor on a receipt replaces the first.

        Raises:
            Tampered: the seal of the earlier feedback does not match.
        """
        old = self.documents(Feedback, given.tenant).get(document_of(given).id)
        numbered = replace(given, n=self.feedback_count(given.tenant) + 1 if old is None else old.n)
        self.put(numbered)
        return numbered

    def job_row(self, tenant: str, job: str) -> JobRow:
        """Return the row of a job, with the changes of this transaction. A job that never ran has an empty row.

        The row is a lease: if two runs start the same job, the second one sees the row of the first.
        """
        with suppress(Tampered):
            self.state(tenant)
        return next(iter(self.documents(JobRow, tenant).list(ids=[job])), JobRow(tenant=tenant, job=job))

    def drop_blob(self, tenant: str, ref: str) -> bool:
        """Delete a blob unless the newest version of a memory refers to it; return whether it is deleted."""
        if self.documents(StoredBlob, tenant).get(ref) is None or self.blob_holders(tenant, ref):
            return False
        self.delete(StoredBlob, tenant, ref)
        return True


def refs_in(db: Connection, tenant: str, after: int = 0) -> set[str]:
    """Return the blobs of all versions in the journal, or of those after a commit."""
    return {ref for _, _, ref in blob_positions(db, tenant, after)}


def blob_positions(db: Connection, tenant: str, after: int = 0) -> Iterator[tuple[EventPosition, str, str]]:
    """Yield position, memory and blob of the versions after a commit, without unreadable ones."""
    for seq, n, memory_id, payload in db.stream("payloads_with_blobs", tenant=tenant, after=after):
        try:
            ref = json.loads(payload).get("blob")
        except (ValueError, AttributeError, UnicodeDecodeError):
            continue
        if isinstance(ref, str):
            yield (seq, n), memory_id, ref
