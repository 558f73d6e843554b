"""A journal that was changed after its export is not restored."""

from __future__ import annotations

import pytest
from filled import TENANT, opened
from msgspec.structs import replace

from keepward.errors import Tampered
from keepward.storage.store import open_store


@pytest.fixture
def exported(path):
    with opened(path) as store:
        return list(store.events(TENANT))


@pytest.fixture
def store():
    with open_store(":memory:") as store:
        yield store


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
    assert store.tenants() == []
