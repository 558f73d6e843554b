"""`keepward serve`: what it says, when it refuses, and how it stops."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace

import pytest
from http_stage import BASE, Stage
from msgspec.structs import asdict
from starlette.testclient import TestClient

from keepward import Actor, Memory
from keepward.errors import InvalidInput
from keepward.http import ServerOptions, server
from keepward.settings import ServerSettings, load


@pytest.fixture
def served(monkeypatch):
    """The servers that would have been run, each with its application, instead of running them."""
    found = []

    def answer(self, bound):
        found.append(SimpleNamespace(app=self.config.app, address=bound.getsockname(), options=self._serving.options))

    monkeypatch.setattr(server.Server, "answer", answer)
    return found


@pytest.fixture
def store(run):
    run("init")
    return Path("keepward.db")


def serve(run, *arguments):
    return run("serve", "--port", "0", "--no-mcp", *arguments)


def test_the_link_is_on_one_line_however_narrow_the_terminal(run, store, served, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = serve(run).out.splitlines()
    assert [line.partition("#code=")[2].isascii() and len(line) > 60 for line in lines if "#code=" in line] == [True]


def test_it_says_where_everything_is_and_how_to_stop_it(run, store, served, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    words = [line.split() for line in run("serve", "--port", "0").out.splitlines()]
    shown = {line[0]: " ".join(line[1:]) for line in words if line[0] in {"store", "console", "mcp", "token", "stop"}}
    assert list(shown) == ["store", "console", "mcp", "token", "stop"]
    assert (shown["store"], shown["stop"]) == (
        f"{store.absolute()} (0 active memories, 0 pending proposals)",
        "Ctrl-C",
    )
    assert (shown["mcp"].endswith("/mcp"), Path(shown["token"]).name) == (True, "owner.token")


def test_it_names_the_file_with_the_owners_token(run, store, served):
    told = serve(run, "--json").json
    assert Path(told["token_file"]).read_text().startswith("kw_")


def test_as_json_it_prints_one_object(run, store, served):
    assert list(serve(run, "--json").json) == [
        "path", "url", "console", "mcp", "token_file", "live", "waiting", "open_reads", "notes",
    ]  # fmt: skip


@pytest.fixture
def logged(run, store, monkeypatch):
    """Log one line of each level as the server that runs; return what reached stderr."""

    def log(self, sockets):
        logging.getLogger("keepward.http").info("ready")
        logging.getLogger("keepward.http").warning("slow")

    monkeypatch.setattr("uvicorn.Server.run", log)
    return lambda *arguments: serve(run, *arguments).err


def test_the_log_of_a_server_is_text_or_json_and_can_be_quiet(logged):
    text, quiet, objects = logged(), logged("--quiet"), logged("--log-json")
    assert ["ready" in text, "slow" in text, "ready" in quiet, "slow" in quiet] == [True, True, False, True]
    assert [json.loads(line)["level"] for line in objects.splitlines()[-2:]] == ["info", "warning"]


def test_who_leaves_mcp_out_is_not_told_to_install_it(run, store, served):
    assert "mcp" not in serve(run).err


def test_open_reads_come_with_a_banner(run, store, served):
    assert "READS ARE OPEN" in serve(run, "--open-reads").err


@pytest.mark.promise("C116")
def test_memory_that_is_off_is_said(run, store, served):
    Path("keepward.toml").write_text("[policy]\nenabled = false\n")
    assert "switched off by policy" in serve(run, "--config", "keepward.toml").err


def test_command_line_options_override_the_settings_file(run, store, served):
    Path("keepward.toml").write_text('[server]\nport = 1\nwrites_per_minute = 7\nallow_hosts = ["one.example"]\n')
    serve(run, "--allow-host", "two.example", "--config", "keepward.toml")
    options = served[0].options
    assert (options.port > 1, options.writes_per_minute, options.allow_hosts) == (
        True,
        7,
        ("one.example", "two.example"),
    )


#: Every setting of `[server]` as it may stand in the file, and not as it is by default.
SETTINGS = {
    "host": '"::1"', "port": "8400", "workers": "2", "behind_proxy": "true", "tls_cert": '"c.pem"', "tls_key": '"k.pem"',
    "allow_hosts": '["memory.example"]', "allow_origins": '["https://console.example"]', "writes_per_minute": "1",
    "body_limit": "2", "blob_limit": "3", "import_limit": "4", "body_timeout": "5", "mcp": "false", "mcp_profile": '"readonly"',
    "log_json": "true",
}  # fmt: skip


def test_every_setting_of_the_server_is_covered_here():
    assert SETTINGS.keys() == set(ServerSettings.__struct_fields__)


@pytest.mark.promise("Z46")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_file_reaches_the_server(tmp_path, name):
    (tmp_path / "keepward.toml").write_text(f"[server]\n{name} = {SETTINGS[name]}\n")
    settings = load(store=tmp_path / "m.db", file=tmp_path / "keepward.toml", environ={}).server
    reached = ServerOptions(**asdict(settings))
    assert getattr(reached, name) == getattr(settings, name) != getattr(ServerOptions(), name)


def test_anonymous_reads_and_quiet_log_apply_to_one_run():
    added = set(ServerOptions.__struct_fields__) - set(ServerSettings.__struct_fields__)
    assert {name: getattr(ServerOptions(), name) for name in added} == {"open_reads": False, "quiet": False}


@pytest.mark.parametrize("line", [
    "port = true", 'port = "8321"', "hosts = []", 'allow_hosts = "a"', "tls_cert = 3", "writes_per_minute = -1",
])  # fmt: skip
def test_wrong_server_setting_is_named_and_not_repeated(run, store, served, line):
    Path("keepward.toml").write_text(f"[server]\n{line}\n")
    told = serve(run)
    assert (told.code, f"server.{line.partition(' ')[0]}: " in told.err, served) == (2, True, [])


@pytest.mark.slow
def test_demo_store_is_created_once_with_a_pending_proposal(run, served):
    first, second = serve(run, "--demo", "--json").json, serve(run, "--demo", "--json").json
    assert (first["path"], first["waiting"], first["live"]) == ("demo/keepward.db", 3, second["live"])


@pytest.mark.parametrize(
    ("options", "embedder"), [((), "none"), (("--embedder", "hashed"), "hashed"), (("--db", "shop.db"), "none")]
)
def test_the_demo_is_made_where_no_store_is(run, served, monkeypatch, options, embedder):
    made = []
    monkeypatch.setattr("keepward.cli.demo.seed_demo_store", lambda _, *given: made.append(given))
    ran = [serve(run, "--demo", *options) for _ in range(2)]
    path = "shop.db" if "--db" in options else "demo/keepward.db"
    assert [(str(where), actor.is_owner, name) for where, actor, name in made] == [(path, True, embedder)]
    assert [f"made a new store with the demo at {path}" in each.err for each in ran] == [True, False]


def test_the_demo_never_touches_a_store_that_is_there(run, store, served):
    assert serve(run, "--demo", "--db", "keepward.db", "--json").json["live"] == 0


def test_only_an_owner_makes_the_missing_store(run, served):
    assert (serve(run, "--as", "agent").code, Path("keepward.db").exists()) == (8, False)


def test_used_port_is_one_line_and_code_2(run, store, served):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = run("serve", "--port", str(port), "--no-mcp")
    assert (told.code, told.err) == (
        2,
        f"keepward: port {port} is in use; stop the process that listens on it, or choose another with --port\n",
    )


@pytest.mark.parametrize("arguments", [
    ("--host", "0.0.0.0"), ("--host", "0.0.0.0", "--behind-proxy", "--open-reads"), ("--tls-cert", "c.pem"),
    ("--host", "no such host"), ("--host", "192.0.2.1", "--behind-proxy"),
], ids=" ".join)  # fmt: skip
def test_what_cannot_be_served_is_one_line_and_code_2(run, store, served, arguments):
    told = serve(run, *arguments)
    assert (told.code, told.err.count("\n"), served) == (2, 1, [])


def test_invalid_certificate_is_one_line_and_code_2(run, store, served):
    Path("c.pem").write_text("hello")
    told = serve(run, "--tls-cert", "c.pem", "--tls-key", "c.pem")
    assert (told.code, told.err.count("\n"), "certificate" in told.err) == (2, 1, True)


def test_only_the_owner_serves(run, store, served):
    assert serve(run, "--as", "agent:claude").code == 7


def test_without_the_extra_it_says_what_to_install(run, store, monkeypatch):
    for name in [each for each in sys.modules if each.startswith("keepward.http")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("keepward.http.server")
    monkeypatch.delattr("keepward.http", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    told = serve(run)
    assert (told.code, "keepward[server]" in told.err) == (2, True)


def test_without_mcp_there_is_no_path_for_it(tmp_path):
    with Memory.open(tmp_path / "m.db", actor=Actor.operator("ana"), embedder="none", config_dir=tmp_path) as memory:
        app = server.build(memory, ServerOptions(mcp=False))
    assert "/mcp" not in {getattr(each, "path", "") for each in app.routes}


@pytest.mark.slow
def test_mcp_shares_the_middleware_tokens_and_limits(tmp_path):
    called = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}  # fmt: skip
    accept = {"Accept": "application/json, text/event-stream"}
    opened = Memory.open(tmp_path / "m.db", actor=Actor.operator("ana"), embedder="none", config_dir=tmp_path)
    with opened as memory, TestClient(server.build(memory, ServerOptions()), base_url=BASE) as client:
        token = {"Authorization": f"Bearer {memory.create_token('claude').secret}", **accept}
        sent = [
            client.post("/mcp", json=called, headers=accept, follow_redirects=False),
            client.post("/mcp", json=called, headers={**token, "Origin": "http://evil.example"}),
            client.post("/mcp", json=called, headers={**token, "Host": "evil.example"}),
            client.post("/mcp", content=b" " * 2_000_000, headers=token),
            client.post("/mcp", json=called, headers=token, follow_redirects=False),
        ]
    assert [each.status_code for each in sent] == [401, 403, 421, 413, 200]
    assert ["message" in each.json()["error"] for each in sent[:4]] == [True] * 4


def test_where_mcp_is_not_installed_the_server_says_so(run, store, served, monkeypatch):
    monkeypatch.setattr("keepward.mcp.is_installed", lambda: False)
    told = run("serve", "--port", "0", "--json").json
    assert (told["mcp"], told["notes"]) == (None, ["/mcp is not served: `pip install 'keepward[mcp]'`"])


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.memory.close()


def test_a_port_that_this_user_may_not_take_is_said(monkeypatch):
    def refuse(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(InvalidInput, match="above 1023"):
        server.bind(ServerOptions(port=80))


@pytest.fixture
def start(tmp_path):
    """Start a server in a process of its own; what still runs at the end of the test is ended."""
    started = []

    def begin(*arguments):
        if "--demo" not in arguments:
            Memory.open(tmp_path / "keepward.db", embedder=None, config_dir=tmp_path / "home").close()
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


class Running:
    """A server in a process of its own."""

    def __init__(self, folder, *arguments):
        environ = {**os.environ, "KEEPWARD_HOME": str(folder / "home"), "KEEPWARD_EMBEDDER": "none"}
        command = [sys.executable, "-m", "keepward", "serve", "--port", "0", "--json", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.told = json.loads(self.process.stdout.readline())
        self.host, _, port = self.told["url"].rpartition("/")[2].partition(":")
        self.port = int(port)

    def get(self, path):
        # The port listens before it is told, so the first call waits for the server and is not refused.
        with closing(HTTPConnection(self.host, self.port, timeout=20)) as connection:
            connection.request("GET", path)
            return connection.getresponse().read()

    def closed(self):
        """Wait until no new connection is taken."""
        while True:
            # A connection that is made while the server closes its door is reset; the next one is refused.
            try:
                with suppress(ConnectionResetError):
                    socket.create_connection((self.host, self.port), timeout=20).close()
            except ConnectionRefusedError:
                return

    def stop(self, sent=signal.SIGTERM):
        self.process.send_signal(sent)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_stopped_server_exits_0_and_leaves_a_complete_store(start, tmp_path, sent):
    running = start("--demo")
    running.get("/health")
    code, _, err = running.stop(sent)
    opened = Memory.open(tmp_path / "demo" / "keepward.db", actor=Actor.operator("ana"), config_dir=tmp_path / "home")
    with opened as memory:
        assert (code, "Traceback" in err, memory.verify().ok) == (0, False, True)


@pytest.mark.slow
def test_a_server_stops_although_a_stream_is_open(start):
    running = start("--no-mcp")
    token = Path(running.told["token_file"]).read_text().strip()
    running.get("/health")
    with closing(HTTPConnection(running.host, running.port, timeout=20)) as connection:
        connection.request("GET", "/memory/events?after=0", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read(10)
        began = time.monotonic()
        code, _, err = running.stop()
        answer.close()
    assert (code, time.monotonic() - began < server.SHUTDOWN_TIMEOUT_S, " error " in err) == (0, True, False)


@pytest.mark.slow
def test_oversized_body_is_answered_before_the_connection_closes(start):
    running = start("--no-mcp")
    with closing(HTTPConnection(running.host, running.port, timeout=20)) as connection:
        connection.request("POST", "/memory/items", body=b" " * (8 << 20))
        assert connection.getresponse().status == 413


@pytest.mark.slow
def test_started_request_is_answered_before_the_server_stops(start):
    running = start("--no-mcp")
    token = Path(running.told["token_file"]).read_text().strip()
    running.get("/health")
    body = json.dumps({"text": "The oven is fixed on Friday", "tier": "archival"}).encode()
    head = (
        f"POST /memory/items HTTP/1.1\r\nHost: {running.host}:{running.port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((running.host, running.port), timeout=20) as begun:
        begun.sendall(head.encode())
        # The server asks for the body: the request is in its hands.
        asked = begun.recv(100)
        running.process.send_signal(signal.SIGTERM)
        running.closed()
        begun.sendall(body)
        answer = begun.recv(100)
    running.process.communicate(timeout=20)
    assert [asked[:12], answer[:12], running.process.returncode] == [b"HTTP/1.1 100", b"HTTP/1.1 201", 0]


@pytest.mark.slow
def test_every_json_log_line_is_an_object_without_content(start, tmp_path):
    Memory.open(tmp_path / "keepward.db", actor=Actor.operator("ana"), config_dir=tmp_path / "home").close()
    running = start("--no-mcp", "--log-json")
    running.get("/memory/items/needle?query=needle")
    _, _, err = running.stop()
    assert ([json.loads(line)["route"] for line in err.splitlines()], "needle" in err) == (
        ["/memory/items/{id}"],
        False,
    )


@pytest.mark.slow
def test_with_a_certificate_it_speaks_tls(start, tmp_path):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", "k.pem", "-out", "c.pem"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl is not there to make a certificate")
    running = start("--no-mcp", "--tls-cert", "c.pem", "--tls-key", "k.pem")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "c.pem"))
    with (
        socket.create_connection((running.host, running.port), timeout=10) as plain,
        trusting.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{running.port}\r\nConnection: close\r\n\r\n".encode())
        answer = secured.recv(4096)
    running.stop()
    assert (running.told["url"].startswith("https://"), answer.startswith(b"HTTP/1.1 200")) == (True, True)


@pytest.fixture
def browser(monkeypatch):
    """The links that a browser was asked to open."""
    found = []
    monkeypatch.setattr("webbrowser.open", lambda link: bool(found.append(link) or True))
    return found


@pytest.mark.slow
def test_open_shows_the_console_by_a_fresh_link(start, run, browser):
    running = start("--no-mcp")
    links = [run("open", "--port", str(running.port), "--json").json["console"] for _ in range(2)]
    assert (browser, len({*links, running.told["console"]})) == (links, 3)
    with closing(HTTPConnection(running.host, running.port, timeout=20)) as connection:
        body = json.dumps({"code": links[0].partition("#code=")[2]})
        connection.request("POST", "/session", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200


@pytest.mark.slow
def test_open_names_a_server_of_another_store(start, run, browser):
    running = start("--no-mcp")
    run("init", "--db", "other.db")
    told = run("open", "--port", str(running.port), "--db", "other.db")
    assert (told.code, "serves another store" in told.err, browser) == (8, True, [])


def test_open_without_a_server_names_the_command_that_starts_it(run, store, browser):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        told = run("open", "--port", str(free.getsockname()[1]))
    assert (told.code, "`keepward serve`" in told.err, browser) == (8, True, [])


@pytest.mark.parametrize(
    ("status", "body", "told_words"),
    [
        (200, b'{"url": "https://elsewhere.example/#code=x"}', "is not a Keepward server"),
        (200, b"hello", "is not a Keepward server"),
        (200, b"[]", "is not a Keepward server"),
        (503, b'{"url": "http://127.0.0.1:8321/#code=x"}', "it is busy"),
        (401, b"{}", "serves another store; name its store with --db"),
    ],
)
def test_open_shows_no_link_of_a_foreign_server(run, store, browser, monkeypatch, status, body, told_words):
    answer = SimpleNamespace(status=status, read=lambda: body)
    monkeypatch.setattr(HTTPConnection, "request", lambda *_, **__: None)
    monkeypatch.setattr(HTTPConnection, "getresponse", lambda _: answer)
    told = run("open")
    assert (told.code, told_words in told.err, browser) == (8, True, [])
