"""Erasing: payloads and salts go, a document of kind ``erased`` says by which commit, the chain stays whole.

Invariants
(1) A missing payload is lawful only where a later commit of kind ``erase`` names its place; one that is there
    although it is named is damage too.
(2) The documents repeat what those commits say, and keep the commitment to what stood there; they are sealed, and
    compared with the commits by ``verify``.
(3) From the first destroyed byte until the file was written anew, ``meta`` notes that it is unclean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keepward.errors import Conflict, KeepwardError, Tampered
from keepward.model.commit import OWN, Commit, Place, blank, decode_details, parse_place
from keepward.model.journal import Fault
from keepward.model.memory import Record
from keepward.ports.store import Destruction, Features
from keepward.store.documents import Document, DocumentWrites, body_of
from keepward.store.rows import Gone, payload_commitment, record_at
from keepward.store.seals import Sealer
from keepward.store.sql import Row, Session

NOTE = "note_erasing"
_UNCLEAN = (
    "content was erased, and its bytes may still lie in free pages or in the log of the file: close other readers "
    "and open the store once more"
)


def named_places(db: Session, tenant: str) -> dict[Place, int]:
    """Return the places that a tenant's commits of kind ``erase`` name, with the seq of the commit."""
    places: dict[Place, int] = {}
    for seq, payload, _ in db.run("commits_of_kind", tenant=tenant, kind="erase"):
        try:
            names = decode_details(payload).erased
            for place in map(parse_place, names):
                places.setdefault(place, seq)
        except (KeepwardError, TypeError):
            continue  # The chain's own check names the commit.
    return places


def _document(tenant: str, place: Place, by_seq: int, promise: bytes, remains: bytes | None) -> Document:
    body = body_of({"promise": promise.hex(), "remains": None if remains is None else remains.decode()})
    return Document(tenant, "erased", f"{place[0]}/{place[1]}", None, by_seq, None, body)


def _at(db: Session, tenant: str, place: Place) -> Document | None:
    row = db.run("document", tenant=tenant, kind="erased", id=f"{place[0]}/{place[1]}").fetchone()
    return None if row is None else Document._make(row)


def promise_of(db: Session, tenant: str, place: Place) -> bytes:
    """Return the commitment to what stood at an erased place; empty when nothing says so."""
    try:
        document = _at(db, tenant, place)
        return b"" if document is None else bytes.fromhex(document.json()["promise"])
    except (KeepwardError, KeyError, TypeError, ValueError):
        return b""


def sealed_row(db: Session, sealer: Sealer, tenant: str, place: Place) -> tuple[bytes, bytes | None]:
    """Return promise and remains of an erased place.

    Raises:
        Tampered: no erasure names the place, or its document does not match its seal.
    """
    document = _at(db, tenant, place)
    if document is None:
        raise Tampered("content is missing and no erasure names it; run `keepward verify`")
    if not document.holds(sealer) or document.at <= place[0]:
        raise Tampered("an erasure does not match its seal; run `keepward verify`")
    remains = document.json()["remains"]
    return promise_of(db, tenant, place), None if remains is None else remains.encode()


def record_or_blank(db: Session, sealer: Sealer, tenant: str, event: Row) -> Record:
    """Return the record of an event row; where it was erased, one of status ``erased`` without content.

    Raises:
        Tampered: the row does not hold, or content is missing that no erasure names.
    """
    raw = tenant.encode()
    try:
        return record_at(sealer, raw, event)
    except Gone:
        promise, _ = sealed_row(db, sealer, tenant, (event[0], event[1]))
        if promise != event[7]:
            raise Tampered("an erasure is of other content; run `keepward verify`") from None
        newest = db.run("newest_event", tenant=tenant, id=event[3]).fetchone()
        # The newest version always has content: a tombstone's at the least.
        return blank(record_at(sealer, raw, newest), event[4])


class Erasing(DocumentWrites):
    """What a writer can destroy."""

    def destroy(self, tenant: str, what: Destruction) -> None:
        """Destroy content, named by the commit that this transaction appended, and note that the file is unclean.

        Raises:
            Conflict: a place is not there, or is empty already.
        """
        self.put_features(tenant, {memory_id: Features(terms=b"") for memory_id in what.ids})
        for item in what.proposals:
            self.put_waiting(item)
        for given in what.feedback:
            self.put_feedback(given)
        by_seq = self.state(tenant).head.seq
        rows = []
        for seq, n in what.events:
            row = self._db.run("content_at", tenant=tenant, seq=seq, n=n).fetchone()
            if row is None:
                raise Conflict("what was to be erased is gone already; plan anew")
            rows.append(_document(tenant, (seq, n), by_seq, row[0], None))
        for seq, remains in what.details.items():
            row = self._db.run("details_at", tenant=tenant, seq=seq).fetchone()
            if row is None:
                raise Conflict("what was to be erased is gone already; plan anew")
            rows.append(_document(tenant, (seq, OWN), by_seq, payload_commitment(*row), remains.encode()))
        for document in rows:
            self._put(document, new=True)
        self._db.many("erase_event", [(tenant, *place) for place in what.events])
        self._db.many("erase_details", [(tenant, seq) for seq in what.details])
        for name in what.ids:
            row = self._db.run("document", tenant=tenant, kind="usage", id=name).fetchone()
            if row is not None:
                self._drop(Document._make(row))
        for kind, version in what.artefacts:
            self.drop_artefacts(tenant, kind, version)
        for receipt_id, body in what.receipts.items():
            self.rewrite_receipt(tenant, receipt_id, body)
        self._db.run("set_meta", name=NOTE, value=_UNCLEAN)

    def settle(self) -> None:
        """Take back the note that the file is unclean."""
        self._db.run("drop_meta", name=NOTE)

    def put_features(
        self, tenant: str, features: Mapping[str, Features], versions: Mapping[str, int] | None = None
    ) -> None:
        """Replace the features of memories, by id; one whose newest version is not the named one is skipped."""
        raise NotImplementedError

    def take_over(self, tenant: str, missing: Mapping[Place, bytes]) -> None:
        """Write the erasures of a restored journal, given the places without content and their commitments.

        Raises:
            Tampered: content is missing that no later erasure names, or is there although one does.
        """
        named = named_places(self._db, tenant)
        if missing.keys() != named.keys() or any(by <= place[0] for place, by in named.items()):
            raise Tampered("the exported journal lacks content that no erasure names, or holds what was erased")
        for place in sorted(missing):
            self._put(_document(tenant, place, named[place], missing[place], None), new=True)


def check(db: Session, tenant: str) -> Iterator[Fault]:
    """Yield where the documents of erasures and the commits of kind ``erase`` differ, in order."""
    due = {f"{seq}/{n}": by for (seq, n), by in named_places(db, tenant).items()}
    held = {row[2]: row[4] for row in db.run("documents", tenant=tenant, kind="erased")}
    for name in sorted(due.keys() | held.keys()):
        if due.get(name) != held.get(name):
            detail = "no erasure says so" if name not in due else "it does not say what the erasure says"
            yield Fault(check="erased", row=f"erased {tenant}/{name}", detail=detail)


def empty_places(commit: Commit, events: Iterable[Any]) -> dict[Place, bytes]:
    """Return the places of a commit that have no content, with their commitments."""
    found: dict[Place, bytes] = {
        (event.seq, event.n): event.payload_commit for event in events if event.payload is None
    }
    if commit.payload is None:
        found[commit.seq, OWN] = commit.commitment()
    return found
