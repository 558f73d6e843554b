"""The SQLite store passes the suite that every store must pass."""

from __future__ import annotations

import pytest

from keepward.machine.trust_store import TrustStore
from keepward.storage.store import open_store
from support.store_suite import StoreSuite


class TestSqliteStoreInAFile(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store:
            yield store


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
