"""Many servers, one database: no answer depends on which of them is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from http_fixtures import BASE, HttpTestServer, events_of, streamed
from starlette.testclient import TestClient

from keepward import Actor, Memory
from keepward.http import ServerOptions
from keepward.http.app_state import RateLimiter
from keepward.http.auth import CSRF_HEADER
from keepward.http.login_sessions import LoginSessions
from keepward.http.server import build
from keepward.storage.server_state import EntryKind
from support.database import as_superuser

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg")
HERE = Path(__file__).parent
NOTE = EntryKind(name="note", of=str, ttl_s=60, max_entries=2)


@pytest.fixture
def world(tmp_path, database, monkeypatch):
    monkeypatch.setattr(HttpTestServer, "DATABASE", database)
    world = HttpTestServer(tmp_path)
    yield world
    world.memory.close()


@pytest.fixture
def states(world):
    return [each.state for each in world.servings]


def insert(text="The crane is red"):
    return {"op": "insert", "text": text, "tier": "archival"}


def rows(database, query="SELECT * FROM world_0.server_state"):
    with psycopg.connect(as_superuser(database)) as connection:
        return connection.execute(query.encode()).fetchall()


def test_shared_entry_is_found_by_all_servers_until_expiry(world, states):
    states[0].change(NOTE, "a", lambda _: "tea", owner="ana")
    found = [each.get(NOTE, "a", owner="ana") for each in states]
    world.ticks.now += 60
    assert (found, [each.get(NOTE, "a", owner="ana") for each in states]) == (["tea"] * 3, [None] * 3)


def test_concurrent_changes_at_several_servers_are_all_stored(states):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: states[n % 3].change(NOTE, "a", lambda there: (there or "") + "x"), range(30)))
    assert states[0].get(NOTE, "a") == "x" * 30


def test_an_edited_entry_does_not_open(database, states):
    states[0].change(NOTE, "a", lambda _: "tea")
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE world_0.server_state SET body = substr(body, 1, 32) || convert_to('\"rum\"', 'UTF8')"
        )
    assert states[0].get(NOTE, "a") is None


@pytest.mark.promise("D11")
def test_the_database_learns_no_login_code_and_no_idempotency_key(world, database):
    code = world.servings[0].console_link().partition("#code=")[2]
    world.bearer().post("/memory/items", json={"text": "Tea at nine"}, headers={"Idempotency-Key": "lighthouse-1"})
    found = [*rows(database), *rows(database, "SELECT request_key, request_digest FROM world_0.commits")]
    held = b"".join(bytes(cell) if isinstance(cell, bytes) else str(cell).encode() for row in found for cell in row)
    assert (len(found), code.encode() in held, b"lighthouse" in held, b"claude" in held) == (2, False, False, False)
    found = rows(database, "SELECT DISTINCT relpersistence FROM pg_class WHERE relname = 'server_state'")
    assert [str(each) for (each,) in found] in (["u"], ["b'u'"])


def test_repeated_call_to_another_server_gets_the_same_answer(world):
    agent, key = world.bearer(), {"Idempotency-Key": "k-1"}
    given = [agent.post("/memory/items", json={"text": "Ana likes tea"}, headers=key) for _ in range(3)]
    assert [(each.status_code, each.json()) for each in given] == [(201, given[0].json())] * 3
    assert len(world.memory.log()) == 1


def test_a_principal_has_one_allowance_at_all_servers(states):
    waits = [RateLimiter(3, states[n % 3]).take("ana") for n in range(5)]
    assert [wait > 0 for wait in waits] == [False, False, False, True, True]


def test_link_of_one_server_opens_one_session_at_all(world):
    code = world.servings[0].console_link().partition("#code=")[2]
    browser = TestClient(world.app, base_url=BASE)
    opened = [browser.post("/session", json={"code": code}) for _ in range(2)]
    assert [each.status_code for each in opened] == [200, 401]
    csrf = {CSRF_HEADER: opened[0].json()["csrf"]}
    assert [browser.get("/session").status_code for _ in range(3)] == [200] * 3
    written = browser.post("/memory/items", json={"text": "Tea at nine"}, headers=csrf)
    browser.delete("/session", headers=csrf)
    assert (written.status_code, [browser.get("/session").status_code for _ in range(3)]) == (201, [401] * 3)


def test_session_is_valid_with_another_owner_token_elsewhere(tmp_path, world):
    here, there = world.servings[:2]
    credential = world.memory.create_token("console", rights="owner").token.id
    name, _ = LoginSessions(here.state, lambda size: os.urandom(size)).open(credential)
    found = there.sessions.find(name)
    assert there.owner_handle(found.credential).actor.credential == credential
    world.memory.revoke_token(credential)
    with pytest.raises(Exception, match="token"):
        there.owner_handle(found.credential)


def test_a_stream_of_events_sees_a_commit_of_another_server(world):
    def enough(body):
        if body.count(b"event: commit") == 0 and not world.memory.log():
            world.servings[1].memory.remember("The ferry leaves at six", tier="archival")
        return b"event: commit" in body

    owner = {"Authorization": world.owner.headers["authorization"]}
    status, body = streamed(world, "/memory/events", owner, enough)
    assert (status, [each["id"] for each in events_of(body)]) == (200, ["1"])


def test_mcp_call_may_reach_any_server(world):
    begun = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    listed, headers = [], {"Accept": "application/json, text/event-stream", **world.owner.headers}
    for n, (method, params) in enumerate([("initialize", begun), ("tools/list", {})]):
        with TestClient(build(world.servings[n].memory, ServerOptions()), base_url=BASE) as client:
            sent = {"jsonrpc": "2.0", "id": n, "method": method, "params": params}
            answer = client.post("/mcp", json=sent, headers=headers)
            listed.append((answer.status_code, "mcp-session-id" in answer.headers, '"tools":[' in answer.text))
    assert listed == [(200, False, False), (200, False, True)]


def test_without_a_key_a_server_remembers_for_itself(database):
    from keepward.http.app_state import AppState
    from keepward.storage.store import open_store

    with open_store(database) as store:
        assert store.shared(time.monotonic) is None
    assert AppState.__dataclass_fields__["shares"].type == "SharedState | None"


#: The description names the cookie, which is the store's here; uses are counted by each server until its next write.
OTHERWISE = "committed_description or learning_answers"


@pytest.mark.slow
@pytest.mark.parametrize("routes", sorted(HERE.glob("test_http_routes_*.py")), ids=lambda file: file.stem)
def test_three_servers_in_rotation_answer_like_one(database, routes):
    options = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not proof"]
    options += ["-k", f"not ({OTHERWISE})"]
    told = subprocess.run(
        [*options, routes],
        env={**os.environ, "KEEPWARD_TEST_DATABASE": database},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-3000:]


class Crowd:
    """Three servers in processes of their own, and a client that asks them in turn."""

    def __init__(self, database, home):
        self.turn = count()
        script = [sys.executable, str(HERE / "server_of_many.py"), database, str(home)]
        self.processes, self.clients = [], []
        for _ in range(3):
            process = subprocess.Popen([*script, "0"], stdout=subprocess.PIPE, text=True)
            port, file = process.stdout.readline().split(" ", 1)
            self.processes.append(process)
            self.clients.append(f"http://127.0.0.1:{port}")
            self.token = Path(file.strip()).read_text().strip()

    def post(self, path, body, headers=None, *, at=None):
        """Return status and answer of whichever server answers; one that does not is passed over, as a proxy does."""
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        for n in range(12):
            base = self.clients[(next(self.turn) if at is None or n else at) % 3]
            try:
                with urlopen(Request(base + path, json.dumps(body).encode(), sent), timeout=60) as answer:
                    return answer.status, json.loads(answer.read() or b"null")
            except HTTPError as fault:
                with fault:
                    code = json.loads(fault.read()).get("code")
                return fault.code, code
            except (URLError, OSError):
                continue
        raise AssertionError("no server answers")

    def close(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(30)
            process.stdout.close()


@pytest.mark.slow
@pytest.mark.promise("D44")
def test_killed_servers_and_database_lose_no_acknowledged_write_and_repeat_no_job(database, postgres, tmp_path):
    home = tmp_path / "home"
    Memory.open(database, actor=Actor.operator("olga"), embedder="none", config_dir=home, maintenance=False).close()
    crowd = Crowd(database, home)
    acknowledged, runs = {}, []
    killed, crashed = threading.Event(), threading.Event()

    def answered(path, body, headers=None):
        """Return the answer of a server; one that cannot reach its database is asked again, as a client does."""
        until = time.monotonic() + 100
        while True:
            status, answer = crowd.post(path, body, headers)
            if status != 503 or time.monotonic() > until:
                return status, answer

    def write(n):
        if n == 60:
            crowd.processes[1].kill()
            crowd.processes[1].wait(20)
            killed.set()
        if n == 90:
            postgres.restart("immediate")
            crashed.set()
        body = {"text": f"The ferry number {n} leaves quay {n * 7} for the island", "tier": "archival"}
        status, answer = answered("/memory/items", body, {"Idempotency-Key": f"k-{n}"})
        assert status in {200, 201}, answer
        acknowledged[n] = answer["id"]

    def edit(n):
        change = {"op": "insert", "text": f"Draft {n} tells of gate {n * 13} in the harbour", "tier": "archival"}
        body = {"reason": "timetable", "changes": [change]}
        assert answered("/memory/edit", body, {"Idempotency-Key": f"e-{n}"})[0] == 201

    def run(n):
        runs.append(answered("/memory/jobs/expire/run", {"force": False}))

    try:
        with ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(write, n) for n in range(120)]
            futures += [pool.submit(edit, n) for n in range(10)] + [pool.submit(run, n) for n in range(12)]
            for each in futures:
                each.result(120)
    finally:
        crowd.close()
    assert killed.is_set()
    assert crashed.is_set()
    with Memory.open(
        database, actor=Actor.operator("olga"), embedder="none", config_dir=home, maintenance=False
    ) as memory:
        texts = Counter(each.text for each in memory.list_memories(limit=None))
        assert {n: memory.get(name).id for n, name in acknowledged.items()} == acknowledged
        assert (len(acknowledged), max(texts.values())) == (120, 1)
        assert sum(text.startswith("Draft ") for text in texts) == 10
        assert memory.verify().ok
        assert {each.name: each.last_outcome for each in memory.jobs()}["expire"] == "run"
    query = "SELECT convert_from(body, 'UTF8') FROM documents WHERE kind = 'receipts'"
    receipts = [json.loads(body) for (body,) in rows(database, query)]
    assert [each["outcome"] for each in receipts if each["kind"] == "job"].count("run") == 1
