"""What stands beside the journal: one sealed row a thing, of one table.

Receipts, proposals, texts that receipts name, uses, feedback, tokens, blobs, jobs and erasures are documents: a kind,
an id, a state where rows of the kind are looked up by one, instants, and a body.

Invariants
(1) A document that does not match its seal is not used: whoever can write the database makes no token, no receipt and
    no proposal. It is left out and logged, or, where it was asked for by its id, refused.
(2) Every change of a document is counted in the tenant's sums in the same transaction; see ``tenant.py``.
(3) Hashes of tokens are compared whole and in constant time; the index is asked for their first 4 bytes alone.
(4) Feedback of a tenant is numbered from 1 without a gap; a second one of the same actor on the same receipt takes
    the place of the first, under its number.
(5) What is under ``links`` is computed, from records: it can be dropped and written anew, and counts only as far as
    its record says the same.
"""

from __future__ import annotations

import heapq
import hmac
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import cache, partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Tampered
from keepward.model.blob import Kept
from keepward.model.codec import decode, encode
from keepward.model.commit import Receipt
from keepward.model.job import JobRow
from keepward.model.proposal import Waiting, waiting_from_dict, waiting_to_dict
from keepward.model.query import Feedback
from keepward.model.trust import Actor, Token
from keepward.model.value import to_micros
from keepward.ports.store import PREFIX
from keepward.store.rows import listed
from keepward.store.seals import Sealer
from keepward.store.sql import LAST, Session, Snapshot, between
from keepward.store.tenant import State

_ALIKE = 8
#: Most bytes of a receipt.
_LONGEST_BODY = 64_000_000
_LEFT_OUT = "a row of %s does not match its seal and was left out: %s"
_HANDED = "handed"
#: States of receipts that may be compacted: those that say what was handed out, and other receipts of contexts.
_WHOLE = (_HANDED, "whole")
_QUOTE = b'"'
_TYPES: dict[str, Any] = {"feedback": Feedback, "tokens": Token, "jobs": JobRow, "blobs": Kept}
_log = logging.getLogger(__name__)
#: Id, whether the seal holds, and body.
_Receipt = tuple[str, bool, bytes]
_One = TypeVar("_One")
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


class Document(NamedTuple):
    """One row, in the order of its columns."""

    tenant: str
    kind: str
    id: str
    #: Of proposals their state, of tokens their hash, of feedback its number, of uses and receipts what is yet to be
    #: looked at; None for what is only found by its id.
    state: str | None
    at: int
    until: int | None
    body: bytes
    seal: bytes = b""

    def sealed(self, sealer: Sealer) -> Document:
        return self._replace(seal=sealer.row(self.kind, *self[:-1]))

    def holds(self, sealer: Sealer) -> bool:
        """Whether its seal is right."""
        return sealer.holds_row(self.seal, self.kind, *self[:-1])

    def json(self) -> dict[str, Any]:
        """Return the body.

        Raises:
            Tampered: it is none; only without a key does such a row get here.
        """
        return json_of(self.kind, self.body)


def json_of(kind: str, body: bytes) -> dict[str, Any]:
    """Return the body of a document; Tampered where it is none."""
    try:
        value = json.loads(inflated(body))
    except (ValueError, zlib.error) as fault:
        raise Tampered(f"a row of {kind} is damaged; run `keepward verify`") from fault
    if not isinstance(value, dict):
        raise Tampered(f"a row of {kind} is damaged; run `keepward verify`")
    return value


def deflated(body: bytes) -> bytes:
    """Return the body of a receipt as it is kept: compressed, to about a fourth for a context."""
    return zlib.compress(body, 6)


def inflated(body: bytes) -> bytes:
    """Return a body as JSON; that of a receipt may be compressed."""
    if body[:1] != b"x":
        return body
    reader = zlib.decompressobj()
    found = reader.decompress(body, _LONGEST_BODY)
    if not reader.eof:
        raise zlib.error("the body is cut, or larger than any receipt")
    return found


def body_of(value: object) -> bytes:
    """Return a value as a body; InvalidInput where it is no JSON."""
    try:
        return _encode(value).encode()
    except (TypeError, ValueError) as fault:
        raise InvalidInput("the facts of a receipt must be JSON without NaN, infinity or lone surrogates") from fault


def _columns_of(value: Waiting | Feedback | Token | JobRow | Kept) -> tuple[str, str, str, str | None, int, int | None]:
    """Return what the columns of a document repeat of its value."""
    at: datetime | None = None
    until: datetime | None = None
    state: str | None = None
    match value:
        case Waiting():
            kind, name, state, at, until = "proposals", value.id, value.state, value.created_at, value.expires_at
        case Feedback():
            kind, name, state, at = "feedback", f"{value.receipt} {value.actor}", f"{value.n:012}", value.at
        case Token():
            kind, name, state, at, until = "tokens", value.id, value.hash.hex(), value.created_at, value.expires_at
        case JobRow():
            kind, name, until = "jobs", value.job, value.until
        case Kept():
            kind, name, at = "blobs", value.blob.ref, value.at
    began, ends = 0 if at is None else to_micros(at), None if until is None else to_micros(until)
    return value.tenant, kind, name, state, began, ends


def document_of(value: Waiting | Feedback | Token | JobRow | Kept) -> Document:
    """Return the document of a value, unsealed: its body is the whole value, and the columns repeat of it."""
    return Document(*_columns_of(value), encode(waiting_to_dict(value) if isinstance(value, Waiting) else value))


def value_of(document: Document) -> Any:
    """Return the value of a document that ``document_of`` made.

    Raises:
        Tampered: it did not, or the columns are of another; only without a key does such a row get here.
    """
    with suppress(KeyError, ValueError):
        kind = _TYPES.get(document.kind)
        value = waiting_from_dict(document.json()) if kind is None else decode(kind, document.body)
        if _columns_of(value) == document[:6]:
            return value
    raise Tampered(f"a row of {document.kind} differs from what it says; run `keepward verify`")


def _proposer(body: bytes) -> bytes:
    """Return what a proposal's body says of who proposed it, as JSON."""
    # A name can hold neither mark: within a text every quotation mark is escaped.
    return body.partition(b'"proposer":')[2].partition(b',"reason":')[0]


def _is_by(actor: Actor, proposer: bytes) -> bool:
    """Whether an actor is the proposer of a body; damaged JSON is nobody."""
    try:
        return decode(Actor, proposer).is_same(actor)
    except ValueError:
        return False


def _of(by: Actor | None, proposals: Iterable[Document]) -> Iterable[Document]:
    """Return the proposals of a principal, or all for None; see ``_proposer``."""
    is_own = cache(partial(_is_by, by)) if by else None
    return (row for row in proposals if is_own(_proposer(row.body))) if is_own else proposals


def values_of(documents: Iterable[Document]) -> list[Any]:
    """Return the values of documents; one that cannot be read is left out and logged."""
    values = []
    for document in documents:
        try:
            values.append(value_of(document))
        except Tampered as fault:
            _log.warning("%s was left out: %s", document.id, fault, extra={"action": "damaged"})
    return values


def found(db: Session, sealer: Sealer, name: str, **values: Any) -> Iterator[Document]:
    """Yield the documents of a named statement that match their seals."""
    return holding(map(Document._make, db.stream(name, **values)), sealer)


def holding(documents: Iterable[Document], sealer: Sealer) -> Iterator[Document]:
    """Yield the documents that match their seals; another is logged."""
    for document in documents:
        if document.holds(sealer):
            yield document
        else:
            _log.warning(_LEFT_OUT, document.kind, document.id, extra={"action": "damaged"})


def receipts_in(db: Session, sealer: Sealer, tenant: str, which: str, **asked: Any) -> list[Iterator[_Receipt]]:
    """Return the receipts of commits, and the rest: ``which`` are ``between`` two ids, or ``before`` one."""
    raw = tenant.encode()
    rows = db.run(f"commit_receipts_{which}", tenant=tenant, **asked)
    own = ((row[0], sealer.holds_commit(row[3], raw, row[1], row[2], row[4]), row[4]) for row in rows)
    rows = db.run(f"documents_{which}", tenant=tenant, kind="receipts", **asked)
    return [own, ((each.id, each.holds(sealer), each.body) for each in map(Document._make, rows))]


def _bodies(receipts: Iterable[_Receipt]) -> Iterator[dict[str, Any]]:
    """Yield the receipts whose seal holds."""
    for name, holds, body in receipts:
        if holds:
            yield json_of("receipts", body)
        else:
            _log.warning(_LEFT_OUT, "receipts", name, extra={"action": "damaged"})


def _only(what: str, found: Sequence[_One], holds: Callable[[_One], bool]) -> _One | None:
    """Return the one that was asked for by its id or the beginning of it, as far as its seal holds; None for none."""
    if len(found) > 1:
        raise InvalidInput(f"more than one {what} begins so; give more of its id")
    if found and not holds(found[0]):
        raise Tampered(f"the {what} does not match its seal; run `keepward verify`")
    return found[0] if found else None


class DocumentReads(Snapshot):
    """What may be asked about documents; a part of ``Reader``."""

    def _documents(self, tenant: str, name: str, **values: Any) -> list[Document]:
        with self._reading(tenant) as db:
            return list(found(db, self._sealer, name, tenant=tenant, **values))

    def _values(self, tenant: str, name: str, **values: Any) -> list[Any]:
        return values_of(self._documents(tenant, name, **values))

    def _one(self, tenant: str, kind: str, name: str, *, prefix: bool = False) -> Document | None:
        """Return the document with an id, or the only one whose id begins so.

        Raises:
            Tampered: it does not match its seal.
            InvalidInput: more than one begins so.
        """
        with self._reading(tenant) as db:
            rows = db.run("document", tenant=tenant, kind=kind, id=name).fetchall()
            if not rows and prefix and len(name) >= PREFIX:
                rows = db.run("documents_between", tenant=tenant, kind=kind, **between(name)).fetchall()
        documents = [Document._make(row) for row in rows]
        return _only(kind.removesuffix("s"), documents, lambda each: each.holds(self._sealer))

    # --- receipts, proposals, texts

    def receipt(self, tenant: str, receipt_id: str) -> dict[str, Any] | None:
        """Return a receipt as it was stored, by id or unique prefix.

        Raises:
            Tampered: it does not match its seal.
            InvalidInput: more than one begins so.
        """
        with self._reading(tenant) as db:
            one = {"low": receipt_id, "high": f"{receipt_id} "}
            found = [*chain(*receipts_in(db, self._sealer, tenant, "between", **one))]
            if not found and len(receipt_id) >= PREFIX:
                found = [*chain(*receipts_in(db, self._sealer, tenant, "between", **between(receipt_id)))]
        told = _only("receipt", found, lambda each: each[1])
        return None if told is None else json_of("receipts", told[2])

    def receipts(self, tenant: str) -> Iterator[dict[str, Any]]:
        """Yield every receipt whose seal holds, by id."""
        with self._reading(tenant) as db:
            yield from _bodies(heapq.merge(*receipts_in(db, self._sealer, tenant, "between", low="", high=LAST)))

    def receipts_before(self, tenant: str, before: str | None, *, limit: int) -> list[dict[str, Any]]:
        """Return the receipts with the highest ids below ``before``, highest first, None for the newest.

        Ids rise with time. One whose seal does not hold is left out and logged.
        """
        asked = {"before": LAST if before is None else before, "limit": limit}
        with self._reading(tenant) as db:
            found = receipts_in(db, self._sealer, tenant, "before", **asked)
            return list(_bodies(heapq.nlargest(limit, chain(*found))))

    def handed(self, tenant: str, after: str) -> list[dict[str, Any]]:
        """Return the receipts with an id above ``after`` that say that something of low trust was handed out."""
        rows = self._documents(tenant, "documents_in", kind="receipts", state=_HANDED)
        return [each.json() for each in sorted(rows, key=lambda row: row.id) if each.id > after]

    def whole_receipts(self, tenant: str, until: datetime, *, after: str, limit: int) -> list[dict[str, Any]]:
        """Return receipts up to an instant that may be compacted and were not, by id, those above ``after``."""
        asked = {"states": listed(_WHOLE), "until": to_micros(until), "after": after, "limit": limit}
        return [each.json() for each in self._documents(tenant, "documents_whole", kind="receipts", **asked)]

    def queue(self, tenant: str, *, state: str | None = "pending", by: Actor | None = None) -> list[Waiting]:
        """Return proposals, oldest first, all or those of a principal; None means all states.

        One that does not hold is left out and logged. Of others' no more is read than who proposed them.
        """
        name, values = ("documents_dated", {}) if state is None else ("documents_in", {"state": state})
        with self._reading(tenant) as db:
            rows = _of(by, map(Document._make, db.stream(name, tenant=tenant, kind="proposals", **values)))
            return values_of(holding(rows, self._sealer))

    def queue_naming(self, tenant: str, names: Iterable[str]) -> list[Waiting]:
        """Return at least those proposals that wait and have one of some texts, such as an id, whole in a memory.

        They come oldest first. Of the others no more is read than between which quotation marks a text stands.
        """
        asked = {_encode(name).encode(errors="surrogatepass").split(_QUOTE)[1] for name in names}
        with self._reading(tenant) as db:
            rows = map(Document._make, db.stream("documents_in", tenant=tenant, kind="proposals", state="pending"))
            near = (row for row in rows if not asked.isdisjoint(row.body.split(_QUOTE)))
            return values_of(holding(near, self._sealer))

    def queue_marks(self, tenant: str) -> dict[str, tuple[Any, ...]]:
        """Return, by id of every proposal, oldest first, what is another where it was written anew."""
        return {row[0]: tuple(row[1:]) for row in self._run("document_marks", tenant, kind="proposals")}

    def queue_bodies(self, tenant: str, ids: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return proposals as JSON values, all or by id; one that does not hold is left out."""
        if ids is None:
            return [each.json() for each in self._documents(tenant, "documents", kind="proposals")]
        return [each.json() for each in self._documents(tenant, "documents_by_id", kind="proposals", ids=listed(ids))]

    def proposals(self, tenant: str, ids: Sequence[str]) -> list[Waiting]:
        """Return proposals by id, in no order; one that is not there or does not hold is left out."""
        return self._values(tenant, "documents_by_id", kind="proposals", ids=listed(ids))

    def untold(self, tenant: str, now: datetime) -> int:
        """Return how many proposals ended without being stored and without a note that their proposer was told.

        Counted from what the rows say of themselves: who wants to know what became of them reads the queue.
        """
        over = self._run("proposals_over", tenant, now=to_micros(now))
        return sum(not (b'"told":true' in row[6] and value_of(Document._make(row)).told) for row in over)

    def proposed(self, tenant: str, by: Actor, now: datetime, *, most: int) -> int:
        """Return how many proposals of a principal wait, and ``most`` where there are more.

        Each held write asks, so of the others' no more is read than the line of the body that names their proposer.
        """
        at = to_micros(now)
        with self._reading(tenant) as db:
            rows = map(Document._make, db.stream("documents_in", tenant=tenant, kind="proposals", state="pending"))
            own = _of(by, (row for row in rows if row.until is not None and row.until > at))
            return sum(1 for _ in islice((row for row in own if row.holds(self._sealer)), most))

    def waiting(self, tenant: str, proposal_id: str) -> Waiting | None:
        """Return one proposal, by id or unique prefix.

        Raises:
            Tampered: it does not hold.
            InvalidInput: more than one begins so.
        """
        document = self._one(tenant, "proposals", proposal_id, prefix=True)
        return None if document is None else value_of(document)

    def artefact(self, tenant: str, kind: str, version: str) -> str | None:
        """Return a text that receipts name, or None.

        Raises:
            Tampered: it does not match its seal.
        """
        document = self._one(tenant, "artefacts", f"{kind}/{version}")
        return None if document is None else document.body.decode()

    def artefacts(self, tenant: str) -> list[tuple[str, str, str]]:
        """Return (kind, version, text) of every such text whose seal holds."""
        rows = self._documents(tenant, "documents", kind="artefacts")
        return sorted((*each.id.partition("/")[::2], each.body.decode()) for each in rows)

    # --- feedback

    def feedback(self, tenant: str, *, limit: int = 2**62) -> list[Feedback]:
        """Return the newest feedback, oldest first, without what fails its seal."""
        return self._values(tenant, "documents_last", kind="feedback", limit=limit)[::-1]

    def feedback_count(self, tenant: str) -> int:
        """Return the number of the newest feedback, 0 for none."""
        rows = self._run("documents_last", tenant, kind="feedback", limit=1)
        return int(rows[0][3]) if rows else 0

    # --- tokens and jobs

    def tokens(self, token_id: str | None = None) -> list[Token]:
        """Return the store's tokens, or the one by an id, oldest first; those that fail their seal are left out."""
        with self._everywhere() as db:
            tokens = values_of(found(db, self._sealer, "documents_everywhere", kind="tokens", id=token_id))
        return self._met(tokens)

    def token_by_hash(self, digest: bytes) -> Token | None:
        """Return the token whose SHA-256 is ``digest``, whatever its state, compared in constant time; or None.

        Raises:
            StoreUnavailable: there is none, as the store was accepted anew, under another key, since it was opened.
        """
        first = digest.hex()[:_ALIKE]
        with self._everywhere() as db:
            alike = values_of(found(db, self._sealer, "tokens_like", low=first, high=first + "g"))
            sealed = None if alike else db.run("meta", name="sealed_by").fetchone()
        if self._sealer.active and sealed and sealed[0] not in {"", self._sealer.key_id}:
            raise StoreUnavailable(
                "the store was sealed under another key since it was opened: open it again; start a server again"
            )
        same = [token for token in alike if hmac.compare_digest(token.hash, digest)]
        return next(iter(self._met(same[:1])), None)

    def _met(self, tokens: list[Token]) -> list[Token]:
        """Return tokens once their tenants were met: one in an older copy of the store may be revoked since."""
        for tenant in sorted({token.tenant for token in tokens}):
            with self._reading(tenant):
                pass
        return tokens

    def job_rows(self, tenant: str) -> list[JobRow]:
        """Return what is kept of the tenant's jobs, by name; a row that fails its seal is left out.

        A damaged journal does not keep the audit from running.
        """
        with self._everywhere() as db:
            return values_of(found(db, self._sealer, "documents", tenant=tenant, kind="jobs"))

    # --- blobs

    def blobs(self, tenant: str, ref: str | None = None) -> list[Kept]:
        """Return the blobs of a tenant, or the one by a ref, by ref.

        Raises:
            Tampered: a ref was named, and its row does not match its seal. Without one such rows are left out.
        """
        if ref is None:
            return self._values(tenant, "documents", kind="blobs")
        document = self._one(tenant, "blobs", ref)
        return [] if document is None else [value_of(document)]

    def blob_places(self, tenant: str) -> list[str]:
        """Return the places of the files of a tenant's blobs, all of them, sorted.

        Raises:
            Tampered: a row does not match its seal.
        """
        documents = [Document._make(row) for row in self._run("documents", tenant, kind="blobs")]
        if not all(each.holds(self._sealer) for each in documents):
            raise Tampered("what is known of a blob does not match its seal; run `keepward verify`")
        return sorted(value_of(each).place for each in documents)

    def blob_holders(self, tenant: str, ref: str) -> list[str]:
        """Return ids of the memories whose newest version refers to a blob, whatever their status, sorted."""
        return [name for (name,) in self._run("holders_of_blob", tenant, ref=ref)]

    def blob_refs(self, tenant: str) -> set[str]:
        """Return the refs of all versions of all memories in the journal, those that were erased left out."""
        with self._reading(tenant) as db:
            return refs_in(db, tenant)

    def blob_tenants(self) -> list[str]:
        """Return the names of tenants with blobs, sorted; for upkeep alone."""
        with self._everywhere() as db:
            return [name for (name,) in db.run("document_tenants", kind="blobs")]


class DocumentWrites(DocumentReads):
    """What a writer can do about documents."""

    _db: Session
    #: Returns the row of a tenant, to be changed by this transaction.
    state: Callable[[str], State]

    def _put(self, document: Document, *, new: bool = False, anyway: bool = False) -> None:
        """Write a document in place of one of its kind and id; ``new`` where there is none.

        ``anyway``: uncounted where the tenant's row is damaged, so that the audit can say so.
        """
        state: State | None = None
        with suppress(Tampered) if anyway else nullcontext():
            state = self.state(document.tenant)
        key = {"tenant": document.tenant, "kind": document.kind, "id": document.id}
        before = None if new else self._db.run("document", key).fetchone()
        sealed = document.sealed(self._sealer)
        self._db.many("add_document" if new else "put_document", [sealed])
        if state is not None:
            state.turn(self._sealer, document.kind, before and before[-1], sealed.seal)

    def _drop(self, document: Document) -> None:
        self._db.run("drop_document", tenant=document.tenant, kind=document.kind, id=document.id)
        self.state(document.tenant).turn(self._sealer, document.kind, document.seal, None)

    def put_receipt(self, receipt: Receipt) -> None:
        """Keep a receipt of what was decided without a commit; see ``Stage.receipt`` for the others.

        Raises:
            Conflict: there is one by that id.
            InvalidInput: its facts are not JSON.
        """
        lent = receipt.kind in {"compile", "recall"} and "handed" in receipt.facts
        body = body_of(receipt.as_dict())
        if receipt.kind in {"compile", "recall"}:
            body = deflated(body)
        at = to_micros(receipt.at)
        state = _HANDED if lent else "whole" if receipt.kind == "compile" else None
        document = Document(receipt.tenant, "receipts", receipt.id, state, at, None, body)
        self._put(document, new=True, anyway=True)

    def rewrite_receipt(self, tenant: str, receipt_id: str, body: Mapping[str, Any]) -> None:
        """Put what may stay of a receipt in its place."""
        row = self._db.run("document", tenant=tenant, kind="receipts", id=receipt_id).fetchone()
        if row is not None:
            old = Document._make(row)
            state = None if "compacted_at" in body else old.state
            told = body_of(body)
            self._put(old._replace(state=state, body=deflated(told) if old.body[:1] == b"x" else told))
            return
        key = {"tenant": tenant, "low": receipt_id, "high": f"{receipt_id} "}
        _, seq, hashed, _, _ = self._db.run("commit_receipts_between", key).fetchone()
        told = body_of(body)
        self._db.run("set_receipt", (told, self._sealer.commit(tenant.encode(), seq, hashed, told), tenant, seq))

    def put_waiting(self, item: Waiting, *, was: str | None = None) -> None:
        """Keep a proposal in the review queue, or its new state.

        Raises:
            Conflict: ``was`` names another state than the one it is in; of two deciders one wins.
        """
        if was is not None:
            rows = self._run("document", item.tenant, kind="proposals", id=item.id)
            if not rows or rows[0][3] != was:
                raise Conflict("the proposal was decided in the meantime; look at it again")
        self._put(document_of(item))

    def put_artefact(self, tenant: str, kind: str, version: str, text: str) -> None:
        """Keep a text that a receipt names, so that a context can be replayed; the first under a version stays."""
        name = f"{kind}/{version}"
        if not self._run("document", tenant, kind="artefacts", id=name):
            self._put(Document(tenant, "artefacts", name, None, 0, None, text.encode()), new=True)

    def drop_artefacts(self, tenant: str, kind: str, version: str | None = None) -> None:
        """Let go of the kept text of a kind and version, or of every one of the kind."""
        rows = self._run("documents_between", tenant, kind="artefacts", **between(f"{kind}/"))
        for row in rows:
            if version is None or row[2] == f"{kind}/{version}":
                self._drop(Document._make(row))

    def put_feedback(self, given: Feedback) -> Feedback:
        """Keep feedback; return it with its number. A second of one actor on one receipt replaces the first.

        Raises:
            Tampered: the earlier feedback that it would replace does not match its seal.
        """
        old = self._one(given.tenant, "feedback", document_of(given).id)
        number = self.feedback_count(given.tenant) + 1 if old is None else int(old.state or 0)
        numbered = replace(given, n=number)
        self._put(document_of(numbered))
        return numbered

    def put(self, value: Token | JobRow | Kept) -> None:
        """Keep a token, what is to be known of a job or of a blob, in place of what was."""
        self._put(document_of(value), anyway=isinstance(value, JobRow))

    def job_row(self, tenant: str, job: str) -> JobRow:
        """Return what is kept of a job, as this transaction sees it; an empty row for one that never ran.

        Of two runs that want a job, one finds the other's row: it is a lease.
        """
        with suppress(Tampered):
            self.state(tenant)
        rows = found(self._db, self._sealer, "document", tenant=tenant, kind="jobs", id=job)
        return next(iter(values_of(rows)), JobRow(tenant=tenant, job=job))

    def has_blob(self, tenant: str, ref: str) -> bool:
        """Whether a blob is known, in this very transaction."""
        return bool(self._run("document", tenant, kind="blobs", id=ref))

    def drop_blob(self, tenant: str, ref: str) -> bool:
        """Forget a blob unless the newest version of a memory refers to it; return whether it is forgotten."""
        rows = self._run("document", tenant, kind="blobs", id=ref)
        if not rows or self.blob_holders(tenant, ref):
            return False
        self._drop(Document._make(rows[0]))
        return True


def refs_in(db: Session, tenant: str) -> set[str]:
    """Return the refs of all versions in the journal; a payload that cannot be read is the chain's to name."""
    refs = set()
    for (payload,) in db.stream("payloads_with_blobs", tenant=tenant):
        try:
            refs.add(json.loads(payload).get("blob"))
        except (ValueError, AttributeError, UnicodeDecodeError):
            continue
    return {ref for ref in refs if isinstance(ref, str)}
