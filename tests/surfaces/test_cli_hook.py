"""The command that clients' hooks call: what it prints, what it never does, and the process that answers for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from keepward.hooks import local

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


@pytest.mark.parametrize(
    ("args", "data"),
    [
        (("prompt",), "no JSON"),
        (("prompt",), ""),
        (("prompt", "--client", "emacs"), None),
        (("dance",), None),
        (("prompt", "--db", "/proc/none/at/all.db"), None),
        (("prompt", "--scope", "no such scope!"), None),
    ],
)
def test_trouble_is_a_line_in_the_log_and_nothing_else(hook, args, data, tmp_path):
    done = hook(*args, data=data, prompt="hi")
    assert (done.code, done.out) == (0, "")
    (log,) = Path(os.environ["KEEPWARD_HOME"]).glob("hook.log")
    assert len(log.read_text().splitlines()) == 1


def test_it_can_be_switched_off(run, hook, monkeypatch):
    run("remember", "The deploy target is db-7")
    monkeypatch.setenv("KEEPWARD_HOOKS", "off")
    assert hook("prompt", prompt="What is the deploy target?").out == ""


def test_nothing_is_printed_where_nothing_is_known(hook):
    assert hook("start").out == ""


@pytest.mark.slow
def test_a_running_server_of_the_same_agent_answers(run, hook, monkeypatch, saved):
    # The path of a socket has to be short.
    folder = tempfile.mkdtemp()
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    command = [sys.executable, "-m", "keepward", "mcp", "--name", "claude", "--embedder", "hashed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin
        assert server.stdout
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        server.stdin.write(json.dumps(line).encode() + b"\n")
        server.stdin.flush()
        assert server.stdout.readline()
        monkeypatch.setattr("keepward.hooks.act.act", None)  # this process would fail if it answered by itself
        told = hook("prompt", prompt="tabs")
        server.stdin.close()
        server.wait(20)
    shutil.rmtree(folder)
    assert "tabs" in json.loads(told.out)["hookSpecificOutput"]["additionalContext"]


def test_a_socket_that_nobody_answers_is_as_good_as_none(tmp_path):
    path = tmp_path / "gone.sock"
    with local.listening(path, lambda line: line.upper()) as heard:
        assert heard
        assert local.ask(path, "hello") == "HELLO"
    assert local.ask(path, "hello") is None


def test_a_second_process_leaves_the_socket_to_the_first(tmp_path):
    path = tmp_path / "one.sock"
    with local.listening(path, lambda _: "first"), local.listening(path, lambda _: "second") as heard:
        assert (heard, local.ask(path, "x")) == (False, "first")


def test_an_answer_that_fails_leaves_the_socket_open(tmp_path):
    def reply(line):
        if line == "bad":
            raise ValueError
        return line

    path = tmp_path / "one.sock"
    with local.listening(path, reply):
        assert [local.ask(path, each) for each in ("bad", "good")] == [None, "good"]


def test_the_socket_is_its_users_alone(tmp_path):
    path = tmp_path / "run" / "one.sock"
    with local.listening(path, lambda line: line):
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
