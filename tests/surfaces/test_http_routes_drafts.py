"""Routes of drafts: staged over several calls, in memory alone, proposed together by whoever began them."""

from __future__ import annotations

import pytest

from keepward import state as drafts


@pytest.fixture
def agent(world):
    return world.bearer()


def begun(client, **fields):
    answer = client.post("/memory/drafts", json={"reason": "new timetable", **fields})
    assert answer.status_code == 201
    return f"/memory/drafts/{answer.json()['id']}"


def insert(text="The crane is red"):
    return {"op": "insert", "text": text, "tier": "archival"}


def test_what_is_staged_over_several_calls_is_proposed_together(world, agent):
    place = begun(agent, session="s1")
    first = agent.post(f"{place}/changes", json={"changes": [insert()]}).json()
    agent.post(f"{place}/changes", json={"changes": [{"op": "append", "id": first["ids"][0], "text": "and tall"}]})
    done = agent.post(f"{place}/finish")
    view = world.memory.show(done.json()["commit"])
    assert (done.status_code, len(view.steps), view.details.session, world.memory.get(first["ids"][0]).text) == (
        201,
        2,
        "s1",
        "The crane is red\nand tall",
    )


def test_nothing_that_is_staged_is_seen_or_written_before_the_end(world, agent):
    place, said = begun(agent), "the lighthouse keeper hums"
    agent.post(f"{place}/changes", json={"changes": [insert(said)]})
    files = b"".join(each.read_bytes() for each in world.folder.rglob("*") if each.is_file())
    assert (world.memory.find(), said.encode() in files) == ([], False)


def test_a_draft_is_told_by_operation_and_id(agent):
    place = begun(agent)
    ids = agent.post(f"{place}/changes", json={"changes": [insert(), {"op": "retire", "id": "x"}]}).json()["ids"]
    told = agent.get(place).json()
    assert told["items"] == [{"op": "insert", "id": ids[0]}, {"op": "retire", "id": "x"}]


def test_a_draft_that_is_gone_is_told_as_one_with_how_long_drafts_are_kept(agent):
    place = begun(agent)
    agent.delete(place)
    told = agent.post(f"{place}/changes", json={"changes": [insert()]}).json()
    assert (told["code"], told["detail"]) == (
        "not_found",
        "there is no draft by that id; drafts are kept for an hour, and not over a restart",
    )


def test_a_draft_is_nobodys_but_its_principals(world, agent):
    place = begun(agent)
    others = (world.owner, world.bearer("claude"))
    assert [
        client.request(*call).status_code
        for client in others
        for call in (("GET", place), ("POST", f"{place}/finish"), ("DELETE", place))
    ] == [404] * 6


def test_a_draft_is_not_taken_along_to_another_scope(agent):
    place = begun(agent)
    assert agent.get(place, headers={"Keepward-Scope": "orion"}).status_code == 404


def test_a_discarded_draft_is_gone(world, agent):
    place = begun(agent)
    agent.post(f"{place}/changes", json={"changes": [insert()]})
    codes = [agent.delete(place).status_code, agent.post(f"{place}/finish").status_code]
    assert (codes, world.memory.find()) == ([204, 404], [])


def test_a_draft_ends_after_an_hour(world, agent):
    place = begun(agent)
    codes = []
    for seconds in (3599, 1):
        world.ticks.now += seconds
        codes.append(agent.get(place).status_code)
    assert codes == [200, 404]


def test_a_draft_is_proposed_once(agent):
    place = begun(agent)
    agent.post(f"{place}/changes", json={"changes": [insert()]})
    assert [agent.post(f"{place}/finish").status_code for _ in "ab"] == [201, 404]


def test_a_draft_with_nothing_in_it_is_not_proposed_and_stays(agent):
    place = begun(agent)
    assert (agent.post(f"{place}/finish").status_code, agent.get(place).status_code) == (400, 200)


def test_a_draft_that_met_a_stale_version_stays_so_that_nothing_is_lost(world, agent):
    name = world.memory.remember("The ferry leaves at six", tier="archival").records[0].id
    place = begun(agent)
    change = {"op": "append", "id": name, "text": "and at nine", "if_version": 7}
    agent.post(f"{place}/changes", json={"changes": [insert(), change]})
    assert (agent.post(f"{place}/finish").status_code, agent.get(place).json()["changes"]) == (409, 2)


def test_a_call_of_which_one_change_cannot_be_read_stages_none(agent):
    place = begun(agent)
    answer = agent.post(f"{place}/changes", json={"changes": [insert(), {**insert("x"), "ttl": "soon"}]})
    assert (answer.status_code, agent.get(place).json()["changes"]) == (400, 0)


def test_a_draft_of_core_waits_like_any_other_write(world, agent):
    place = begun(agent)
    change = {"op": "insert", "text": "Ship it", "tier": "core", "key": "mission", "confidence": 0.9}
    agent.post(f"{place}/changes", json={"changes": [change]})
    assert (agent.post(f"{place}/finish").status_code, len(world.memory.pending())) == (202, 1)


def test_a_principal_has_so_many_drafts_and_no_more(world, agent):
    for _ in range(drafts.MOST_OWN):
        begun(agent)
    answer = agent.post("/memory/drafts", json={"reason": "one more"})
    assert (answer.status_code, world.bearer("other").post("/memory/drafts", json={"reason": "mine"}).status_code) == (
        409,
        201,
    )


def test_a_draft_holds_so_many_changes_and_no_more(agent, monkeypatch):
    monkeypatch.setattr(drafts, "MOST_CHANGES", 2)
    place = begun(agent)
    codes = [
        agent.post(f"{place}/changes", json={"changes": [insert(f"Crane {n}") for n in range(2)]}).status_code
        for _ in "ab"
    ]
    assert (codes, agent.get(place).json()["changes"]) == ([200, 413], 2)


def test_a_revoked_token_finishes_nothing(world):
    issued = world.memory.create_token("claude")
    client = world.client(issued.secret)
    place = begun(client)
    client.post(f"{place}/changes", json={"changes": [insert()]})
    world.memory.revoke_token(issued.token.id)
    assert (client.post(f"{place}/finish").status_code, world.memory.find()) == (401, [])


def test_an_erasure_empties_every_draft(world, agent):
    name = world.memory.remember("The ferry leaves at six", tier="archival").records[0].id
    place = begun(agent)
    plan = world.owner.post("/memory/erase/plan", json={"ids": [name]}).json()
    world.owner.post("/memory/erase", json={"ids": [name], "digest": plan["digest"]})
    assert agent.get(place).status_code == 404


def test_a_draft_begins_with_a_reason(agent):
    assert agent.post("/memory/drafts", json={"reason": "  "}).status_code == 400
