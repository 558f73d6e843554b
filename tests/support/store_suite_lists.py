"""Pages and counts by the database; part of ``store_suite.StoreSuite``. Needs pytest."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from keepward.core.filters import parse_where
from keepward.core.memory import (
    MIN_IMPORTANCE,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
    confidence_at,
    importance_at,
)
from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.core.value import to_micros
from keepward.services.search.index_cache import IndexCache
from keepward.storage.store import EventStore

from .factories import RecordFactory
from .store_suite_reads import TENANT, Ground

EVERY = Filter(scopes=(), include_sensitive=True)
NAMES: dict[str, Any] = {
    "scope": lambda record: [record.scope],
    "tier": lambda record: [record.tier],
    "kind": lambda record: [record.kind],
    "trust": lambda record: [record.effective_trust.label],
    "content_type": lambda record: [record.content_type],
    "source": lambda record: [record.source],
    "author": lambda record: [record.text_by],
    "subject": lambda record: [record.subject] if record.subject else [],
    "category": lambda record: [record.category] if record.category else [],
    "session": lambda record: [record.session] if record.session else [],
    "tag": lambda record: record.tags,
}
FIELDS = {
    "scope": ("named_scopes", ("/", "/users/bo")),
    "status": ("statuses", ("active", "expired")),
    "tier": ("tiers", ("archival",)),
    "kind": ("kinds", ("fact", "event")),
    "trust": ("trusts", ("agent", "web")),
    "source": ("sources", ("chat",)),
    "author": ("authors", ("agent:eve", "agent:nobody")),
    "subject": ("subject", "Zo\u00eb"),
    "category": ("category", "home"),
    "session": ("session", "s1"),
    "tag": ("tags", ('"b"', "caf\u00e9", "two\\three")),
}


def many(make: RecordFactory, number: int) -> list[Record]:
    """Return records of which no two are alike in all that a list asks for."""
    chance = random.Random(7)
    records = []
    for n in range(number):
        at = make.now - timedelta(days=chance.choice([0, 0, 1, 3, 30, 200, 600]), seconds=n % 5)
        fields: dict[str, Any] = {
            "tier": chance.choice([Tier.ARCHIVAL, Tier.EPISODIC, Tier.CORE]),
            "kind": chance.choice([Kind.FACT, Kind.EVENT, Kind.SUMMARY]),
            "scope": chance.choice(["/", "/users/bo", "/users/bo/tasks/1", "/users/bob"]),
            "source": chance.choice(["chat", "web"]),
            "trust": chance.choice([Trust.AGENT, Trust.OWNER]),
            "heard": chance.choice([None, Trust.WEB]),
            "author": chance.choice(["agent:eve", "agent:rob"]),
            "text_by": chance.choice(["agent:eve", "user:bo"]),
            "importance": chance.choice([0.0, 0.01, 0.0075, 0.5, 0.3333, 1.0]),
            "confidence": chance.choice([0.1, 0.77, 1.0]),
            "created_at": at,
            "text_at": at + timedelta(minutes=chance.choice([0, 1])),
            "updated_at": chance.choice([None, at + timedelta(minutes=2)]),
            "occurred_at": chance.choice([None, at - timedelta(days=2)]),
            "reinforced_at": at,
            "expires_at": chance.choice([None, None, make.now - timedelta(hours=1), make.now + timedelta(days=1)]),
            "status": chance.choice([Status.ACTIVE, Status.ACTIVE, Status.ACTIVE, Status.RETIRED, Status.EXPIRED]),
            "stability": chance.choice([Stability.STABLE, Stability.PERMANENT, Stability.VOLATILE]),
            "sensitivity": chance.choice([Sensitivity.NORMAL, Sensitivity.NORMAL, Sensitivity.SENSITIVE]),
            "subject": chance.choice([None, "Zo\u00eb", "bo"]),
            "category": chance.choice([None, "home", "work"]),
            "session": chance.choice([None, "s1", "s2"]),
            "job": chance.choice([None, "j"]),
            "key": chance.choice([None, f"k{n}"]),
            "tags": tuple(sorted(chance.sample(['"b"', "b", "caf\u00e9", "two\\three"], chance.randint(0, 3)))),
            "metadata_json": chance.choice([None, '{"oven":230}', '{"oven":90}']),
        }
        records.append(make.record(f"Bread number {n % 4} of Ana", **fields))
    return records


class ListsSuite(Ground):
    """A list and a count say what the records say, whatever the filter and the order."""

    @pytest.fixture
    def stored(self, store: EventStore, make: RecordFactory) -> list[Record]:
        """Return stored records, newest arrival first."""
        records = many(make, 160)
        self.put(store, make, *records)
        return records[::-1]

    def test_each_filter_selects_what_the_predicate_selects(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        now = make.now
        asked = [EVERY, Filter(scopes=("/users/bo",), below="/users/bo"), Filter(scopes=("/",), below="/")]
        asked += [replace(EVERY, **{name: values}) for name, values in FIELDS.values()]
        asked += [
            replace(EVERY, key=next(record.key for record in stored if record.key)),
            replace(EVERY, job="j"),
            replace(EVERY, keyed=False),
            replace(EVERY, statuses=("retired", "expired"), kinds=("event",)),
            replace(EVERY, since=now - timedelta(days=3), until=now),
            replace(EVERY, occurred_since=now - timedelta(days=33), occurred_until=now - timedelta(days=3)),
            replace(EVERY, min_importance=0.2469),
            replace(EVERY, text="BREAD NUMBER 2"),
            replace(EVERY, where=parse_where({"oven": {"$gt": 100}}), tiers=("core",)),
        ]
        for filters in (replace(each, now=to_micros(now)) for each in asked):
            due = [record.id for record in stored if filters.passes(record)]
            assert 0 < len(due) <= len(stored)
            assert store.listed_ids(TENANT, filters, to_micros(now)) == due
            assert store.listed_ids(TENANT, filters, to_micros(now), offset=3, limit=4) == due[3:7]
            assert store.count_listed(TENANT, filters, to_micros(now)) == len(due)
            assert [name for name, *_ in store.listed(TENANT, filters, to_micros(now))] == due[::-1]

    def test_the_index_sees_what_the_predicate_selects(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        index, now = IndexCache().current(store, TENANT), to_micros(make.now)
        visible = replace(EVERY, statuses=("active",), now=now)
        asked = [replace(visible, **dict([FIELDS[name]])) for name in ("tier", "kind", "subject", "category", "tag")]
        asked += [
            replace(visible, scopes=("/", "/users/bo")),
            replace(visible, content_types=("text",)),
            replace(visible, min_importance=0.2469),
            replace(visible, min_trust=int(Trust.OWNER)),
            replace(visible, include_sensitive=False),
            replace(visible, ids=frozenset(record.id for record in stored[:40])),
        ]
        for filters in asked:
            due = sum(filters.passes(record) for record in stored)
            assert due > 0
            assert index.count_visible(filters) == due

    @pytest.mark.parametrize("days", [0, 40, 900])
    def test_what_decays_is_in_the_order_of_its_value_at_the_time(
        self, store: EventStore, make: RecordFactory, stored: list[Record], days: int
    ) -> None:
        now = make.now + timedelta(days=days)
        for sort, value in (("importance", importance_at), ("confidence", confidence_at)):
            for ascending in (False, True):
                due = sorted(stored, key=lambda record: value(record, now), reverse=not ascending)
                found = store.listed_ids(TENANT, EVERY, to_micros(now), sort=sort, ascending=ascending)
                assert found == [record.id for record in due]

    def test_a_facet_is_counted_without_its_own_filter(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        now = make.now
        pairs = list(FIELDS.values())
        for asked in [[], *([pair] for pair in pairs), pairs[:1] + pairs[2:3], pairs[4:5] + pairs[8:], [("text", "2")]]:
            filters = replace(EVERY, now=to_micros(now), **dict(asked))
            total, counts = store.facet_counts(TENANT, filters, to_micros(now), [*NAMES, "status"])
            assert total == sum(filters.passes(record) for record in stored)
            for facet, values in {**NAMES, "status": lambda record: [record.status_at(now)]}.items():
                name = FIELDS[facet][0] if facet in FIELDS else "content_types"
                own = replace(filters, **{name: getattr(EVERY, name)})
                due = Counter(value for each in stored if own.passes(each) for value in values(each))
                assert counts[facet] == due

    def test_a_full_tier_archives_the_least_important_and_least_used_first(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        used = {record.id: n % 3 for n, record in enumerate(stored)}
        with store.write() as writer:
            writer.count_uses(TENANT, {name: (uses, make.now) for name, uses in used.items() if uses})
        later, free = make.now + timedelta(days=9), [each for each in stored if each.status is Status.ACTIVE]
        free = [record for record in free if not record.pinned and record.tier is Tier.ARCHIVAL]

        def usefulness(record: Record) -> float:
            last = make.now if used[record.id] else None
            return round(importance_at(record, later, last) * (1 + math.log1p(used[record.id])), 3)

        by_id = {record.id: record for record in stored}
        for owner in (False, True):
            due = {record.id for record in free if (record.trust is Trust.OWNER) is owner}
            found = list(store.least_worth_of_tier(TENANT, "archival", owner=owner))
            assert set(found) == due
            # Below the minimum, the order is that of the exact value.
            worths = [usefulness(by_id[name]) for name in found if by_id[name].importance > MIN_IMPORTANCE]
            assert worths == sorted(worths)
        scopes = ["/", "/users/bo"]
        normal = {record.id for record in free if record.scope in scopes and record.sensitivity is Sensitivity.NORMAL}
        found = list(store.least_worth(TENANT, "archival", scopes))
        assert set(found) == {name for name in normal if by_id[name].trust < Trust.USER}

    def test_what_jobs_look_for_is_what_the_records_say(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        now, used = make.now + timedelta(days=20), {record.id for record in stored[::3]}
        with store.write() as writer:
            writer.count_uses(TENANT, dict.fromkeys(used, (1, make.now)))
        live = [record for record in stored[::-1] if record.is_live(now) and not record.pinned]
        faded = [each for each in live if confidence_at(each, now) < 0.4 and importance_at(each, now) < 0.3]
        assert store.faded(TENANT, to_micros(now), confidence=0.4, importance=0.3) == [each.id for each in faded]
        before = make.now - timedelta(hours=2)
        facts = [
            each.id
            for each in live
            if each.kind is Kind.FACT and each.id not in used and importance_at(each, now) < 0.3
            if each.text_at < before and each.reinforced_at <= each.text_at
        ]
        assert facts == store.unused_facts(TENANT, to_micros(now), before=to_micros(before), importance=0.3)
        passing = [
            each.id
            for each in stored[::-1]
            if each.is_live(make.now) and each.expires_at and each.key is None and each.tier is not Tier.CORE
            if each.reinforced_at <= before
        ]
        assert (len(faded) > 0, len(facts) > 0, len(passing) > 0) == (True, True, True)
        assert store.passing(TENANT, make.now, until=before) == passing

    def test_memories_with_the_same_words_are_found_together(self, store: EventStore, make: RecordFactory) -> None:
        same = [make.record(), make.record(tier=Tier.EPISODIC), make.record(expires_at=make.now)]
        others = [make.record("coffee"), make.record(key="k"), make.record(kind=Kind.EVENT), make.record("none known")]
        for record in [*same, *others]:
            trait = b"" if record is others[-1] else record.text.encode()[:8]
            with store.write() as writer:
                stage = make.stage(record)
                features = make.features(record.text, trait=trait)
                writer.append(TENANT, dataclasses.replace(stage, features=(features,)))
        assert [record for record, _ in store.alike(TENANT, make.now, newest=0)] == same[:2]

    def test_status_counts_what_the_records_say(
        self, store: EventStore, make: RecordFactory, stored: list[Record]
    ) -> None:
        facts, live = store.facts(TENANT, make.now), [record for record in stored if record.is_live(make.now)]
        assert facts["by_status"] == Counter(record.status_at(make.now).value for record in stored)
        assert facts["by_tier"] == Counter(record.tier.value for record in live)
        assert facts["by_trust"] == Counter(record.effective_trust.label for record in live)
        assert facts["sensitive"] == sum(record.sensitivity is Sensitivity.SENSITIVE for record in live)
        mean = sum(importance_at(record, make.now) for record in live) / len(live)
        assert facts["average_importance"] == pytest.approx(mean, abs=0.0001)
