"""Routes that propose: what became of a write is its status, and nothing gets past the gates by another path."""

from __future__ import annotations

import json

import pytest

from keepward import Memory


@pytest.fixture
def agent(world):
    return world.bearer()


@pytest.fixture
def saved(world):
    return world.owner.post("/memory/items", json={"text": "The ferry leaves at six", "tier": "archival"})


def text_of(world, name):
    return world.memory.get(name).text


def test_gate_refusal_answers_422_with_reasons_and_a_receipt(world, agent):
    answer = agent.post("/memory/items", json={"text": "The ferry leaves at six", "confidence": 1.5})
    told = answer.json()
    kept = world.owner.get(f"/memory/receipts/{told['receipt']['id']}").json()
    assert (answer.status_code, told["code"], told["reasons"][0]["code"], kept["kind"]) == (
        422,
        "refused",
        "bad_confidence",
        "refusal",
    )


def test_long_text_answers_422_with_the_route_that_stores_it(agent):
    long = " ".join(f"The crane at pier {number} lifts {number * 7} tonnes." for number in range(60))
    detail = agent.post("/memory/items", json={"text": long}).json()["detail"]
    assert "POST /memory/import?format=markdown" in detail
    answer = agent.post("/memory/import?format=markdown", content=long)
    assert [each["outcome"] for each in map(json.loads, answer.text.splitlines()[:-1])] == ["committed"] * 2


@pytest.mark.promise("C109")
def test_an_edit_is_one_proposal_of_many_changes(world, agent):
    saved = agent.post("/memory/items", json={"text": "The ferry leaves at six", "tier": "archival"})
    answer = agent.post(
        "/memory/edit",
        json={
            "reason": "new timetable",
            "changes": [
                {"op": "insert", "text": "The crane is red", "tier": "archival"},
                {"op": "append", "id": saved.json()["id"], "text": "and at nine"},
            ],
        },
    )
    assert (answer.status_code, len(world.memory.show(answer.json()["commit"]["id"]).steps)) == (201, 2)


CHANGES = {
    "insert": {"text": "The crane is red", "ttl": "30d", "tags": ["crane"], "occurred_at": "2026-02-01T10:00:00Z"},
    "replace": {"id": "{id}", "text": "The ferry leaves at seven", "tags": ["ferry"], "subject": None},
    "append": {"id": "{id}", "text": "and at nine", "evidence": ["chat:42"]},
    "supersede": {"id": "{id}", "by": "{other}"},
    "move": {"id": "{id}", "scope": "orion", "if_version": 1},
    "promote": {"id": "{id}", "text": "The ferry leaves at six", "if_version": 1},
    "retire": {"id": "{id}"},
    "archive": {"id": "{id}"},
    "restore": {"id": "{ended}"},
    "reinforce": {"id": "{id}", "gain": 0.1, "confirms": False},
}


@pytest.mark.parametrize("op", CHANGES)
def test_an_edit_takes_every_kind_of_change(world, saved, op):
    other = world.memory.remember("The crane is blue and tall", tier="archival").records[0].id
    ended = world.memory.remember("The old pier is closed", tier="archival").records[0].id
    world.memory.forget(ended, reason="gone")
    names = {"id": saved.json()["id"], "other": other, "ended": ended}
    change = {name: value.format(**names) if isinstance(value, str) else value for name, value in CHANGES[op].items()}
    answer = world.owner.post("/memory/edit", json={"reason": "test", "changes": [{"op": op, **change}]})
    assert answer.status_code == 201


def test_a_revision_names_the_version_it_saw(world, saved):
    body = {"text": "The ferry leaves at seven", "reason": "winter"}
    missing = world.owner.patch(saved.headers["location"], json=body)
    right = world.owner.patch(saved.headers["location"], json=body, headers={"If-Match": saved.headers["etag"]})
    stale = world.owner.patch(saved.headers["location"], json=body, headers={"If-Match": saved.headers["etag"]})
    assert [missing.status_code, right.status_code, stale.status_code] == [428, 201, 412]


def test_a_revision_that_another_overtook_while_it_ran_is_refused(world, saved, monkeypatch):
    name = saved.json()["id"]
    real = Memory._send

    def late(self, about, given):
        if about.name == "revise":
            monkeypatch.setattr(Memory, "_send", real)
            world.memory.revise(given["memory_id"], "The ferry leaves at eight", reason="overtaking")
        return real(self, about, given)

    monkeypatch.setattr(Memory, "_send", late)
    answer = world.owner.patch(
        saved.headers["location"],
        json={"text": "The ferry leaves at seven", "reason": "winter"},
        headers={"If-Match": saved.headers["etag"]},
    )
    assert (answer.status_code, text_of(world, name)) == (412, "The ferry leaves at eight")


def test_a_body_that_contradicts_if_match_is_refused(world, saved):
    answer = world.owner.patch(
        saved.headers["location"],
        json={"text": "The ferry leaves at seven", "reason": "winter", "if_version": 7},
        headers={"If-Match": saved.headers["etag"]},
    )
    assert answer.status_code == 412


def test_a_field_left_out_stays_and_a_null_empties_it(world):
    made = world.memory.remember("The ferry leaves at six", tier="archival", subject="ferry", category="time").records[
        0
    ]
    tag = world.owner.get(f"/memory/items/{made.id}").headers["etag"]
    world.owner.patch(f"/memory/items/{made.id}", json={"category": None, "reason": "tidy"}, headers={"If-Match": tag})
    record = world.memory.get(made.id)
    assert (record.text, record.subject, record.category) == ("The ferry leaves at six", "ferry", None)


def test_forgetting_checks_if_match_and_needs_no_reason(world, saved):
    place = saved.headers["location"]
    answers = [
        world.owner.delete(place, params={"reason": "sold"}, headers={"If-Match": '"other"'}).status_code,
        world.owner.delete(place).status_code,
    ]
    assert (answers, world.memory.get(saved.json()["id"]).status.value) == ([412, 201], "retired")
    assert world.memory.history(saved.json()["id"])[-1].details.reason == "forgotten"


@pytest.mark.parametrize(("field", "value"), [("if_version", -1), ("vector", [0.1] * 8193)])
def test_batch_level_refusal_is_documented_for_an_item(world, agent, field, value):
    answer = agent.post("/memory/items/batch", json={"items": [{"text": "The ferry leaves at six", field: value}]})
    described = world.api["components"]["schemas"]
    single, many = (described[name]["properties"][field] for name in ("RememberRequest", "OneOfMany"))
    assert (answer.json()["code"], many) == ("invalid_body", single)


def test_change_without_a_type_is_answered_with_advice(agent):
    told = agent.post("/memory/edit", json={"reason": "tidy", "changes": [{}]}).json()
    assert told["detail"].startswith("body.changes.0.op: is required; it selects the type of the change; use one of")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "x", "id": "1"},
        {"text": "x", "confidence": "high"},
        [],
    ],
    ids=str,
)
def test_a_body_of_another_shape_is_refused(agent, body):
    answer = agent.post("/memory/items", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_body")


@pytest.mark.parametrize(
    "fields",
    [{"scope": "../up"}, {"ttl": "soon"}, {"occurred_at": "yesterday"}, {"scope": ""}, {"occurred_at": "9999-99-99"}],
    ids=str,
)
def test_unreadable_field_is_refused_and_not_repeated(agent, fields):
    answer = agent.post("/memory/items", json={"text": "The ferry leaves at six", **fields})
    said = next(iter(fields.values()))
    assert (answer.status_code, bool(said) and said in answer.text) == (400, False)


@pytest.mark.parametrize(
    "change", [{"op": "revert", "id": "x"}, {"op": "expire", "id": "x"}, {"id": "x"}, {"op": "retire"}]
)
def test_a_change_that_is_none_is_refused(agent, change):
    assert agent.post("/memory/edit", json={"reason": "x", "changes": [change]}).status_code == 422


def test_etag_survives_a_confirmation_but_not_a_change(world, saved):
    place, tag = saved.headers["location"], saved.headers["etag"]
    world.owner.post(f"{place}/reinforce", json={"reason": "still so"})
    moved = world.owner.get(place).headers["etag"]
    first = world.owner.patch(
        place, json={"text": "The ferry leaves at seven", "reason": "x"}, headers={"If-Match": tag}
    )
    again = world.owner.patch(place, json={"text": "The ferry leaves at one", "reason": "x"}, headers={"If-Match": tag})
    assert (moved != tag, first.status_code, again.status_code) == (True, 201, 412)
    assert text_of(world, saved.json()["id"]) == "The ferry leaves at seven"


@pytest.mark.promise("E19")
def test_archived_memory_is_found_by_its_id_only(world, saved):
    place = saved.headers["location"]
    stale = world.owner.post(f"{place}/archive", json={"reason": "quiet"}, headers={"If-Match": '"other"'})
    away = world.owner.post(f"{place}/archive", json={"reason": "quiet"}, headers={"If-Match": saved.headers["etag"]})
    listed = world.owner.get("/memory/items").json()["items"]
    again = world.owner.get(place).json()
    assert (stale.status_code, away.status_code, listed, again["status"]) == (412, 201, [], "archived")


MISSPELT = {
    "a new memory": (
        "POST",
        "/memory/items",
        {"text": "x", "teir": "core"},
        "body: no field `teir`; did you mean `tier`?",
    ),
    "far from any": (
        "POST",
        "/memory/items",
        {"text": "x", "zebra": 1},
        "body: no field `zebra`; there are: text",
    ),
    "an edit": (
        "PATCH",
        "/memory/items/x",
        {"reason": "x", "txet": "y"},
        "body: no field `txet`; did you mean `text`?",
    ),
    "an item of a batch": (
        "POST",
        "/memory/items/batch",
        {"items": [{"text": "x", "teir": "core"}]},
        "body.items.0: no field `teir`; did you mean `tier`?",
    ),
    "a change of several": (
        "POST",
        "/memory/edit",
        {"reason": "x", "changes": [{"op": "replace", "id": "x", "subjct": "Ana"}]},
        "body.changes.0: no field `subjct`; did you mean `subject`?",
    ),
    "a context": ("POST", "/memory/compile", {"objectve": "x"}, "body: no field `objectve`; did you mean `objective`?"),
    "a query for a task": (
        "POST",
        "/memory/compile",
        {"query": "x"},
        "body: no field `query`; did you mean `objective`?",
    ),
    "a task for a query": (
        "GET",
        "/memory/search?objective=x",
        None,
        "query: no parameter `objective`; did you mean `query`?",
    ),
    "a user in a body": (
        "POST",
        "/memory/items",
        {"text": "x", "user_id": "ana"},
        "body: no field `user_id`; it is the header Keepward-User",
    ),
    "a user in a query": (
        "GET",
        "/memory/items?user_id=ana",
        None,
        "query: no parameter `user_id`; it is the header Keepward-User",
    ),
    "a query": ("GET", "/memory/search?query=x&limt=3", None, "query: no parameter `limt`; did you mean `limit`?"),
    "a list": ("GET", "/memory/items?subjct=Ana", None, "query: no parameter `subjct`; did you mean `subject`?"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_an_unknown_field_is_named_with_the_nearest(agent, name):
    method, path, body, says = MISSPELT[name]
    answer = agent.request(method, path, json=body)
    assert (answer.status_code, answer.json()["detail"][: len(says)]) == (400 if body is None else 422, says)


def test_edit_of_one_target_writes_that_block(world):
    edit = {"target": "core:mission", "content": "Ship by June", "reason": "agreed", "provenance": "user_message"}
    written = world.owner.post("/memory/edit", json=edit)
    record = world.memory.get("mission")
    assert (written.status_code, record.text, record.source) == (201, "Ship by June", "user_message")


def test_edit_of_one_target_without_content_retires_it(world, saved):
    removed = world.owner.post("/memory/edit", json={"target": f"archival:{saved.json()['id']}", "reason": "sold"})
    assert (removed.status_code, world.memory.get(saved.json()["id"]).status.value) == (201, "retired")
