"""`keepward connect`: an entry in each client's settings, and the rest of the file as it was."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib

import anyio
import pytest
from mcp import Client, StdioServerParameters

from keepward import Actor, Memory, StoreUnavailable, Unauthorised
from keepward.mcp.connect import CLIENTS

#: The file for the whole user, and the keys under which our entry stands.
PLACES = {
    "claude": (".claude.json", ("mcpServers", "keepward")),
    "codex": (".codex/config.toml", ("mcp_servers", "keepward")),
    "gemini": (".gemini/settings.json", ("mcpServers", "keepward")),
    "opencode": (".config/opencode/opencode.json", ("mcp", "keepward")),
    "cursor": (".cursor/mcp.json", ("mcpServers", "keepward")),
    "vscode": (".config/Code/User/mcp.json", ("servers", "keepward")),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", ("mcpServers", "keepward")),
    "windsurf": (".codeium/windsurf/mcp_config.json", ("mcpServers", "keepward")),
    "zed": (".config/zed/settings.json", ("context_servers", "keepward")),
    "cline": (
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ("mcpServers", "keepward"),
    ),
}
#: One client of each way to write an entry; what is said of tokens and stores is the same for the others.
FORMS = ("claude", "codex", "opencode")
#: Settings that people have, with what a careless editor would lose.
THEIRS = {
    "claude": '{\n\t"numStartups": 3,\n\t"mcpServers": {\n\t\t"other": {"command": "x"}\n\t},\n\t"z": [1, 2]\n}',
    "codex": '# mine\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x" # keep\n\n# about the next\n[tui]\ntheme = "a"\n',
    "gemini": '{\r\n    "theme": "dark",\r\n    "a": [1,2]\r\n}\r\n',
    "opencode": '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "other": {}\n  }\n}\n',
    "cursor": '{"mcpServers":{"other":{"command":"x"}}}',
    "vscode": '{\n  "servers": {\n    "other": { "command": "x" }\n  },\n  "inputs": []\n}\n',
    "claude-desktop": '{\n  "mcpServers": {},\n  "globalShortcut": ""\n}',
    "windsurf": '{\n  "mcpServers": {\n    "other": {"serverUrl": "http://x"}\n  }\n}\n',
    "zed": '{\n  "theme": "One Dark",\n  "context_servers": {}\n}\n',
    "cline": '{"mcpServers": {"other": {"command": "x", "disabled": false}}}',
}
#: Clients with settings of a project.
WITH_PROJECT = [each.name for each in CLIENTS.values() if each.project]


@pytest.fixture
def home(run, tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "KEEPWARD_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    # The machine may have one of the clients.
    monkeypatch.setattr("keepward.mcp.connect.vendor_program", lambda *_: None)
    return tmp_path


def read(path):
    text = path.read_bytes().decode()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def entry(home, client):
    file, keys = PLACES[client]
    value = read(home / file)
    for key in keys:
        value = value[key]
    return value


def words(found):
    command = found["command"]
    return command if isinstance(command, list) else [command, *found["args"]]


def secret_of(home, client):
    found = entry(home, client)
    return (found.get("env") or found.get("environment") or {}).get("KEEPWARD_TOKEN")


def bearer(home, secret, db="keepward.db"):
    """What a secret opens the store as: who, where, and what for."""
    with Memory.open(home / db, actor=Actor.operator("ann"), embedder=None, config_dir=home / "home") as owner:
        held = owner.with_token(secret)
        return held.actor.label, held.tenant, held.scope, sorted(held.actor.can)


def states(run):
    return [each["state"] for each in run("token", "list", "--json").json["tokens"]]


def lay(home, client, text):
    path = home / PLACES[client][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.promise("Z47")
def test_a_client_without_settings_gets_a_file_with_our_entry(run, home, client):
    run("connect", client)
    told = words(entry(home, client))
    assert told[told.index("mcp") :] == ["mcp", "--db", str(home / "keepward.db"), "--user", "me", "--project", "."]


@pytest.mark.parametrize("client", FORMS)
def test_entry_contains_a_proposing_token_under_the_client_name(run, home, client):
    lay(home, client, THEIRS[client])
    run("connect", client)
    assert bearer(home, secret_of(home, client)) == (f"agent:{client}", "default", "/", ["propose", "read"])


@pytest.mark.parametrize("client", ["claude"])
def test_new_token_replaces_and_revokes_the_earlier_one(run, home, client):
    run("connect", client)
    first = secret_of(home, client)
    run("connect", client, "--scope", "orion")
    with pytest.raises(Unauthorised):
        bearer(home, first)
    assert bearer(home, secret_of(home, client))[2] == "/agents/orion"


@pytest.mark.parametrize("client", ["claude"])
def test_client_can_be_connected_without_a_token_again(run, home, client):
    run("connect", client)
    run("connect", client, "--no-token", "--scope", "orion")
    told = words(entry(home, client))
    assert (secret_of(home, client), told[-4:], states(run)) == (
        "",
        ["--scope", "orion", "--name", client],
        ["revoked"],
    )


@pytest.mark.parametrize("client", ["claude"])
def test_a_token_is_printed_by_no_call(run, home, client):
    told = [run("connect", client, *more) for more in ((), ("--scope", "orion"), ("--json",), ("--remove",))]
    kept = (home / PLACES[client][0]).with_name((home / PLACES[client][0]).name + ".before-keepward").read_text()
    secret = kept[kept.index("kw_") :][:46]
    assert [secret in each.out + each.err or "kw_***" not in told[0].out for each in told] == [False] * 4


@pytest.mark.slow
@pytest.mark.parametrize("client", ["claude", "codex", "opencode"])
def test_client_started_from_its_entry_acts_by_its_token(run, home, client):
    run("connect", client, "--name", "orion")
    program, *arguments = words(entry(home, client))
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    env = {**kept, "HOME": str(home), "KEEPWARD_EMBEDDER": "none", "KEEPWARD_MAINTENANCE": "off"}
    given = entry(home, client).get("env") or entry(home, client)["environment"]

    async def go():
        async with Client(StdioServerParameters(command=program, args=arguments, env=env | given, cwd=home)) as mcp:
            return await mcp.call_tool("remember", {"text": "Ana prefers tabs"})

    written = anyio.run(go).structured_content
    receipt = run("receipt", written["receipt"], "--json").json
    token = run("token", "list", "--json").json["tokens"][0]["id"]
    assert (receipt["actor"], receipt["credential"]) == ("agent:orion", token)


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_program_path_works_from_any_folder(run, home, client):
    run("connect", client)
    assert words(entry(home, client))[0].startswith("/")


@pytest.mark.parametrize("client", CLIENTS)
def test_connecting_and_removing_leaves_every_byte_of_what_was_there(run, home, client):
    path = lay(home, client, THEIRS[client])
    run("connect", client)
    connected = path.read_bytes()
    run("connect", client, "--remove")
    assert (connected != path.read_bytes(), path.read_bytes().decode()) == (True, THEIRS[client])


@pytest.mark.parametrize("client", FORMS)
def test_new_choice_updates_our_entry_and_preserves_additions(run, home, client):
    path = lay(home, client, THEIRS[client])
    run("connect", client)
    text = path.read_bytes().decode()
    marked = (
        text.replace("[mcp_servers.keepward]\n", "[mcp_servers.keepward]\ntimeout = 9\n")
        if client == "codex"
        else text.replace('"keepward": {', '"keepward": { "timeout": 9,')
    )
    path.write_bytes(marked.encode())
    run("connect", client, "--profile", "readonly")
    found = entry(home, client)
    assert (found["timeout"], "readonly" in words(found)) == (9, True)


@pytest.mark.parametrize("client", FORMS)
def test_a_dry_run_shows_the_change_and_writes_nothing(run, home, client):
    path = lay(home, client, THEIRS[client])
    done = run("connect", client, "--dry-run")
    assert ("kw_***" in done.out, path.read_bytes().decode(), list(path.parent.glob("*before*"))) == (
        True,
        THEIRS[client],
        [],
    )
    assert not (home / "keepward.db").exists()


def test_a_dry_run_shows_nothing_of_other_servers(run, home):
    lay(home, "cursor", json.dumps({"mcpServers": {"other": {"env": {"API_KEY": "hunter2"}}}}, indent=2))
    assert "hunter2" not in run("connect", "cursor", "--dry-run").out


def test_file_mode_is_preserved_without_a_token(run, home):
    path = lay(home, "claude", THEIRS["claude"])
    path.chmod(0o640)
    run("connect", "claude", "--no-token")
    assert [stat.S_IMODE(each.stat().st_mode) for each in sorted(home.glob(".claude.json*"))] == [0o640, 0o640]


def test_file_with_a_token_and_its_copy_are_private(run, home):
    lay(home, "claude", THEIRS["claude"]).chmod(0o644)
    run("connect", "claude")
    run("connect", "claude", "--scope", "orion")
    assert [stat.S_IMODE(each.stat().st_mode) for each in sorted(home.glob(".claude.json*"))] == [0o600, 0o600]


def test_a_link_stays_a_link(run, home):
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "claude.json").write_text(THEIRS["claude"])
    (home / ".claude.json").symlink_to(home / "dotfiles" / "claude.json")
    run("connect", "claude")
    assert ((home / ".claude.json").is_symlink(), "keepward" in (home / "dotfiles" / "claude.json").read_text()) == (
        True,
        True,
    )


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude", '{"mcpServers": {'),
        ("cursor", '{"a": 1, "a": 2}'),
        ("gemini", "[" * 300),
        ("codex", "[mcp_servers"),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", "x = '''\n[mcp_servers.keepward]\n'''\n"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(run, home, client, text):
    path = lay(home, client, text)
    done = run("connect", client)
    refused = (done.code, done.err.count("\n"), path.read_text()) == (2, 1, text)
    # A table in a text is no table: what is put beside it is right as well.
    assert refused or (done.code == 0 and entry(home, client)["command"])


def test_a_file_that_is_not_text_is_left_alone(run, home):
    path = lay(home, "claude", "")
    path.write_bytes(b"\xff\xfe\x00")
    assert (run("connect", "claude").code, path.read_bytes()) == (2, b"\xff\xfe\x00")


@pytest.mark.parametrize("how", [(), ("--remove",)])
def test_server_entry_of_another_program_is_left_unchanged(run, home, how):
    text = '{"mcpServers": {"keepward": {"command": "npx", "args": ["something"]}}}'
    path = lay(home, "claude", text)
    assert (run("connect", "claude", *how).code, path.read_text()) == (4, text)


def test_removing_what_is_not_there_changes_nothing(run, home):
    path = lay(home, "codex", THEIRS["codex"])
    assert (run("connect", "codex", "--remove", "--json").json["action"], path.read_text()) == (
        "absent",
        THEIRS["codex"],
    )


@pytest.mark.parametrize("client", ["windsurf", "cline", "claude-desktop"])
def test_a_client_without_project_settings_says_so(run, home, client):
    done = run("connect", client, "--project", str(home))
    assert (done.code, "leave out --project" in done.err) == (2, True)


@pytest.mark.parametrize("client", WITH_PROJECT)
def test_a_project_gets_a_file_of_its_own(run, home, client):
    (home / "app").mkdir()
    told = run("connect", client, "--project", "app", "--json").json
    assert ((home / told["path"]).exists(), (home / PLACES[client][0]).exists()) == (True, False)


@pytest.mark.parametrize("client", ["claude"])
def test_a_projects_file_is_shared_and_gets_no_token(run, home, client):
    (home / "app").mkdir()
    done = run("connect", client, "--project", "app")
    told = (home / "app" / CLIENTS[client].project).read_text()
    assert ("TOKEN" in told, "they contain no token" in done.err, (home / "keepward.db").exists()) == (
        False,
        True,
        False,
    )


def test_choices_of_the_command_line_go_into_the_token(run, home):
    run("init", "--db", "my.db")
    run("connect", "claude", "--db", "my.db", "--scope", "orion", "--tenant", "acme", "--name", "orion")
    told = words(entry(home, "claude"))
    assert (told[told.index("mcp") :], bearer(home, secret_of(home, "claude"), "my.db")[:3]) == (
        ["mcp", "--db", str(home / "my.db")],
        ("agent:orion", "acme", "/agents/orion"),
    )


def test_a_mistyped_path_connects_nothing_and_makes_no_store(run, home):
    done = run("connect", "claude", "--db", "tpyo.db")
    assert (
        done.code,
        "there is no store at" in done.err,
        list(home.glob("*.db")),
        (home / ".claude.json").exists(),
    ) == (
        8,
        True,
        [],
        False,
    )


def test_a_token_of_another_store_is_ended_there(run, home):
    run("init", "--db", "my.db")
    run("connect", "claude", "--db", "my.db")
    run("connect", "claude")
    theirs = run("token", "list", "--db", "my.db", "--json").json["tokens"]
    assert ([each["state"] for each in theirs if each["name"] == "claude"], states(run)) == (["revoked"], ["valid"])


def test_a_token_with_a_term_is_recreated(run, home):
    run("connect", "claude")
    run("connect", "claude", "--expires", "30d")
    told = run("token", "list", "--json").json["tokens"]
    assert [(each["state"], each["expires_at"] is None) for each in told] == [("revoked", True), ("valid", False)]


def test_reviewer_token_found_in_an_entry_is_not_revoked(run, home):
    run("connect", "claude")
    path = home / ".claude.json"
    theirs = run("token", "create", "--name", "rita", "--rights", "reviewer", "--json").json["token"]
    path.write_text(path.read_text().replace(secret_of(home, "claude"), theirs))
    done = run("connect", "claude")
    assert ("it is a reviewer's" in done.err, bearer(home, theirs)[0]) == (True, "operator:rita")


def test_token_of_a_deleted_store_is_replaced_and_reported(run, home):
    run("connect", "claude")
    for each in home.glob("keepward.db*"):
        each.unlink()
    run("init", "--db", "other.db")
    done = run("connect", "claude", "--db", "other.db")
    assert (done.code, "was not revoked: there is no store" in done.err) == (0, True)


def test_an_agent_makes_no_token_for_itself(run, home, monkeypatch):
    run("init")
    monkeypatch.setenv("KEEPWARD_ACTOR", "agent:claude")
    done = run("connect", "claude")
    assert (done.code, "--no-token" in done.err, (home / ".claude.json").exists()) == (7, True, False)


def test_settings_that_cannot_be_written_leave_no_token(run, home, monkeypatch):
    def fail(_):
        raise StoreUnavailable("no room")

    monkeypatch.setattr("keepward.mcp.connect.apply_change", fail)
    assert (run("connect", "claude").code, states(run)) == (8, ["revoked"])


@pytest.mark.parametrize("with_it", ["--no-token", "--remove"])
def test_a_term_without_a_token_is_an_error(run, home, with_it):
    assert run("connect", "claude", "--expires", "30d", with_it).code == 2


def test_unusual_key_folder_is_written_into_the_entry(run, home, monkeypatch):
    monkeypatch.setenv("KEEPWARD_HOME", str(home / "keys"))
    run("connect", "codex")
    assert entry(home, "codex")["env"]["KEEPWARD_HOME"] == str(home / "keys")


@pytest.mark.parametrize("client", FORMS)
def test_the_token_of_the_shell_is_in_no_file(run, home, client, monkeypatch):
    secret = "kw_" + "a" * 43
    run("init")
    monkeypatch.setenv("KEEPWARD_TOKEN", secret)
    assert run("connect", client).code == 7
    run("connect", client, "--no-token")
    assert secret not in (home / PLACES[client][0]).read_text()


def test_opencode_file_of_version_two_preserves_its_form(run, home):
    lay(home, "opencode", '{"mcp": {"servers": {"other": {"type": "local", "command": ["x"]}}}}')
    run("connect", "opencode")
    found = read(home / PLACES["opencode"][0])["mcp"]
    assert (set(found), set(found["servers"]["keepward"])) == (
        {"servers"},
        {"type", "command", "environment"},
    )


def test_opencode_file_with_the_other_spelling_is_edited(run, home):
    path = home / ".config" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    assert run("connect", "opencode", "--json").json["path"] == str(path)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("gemini", '{\n  "theme": "dark" /* another\n}\n'),
        ("vscode", '{ // mine: { "servers"\n  "servers": {}\n}\n'),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
    ],
)
def test_uneditable_file_is_left_alone_with_a_printed_snippet(run, home, client, text):
    path = lay(home, client, text)
    done = run("connect", client)
    shown = json.loads(done.err.partition("Add this under ")[2].partition(": ")[2])["keepward"]
    assert (done.code, path.read_text(), words(shown)[-7:-4]) == (2, text, ["mcp", "--db", str(home / "keepward.db")])
    assert ("kw_***" in done.err, (home / "keepward.db").exists()) == (True, False)


def test_connect_without_the_mcp_package_names_the_install_command(run, home, monkeypatch):
    monkeypatch.setattr("keepward.mcp.is_installed", lambda: False)
    ran = run("connect", "claude")
    assert (ran.code, 'pip install "keepward[mcp]"' in ran.err) == (0, True)


#: Stands for the program of a client: it writes as that does, and notes how it was called.
VENDOR = """
import json, os, pathlib, sys
home, name, args = pathlib.Path(os.environ["HOME"]), pathlib.Path(sys.argv[0]).name, sys.argv[1:]
(home / "called.json").write_text(json.dumps(args))
if (home / "fails").exists():
    sys.exit("no network")
if name == "code":
    path, key = home / ".config/Code/User/mcp.json", "servers"
    entry = json.loads(args[1])
    entry.pop("name")
else:
    path, key = home / {"claude": ".claude.json", "gemini": ".gemini/settings.json", "codex": ".codex/config.toml"}[name], "mcpServers"
    words = iter(args[2:])
    env, rest = {}, []
    for word in words:
        if word == "--env":
            env.update([next(words).split("=", 1)])
        elif word == "--scope":
            assert next(words) == "user"
        elif word == "--":
            rest += words
        else:
            rest.append(word)
    assert rest.pop(0) == "keepward"
    entry = {"command": rest[0], "args": rest[1:], "env": env} if rest else None
    if entry and name == "claude":
        entry["type"] = "stdio"
path.parent.mkdir(parents=True, exist_ok=True)
if name == "codex":
    text = path.read_text() if path.exists() else ""
    table = "" if entry is None else "".join(
        ["\\n[mcp_servers.keepward]\\n", f"command = {json.dumps(entry['command'])}\\nargs = {json.dumps(entry['args'])}\\n",
         "[mcp_servers.keepward.env]\\n", *(f"{k} = {json.dumps(v)}\\n" for k, v in entry["env"].items())])
    path.write_text(text.split("\\n[mcp_servers.keepward]")[0] + table)
else:
    found = json.loads(path.read_text()) if path.exists() else {}
    found.setdefault(key, {}).pop("keepward", None)
    found[key].update({"keepward": entry} if entry else {})
    path.write_text(json.dumps(found))
"""
VENDORS = {"claude": "claude", "codex": "codex", "gemini": "gemini", "vscode": "code"}


@pytest.fixture
def vendors(home, monkeypatch):
    """Install a program of each client that has one; return how it was called last."""
    programs = home / "programs"
    programs.mkdir()
    for name in VENDORS.values():
        (programs / name).write_text(f"#!{sys.executable}\n{VENDOR}")
        (programs / name).chmod(0o755)
    monkeypatch.setattr("keepward.mcp.connect.vendor_program", lambda name, _: str(programs / name))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return lambda: json.loads((home / "called.json").read_text())


@pytest.mark.parametrize("client", VENDORS)
def test_client_program_adds_the_entry_and_sees_no_token(run, home, vendors, client):
    done = run("connect", client)
    assert (done.code, "kw_***" in " ".join(vendors()), "kw_***" in done.out) == (0, True, True)
    assert bearer(home, secret_of(home, client))[0] == f"agent:{client}"
    assert stat.S_IMODE((home / PLACES[client][0]).stat().st_mode) == 0o600
    assert run("connect", client, "--json").json["action"] == "unchanged"


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_client_program_removes_the_entry_and_the_token_ends(run, home, vendors, client):
    run("connect", client)
    assert run("connect", client, "--remove").code == 0
    assert vendors()[:2] == ["mcp", "remove"]
    assert ("keepward" in (home / PLACES[client][0]).read_text(), states(run)) == (False, ["revoked"])


def test_client_program_that_fails_leaves_settings_and_no_token(run, home, vendors):
    path = lay(home, "claude", THEIRS["claude"])
    (home / "fails").touch()
    done = run("connect", "claude")
    assert (done.code, "no network" in done.err, path.read_text()) == (8, True, THEIRS["claude"])
    assert states(run) == ["revoked"]


def test_dry_run_shows_the_command_of_the_client(run, home, vendors):
    done = run("connect", "claude", "--dry-run")
    assert "claude mcp add --env" in done.out
    assert not (home / "called.json").exists()


def test_client_program_is_not_used_for_a_project(run, home, vendors):
    run("connect", "claude", "--project", str(home))
    assert ((home / ".mcp.json").exists(), (home / "called.json").exists()) == (True, False)
