"""The store on PostgreSQL passes the suite that every store must pass."""

from __future__ import annotations

import pytest

from keepward.adapters.home import FileAnchor
from keepward.store.store import open_store
from support.store_suite import StoreSuite


class TestPostgresStore(StoreSuite):
    @pytest.fixture
    def store(self, database, tmp_path):
        with open_store(database, anchor=FileAnchor(tmp_path / "config")) as store:
            yield store
