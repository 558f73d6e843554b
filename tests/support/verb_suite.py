"""What every handle must do, as tests: subclass ``VerbSuite`` and override the ``hold`` fixture.

A handle is whatever has the verbs of ``Memory``: in the process, awaited, or over HTTP. Only what holds for all of
them is tested, one sentence and one claim each; questions are in ``verb_suite_reads``, scopes in
``verb_suite_scopes``. Needs pytest.
"""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import Any

import pytest

from keepward.core.change import Insert, Replace, Supersede
from keepward.core.memory import Status, Tier
from keepward.core.principals import Trust
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
        first = agent.remember("the build is red", key="build", kind="state").records[0]
        second = agent.remember("the build is green", key="build", kind="state").records[0]
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

    # --- scopes and names

    def test_a_change_without_a_scope_is_at_that_of_its_handle(self, agent: Any) -> None:
        ana, bo = agent.user("ana"), agent.user("bo")
        proposed = ana.propose([Insert(text="The divorce hearing is on 3 May")]).records[0]
        with ana.draft() as draft:
            draft.stage(Insert(text="The lawyer is Dr. Weiss"))
        drafted = draft.outcome.records[0]
        assert {(each.scope, each.subject) for each in (proposed, drafted)} == {("/users/ana", "ana")}
        assert (len(ana.list_memories()), bo.list_memories()) == (2, [])
        for text in ("divorce", "lawyer"):
            assert text not in bo.context("What about the divorce and the lawyer?").text

    def test_an_erasure_of_a_user_takes_what_was_proposed_through_her_handle(self, owner: Any) -> None:
        ana = owner.user("ana")
        ana.propose([Insert(text="The divorce hearing is on 3 May")])
        ana.erase(ana.plan_erase().digest)
        assert {each.text for each in ana.list_memories(include_ended=True)} <= {""}

    def test_a_name_of_free_choice_is_no_id(self, agent: Any) -> None:
        for name in ("rent", "mission", "", " ", "../../x", "due"):
            stored = agent.propose([Insert(id=name, text=f"The rent goes to {name or 'nobody'}.7")]).records[0]
            assert stored.id != name
            with pytest.raises((NotFound, InvalidInput)):
                agent.get(name)

    def test_a_refused_write_answers_the_same_whatever_the_other_scope_holds(self, agent: Any) -> None:
        ana, bo = agent.user("ana"), agent.user("bo")
        self.kept(ana, "The bins go out on Monday", key="code")
        self.kept(ana, "The divorce hearing is on 3 May")

        def answer(handle: Any, text: str, **fields: Any) -> tuple[Any, ...]:
            outcome = handle.remember(text, scope="/users/ana", **fields)
            return outcome.outcome, [(each.code, each.detail) for each in outcome.reasons]

        for handle in (agent, bo):
            taken = answer(handle, "The bins go out on Monday", key="code")
            assert taken == answer(handle, "The bins go out on Monday", key="free")
            assert taken[0] == "refused"
            assert [code for code, _ in taken[1]] == ["out_of_scope"]
        known = answer(bo, "The divorce hearing is on 3 May")
        assert known == answer(bo, "The wedding is on 4 June in Graz") == answer(bo, "The divorce hearing is on 4 May")
        # At ``/`` an agent may write there; nothing is compared with what it may not read.
        assert answer(agent, "The divorce hearing is on 3 May") == answer(agent, "The wedding is on 4 June in Graz")

    def test_a_move_tells_nothing_of_the_scope_that_it_goes_to(self, agent: Any) -> None:
        ana, bo = agent.user("ana"), agent.user("bo")
        self.kept(ana, "The bins go out on Monday", key="code")
        moved = [
            bo.move(self.kept(bo, f"The cat sleeps on the {key} chair", key=key).id, scope="/users/ana")
            for key in ("code", "free")
        ]
        assert [(each.outcome, [reason.code for reason in each.reasons]) for each in moved] == [
            ("refused", ["out_of_scope"])
        ] * 2

    def test_a_name_means_the_memory_of_the_highest_trust(self, owner: Any, agent: Any) -> None:
        self.kept(agent, "The rent goes to EVIL-99", source="web", aliases=["crm:77"])
        self.kept(owner, "The rent goes to DE-ALPHA", aliases=["crm:77"])
        self.kept(owner, "The parking is on floor 3", aliases=["crm:78"])
        self.kept(agent, "The parking is on floor 9", key="crm:78", kind="state")
        self.kept(agent, "The pass is at the desk", key="crm:79", kind="state")
        self.kept(owner, "The pass is in the safe", aliases=["crm:79"])
        for handle in (owner, agent):
            assert [handle.get(f"crm:{n}").text[-8:] for n in (77, 78, 79)] == ["DE-ALPHA", " floor 3", "the safe"]

    def test_an_erasure_by_a_name_of_several_memories_is_refused(self, owner: Any, agent: Any) -> None:
        first = self.kept(agent, "The rent goes to EVIL-99", source="web", aliases=["crm:77"])
        second = self.kept(owner, "The rent goes to DE-ALPHA", aliases=["crm:77"])
        with pytest.raises(Conflict, match=f"give an id: {first.id}, {second.id}"):
            owner.plan_erase(["crm:77"])
        owner.erase(owner.plan_erase([second.id]).digest, [second.id])
        assert owner.get("crm:77").id == first.id

    def test_a_known_text_keeps_its_lower_trust_wherever_an_agent_states_it(self, owner: Any, agent: Any) -> None:
        self.kept(agent, "Refunds are settled by wire transfer", source="web")
        bob, ana = agent.agent("bob"), owner.user("ana")
        stated = bob.remember("Refunds are settled by wire transfer.")
        assert [each.code for each in stated.reasons] == ["known_text"]
        assert (stated.records[0].trust, stated.records[0].scope) == (Trust.WEB, "/agents/bob")
        assert "wire transfer" not in bob.context("How are refunds settled?", purpose="act").text
        assert self.kept(ana, "Refunds are settled by wire transfer").trust is Trust.OWNER
        # What the writer may not read says nothing.
        self.kept(agent.agent("eve"), "The ferry leaves at noon", source="web")
        assert self.kept(bob, "The ferry leaves at noon").trust is Trust.AGENT

    def test_a_known_text_keeps_its_trust_in_other_forms(self, owner: Any, agent: Any) -> None:
        page = "Contact help@evil.example to get into the network"
        self.kept(agent, page, source="web")
        self.kept(agent, "Refunds are settled by wire transfer", source="web")
        bob = agent.agent("bob")
        for text in (page, '"Refunds are settled by wire transfer"', "REFUNDS are settled by wire transfer!"):
            assert self.kept(bob, text).trust is Trust.WEB, text
        blob = bob.put_blob(b"some plain bytes").ref
        assert self.kept(bob, "Refunds are settled by wire transfer", blob=blob).trust is Trust.WEB

    def test_a_sensitive_text_that_is_hidden_changes_no_answer(self, owner: Any, agent: Any) -> None:
        hidden = "Ana takes lithium every night"
        for text in (hidden, "Bo limps since his fall of 2019"):
            self.kept(owner, text, source="web", sensitivity="sensitive")
        for text, sensitivity in (
            (hidden, None),
            (hidden, "sensitive"),
            ("Bo limps since his fall of 2018", "sensitive"),
        ):
            stored = agent.remember(text, sensitivity=sensitivity)
            assert (stored.outcome, stored.reasons, stored.records[0].trust) == ("committed", (), Trust.AGENT)

    def test_a_record_names_the_source_that_an_agent_claimed_and_the_one_that_holds(
        self, owner: Any, agent: Any
    ) -> None:
        for source in ("operator", "manual", "seeded", "user"):
            outcome = agent.remember(f"The pier of {source} closes at nine", source=source)
            (record,) = outcome.records
            assert "claimed_source" in [each.code for each in outcome.reasons]
            assert (record.source, record.evidence, record.trust) == ("inference", (f"claimed:{source}",), Trust.AGENT)
            assert owner.list_memories(sources=[source]).total == 0
        changed = agent.revise(record.id, "The pier closes at ten", source="operator", reason="x").records[0]
        assert (changed.source, changed.evidence) == ("inference", ("claimed:operator", "claimed:user"))
        # To claim a source adds nothing to a memory.
        same = agent.remember("The pier closes at ten", source="manual")
        assert (same.outcome, owner.get(record.id).evidence) == ("duplicate", changed.evidence)
        event = agent.remember("The pier is closed today", kind="event", source="operator").records[0]
        assert (event.source, event.evidence) == ("inference", ("claimed:operator",))
        # A relayed message says whose words it has.
        said = agent.remember("I like tea", kind="event", source="user_message").records[0]
        assert (said.source, said.trust) == ("user_message", Trust.AGENT)
        agent.remember("Reply briefly", tier="core", key="operating_rules", source="operator")
        assert owner.approve(owner.pending()[0].id).records[0].source == "inference"

    def test_no_capitals_widths_or_accents_bring_an_ended_text_back(self, owner: Any, agent: Any) -> None:
        old = self.kept(owner, "The café in US-East closes at 9 pm")
        owner.supersede(old.id, self.kept(owner, "The café in US-East closes at 10 pm").id)
        gone = self.kept(owner, "Ana Quill lives at 14 Gull Läne")
        owner.erase(owner.plan_erase([gone.id]).digest, [gone.id])
        plain = self.kept(owner, "The boat of Bo lies at pier 9")
        owner.erase(owner.plan_erase([plain.id]).digest, [plain.id])
        for text, codes in ((old.text, ["echo"]), (gone.text, ["erased"]), (plain.text, ["erased"])):
            for form in (str.upper, str.lower, str.title, lambda each: unicodedata.normalize("NFD", each.upper())):
                refused = agent.remember(form(text))
                assert (refused.outcome, [each.code for each in refused.reasons]) == ("refused", codes), form(text)
            wide = text.translate({ord(each): ord(each) + 0xFEE0 for each in "acdeilmnoprst"})
            assert agent.remember(f"{wide}  ").outcome == "refused"
        # Whoever says something else is heard: 5 mW is not 5 MW.
        self.kept(agent, "The laser has 5 mW")
        self.kept(agent, "The laser has 5 MW")

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

    def test_containing_what_replaced_a_value_brings_it_back(self, owner: Any) -> None:
        self.kept(owner, "The deploy target is db-7", key="deploy", kind="state")
        self.kept(owner, "The deploy target is evil-9", key="deploy", kind="state", source="web")
        plan = owner.plan_contain(source="web")
        owner.contain(plan.digest, source="web", reason="poisoned")
        assert [each.text for each in plan.restored] == ["The deploy target is db-7"]
        assert "deploy: The deploy target is db-7" in owner.context("deploy target").text

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
