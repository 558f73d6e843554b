"""What a caller may count on whatever it asks: a request id, HEAD beside GET, and a body that has to come in time."""

from __future__ import annotations

import asyncio
import json

import pytest
from http_fixtures import BASE, HttpTestServer
from http_stage import Stage
from starlette.testclient import TestClient

from keepward import Memory
from keepward.http.app_state import AppState, ServerOptions
from keepward.http.middleware import SecurityMiddleware


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path)
    yield made
    made.memory.close()


def test_an_answer_carries_the_id_that_was_sent(stage):
    assert stage.client.get("/health", headers={"X-Request-Id": "a.B-1_"}).headers["x-request-id"] == "a.B-1_"


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 65, "é".encode(), "a\tb"])
def test_an_id_that_is_none_is_replaced(stage, given):
    answer = stage.client.get("/health", headers={} if given is None else {"X-Request-Id": given})
    assert len(answer.headers["x-request-id"]) == 16


def test_two_requests_have_two_ids(tmp_path):
    from itertools import count

    numbers = count()
    stage = Stage(tmp_path)
    stage.serving.random = lambda size: next(numbers).to_bytes(size, "big")
    first, second = (stage.client.get("/health").headers["x-request-id"] for _ in range(2))
    stage.memory.close()
    assert first != second


def test_the_log_has_the_id(stage, caplog):
    caplog.set_level("INFO", logger="keepward.server")
    stage.client.get("/health", headers={"X-Request-Id": "r-7"})
    assert [record.request for record in caplog.records if record.name == "keepward.server"] == ["r-7"]


@pytest.mark.parametrize(
    ("path", "status"), [("/memory/status", 401), ("/nowhere", 404), ("/health?\0", 400)], ids=["401", "404", "400"]
)
def test_a_problem_has_the_id(stage, path, status):
    answer = stage.client.get(path.replace("\0", "%00"), headers={"X-Request-Id": "r-8"})
    assert (answer.status_code, answer.json()["request_id"]) == (status, "r-8")
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/page.js", "/memory/status", "/memory/items", "/docs"])
def test_head_is_answered_as_get_without_a_body(stage, path):
    got, head = (stage.client.request(method, path, headers=stage.owner) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


def test_head_needs_a_token_where_get_does(stage):
    assert stage.client.head("/memory/status").status_code == 401


@pytest.mark.parametrize("path", ["/memory/export", "/memory/events"])
def test_head_of_a_stream_ends(tmp_path, path):
    world = HttpTestServer(tmp_path)
    world.memory.remember("The crane is red", tier="archival")
    answer = TestClient(world.app, base_url=BASE).head(path, headers=world.owner.headers)
    world.memory.close()
    assert (answer.status_code, answer.content) == (200, b"")


def test_head_changes_nothing(stage):
    assert stage.client.head("/memory/rebuild", headers=stage.owner).status_code in {404, 405}


def answered(receive, timeout):
    """Return status and code of the answer to a call whose body comes as ``receive`` says."""
    sent = []

    async def reading(scope, take, give):
        more = True
        while more:
            more = (await take()).get("more_body", False)
        await give({"type": "http.response.start", "status": 200, "headers": []})
        await give({"type": "http.response.body", "body": b"{}"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/memory/items", "method": "POST", "query_string": b""}
    scope["headers"] = [(b"host", b"127.0.0.1:8321")]
    with Memory.open(":memory:", embedder=None) as memory:
        edge = SecurityMiddleware(reading, AppState(memory=memory, options=ServerOptions(body_timeout=timeout)))
        asyncio.run(edge(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]).get("code")


def test_a_body_that_never_ends_is_answered_with_408():
    async def never():
        await asyncio.Event().wait()

    assert answered(never, 0.01) == (408, "timeout")


def test_a_byte_now_and_then_does_not_put_it_off():
    async def drip():
        # As a slow line does: a byte each 5 ms.
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"x", "more_body": True}

    assert answered(drip, 0.05) == (408, "timeout")


def test_a_body_in_time_is_read():
    async def whole():
        # As a line does that is not there at once.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"{}", "more_body": False}

    assert answered(whole, 30) == (200, None)
