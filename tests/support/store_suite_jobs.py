"""What every store must keep of jobs; part of ``store_suite.StoreSuite``. Needs pytest."""

from __future__ import annotations

import threading
from datetime import timedelta

from msgspec.structs import replace

from keepward.core.job import LEASE_DURATION, JobRow
from keepward.core.memory import Status
from keepward.storage.store import EventStore

from .factories import RecordFactory
from .store_suite_reads import TENANT, Ground


class JobsSuite(Ground):
    """Rows of jobs, leases, and memories past their term."""

    @staticmethod
    def kept(store: EventStore, *rows: JobRow) -> None:
        """Keep rows in one transaction."""
        with store.write() as writer:
            for row in rows:
                writer.put(row)

    def test_a_job_row_comes_back_as_it_was_stored(self, store: EventStore, make: RecordFactory) -> None:
        row = JobRow(
            tenant=TENANT,
            job="prune",
            holder="x",
            until=make.now + LEASE_DURATION,
            last_at=make.now,
            outcome="failed",
            receipt="r",
        )
        self.kept(store, row)
        assert store.documents(JobRow, TENANT).list() == [row]

    def test_job_rows_come_by_name(self, store: EventStore) -> None:
        self.kept(store, JobRow(tenant=TENANT, job="prune"), JobRow(tenant=TENANT, job="expire"))
        assert [row.job for row in store.documents(JobRow, TENANT).list()] == ["expire", "prune"]

    def test_a_job_row_replaces_the_one_before(self, store: EventStore, make: RecordFactory) -> None:
        row = JobRow(tenant=TENANT, job="prune", holder="x", until=make.now)
        self.kept(store, row, replace(row, holder="", until=None))
        assert store.documents(JobRow, TENANT).list() == [JobRow(tenant=TENANT, job="prune")]

    def test_of_two_writers_one_takes_the_lease(self, store: EventStore) -> None:
        ready, took = threading.Barrier(2), []

        def take(name: str) -> None:
            ready.wait(20)
            with store.write() as writer:
                if not writer.job_row(TENANT, "prune").holder:
                    writer.put(JobRow(tenant=TENANT, job="prune", holder=name))
                    took.append(name)

        threads = [threading.Thread(target=take, args=(name,), daemon=True) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(took) == 1

    def test_what_is_past_its_term_comes_longest_ago_first(self, store: EventStore, make: RecordFactory) -> None:
        late, early = (make.record(name, expires_at=make.now + timedelta(hours=n)) for n, name in ((2, "b"), (1, "a")))
        self.put(store, make, late, early)
        found = store.expired(TENANT, make.now + timedelta(hours=2), limit=10).records
        assert [record.id for record in found] == [early.id, late.id]

    def test_what_is_past_its_term_comes_up_to_the_limit(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, *(make.record(f"note {n}", expires_at=make.now) for n in range(3)))
        assert len(store.expired(TENANT, make.now, limit=2).records) == 2

    def test_permanent_and_inactive_memories_are_not_past_their_ttl(
        self, store: EventStore, make: RecordFactory
    ) -> None:
        ended = make.record("gone", expires_at=make.now, status=Status.EXPIRED)
        self.put(store, make, make.record("lasts"), make.record("soon", expires_at=make.now + timedelta(1)), ended)
        assert store.expired(TENANT, make.now, limit=10).records == []
