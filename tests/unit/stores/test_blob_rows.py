"""What the store knows of blobs cannot be changed by hand without being noticed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from keepward.core.blob import Blob, BlobUpload, StoredBlob, ref_of
from keepward.errors import KeepwardError, Tampered
from keepward.machine.trust_store import TrustStore
from keepward.storage.store import EventStore, open_store
from support import tamper
from support.factories import RecordFactory

TENANT = "ada"
REF = ref_of(b"bytes")
LOOSE = ref_of(b"loose")


def stored_blob(ref: str) -> StoredBlob:
    now = RecordFactory().now
    put = BlobUpload(kind="agent", name="orion", credential=None, at=now)
    blob = Blob(ref=ref, bytes=5, media_type="image/png", active=False)
    return StoredBlob(tenant=TENANT, blob=blob, at=now, puts=(put,))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Return a store with two blobs; a memory refers to one."""
    make = RecordFactory()
    stage = make.stage(replace(make.record("the red house"), blob=REF))
    with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store, store.write() as writer:
        writer.put(stored_blob(REF))
        writer.put(stored_blob(LOOSE))
        writer.append(TENANT, stage)
        writer.put_receipt(make.receipt(TENANT, stage.details.receipt))
    return tmp_path / "m.db"


def opened(db: Path) -> EventStore:
    return open_store(db, anchor=TrustStore(db.parent / "config"))


def named(db: Path) -> set[str]:
    """Return the tables that verify names; a refusal to open says as much."""
    try:
        with opened(db) as store:
            return {fault.row.split()[0] for fault in store.verify()[1]}
    except KeepwardError as refusal:
        return {type(refusal).__name__}


def test_what_was_stored_is_reported(db: Path) -> None:
    with opened(db) as store:
        told = (
            store.documents(StoredBlob, TENANT).list(id=REF),
            store.blob_refs(TENANT),
            len(store.blob_holders(TENANT, REF)),
        )
    assert told == ([stored_blob(REF)], {REF}, 1)


def test_another_tenant_learns_nothing(db: Path) -> None:
    with opened(db) as store:
        assert (store.documents(StoredBlob, "bo").list(), store.blob_refs("bo"), store.blob_holders("bo", REF)) == (
            [],
            set(),
            [],
        )


@pytest.mark.parametrize(
    "change",
    [
        tamper.body('"bytes":5', '"bytes":6'),
        tamper.body("image/png", "text/html"),
        "id = 'sha256:x'",
        "seal = x'00'",
    ],
)
def test_an_edited_row_is_named_and_not_used(db: Path, change: str) -> None:
    tamper.edit_documents(db, "blobs", change, f"id = '{REF}'")
    assert named(db) & {"blobs", "Tampered"}
    with opened(db) as store, suppress(Tampered):
        assert store.documents(StoredBlob, TENANT).list(id=REF) == []


@pytest.mark.parametrize("ref", [REF, LOOSE])
def test_a_row_that_was_taken_away_is_noticed(db: Path, ref: str) -> None:
    tamper.delete_documents(db, "blobs", f"id = '{ref}'")
    assert "blobs" in named(db)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM links",
        f"INSERT INTO links VALUES ('{TENANT}', 'attachments', '{LOOSE}', 'x')",
        "UPDATE links SET id = 'x'",
    ],
)
def test_blob_references_are_compared_with_the_records(db: Path, statement: str) -> None:
    tamper.run(db, statement)
    assert "attachments" in named(db)


def test_a_blob_that_a_memory_refers_to_is_not_forgotten(db: Path) -> None:
    with opened(db) as store, store.write() as writer:
        assert (writer.drop_blob(TENANT, REF), writer.drop_blob(TENANT, LOOSE)) == (False, True)
