"""An exported journal is restored byte for byte, and a changed one is refused."""

from __future__ import annotations

import pytest
from filled import TENANT, opened
from msgspec.structs import replace

from keepward.errors import Tampered
from keepward.storage.store import open_store
from support.factories import RecordFactory


@pytest.fixture
def exported(path):
    with opened(path) as store:
        return list(store.events(TENANT))


@pytest.fixture
def store():
    with open_store(":memory:") as store:
        yield store


def test_a_restored_journal_is_exported_byte_for_byte(exported, store):
    store.restore_journal(TENANT, iter(exported))
    assert list(store.events(TENANT)) == exported


def test_a_restored_journal_verifies_once_its_features_are_there(exported, store):
    store.restore_journal(TENANT, iter(exported))
    names = [event.memory_id for _, events in exported for event in events]
    with store.write() as writer:
        writer.put_features(TENANT, {name: RecordFactory().features("x") for name in names})
    assert store.verify()[1] == []


def test_writing_goes_on_after_a_restored_journal(exported, store):
    head = store.restore_journal(TENANT, iter(exported))
    make = RecordFactory()
    with store.write() as writer:
        commit = writer.append(TENANT, make.stage(make.record(id="new"), commit_id="new"))
    assert (commit.seq, commit.prev) == (head.seq + 1, head.hash)


def _changed(exported, what):
    commit, events = exported[1]
    match what:
        case "payload":
            return [exported[0], (commit, [replace(events[0], payload=events[0].payload + b" ")])]
        case "op":
            return [exported[0], (commit, [replace(events[0], op="retire")])]
        case "details":
            return [exported[0], (replace(commit, payload=b"{}"), events)]
        case "missing commit":
            return [exported[0], *exported[2:]]
        case "missing event":
            return [exported[0], (commit, [])]
        case _:
            return [(replace(commit, tenant="bob"), events) for commit, events in exported]


@pytest.mark.parametrize("what", ["payload", "op", "details", "missing commit", "missing event", "tenant"])
def test_a_changed_export_is_refused(exported, store, what):
    with pytest.raises(Tampered):
        store.restore_journal(TENANT, iter(_changed(exported, what)))


def test_nothing_stays_of_an_export_that_was_refused(exported, store):
    with pytest.raises(Tampered):
        store.restore_journal(TENANT, iter(_changed(exported, "missing commit")))
    assert store.tenants() == []
