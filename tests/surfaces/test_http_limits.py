"""How much one call may carry, and how often one may write."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import socket
import sqlite3
import threading
from contextlib import suppress

import anyio
import pytest
from http_fixtures import HttpTestServer, _scope
from http_stage import BASE, JSON, ROUTES, Stage
from msgspec.structs import replace
from starlette.testclient import TestClient
from uvicorn.server import ServerState as UvicornState

from keepward.http.app_state import AppState, RateLimiter, ServerOptions
from keepward.http.requests import Problem
from keepward.http.server import bind, build, create_app, prepare
from keepward.http.slots import CALL, COSTLY, IMPORT, STREAM, Slots
from keepward.services.reading import contexts
from keepward.storage.server_state import ServerState


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path, writes_per_minute=3)
    yield stage
    stage.memory.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    stage = Stage(
        tmp_path_factory.mktemp("small"), body_limit=1000, blob_limit=5000, import_limit=9000, writes_per_minute=0
    )
    yield stage
    stage.memory.close()


def items(size):
    return b'{"text": "' + b"a" * (size - 12) + b'"}'


def chunked(body):
    return iter([body[at : at + 300] for at in range(0, len(body), 300)])


@pytest.mark.parametrize("send", [bytes, chunked], ids=["announced", "chunked"])
def test_a_body_over_the_limit_is_answered_with_413(small, send):
    answer = small.client.post("/memory/items", content=send(items(1001)), headers={**small.owner, **JSON})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("send", [bytes, chunked], ids=["announced", "chunked"])
def test_a_body_at_the_limit_is_read(small, send):
    answer = small.client.post("/memory/items", content=send(items(1000)), headers={**small.owner, **JSON})
    assert answer.status_code == 201


@pytest.mark.parametrize("send", [bytes, chunked], ids=["announced", "chunked"])
@pytest.mark.parametrize(("path", "limit"), [("/memory/blobs", 5000), ("/memory/import", 9000)])
def test_a_blob_and_an_import_have_limits_of_their_own(small, send, path, limit):
    statuses = [
        small.client.post(path, content=send(b"a" * size), headers=small.owner).status_code
        for size in (limit, limit + 1)
    ]
    assert statuses == [200, 413]


@pytest.mark.parametrize("send", [bytes, chunked], ids=["announced", "chunked"])
def test_import_over_the_limit_names_the_alternative(small, send):
    answer = small.client.post("/memory/import", content=send(b"a" * 9001), headers=small.owner)
    assert answer.json()["detail"].endswith("import the file on the server's machine")


def test_unknown_path_reads_no_large_body(small):
    assert small.client.post("/nowhere", content=b"a" * 1001).status_code == 413


def test_excess_write_waits_for_the_announced_time(stage):
    header = stage.token()
    answers = [stage.client.post("/memory/items", json={"text": f"Fact {n} of four"}, headers=header) for n in range(4)]
    told = answers[3]
    assert ([each.status_code for each in answers], told.headers["retry-after"]) == ([201, 201, 201, 429], "20")
    assert "`writes_per_minute` under [server]" in told.json()["detail"]
    assert stage.client.get("/memory/status", headers=header).status_code == 200


def test_the_owner_waits_for_no_one(stage):
    answers = [
        stage.client.post("/memory/items", json={"text": f"Fact {n} of nine"}, headers=stage.owner) for n in range(9)
    ]
    assert {each.status_code for each in answers} == {201}


def test_after_that_time_it_goes_on(stage):
    header = stage.token()
    for n in range(3):
        stage.client.post("/memory/items", json={"text": f"Fact {n} of four"}, headers=header)
    stage.ticks.now += 20
    assert stage.client.post("/memory/items", json={"text": "Tea at nine"}, headers=header).status_code == 201


def test_what_was_turned_away_does_not_lengthen_the_wait():
    rates = RateLimiter(3, ServerState(lambda: 0.0))
    assert [rates.take("one") for _ in range(9)][3:] == [20.0] * 6


def test_what_was_done_already_is_counted_up_to_an_hour():
    now = [0.0]
    rates = RateLimiter(3, ServerState(lambda: now[0]))
    rates.charge("one", 1_000_000)
    waits = [rates.take("one")]
    now[0] = 3599.0
    waits.append(rates.take("one"))
    now[0] = 3600.0
    assert [*waits, rates.take("one"), rates.take("two")] == [3560.0, 0.0, 0.0, 0.0]


def test_each_principal_has_an_allowance_of_its_own(stage):
    first, second = stage.token("one"), stage.token("two")
    for n in range(4):
        stage.client.post("/memory/items", json={"text": f"Fact {n} of four"}, headers=first)
    assert stage.client.post("/memory/items", json={"text": "Tea at nine"}, headers=second).status_code == 201


def test_an_allowance_never_grows_beyond_a_minutes_worth():
    now = [0.0]
    rates = RateLimiter(3, ServerState(lambda: now[0]))
    rates.take("one")
    now[0] = 1e6
    assert [rates.take("one") for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]


@pytest.fixture
def beside(stage):
    """A client of a second server of the same store, which shares the state of the first."""
    shared = {"options": stage.serving.options, "monotonic": stage.ticks, "shared": stage.serving.state}
    serving = AppState(memory=stage.memory, **shared)
    return TestClient(create_app(stage.memory, serving=serving, routes=ROUTES), base_url=BASE)


def test_servers_with_shared_state_share_a_rate_limit(stage, beside):
    header = stage.token()
    answers = [
        client.post("/memory/items", json={"text": f"Fact {n} of four"}, headers=header).status_code
        for n, client in enumerate([stage.client, beside, stage.client, beside])
    ]
    assert answers == [201, 201, 201, 429]


def test_servers_with_shared_state_share_login_sessions(stage, beside):
    browser, csrf = stage.session()
    beside.cookies.update(dict(browser.cookies))
    written = beside.post("/memory/items", json={"text": "Ana likes tea"}, headers=csrf).status_code
    beside.delete("/session", headers=csrf)
    assert (written, browser.get("/memory/status").status_code) == (201, 401)


@pytest.mark.parametrize("work", [CALL, COSTLY], ids=lambda work: work.name)
def test_calls_over_a_tokens_share_wait_and_are_answered(work):
    async def run():
        slots, done = Slots(), []

        async def call():
            released = await slots.acquire(work, "claude")
            done.append(slots.in_use(work))
            await anyio.lowlevel.checkpoint()
            released()

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(call)
        return len(done), max(done) <= work.token, slots.in_use(work)

    assert anyio.run(run) == (20, True, 0)


def test_a_free_slot_goes_to_the_token_that_holds_fewest():
    async def run():
        slots, order = Slots(), []
        taken = [await slots.acquire(COSTLY, f"t{n // 2}") for n in range(4)]

        async def call(token):
            await slots.acquire(COSTLY, token)
            order.append(token)

        async with anyio.create_task_group() as group:
            group.start_soon(call, "t0")
            await anyio.wait_all_tasks_blocked()
            group.start_soon(call, "late")
            await anyio.wait_all_tasks_blocked()
            taken[0]()
            await anyio.wait_all_tasks_blocked()
            taken[2]()
        return order

    assert anyio.run(run) == ["late", "t0"]


def test_call_without_a_slot_in_time_is_refused_and_takes_none(monkeypatch):
    async def run():
        slots = Slots()
        taken = [await slots.acquire(COSTLY, f"t{n}") for n in range(COSTLY.agents)]
        monkeypatch.setattr("keepward.http.slots.SLOT_TIMEOUT_S", 0.01)
        with pytest.raises(Problem) as refused:
            await slots.acquire(COSTLY, "late")
        for released in taken:
            released()
        return refused.value.status, slots._limiters

    assert anyio.run(run) == (429, {})


def test_import_without_a_slot_is_refused_at_once():
    async def run():
        slots = Slots()
        for _ in range(IMPORT.token):
            await slots.acquire(IMPORT, "t")
        with anyio.move_on_after(1) as waiting, pytest.raises(Problem):
            await slots.acquire(IMPORT, "t")
        return waiting.cancelled_caught

    assert not anyio.run(run)


def test_waiting_requests_are_counted_for_each_token(monkeypatch):
    monkeypatch.setattr("keepward.http.slots.MAX_WAITERS", 1)

    async def run():
        slots = Slots()
        taken = [await slots.acquire(COSTLY, f"t{n}") for n in range(COSTLY.agents)]
        async with anyio.create_task_group() as group:
            for name in ("late", "later"):
                group.start_soon(slots.acquire, COSTLY, name)
            await anyio.wait_all_tasks_blocked()
            for released in taken:
                released()
        return slots.in_use(COSTLY)

    assert anyio.run(run) == 2


def test_token_with_many_waiting_requests_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("keepward.http.slots.MAX_WAITERS", 1)

    async def run():
        slots = Slots()
        for _ in range(COSTLY.token):
            await slots.acquire(COSTLY, "t")
        async with anyio.create_task_group() as group:
            group.start_soon(slots.acquire, COSTLY, "t")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Problem):
                await slots.acquire(COSTLY, "t")
            await slots.acquire(COSTLY, "other")
            group.cancel_scope.cancel()
        return slots.in_use(COSTLY)

    assert anyio.run(run) == COSTLY.token + 1


def test_agents_together_leave_slots_to_the_owner():
    async def run():
        slots = Slots()
        for n in range(COSTLY.agents):
            await slots.acquire(COSTLY, f"t{n}")
        await slots.acquire(COSTLY, "ana", owner=True)
        return slots.in_use(COSTLY)

    assert anyio.run(run) == COSTLY.agents + 1


def test_ambiguously_framed_body_is_refused_and_its_connection_closed(stage):
    headers = {**stage.owner, **JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}
    answer = stage.client.post("/memory/items", content=b"{}", headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


class Wire(asyncio.Transport):
    """The client's end of a connection, in memory."""

    def __init__(self):
        super().__init__({"sockname": ("127.0.0.1", 80), "peername": ("127.0.0.1", 5000)})
        self.answer, self.closed = b"", False

    def write(self, data):
        self.answer += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    world = HttpTestServer(tmp_path_factory.mktemp("served"))
    yield prepare(build(world.memory, ServerOptions(port=80, mcp=False)))
    world.memory.close()


def statuses(server, *pieces):
    """Send bytes, a piece at a time, and return the statuses of the answers, and whether the server closed."""

    async def run():
        wire, config, state = Wire(), server.config, UvicornState()
        protocol = config.http_protocol_class(config=config, server_state=state, app_state={})
        protocol.connection_made(wire)
        async with config.app.router.lifespan_context(config.app):
            for piece in pieces:
                if not wire.closed:
                    protocol.data_received(piece)
                while state.tasks:
                    await asyncio.gather(*state.tasks)
                    await asyncio.sleep(0)
        return wire

    wire = asyncio.run(run())
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", wire.answer)], wire.closed


#: Requests that h11 takes; @ is the name of the server.
LOOSE = {
    "bare LF after the request line": b"GET /health HTTP/1.1\nHost: @\r\n\r\n",
    "bare LF after a header": b"GET /health HTTP/1.1\r\nHost: @\nAccept: */*\r\n\r\n",
    "bare LF after the last header": b"GET /health HTTP/1.1\r\nHost: @\n\r\n",
    "bare LF for the blank line": b"GET /health HTTP/1.1\r\nHost: @\r\n\n",
    "bare LF alone": b"GET /health HTTP/1.1\nHost: @\n\n",
    "bare LF first": b"\nGET /health HTTP/1.1\r\nHost: @\r\n\r\n",
    "bare CR": b"GET /health HTTP/1.1\r\nHost: @\rAccept: */*\r\n\r\n",
    "folded by a blank": b"GET /health HTTP/1.1\r\nHost: @\r\nAccept: text/html,\r\n */*\r\n\r\n",
    "folded by a tab": b"GET /health HTTP/1.1\r\nHost: @\r\nAccept: text/html,\r\n\t*/*\r\n\r\n",
    "folded first header": b"GET /health HTTP/1.1\r\n Host: @\r\n\r\n",
    "folded host": b"GET /health HTTP/1.1\r\nHost:\r\n @\r\n\r\n",
    "folded coding": b"POST /session HTTP/1.1\r\nHost: @\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "folded length": b"POST /session HTTP/1.1\r\nHost: @\r\nContent-Length:\r\n\t2\r\n\r\n{}",
    "folded away": b"GET /health HTTP/1.1\r\nHost: @\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /session HTTP/1.0\r\nHost: @\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}
CHUNKED = b"POST /session HTTP/1.1\r\nHost: @\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
TRAILERS = {"bare LF": b"X: y\n\r\n", "folded": b"X: y\r\n z\r\n\r\n", "bare LF for the blank line": b"X: y\r\n\n"}
GOOD = b"GET /health HTTP/1.1\r\nHost: @\r\n\r\n"


def pieces_of(request, how):
    request = request.replace(b"@", b"127.0.0.1:80")
    return [request] if how == "at once" else [request[n : n + 1] for n in range(len(request))]


HOW = pytest.mark.parametrize("how", ["at once", "byte by byte"])


@HOW
@pytest.mark.parametrize("request_bytes", LOOSE.values(), ids=LOOSE)
def test_loosely_framed_request_is_refused_and_its_connection_closed(server, request_bytes, how):
    assert statuses(server, *pieces_of(request_bytes + GOOD, how)) == ([400], True)


@HOW
def test_loosely_framed_second_request_is_refused(server, how):
    assert statuses(server, *pieces_of(GOOD + LOOSE["folded coding"] + GOOD, how)) == ([200, 400], True)


@HOW
@pytest.mark.parametrize("trailer", TRAILERS.values(), ids=TRAILERS)
def test_loosely_framed_trailer_is_refused(server, trailer, how):
    # A request may be answered before its trailer comes.
    found = [400] if how == "at once" else [415]
    assert statuses(server, *pieces_of(CHUNKED + trailer + GOOD, how)) == (found, True)


@HOW
def test_well_framed_requests_are_answered(server, how):
    pieces = pieces_of(CHUNKED + b"X: y\r\n\r\n" + GOOD + GOOD, how)
    assert statuses(server, *pieces) == ([415, 200, 200], False)


@pytest.mark.parametrize(("who", "status"), [("agent", 503), ("owner", 200)])
def test_agent_read_has_a_deadline(tmp_path, monkeypatch, who, status):
    world = HttpTestServer(tmp_path)
    for text in ("The kettle is blue", "The launch bird is the heron"):
        world.memory.remember(text, tier="archival")
    client = {"agent": world.bearer(), "owner": world.owner}[who]

    def slow(*given, **options):
        world.ticks.now += 31
        return real(*given, **options)

    real = contexts.compile_context
    monkeypatch.setitem(contexts._COMPILERS, "context", slow)
    answer = client.post("/memory/bisect", json={"query": "launch bird", "contains": "heron"})
    world.memory.close()
    code, wait = ("took_too_long", "60") if status == 503 else (None, None)
    assert (answer.status_code, answer.json().get("code"), answer.headers.get("retry-after")) == (status, code, wait)


def test_a_server_without_a_free_worker_is_not_ready(stage, monkeypatch):
    monkeypatch.setattr("keepward.http.server.READY_TIMEOUT_S", 0.05)
    free, reading = threading.Event(), AppState.newest_seq
    monkeypatch.setattr(AppState, "newest_seq", lambda *given: free.wait(5) and reading(*given))
    answer = stage.client.get("/ready")
    free.set()
    assert (answer.status_code, answer.headers["retry-after"], "worker" in answer.json()["detail"]) == (503, "5", True)
    assert stage.client.get("/health").status_code == 200


def test_stalled_reader_is_dropped_and_its_slot_released(tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.http.middleware.SEND_TIMEOUT_S", 0.01)
    world = HttpTestServer(tmp_path)
    sent, taken = iter([{"type": "http.request", "body": b"", "more_body": False}]), []

    async def receive():
        for message in sent:
            return message
        return await anyio.sleep_forever()

    async def send(message):
        taken.append(message["type"])
        await anyio.sleep_forever()

    async def run():
        headers = {"Authorization": world.owner.headers["Authorization"]}
        with anyio.move_on_after(10) as limit:
            await world.app(_scope("GET", "/memory/events", headers), receive, send)
        return limit.cancelled_caught

    hung = anyio.run(run)
    held = world.serving.slots.in_use(STREAM)
    world.memory.close()
    assert (hung, held, taken) == (False, 0, ["http.response.start"])


@pytest.mark.slow
def test_over_a_socket_a_reader_that_takes_nothing_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.http.middleware.SEND_TIMEOUT_S", 0.2)
    free, release = threading.Event(), Slots._release

    def released(*given):
        release(*given)
        free.set()

    monkeypatch.setattr(Slots, "_release", released)
    world = HttpTestServer(tmp_path)
    blob = world.memory.put_blob(os.urandom(8 << 20))
    bound, options = bind(ServerOptions(port=0))
    app = build(world.memory, replace(options, mcp=False))
    ready = prepare(app)
    thread = threading.Thread(target=ready.answer, args=(bound,))
    thread.start()
    with socket.create_connection(bound.getsockname()[:2]) as reader:
        token = world.owner.headers["Authorization"]
        reader.sendall(
            f"GET /memory/blobs/{blob.ref} HTTP/1.1\r\nHost: 127.0.0.1:{options.port}\r\n"
            f"Authorization: {token}\r\n\r\n".encode()
        )
        dropped, got = free.wait(20), 0
        with suppress(ConnectionError):
            while piece := reader.recv(1 << 20):
                got += len(piece)
    ready.should_exit = True
    thread.join(20)
    held = app.state.serving.slots.in_use(CALL)
    world.memory.close()
    assert (dropped, 0 < got < 8 << 20, held) == (True, True, 0)


def test_entries_of_a_server_that_is_gone_leave_no_database_open():
    state = ServerState(lambda: 0.0)
    database = state._db
    del state
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")
