"""A proposal whose memory has changed since: marked as stale, shown with what holds now, edited against that."""

from __future__ import annotations

import pytest
from outcomes import held, kept

from keepward import Committed, Conflict, StaleVersion


@pytest.fixture
def stale(mem, owner):
    """A proposal for a block that the owner changed afterwards."""
    block = kept(owner.remember("Sail to Oslo", tier="core", key="mission", reason="so"))
    item = held(mem.remember("Sail to Bergen", tier="core", key="mission", reason="heard"))
    kept(owner.revise(block.id, "Sail to Malmö", tags=["news"], reason="news"))
    return owner.proposal(item.id)


def test_a_stale_proposal_is_marked_in_every_list(mem, owner, stale):
    for found in (owner.pending(), [owner.proposal(stale.id)], mem.pending()):
        (item,) = found
        assert (item.state, item.stale) == ("pending", True)
        then, now, proposed = item.steps[0].before, item.current[0], item.steps[0].after
        assert [each.text for each in (then, now, proposed)] == ["Sail to Oslo", "Sail to Malmö", "Sail to Bergen"]


def test_a_proposal_whose_memory_was_only_confirmed_is_not_stale(mem, owner):
    block = kept(owner.remember("Sail to Oslo", tier="core", key="mission", reason="so"))
    held(mem.remember("Sail to Bergen", tier="core", key="mission", reason="heard"))
    owner.reinforce(block.id)
    (item,) = owner.pending()
    assert (item.stale, item.current) == (False, ())


def test_a_stale_proposal_is_edited_against_what_holds_now(mem, owner, stale):
    now = stale.current[0]
    done = owner.amend(stale.id, "Sail to Malmö, then Bergen", if_version=now.version, digest=stale.digest)
    assert isinstance(done, Committed)
    record = owner.get(now.id)
    assert (record.text, record.tags, record.version) == ("Sail to Malmö, then Bergen", ("news",), now.version + 1)
    assert owner.proposal(stale.id).state == "approved"
    assert not owner.verify().faults


def test_an_edit_over_another_version_than_the_newest_is_refused(owner, stale):
    now = stale.current[0]
    kept(owner.revise(now.id, "Sail to Turku", reason="more news"))
    with pytest.raises(StaleVersion, match="read the proposal again"):
        owner.amend(stale.id, "Sail to Malmö, then Bergen", if_version=now.version)
    assert (owner.get(now.id).text, owner.proposal(stale.id).state) == ("Sail to Turku", "pending")


def test_a_memory_that_was_retired_is_not_edited(owner, stale):
    now = stale.current[0]
    kept(owner.forget(now.id, reason="over"))
    with pytest.raises(Conflict, match="is now retired"):
        owner.amend(stale.id, "Sail on", if_version=now.version + 1)
