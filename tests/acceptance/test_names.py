"""Names are names: keys in one form, nothing unseen in them, no secret in a key, scope, token or tenant."""

from __future__ import annotations

import pytest
from outcomes import codes, held, kept, refused

from keepward import Actor, InvalidInput, Memory, Policy

SECRET = "AKIA" + "HTLGMXGEDN73U55X"


@pytest.mark.parametrize("other", ["opening ", " opening", "\uff4fpening", "open\ufb01ng".replace("\ufb01", "i")])
def test_keys_that_read_alike_are_one_key(mem: Memory, other: str) -> None:
    first = kept(mem.remember("The museum opens at nine", tier="archival", key="opening"))
    again = kept(mem.update_by_key(other, "The museum opens at ten", tier="archival"))
    assert (again.id, again.key) == (first.id, "opening")
    assert mem.get(other).id == first.id
    assert [each.id for each in mem.list_memories(key=other)] == [first.id]


@pytest.mark.parametrize("key", ["open\u200bing", "open\u2060ing", "open\u202eing", "open\ufe0fing", "\U000e0061open"])
def test_a_key_with_an_invisible_character_is_refused(mem: Memory, key: str) -> None:
    assert "bad_key" in refused(mem.remember("The museum opens at nine", tier="archival", key=key))
    made = kept(mem.remember("The museum opens at nine", tier="archival"))
    assert "bad_key" in refused(mem.move(made.id, key=key, reason="x"))


@pytest.mark.parametrize("place", ["name", "tenant", "scope"])
def test_a_token_is_not_named_after_a_secret(owner: Memory, place: str) -> None:
    given = {"name": "claude", place: f"/agents/{SECRET}" if place == "scope" else SECRET}
    with pytest.raises(InvalidInput, match="secret"):
        owner.create_token(given.pop("name"), **given)


@pytest.mark.parametrize("place", [{"tenant": SECRET}, {"scope": SECRET}, {"scope": f"/agents/{SECRET}"}], ids=str)
def test_name_of_a_secret_opens_no_tenant_or_scope(mem: Memory, place: dict[str, str]) -> None:
    for opened in (lambda: Memory.open(":memory:", **place), lambda: mem.at(**place)):
        with pytest.raises(InvalidInput, match="looks like a secret") as caught:
            opened()
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["12345678-90ab-cdef-1234-567890abcdef", "2d711642b726b04401627ca9fbac32f5", "org_2NxYkq8Zt0LwVbA9cD4eF6gH"]
)
def test_an_id_of_another_system_names_a_tenant(mem: Memory, name: str) -> None:
    assert mem.at(tenant=name).tenant == name


def test_an_agents_queue_is_bounded_and_says_so(opened, tmp_path) -> None:
    with opened("own", policy=Policy(pending_limit=2)) as mem:
        for number in range(2):
            held(mem.remember(f"Sail to harbour {number}", tier="core", key="mission", confidence=0.9))
        outcome = mem.remember("Sail to harbour 9", tier="core", key="mission", confidence=0.9)
        assert refused(outcome) >= {"too_many_pending"}
        assert "decided first" in outcome.reasons[0].detail
        assert len(mem.pending()) == 2
        assert "too_many_pending" not in codes(mem.remember("The crane is red", tier="archival"))


def test_limit_of_an_agent_ignores_proposals_of_others(opened, monkeypatch) -> None:
    with opened("own", policy=Policy(pending_limit=2), actor=Actor.operator("ana")) as owner:
        other, mem = owner.as_actor(Actor.agent("other")), owner.as_actor(Actor.agent("one"))
        for number, reason in enumerate(('"proposer":{"kind":"agent"},"reason":', "so")):
            held(other.remember(f"Sail to pier {number}", tier="core", key="mission", confidence=0.9, reason=reason))
        monkeypatch.setattr("keepward.storage.documents.proposal_from_dict", lambda _: pytest.fail("one was read"))
        held(mem.remember("Sail to harbour 0", tier="core", key="mission", confidence=0.9))
        assert "too_many_pending" in refused(other.remember("Sail on", tier="core", key="mission", confidence=0.9))
