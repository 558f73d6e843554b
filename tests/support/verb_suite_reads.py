"""What every handle must answer; part of ``verb_suite.VerbSuite``. Needs pytest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from keepward.core.memory import Record
from keepward.core.query import Filters
from keepward.errors import ContextTooSmall, InvalidInput, NotFound

#: Calls that take a limit, with what else they need.
LIMITED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "recall": (("Ana",), {}),
    "list_memories": ((), {}),
    "list_memories in an order": ((), {"sort": "importance"}),
    "log": ((), {}),
    "pending": ((), {}),
    "contradictions": ((), {}),
    "receipts": ((), {}),
    "merge_candidates": ((), {}),
    "diff": ((0,), {}),
    "branches": ((), {}),
}


class Handles:
    """Fixtures: one handle a principal, each by a token of its own.

    A suite for a sort of handle gives ``hold``, ``issue``, and ``clock``: the ``SteppingClock`` of the store.
    """

    @pytest.fixture
    def hold(self) -> Callable[[str], Any]:
        """Return what makes a handle of a token; a suite for a sort of handle overrides it."""
        pytest.fail("override the fixture `hold` with one that returns the handle of a token")

    @pytest.fixture
    def issue(self) -> Callable[..., str]:
        """Return what makes a token in a tenant that is empty: ``issue(name, rights="agent", scope="/")``."""
        pytest.fail("override the fixture `issue` with one that makes tokens of an empty tenant")

    @pytest.fixture
    def owner(self, hold: Callable[[str], Any], issue: Callable[..., str]) -> Any:
        """Return the handle of who owns the store."""
        return hold(issue("ana", rights="owner"))

    @pytest.fixture
    def reviewer(self, hold: Callable[[str], Any], issue: Callable[..., str]) -> Any:
        """Return the handle of who decides."""
        return hold(issue("rita", rights="reviewer"))

    @pytest.fixture
    def agent(self, hold: Callable[[str], Any], issue: Callable[..., str]) -> Any:
        """Return the handle of an agent."""
        return hold(issue("lyra"))

    @pytest.fixture
    def orion(self, hold: Callable[[str], Any], issue: Callable[..., str]) -> Any:
        """Return the handle of an agent in a scope of its own."""
        return hold(issue("orion", scope="/agents/orion"))

    @staticmethod
    def kept(memory: Any, text: str, **fields: Any) -> Record:
        """Remember a text; return its record."""
        record: Record = memory.remember(text, **fields).records[0]
        return record


class AskingSuite(Handles):
    """Required answers of a handle."""

    # --- memories

    def test_memory_is_returned_by_id_and_by_alias(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs", aliases=["note-7"])
        assert agent.get("note-7") == agent.get(record.id) == record

    def test_a_search_in_a_session_finds_its_messages_and_its_facts(self, agent: Any) -> None:
        agent.add([{"role": "user", "content": "The oven broke on Monday"}], session="s1")
        self.kept(agent, "The oven is hot", session="s1")
        self.kept(agent, "The oven is cold", session="s2")
        found = agent.recall("the oven", session="s1")
        assert {hit.memory.text for hit in found} == {"The oven broke on Monday", "The oven is hot"}

    # --- browsing

    def test_page_has_its_part_of_an_order_and_the_total(self, agent: Any) -> None:
        ids = [self.kept(agent, f"fact number {word}").id for word in ("one", "two", "three", "four", "five")]
        found = agent.list_memories(offset=1, limit=2)
        assert ([each.id for each in found], found.total, found.head) == ([ids[3], ids[2]], 5, agent.head)
        assert [each.id for each in agent.list_memories(sort="created", ascending=True, limit=None)] == ids

    def test_facets_count_each_field_without_its_own_filter(self, agent: Any) -> None:
        self.kept(agent, "Rye bread takes a day", source="web", tier="archival")
        self.kept(agent, "The shop opens at eight", tier="archival")
        self.kept(agent, "We are looking at the oven now", tier="working")
        found = agent.facets(filters=Filters(tiers=["archival"]))
        counts = {name: {each.value: each.count for each in values} for name, values in found.facets.items()}
        assert found.total == 2
        assert counts["tier"] == {"archival": 2, "working": 1}
        assert counts["source"] == {"web": 1, "inference": 1}
        assert counts["author"] == {agent.actor.label: 2}

    def test_activity_counts_what_was_written_day_by_day(self, agent: Any, owner: Any, clock: Any) -> None:
        record = self.kept(agent, "Rye bread takes a day")
        clock.advance(timedelta(days=1))
        owner.revise(record.id, "Rye bread takes two days", reason="measured")
        found = owner.activity(days=2)
        assert found.counts == (1, 1)
        assert {each.name: each.counts for each in found.series} == {
            agent.actor.label: (1, 0),
            owner.actor.label: (0, 1),
        }

    def test_sources_report_author_count_trust_and_time(self, agent: Any, owner: Any) -> None:
        record = self.kept(agent, "Rye bread takes a day", source="web", evidence=["https://rye.example"], session="s1")
        self.kept(agent, "The shop opens at eight")
        owner.forget(record.id, reason="it was wrong")
        found = owner.sources()
        (actor,) = found.actors
        assert (actor.name, actor.memories, actor.live, actor.writes) == (agent.actor.label, 2, 1, 2)
        assert [each.name for each in found.references] == ["https://rye.example"]
        assert {each.name: dict(each.trust) for each in found.sources}["web"] == {"web": 1}
        assert [(each.name, each.first, each.last) for each in found.sessions] == [
            ("s1", record.created_at, record.created_at)
        ]

    def test_a_reader_counts_nothing_that_it_does_not_see(self, agent: Any, orion: Any, owner: Any) -> None:
        self.kept(agent, "The shop opens at eight")
        self.kept(orion, "Orion waits for a pallet", scope="/agents/orion", tags=["secretive"], source="web")
        for asked in ({}, {"below": True}):
            assert agent.list_memories(offset=0, **asked).total == agent.facets(filters=Filters(**asked)).total == 1
            assert agent.facets(filters=Filters(**asked)).facets["tag"] == ()
            assert sum(agent.activity(filters=Filters(**asked), days=1).counts) == 1
            assert [each.name for each in agent.sources(filters=Filters(**asked)).actors] == [agent.actor.label]
        assert (owner.facets().total, owner.facets(filters=Filters(below=True)).total, orion.facets().total) == (
            1,
            2,
            2,
        )

    def test_a_lineage_goes_up_and_down(self, agent: Any) -> None:
        first = self.kept(agent, "Rye bread takes a day", tier="archival")
        middle = self.kept(agent, "Rye needs patience", derived_from=[first.id], tier="archival")
        last = self.kept(agent, "Plan rye a day ahead", derived_from=[middle.id], tier="archival")
        newer = self.kept(agent, "Rye wants thirty hours", tier="archival")
        agent.supersede(middle.id, newer.id, reason="measured")
        found = agent.lineage(middle.id)
        assert {each.id: each.depth for each in found.memories} == {
            first.id: -1,
            middle.id: 0,
            last.id: 1,
            newer.id: 1,
        }
        assert {(each.before, each.after, each.how) for each in found.bonds} == {
            (first.id, middle.id, "derived"),
            (middle.id, last.id, "derived"),
            (middle.id, newer.id, "superseded"),
        }

    def test_what_is_not_there_is_not_found(self, agent: Any) -> None:
        with pytest.raises(NotFound):
            agent.get("nobody")

    def test_the_past_is_as_it_was(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        agent.revise(record.id, "Ana prefers spaces", reason="she changed her mind")
        assert [agent.get(record.id, as_of=1), *agent.list_memories(as_of=1)] == [record, record]

    def test_an_instant_names_a_past_too(self, agent: Any, clock: Any) -> None:
        self.kept(agent, "Ana prefers tabs")
        before = clock.advance(timedelta(minutes=1))
        clock.advance(timedelta(minutes=1))
        self.kept(agent, "lunch is at noon")
        assert [each.text for each in agent.list_memories(as_of=before)] == ["Ana prefers tabs"]

    def test_each_read_of_an_instant_is_right_after_a_clock_ran_ahead(self, agent: Any, clock: Any) -> None:
        start, minutes = clock.now(), [10, 20, 60, 30, 40]
        times = [start + timedelta(minutes=each) for each in minutes]
        for minute, at in zip(minutes, times, strict=True):
            clock.set(at)
            self.kept(agent, f"the train of minute {minute} is late", key=f"m{minute}")
        clock.set(max(times) + timedelta(minutes=1))
        for each in range(5, 65, 10):
            at = start + timedelta(minutes=each)
            due = {
                f"m{minute}" for minute in minutes[: max((n for n, own in enumerate(times, 1) if own <= at), default=0)]
            }
            hits = agent.recall("which train is late", limit=10, as_of=at).hits
            text = agent.context("which train is late", budget_tokens=2_000, as_of=at).text
            assert {record.key for record in agent.list_memories(as_of=at)} == due
            assert {hit.memory.key for hit in hits} == due
            assert {key for key in map("m{}".format, minutes) if f"minute {key[1:]} is" in text} == due
            assert {change.after.key for change in agent.diff(0, at)} == due
            for key in map("m{}".format, minutes):
                if key in due:
                    assert agent.get(key, as_of=at.isoformat()).key == key
                else:
                    with pytest.raises(NotFound):
                        agent.get(key, as_of=at.isoformat())

    # --- recall and contexts

    def test_a_misspelt_kind_in_a_filter_is_an_error(self, agent: Any) -> None:
        with pytest.raises(InvalidInput, match="did you mean fact"):
            agent.recall("tabs", kinds=["fcat"])
        with pytest.raises(InvalidInput, match="did you mean fact"):
            agent.list_memories(kinds=["fcat"])

    def test_an_empty_query_is_an_error_or_finds_nothing(self, agent: Any) -> None:
        self.kept(agent, "Ana prefers tabs")
        try:
            assert len(agent.recall("")) == 0
        except InvalidInput as fault:
            assert str(fault)  # noqa: PT017  both are an answer; a hit is none

    def test_feedback_is_given_on_the_receipt_of_a_recall(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs for indentation")
        told = agent.feedback(agent.recall("indentation", receipt=True).receipt, used=[record.id])
        assert (told.used, told.actor) == ((record.id,), "agent:lyra")

    def test_a_context_holds_what_is_relevant_and_can_be_replayed(self, agent: Any) -> None:
        self.kept(agent, "Ana prefers tabs for indentation")
        context = agent.context("write some code with indentation")
        assert "Ana prefers tabs" in context.text
        assert agent.replay(context.receipt.id).text == context.text

    def test_a_budget_that_the_core_exceeds_is_an_error(self, owner: Any) -> None:
        self.kept(owner, "ship the release " * 20, tier="core", key="mission")
        with pytest.raises(ContextTooSmall):
            owner.context("anything", budget_tokens=5)

    # --- the journal and inquiries

    def test_the_log_goes_on_before_a_commit(self, agent: Any) -> None:
        for text in ("Ana prefers tabs", "lunch is at noon"):
            self.kept(agent, text)
        assert [each.commit.seq for each in agent.log(before=2)] == [1]

    def test_a_receipt_reports_its_decision(self, agent: Any) -> None:
        outcome = agent.remember("Ana prefers tabs")
        assert agent.receipt(outcome.receipt.id)["kind"] == "commit"

    def test_contradictions_are_pairs_with_what_differs(self, owner: Any) -> None:
        older, newer = (
            self.kept(owner, f"the API runs on port {port}", occurred_at=f"2026-02-0{day}T09:00:00Z")
            for day, port in ((1, 8080), (2, 9443))
        )
        [pair] = owner.contradictions().items
        assert (pair.older, pair.newer, pair.differs) == (older, newer, ("number",))

    def test_impact_is_of_one_thing(self, reviewer: Any) -> None:
        with pytest.raises(InvalidInput):
            reviewer.impact()

    def test_two_contexts_are_compared_by_their_receipts(self, agent: Any) -> None:
        first = agent.context("indentation").receipt.id
        record = self.kept(agent, "Ana prefers tabs for indentation")
        found = agent.context_diff(first, agent.context("indentation").receipt.id)
        assert [(each.id, each.change) for each in found.items] == [(record.id, "added")]

    def test_receipts_are_listed_newest_first(self, agent: Any, reviewer: Any) -> None:
        self.kept(agent, "Ana prefers tabs for indentation")
        receipt = agent.context("indentation").receipt.id
        assert [(each.id, each.kind) for each in reviewer.receipts(limit=1).items] == [(receipt, "compile")]

    # --- upkeep

    def test_records_are_recomputed(self, owner: Any) -> None:
        self.kept(owner, "Ana prefers tabs")
        assert owner.rebuild() == 1

    def test_what_is_indexed_needs_no_index(self, owner: Any) -> None:
        self.kept(owner, "Ana prefers tabs")
        told: list[tuple[int, int]] = []
        assert owner.reindex(on_progress=lambda done, total: told.append((done, total))) == 0

    def test_little_feedback_trains_nothing_and_says_so(self, owner: Any) -> None:
        trained = owner.train_reranker()
        assert (trained.serving, bool(trained.why)) == (False, True)

    def test_jobs_are_listed_and_run(self, owner: Any) -> None:
        run = owner.run_job("expire", force=True)
        assert (run.outcome, run.job in {each.name for each in owner.jobs()}) == ("run", True)

    def test_a_job_that_there_is_not_is_not_found(self, owner: Any) -> None:
        with pytest.raises(NotFound):
            owner.run_job("unheard_of")

    def test_memories_that_resemble_each_other_are_reported(self, owner: Any) -> None:
        for text in ("the office of the team is in Linz 1", "the office of the team is in Linz 2"):
            self.kept(owner, text)
        [pair] = owner.merge_candidates(floor=0.5)
        assert (pair.same, pair.differs) == (False, ("number",))

    def test_activity_and_sources_count_what_has_ended_unless_a_status_is_named(self, owner: Any) -> None:
        gone = self.kept(owner, "The ferry leaves at six")
        owner.forget(gone.id, reason="off season")
        holds = Filters(statuses=["active"])
        assert [sum(owner.activity(filters=each).counts) for each in (None, holds)] == [1, 0]
        assert [bool(owner.sources(filters=each).actors) for each in (None, holds)] == [True, False]

    def test_memory_tests_say_what_a_context_lacks(self, owner: Any) -> None:
        self.kept(owner, "The ferry leaves at six")
        test = {"objective": "When does the ferry leave?", "contains": "at six"}
        assert owner.run_tests([test, {**test, "lacks": ["ferry"], "max_lines": 1}])[1].failures == (
            "not allowed: ferry",
        )
        later = self.kept(owner, "The ferry leaves at nine in winter")
        owner.run_tests([test], label="harbour")
        assert owner.status()["memory_tests"]["label"] == "harbour"
        found = owner.bisect(test={**test, "lacks": "at nine"})
        assert later.id in {step.after.id for step in found.commit.steps}

    @pytest.mark.parametrize("limit", [0, -1, 1_001])
    def test_a_refused_limit_gets_the_range(self, owner: Any, limit: int) -> None:
        self.kept(owner, "Ana prefers tabs")
        for call, (args, named) in LIMITED.items():
            refusal = ""
            try:
                getattr(owner, call.partition(" ")[0])(*args, limit=limit, **named)
            except InvalidInput as fault:
                refusal = str(fault).removeprefix("body.limit: ")
            ranges = {"limit is at least 1", "must be a whole number from 1 to 500"}
            if call == "recall":
                ranges = {"limit is from 1 to 1,000"}
            elif call == "contradictions":
                ranges = {"limit is from 1 to 100"}
            elif limit > 0:
                # Lists of the library have no maximum; a page over HTTP has.
                ranges = {"", "must be a whole number from 1 to 500"}
            assert refusal in ranges, call

    def test_a_store_may_be_accepted_as_it_was_shown(self, owner: Any) -> None:
        self.kept(owner, "Ana prefers tabs")
        plan = owner.plan_adopt()
        assert owner.adopt(plan.digest).digest == plan.digest

    def test_a_blob_comes_back_as_it_was_put(self, agent: Any) -> None:
        data = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
        blob = agent.put_blob(data, media_type="image/png")
        assert (blob.bytes, blob.media_type, agent.read_blob(blob.ref)) == (len(data), "image/png", data)

    def test_a_blob_that_no_one_may_read_is_not_found(self, agent: Any) -> None:
        with pytest.raises(NotFound):
            agent.read_blob("sha256:" + "0" * 64)
