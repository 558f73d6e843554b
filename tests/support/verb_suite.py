"""What every handle must do, as tests: subclass ``VerbSuite`` and override the ``hold`` fixture.

A handle is whatever has the verbs of ``Memory``: in the process, awaited, or over HTTP. Only what holds for all of
them is tested, one sentence and one claim each; questions are in ``verb_suite_reads``, scopes in
``verb_suite_scopes``. Needs pytest.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from keepward.core.change import Insert, Replace, Supersede
from keepward.core.memory import Status, Tier
from keepward.core.proposal import Committed, Duplicate, Quarantined, Refused
from keepward.errors import Conflict, InvalidInput, NotFound, StaleVersion, Unauthorised

from .verb_suite_reads import AskingSuite
from .verb_suite_scopes import ScopeSuite

#: Put together here, so that no file holds one.
SECRET = "-".join(("sk", "ant", "api03", "Zq7" * 31 + "AA"))


class VerbSuite(AskingSuite, ScopeSuite):
    """Required behaviour of a handle."""

    # --- proposing

    def test_remembered_text_returns_a_commit_with_its_record(self, agent: Any) -> None:
        outcome = agent.remember("Ana prefers tabs", tags=["style"], metadata={"n": 1}, reason="she said so")
        assert isinstance(outcome, Committed)
        assert outcome.records[0] == agent.get(outcome.records[0].id)

    def test_the_same_said_again_is_a_duplicate_of_the_first(self, agent: Any) -> None:
        first = self.kept(agent, "Ana prefers tabs")
        again = agent.remember("Ana prefers tabs")
        assert isinstance(again, Duplicate)
        assert again.record.id == first.id

    def test_a_secret_is_refused_as_a_value_with_reasons(self, agent: Any) -> None:
        outcome = agent.remember(f"the key is {SECRET}")
        assert isinstance(outcome, Refused)
        assert [reason.gate for reason in outcome.reasons][:1] == ["secrets"]

    def test_unknown_argument_is_an_error_and_stores_nothing(self, agent: Any) -> None:
        with pytest.raises(InvalidInput):
            agent.remember("Ana prefers tabs", colour="blue")
        assert agent.list_memories() == []

    def test_a_ttl_may_be_a_text(self, agent: Any) -> None:
        record = self.kept(agent, "the build is red", ttl="2h")
        assert record.expires_at == record.created_at + timedelta(hours=2)

    def test_reason_may_be_left_out_or_empty(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        agent.revise(record.id, "Ana prefers spaces")
        with agent.draft() as draft:
            draft.append(record.id, "in Python")
        forgotten = agent.forget(record.id, reason=" ")
        agent.rollback(forgotten.commit.id)
        reasons = [each.details.reason for each in agent.history(record.id)]
        assert reasons == ["remembered", "revised", "appended", "forgotten", "rolled back"]

    def test_rollback_records_its_reason(self, agent: Any) -> None:
        saved = agent.remember("Ana prefers tabs")
        undone = agent.rollback(saved.commit.id, reason="a misunderstanding")
        assert agent.show(undone.commit.id).details.reason == "a misunderstanding"

    def test_a_revision_makes_the_next_version(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        outcome = agent.revise(record.id, "Ana prefers spaces", reason="she changed her mind")
        assert (outcome.records[0].text, outcome.records[0].version) == ("Ana prefers spaces", 2)

    def test_a_revision_leaves_alone_what_it_does_not_name(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs", category="style", tags=["a"])
        changed = agent.revise(record.id, category=None, reason="wrong").records[0]
        assert (changed.text, changed.category, changed.tags) == ("Ana prefers tabs", None, ("a",))

    def test_revision_that_changes_nothing_is_an_error(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        with pytest.raises(InvalidInput, match="nothing is changed"):
            agent.revise(record.id, reason="why not", if_version=1)
        with pytest.raises(InvalidInput, match="nothing is changed"):
            agent.propose([Replace(id=record.id)], reason="why not")
        with pytest.raises(InvalidInput, match="nothing is changed"), agent.draft(reason="why not") as draft:
            draft.replace(record.id)
        assert agent.get(record.id).version == 1

    def test_revision_of_an_outdated_version_is_stale(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        agent.revise(record.id, "Ana prefers spaces", reason="she changed her mind")
        with pytest.raises(StaleVersion):
            agent.revise(record.id, "Ana prefers both", reason="late", if_version=1)

    def test_a_change_of_what_is_not_there_is_not_found(self, agent: Any) -> None:
        with pytest.raises(NotFound):
            agent.revise("nobody", "x", reason="why not")

    def test_an_addition_is_on_a_line_of_its_own(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        assert agent.append(record.id, "and dark mode", reason="more").records[0].text.endswith("\nand dark mode")

    def test_forgotten_memory_is_not_found_and_can_be_restored(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        agent.forget(record.id, reason="wrong")
        ended = agent.get(record.id).status
        agent.restore(record.id, reason="right after all")
        assert (ended, agent.get(record.id).status) == (Status.RETIRED, Status.ACTIVE)

    def test_archived_memory_is_not_recalled_until_restored(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        agent.archive(record.id, reason="nobody asks", if_version=1)
        ended, found = agent.get(record.id).status, list(agent.list_memories())
        agent.restore(record.id, reason="somebody asks")
        assert (ended, found, agent.get(record.id).status) == (Status.ARCHIVED, [], Status.ACTIVE)

    def test_a_memory_is_moved_and_may_lose_its_key(self, agent: Any) -> None:
        record = self.kept(agent, "the plan of the day", key="plan", kind="state", ttl="2h")
        assert agent.move(record.id, key=None, reason="no longer needed").records[0].key is None

    def test_a_confirmed_memory_is_reinforced(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        assert isinstance(agent.reinforce(record.id), Committed)

    def test_a_promotion_by_an_agent_waits(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        assert isinstance(agent.promote(record.id, "Ana prefers tabs.", reason="it holds"), Quarantined)

    def test_one_memory_replaces_another(self, agent: Any) -> None:
        old, new = self.kept(agent, "the office is in Linz"), self.kept(agent, "the team moved to a new city")
        agent.supersede(old.id, new.id, reason="they moved")
        assert agent.get(old.id).superseded_by == new.id

    def test_a_merge_leaves_one_summary(self, agent: Any) -> None:
        parts = [self.kept(agent, text) for text in ("the office is in Linz", "lunch is at noon")]
        outcome = agent.merge(
            [each.id for each in parts], "an office in Linz with lunch at noon", reason="one is enough"
        )
        assert outcome.records[0].derived_from == tuple(each.id for each in parts)

    def test_a_merge_of_one_is_none(self, agent: Any) -> None:
        assert agent.merge([self.kept(agent, "Ana prefers tabs").id], reason="one") is None

    def test_a_keyed_state_is_updated(self, agent: Any) -> None:
        first = agent.update_by_key("build", "the build is red").records[0]
        second = agent.update_by_key("build", "the build is green").records[0]
        assert (second.id, second.version) == (first.id, 2)

    def test_bulk_forget_names_missing_memories(self, agent: Any) -> None:
        record = self.kept(agent, "Ana prefers tabs")
        outcome, missing = agent.forget_many([record.id, "nobody"], reason="wrong")
        assert (outcome.outcome, missing) == ("committed", ["nobody"])

    def test_forgetting_by_words_is_one_commit_that_rolls_back(self, agent: Any) -> None:
        old = [self.kept(agent, f"The old address is {street}") for street in ("12 Harbour Street", "8 Mill Lane")]
        plan = agent.plan_forget_matching("old address")
        done = agent.forget_matching("old address", digest=plan.digest)
        ended = [agent.get(each.id).status for each in old]
        agent.rollback(done.outcome.commit.id)
        assert (ended, [agent.get(each.id).status for each in old]) == ([Status.RETIRED] * 2, [Status.ACTIVE] * 2)

    def test_changed_forget_plan_is_a_conflict(self, agent: Any) -> None:
        self.kept(agent, "The old address is 12 Harbour Street")
        plan = agent.plan_forget_matching("old address")
        self.kept(agent, "Ana's old address is 8 Mill Lane in Braga")
        with pytest.raises(Conflict):
            agent.forget_matching("old address", digest=plan.digest)
        with pytest.raises(Conflict):
            agent.forget_matching("address", digest=plan.digest)
        assert len(agent.list_memories()) == 2

    def test_nothing_is_forgotten_where_nothing_matches(self, agent: Any) -> None:
        self.kept(agent, "Ana prefers tabs for indentation")
        plan = agent.plan_forget_matching("my sister's wedding")
        done = agent.forget_matching("my sister's wedding", digest=plan.digest)
        assert (plan.matches, done.matches, done.outcome) == ((), (), None)

    def test_forgetting_by_words_stays_within_the_own_scope(self, orion: Any, owner: Any) -> None:
        self.kept(owner, "The ferry of the company leaves at six")
        mine = self.kept(orion, "The ferry to the island leaves at nine")
        assert [each.id for each in orion.plan_forget_matching("ferry").matches] == [mine.id]

    def test_bulk_remember_returns_outcomes_in_order(self, agent: Any) -> None:
        items = ["Ana prefers tabs", {"text": f"the key is {SECRET}"}, "lunch is at noon"]
        outcomes = agent.remember_many(items)
        assert [each.outcome for each in outcomes] == ["committed", "refused", "committed"]

    def test_all_or_none_of_many_are_remembered(self, agent: Any) -> None:
        outcomes = agent.remember_many(["Ana prefers tabs", f"the key is {SECRET}"], mode="atomic")
        assert ([each.outcome for each in outcomes], agent.list_memories()) == (["refused", "refused"], [])

    def test_changes_of_one_proposal_may_name_what_it_makes(self, agent: Any) -> None:
        old = self.kept(agent, "the office is in Linz")
        new = Insert(id="new", text="the office is in Graz", scope=agent.scope)
        agent.propose([new, Supersede(id=old.id, by="new")], reason="they moved")
        assert agent.get(agent.get(old.id).superseded_by).text == "the office is in Graz"

    # --- drafts

    def test_a_draft_is_invisible_until_its_end(self, agent: Any) -> None:
        with agent.draft(reason="two at once") as draft:
            draft.insert("Ana prefers tabs")
            during = agent.list_memories()
        assert (during, draft.outcome.outcome) == ([], "committed")

    def test_a_draft_says_the_id_that_a_memory_will_have(self, agent: Any) -> None:
        with agent.draft(reason="two at once") as draft:
            named = draft.insert("Ana prefers tabs")
            draft.append(named, "and dark mode")
        assert agent.get(named).text == "Ana prefers tabs\nand dark mode"

    def test_a_taken_id_is_refused_and_nothing_changes(self, agent: Any) -> None:
        name = "01a00000-0000-7000-8000-000000000001"
        agent.propose([Insert(id=name, text="Ana prefers tabs")], reason="new")
        with pytest.raises(Conflict, match="is taken"):
            agent.propose([Insert(id=name, text="Ana prefers spaces")], reason="again")
        assert [record.text for record in agent.list_memories()] == ["Ana prefers tabs"]

    def test_a_draft_that_ends_in_an_error_leaves_nothing(self, agent: Any) -> None:
        def failing() -> None:
            with agent.draft(reason="two at once") as draft:
                draft.insert("Ana prefers tabs")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            failing()
        assert agent.list_memories() == []

    def test_a_draft_takes_nothing_after_its_end(self, agent: Any) -> None:
        with agent.draft(reason="two at once") as draft:
            draft.insert("Ana prefers tabs")
        for late in (lambda: draft.insert("lunch is at noon"), draft.__enter__):
            with pytest.raises(Conflict, match="begin another draft"):
                late()
        assert [each.text for each in agent.list_memories()] == ["Ana prefers tabs"]

    def test_an_empty_draft_comes_to_nothing(self, agent: Any) -> None:
        with agent.draft(reason="nothing") as draft:
            pass
        assert draft.outcome is None

    # --- deciding

    def test_core_write_of_an_agent_is_stored_after_approval(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        outcome = reviewer.approve(held.item.id, digest=held.item.digest)
        assert [each.tier for each in outcome.records] == [Tier.CORE]

    def test_an_approval_without_a_digest_is_of_what_waits_now(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        assert isinstance(reviewer.approve(held.item.id), Committed)

    def test_no_one_approves_what_they_proposed(self, agent: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        with pytest.raises(Unauthorised):
            agent.approve(held.item.id, digest=held.item.digest)

    def test_an_approval_of_other_bytes_is_a_conflict(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        with pytest.raises(Conflict):
            reviewer.approve(held.item.id, digest="0" * 64)

    def test_the_journal_is_sifted_by_who_what_and_when(self, owner: Any, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        stored = reviewer.approve(held.item.id).commit
        agent.remember("the ferry leaves at six")
        assert stored.id in {each.commit.id for each in owner.log(kind="approve")}
        assert {each.commit.kind for each in owner.log(kind="approve")} == {"approve"}
        assert stored.id in {each.commit.id for each in owner.log(actor=reviewer.actor.label)}
        assert owner.log(actor="nobody") == []
        assert owner.log(until=stored.seq, limit=1)[0].commit.id == stored.id

    def test_erasures_are_listed_with_what_proves_them(self, owner: Any) -> None:
        record = owner.remember("the pier is seven planks wide", tier="archival").record
        done = owner.erase(owner.plan_erase(record.id, reason="consent").digest, record.id, reason="consent")
        (listed,) = owner.log(kind="erase")
        names = [step.after.id for step in listed.steps]
        assert (listed.commit.id, names, listed.details.reason) == (done.commit.id, [record.id], "consent")
        assert owner.certificate(listed.commit.id)["memories"] == [record.id]

    def test_a_check_reports_how_far_it_has_come(self, owner: Any) -> None:
        told: list[tuple[int, int]] = []
        assert owner.verify(on_progress=lambda done, total: told.append((done, total))).ok
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0

    def test_an_amended_proposal_is_stored_with_the_reviewers_words(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the relese", tier="core", key="mission")
        outcome = reviewer.amend(held.item.id, "ship the release", digest=held.item.digest, tags=["plan"])
        assert [(each.text, each.tags) for each in outcome.records] == [("ship the release", ("plan",))]
        assert reviewer.proposal(held.item.id).decision == "approved with changes"

    def test_a_change_that_is_left_out_is_not_made(self, agent: Any, reviewer: Any) -> None:
        blocks = {"mission": "ship it", "workspace_state": "sail"}
        changes = [Insert(id=f"new {key}", text=text, tier=Tier.CORE, key=key) for key, text in blocks.items()]
        held = agent.propose(changes, reason="plans").item
        first, second = (step.after.id for step in held.steps)
        with pytest.raises(InvalidInput, match="every change is left out"):
            reviewer.amend(held.id, leave_out=[first, second])
        outcome = reviewer.amend(held.id, leave_out=[second], digest=held.digest)
        assert [each.text for each in outcome.records] == ["ship it"]
        assert reviewer.proposal(held.id).decision == "approved with changes"

    def test_a_rejection_is_reported_to_the_proposer_once(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        reviewer.reject(held.item.id, reason="not yet")
        assert ([each.decision for each in agent.notices()], agent.notices()) == (["not yet"], [])

    def test_bulk_decision_returns_one_answer_each(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        answers = reviewer.approve_many([held.item.id, "nobody"])
        assert [(each.ok, type(each.error)) for each in answers] == [(True, type(None)), (False, NotFound)]

    def test_many_are_rejected_for_one_reason(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission")
        assert [each.receipt.kind for each in reviewer.reject_many([held.item.id], reason="not yet")] == ["rejection"]

    def test_a_rejection_is_taken_back(self, agent: Any, reviewer: Any) -> None:
        held = agent.remember("ship the release", tier="core", key="mission").item
        reviewer.reject(held.id, reason="not yet")
        assert reviewer.reopen(held.id, reason="by mistake").kind == "reopening"
        assert [(each.id, each.digest, each.decision) for each in reviewer.pending()] == [(held.id, held.digest, None)]

    # --- undoing

    def test_a_rollback_undoes_one_commit(self, owner: Any) -> None:
        record = self.kept(owner, "Ana prefers tabs")
        owner.revise(record.id, "Ana prefers spaces", reason="she changed her mind")
        done = owner.rollback(str(owner.log(limit=1)[0].commit.seq))
        assert (done.applied, owner.get(record.id).text) == (True, "Ana prefers tabs")

    def test_containment_is_planned_applied_and_undone(self, owner: Any, agent: Any) -> None:
        record = self.kept(agent, "the office is in Linz", source="web")
        plan = owner.plan_contain(source="web")
        done = owner.contain(plan.digest, source="web", reason="poisoned")
        owner.rollback(done.commit.id)
        assert ([each.id for each in plan.items], done.applied, agent.get(record.id).status) == (
            [record.id],
            True,
            Status.ACTIVE,
        )

    def test_erasing_takes_the_digest_of_its_plan(self, owner: Any) -> None:
        record = self.kept(owner, "Ana prefers tabs")
        with pytest.raises(Conflict):
            owner.erase("0" * 64, record.id)

    def test_what_is_erased_has_a_certificate(self, owner: Any) -> None:
        record = self.kept(owner, "Ana prefers tabs")
        owner.erase(owner.plan_erase(record.id).digest, record.id)
        assert (owner.get(record.id).status, bool(owner.certificate(record.id))) == (Status.ERASED, True)

    # --- rights

    def test_a_token_is_made_used_and_ended(self, owner: Any, hold: Any) -> None:
        issued = owner.create_token("vega", can=["read"], expires="30d")
        vega = hold(issued.secret)
        before = vega.list_memories()
        owner.revoke_token(issued.token.id)
        with pytest.raises(Unauthorised):
            vega.list_memories()
        assert before == []

    def test_a_token_is_listed_with_what_it_can(self, owner: Any) -> None:
        issued = owner.create_token("vega", can=["read"])
        [listed] = [each for each in owner.tokens() if each.id == issued.token.id]
        assert (listed.name, listed.can, listed.tenant) == ("vega", ("read",), owner.tenant)

    def test_a_token_does_not_reach_another_tenant(self, agent: Any) -> None:
        with pytest.raises(Unauthorised):
            agent.at(tenant="somebody-else").list_memories()

    def test_a_token_does_not_reach_above_its_scope(self, orion: Any) -> None:
        with pytest.raises(Unauthorised):
            orion.at(scope="/agents/vega").list_memories()

    def test_a_token_reaches_below_its_scope(self, orion: Any) -> None:
        record = self.kept(orion.at(scope="/agents/orion/tasks/7"), "the task began")
        assert (record.scope, orion.list_memories()) == ("/agents/orion/tasks/7", [])

    def test_what_another_agent_respects_itself_is_not_there(self, orion: Any, owner: Any) -> None:
        record = self.kept(owner.at(scope="/agents/vega"), "a note of vega's own")
        with pytest.raises(NotFound):
            orion.get(record.id)
