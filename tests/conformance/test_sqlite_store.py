"""The SQLite store passes the suite that every store must pass."""

from __future__ import annotations

import pytest

from keepward.adapters.trust_store import TrustStore
from keepward.storage.store import open_store
from support import tamper
from support.store_suite import StoreSuite
from support.store_suite_reads import TENANT


class TestSqliteStoreInAFile(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store:
            yield store

    def test_facts_asked_again_count_what_was_edited_from_outside(self, store, make, tmp_path):
        self.put(store, make, make.record())
        before = store.facts(TENANT, make.now)["retired"]
        tamper.edit(tmp_path / "m.db", "records", "status = 'retired'")
        assert (before, store.facts(TENANT, make.now)["retired"]) == (0, 1)


class TestSqliteStoreInMemory(StoreSuite):
    @pytest.fixture
    def store(self):
        with open_store(":memory:") as store:
            yield store


class TestSqliteStoreWithoutAnAnchor(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        with open_store(tmp_path / "m.db") as store:
            yield store
