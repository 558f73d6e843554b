"""`keepward connect`: an entry in each client's settings, and the other settings as they were."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib

import anyio
import pytest
import yaml
from mcp import Client, StdioServerParameters

from keepward import Actor, Memory, Unauthorised
from keepward.mcp.connect import CLIENTS, file_of, has_program

#: The user's own file.
FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "goose": ".config/goose/config.yaml",
    "junie": ".junie/mcp/mcp.json",
}
#: Clients whose settings are edited; the file of Codex is TOML, which only its own command edits.
WITH_JSON = [name for name in CLIENTS if name != "codex"]
#: One client of each form of an entry in JSON.
FORMS = ("claude", "opencode", "goose")
#: Settings that people have, by the way they are laid out.
THEIRS = {
    "tabs": '{\n\t"numStartups": 3,\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "é"\n\t\t}\n\t},\n\t"z": -2.5\n}',
    "returns": '{\r\n    "theme": "dark"\r\n}\r\n',
    "one line": '{"a": [1,2], "mcpServers": {"other": {"command": "x", "disabled": false}}}',
}
CODEX = '# mine\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x" # keep\n'
SNIPPET = "Add this at its end"


def read(path):
    text = path.read_bytes().decode()
    if path.suffix == ".yaml":
        return yaml.safe_load(text)
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def entry(home, client):
    return read(home / FILES[client])[CLIENTS[client].container]["keepward"]


def words(found):
    command = found.get("command") or found["cmd"]
    return command if isinstance(command, list) else [command, *found["args"]]


def environment(home, client):
    found = entry(home, client)
    return found.get("env") or found.get("environment") or found.get("envs")


def secret_of(home, client):
    return environment(home, client).get("KEEPWARD_TOKEN")


def bearer(home, secret, db="keepward.db"):
    """What a secret opens the store as: who, where, and what for."""
    with Memory.open(home / db, actor=Actor.operator("ann"), embedder=None, config_dir=home / "home") as owner:
        held = owner.with_token(secret)
        return held.actor.label, held.tenant, held.scope, sorted(held.actor.can)


def states(run):
    return [each["state"] for each in run("token", "list", "--json").json["tokens"]]


def lay(home, client, text):
    path = home / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("client", WITH_JSON)
@pytest.mark.promise("Z47")
def test_a_client_without_settings_gets_a_file_with_our_entry(run, home, client):
    run("connect", client)
    told = words(entry(home, client))
    assert told[0].startswith("/")
    assert told[told.index("mcp") :] == ["mcp", "--db", str(home / "keepward.db"), "--user", "me", "--project", "."]
    assert environment(home, client)["KEEPWARD_HOME"] == str(home / "home")
    assert bearer(home, secret_of(home, client)) == (f"agent:{client}", "default", "/", ["propose", "read"])
    assert run("connect", client, "--json").json["action"] == "unchanged"


def test_token_is_replaced_removed_and_never_printed(run, home):
    secrets, said = [], []
    for more in ((), ("--scope", "orion"), ("--json",), ("--no-token", "--scope", "orion")):
        done = run("connect", "claude", *more)
        secrets.append(secret_of(home, "claude"))
        said.append(done.out + done.err)
    assert ("kw_***" in said[0], states(run), secrets[-1]) == (True, ["revoked"] * 3, "")
    assert words(entry(home, "claude"))[-4:] == ["--scope", "orion", "--name", "claude"]
    run("connect", "claude", "--scope", "orion")
    assert bearer(home, secret_of(home, "claude"))[2] == "/agents/orion"
    for secret in secrets[:3]:
        assert not any(secret in each for each in said)
        with pytest.raises(Unauthorised):
            bearer(home, secret)


@pytest.mark.slow
@pytest.mark.parametrize("client", FORMS)
def test_client_started_from_its_entry_acts_by_its_token(run, home, client):
    run("connect", client, "--name", "orion")
    program, *arguments = words(entry(home, client))
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    env = {**kept, "HOME": str(home), "KEEPWARD_EMBEDDER": "none", "KEEPWARD_MAINTENANCE": "off"}
    given = environment(home, client)

    async def go():
        async with Client(StdioServerParameters(command=program, args=arguments, env=env | given, cwd=home)) as mcp:
            return await mcp.call_tool("remember", {"text": "Ana prefers tabs"})

    written = anyio.run(go).structured_content
    receipt = run("receipt", written["receipt"], "--json").json
    token = run("token", "list", "--json").json["tokens"][0]["id"]
    assert (receipt["actor"], receipt["credential"]) == ("agent:orion", token)


@pytest.mark.parametrize("layout", THEIRS)
def test_other_settings_stay_when_an_entry_comes_and_goes(run, home, layout):
    path, text = lay(home, "claude", THEIRS[layout]), THEIRS[layout]
    run("connect", "claude")
    found = read(path)
    assert found["mcpServers"].pop("keepward")
    assert {"mcpServers": {}, **json.loads(text)} == {"mcpServers": {}, **found}
    assert path.with_name(".claude.json.before-keepward").read_bytes().decode() == text
    run("connect", "claude", "--remove")
    if layout == "one line":
        assert read(path) == json.loads(text)
    else:
        assert path.read_bytes().decode() == text


@pytest.mark.parametrize("client", FORMS)
def test_new_choice_updates_our_entry_and_preserves_additions(run, home, client):
    run("connect", client)
    path = home / FILES[client]
    given = (
        path.read_text().replace('"keepward": {', '"keepward": { "timeout": 9,').replace("timeout: 300", "timeout: 9")
    )
    path.write_text(given)
    run("connect", client, "--profile", "readonly")
    found = entry(home, client)
    assert (found["timeout"], "readonly" in words(found)) == (9, True)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("theirs", [{"mcpServers": {"other": {"env": {"KEY": "hunter2"}}}}, {"key": "hunter2"}])
def test_a_dry_run_shows_the_change_and_writes_nothing(run, home, theirs, indent):
    text = json.dumps(theirs, indent=indent)
    path = lay(home, "claude", text)
    done = run("connect", "claude", "--dry-run")
    assert ("kw_***" in done.out, "hunter2" in done.out) == (True, False)
    assert (path.read_text(), list(path.parent.glob("*before*")), list(home.glob("*.db"))) == (text, [], [])


@pytest.mark.parametrize(("more", "before", "after"), [(["--no-token"], 0o640, 0o640), ([], 0o644, 0o600)])
def test_file_with_a_token_and_its_copy_are_private(run, home, more, before, after):
    lay(home, "claude", THEIRS["tabs"]).chmod(before)
    run("connect", "claude", *more)
    run("connect", "claude", "--scope", "orion", *more)
    assert [stat.S_IMODE(each.stat().st_mode) for each in sorted(home.glob(".claude.json*"))] == [after, after]


def test_a_link_stays_a_link(run, home):
    (home / "dotfiles").mkdir()
    target = home / "dotfiles" / "claude.json"
    target.write_text(THEIRS["tabs"])
    (home / ".claude.json").symlink_to(target)
    run("connect", "claude")
    assert ((home / ".claude.json").is_symlink(), "keepward" in target.read_text()) == (True, True)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude", '{"mcpServers": {'),
        ("claude", '{"mcpServers": 3}'),
        ("claude", "[]"),
        ("cursor", '{"a": 1, "a": 2}'),
        ("gemini", '{\n  "theme": "dark" /* another\n}\n'),
        ("gemini", "[" * 300),
        ("gemini", "[" * 100_000),
        ("gemini", '{"a": ' * 500 + "1" + "}" * 500),
        ("vscode", '{ // mine: { "servers"\n  "servers": {}\n}\n'),
    ],
)
def test_entry_for_an_unreadable_file_is_printed(run, home, client, text):
    path = lay(home, client, text)
    done = run("connect", client)
    shown = json.loads(done.err.partition("Add this under ")[2].partition(": ")[2])["keepward"]
    assert (done.code, path.read_text(), words(shown)[-7:-4]) == (2, text, ["mcp", "--db", str(home / "keepward.db")])
    assert ("kw_***" in done.err, (home / "keepward.db").exists()) == (True, False)


@pytest.mark.parametrize("client", ["claude", "codex", "cursor"])
@pytest.mark.parametrize("how", [(), ("--remove",), ("--hooks",)])
def test_a_pipe_in_place_of_settings_is_not_waited_for(run, home, client, how):
    for path in (home / FILES[client], home / f".{client}" / "settings.json", home / f".{client}" / "hooks.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
    ran = run("connect", client, *how)
    assert (ran.code, "is no regular file" in ran.err, (home / "keepward.db").exists()) == (2, True, False)


@pytest.mark.parametrize("how", [(), ("--hooks",)])
def test_half_a_character_in_another_setting_is_a_clear_error(run, home, how):
    text = '{"note": "\\ud83c", "mcpServers": {}}'
    paths = [lay(home, "claude", text), home / ".claude" / "settings.json"]
    paths[1].parent.mkdir()
    paths[1].write_text(text)
    ran = run("connect", "claude", *how)
    assert (ran.code, "half a character" in ran.err) == (2, True)
    assert [path.read_text() for path in paths] == [text, text]
    assert not list(home.rglob("*.before-keepward"))


@pytest.mark.parametrize("how", [(), ("--hooks",), ("--dry-run",), ("--no-token",)])
@pytest.mark.parametrize("where", ["--db", "KEEPWARD_HOME"])
def test_a_path_with_half_a_character_is_a_clear_error(run, home, monkeypatch, where, how):
    path = home / "a\udcff"
    if where == "--db":
        assert run("init", "--db", str(path)).code == 0
    else:
        monkeypatch.setenv(where, str(path))
    ran = run("connect", "cursor", *((where, str(path)) if where == "--db" else ()), *how)
    assert (ran.code, "is not UTF-8" in ran.err, (home / FILES["cursor"]).exists()) == (2, True, False)
    assert not (home / "keepward.db").exists()


def test_a_file_that_is_not_text_is_left_alone(run, home):
    path = lay(home, "claude", "")
    path.write_bytes(b"\xff\xfe\x00")
    assert (run("connect", "claude").code, path.read_bytes()) == (2, b"\xff\xfe\x00")


@pytest.mark.parametrize("how", [(), ("--remove",)])
@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude", '{"mcpServers": {"keepward": {"command": "npx", "args": ["something"]}}}'),
        ("codex", '[mcp_servers.keepward]\ncommand = "npx"\n'),
    ],
)
def test_server_entry_of_another_program_is_left_unchanged(run, home, vendors, client, text, how):
    path = lay(home, client, text)
    assert (run("connect", client, *how).code, path.read_text()) == (4, text)
    assert not (home / "called.json").exists()


@pytest.mark.parametrize("text", [CODEX, CODEX + "# keepward is for later\n", "keepward = ["])
def test_removing_what_is_not_there_changes_nothing(run, home, text):
    path = lay(home, "codex", text)
    done = run("connect", "codex", "--remove", "--json")
    assert (done.json.get("action", done.code), path.read_text()) == (2 if text.endswith("[") else "absent", text)


@pytest.mark.parametrize("client", ["windsurf", "cline", "claude-desktop", "goose"])
def test_a_client_without_project_settings_says_so(run, home, client):
    done = run("connect", client, "--project", str(home))
    assert (done.code, "leave out --project" in done.err) == (2, True)


@pytest.mark.parametrize("client", [name for name in WITH_JSON if CLIENTS[name].project])
def test_a_projects_file_is_shared_and_gets_no_token(run, home, vendors, client):
    (home / "app").mkdir()
    done = run("connect", client, "--project", "app")
    assert "TOKEN" not in (home / "app" / CLIENTS[client].project).read_text()
    assert "they contain no token" in done.err
    made = [home / FILES[client], home / "keepward.db", home / "called.json"]
    assert [each.exists() for each in made] == [False] * 3


def test_choices_of_the_command_line_go_into_the_token(run, home):
    run("init", "--db", "my.db")
    run("connect", "claude", "--db", "my.db", "--scope", "orion", "--tenant", "acme", "--name", "orion")
    told = words(entry(home, "claude"))
    assert told[told.index("mcp") :] == ["mcp", "--db", str(home / "my.db")]
    assert bearer(home, secret_of(home, "claude"), "my.db")[:3] == ("agent:orion", "acme", "/agents/orion")


def test_a_mistyped_path_connects_nothing_and_makes_no_store(run, home):
    done = run("connect", "claude", "--db", "tpyo.db")
    assert (done.code, "there is no store at" in done.err) == (8, True)
    assert ([*home.glob("*.db")], (home / ".claude.json").exists()) == ([], False)


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
    assert ("it is a reviewer's" in done.err, bearer(home, theirs)[0]) == (True, "reviewer:rita")


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


@pytest.mark.parametrize("with_it", ["--no-token", "--remove"])
def test_a_term_without_a_token_is_an_error(run, home, with_it):
    assert run("connect", "claude", "--expires", "30d", with_it).code == 2


@pytest.mark.parametrize("client", FORMS)
def test_the_token_of_the_shell_is_in_no_file(run, home, client, monkeypatch):
    secret = "kw_" + "a" * 43
    run("init")
    monkeypatch.setenv("KEEPWARD_TOKEN", secret)
    assert run("connect", client).code == 7
    run("connect", client, "--no-token")
    assert secret not in (home / FILES[client]).read_text()


@pytest.mark.parametrize(
    ("theirs", "keys"),
    [
        ({"servers": {"other": {"type": "local", "command": ["x"]}}}, {"servers"}),
        ({"servers": {"type": "local", "command": ["x"]}}, {"servers", "keepward"}),
    ],
)
def test_opencode_file_of_version_two_preserves_its_form(run, home, theirs, keys):
    path = lay(home, "opencode", json.dumps({"mcp": theirs}))
    run("connect", "opencode")
    assert (set(read(path)["mcp"]), run("connect", "opencode", "--json").json["action"]) == (keys, "unchanged")
    run("connect", "opencode", "--remove")
    assert read(path) == {"mcp": theirs}


#: Settings of Goose that people have, by the way they are laid out.
GOOSE = {
    "comments": "# mine\nGOOSE_MODEL: gpt-5 # the cheap one\nextensions:\n    # tools\n    developer:\n        enabled: true\n",
    "no extensions": "GOOSE_MODEL: gpt-5",
    "others after it": "extensions: # tools\n  developer:\n    type: builtin\n\nGOOSE_MODE: auto\n",
}


@pytest.mark.parametrize("layout", GOOSE)
def test_comments_of_goose_stay_when_an_entry_comes_and_goes(run, home, layout):
    path = lay(home, "goose", GOOSE[layout])
    assert run("connect", "goose", "--dry-run").code == 0
    assert path.read_text() == GOOSE[layout]
    assert run("connect", "goose").code == 0
    connected = path.read_text()
    assert set(GOOSE[layout].splitlines()) <= set(connected.splitlines())
    assert bearer(home, secret_of(home, "goose"))[0] == "agent:goose"
    path.write_text(connected.replace("timeout: 300", "timeout: 60"))
    assert run("connect", "goose", "--json").json["action"] == "unchanged"
    assert run("connect", "goose", "--profile", "readonly", "--json").json["action"] == "updated"
    assert (entry(home, "goose")["timeout"], "readonly" in entry(home, "goose")["args"]) == (60, True)
    run("connect", "goose", "--remove")
    assert path.read_text() == GOOSE[layout] + ("" if GOOSE[layout].endswith("\n") else "\n")
    assert states(run) == ["revoked"]


@pytest.mark.parametrize("text", ["extensions: {developer: {enabled: true}}\n", "extensions: [\n", "- a\n"])
def test_goose_file_of_another_form_is_left_alone_and_the_entry_printed(run, home, text):
    path = lay(home, "goose", text)
    done = run("connect", "goose")
    assert (done.code, path.read_text()) == (2, text)
    shown = yaml.safe_load(done.err.partition("Add this under `extensions`:\n")[2])
    assert words(shown["keepward"])[-7:-4] == ["mcp", "--db", str(home / "keepward.db")]


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", {"goose": ".config/goose", "vscode": ".config/Code/User", "claude-desktop": ".config/Claude"}),
        (
            "darwin",
            {
                "goose": ".config/goose",
                "vscode": "Library/Application Support/Code/User",
                "claude-desktop": "Library/Application Support/Claude",
            },
        ),
        (
            "win32",
            {
                "goose": "Roaming/Block/goose/config",
                "vscode": "Roaming/Code/User",
                "claude-desktop": "Roaming/Claude",
                "zed": "Roaming/zed",
            },
        ),
    ],
)
def test_each_system_has_its_own_folder(home, monkeypatch, platform, folder):
    monkeypatch.setattr("keepward.mcp.connect.sys.platform", platform)
    monkeypatch.setattr("keepward.mcp.connect.home_folder", lambda: home)
    for client, expected in folder.items():
        found = file_of(CLIENTS[client], None, {"APPDATA": str(home / "Roaming")})
        assert found.parent == home / expected


def test_connect_without_the_mcp_package_names_the_install_command(run, home, monkeypatch):
    monkeypatch.setattr("keepward.mcp.is_installed", lambda: False)
    ran = run("connect", "claude")
    assert (ran.code, 'pip install "keepward[mcp]"' in ran.err) == (0, True)


def test_codex_without_its_program_gets_a_snippet_and_then_the_token(run, home):
    path = lay(home, "codex", CODEX)
    done = run("connect", "codex")
    assert (done.code, path.read_text(), (home / "keepward.db").exists()) == (2, CODEX, False)
    path.write_text(CODEX + done.err.partition(SNIPPET)[2].partition("\n")[2])
    assert secret_of(home, "codex") == "kw_***"
    assert run("connect", "codex").code == 0
    assert (path.read_text().startswith(CODEX), stat.S_IMODE(path.stat().st_mode)) == (True, 0o600)
    assert bearer(home, secret_of(home, "codex"))[0] == "agent:codex"
    assert run("connect", "codex", "--json").json["action"] == "unchanged"
    assert (run("connect", "codex", "--profile", "readonly").code, run("connect", "codex", "--remove").code) == (2, 2)
    assert states(run) == ["valid"]


def test_codex_with_a_project_gets_a_snippet_without_a_token(run, home, vendors):
    done = run("connect", "codex", "--project", str(home))
    snippet = tomllib.loads(done.err.partition(SNIPPET)[2].partition("\n")[2])
    told = words(snippet["mcp_servers"]["keepward"])
    assert (done.code, told[-2:], "TOKEN" in done.err) == (2, ["--name", "codex"], False)
    assert [(home / each).exists() for each in ("called.json", ".codex")] == [False, False]


#: Stands for the program of a client: it writes as that does, and notes how it was called.
VENDOR = """
import json, os, pathlib, sys
from itertools import pairwise
home, name, args = pathlib.Path(os.environ["HOME"]), pathlib.Path(sys.argv[0]).name, sys.argv[1:]
(home / "called.json").write_text(json.dumps(args))
if (home / "fails").exists():
    sys.exit("no network")
path = home / FILES["vscode" if name == "code" else name]
before = path.read_text() if path.exists() else ""
path.parent.mkdir(parents=True, exist_ok=True)
if name == "code":
    entry = json.loads(args[1])
    entry.pop("name")
elif args[1] == "add":
    cut = args.index("--")
    command = args[cut - (name == "gemini") :]
    command.remove("--")
    env = dict(word.split("=", 1) for flag, word in pairwise(args[:cut]) if flag == "--env")
    entry = {"command": command[0], "args": command[1:], "env": env} | ({"type": "stdio"} if name == "claude" else {})
if name == "codex":
    text = before.split("\\n[mcp_servers.keepward]")[0]
    if args[1] == "add":
        values = {"command": command[0], "args": command[1:]} | {f"env.{key}": value for key, value in env.items()}
        text += "\\n[mcp_servers.keepward]\\n" + "".join(f"{key} = {json.dumps(value)}\\n" for key, value in values.items())
    path.write_text(text)
else:
    found = json.loads(before or "{}")
    found.setdefault("servers" if name == "code" else "mcpServers", {})["keepward"] = entry
    path.write_text(json.dumps(found))
"""
VENDORS = {"claude": "claude", "codex": "codex", "gemini": "gemini", "vscode": "code"}


@pytest.fixture
def vendors(home, monkeypatch):
    """Install a program of each client that has one; return how it was called last."""
    programs = home / "programs"
    programs.mkdir()
    for name in VENDORS.values():
        (programs / name).write_text(f"#!{sys.executable}\nFILES = {FILES}\n{VENDOR}")
        (programs / name).chmod(0o755)
    monkeypatch.setattr("keepward.mcp.connect.has_program", has_program)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return lambda: json.loads((home / "called.json").read_text())


@pytest.mark.parametrize("client", VENDORS)
def test_client_program_adds_the_entry_and_sees_no_token(run, home, vendors, client):
    assert f"{VENDORS[client]} " in run("connect", client, "--dry-run").out
    assert not (home / "called.json").exists()
    done = run("connect", client)
    secret = secret_of(home, client)
    assert (done.code, "kw_***" in " ".join(vendors()), secret in " ".join(vendors())) == (0, True, False)
    assert ("kw_***" in done.out, bearer(home, secret)[0]) == (True, f"agent:{client}")
    assert stat.S_IMODE((home / FILES[client]).stat().st_mode) == 0o600
    assert run("connect", client, "--json").json["action"] == "unchanged"
    assert run("connect", client, "--remove").code == 0
    assert ("keepward" in (home / FILES[client]).read_text(), states(run)) == (False, ["revoked"])


def test_codex_program_replaces_our_entry_unless_it_has_keys_of_the_user(run, home, vendors):
    path = lay(home, "codex", CODEX)
    run("connect", "codex")
    first = secret_of(home, "codex")
    assert run("connect", "codex", "--profile", "readonly").code == 0
    assert (words(entry(home, "codex"))[-1], secret_of(home, "codex")) == ("readonly", first)
    text = path.read_text().replace("args =", "startup_timeout_sec = 9\nargs =")
    path.write_text(text)
    assert (run("connect", "codex").code, path.read_text()) == (2, text)


def test_client_program_that_fails_leaves_settings_and_no_token(run, home, vendors):
    path = lay(home, "claude", THEIRS["tabs"])
    (home / "fails").touch()
    done = run("connect", "claude")
    assert (done.code, "no network" in done.err, path.read_text()) == (8, True, THEIRS["tabs"])
    assert states(run) == ["revoked"]
