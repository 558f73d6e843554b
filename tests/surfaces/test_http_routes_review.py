"""Routes of the review queue: the same verbs, bound to what was seen, for those who may decide."""

from __future__ import annotations

import pytest
from http_fixtures import HttpTestServer

from keepward import Policy
from keepward.api import OPERATIONS


@pytest.fixture
def world(tmp_path):
    world = HttpTestServer(tmp_path)
    world.memory.remember("Ship before Easter", tier="core", key="mission")
    yield world
    world.memory.close()


@pytest.fixture
def agent(world):
    return world.bearer()


def pending_proposal(agent, text="Ship in summer", key="mission", **fields):
    """Return the id of a proposal that waits."""
    sent = {"text": text, "key": key, "kind": "state", "tier": "core", "confidence": 0.9, **fields}
    answer = agent.post("/memory/items", json=sent)
    assert answer.status_code == 202
    return answer.json()["item"]["id"]


def tag_of(client, name):
    return {"If-Match": client.get(f"/memory/quarantine/{name}").headers["etag"]}


def mission(world):
    return world.memory.list_memories(key="mission")[0].text


@pytest.mark.promise("C69", "C111", "C118", "C117")
def test_the_queue_reports_what_is_pending_why_and_from_where(world, agent):
    name = pending_proposal(agent, evidence=["chat:42"], source="user_message")
    item = world.owner.get("/memory/quarantine").json()["items"][0]
    after = item["steps"][0]["after"]
    assert (item["id"], item["proposer"]["name"], item["reasons"][0]["code"], after["text"], after["evidence"]) == (
        name,
        "claude",
        "needs_approval",
        "Ship in summer",
        ["chat:42", "claimed:user_message"],
    )


@pytest.mark.promise("C118", "T20")
def test_what_no_reader_sees_is_written_out_for_the_reviewer(world, agent):
    name = pending_proposal(agent, "Ship in\u200b summer")
    shown = world.owner.get(f"/memory/quarantine/{name}").json()["shown"]
    assert "⟦U+200B⟧" in shown[0]["payload"]


@pytest.mark.promise("C66", "C70", "C112")
def test_an_approval_stores_exactly_what_was_seen(world, agent):
    name = pending_proposal(agent)
    answer = world.owner.post(f"/memory/quarantine/{name}/approve", headers=tag_of(world.owner, name))
    assert (answer.status_code, mission(world)) == (201, "Ship in summer")


@pytest.mark.promise("C70")
def test_an_approval_of_something_else_is_refused(world, agent):
    one, other = pending_proposal(agent), pending_proposal(agent, "Berth three is wet", "workspace_state")
    answer = world.owner.post(f"/memory/quarantine/{one}/approve", headers=tag_of(world.owner, other))
    assert (answer.status_code, mission(world)) == (412, "Ship before Easter")


@pytest.mark.promise("C70")
@pytest.mark.parametrize(("way", "more"), [("approve", {}), ("amend", {"text": "Ship in autumn"})])
def test_a_digest_that_contradicts_if_match_is_refused(world, agent, way, more):
    one, other = pending_proposal(agent), pending_proposal(agent, "Berth three is wet", "workspace_state")
    tags = [tag_of(world.owner, name)["If-Match"].strip('"') for name in (one, other)]

    def decide(header, digest):
        body = {"digest": digest, **more}
        return world.owner.post(f"/memory/quarantine/{one}/{way}", json=body, headers={"If-Match": f'"{header}"'})

    wrong = [decide(tags[0], tags[1]), decide(tags[0], "0" * 64), decide(tags[1], tags[0])]
    assert ([each.status_code for each in wrong], mission(world)) == ([412] * 3, "Ship before Easter")
    assert world.memory.proposal(one).state == "pending"
    assert decide(tags[0], tags[0]).status_code == 201


@pytest.mark.promise("T19")
def test_approval_of_a_changed_base_is_refused_as_stale(world, agent):
    name = pending_proposal(agent)
    seen = tag_of(world.owner, name)
    world.memory.remember("Ship next week", key="mission", kind="state", tier="core")
    answer = world.owner.post(f"/memory/quarantine/{name}/approve", headers=seen)
    state = world.owner.get(f"/memory/quarantine/{name}").json()["state"]
    assert (answer.status_code, state, mission(world)) == (412, "stale", "Ship next week")


@pytest.mark.promise("C70")
def test_a_second_approval_is_a_conflict(world, agent):
    name = pending_proposal(agent)
    seen = tag_of(world.owner, name)
    codes = [world.owner.post(f"/memory/quarantine/{name}/approve", headers=seen).status_code for _ in "ab"]
    assert codes == [201, 409]


@pytest.mark.promise("C67", "C71")
def test_rejection_preserves_the_text_and_notifies_the_proposer_once(world, agent):
    name = pending_proposal(agent)
    answer = world.owner.post(f"/memory/quarantine/{name}/reject", json={"reason": "not now"})
    told = [[each["decision"] for each in agent.get("/memory/notices").json()["items"]] for _ in "ab"]
    assert (answer.status_code, mission(world), told) == (200, "Ship before Easter", [["not now"], []])


@pytest.mark.promise("C71")
def test_a_rejection_without_a_reason_is_refused(world, agent):
    name = pending_proposal(agent)
    answers = [
        world.owner.post(f"/memory/quarantine/{name}/reject", json=body).status_code for body in ({}, {"reason": " "})
    ]
    assert (answers[0], answers[1] in {400, 422}, len(world.memory.pending())) == (422, True, 1)


@pytest.mark.promise("C68")
def test_batch_approval_returns_one_answer_each(world, agent):
    ids = [pending_proposal(agent), pending_proposal(agent, "Berth three is wet", "workspace_state")]
    items = [{"id": each, "digest": world.owner.get(f"/memory/quarantine/{each}").json()["digest"]} for each in ids]
    items[1]["digest"] = "0" * 64
    told = world.owner.post(
        "/memory/quarantine/approve", json={"items": [*items, {"id": "nobody", "digest": "0" * 64}]}
    ).json()
    assert ([each["error"] and each["error"]["code"] for each in told["results"]], told["approved"]) == (
        [None, "conflict", "not_found"],
        1,
    )


@pytest.mark.promise("C68")
def test_batch_rejection_returns_one_answer_each(world, agent):
    ids = [pending_proposal(agent), "nobody", pending_proposal(agent, "Berth three is wet", "workspace_state")]
    told = world.owner.post("/memory/quarantine/reject", json={"ids": ids, "reason": "no"}).json()
    assert ([each["error"] is None for each in told["results"]], told["rejected"], told["failed"]) == (
        [True, False, True],
        2,
        1,
    )


@pytest.mark.promise("Z24", "F10")
def test_under_four_eyes_no_one_approves_their_own_proposal(tmp_path):
    world = HttpTestServer(tmp_path, policy=Policy(four_eyes=True))
    said = "The crane may be red"
    made = world.owner.post("/memory/items", json={"text": said, "tier": "archival", "confidence": 0.01}).json()
    name = made["item"]["id"]
    other = world.bearer("rita", rights="reviewer")
    codes = [
        client.post(f"/memory/quarantine/{name}/approve", headers=tag_of(client, name)).status_code
        for client in (world.owner, other)
    ]
    assert codes == [403, 201]
    world.memory.close()


@pytest.mark.promise("C66")
def test_a_reviewer_decides_and_does_nothing_else(world, agent):
    reviewer, name = world.bearer("rita", rights="reviewer"), pending_proposal(agent)
    codes = [
        reviewer.post(f"/memory/quarantine/{name}/approve", headers=tag_of(reviewer, name)).status_code,
        reviewer.post("/memory/items", json={"text": "The crane is red"}).status_code,
        reviewer.get("/memory/tokens").status_code,
    ]
    assert codes == [201, 422, 403]


@pytest.mark.parametrize("way", ["approve", "amend"])
@pytest.mark.parametrize("headers", [{}, {"If-Match": "*"}])
def test_an_approval_names_what_was_seen(world, agent, way, headers):
    name = pending_proposal(agent)
    body = {"json": {"text": "Ship after Easter"}} if way == "amend" else {}
    answer = world.owner.post(f"/memory/quarantine/{name}/{way}", headers=headers, **body)
    detail = answer.json()["detail"]
    named = ("If-Match" in detail, "GET /memory/quarantine/{id}" in detail, "digest" in detail)
    assert (answer.status_code, named, mission(world)) == (428, (True, True, True), "Ship before Easter")


def test_an_approval_of_many_names_what_was_seen_of_each(world, agent):
    name = pending_proposal(agent)
    answer = world.owner.post("/memory/quarantine/approve", json={"items": [{"id": name}]})
    assert (answer.status_code, "body.items.0.digest" in answer.json()["detail"]) == (428, True)


@pytest.mark.promise("T21")
def test_the_queue_has_the_verbs_of_the_library_over_http(world):
    library = {
        name for name, each in OPERATIONS.items() if each.path.startswith(("/memory/quarantine", "/memory/queue"))
    }
    described = {each["operationId"] for path in world.api["paths"].values() for each in path.values()}
    assert (len(library), library <= described) == (8, True)


@pytest.fixture
def reviewing(world):
    """A browser that a reviewer opened by a link of their own, their token, and what opening it answered."""
    issued = world.memory.create_token("rita", rights="reviewer")
    url = world.client(issued.secret).post("/session/link").json()["url"]
    browser = world.client(None)
    opened = browser.post("/session", json={"code": url.partition("#code=")[2]}).json()
    browser.headers["Keepward-Csrf"] = opened["csrf"]
    return browser, issued.token, opened


def test_a_reviewer_decides_in_a_session_and_changes_nothing_else(world, agent, reviewing):
    browser, _, _ = reviewing
    name = pending_proposal(agent)
    approved = browser.post(f"/memory/quarantine/{name}/approve", json={}, headers=tag_of(browser, name)).status_code
    written = browser.post("/memory/items", json={"text": "The crane is red"}).status_code
    assert (approved, written, browser.get("/memory/tokens").status_code) == (201, 422, 403)
    assert mission(world) == "Ship in summer"


def test_a_reviewers_session_ends_with_their_token(world, reviewing):
    browser, token, _ = reviewing
    before = browser.get("/memory/status").status_code
    world.memory.revoke_token(token.id)
    assert (before, browser.get("/memory/status").status_code) == (200, 401)


def test_stale_proposal_is_labelled_and_edited_against_current_text(world, agent):
    name = pending_proposal(agent)
    world.memory.remember("Ship next week", key="mission", kind="state", tier="core")
    listed = world.owner.get("/memory/quarantine").json()["items"]
    listed.append(world.owner.get(f"/memory/quarantine/{name}").json())
    assert [(each["state"], each["stale"]) for each in listed] == [("pending", True)] * 2
    assert [each["current"][0]["text"] for each in listed] == ["Ship next week"] * 2
    body = {"text": "Ship next week, in the summer", "if_version": listed[0]["current"][0]["version"]}
    answer = world.owner.post(f"/memory/quarantine/{name}/amend", json=body, headers=tag_of(world.owner, name))
    assert (answer.status_code, mission(world)) == (201, "Ship next week, in the summer")
