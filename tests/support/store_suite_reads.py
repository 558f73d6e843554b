"""What every store must do when it is asked; part of ``store_suite.StoreSuite``. Needs pytest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from keepward.core.memory import Kind, Record, Sensitivity, Status, Tier
from keepward.core.query import Filter
from keepward.core.value import to_micros
from keepward.errors import Tampered
from keepward.ports.store import Features, PendingCommit
from keepward.storage.store import EventStore
from keepward.storage.writer import UnitOfWork

from .factories import RecordFactory

TENANT = "ada"
ANY = Filter(scopes=(), include_sensitive=True)


class Ground:
    """Fixtures and a short way to commit."""

    @pytest.fixture
    def store(self) -> Iterator[EventStore]:
        """Yield an empty store; a suite for a store overrides it."""
        pytest.fail("override the fixture `store` with one that yields an empty store")

    @pytest.fixture
    def make(self) -> RecordFactory:
        """Return a maker of records and stages."""
        return RecordFactory()

    @staticmethod
    def put(
        store: EventStore, make: RecordFactory, *records: Record, tenant: str = TENANT, **fields: object
    ) -> PendingCommit:
        """Commit records with their receipt; return the stage."""
        stage = dataclasses.replace(make.stage(*records), **fields)  # type: ignore[arg-type]
        with store.write() as writer:
            writer.append(tenant, stage)
            writer.put_receipt(make.receipt(tenant, stage.details.receipt))
        return stage

    @staticmethod
    def both(writer: UnitOfWork, *stages: PendingCommit) -> None:
        """Append several commits in one transaction."""
        for stage in stages:
            writer.append(TENANT, stage)


class ReadSuite(Ground):
    """Filters, likeness, the index and counts."""

    # --- times

    @pytest.mark.parametrize("minutes", [[10, 20, 60, 30, 40], [50, 40, 30, 20, 10], [7, 7, 3, 9, 3, 9, 1]])
    def test_an_instant_names_the_newest_commit_that_is_not_later(
        self, store: EventStore, make: RecordFactory, minutes: list[int]
    ) -> None:
        times = [make.now + timedelta(minutes=each) for each in minutes]
        for at in times:
            self.put(store, make, make.record(), at=at)
        for each in range(-1, 62):
            at = make.now + timedelta(minutes=each)
            by_definition = max((seq for seq, own in enumerate(times, 1) if own <= at), default=0)
            assert store.newest_commit_at(TENANT, at) == by_definition

    # --- what an erasure reads

    def test_memories_with_an_equal_text_are_found_by_its_trait(self, store: EventStore, make: RecordFactory) -> None:
        one, other, third = (make.record(text) for text in ("tea is green", "TEA is green", "tea is black"))
        traits = (b"green", b"green", b"black")
        features = tuple(
            make.features(each.text, trait=trait) for each, trait in zip((one, other, third), traits, strict=True)
        )
        self.put(store, make, one, other, third, features=features)
        self.put(store, make, make.record(), tenant="bob", features=(make.features("tea", trait=b"green"),))
        assert store.with_traits(TENANT, [b"green", b"white"]) == sorted([one.id, other.id])
        assert store.with_traits(TENANT, []) == []

    def test_citations_are_those_of_the_newest_version(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record(evidence=("mail:7", "mail:8"))
        second = make.record(evidence=("mail:8",))
        self.put(store, make, first, second)
        self.put(store, make, make.revised(first, evidence=("mail:9",)))
        assert [store.citing(TENANT, [name]) for name in ("mail:7", "mail:8", "mail:9")] == [
            [],
            [second.id],
            [first.id],
        ]
        assert store.citing("bob", ["mail:8"]) == []

    def test_versions_of_several_memories_have_their_positions(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record("tea"), make.record("milk")
        self.put(store, make, first, second)
        self.put(store, make, make.revised(first, text="coffee"))
        found = store.versions(TENANT, [first.id, second.id, "nobody"])
        shown = {name: [(place, step.after.text) for place, step in steps] for name, steps in found.items()}
        assert shown == {
            first.id: [((1, 0), "tea"), ((2, 0), "coffee")],
            second.id: [((1, 1), "milk")],
            "nobody": [],
        }

    def test_replaced_texts_are_those_of_earlier_versions(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record("tea")
        self.put(store, make, first, make.record("tea"))
        self.put(store, make, make.revised(first, text="coffee"))
        found = list(store.replaced_texts(TENANT, lambda text: text in {"tea", "coffee"}))
        assert [(place, record.id) for place, record in found] == [((1, 0), first.id)]

    def test_details_and_commitments_are_read_by_position(self, store: EventStore, make: RecordFactory) -> None:
        stage = self.put(store, make, make.record(), make.record())
        self.put(store, make, make.record())
        ((commit, events), _) = store.events(TENANT)
        assert store.details_at(TENANT, [1]) == {1: (stage.details, 2)}
        asked = [(1, 1), (1, -1)]
        assert store.commitments_at(TENANT, asked) == {
            asked[0]: events[1].payload_commit,
            asked[1]: commit.commitment(),
        }
        with pytest.raises(Tampered, match="missing"):
            store.commitments_at(TENANT, [(1, 2)])

    # --- scopes

    def test_scopes_below_are_counted_up_to_a_limit(self, store: EventStore, make: RecordFactory) -> None:
        scopes = ("/", "/users/ana", "/users/Ana", "/users/ana", "/users/anabel", "/users/ana/tasks/1", "/.keepward")
        for scope in scopes:
            self.put(store, make, make.record(scope=scope))
        self.put(store, make, make.record(scope="/users/ana", sensitivity=Sensitivity.SENSITIVE))
        self.put(store, make, make.record(scope="/users/bob", expires_at=make.now))

        def below(scope: str, *, sensitive: bool = False, limit: int = 50) -> tuple[dict[str, int], bool]:
            return store.scopes_below(TENANT, scope, make.now, include_sensitive=sensitive, limit=limit)

        ana = {"/users/ana": 2, "/users/ana/tasks/1": 1}
        assert below("/") == ({"/users/Ana": 1, **ana, "/users/anabel": 1}, False)
        assert below("/", sensitive=True)[0]["/users/ana"] == 3
        assert below("/users/ana") == ({"/users/ana/tasks/1": 1}, False)
        assert below("/users/Ana") == ({}, False)
        assert below("/", limit=2) == ({"/users/Ana": 1, "/users/ana": 1}, True)

    def test_scopes_that_differ_only_in_case_are_found(self, store: EventStore, make: RecordFactory) -> None:
        for scope in ("/users/ANA", "/users/ana", "/users/Anabel"):
            self.put(store, make, make.record(scope=scope))
        gone = make.record(scope="/users/bob")
        self.put(store, make, gone)
        self.put(store, make, make.revised(gone, status=Status.RETIRED))
        asked = ["/users/Ana", "/users/ana", "/users/Bob", "/users/anabel"]
        assert sorted(store.scopes_in_other_case(TENANT, asked)) == [
            ("/users/Ana", "/users/ANA"),
            ("/users/Ana", "/users/ana"),
            ("/users/ana", "/users/ANA"),
            ("/users/anabel", "/users/Anabel"),
        ]

    # --- find

    def test_newest_arrivals_come_first_although_older_ones_were_revised(
        self, store: EventStore, make: RecordFactory
    ) -> None:
        first, second = make.record("one"), make.record("two")
        self.put(store, make, first)
        self.put(store, make, second)
        later = make.revised(first, text="one again")
        self.put(store, make, later)
        assert store.find(TENANT, ANY, live_at=None, limit=None).records == [second, later]

    @pytest.mark.parametrize(
        ("fields", "wanted"),
        [
            ({"scope": "/agents/orion"}, {"scopes": ("/agents/orion",)}),
            ({"tier": Tier.CORE}, {"tiers": ("core",)}),
            ({"kind": Kind.RULE}, {"kinds": ("rule",)}),
            ({"tags": ("b", "c")}, {"tags": ("c", "z")}),
            ({"key": "drink"}, {"key": "drink"}),
            ({"tags": ('a "quoted"\\\tü',)}, {"tags": ('a "quoted"\\\tü',)}),
            ({"subject": "Bo"}, {"subject": "Bo"}),
            ({"subject": "José"}, {"subject": "Jose\N{COMBINING ACUTE ACCENT}"}),
            ({"category": "taste"}, {"category": "taste"}),
            ({"session": "s1"}, {"session": "s1"}),
            ({"job": "j1"}, {"job": "j1"}),
            ({"importance": 0.9}, {"min_importance": 0.9}),
        ],
    )
    def test_a_filter_lets_through_what_it_names_alone(
        self, store: EventStore, make: RecordFactory, fields: dict[str, Any], wanted: dict[str, object]
    ) -> None:
        record = make.record(**fields)
        self.put(store, make, record, make.record("other", tags=("a",)))
        filters = replace(ANY, **wanted)  # type: ignore[arg-type]
        assert store.find(TENANT, filters, live_at=None, limit=None).records == [record]

    @pytest.mark.parametrize("wanted", [{"tags": ("c",)}, {"tiers": ("archival",)}, {"key": "k"}])
    def test_the_past_is_filtered_by_the_same_rule(
        self, store: EventStore, make: RecordFactory, wanted: dict[str, object]
    ) -> None:
        record = make.record(tags=("c",), key="k")
        self.put(store, make, record, make.record("other", tier=Tier.CORE))
        filters = replace(ANY, **wanted)  # type: ignore[arg-type]
        assert store.find(TENANT, filters, live_at=make.now, limit=None, as_of=1).records == [record]

    def test_sensitive_memories_need_to_be_asked_for(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, make.record(sensitivity=Sensitivity.SENSITIVE))
        assert store.find(TENANT, Filter(), live_at=None, limit=None).records == []

    def test_a_limit_counts_what_passed_the_filter(self, store: EventStore, make: RecordFactory) -> None:
        wanted = make.record("one", tags=("rare",))
        self.put(store, make, wanted, *(make.record(f"other {n}") for n in range(60)))
        assert store.find(TENANT, replace(ANY, tags=("rare",)), live_at=None, limit=1).records == [wanted]

    def test_a_memory_ends_at_the_very_instant_of_its_expiry(self, store: EventStore, make: RecordFactory) -> None:
        end = make.now + timedelta(hours=1)
        self.put(store, make, make.record(expires_at=end))
        assert store.find(TENANT, ANY, live_at=end, limit=None).records == []

    # --- likeness

    @staticmethod
    def likely(store: EventStore, make: RecordFactory, asked: Record) -> list[str]:
        """Return the ids of the memories that may say the same as another."""
        [found] = store.duplicate_candidates(TENANT, [(asked, make.features(asked.text))], make.now)
        return list(found)

    def test_equal_digests_come_before_shared_labels(self, store: EventStore, make: RecordFactory) -> None:
        near, same = make.record("tea is in the right cupboard"), make.record()
        self.put(store, make, near, same)
        assert self.likely(store, make, make.record()) == [same.id, near.id]

    @pytest.mark.parametrize(
        "fields", [{"scope": "/agents/orion"}, {"tier": Tier.WORKING}, {"sensitivity": Sensitivity.SENSITIVE}]
    )
    def test_likeness_stays_within_scope_tier_and_sensitivity(
        self, store: EventStore, make: RecordFactory, fields: dict[str, Any]
    ) -> None:
        self.put(store, make, make.record(**fields))
        assert self.likely(store, make, make.record()) == []

    def test_ended_memories_are_not_likely(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        self.put(store, make, make.revised(first, status=Status.ARCHIVED))
        assert self.likely(store, make, make.record()) == []

    def test_a_revised_text_is_no_longer_like_the_old_one(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        self.put(store, make, make.revised(first, text="something else entirely"))
        assert self.likely(store, make, make.record()) == []

    def test_at_most_8_are_likely(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, *(make.record(f"tea cupboard {n}") for n in range(40)))
        assert len(self.likely(store, make, make.record("tea cupboard"))) == 8

    def test_many_are_answered_as_each_would_be(self, store: EventStore, make: RecordFactory) -> None:
        self.put(store, make, *(make.record(f"tea in cupboard {n}") for n in range(12)), make.record("tea in cupboard"))
        texts = ("tea in cupboard", "tea in cupboard 3", "something else")
        asked = [(record, make.features(record.text)) for record in map(make.record, texts)]
        together = [list(group) for group in store.duplicate_candidates(TENANT, asked, make.now)]
        assert together == [self.likely(store, make, record) for record, _ in asked]

    def test_a_trait_apart_is_reported_before_anything_is_read(self, store: EventStore, make: RecordFactory) -> None:
        texts = {"tea in cupboard 1": b"one", "tea in cupboard 2": b"two"}
        features = tuple(make.features(text, trait=trait) for text, trait in texts.items())
        self.put(store, make, *map(make.record, texts), features=features)
        asked = make.record("tea in cupboard 3")
        [likely] = store.duplicate_candidates(TENANT, [(asked, make.features(asked.text, trait=b"two"))], make.now)
        assert sorted(likely.values()) == [False, True]

    def test_a_revised_memory_must_be_read(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record("tea in cupboard 1")
        self.put(store, make, first, features=(make.features(first.text, trait=b"one"),))
        self.put(store, make, make.revised(first, importance=0.9), features=(None,))
        asked = make.record("tea in cupboard 3")
        [likely] = store.duplicate_candidates(TENANT, [(asked, make.features(asked.text, trait=b"two"))], make.now)
        assert likely == {first.id: True}

    # --- profiles

    def test_a_profile_says_what_its_memory_says(self, store: EventStore, make: RecordFactory) -> None:
        at: dict[str, Any] = {"occurred_at": make.now - timedelta(days=9), "expires_at": make.now + timedelta(days=1)}
        told: dict[str, Any] = {"speaker": "Ana", "session": "s", "tags": ("a", "b"), "confidence": 0.25}
        record = make.record(kind=Kind.EVENT, **told, **at)
        self.put(store, make, record)
        [(_, profile)] = store.profiles(TENANT, after=0)
        assert profile is not None
        said, features, arrival, position = profile
        assert (said.id, said.version, said.kind) == (record.id, 1, "event")
        assert (said.speaker, said.event_session, said.tags, said.confidence) == ("Ana", "s", ("a", "b"), 2_500)
        assert (position, arrival, features.terms) == (1 << 20, 1 << 20, b"tea is in the left cupboard")
        assert (said.said_at, said.expires_at) == (to_micros(at["occurred_at"]), to_micros(at["expires_at"]))
        assert (said.effective_trust, said.sensitivity, said.importance) == (int(record.trust), "normal", 5_000)
        assert said.idle_since == to_micros(make.now)

    def test_a_profile_follows_a_change_without_features(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        self.put(store, make, make.revised(record, importance=0.9, subject="Bo"), features=(None,))
        [(_, profile)] = store.profiles(TENANT, after=0)
        assert profile is not None
        assert (profile.fields.version, profile.fields.importance, profile.fields.subject) == (2, 9_000, "Bo")

    def test_what_no_longer_holds_has_no_profile(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        self.put(store, make, make.revised(record, status=Status.ARCHIVED))
        assert list(store.profiles(TENANT, after=0)) == [(record.id, None)]

    def test_features_put_later_are_in_the_profile(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        with store.write() as writer:
            writer.put_features(TENANT, {record.id: make.features("other words", model="m", vectors=b"v", units=1)})
        [(_, profile)] = store.profiles(TENANT, after=0)
        assert profile is not None
        assert (profile.features.terms, profile.features.model, profile.features.vectors) == (b"other words", "m", b"v")

    # --- untold

    def test_only_what_ended_and_was_not_reported_counts_as_untold(
        self, store: EventStore, make: RecordFactory
    ) -> None:
        ended = [make.waiting(TENANT, [make.record(f"held {n}")], state="rejected") for n in range(2)]
        with store.write() as writer:
            for item in (*ended, replace(ended[0], told=True), make.waiting(TENANT, [make.record("held still")])):
                writer.put(item)
        assert (
            store.count_unnotified(TENANT, make.now),
            store.count_unnotified(TENANT, make.now + timedelta(days=31)),
        ) == (1, 2)

    # --- indexed

    def test_every_memory_touched_after_a_position_is_indexed(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record("one"), make.record("two")
        self.put(store, make, first, second)
        positions = [each.position for _, each in store.profiles(TENANT, after=0) if each is not None]
        later = make.revised(first, text="one again")
        self.put(store, make, later)
        assert [name for name, _ in store.profiles(TENANT, after=max(positions))] == [first.id]

    def test_what_is_indexed_comes_in_order_of_arrival(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record("one"), make.record("two")
        self.put(store, make, first, second)
        later = make.revised(first, text="one again")
        self.put(store, make, later)
        assert [record for record, _ in store.indexed(TENANT)] == [later, second]

    def test_features_come_back_as_they_went_in(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        features = Features(terms=b"t", model="m", vectors=bytes(8), units=2, digest=b"d", marks=(-5, 7))
        self.put(store, make, record, features=(features,))
        [(_, stored)] = store.indexed(TENANT)
        assert stored == features

    def test_a_step_without_features_preserves_those_of_the_version_before(
        self, store: EventStore, make: RecordFactory
    ) -> None:
        record = make.record()
        self.put(store, make, record)
        self.put(store, make, make.revised(record, importance=0.9), features=(None,))
        [(_, stored)] = store.indexed(TENANT)
        assert stored == make.features(record.text)

    def test_the_past_is_indexed_without_features_that_are_newer(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        self.put(store, make, make.revised(record, text="newer"))
        [(_, profile)] = store.profiles(TENANT, after=0, as_of=1)
        assert profile is not None
        assert (profile.fields.id, profile.fields.version) == (record.id, 1)
        assert (profile.position, profile.features.terms) == (1 << 20, b"")

    def test_arrival_is_the_position_of_the_first_version(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        [(_, before)] = store.profiles(TENANT, after=0)
        self.put(store, make, make.revised(record, text="newer"))
        [(_, after)] = store.profiles(TENANT, after=0)
        assert before is not None
        assert after is not None
        assert before.position == after.arrival < after.position

    def test_a_vector_is_of_an_embedder_and_of_a_recipe(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        made = make.features(record.text, model="m", recipe="2", vectors=bytes(4), units=1)
        self.put(store, make, record, features=(made,))
        asked = [("m", ("2", "3")), ("m", ("3",)), ("m", ("",)), ("n", ("2",))]
        missing = [store.unembedded(TENANT, make.now, model, recipes) for model, recipes in asked]
        [(_, profile)] = store.profiles(TENANT, after=0)
        assert missing == [False, True, True, True]
        assert profile is not None
        assert (profile.features.model, profile.features.recipe) == ("m", "2")
        assert store.facts(TENANT, make.now)["vectors_by_recipe"] == {"m": {"2": 1}}

    def test_vectors_of_a_version_that_has_passed_are_skipped(self, store: EventStore, make: RecordFactory) -> None:
        record = make.record()
        self.put(store, make, record)
        self.put(store, make, make.revised(record, text="newer"))
        with store.write() as writer:
            writer.put_features(TENANT, {record.id: make.features("old")}, {record.id: 1})
        [(_, stored)] = store.indexed(TENANT)
        assert stored == make.features("newer")

    # --- counts and kin

    def test_the_tally_counts_active_memories_by_tier(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first, make.record("two"), make.record("three", tier=Tier.WORKING))
        self.put(store, make, make.revised(first, status=Status.RETIRED))
        assert store.tally(TENANT) == {"archival": 1, "working": 1}

    def test_the_tally_follows_a_memory_to_another_tier(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        self.put(store, make, make.revised(first, tier=Tier.CORE))
        assert store.tally(TENANT) == {"core": 1}

    def test_children_are_those_derived_directly(self, store: EventStore, make: RecordFactory) -> None:
        parent = make.record()
        child = make.record("two", derived_from=(parent.id,))
        self.put(store, make, parent, child, make.record("three", derived_from=(child.id,)))
        assert store.children(TENANT, [parent.id]) == [child.id]

    def test_the_tail_of_a_session_is_its_newest_active_memory(self, store: EventStore, make: RecordFactory) -> None:
        first, second = make.record("one", session="s"), make.record("two", session="s")
        self.put(store, make, first, second)
        self.put(store, make, make.revised(second, status=Status.RETIRED))
        assert store.session_tail(TENANT, "s") == first

    def test_a_rollback_is_found_by_the_commit_it_undoes(self, store: EventStore, make: RecordFactory) -> None:
        first = self.put(store, make, make.record())
        details = replace(make.details(), undoes=(first.commit_id,))
        second = self.put(store, make, make.record("two"), kind="rollback", details=details)
        assert store.undone_by(TENANT, first.commit_id) == [second.commit_id]

    def test_superseded_memories_are_found_by_what_they_said(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first)
        later = make.revised(first, status=Status.SUPERSEDED, superseded_by="x")
        self.put(store, make, later, features=(None,))
        asked = make.features(first.text, trait=b"other")
        assert store.superseded(TENANT, "/", asked.digest, asked.trait).records == [later]

    def test_superseded_memories_are_found_by_their_trait(self, store: EventStore, make: RecordFactory) -> None:
        first = make.record()
        self.put(store, make, first, features=(make.features(first.text, trait=b"same"),))
        later = make.revised(first, status=Status.SUPERSEDED, superseded_by="x")
        self.put(store, make, later, features=(None,))
        assert store.superseded(TENANT, "/", b"other", b"same").records == [later]
