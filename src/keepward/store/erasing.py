"""Erasing: payloads and salts go, a document of kind ``erased`` says by which commit, the chain stays whole.

Invariants
(1) A missing payload is lawful only where a later commit of kind ``erase`` names its place; one that is there
    although it is named is damage too.
(2) The documents repeat what those commits say, and keep the commitment to what stood there; they are sealed, and
    compared with the commits by ``verify``.
(3) From the first destroyed byte until the file was written anew, ``meta`` notes that it is unclean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keepward.errors import KeepwardError, Tampered
from keepward.model.commit import OWN, Commit, Place, blank, decode_details, parse_place
from keepward.model.journal import Fault
from keepward.model.memory import Record
from keepward.store.documents import Document, body_of
from keepward.store.rows import Gone, record_at
from keepward.store.seals import Sealer
from keepward.store.sql import Row, Session

NOTE = "note_erasing"


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


def erased(tenant: str, place: Place, by_seq: int, promise: bytes, remains: bytes | None) -> Document:
    """Return the document of a place whose content is gone, unsealed."""
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
