"""`keepward mcp` as clients start it: a process of its own that speaks on stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_made import ERAS

from keepward import Actor, Memory
from keepward.mcp.server import as_agent

KEPT = ("PATH", "PYTHONPATH", "SYSTEMROOT", "LANG")


@pytest.fixture
def environment(tmp_path):
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "KEEPWARD_HOME": str(tmp_path / "home"), "KEEPWARD_EMBEDDER": "none"}


@pytest.fixture
def talk(tmp_path, environment):
    def run(script, *options, era="auto", env=None, **client):
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "keepward", "mcp", "--db", str(tmp_path / "k.db"), *options],
            env={**environment, **(env or {})},
            cwd=tmp_path,
        )

        async def go():
            async with Client(parameters, mode=era, **client) as connected:
                return await script(connected)

        return anyio.run(go)

    return run


def owner_of(tmp_path):
    return Memory.open(tmp_path / "k.db", actor=Actor.operator("ann"), embedder=None, config_dir=tmp_path / "home")


def start(tmp_path, environment, lines=b"", *options, last=None):
    """Send raw lines to a server, wait for the answer of that id, close its input; return code, answers, stderr."""
    with subprocess.Popen(
        [sys.executable, "-m", "keepward", "mcp", "--db", str(tmp_path / "k.db"), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
    ) as process:
        process.stdin.write(lines)
        process.stdin.flush()
        answers = []
        while last is not None and (not answers or json.loads(answers[-1]).get("id") != last):
            answers.append(process.stdout.readline())
        process.stdin.close()
        answers += process.stdout.readlines()
        return process.wait(timeout=60), answers, process.stderr.read()


def message(method, number, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


HELLO = message(
    "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


@pytest.fixture
def served(run, monkeypatch):
    """Run `keepward mcp` without a client; return the actor, scope and tools that one would get."""
    found = []

    def serve_stdio(memory, tools, *, name):
        found.append((as_agent(memory, name).actor.label, memory.scope, tools.name))

    monkeypatch.setattr("keepward.mcp.server.serve_stdio", serve_stdio)

    def call(*options):
        ran = run("mcp", *options)
        return found.pop() if found else ran.code, ran.err

    return call


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ((), ("agent:mcp", "/", "default")),
        (("--name", "claude"), ("agent:claude", "/", "default")),
        (("--as", "agent:vera"), ("agent:vera", "/", "default")),
        (("--agent", "orion"), ("agent:orion", "/agents/orion", "default")),
        (("--agent", "orion", "--name", "claude"), ("agent:claude", "/agents/orion", "default")),
        (("--user", "ana", "--project", "bakery"), ("agent:mcp", "/projects/bakery/users/ana", "default")),
        (("--profile", "readonly"), ("agent:mcp", "/", "readonly")),
        (("--profile", "dance"), 2),
        (("--as", "agent:vera", "--name", "claude"), 2),
        (("--as", "operator"), 7),
        (("--json",), 2),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else None,
)
def test_options_name_the_agent_the_scope_and_the_tools(served, options, meant):
    assert served(*options)[0] == meant


def test_the_actor_of_the_environment_is_served_if_it_is_an_agent(served, monkeypatch):
    served()
    actors = []
    for actor in ("agent:vera", "operator"):
        monkeypatch.setenv("KEEPWARD_ACTOR", actor)
        actors.append(served()[0][0])
    assert actors == ["agent:vera", "agent:mcp"]


def test_a_server_runs_the_jobs_that_are_due(run, served, monkeypatch):
    asked = []
    really = Memory.open
    monkeypatch.setattr(
        Memory, "open", lambda *given, **named: asked.append(named["maintenance"]) or really(*given, **named)
    )
    monkeypatch.setattr("keepward.http.server.Server.answer", lambda *_: None)
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "on")
    served()
    run("serve", "--port", "0")
    secret = run("token", "create", "--name", "vera", "--json").json["token"]
    monkeypatch.setenv("KEEPWARD_TOKEN", secret)
    served()
    assert [each is True for each in asked] == [True, True, False, True]


def test_a_missing_store_is_made_and_said_once(served):
    assert ["made a new store" in served()[1] for _ in range(2)] == [True, False]


def test_a_token_names_the_agent_and_a_name_is_not_used(run, served, monkeypatch):
    run("init")
    secret = run("token", "create", "--name", "vera", "--scope", "/harbour", "--json").json["token"]
    monkeypatch.setenv("KEEPWARD_TOKEN", secret)
    assert [served(*options) for options in ((), ("--name", "claude"))] == [
        (("agent:vera", "/harbour", "default"), ""),
        (("agent:vera", "/harbour", "default"), "KEEPWARD_TOKEN names the actor; --name is not used\n"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
def test_an_agent_remembers_and_recalls_through_the_process(talk, era):
    async def script(client):
        await client.call_tool("remember", {"text": "Ana prefers tabs", "tier": "archival"})
        return await client.call_tool("recall", {"query": "tabs"})

    result = talk(script, "--name", "claude", era=era)
    assert [hit["text"] for hit in result.structured_content["hits"]] == ["Ana prefers tabs"]


@pytest.mark.slow
def test_with_a_token_the_process_is_its_holder(talk, tmp_path):
    with owner_of(tmp_path) as owner:
        secret = owner.create_token("orion", scope="/agents/orion").secret
    result = talk(lambda client: client.call_tool("status", {}), env={"KEEPWARD_TOKEN": secret})
    assert (result.structured_content["actor"], result.structured_content["scope"]) == ("agent:orion", "/agents/orion")


@pytest.mark.slow
def test_the_process_serves_the_user_that_its_options_name(talk, tmp_path):
    with owner_of(tmp_path) as owner:
        owner.user("bob").remember("I take the bus")
        owner.user("ana").remember("I take the ferry")

    async def script(client):
        await client.call_tool("remember", {"text": "I live in Porto", "tier": "archival"})
        return await client.call_tool("recall", {"query": "I take"})

    result = talk(script, "--user", "ana", "--agent", "planner")
    assert {hit["text"] for hit in result.structured_content["hits"]} == {"I take the ferry"}
    with owner_of(tmp_path) as owner:
        assert {each.text for each in owner.user("ana").list_memories()} == {"I take the ferry", "I live in Porto"}


@pytest.mark.slow
@pytest.mark.promise("F10")
def test_process_with_an_owner_token_is_still_an_agent(talk, tmp_path):
    with owner_of(tmp_path) as owner:
        secret = owner.create_token("ann", rights="owner").secret
    result = talk(
        lambda client: client.call_tool("remember", {"text": "Ship it", "tier": "core", "key": "mission"}),
        env={"KEEPWARD_TOKEN": secret},
    )
    assert result.structured_content["outcome"] == "quarantined"


@pytest.mark.slow
def test_stdout_carries_the_protocol_alone(tmp_path, environment):
    _, answers, _ = start(tmp_path, environment, HELLO + message("tools/list", 2), last=2)
    assert [json.loads(line)["id"] for line in answers] == [1, 2]


@pytest.mark.slow
def test_the_process_ends_with_its_input(tmp_path, environment):
    code, _, said = start(tmp_path, environment, HELLO, last=1)
    assert (code, b"made a new store" in said, b"Traceback" in said) == (0, True, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [b"not json\n", b"\xff\xfe\n", b'{"jsonrpc":"2.0","id":9,"method":"nothing"}\n', b"\n"]
)
def test_a_line_that_means_nothing_does_not_end_the_process(tmp_path, environment, line):
    code, answers, _ = start(tmp_path, environment, HELLO + line + message("tools/list", 2), last=2)
    assert (code, "result" in json.loads(answers[-1])) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [40, 500, 3_000, 100_000])
def test_a_deeply_nested_call_does_not_end_the_process(tmp_path, environment, depth):
    call = message("tools/call", 2, name="remember", arguments={"text": "The pier is open", "tags": "X"})
    call = call.replace(b'"X"', b"[" * depth + b"]" * depth)
    code, answers, _ = start(tmp_path, environment, HELLO + call + message("tools/list", 3), last=3)
    found = {each["id"]: "result" in each for each in map(json.loads, answers)}
    assert (code, found[1], found[3]) == (0, True, True)


@pytest.mark.slow
def test_a_call_that_holds_half_a_character_is_answered(tmp_path, environment):
    call = message("tools/call", 2, name="remember", arguments={"text": "cut in two: \ud83d"})
    _, answers, _ = start(tmp_path, environment, HELLO + call + message("ping", 3), last=3)
    assert {each["id"]: "error" in each for each in map(json.loads, answers)} == {1: False, 2: True, 3: False}


@pytest.mark.slow
def test_missing_sdk_is_one_line_with_the_install_command(tmp_path, environment):
    (tmp_path / "without.py").write_text(
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from keepward.cli.main import main\n"
        "sys.exit(main(['mcp', '--db', 'k.db']))\n"
    )
    done = subprocess.run(
        [sys.executable, "without.py"], capture_output=True, env=environment, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.decode().strip()) == (
        2,
        'keepward: this needs the extra `mcp`: pip install "keepward[mcp]"',
    )


@pytest.mark.slow
def test_every_call_before_the_end_of_input_is_answered(tmp_path, environment):
    calls = b"".join(
        message("tools/call", n, name="remember", arguments={"text": f"Fact {n} of {n * n}", "tier": "archival"})
        for n in range(2, 42)
    )
    code, answers, _ = start(tmp_path, environment, HELLO + calls)
    assert (code, sorted(json.loads(line)["id"] for line in answers)) == (0, list(range(1, 42)))


def test_the_named_agent_is_the_actor(talk, tmp_path):
    async def remembers(client):
        await client.call_tool("remember", {"text": "The sluice opens at six"})

    talk(remembers, "--user", "ana", "--agent", "planner")
    with owner_of(tmp_path) as owner:
        (record,) = owner.user("ana").list_memories()
        assert (record.author, record.scope) == ("agent:planner", "/users/ana")
