"""Erasing: delete payloads and salts, and name their positions in a commit of kind ``erase``. The chain stays valid.

Invariants
(1) A payload may be missing only if a later commit of kind ``erase`` names its position. A payload that exists although
    it is named is a fault too.
(2) For erased details of a commit, a sealed document of kind ``erased`` stores the commitment, which no row has any
    more, and the part without content. ``verify`` compares these documents with the commits.
(3) From the first destroyed byte until the file is rewritten, ``meta`` records that a scrub is pending.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from keepward.core.commit import DETAILS, Commit, EventPosition, decode_details, parse_event_position
from keepward.core.journal import Fault
from keepward.errors import KeepwardError, Tampered
from keepward.storage.documents import StoredDocument, encode_body
from keepward.storage.rows import CommitRow, json_array
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection

SCRUB_PENDING = "note_erasing"


def erased_positions(db: Connection, tenant: str) -> dict[EventPosition, int]:
    """Return the positions that a tenant's commits of kind ``erase`` name, with the seq of the commit."""
    positions: dict[EventPosition, int] = {}
    for row in map(CommitRow._make, db.run("erasing_commits", tenant=tenant)):
        try:
            names = decode_details(row.payload or b"").erased
            for position in map(parse_event_position, names):
                positions.setdefault(position, row.seq)
        except (KeepwardError, TypeError):
            continue  # The check of the chain reports the commit.
    return positions


def erased_details_document(
    tenant: str, seq: int, by_seq: int, commitment: bytes, residual_payload: bytes | None
) -> StoredDocument:
    """Return the unsealed document of a commit whose details are erased."""
    # Under the names that stores have: ``promise`` is the commitment, ``remains`` the part without content.
    body = encode_body(
        {"promise": commitment.hex(), "remains": None if residual_payload is None else residual_payload.decode()}
    )
    return StoredDocument(tenant, "erased", f"{seq}/{DETAILS}", None, None, by_seq, None, None, body)


def _at(db: Connection, tenant: str, seq: int) -> StoredDocument | None:
    row = db.run("document", tenant=tenant, kind="erased", id=f"{seq}/{DETAILS}").fetchone()
    return None if row is None else StoredDocument._make(row)


def commitment_of(db: Connection, tenant: str, seq: int) -> bytes:
    """Return the commitment to the erased details of a commit; empty without a document."""
    try:
        document = _at(db, tenant, seq)
        return b"" if document is None else bytes.fromhex(document.json()["promise"])
    except (KeepwardError, KeyError, TypeError, ValueError):
        return b""


def erased_details(db: Connection, sealer: Sealer, tenant: str, seq: int) -> tuple[bytes, bytes | None]:
    """Return the commitment to the erased details of a commit, and the part without content.

    Raises:
        Tampered: no erasure names the commit, or the seal of its document does not match.
    """
    document = _at(db, tenant, seq)
    if document is None:
        raise Tampered("content is missing and no erasure names it; run `keepward verify`")
    _check_document(sealer, document, seq)
    residual_payload = document.json()["remains"]
    return commitment_of(db, tenant, seq), None if residual_payload is None else residual_payload.encode()


def _check_document(sealer: Sealer, document: StoredDocument, seq: int) -> None:
    if not document.has_valid_seal(sealer) or document.at <= seq:
        raise Tampered("an erasure does not match its seal; run `keepward verify`")


def erased_commitments(db: Connection, sealer: Sealer, tenant: str, seqs: Collection[int]) -> dict[int, bytes]:
    """Return, by seq, the commitments to the erased details of commits.

    Raises:
        Tampered: the seal of a document does not match.
    """
    found = {}
    ids = json_array(f"{seq}/{DETAILS}" for seq in seqs)
    rows = db.run("documents_by_id", tenant=tenant, kind="erased", ids=ids) if seqs else ()
    for document in map(StoredDocument._make, rows):
        seq = int(document.id.partition("/")[0])
        _check_document(sealer, document, seq)
        found[seq] = bytes.fromhex(document.json()["promise"])
    return found


def check(db: Connection, tenant: str) -> Iterator[Fault]:
    """Yield differences between the documents of erased details and the commits of kind ``erase``, in order."""
    due = {f"{seq}/{n}": by for (seq, n), by in erased_positions(db, tenant).items() if n == DETAILS}
    rows = map(StoredDocument._make, db.run("documents", tenant=tenant, kind="erased"))
    stored = {row.id: row.at for row in rows}
    for name in sorted(due.keys() | stored.keys()):
        if due.get(name) != stored.get(name):
            detail = "no erasure names it" if name not in due else "it differs from the erasure"
            yield Fault(check="erased", row=f"erased {tenant}/{name}", detail=detail)


def empty_positions(commit: Commit, events: Iterable[Any]) -> dict[EventPosition, bytes]:
    """Return the positions of a commit that have no content, with their commitments."""
    found: dict[EventPosition, bytes] = {
        (event.seq, event.n): event.payload_commit for event in events if event.payload is None
    }
    if commit.payload is None:
        found[commit.seq, DETAILS] = commit.commitment()
    return found
