"""The command that clients' hooks call: what it prints, what it never does, and the process that answers for it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from keepward import Actor, Memory
from keepward.hooks import socket_client, socket_server

ASKED = {"session_id": "s1", "cwd": "/srv/bakery", "hook_event_name": "UserPromptSubmit"}


@pytest.fixture
def hook(run):
    """Run the command with an event on standard input."""

    def call(what, *more, data=None, **fields):
        text = json.dumps({**ASKED, **fields}) if data is None else data
        return run("hook", what, "--embedder", "hashed", *more, stdin=text.encode())

    return call


@pytest.mark.promise("B85")
def test_what_is_known_is_printed_in_the_clients_format(run, hook):
    run("remember", "The deploy target is db-7")
    told = json.loads(hook("prompt", prompt="What is the deploy target?").out)
    assert "db-7" in told["hookSpecificOutput"]["additionalContext"]


def log_of_hooks():
    return "".join(each.read_text() for each in Path(os.environ["KEEPWARD_HOME"]).glob("hook.log"))


def test_unrelated_token_in_the_shell_silences_no_hook(run, hook, monkeypatch):
    run("remember", "The deploy target is db-7")
    monkeypatch.setenv("KEEPWARD_TOKEN", "kw_" + "A" * 43)
    assert ("db-7" in hook("prompt", prompt="What is the deploy target?").out, log_of_hooks()) == (True, "")


@pytest.mark.parametrize("holds", [True, False])
def test_store_token_limits_the_hook_to_its_rights(run, hook, monkeypatch, holds):
    run("remember", "The deploy target is db-7")
    made = run("token", "create", "--name", "vera", "--can", "read", "--json").json
    if not holds:
        run("token", "revoke", made["id"])
    head = run("status", "--json").json["head"]
    monkeypatch.setenv("KEEPWARD_TOKEN", made["token"])
    told = hook("prompt", prompt="What is the deploy target?").out
    monkeypatch.delenv("KEEPWARD_TOKEN")
    unchanged = run("status", "--json").json["head"] == head
    assert ("db-7" in told, "Unauthorised" in log_of_hooks(), unchanged) == (holds, not holds, True)


@pytest.mark.parametrize(
    ("args", "data"),
    [
        (("prompt",), "no JSON"),
        (("prompt",), ""),
        (("prompt", "--client", "emacs"), None),
        (("dance",), None),
        (("prompt", "--db", "/proc/none/at/all.db"), None),
    ],
)
def test_trouble_is_a_line_in_the_log_and_nothing_else(hook, args, data, tmp_path):
    done = hook(*args, data=data, prompt="hi")
    assert (done.code, done.out) == (0, "")
    (log,) = Path(os.environ["KEEPWARD_HOME"]).glob("hook.log")
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.slow
def test_slow_hook_is_abandoned_with_a_log_line(saved):
    late = (
        "import sys, time; from keepward.hooks import socket_client; socket_client.EVENT_TIMEOUT_S = 0.01; "
        "import keepward.hooks.event_handler as handler; handler.handle_event = lambda *_: time.sleep(60); "
        "from keepward.cli.main import main; sys.exit(main(['hook', 'prompt']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", late], input=json.dumps(ASKED), capture_output=True, text=True, check=False
    )
    (log,) = Path(os.environ["KEEPWARD_HOME"]).glob("hook.log")
    assert (done.returncode, done.stdout, "given up" in log.read_text()) == (0, "", True)


def test_it_can_be_switched_off(run, hook, monkeypatch):
    run("remember", "The deploy target is db-7")
    monkeypatch.setenv("KEEPWARD_HOOKS", "off")
    assert hook("prompt", prompt="What is the deploy target?").out == ""


def test_nothing_is_printed_where_nothing_is_known(hook):
    assert hook("start").out == ""


@pytest.fixture
def runtime():
    """A folder for sockets, whose paths have to be short."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def served(run, monkeypatch, saved, runtime):
    """Run `keepward mcp` beside a store that holds a memory; gives the command line of a hook that means it."""
    with monkeypatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        options = ["--db", str(Path("keepward.db").absolute()), "--embedder", "hashed"]
        command = [
            sys.executable,
            "-m",
            "keepward",
            "mcp",
            "--name",
            "claude",
            "--user",
            "me",
            "--project",
            ".",
            *options,
        ]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as server:
            assert server.stdin
            assert server.stdout
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            server.stdin.write(json.dumps(line).encode() + b"\n")
            server.stdin.flush()
            assert server.stdout.readline()
            yield ["prompt", *options]
            server.stdin.close()
            server.wait(20)


@pytest.mark.slow
def test_a_running_server_of_the_same_agent_answers(run, served, monkeypatch):
    monkeypatch.setattr(
        "keepward.hooks.event_handler.handle_event", None
    )  # this process would fail if it answered by itself
    told = run("hook", *served, stdin=json.dumps({**ASKED, "prompt": "tabs"}).encode())
    assert "tabs" in json.loads(told.out)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("server", "hook"),
    [
        ((), ("--scope", "/")),
        (("--user", "me", "--project", "."), ()),
        (("--scope", "/harbour", "--user", "ana"), ("--scope", "/harbour", "--user", "ana")),
        (("--tenant", "ada"), ("--tenant", "ada", "--scope", "/")),
        ("ada", ("--tenant", "ada", "--scope", "/")),
    ],
    ids=str,
)
def test_the_server_of_the_same_options_answers(run, runtime, monkeypatch, server, hook):
    answered = []

    def serve_stdio(*_, **__):
        text = json.dumps({**ASKED, "prompt": "What is the deploy target?"})
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        answered.append(socket_client.ask_server(["prompt", "--db", store, *hook], os.environ))

    monkeypatch.setattr("keepward.mcp.server.serve_stdio", serve_stdio)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "hashed")
    store = str(Path("keepward.db").absolute())
    if server == "ada":
        monkeypatch.setenv("KEEPWARD_TENANT", "ada")
        server = ()
    run("mcp", "--name", "claude", "--db", store, *server)
    assert answered == [True]


@pytest.mark.slow
def test_running_server_answers_before_the_package_is_loaded(served):
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "keepward", "hook", *served],
        input=json.dumps({**ASKED, "prompt": "tabs"}),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    ours = {name for name in loaded if name.startswith("keepward")}
    assert "tabs" in json.loads(told.stdout)["hookSpecificOutput"]["additionalContext"]
    # `python -m` reads the file of `__main__` by itself.
    assert ours <= {"keepward", "keepward.folders", "keepward.hooks", "keepward.hooks.socket_client"}
    assert not loaded & {"typing", "json", "pathlib", "click", "numpy"}


def asked(path, message):
    end = socket_client.connect(str(path), 5)
    return end and socket_client.request(end, message)


def test_a_socket_without_an_answer_counts_as_none(runtime):
    path = runtime / "gone.sock"
    with socket_server.listen(path, lambda what, client, folder, data: f"{what}, {client}, {folder}: {data}") as heard:
        assert heard
        assert asked(path, b"prompt claude /srv/my shop\nhello") == b"prompt, claude, /srv/my shop: hello"
    assert asked(path, b"prompt claude\nhello") is None


def test_a_second_process_leaves_the_socket_to_the_first(runtime):
    path = runtime / "one.sock"
    with socket_server.listen(path, lambda *_: "first"), socket_server.listen(path, lambda *_: "second") as heard:
        assert (heard, asked(path, b"x")) == (False, b"first")


def test_an_answer_that_fails_leaves_the_socket_open(runtime):
    def reply(what, client, folder, data):
        if data == "bad":
            raise ValueError
        return data

    path = runtime / "one.sock"
    with socket_server.listen(path, reply):
        assert [asked(path, b"prompt claude\n" + each) for each in (b"bad", b"good")] == [None, b"good"]


@pytest.fixture
def heard(runtime, monkeypatch):
    """Send an event through the socket that its command line means, or none; gives what was printed, or None."""

    def call(*arguments, data=b"{}", reply=lambda *_: "known", environ=None):
        out, inside = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO(data))
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stdin", inside)
        environ = {"XDG_RUNTIME_DIR": str(runtime), **(environ or {})}
        where = socket_client.socket_path(
            environ, store="/srv/m.db", tenant="default", agent="claude", names=("", "me", ".")
        )
        with socket_server.listen(Path(where), reply):
            done = socket_client.ask_server(arguments, environ)
        return out.buffer.getvalue().decode() if done else None

    return call


def test_what_the_server_answers_is_printed(heard):
    assert heard("prompt", "--db", "/srv/m.db") == "known"


def test_the_store_may_be_named_by_the_environment(heard):
    assert heard("prompt", environ={"KEEPWARD_DB": "/srv/m.db"}) == "known"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("prompt",),
        ("dance", "--db", "/srv/m.db"),
        ("prompt", "--db", "m.db"),
        ("prompt", "--db", "/srv/m.db", "--db", "/srv/m.db"),
        ("prompt", "--db", "/srv/m.db", "--name", "ben"),
        ("prompt", "--db", "/srv/m.db", "--no-such-option", "x"),
    ],
)
def test_what_is_not_plain_goes_the_long_way(heard, arguments):
    assert heard(*arguments) is None


def test_event_refused_by_the_server_is_handled_in_process(heard):
    def reply(*_):
        raise ValueError

    assert heard("prompt", "--db", "/srv/m.db", data=b"said", reply=reply) is None
    assert sys.stdin.read() == "said"


def test_slow_server_is_abandoned_and_no_other_is_asked(heard, monkeypatch, tmp_path):
    monkeypatch.setattr(socket_client, "EVENT_TIMEOUT_S", 0.01)
    free = threading.Event()

    def reply(*_):
        free.wait(0.2)
        return "late"

    told = heard("prompt", "--db", "/srv/m.db", reply=reply, environ={"KEEPWARD_HOME": str(tmp_path)})
    free.set()
    assert (told, len((tmp_path / "hook.log").read_text().splitlines())) == ("", 1)


@pytest.mark.parametrize("word", ["OFF"])
def test_switched_off_no_one_is_asked(heard, word):
    assert heard("prompt", "--db", "/srv/m.db", environ={"KEEPWARD_HOOKS": word}) == ""


def test_the_socket_is_its_users_alone(runtime):
    path = runtime / "run" / "one.sock"
    with socket_server.listen(path, lambda *_: ""):
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_socket_in_a_folder_writable_by_others_is_not_used(runtime):
    path = runtime / "here.sock"
    with socket_server.listen(path, lambda *_: "planted"):
        runtime.chmod(0o770)
        assert asked(path, b"prompt claude\n{}") is None


def test_a_socket_of_another_user_is_not_asked(runtime, monkeypatch):
    path, own = runtime / "here.sock", os.getuid()
    with socket_server.listen(path, lambda *_: "planted"):
        monkeypatch.setattr("keepward.hooks.socket_client.os.getuid", lambda: own + 1)
        assert asked(path, b"prompt claude\n{}") is None


def test_log_becomes_private_to_its_user(hook):
    log = Path(os.environ["KEEPWARD_HOME"]) / "hook.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch(mode=0o644)
    hook("nothing", data="{}")
    assert (log.stat().st_mode & 0o777, log.read_text() != "") == (0o600, True)


def test_an_event_over_4_mb_is_logged_and_left_out(hook):
    hook("prompt", prompt="a" * (4 << 20))
    assert "at most 4 MB" in log_of_hooks()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_in_shadow_a_hook_stores_and_adds_nothing(run, hook, monkeypatch, by):
    run("remember", "The deploy target is db-7", "--as", "operator")
    monkeypatch.setenv("KEEPWARD_HOOKS", "shadow" if by == "variable" else "")
    options = ("--shadow",) if by == "option" else ()
    assert hook("start", *options).out == ""
    assert hook("prompt", *options, prompt="What is the deploy target of the shop?").out == ""
    monkeypatch.setenv("KEEPWARD_HOOKS", "")
    report = run("shadow", "--json").json
    assert (report["calls"], report["failed"]) == (2, 0)
    assert [each["text"] for each in report["memories"]] == ["The deploy target is db-7"]
    status = run("status", "--as", "operator", "--json").json
    assert status["by_kind"] == {"event": 1, "fact": 1}
    with Memory.open(status["path"], actor=Actor.operator("olga")) as owner:
        assert owner.receipts(kinds=["compile"]).items == ()
    assert run("shadow", "--clear", "--json").json["calls"] == 0


def test_a_client_is_connected_in_shadow(run):
    planned = run("connect", "claude", "--shadow", "--dry-run")
    assert "hook prompt --client claude" in " ".join(planned.out.split())
    assert "--shadow" in planned.out
