"""What every store must do, as tests: subclass ``StoreSuite`` and override the ``store`` fixture.

Only required behaviour is tested, one sentence and one claim each. Needs pytest.
"""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from msgspec.structs import replace

from keepward.core.commit import EMPTY_HASH, recompute_commit_hash
from keepward.core.memory import Status
from keepward.core.principals import Actor
from keepward.core.proposal import Proposal
from keepward.errors import Conflict, InvalidInput, StaleVersion
from keepward.ports.store import ScopeRange
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.store import EventStore

from .factories import RecordFactory
from .store_suite_jobs import JobsSuite
from .store_suite_lists import ListsSuite
from .store_suite_reads import ANY, TENANT, ReadSuite


class StoreSuite(ReadSuite, ListsSuite, JobsSuite):
    """Required behaviour of a ``ports.store.Store``."""

    # --- commits

    def test_a_commit_names_the_hash_of_the_one_before(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record())
        first = store.head(TENANT)
        self.put(store, make, make.record("another"))
        assert store.commits(TENANT, before=None, limit=1)[0].commit.prev == first.hash

    def test_a_stored_commit_hash_can_be_recomputed_from_the_export(
        self, store: EventStore, make: RecordFactory
    ) -> None:
        self.put(store, make, make.record(), make.record("another"))
        [(commit, events)] = store.events(TENANT)
        assert recompute_commit_hash(commit, events) == commit.hash

    def test_nothing_of_a_failed_transaction_stays(self, store: EventStore, make: RecordFactory) -> None:
        unfit = dataclasses.replace(make.stage(make.record("two")), salts=())
        with pytest.raises(InvalidInput), store.write() as writer:
            self.both(writer, make.stage(make.record()), unfit)
        assert store.head(TENANT).seq == 0

    def test_a_base_that_has_moved_is_stale(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        self.put(store, make, make.revised(first, text="newer"))
        with pytest.raises(StaleVersion):
            self.put(store, make, make.revised(first, text="late"))

    def test_a_key_has_one_active_memory(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record(key="drink"))
        with pytest.raises(Conflict):
            self.put(store, make, make.record("coffee", key="drink"))

    def test_a_key_may_be_used_in_another_scope(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record(key="drink"))
        self.put(store, make, make.record("coffee", key="drink", scope="/agents/orion"))
        assert len(store.find(TENANT, replace(ANY, key="drink"), live_at=None, limit=None).records) == 2

    def test_a_retired_memory_frees_its_key(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record(key="drink")
        self.put(store, make, first)
        self.put(store, make, make.revised(first, status=Status.RETIRED))
        self.put(store, make, make.record("coffee", key="drink"))
        assert store.head(TENANT).seq == 3

    def test_two_memories_may_trade_keys_in_one_commit(self, store: EventStore, make: RecordFactory) -> None:
        left, right = make.record(key="left"), make.record("right", key="right")
        self.put(store, make, left, right)
        self.put(store, make, make.revised(left, key="right"), make.revised(right, key="left"))
        assert [each.key for each in store.records(TENANT, [left.id, right.id]).records] == ["right", "left"]

    def test_a_memory_may_change_twice_in_one_commit(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first, make.revised(first, text="at last"))
        assert store.records(TENANT, [first.id]).records[0].version == 2

    # --- records

    def test_a_record_comes_back_as_it_went_in(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record(
            'grüß 茶 🍵\n\t"quoted"', key="k", tags=("a", "ü"), metadata_json='{"a":1}', evidence=("chat:1",)
        )
        self.put(store, make, record)
        assert store.records(TENANT, [record.id]).records == [record]

    def test_records_come_in_the_order_asked(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record("one"), make.record("two")
        self.put(store, make, first, second)
        assert store.records(TENANT, [second.id, "nobody", first.id]).records == [second, first]

    def test_a_record_is_found_by_its_alias(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record(aliases=("note-7",))
        self.put(store, make, record)
        assert store.records(TENANT, ["note-7"]).records == [record]

    def test_an_alias_of_several_memories_means_the_nearest(self, store: EventStore, make: RecordFactory) -> None:
        shared, ana = (make.record(aliases=("m1",), session="s", scope=scope) for scope in ("/", "/users/ana"))
        loose = make.record(aliases=("m1",), scope="/users/ana")
        self.put(store, make, shared, ana, loose)
        assert store.records(TENANT, ["m1"]).records == [shared]
        assert store.records(TENANT, ["m1"], scopes=("/users/ana", "/")).records == [ana]
        assert store.same_event(TENANT, ["m1"], "/users/ana", "s").records == [ana]
        assert store.same_event(TENANT, ["m1"], "/users/ana", None).records == [loose]

    def test_the_past_shows_the_version_of_that_time(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        self.put(store, make, make.revised(first, text="newer"))
        assert store.records(TENANT, [first.id], as_of=1).records == [first]

    # --- the journal

    def test_history_reports_every_version_oldest_first(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        second = make.revised(first, text="newer")
        self.put(store, make, first)
        self.put(store, make, second)
        assert [step.after for _, step in store.history(TENANT, first.id)] == [first, second]

    def test_commit_of_many_is_read_once_for_all_histories(
        self, store: EventStore, make: RecordFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        records = [make.record() for _ in range(5)]
        self.put(store, make, *records)
        alone = {each.id: store.history(TENANT, each.id) for each in records}
        read: list[int] = []
        whole = type(store)._checked
        monkeypatch.setattr(type(store), "_checked", lambda own, *given: read.append(1) or whole(own, *given))
        assert (store.histories(TENANT, alone), len(read)) == (alone, 1)

    def test_commits_come_newest_first_below_a_seq(self, store: EventStore, make: RecordFactory) -> None:
        for n in range(4):
            self.put(store, make, make.record(str(n)))
        assert [view.commit.seq for view in store.commits(TENANT, before=4, limit=2)] == [3, 2]

    def test_commits_of_scopes_come_newest_first(self, store: EventStore, make: RecordFactory) -> None:
        for scope in ("/", "/agents/b", "/agents/b/tasks/1", "/agents/bo", "/agents", "/agents/B"):
            self.put(store, make, make.record(scope=scope))
        scopes = ScopeRange(each=("/agents/b", "/"), below="/agents/b")
        found = store.commits(TENANT, before=None, limit=9, scopes=scopes)
        ids = [view.commit.id for view in store.commits(TENANT, before=None, limit=9)]
        assert [view.commit.seq for view in found] == [3, 2, 1]
        assert store.commits_within(TENANT, ids[:5], scopes) == [view.commit.id for view in found[1::-1]]
        assert [view.commit.seq for view in store.commits(TENANT, before=3, limit=1, scopes=scopes)] == [2]

    def test_facts_of_scopes_count_nothing_else(self, store: EventStore, make: RecordFactory) -> None:
        for scope in ("/", "/agents/b", "/agents/b/tasks/1", "/agents/bo"):
            self.put(store, make, make.record(scope=scope))
        facts = store.facts(TENANT, make.now, scopes=ScopeRange(each=("/",), below="/agents/b"))
        assert (facts["by_scope"], facts["events"], facts["commits"]) == ({"/": 1, "/agents/b/tasks/1": 1}, 2, 2)
        assert store.facts(TENANT, make.now)["live"] == 4

    def test_commits_of_a_kind_and_actor_come_newest_first(self, store: EventStore, make: RecordFactory) -> None:
        for actor, kind in (("agent:o\u00f6", "write"), ("agent:oo", "write"), ("agent:o\u00f6", "rollback")):
            self.put(store, make, make.record(), kind=kind, details=replace(make.details(), actor=actor))

        def seqs(**wanted: str) -> list[int]:
            return [view.commit.seq for view in store.commits(TENANT, before=None, limit=9, **wanted)]

        assert [seqs(kind="write"), seqs(actor="o\u00f6"), seqs(actor="agent:o\u00f6", kind="rollback")] == [
            [2, 1],
            [3, 1],
            [3],
        ]

    def test_commit_is_found_by_id_by_seq_and_by_prefix(self, store: EventStore, make: RecordFactory) -> None:
        stage = self.put(store, make, make.record())
        names = [stage.commit_id, "1", stage.commit_id[:35]]
        assert [view and view.details for view in (store.commit(TENANT, name) for name in names)] == [stage.details] * 3

    def test_a_journal_restored_elsewhere_has_the_same_head(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record(key="k", tags=("a",), aliases=("x",))
        self.put(store, make, first)
        self.put(store, make, make.revised(first, text="newer"))
        exported = list(store.events(TENANT))
        renamed = [(replace(commit, tenant="bob"), events) for commit, events in exported]
        again = []
        prev = EMPTY_HASH
        for commit, events in renamed:
            linked = replace(commit, prev=prev)
            prev = recompute_commit_hash(linked, events)
            again.append((replace(linked, hash=prev), events))
        assert store.restore_journal("bob", iter(again)).hash == prev

    def test_a_journal_is_not_restored_over_another(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record())
        with pytest.raises(Conflict):
            store.restore_journal(TENANT, iter(list(store.events(TENANT))))

    def test_rebuilding_changes_no_answer(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record(key="k", aliases=("x",), derived_from=("y",))
        self.put(store, make, first, make.record("two"))
        self.put(store, make, make.revised(first, text="newer"))
        before = list(store.indexed(TENANT))
        store.rebuild(TENANT)
        assert list(store.indexed(TENANT)) == before

    def test_a_sound_store_has_no_faults(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record(key="k", aliases=("x",), derived_from=("y",), tags=("t",))
        self.put(store, make, first, make.record("two"))
        self.put(store, make, make.revised(first, text="newer"), make.revised(make.revised(first), text="newest"))
        with store.write() as writer:
            writer.put(make.waiting(TENANT, [make.record("held")]))
            writer.put(ReceiptArtefact(TENANT, "identity", "v1", "I am Orion."))
            writer.count_uses(TENANT, {first.id: (1, make.now)})
        assert store.verify()[1] == []

    def test_tenants_are_sorted(self, store: EventStore, make: RecordFactory) -> None:
        for tenant in ("zoe", "ada", "bob"):
            self.put(store, make, make.record(), tenant=tenant)
        assert store.tenants() == ["ada", "bob", "zoe"]

    # --- beside the journal

    def test_a_receipt_comes_back_as_it_was_stored(self, store: EventStore, make: RecordFactory) -> None:
        receipt = make.receipt(TENANT, score=0.25, words=["ü"])
        with store.write() as writer:
            writer.put_receipt(receipt)
        assert store.receipt(TENANT, receipt.id) == receipt.as_dict()

    def test_old_receipts_of_contexts_are_compacted_once(self, store: EventStore, make: RecordFactory) -> None:
        lent = make.context(TENANT, "m")
        lent = replace(lent, facts={**lent.facts, "handed": "tool"})
        plain, other = make.context(TENANT, "n"), make.receipt(TENANT)
        with store.write() as writer:
            for receipt in (lent, plain, other):
                writer.put_receipt(receipt)
            until = make.now - timedelta(microseconds=1)
            assert writer.compactable_receipts(TENANT, until, after="", limit=9) == []
            names = []
            for _ in range(2):
                (page,) = writer.compactable_receipts(TENANT, make.now, after=(names or [""])[-1], limit=1)
                names.append(page["id"])
            assert names == sorted((lent.id, plain.id))
            writer.rewrite_receipts(TENANT, {lent.id: {**lent.as_dict(), "compacted_at": "now"}})
            (left,) = writer.compactable_receipts(TENANT, make.now, after="", limit=9)
        assert (left["id"], store.low_trust_deliveries(TENANT, "")) == (plain.id, [])
        assert store.verify(TENANT)[1] == []

    def test_a_receipt_is_written_once(self, store: EventStore, make: RecordFactory) -> None:
        receipt = make.receipt(TENANT)
        with store.write() as writer:
            writer.put_receipt(receipt)
        with pytest.raises(Conflict), store.write() as writer:
            writer.put_receipt(receipt)

    def test_a_proposal_comes_back_as_it_went_in(self, store: EventStore, make: RecordFactory) -> None:
        item = make.waiting(TENANT, [make.record("grüß 茶")])
        with store.write() as writer:
            writer.put(item)
        assert store.documents(Proposal, TENANT).get(item.id, prefix=True) == item

    def test_the_queue_shows_pending_proposals_oldest_first(self, store: EventStore, make: RecordFactory) -> None:
        old = make.waiting(TENANT, [make.record("one")])
        new = make.waiting(TENANT, [make.record("two")], created_at=make.now + timedelta(seconds=1))
        done = make.waiting(TENANT, [make.record("three")], state="rejected")
        with store.write() as writer:
            for item in (new, done, old):
                writer.put(item)
        assert store.documents(Proposal, TENANT).list(state="pending") == [old, new]
        assert store.documents(Proposal, TENANT).list(state="pending", actor=old.proposer) == [old, new]
        assert store.documents(Proposal, TENANT).list(state="pending", actor=Actor.agent("nobody")) == []
        assert store.documents(Proposal, TENANT).list(state="pending", refs=[new.steps[0].after.id, "gone"]) == [new]

    def test_stored_texts_of_one_kind_go_and_others_stay(self, store: EventStore) -> None:
        with store.write() as writer:
            for kind in ("identity", "passing"):
                writer.put(ReceiptArtefact(TENANT, kind, "v1", "I am Orion."))
        with store.write() as writer:
            writer.delete(ReceiptArtefact, TENANT, "passing/v1")
        assert store.documents(ReceiptArtefact, TENANT).list() == [
            ReceiptArtefact(TENANT, "identity", "v1", "I am Orion.")
        ]

    def test_uses_are_counted_next_to_the_journal(self, store: EventStore, make: RecordFactory) -> None:
        with store.write() as writer:
            writer.count_uses(TENANT, {"m": (1, make.now)})
            writer.count_uses(TENANT, {"m": (1, make.now + timedelta(hours=1))})
        assert store.usage(TENANT, ["m", "n"]) == {"m": (2, make.now + timedelta(hours=1))}

    def test_uses_and_deliveries_of_a_context_are_stored(self, store: EventStore, make: RecordFactory) -> None:
        receipt = make.context(TENANT, "m", "n", "w", weak=["w"])
        with store.write() as writer:
            writer.count_uses(TENANT, {"m": (1, make.now - timedelta(hours=1))})
            writer.count_uses(TENANT, {"m": (1, make.now), "n": (1, make.now)})
            writer.put_receipt(receipt)
        assert store.usage(TENANT, ["m", "n", "w"]) == {"m": (2, make.now), "n": (1, make.now)}
        assert store.unlearned_uses(TENANT) == {"m": 2, "n": 1}
        assert store.deliveries(TENANT, ["n", "w"]) == [("n", 1, receipt.id), ("w", 1, receipt.id)]
        assert store.verify()[1] == []

    def test_facts_count_what_was_used(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record(), make.record("two")
        self.put(store, make, first, second, make.record("three"))
        with store.write() as writer:
            writer.count_uses(TENANT, {first.id: (2, make.now), second.id: (1, make.now)})
        facts = store.facts(TENANT, make.now)
        assert (facts["used"], facts["average_uses"]) == (2, 1.0)

    def test_what_importance_has_learned_from_is_counted_once(self, store: EventStore, make: RecordFactory) -> None:
        with store.write() as writer:
            writer.count_uses(TENANT, {"m": (1, make.now), "n": (1, make.now)})
        with store.write() as writer:
            writer.learn_uses(TENANT, {"m": 1})
            writer.count_uses(TENANT, {"m": (1, make.now)})
        assert store.unlearned_uses(TENANT) == {"m": 1, "n": 1}

    def test_uses_that_are_forgotten_stay_so(self, store: EventStore, make: RecordFactory) -> None:
        with store.write() as writer:
            writer.count_uses(TENANT, {"m": (1, make.now), "n": (1, make.now)})
        with store.write() as writer:
            writer.drop_of_memories(TENANT, ["m"])
        assert (store.usage(TENANT, ["m", "n"]), store.verify()[1]) == ({"n": (1, make.now)}, [])

    def test_facts_count_what_is_live_at_an_instant(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record(), make.record("two", expires_at=make.now + timedelta(hours=1)))
        assert store.facts(TENANT, make.now + timedelta(hours=1))["by_status"] == {"active": 1, "expired": 1}

    def test_facts_count_later_writes_and_expirations(self, store: EventStore, make: RecordFactory) -> None:
        hour, found = timedelta(hours=1), []
        one, two = make.record("one", expires_at=make.now + hour), make.record("two")
        self.put(store, make, one)
        found += [store.facts(TENANT, at)["by_status"] for at in (make.now, make.now + hour, make.now)]
        self.put(store, make, two)
        with store.write() as writer:
            writer.count_uses(TENANT, {one.id: (1, make.now), two.id: (2, make.now), "gone": (1, make.now)})
        facts = store.facts(TENANT, make.now)
        assert found == [{"active": 1}, {"expired": 1}, {"active": 1}]
        assert (facts["live"], facts["events"], facts["used"]) == (2, 2, 2)
