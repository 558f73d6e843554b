"""Handles in the process, on PostgreSQL and over HTTP pass one suite."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx2
import pytest

from keepward import Client, Memory
from keepward.core.principals import Actor
from support.clock import SteppingClock
from support.database import emptied
from support.verb_suite import VerbSuite

URL = "http://127.0.0.1:8321"
_tenants = count(1)


@pytest.fixture(scope="module")
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture(scope="module")
def home(tmp_path_factory, clock: SteppingClock) -> Iterator[Memory]:
    """The store of all these tests; each has a tenant of its own."""
    folder = tmp_path_factory.mktemp("store")
    actor = Actor.operator("keeper")
    with Memory.open(folder / "m.db", actor=actor, embedder=None, clock=clock, config_dir=folder / "config") as memory:
        yield memory


class OnOneStore(VerbSuite):
    @pytest.fixture
    def issue(self, home: Memory) -> Callable[..., str]:
        tenant = f"t{next(_tenants)}"

        def issued(name: str, *, rights: str = "agent", scope: str = "/") -> str:
            return home.create_token(name, rights=rights, tenant=tenant, scope=scope).secret

        return issued


class TestInTheProcess(OnOneStore):
    @pytest.fixture
    def hold(self, home: Memory) -> Callable[[str], Any]:
        return home.with_token


@pytest.fixture(scope="module")
def elsewhere(server_address: str, tmp_path_factory: pytest.TempPathFactory, clock: SteppingClock) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("elsewhere")
    given: dict[str, Any] = {"embedder": None, "clock": clock, "config_dir": folder / "config"}
    with Memory.open(emptied(server_address), actor=Actor.operator("keeper"), **given) as memory:
        yield memory


@pytest.mark.slow
class TestOnPostgres(OnOneStore):
    @pytest.fixture
    def home(self, elsewhere: Memory) -> Memory:
        return elsewhere

    @pytest.fixture
    def hold(self, home: Memory) -> Callable[[str], Any]:
        return home.with_token


@pytest.fixture(scope="module")
def server(home: Memory) -> Iterator[Any]:
    from starlette.testclient import TestClient

    from keepward.http.app_state import ServerOptions
    from keepward.http.server import create_app

    with TestClient(create_app(home, options=ServerOptions(writes_per_minute=0)), base_url=URL) as client:
        yield client


class TestOverHttp(OnOneStore):
    @pytest.fixture
    def hold(self, server: Any) -> Callable[[str], Any]:
        return lambda token: Client(URL, token, transport=server)


# --- a server of its own


@pytest.fixture(scope="module")
def listening(home: Memory) -> Iterator[str]:
    """Yield the address of a server on a port of this machine."""
    import uvicorn

    from keepward.http.app_state import ServerOptions
    from keepward.http.server import create_app

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        app = create_app(home, options=ServerOptions(port=port, writes_per_minute=0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            app.state.serving.stopping.set()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.slow
def test_events_are_heard_as_they_happen(home: Memory, listening: str) -> None:
    token = home.create_token("ana", rights="owner", tenant="heard").secret
    with Client(listening, token) as client:
        client.remember("Ana prefers tabs")
        found = client.events(after=0)
        first = next(found)
        client.remember("lunch is at noon")
        assert [(first.seq, first.event), (next(found).seq, dict(first.facts)["kind"])] == [(1, "commit"), (2, "write")]
        found.close()


@pytest.mark.slow
def test_a_rollback_over_http_succeeds_beside_four_writers(home: Memory, listening: str) -> None:
    token = home.create_token("ana", rights="owner", tenant="busy").secret
    ended, failed = threading.Event(), []

    def write(number: int) -> None:
        with Client(listening, token) as client:
            for turn in count():
                if ended.is_set():
                    return
                try:
                    client.remember(f"Berth {turn} of quay {number} is free on day {turn * 7 + number}")
                except BaseException as exc:
                    failed.append(exc)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    applied = []
    with Client(listening, token) as client, httpx2.Client(headers={"Authorization": f"Bearer {token}"}) as plain:
        for turn in range(100):
            made = client.remember(f"The crane number {turn * 13} is red")
            if turn % 2:
                applied.append(client.rollback(made.commit.id).applied)
                continue
            seen = plain.get(f"{listening}/memory/commits/{made.commit.id}").headers["ETag"]
            # Another writer comes in between.
            client.remember(f"The lamp number {turn * 13} is green")
            done = plain.post(f"{listening}/memory/rollback/{made.commit.id}", headers={"If-Match": seen})
            applied.append(done.json().get("applied"))
        ended.set()
        for writer in writers:
            writer.join()
        assert (applied, failed, client.verify().faults) == ([True] * 100, [], ())


@pytest.mark.slow
def test_what_is_exported_is_imported_elsewhere_complete(home: Memory, listening: str, tmp_path: Any) -> None:
    source = home.create_token("ana", rights="owner", tenant="here").secret
    with Client(listening, source) as client:
        client.remember("Ana prefers tabs", key="indent", kind="rule", evidence=["chat:1"])
        count = client.export(tmp_path / "vault.jsonl")
    with Memory.open(tmp_path / "other.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path) as other:
        from keepward.interchange import plan_restore_export, restore_export

        here = other.at(tenant="here")
        done = restore_export(
            here, tmp_path / "vault.jsonl", plan_restore_export(here, tmp_path / "vault.jsonl").digest
        )
        assert (count, done.versions) == (1, 1)


@pytest.mark.slow
def test_export_is_restored_over_http_by_the_plan_digest(home: Memory, listening: str, tmp_path: Any) -> None:
    with Memory.open(tmp_path / "own.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path) as own:
        from keepward.interchange import write_vault

        own.at(tenant="back").remember("Ana prefers tabs", key="indent", tier="core")
        own.at(tenant="back").remember("The ferry leaves at six", tier="archival")
        write_vault(own.at(tenant="back"), tmp_path / "vault.jsonl")
    token = home.create_token("ana", rights="owner", tenant="back").secret
    with Client(listening, token) as client:
        plan = client.plan_restore_export(tmp_path / "vault.jsonl")
        assert client.restore_export(tmp_path / "vault.jsonl", plan.digest).head == plan.head == client.head


@pytest.mark.slow
def test_an_import_over_http_reports_each_line(home: Memory, listening: str) -> None:
    token = home.create_token("ana", rights="owner", tenant="there").secret
    notes = b"# Notes\n\n- Ana prefers tabs for indentation\n- lunch is at noon on Fridays\n"
    told: list[str] = []
    with Client(listening, token) as client:
        summary = client.import_(notes, format="markdown", on_result=lambda line: told.append(line.outcome))
        assert (summary["committed"], told) == (len(told), ["committed"] * len(told))


#: Twenty messages of a megabyte each without a text, and between them two that say something.
LARGE = b"".join(
    b'{"role": "user", "content": "%s"}\n' % said
    + b'{"role": "user", "content": [{"type": "image", "data": "%s"}]}\n' % (b"A" * 1_000_000) * 10
    for said in (b"lunch is at noon on Fridays", b"the ferry leaves at six")
)


@pytest.mark.slow
def test_an_import_of_twenty_megabytes_goes_over_from_a_stream(home: Memory, listening: str) -> None:
    token = home.create_token("ana", rights="owner", tenant="large").secret
    with Client(listening, token) as client:
        assert client.import_(io.BytesIO(LARGE), format="messages")["committed"] == 2


@pytest.mark.slow
def test_twenty_megabyte_import_is_sent_before_its_answer_is_read(home: Memory, listening: str) -> None:
    token = home.create_token("ana", rights="owner", tenant="larger").secret
    place = listening.removeprefix("http://")
    head = f"POST /memory/import HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    host, _, port = place.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(f"{head}Content-Length: {len(LARGE)}\r\n\r\n".encode() + LARGE)
        answer = b"".join(iter(lambda: line.recv(1 << 16), b""))
    assert (answer.startswith(b"HTTP/1.1 200 "), answer.count(b'"outcome":"committed"')) == (True, 2)


@pytest.mark.slow
def test_one_client_serves_many_threads(home: Memory, listening: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    token = home.create_token("ana", rights="owner", tenant="many").secret
    with Client(listening, token) as client, ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: client.remember(f"fact {n} of many: {n * 37}").outcome, range(12)))
        assert (done, len(client.list_memories())) == (["committed"] * 12, 12)
