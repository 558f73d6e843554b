"""``POST /memory/call/{operation}``: the rules of the operation's own route, with the arguments of Python."""

from __future__ import annotations

import pytest
from http_fixtures import HttpTestServer

from calls import EXAMPLES, operation_of
from keepward.http.routes import CALLED_BY_NAME

KEY = {"Idempotency-Key": "k-1"}


@pytest.fixture
def world(tmp_path):
    world = HttpTestServer(tmp_path)
    yield world
    world.memory.close()


@pytest.fixture
def ferry(world):
    return world.memory.remember("The ferry leaves at six", tier="archival", key="ferry").records[0]


def call(client, name, headers=None, cursor="", **args):
    return client.post(f"/memory/call/{name}{cursor}", json=args, headers=headers)


def test_every_operation_without_bytes_is_called_by_name():
    named = {operation_of(example).name for example in EXAMPLES}
    assert named - {*CALLED_BY_NAME} == {"put_blob", "read_blob"}


def test_no_operation_is_called_by_another_name(world):
    answer = call(world.owner, "rememberx")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert call(world.nobody, "rememberx").status_code == 401
    assert world.owner.get("/memory/call/get").status_code == 405


def test_credential_is_checked_before_the_arguments(world):
    assert [call(world.nobody, name, wrong=1).status_code for name in ("get", "erase")] == [401, 401]


@pytest.mark.parametrize("name", ["revise", "append", "move", "archive", "forget"])
def test_header_of_an_outdated_version_refuses_a_change(world, ferry, name):
    args = {"text": "It leaves at seven"} if name in ("revise", "append") else {}
    args |= {"tier": "working"} if name == "move" else {}
    answer = call(world.owner, name, {"If-Match": '"other"'}, memory_id=ferry.id, reason="x", **args)
    assert (answer.status_code, world.memory.get(ferry.id).version) == (412, 1)


def test_outdated_version_in_an_argument_refuses_a_change(world, ferry):
    world.memory.revise(ferry.id, "It leaves at eight", reason="x")
    answer = call(world.owner, "revise", memory_id=ferry.id, text="It leaves at seven", reason="x", if_version=1)
    assert (answer.json()["code"], world.memory.get(ferry.id).version) == ("stale_version", 2)


def test_argument_that_contradicts_the_header_refuses_a_change(world, ferry):
    tag = world.owner.get(f"/memory/items/{ferry.id}").headers["etag"]
    answer = call(world.owner, "revise", {"If-Match": tag}, memory_id=ferry.id, text="At seven", if_version=7)
    assert (answer.status_code, world.memory.get(ferry.id).version) == (412, 1)


@pytest.mark.parametrize("digest", [None, "0" * 64])
def test_approval_needs_the_digest_of_what_was_seen(world, digest):
    item = world.memory.as_actor(world.memory.actor.agent("claude")).remember("Ship", tier="core", key="mission").item
    given = {} if digest is None else {"digest": digest}
    answer = call(world.owner, "approve", proposal_id=item.id, **given)
    code = "precondition_required" if digest is None else "stale_version"
    assert (answer.json()["code"], world.memory.proposal(item.id).state) == (code, "pending")
    assert call(world.owner, "approve", proposal_id=item.id, digest=item.digest).status_code == 201


def test_rollback_needs_the_digest_of_what_was_seen(world, ferry):
    commit = world.memory.head.partition(":")[0]
    assert call(world.owner, "rollback", commit=commit).json()["code"] == "precondition_required"
    seen = call(world.owner, "rollback", commit=commit, dry_run=True).json()["digest"]
    assert call(world.owner, "rollback", commit=commit, digest="0" * 64).json()["code"] == "stale_version"
    assert call(world.owner, "rollback", commit=commit, digest=seen).status_code == 200


def test_repeated_write_under_a_key_is_committed_once(world):
    first, second = (call(world.owner, "remember", KEY, text="The pier is long", tier="archival") for _ in range(2))
    assert (first.status_code, second.json()) == (201, first.json())
    assert "idempotency-replayed" in second.headers
    assert call(world.owner, "remember", KEY, text="The pier is short").status_code == 422
    assert call(world.owner, "remember_many", KEY, items=["The pier is old"]).status_code == 400


def test_calls_count_against_the_rate_limit_of_changes(tmp_path):
    world = HttpTestServer(tmp_path, writes_per_minute=3)
    agent = world.bearer()
    written = [call(agent, "remember", text=f"Fact {n} of four", tier="archival").status_code for n in range(4)]
    read = [call(agent, "recall", query="fact").status_code for _ in range(4)]
    world.memory.close()
    assert (written, read) == ([201, 201, 201, 429], [200] * 4)


def test_body_over_the_limit_is_refused(tmp_path):
    world = HttpTestServer(tmp_path, body_limit=1_000)
    answer = call(world.owner, "remember", text="a" * 1_001)
    world.memory.close()
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("recall", {"query": "x", "limit": 501}, "body.limit: must be a whole number from 1 to 500"),
        ("archive", {"memory_id": "x", "if_version": -1}, "body.if_version: must be null or the number of a version"),
        ("log", {"before": 2**60}, "body.before: must be the number of a commit, such as 120"),
        ("activity", {"days": 0}, "body.days: must be a whole number from 1 to 400"),
        ("list_memories", {"limit": None}, "body.limit: Expected `int`, got `null`"),
        ("forget_many", {"memory_ids": ["x"] * 501}, "body.memory_ids: Expected `array` of length <= 500"),
        ("get", {}, "body.memory_id: is required"),
        ("get", {"id": "x"}, "body: no field `id`; did you mean `memory_id`?"),
        ("propose", {"changes": [{"op": "revert", "id": "x"}]}, "body.changes.0.op: must be one of insert, replace"),
    ],
)
def test_limits_of_a_request_are_those_of_the_route(world, name, args, said):
    answer = call(world.owner, name, **args)
    assert (answer.status_code, answer.json()["detail"][: len(said)]) == (422, said)


def test_pages_are_of_one_state_and_a_cursor_belongs_to_its_arguments(world):
    for n in range(5):
        world.memory.remember(f"Fact {n} of five", tier="archival", tags=["five"])
    first = call(world.owner, "list_memories", tags=["five"], limit=2).json()
    world.memory.remember("Another fact", tier="archival", tags=["five"])
    onward = f"?cursor={first['cursor']}"
    second = call(world.owner, "list_memories", cursor=onward, tags=["five"], limit=3)
    texts = [each["text"] for each in first["items"] + second.json()["items"]]
    assert texts == [f"Fact {n} of five" for n in (4, 3, 2, 1, 0)]
    assert call(world.owner, "list_memories", cursor=onward, tags=["six"], limit=3).json()["code"] == "bad_cursor"
    assert world.owner.get(f"/memory/items{onward}&tags=five").json()["code"] == "bad_cursor"


def test_open_reads_are_open_by_name_too(tmp_path):
    world = HttpTestServer(tmp_path, open_reads=True)
    world.memory.remember("The ferry leaves at six", tier="archival", sensitivity="sensitive")
    read = [call(world.nobody, *each) for each in (("status",), ("recall",), ("context",), ("get",))]
    found = call(world.nobody, "recall", query="ferry")
    world.memory.close()
    assert ([each.status_code for each in read], found.json()["hits"]) == ([200, 422, 422, 401], [])


def test_key_and_id_may_contain_a_slash(world):
    written = call(world.owner, "remember", key="deploy/port", text="The port is 8080")
    found = call(world.owner, "get", memory_id="deploy/port").json()
    assert (written.status_code, found["id"]) == (201, written.json()["id"])


def test_revoked_token_opens_no_operation(world):
    issued = world.memory.create_token("vera", rights="owner")
    client = world.client(issued.secret)
    assert call(client, "status").status_code == 200
    world.memory.revoke_token(issued.token.id)
    assert {name: call(client, name, wrong=1).status_code for name in CALLED_BY_NAME} == dict.fromkeys(
        CALLED_BY_NAME, 401
    )


def test_cursor_is_of_the_arguments_in_any_order(world):
    for n in range(2):
        world.memory.remember(f"Ferry number {n}{n} goes to island {n}", tier="archival")
    first = call(world.owner, "list_memories", limit=1, tiers=["archival"], include_ended=True).json()
    cursor = f"?cursor={first['cursor']}"
    second = call(world.owner, "list_memories", cursor=cursor, include_ended=True, tiers=["archival"], limit=5)
    other = call(world.owner, "list_memories", cursor=cursor, include_ended=True, tiers=["working"])
    assert (second.status_code, len(second.json()["items"]), other.json()["code"]) == (200, 1, "bad_cursor")
