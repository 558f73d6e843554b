"""No row beside the journal is edited, added, taken away, exchanged or put back as it once was without notice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from filled import ANY, TENANT, TOKEN, opened
from msgspec.structs import replace

from keepward.core.proposal import Proposal
from keepward.core.query import Feedback
from keepward.errors import Tampered
from keepward.storage.documents import ReceiptArtefact
from support import tamper
from support.factories import RecordFactory
from support.ids import CountingIds

KINDS = ("receipts", "proposals", "artefacts", "usage", "feedback", "tokens")


def faults(path: Path) -> set[str]:
    """Return the rows that verify names, or the error with which the store refuses."""
    with opened(path) as store:
        return {fault.row for fault in store.verify()[1]}


def changed(path: Path) -> None:
    """Give every table a newer state of a row that it holds, and one row more."""
    make = RecordFactory(CountingIds(50_000))
    with opened(path) as store:
        waiting = store.documents(Proposal, TENANT).list()[0]
        (told,) = store.documents(Feedback, TENANT).list()[:1]
        ids = [each.id for each in store.find(TENANT, ANY, live_at=None, limit=9).records]
        used = min(store.usage(TENANT, ids))
        with store.write() as writer:
            writer.put(replace(waiting, state="rejected", decision="no"))
            writer.put_feedback(replace(told, used=told.ignored, ignored=told.used))
            writer.count_uses(TENANT, {used: (1, make.now)})
            writer.put(replace(TOKEN, revoked_at=make.now + timedelta(minutes=1)))
            writer.put_receipt(make.receipt(TENANT, "9"))
            writer.put(ReceiptArtefact(TENANT, "identity", "v3", "I am Lyra."))


def test_a_store_as_it_was_written_has_no_faults(path: Path) -> None:
    changed(path)
    assert faults(path) == set()


@pytest.mark.promise("F2")
@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_is_noticed(path: Path, kind: str) -> None:
    tenant, of, _, *rest = tamper.documents(path, kind)[0]
    tamper.put_documents(path, (tenant, of, "0190f3c2-7b1e-7c3a-9f00-ffffffffffff", *rest))
    assert f"{kind} {TENANT}" in faults(path)


@pytest.mark.promise("F2")
@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_row_is_noticed(path: Path, kind: str) -> None:
    last = f"(SELECT max(id) FROM documents WHERE kind = '{kind}')"
    tamper.delete_documents(path, kind, f"id = {last}")
    assert f"{kind} {TENANT}" in faults(path)


@pytest.mark.promise("F1")
def test_an_edited_count_of_uses_counts_nothing_and_is_named(path: Path) -> None:
    make = RecordFactory(CountingIds(50_000))
    with opened(path) as store, store.write() as writer:
        writer.count_uses(TENANT, {"m": (1, make.now)})
    tamper.edit_documents(path, "usage", "id = 'n'", "id = 'm'")
    with opened(path) as store:
        assert store.usage(TENANT, ["m", "n"]) == {}
    assert any(row.startswith(f"usage {TENANT}/") for row in faults(path))


@pytest.mark.promise("F1")
@pytest.mark.parametrize("kind", KINDS)
def test_two_rows_that_change_places_are_named(path: Path, kind: str) -> None:
    first, second = tamper.documents(path, kind)[:2]
    tamper.put_documents(path, (*first[:3], *second[3:]), (*second[:3], *first[3:]))
    assert any(row.startswith(f"{kind} {TENANT}/") for row in faults(path))


@pytest.mark.promise("F5")
@pytest.mark.parametrize("kind", ["proposals", "usage", "feedback", "tokens"])
def test_a_row_put_back_as_it_once_was_is_noticed(path: Path, kind: str) -> None:
    before = tamper.documents(path, kind)
    changed(path)
    tamper.put_documents(path, *before)
    assert f"documents {TENANT}" in faults(path)


@pytest.mark.promise("F5")
def test_an_older_table_put_back_with_its_sums_is_noticed(path: Path) -> None:
    heads = tamper.heads(path)
    before = [row for kind in KINDS for row in tamper.documents(path, kind)]
    changed(path)
    tamper.put_back_everything_beside(path, heads, before)
    assert f"side tables {TENANT}" in faults(path)


def test_deleted_sums_are_not_recreated_by_the_next_write(path: Path) -> None:
    tamper.delete(path, "tenants")
    tamper.delete_documents(path, "receipts")
    with opened(path) as store, pytest.raises(Tampered, match="end of the journal is missing"):
        store.head(TENANT)


def test_accepting_a_store_counts_again(path: Path) -> None:
    tamper.delete_documents(path, "usage")
    with opened(path) as store:
        store.adopt("accepted")
    assert faults(path) == set()


def test_a_transaction_that_fails_counts_nothing(path: Path) -> None:
    with opened(path) as store, pytest.raises(RuntimeError), store.write() as writer:
        writer.put(ReceiptArtefact(TENANT, "identity", "v9", "I am nobody."))
        raise RuntimeError
    assert faults(path) == set()


def test_a_tenant_with_feedback_alone_has_sums_too(path: Path) -> None:
    with opened(path) as store, store.write() as writer:
        writer.put_feedback(
            Feedback(tenant="bob", at=RecordFactory().now, receipt="r", actor="agent:a", used=("x",), ignored=())
        )
    tamper.delete_documents(path, "feedback", "tenant = 'bob'")
    assert "feedback bob" in faults(path)
