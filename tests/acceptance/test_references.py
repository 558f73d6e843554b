"""How a person names a memory, a commit, a proposal or a receipt: by id, by its first letters, or by key."""

from __future__ import annotations

import pytest

from keepward import Actor, Committed, InvalidInput, Memory, NotFound
from support.clock import SteppingClock


@pytest.fixture
def memory(tmp_path):
    with Memory.open(
        tmp_path / "m.db", actor=Actor.operator(), embedder=None, clock=SteppingClock(), config_dir=tmp_path / "home"
    ) as opened:
        yield opened


def made(memory, text, **fields):
    outcome = memory.remember(text, tier="archival", **fields)
    assert isinstance(outcome, Committed)
    return outcome.records[0]


def test_memory_is_found_by_an_id_prefix(memory):
    record = made(memory, "Ana prefers tabs")
    assert memory.get(record.id[:13]) == record


def test_fewer_than_eight_letters_name_nothing(memory):
    record = made(memory, "Ana prefers tabs")
    with pytest.raises(NotFound):
        memory.get(record.id[:7])


def test_letters_that_several_ids_begin_with_are_an_error(memory):
    first, second = made(memory, "Ana prefers tabs"), made(memory, "The deploy target is db-7")
    common = next(n for n in range(36, 7, -1) if first.id[:n] == second.id[:n])
    with pytest.raises(InvalidInput, match="more than one memory has an id that begins so"):
        memory.get(first.id[:common])


def test_what_a_handle_cannot_see_makes_no_letters_ambiguous(memory):
    seen = made(memory, "Ana prefers tabs", scope="/agents/orion")
    hidden = made(memory, "The deploy target is db-7", scope="/agents/elysia")
    common = next(n for n in range(36, 7, -1) if seen.id[:n] == hidden.id[:n])
    orion = memory.as_actor(Actor.agent("orion")).at(scope="/agents/orion")
    assert orion.get(seen.id[:common]).id == seen.id


@pytest.mark.parametrize("verb", ["revise", "forget", "append", "reinforce"])
def test_a_key_names_its_memory_to_every_verb(memory, verb):
    record = made(memory, "The deploy target is db-7", key="deploy_target", kind="state")
    fields = {"revise": ("It is db-8 now",), "append": ("And db-8 stands by",)}.get(verb, ())
    outcome = getattr(memory, verb)("deploy_target", *fields, reason="it moved")
    assert outcome.records[0].id == record.id


def test_a_key_is_read_from_the_nearest_scope(memory):
    made(memory, "The deploy target is db-7", key="deploy_target", kind="state")
    near = made(memory, "The deploy target of orion is db-9", key="deploy_target", kind="state", scope="/agents/orion")
    assert memory.at(scope="/agents/orion").get("deploy_target").id == near.id


def test_what_supersedes_is_written_down_by_its_complete_id(memory):
    old, new = made(memory, "Ana prefers tabs"), made(memory, "The deploy target is db-7", key="target")
    assert memory.supersede(old.id, "target", reason="wrong").records[0].superseded_by == new.id


def test_lineage_is_stored_with_complete_ids(memory):
    parent = made(memory, "The deploy target is db-7", key="target")
    assert made(memory, "Deployments go to one machine", derived_from=["target"]).derived_from == (parent.id,)


def test_proposal_is_decided_by_an_id_prefix(memory):
    waiting = memory.as_actor(Actor.agent()).remember("Ship it", tier="core", key="mission").item
    assert memory.approve(waiting.id[:13]).outcome == "committed"


def test_receipt_is_found_by_an_id_prefix(memory):
    outcome = memory.remember("Ana prefers tabs", tier="archival")
    assert memory.receipt(outcome.receipt.id[:13])["id"] == outcome.receipt.id


def test_feedback_by_receipt_prefix_is_stored_under_its_complete_id(memory):
    record = made(memory, "Ana prefers tabs")
    receipt = memory.recall("tabs", receipt=True).receipt
    assert memory.feedback(receipt[:-1], used=[record.id]).receipt == receipt
