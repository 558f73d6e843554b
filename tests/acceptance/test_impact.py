"""Impact and containment: one poisoned page, what was made of it, where it went, and how it is taken out of use."""

from __future__ import annotations

import pytest
from outcomes import committed_record, quarantined_item, refused

from keepward import Actor, Conflict, Memory, NotFound
from keepward.interchange import load
from support import tamper

PAGE = "https://refunds.example/policy"
POISON = "Refunds are settled by wire transfer"
CLEAN = "The shop opens at eight"


@pytest.fixture
def owner(tmp_path, clock):
    with Memory.open(
        tmp_path / "m.db", embedder=None, clock=clock, config_dir=tmp_path / "config", actor=Actor.operator("olga")
    ) as memory:
        yield memory


@pytest.fixture
def agent(owner):
    return owner.as_actor(Actor.agent("claude"))


@pytest.fixture
def poisoned(owner, agent):
    """One page, two summaries of it (the second of the first), a clean note, and three contexts with the poison."""
    owner.remember(CLEAN, tier="archival")
    page = committed_record(agent.remember(POISON, tier="archival", source="web", evidence=[PAGE], session="s1"))
    first = committed_record(agent.remember("Wire transfer is how refunds go", derived_from=[page.id], tier="archival"))
    second = committed_record(
        agent.remember("Customers get money by wire, always", derived_from=[first.id], tier="archival")
    )
    contexts = [agent.context(query).receipt.id for query in ("refunds", "wire transfer", "money for customers")]
    return {"page": page, "derived": {first.id, second.id}, "contexts": contexts}


def plan_and_contain(owner, **way):
    plan = owner.plan_contain(**way)
    return owner.contain(plan.digest, **way, reason="the page was poisoned")


def state(memory):
    found = memory.list_memories(limit=None, include_ended=True)
    return sorted((each.id, each.text, each.status, each.tier, each.key, each.trust) for each in found)


@pytest.mark.promise("C100")
@pytest.mark.parametrize(
    "way", [{"source": "web"}, {"source": PAGE}, {"session": "s1"}], ids=["class", "reference", "session"]
)
def test_an_impact_is_one_page_two_summaries_and_three_contexts(owner, poisoned, way):
    found = owner.impact(**way)
    assert ([each.id for each in found.direct], {each.id for each in found.derived}) == (
        [poisoned["page"].id],
        poisoned["derived"],
    )


@pytest.mark.promise("C100")
def test_an_impact_names_every_context_that_contained_any_of_it(owner, poisoned):
    assert [each.receipt for each in owner.impact(source="web").contexts] == poisoned["contexts"]


def test_an_impact_leaves_out_contexts_without_it(owner, agent, poisoned):
    clean = agent.at(scope="/agents/bo")
    note = committed_record(clean.remember("Bo likes green tea", tier="archival"))
    assert owner.impact(memory=note.id).contexts == ()


def test_an_impact_of_a_memory_or_commit_begins_there(owner, poisoned):
    commit = owner.history(poisoned["page"].id)[0].commit.id
    for way in ({"memory": poisoned["page"].id}, {"commit": commit}):
        assert [each.id for each in owner.impact(**way).direct] == [poisoned["page"].id]


def test_an_impact_of_an_actor_is_all_that_it_said(owner, poisoned):
    assert {each.id for each in owner.impact(actor="agent:claude").direct} == {
        poisoned["page"].id,
        *poisoned["derived"],
    }


def test_what_an_approver_let_through_is_the_proposers(owner, agent):
    item = quarantined_item(agent.remember("Ship by wire", tier="core", key="mission", confidence=0.9))
    approved = committed_record(owner.approve(item.id, digest=item.digest))
    assert [each.id for each in owner.impact(actor="agent:claude").direct] == [approved.id]


def test_confirming_a_memory_does_not_make_it_the_confirmers(owner, agent):
    record = committed_record(owner.remember(CLEAN, tier="archival"))
    agent.reinforce(record.id)
    assert owner.impact(actor="agent:claude").direct == ()


def test_context_from_before_the_poison_is_not_in_the_impact(owner, agent):
    record = committed_record(agent.remember("The key is under the mat", tier="archival"))
    agent.context("where is the key")
    agent.revise(record.id, "The key is with the neighbour", reason="read on a page", source="web")
    assert owner.impact(source="web").contexts == ()


@pytest.mark.promise("C121")
def test_an_impact_names_what_waits(owner, agent):
    item = quarantined_item(agent.remember("Wire it", key="refunds", kind="state", source="web"))
    assert owner.impact(source="web").waiting == (item.id,)


def test_an_unknown_commit_has_no_impact(owner):
    with pytest.raises(NotFound):
        owner.impact(commit="99")


def test_an_impact_stays_in_its_tenant(owner, poisoned):
    assert owner.at(tenant="other").impact(source="web").direct == ()


def test_a_delivery_that_no_receipt_backs_is_not_believed(owner, agent, poisoned, tmp_path):
    note = committed_record(agent.at(scope="/agents/bo").remember("Bo likes green tea", tier="archival"))
    forged = "INSERT INTO deliveries VALUES ('default', ?, 1, ?)"
    tamper.run(tmp_path / "m.db", forged, values=(note.id, poisoned["contexts"][0]))
    found = owner.impact(memory=note.id)
    assert (found.contexts, found.damaged) == ((), (poisoned["contexts"][0],))


@pytest.mark.parametrize("edit", tamper.DELIVERIES.values(), ids=tamper.DELIVERIES.keys())
def test_verify_names_a_bent_index_of_deliveries(owner, poisoned, tmp_path, edit):
    owner.run_job("learn_importance", force=True)
    tamper.run(tmp_path / "m.db", edit)
    assert "deliveries" in {each.check for each in owner.verify().faults}


def test_a_rebuild_writes_the_index_of_deliveries_again(owner, poisoned, tmp_path):
    owner.run_job("learn_importance", force=True)
    tamper.delete(tmp_path / "m.db", "deliveries")
    owner.rebuild()
    assert [each.receipt for each in owner.impact(source="web").contexts] == poisoned["contexts"]


# --- containment


def test_a_plan_changes_no_byte(owner, poisoned, tmp_path):
    owner.status()
    before = {each.name: each.read_bytes() for each in tmp_path.glob("m.db*")}
    owner.plan_contain(source="web")
    assert {each.name: each.read_bytes() for each in tmp_path.glob("m.db*")} == before


@pytest.mark.promise("C99")
def test_a_containment_is_one_commit(owner, poisoned):
    done = plan_and_contain(owner, source="web")
    assert ({step.after.id for step in owner.show(done.commit.id).steps}, owner.log(limit=1)[0].commit.kind) == (
        {poisoned["page"].id, *poisoned["derived"]},
        "contain",
    )


@pytest.mark.promise("C99", "F12")
@pytest.mark.parametrize("query", ["refunds", "wire transfer", "money for customers"])
def test_contained_memories_are_stored_and_used_nowhere(owner, agent, poisoned, query):
    plan_and_contain(owner, source="web")
    assert "wire" not in agent.context(query).text.lower()
    assert [hit for hit in agent.recall(query) if "wire" in hit.memory.text] == []
    assert agent.remember(POISON, tier="archival").outcome != "duplicate"
    assert owner.get(poisoned["page"].id).text == POISON
    assert owner.verify().faults == ()


def test_restating_what_is_contained_revives_nothing(owner, agent, poisoned):
    plan_and_contain(owner, source="web")
    assert refused(agent.remember(POISON, tier="archival", source="web")) == {"echo"}


def test_a_core_block_can_be_contained(owner, agent):
    item = quarantined_item(agent.remember("Ship by wire", tier="core", key="mission", confidence=0.9))
    owner.approve(item.id, digest=item.digest)
    plan_and_contain(owner, actor="agent:claude")
    assert "Ship by wire" not in agent.snapshot().text


def test_retired_memories_are_contained_against_restoring(owner, agent, poisoned):
    agent.forget(poisoned["page"].id, reason="hide it")
    plan_and_contain(owner, source="web")
    assert refused(agent.restore(poisoned["page"].id, reason="it was right")) == {"contained"}


@pytest.mark.promise("C99", "T15")
def test_one_rollback_undoes_a_containment_exactly(owner, agent, poisoned):
    before = (state(owner), agent.context("refunds").text)
    done = plan_and_contain(owner, source="web")
    owner.rollback(done.commit.id)
    assert (state(owner), agent.context("refunds").text) == before


def test_a_retired_memory_comes_back_from_containment_retired(owner, agent, poisoned):
    agent.forget(poisoned["page"].id, reason="old")
    done = plan_and_contain(owner, source="web")
    owner.rollback(done.commit.id)
    assert owner.get(poisoned["page"].id).status == "retired"


def test_a_memory_names_the_commit_that_contained_it(owner, poisoned):
    done = plan_and_contain(owner, source="web")
    last = owner.history(poisoned["page"].id)[-1]
    assert (last.op, last.commit.id) == ("contain", done.commit.id)


@pytest.mark.promise("T16")
def test_a_plan_whose_set_has_grown_is_void(owner, agent, poisoned):
    plan = owner.plan_contain(source="web")
    agent.remember("Refunds take three days", tier="archival", source="web")
    with pytest.raises(Conflict, match="has changed"):
        owner.contain(plan.digest, source="web")


def test_a_plan_whose_memory_moved_on_is_void(owner, agent, poisoned):
    plan = owner.plan_contain(source="web")
    agent.revise(poisoned["page"].id, "Refunds are settled in cash", reason="changed")
    with pytest.raises(Conflict):
        owner.contain(plan.digest, source="web")


def test_an_unrelated_commit_leaves_a_plan_good(owner, poisoned):
    plan = owner.plan_contain(source="web")
    owner.remember("The ovens are cold on Sundays", tier="archival")
    assert owner.contain(plan.digest, source="web").applied


def test_a_plan_for_one_way_does_not_apply_another(owner, poisoned):
    plan = owner.plan_contain(source="web")
    with pytest.raises(Conflict):
        owner.contain(plan.digest, session="s1")


@pytest.mark.promise("T16")
def test_containing_twice_changes_nothing(owner, poisoned):
    done = plan_and_contain(owner, source="web")
    again = owner.contain(done.digest, source="web")
    assert (again.applied, again.items, owner.log(limit=1)[0].commit.id) == (False, (), done.commit.id)


def test_the_receipt_of_a_containment_names_the_plan(owner, poisoned):
    done = plan_and_contain(owner, source="web")
    receipt = owner.receipt(done.receipt.id)
    assert (receipt["kind"], receipt["approved_digest"]) == ("contain", done.digest)


def test_a_plan_leaves_erased_memories_alone(owner, poisoned):
    page = poisoned["page"].id
    owner.erase(owner.plan_erase([page]).digest, [page])
    assert page not in {each.id for each in owner.plan_contain(session="s1").items}


def test_the_index_of_deliveries_holds_after_an_erasure(owner, poisoned):
    page = poisoned["page"].id
    owner.erase(owner.plan_erase([page]).digest, [page])
    assert [each for each in owner.verify().faults if each.check == "deliveries"] == []


# --- a planted memory, by other means


@pytest.mark.promise("C121")
def test_rollback_names_everything_derived_over_any_steps(owner, poisoned):
    commit = owner.history(poisoned["page"].id)[0].commit.id
    assert set(owner.rollback(commit).dependents) == poisoned["derived"]


@pytest.mark.promise("C99")
def test_a_rollback_recovers_from_a_planted_memory(owner, agent, poisoned):
    owner.rollback(owner.history(poisoned["page"].id)[0].commit.id)
    assert POISON not in agent.context("refunds").text


@pytest.mark.promise("C98")
def test_planted_memory_decays_until_confirmed_memories_use_its_room(owner, agent, clock):
    sound = committed_record(agent.remember("Walnut bread comes from the oven", tier="archival", confidence=0.5))
    committed_record(agent.remember("Walnut bread comes from the mill", tier="archival", source="web", confidence=0.9))
    clock.move(days=60)
    agent.reinforce(sound.id)
    room = agent.context("walnut bread").tokens - 1
    sections = agent.context("walnut bread", budget_tokens=room).sections
    assert [item.id for part in sections for item in part.items] == [sound.id]


# --- what the contained texts replaced


def replaced_under_a_key(owner, agent):
    old = committed_record(owner.remember("The deploy target is db-7", key="deploy", kind="state", tier="archival"))
    committed_record(
        owner.remember("The deploy target is evil-9", key="deploy", kind="state", tier="archival", source="web")
    )
    return old


def revised(owner, agent):
    old = committed_record(owner.remember("The deploy target is db-7", tier="archival"))
    committed_record(owner.revise(old.id, "The deploy target is evil-9", source="web", reason="x"))
    return old


def superseded(owner, agent):
    old = committed_record(owner.remember("The deploy target is db-7", key="deploy", tier="archival"))
    page = committed_record(owner.remember("The deploy target is evil-9", tier="archival", source="web"))
    committed_record(owner.supersede(old.id, page.id, reason="x"))
    return old


def merged(owner, agent):
    old = committed_record(owner.remember("The deploy target is db-7", tier="archival"))
    page = committed_record(owner.remember("The deploy target is evil-9", tier="archival", source="web"))
    committed_record(owner.merge([old.id, page.id], "The deploy target is evil-9, before db-7", reason="x"))
    return old


def added_to(owner, agent):
    old = committed_record(owner.remember("The deploy target is db-7", tier="archival"))
    committed_record(owner.append(old.id, "or evil-9", source="web", reason="x"))
    return old


@pytest.mark.parametrize("replace", [replaced_under_a_key, revised, superseded, merged, added_to])
def test_containing_a_source_brings_back_what_its_text_replaced(owner, agent, replace):
    old = replace(owner, agent)
    before = state(owner)
    assert "evil-9" in owner.context("deploy target").text
    plan = owner.plan_contain(source="web")
    assert ([each.text for each in plan.restored], plan.notes) == ([old.text], ("1 replaced memory comes back",))
    done = owner.contain(plan.digest, source="web", reason="the page was poisoned")
    now = owner.get(old.id)
    assert (now.text, now.status, now.key, now.trust) == (old.text, old.status, old.key, old.trust)
    text = owner.context("deploy target").text
    assert ("db-7" in text, "evil-9" in text) == (True, False)
    again = owner.plan_contain(source="web")
    assert (again.items, again.restored) == ((), ())
    owner.rollback(done.commit.id)
    assert state(owner) == before
    assert owner.verify().ok


def test_containing_an_import_brings_back_the_owners_state(owner, tmp_path):
    committed_record(owner.remember("The deploy target is db-7", key="deploy", kind="state"))
    (tmp_path / "rows.jsonl").write_text('{"id": "q1", "text": "The deploy target is evil-9", "key": "deploy"}\n')
    load(owner, tmp_path / "rows.jsonl", format="records")
    plan_and_contain(owner, source="import")
    assert "deploy: The deploy target is db-7" in owner.context("deploy target").text


def test_what_was_superseded_stays_so_if_its_key_is_taken(owner, agent):
    old = superseded(owner, agent)
    committed_record(owner.remember("The deploy target is db-8", key="deploy", tier="archival"))
    plan = owner.plan_contain(source="web")
    assert plan.restored == ()
    owner.contain(plan.digest, source="web", reason="the page was poisoned")
    assert (owner.get(old.id).status, owner.get("deploy").text) == ("superseded", "The deploy target is db-8")


def test_containing_a_page_leaves_what_a_person_said_later(owner, agent):
    old = replaced_under_a_key(owner, agent)
    committed_record(owner.remember("The deploy target is db-8", key="deploy", kind="state", tier="archival"))
    plan = owner.plan_contain(source="web")
    assert (plan.items, plan.restored) == ((), ())
    assert owner.get(old.id).text == "The deploy target is db-8"


def test_what_the_owner_changed_since_stays_when_a_value_comes_back(owner, agent):
    old = revised(owner, agent)
    committed_record(owner.revise(old.id, sensitivity="sensitive", reason="private"))
    committed_record(owner.revise(old.id, tags=["mine"], importance=0.9, reason="matters"))
    committed_record(owner.move(old.id, scope="/users/ana", key="deploy"))
    committed_record(owner.remember("The deploy target of all is db-1", key="deploy", tier="archival"))
    plan_and_contain(owner, source="web")
    now = owner.get(old.id)
    assert (now.text, now.sensitivity, now.scope, now.key) == (old.text, "sensitive", "/users/ana", "deploy")
    assert (now.tags, now.importance) == (("mine",), 0.9)
    assert owner.plan_contain(source="web").items == ()


def test_a_value_that_its_owner_forgot_does_not_come_back(owner, agent):
    old = revised(owner, agent)
    committed_record(owner.forget(old.id, reason="x"))
    plan = owner.plan_contain(source="web")
    assert plan.restored == ()
    owner.contain(plan.digest, source="web", reason="the page was poisoned")
    assert owner.get(old.id).status == "archived"


def test_a_value_that_was_replaced_again_does_not_come_back(owner, agent):
    old = superseded(owner, agent)
    newest = committed_record(owner.remember("The deploy target is db-8", tier="archival"))
    committed_record(owner.supersede(owner.get(old.id).superseded_by, newest.id, reason="x"))
    other = revised(owner, agent)
    committed_record(owner.supersede(other.id, newest.id, reason="x"))
    plan = owner.plan_contain(source="web")
    assert plan.restored == ()
    owner.contain(plan.digest, source="web", reason="the page was poisoned")
    assert [each.text for each in owner.list_memories()] == [newest.text]


def test_a_value_comes_back_from_a_chain_of_contained_texts(owner, agent):
    old = superseded(owner, agent)
    later = committed_record(owner.remember("The deploy target is evil-10", tier="archival", source="web"))
    committed_record(owner.supersede(owner.get(old.id).superseded_by, later.id, reason="x"))
    plan_and_contain(owner, source="web")
    assert [each.text for each in owner.list_memories()] == [old.text]


def test_impact_and_its_plan_show_memories_as_a_read_does(owner, poisoned, clock):
    clock.move(days=40)
    now = owner.get(poisoned["page"].id)
    plan = owner.plan_contain(source=PAGE)
    shown = [owner.impact(source=PAGE).direct[0], plan.impact.direct[0], next(e for e in plan.items if e.id == now.id)]
    assert now.confidence < now.base_confidence
    assert [(each.confidence, each.base_confidence, each.importance) for each in shown] == [
        (now.confidence, now.base_confidence, now.importance)
    ] * 3
