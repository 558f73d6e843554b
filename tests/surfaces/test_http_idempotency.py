"""A write that is sent again under its idempotency key is committed once, and answered again from its commit."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from http_fixtures import BASE, HttpTestServer
from starlette.testclient import TestClient

from keepward import Actor
from keepward.http import ServerOptions, create_app

KEY = {"Idempotency-Key": "k-1"}


def post(world, text="Ana likes tea", headers=KEY, caller=None, **more):
    body = {"text": text, "tier": "archival", **more}
    return (caller or world.owner).post("/memory/items", json=body, headers=headers)


def replayed(answer):
    return "idempotency-replayed" in answer.headers


def test_a_repeated_write_gets_the_first_answer_and_a_mark(world):
    first, second = post(world), post(world)
    assert (second.json(), second.status_code, second.headers["location"]) == (
        first.json(),
        201,
        first.headers["location"],
    )
    assert [replayed(each) for each in (first, second)] == [False, True]


def test_an_append_that_is_sent_again_appends_once(world):
    item = world.owner.get(f"/memory/items/{post(world).json()['id']}")
    headers = {"Idempotency-Key": "k-2", "If-Match": item.headers["etag"]}
    path = f"/memory/items/{item.json()['id']}/append"
    answers = [world.owner.post(path, json={"text": "at nine", "reason": "asked"}, headers=headers) for _ in range(3)]
    assert [each.status_code for each in answers] == [201] * 3
    assert world.memory.get(item.json()["id"]).text.count("at nine") == 1


def test_an_approval_that_is_sent_again_is_answered_again(world):
    world.bearer().post("/memory/items", json={"text": "Deploy on Friday", "tier": "core", "key": "mission"})
    item = world.owner.get("/memory/quarantine").json()["items"][0]
    path, headers = f"/memory/quarantine/{item['id']}/approve", {**KEY, "If-Match": f'"{item["digest"]}"'}
    first, second = (world.owner.post(path, json={}, headers=headers) for _ in range(2))
    assert (first.status_code, second.json(), replayed(second)) == (201, first.json(), True)


def test_a_confirmation_that_is_sent_again_confirms_once(world):
    name = post(world, headers={}).json()["id"]
    first, second = post(world), post(world)
    assert (first.status_code, second.json(), len(world.memory.history(name))) == (200, first.json(), 2)


def test_idempotency_keys_hold_on_other_servers_and_after_restarts(world):
    first = post(world)
    with world.open(Actor.operator("olga")) as memory:
        other = TestClient(create_app(memory, options=ServerOptions()), base_url=BASE)
        body = {"text": "Ana likes tea", "tier": "archival"}
        second = other.post("/memory/items", json=body, headers={**KEY, **world.owner.headers})
    assert (second.json(), replayed(second)) == (first.json(), True)


def test_equal_calls_at_one_moment_commit_once(world):
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: post(world), range(6)))
    assert ({each.json()["id"] for each in answers}, len(world.memory.log())) == ({answers[0].json()["id"]}, 1)


#: What differs in a call under the same key.
OTHER_CALLS = {
    "body": {"text": "Ana likes coffee"},
    "tenant": {"headers": {**KEY, "Keepward-Tenant": "default"}},
    "scope": {"headers": {**KEY, "Keepward-Scope": "/agents/x"}},
    **{
        kind: {"headers": {**KEY, f"Keepward-{kind.title()}": "x"}}
        for kind in ("user", "agent", "project")
        # The owner's handle of an agent is another actor, whose keys are its own.
        if kind != "agent"
    },
    "type": {"headers": {**KEY, "Content-Type": "application/json; charset=utf-8"}},
}


@pytest.mark.parametrize("other", OTHER_CALLS)
def test_the_same_key_with_another_call_is_refused(world, other):
    post(world)
    answer = post(world, **OTHER_CALLS[other])
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_reused")


def test_the_same_key_with_another_version_is_refused(world):
    path = f"/memory/items/{post(world).json()['id']}"
    body = {"text": "at nine", "reason": "asked"}

    def append():
        tag = world.owner.get(path).headers["etag"]
        return world.owner.post(f"{path}/append", json=body, headers={"Idempotency-Key": "k-2", "If-Match": tag})

    first, second = append(), append()
    assert (first.status_code, second.status_code, second.json()["code"]) == (201, 422, "idempotency_reused")
    assert world.memory.get(first.json()["id"]).text.count("at nine") == 1


@pytest.mark.parametrize("method", ["PATCH", "POST", "DELETE"])
def test_a_key_holds_for_every_write_of_one_memory(world, method):
    made = post(world, headers={}, key="drink").json()
    path = "/memory/items" if method == "POST" else f"/memory/items/{made['id']}"
    headers = {**KEY, "If-Match": world.owner.get(f"/memory/items/{made['id']}").headers["etag"]}
    sent = {} if method == "DELETE" else {"json": {"text": "Ana likes coffee", "reason": "asked"}}
    if method == "POST":
        del headers["If-Match"]
        sent["json"]["key"] = "drink"
    first, second = (world.owner.request(method, path, headers=headers, **sent) for _ in range(2))
    assert (first.status_code, second.json(), replayed(second)) == (201, first.json(), True)
    assert len(world.memory.history(made["id"])) == 2


#: Calls that change something and return no outcome of one write.
WITHOUT_KEY = {
    "batch": ("/memory/items/batch", {"items": [{"text": "Ana likes coffee"}]}),
    "messages": ("/memory/messages", {"messages": [{"role": "user", "content": "I like tea"}]}),
    "forget": ("/memory/items/forget", {"ids": ["keeper"]}),
    "approve": ("/memory/quarantine/approve", {"items": []}),
    "reject": ("/memory/quarantine/reject", {"ids": [], "reason": "no"}),
    "token": ("/memory/tokens", {"name": "lyra"}),
    "job": ("/memory/jobs/expire/run", {}),
    "feedback": ("/memory/feedback", {"receipt": "x", "used": ["y"]}),
    "rollback": ("/memory/rollback/1", {}),
}


@pytest.mark.parametrize("call", WITHOUT_KEY)
def test_a_call_that_would_ignore_a_key_refuses_it(world, call):
    path, body = WITHOUT_KEY[call]
    answer = world.owner.post(path, json=body, headers=KEY)
    assert (answer.status_code, "takes an Idempotency-Key" in answer.json()["detail"]) == (400, True)
    assert (world.memory.list_memories(), world.memory.log()) == ([], [])
    assert "lyra" not in [each.name for each in world.memory.tokens()]


def test_a_key_belongs_to_its_actor(world):
    post(world)
    answer = post(world, "Tea is served", caller=world.bearer())
    assert (answer.status_code, replayed(answer)) == (201, False)


def test_a_key_whose_call_committed_nothing_is_free(world):
    secret = "AK" + "IA" + "Q3EGKX7ZT2LM4N5P"
    refused = post(world, f"The key is {secret}")
    answer = post(world)
    assert (refused.status_code, answer.status_code, replayed(answer)) == (422, 201, False)


def test_a_repeated_write_does_not_use_up_the_allowance(tmp_path):
    world = HttpTestServer(tmp_path, writes_per_minute=3)
    agent = world.bearer()
    assert [post(world, caller=agent).status_code for _ in range(9)] == [201] * 9
    world.memory.close()


def keys_in(world):
    with closing(sqlite3.connect(world.path)) as db:
        return db.execute("SELECT request_key, request_digest FROM commits ORDER BY seq").fetchall()


@pytest.mark.promise("F14")
def test_an_erasure_removes_the_key_of_what_it_erases(world):
    if world.DATABASE:
        pytest.skip("this test reads the rows of a SQLite file")
    name = post(world).json()["id"]
    held = keys_in(world)[0]
    plan = world.memory.plan_erase([name])
    world.memory.erase(plan.digest, [name])
    answer = post(world)
    assert ([len(each) for each in held], keys_in(world)[0]) == ([16, 32], (None, None))
    assert (replayed(answer), "tea" in answer.text) == (False, False)


def test_a_row_that_was_given_another_key_answers_nothing(world):
    if world.DATABASE:
        pytest.skip("this test edits the rows of a SQLite file")
    post(world)
    post(world, "The ferry leaves at six", headers={"Idempotency-Key": "k-2"})
    with closing(sqlite3.connect(world.path, isolation_level=None)) as db:
        ((key, digest),) = db.execute("SELECT request_key, request_digest FROM commits WHERE seq = 2").fetchall()
        db.execute("UPDATE commits SET request_key = NULL, request_digest = NULL WHERE seq = 2")
        db.execute("UPDATE commits SET request_key = ?, request_digest = ? WHERE seq = 1", (key, digest))
    answer = post(world, "The ferry leaves at six", headers={"Idempotency-Key": "k-2"})
    assert (answer.status_code, "tea" in answer.text) == (422, False)


def test_an_adopted_store_verifies_and_knows_no_earlier_key(world):
    post(world)
    world.memory.adopt(world.memory.plan_adopt().digest)
    assert world.memory.verify().ok
    # The text is known: it is no second memory, and no repeated answer either.
    again = post(world)
    assert (again.json()["outcome"], replayed(again)) == ("duplicate", False)


@pytest.mark.parametrize("key", ["", "a b", "a" * 256], ids=["empty", "a blank", "too long"])
def test_a_malformed_key_is_refused(world, key):
    answer = post(world, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_a_stream_takes_no_key(world):
    answer = world.owner.post("/memory/import", content=b"{}", headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
