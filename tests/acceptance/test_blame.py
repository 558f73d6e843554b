"""Blame, bisection, and two contexts side by side: which commit made it so."""

from __future__ import annotations

import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, InvalidInput, Memory, NotFound


@pytest.fixture
def owner(tmp_path, clock):
    with Memory.open(
        tmp_path / "m.db", embedder=None, clock=clock, config_dir=tmp_path / "config", actor=Actor.operator("olga")
    ) as memory:
        yield memory


@pytest.fixture
def agent(owner):
    return owner.as_actor(Actor.agent("claude"))


def origin(blame, field):
    return next(each for each in blame.origins if each.field == field)


def test_blame_leaves_an_unchanged_field_with_its_first_commit(agent):
    first = agent.remember("The database is db-1", tier="archival", tags=["ops"])
    agent.revise(committed_record(first).id, "The database is db-7", reason="moved")
    assert origin(agent.blame(committed_record(first).id), "tags").made.commit.id == first.commit.id


def test_blame_names_each_actor_apart(owner, agent):
    record = committed_record(agent.remember("The database is db-1", tier="archival"))
    owner.revise(record.id, reason="label it", tags=("ops",))
    found = agent.blame(record.id)
    assert (origin(found, "text").actor, origin(found, "tags").actor) == ("agent:claude", "operator:olga")


@pytest.mark.promise("C100")
def test_blame_names_the_source_a_text_was_taken_from(owner, agent):
    record = committed_record(agent.remember("The database is db-1", tier="archival"))
    owner.revise(record.id, "The database is db-7", reason="read on a page", source="web")
    assert origin(agent.blame(record.id), "text").source == "web"


def test_blame_of_a_block_names_who_proposed_and_who_approved(owner, agent):
    owner.remember("Ship before Easter", tier="core", key="mission")
    item = quarantined_item(agent.remember("Ship before summer", tier="core", key="mission", confidence=0.9))
    owner.approve(item.id, digest=item.digest)
    found = origin(agent.blame("mission"), "text")
    assert (found.actor, found.approved_by, found.value) == ("agent:claude", "operator:olga", "Ship before summer")


def test_blame_by_key_takes_the_nearest_scope(agent):
    near = agent.at(scope="/agents/bo")
    agent.remember("blue", key="colour", kind="state", tier="archival")
    own = committed_record(near.remember("red", key="colour", kind="state", tier="archival"))
    assert near.blame("colour").record.id == own.id


def test_blame_of_what_came_back_by_rollback_names_the_rollback(owner, agent):
    record = committed_record(agent.remember("The database is db-1", tier="archival"))
    bad = agent.revise(record.id, "The database is db-7", reason="moved")
    undone = owner.rollback(bad.commit.id)
    assert origin(owner.blame(record.id), "text").made.commit.id == undone.commit.id


# --- bisection


@pytest.fixture
def grown(agent):
    """Thirty commits; the twentieth is the first to speak of db-7."""
    for number in range(1, 31):
        agent.remember("The database is db-7" if number == 20 else f"note {number} on the harbour", tier="archival")
    return agent


def test_bisect_finds_the_commit_that_introduced_a_text(grown):
    assert grown.bisect("which database", contains="db-7").commit.commit.seq == 20


def test_a_bisection_compiles_about_log2_of_the_commits(grown):
    assert grown.bisect("which database", contains="db-7").compiled <= 7


def test_a_bisection_takes_a_predicate(grown):
    assert grown.bisect("which database", predicate=lambda text: "db-" in text).commit.commit.seq == 20


def test_a_bisection_shows_the_contexts_on_both_sides(grown):
    found = grown.bisect("which database", contains="db-7")
    assert ("db-7" in found.before, "db-7" in found.after) == (False, True)


def test_a_bisection_for_what_is_not_there_is_refused(grown):
    with pytest.raises(InvalidInput):
        grown.bisect("which database", contains="db-8")


def test_a_bisection_that_begins_too_late_is_refused(grown):
    with pytest.raises(InvalidInput):
        grown.bisect("which database", contains="db-7", since=25)


def test_a_bisection_counts_as_no_delivery(owner, agent):
    record = committed_record(agent.remember("The database is db-7", tier="archival"))
    agent.bisect("which database", contains="db-7")
    assert owner.impact(memory=record.id).contexts == ()


# --- two contexts


def items(found):
    return [(each.change, each.id) for each in found.items]


def test_an_added_memory_comes_with_its_commit(agent):
    first = agent.context("database").receipt.id
    added = agent.remember("The database is db-1", tier="archival")
    found = agent.context_diff(first, agent.context("database").receipt.id)
    assert (items(found), found.items[0].commit.commit.id) == ([("added", committed_record(added).id)], added.commit.id)


def test_removed_memory_names_the_commit_that_removed_it(agent):
    record = committed_record(agent.remember("The database is db-1", tier="archival"))
    first = agent.context("database").receipt.id
    gone = agent.forget(record.id, reason="sold")
    found = agent.context_diff(first, agent.context("database").receipt.id)
    assert (items(found), found.items[0].commit.commit.id) == ([("removed", record.id)], gone.commit.id)


def test_a_changed_memory_comes_with_the_commit_that_changed_it(agent):
    record = committed_record(agent.remember("The database is db-1", tier="archival"))
    first = agent.context("database").receipt.id
    changed = agent.revise(record.id, "The database is db-7", reason="moved")
    found = agent.context_diff(first, agent.context("database").receipt.id).items[0]
    assert (found.change, found.before, found.after, found.commit.commit.id) == ("changed", 1, 2, changed.commit.id)


def test_what_expired_in_between_says_so(agent, clock):
    agent.remember("The ferry is late", tier="archival", ttl="1h")
    first = agent.context("ferry").receipt.id
    clock.move(hours=2)
    found = agent.context_diff(first, agent.context("ferry").receipt.id).items[0]
    assert (found.change, found.commit, found.why) == ("removed", None, "its TTL ended between the two")


def test_what_another_objective_recalls_says_so(agent):
    agent.remember("The database is db-1", tier="archival")
    first, second = (agent.context(objective).receipt.id for objective in ("hello", "database"))
    assert [each.why for each in agent.context_diff(first, second).items] == [
        "the two had different options: objective"
    ]


def test_what_a_purpose_excludes_says_so(agent):
    agent.remember("Refunds go by wire", tier="archival", source="web")
    first = agent.context("refunds").receipt.id
    found = agent.context_diff(first, agent.context("refunds", purpose="act").receipt.id)
    assert ("its origin (web) is below agent" in found.items[0].why, found.inputs["purpose"]) == (
        True,
        ("answer", "act"),
    )


def test_a_containment_is_the_commit_behind_what_left(owner, agent):
    agent.remember("Refunds go by wire", tier="archival", source="web")
    first = agent.context("refunds").receipt.id
    done = owner.contain(owner.plan_contain(source="web").digest, source="web")
    found = agent.context_diff(first, agent.context("refunds").receipt.id)
    assert found.items[0].commit.commit.id == done.commit.id


def test_a_receipt_of_something_else_is_not_compared(agent):
    added = agent.remember("The database is db-1", tier="archival")
    with pytest.raises(NotFound):
        agent.context_diff(added.receipt.id, added.receipt.id)
