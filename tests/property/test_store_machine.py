"""Any sequence of commits gives the same answers as a dict of versions."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from msgspec.structs import replace

from keepward.core.memory import Status
from keepward.core.query import Filter
from keepward.errors import Conflict
from keepward.storage.store import open_store
from support.database import emptied
from support.factories import RecordFactory
from support.strategies import scopes

ANY = Filter(scopes=(), include_sensitive=True)
WORDS = st.lists(st.sampled_from(["tea", "coffee", "cup", "left", "right"]), min_size=1, max_size=4).map(" ".join)
KEYS = st.sampled_from([None, None, "drink", "place"])


class StoreMachine(RuleBasedStateMachine):
    """The model: every version of every memory in order of arrival, and the state after each commit."""

    ids = Bundle("ids")
    tenant = "ada"

    def opened(self):
        return open_store(":memory:")

    @initialize()
    def begin(self):
        self.store = self.opened()
        self.make = RecordFactory()
        self.versions: dict[str, list] = {}
        self.states: list[dict] = [{}]

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()

    def commit(self, *records):
        now = {each.id: each for each in self.states[-1].values()} | {each.id: each for each in records}
        held = [(each.scope, each.key) for each in now.values() if each.key and each.status is Status.ACTIVE]
        stage = self.make.stage(*records)
        taken = len(held) != len(set(held))
        try:
            with self.store.write() as writer:
                writer.append(self.tenant, stage)
                writer.put_receipt(self.make.receipt(self.tenant, stage.details.receipt))
        except Conflict:
            assert taken
            return False
        assert not taken
        for each in records:
            self.versions.setdefault(each.id, []).append(each)
        self.states.append(now)
        return True

    @rule(target=ids, text=WORDS, key=KEYS, scope=scopes, hours=st.none() | st.integers(-1, 2))
    def remember(self, text, key, scope, hours):
        end = None if hours is None else self.make.now + timedelta(hours=hours)
        record = self.make.record(text, key=key, scope=scope, expires_at=end, tags=(text.split()[0],))
        return record.id if self.commit(record) else multiple()

    @rule(memory_id=ids, text=WORDS, key=KEYS)
    def revise(self, memory_id, text, key):
        self.commit(self.make.revised(self.versions[memory_id][-1], text=text, key=key))

    @rule(memory_id=ids, status=st.sampled_from([Status.ACTIVE, Status.RETIRED, Status.ARCHIVED]))
    def change_status(self, memory_id, status):
        self.commit(self.make.revised(self.versions[memory_id][-1], status=status))

    @rule(one=ids, other=ids)
    def change_two(self, one, other):
        chosen = [self.versions[each][-1] for each in dict.fromkeys([one, other])]
        keys = [each.key for each in chosen][::-1]
        self.commit(*(self.make.revised(each, key=key) for each, key in zip(chosen, keys, strict=True)))

    @rule()
    def rebuild(self):
        assert self.store.rebuild(self.tenant) == len(self.versions)

    @rule(memory_id=ids)
    def history(self, memory_id):
        assert [step.after for _, step in self.store.history(self.tenant, memory_id)] == self.versions[memory_id]

    @rule(data=st.data())
    def the_past(self, data):
        seq = data.draw(st.integers(0, len(self.states) - 1))
        found = self.store.find(self.tenant, ANY, live_at=None, limit=None, as_of=seq).records
        assert {each.id: each for each in found} == self.states[seq]

    @rule(tag=st.sampled_from(["tea", "cup"]), scope=scopes, limit=st.integers(0, 3))
    def find(self, tag, scope, limit):
        filters = replace(ANY, tags=(tag,), scopes=(scope,))
        found = self.store.find(self.tenant, filters, live_at=self.make.now, limit=limit).records
        wanted = [
            each
            for each in reversed([self.states[-1][name] for name in self.versions])
            if tag in each.tags and each.scope == scope and each.is_live(self.make.now)
        ]
        assert found == wanted[:limit]

    @invariant()
    def the_head_counts_commits(self):
        if hasattr(self, "store"):
            assert self.store.head(self.tenant).seq == len(self.states) - 1

    @invariant()
    def every_record_is_the_newest(self):
        if hasattr(self, "store"):
            found = self.store.records(self.tenant, list(self.versions))
            assert (found.records, found.damaged) == ([each[-1] for each in self.versions.values()], [])

    @rule()
    def nothing_is_wrong(self):
        assert self.store.verify(self.tenant)[1] == []

    @rule()
    def facts_are_json(self):
        assert json.dumps(self.store.facts(self.tenant, self.make.now))


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


class OnPostgres(StoreMachine):
    """The same in a database, each run in a tenant of its own."""

    address = ""
    numbers = count()

    def opened(self):
        self.tenant = f"t{next(self.numbers)}"
        return open_store(self.address)


@pytest.fixture(scope="module")
def machines(server_address):
    OnPostgres.address = emptied(server_address)


@pytest.mark.slow
@pytest.mark.usefixtures("machines")
class TestOnPostgres(OnPostgres.TestCase):
    settings = settings(TestStoreMachine.settings, max_examples=8)
