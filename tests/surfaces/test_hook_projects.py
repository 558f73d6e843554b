"""Hooks and `connect` keep projects apart: the repository of the folder, and the login as the user."""

from __future__ import annotations

import getpass
import itertools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from keepward import Memory
from keepward.cli.repository import project_of
from keepward.services.arguments import check_name

RATE = "Remember that the rate of this client is 90 euros an hour."
ASKED = "What is the rate of this client?"


def repository(folder: Path, remote: str = "") -> Path:
    (folder / ".git").mkdir(parents=True)
    head = "[core]\n\tbare = false\n"
    (folder / ".git" / "config").write_text(head + (f'[remote "origin"]\n\turl = {remote}\n' if remote else ""))
    (folder / "src").mkdir()
    return folder


@pytest.fixture
def folders(tmp_path):
    """Two repositories of one name, of two owners."""
    return [repository(tmp_path / name / "site", f"git@example.org:{name}/site.git") for name in ("acme", "beta")]


@pytest.fixture
def prompt(run):
    """Send a prompt through the hook command, from a folder; gives the text that is put in."""

    def call(folder, text, *more, session="s1"):
        event = json.dumps({"session_id": session, "cwd": str(folder), "prompt": text})
        out = run("hook", "prompt", "--embedder", "hashed", *more, stdin=event.encode()).out
        return json.loads(out)["hookSpecificOutput"]["additionalContext"] if out else ""

    return call


def test_project_reads_nothing_of_another(prompt, folders):
    acme, beta = folders
    prompt(acme, RATE)
    assert "90 euros" in prompt(acme / "src", ASKED, session="s2")
    assert prompt(beta, ASKED, session="s3") == ""


def test_start_of_a_session_shows_its_own_project_only(run, prompt, folders):
    def started(folder):
        event = json.dumps({"session_id": "s9", "cwd": str(folder)})
        return run("hook", "start", "--embedder", "hashed", stdin=event.encode()).out

    prompt(folders[0], RATE)
    assert ["90 euros" in started(each) for each in folders] == [True, False]


def test_memory_of_the_login_is_shown_in_every_project(run, prompt, folders):
    run("remember", "I prefer tabs over spaces", "--user", "me", "--embedder", "hashed")
    found = [prompt(each, "Do I prefer tabs or spaces?", session=each.parent.name) for each in folders]
    assert ["prefer tabs" in each for each in found] == [True, True]


def test_prompt_is_stored_at_the_login_in_the_project(run, prompt, folders):
    prompt(folders[0], RATE)
    scope = f"/projects/example.org.acme.site/users/{getpass.getuser()}"
    assert {each["scope"] for each in run("list", "--scope", scope, "--json").json["items"]} == {scope}


def test_command_reaches_the_project_of_its_folder(run, prompt, folders, monkeypatch):
    monkeypatch.chdir(folders[0])
    run("remember", "The rate of this client is 90 euros", "--project", ".", "--embedder", "hashed")
    assert ["90 euros" in prompt(each, ASKED, session=each.parent.name) for each in folders] == [True, False]


def test_home_directory_is_no_project(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("remember", "The rate is 90 euros", "--project", ".")
    assert (done.code, "--project NAME" in done.err) == (2, True)


def test_token_of_one_user_limits_a_hook_there(run, prompt, folders, monkeypatch):
    run("remember", "The rate of this client is 90 euros", "--user", "ana", "--embedder", "hashed")
    made = run("token", "create", "--user", "ana", "--name", "claude", "--json").json
    monkeypatch.setenv("KEEPWARD_TOKEN", made["token"])
    assert "90 euros" in prompt(folders[0], ASKED)


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@example.org:acme/shop.git", "example.org.acme.shop"),
        ("https://ana:secret@example.org/acme/shop", "example.org.acme.shop"),
        ("ssh://git@example.org:22/acme/tools/shop.git/", "example.org.acme.tools.shop-[0-9a-f]{8}"),
        ("git@example.org:acme/my shop.git", "example.org.acme.my-shop-[0-9a-f]{8}"),
        ("git@example.org:acme/" + "s" * 90, "example.org.acme.s{38}-[0-9a-f]{8}"),
        ("git@example.org:acme/shop-1f0a77c2", "example.org.acme.shop-1f0a77c2-[0-9a-f]{8}"),
        ("/srv/git/shop.git", "srv.git.shop-[0-9a-f]{8}"),
        ("https://example.org/", "shop-[0-9a-f]{8}"),
        ("", "shop-[0-9a-f]{8}"),
    ],
)
def test_project_is_named_after_its_remote(run, tmp_path, monkeypatch, remote, name):
    monkeypatch.chdir(repository(tmp_path / "shop", remote) / "src")
    found = run("connect", "claude", "--no-token", "--dry-run", "--json").json
    assert found["user"] == getpass.getuser()
    assert re.fullmatch(name, found["project"])
    assert check_name("project", found["project"]) == found["project"]


@pytest.fixture
def project(tmp_path):
    """Return the project of a new repository with a remote."""
    numbers = itertools.count()
    return lambda remote: project_of(repository(tmp_path / f"clone{next(numbers)}", remote))


@pytest.mark.parametrize(
    "remotes",
    [
        (
            *("git@example.org:Acme/shop.git", "example.org:/Acme/shop", "[ana@example.org:2222]:Acme/shop.git"),
            *("ssh://git@EXAMPLE.org:2222/Acme/shop.git/", "https://ana:pass@word@example.org.:8443//Acme//shop.GIT//"),
            *("https://example.org/Acme%2Fshop", "git+ssh://example.org/Acme/shop"),
        ),
        ("git@github.com:acme/shop.git", "https://GitHub.com/Acme/Shop", "ssh://git@ssh.github.com:443/Acme/shop.git"),
        ("git@gitlab.com:acme/tools/shop", "ssh://git@altssh.gitlab.com:443/Acme/Tools/Shop.git"),
        ("git@bitbucket.org:acme/shop", "https://ana@bitbucket.org/Acme/Shop.git"),
        ("git@codeberg.org:acme/shop", "https://codeberg.org/Acme/Shop"),
        (
            *("git@ssh.dev.azure.com:v3/Acme/Web/Shop", "https://acme@dev.azure.com/acme/web/_git/shop"),
            "ssh://git@ssh.dev.azure.com/v3/acme/web/shop",
        ),
        ("/srv/git/shop.git", "file:///srv/git/shop", "file://localhost/srv/git/shop.git/"),
    ],
    ids=lambda remotes: remotes[0],
)
def test_forms_of_one_remote_are_one_project(project, remotes):
    assert len({project(remote) for remote in remotes}) == 1


@pytest.mark.parametrize(
    "remotes",
    [
        ("git@github.com:acme/shop.git", "https://gitlab.example/acme/shop.git", "/github.com/acme/shop"),
        ("https://git.example/org/shop", "https://git.example.org/shop", "https://git.example/org.shop"),
        ("https://example.org/acme/shop", "https://example.org/Acme/shop", "https://example.org/acme/Shop"),
        ("https://example.org/acme/my-shop", "https://example.org/acme/my shop", "https://example.org/acme/my+shop"),
        ("https://example.org/acme/shop.web", "https://example.org/acme.shop/web", "https://example.org/acme/shop/web"),
        ("../shop.git", "/srv/shop.git", "shop.git"),
        ("codecommit::us-east-1://shop", "codecommit::eu-west-1://shop"),
    ],
    ids=lambda remotes: remotes[0],
)
def test_two_remotes_are_two_projects(project, remotes):
    assert len({project(remote) for remote in remotes}) == len(remotes)


def test_what_is_told_in_one_host_is_not_shown_in_another(run, tmp_path, prompt):
    mine, other = (
        repository(tmp_path / name, remote)
        for name, remote in (("a", "git@github.com:acme/shop.git"), ("b", "https://gitlab.example/acme/shop.git"))
    )
    prompt(mine, RATE)
    assert prompt(other, ASKED, session="s2") == ""


def test_password_of_a_remote_is_in_no_name(project):
    remotes = (
        "https://ana:hunter2@example.org",
        "p4::https://ana:hunter2@example.org/shop",
        "x://ana:hunter2@[::1/shop",
    )
    assert not any("hunter2" in project(remote) for remote in remotes)


def test_origin_names_the_project_among_several_remotes(tmp_path):
    one = repository(tmp_path / "one", "git@example.org:acme/shop.git")
    two = repository(tmp_path / "two")
    config = two / ".git" / "config"
    config.write_text(
        '[remote "fork"]\n\turl = git@example.org:ana/shop.git\n'
        '[remote "origin"]\n\turl = "git@example.org:acme/shop.git"\n'
    )
    assert project_of(one) == project_of(two) == "example.org.acme.shop"


def test_worktree_is_the_project_of_its_repository(run, tmp_path, monkeypatch):
    main, tree = repository(tmp_path / "shop"), tmp_path / "elsewhere"
    inner = main / ".git" / "worktrees" / "elsewhere"
    inner.mkdir(parents=True)
    (inner / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    found = []
    for folder in (main, tree):
        monkeypatch.chdir(folder)
        found.append(run("connect", "claude", "--no-token", "--dry-run", "--json").json["project"])
    assert found[0] == found[1] != ""


def words_of(home, run, *more):
    """Return the command lines of the entry and of a hook that `connect` writes."""
    run("init")
    run("connect", "claude", "--hooks", *more)
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["keepward"]
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    return entry["args"], shlex.split(hooks["SessionStart"][0]["hooks"][0]["command"])


@pytest.mark.parametrize("more", [("--shared",), ("--scope", "/agents/claude"), ("--user", "ana")])
def test_shared_connection_names_one_scope(run, home, more):
    entry, hook = words_of(home, run, *more)
    assert (set(entry) & {"--user", "--project"}, set(hook) & {"--user", "--project"}) == (set(), set())
    assert (
        hook[hook.index("--scope") + 1]
        == {"--shared": "/", "--scope": "/agents/claude", "--user": "/users/ana"}[more[0]]
    )


def test_connection_separates_projects_and_says_so(run, home, folders, monkeypatch):
    monkeypatch.chdir(folders[0])
    entry, hook = words_of(home, run)
    for words in (entry, hook):
        assert (words[words.index("--user") + 1], words[words.index("--project") + 1]) == ("me", ".")
    said = run("connect", "claude").out
    assert ("example.org.acme.site" in said, getpass.getuser() in said) == (True, True)


@pytest.mark.slow
def test_running_server_separates_projects(run, folders, monkeypatch, tmp_path):
    store = tmp_path / "keepward.db"
    run("init")
    options = ["--db", str(store), "--embedder", "hashed"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with tempfile.TemporaryDirectory() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        command = [sys.executable, "-m", "keepward", "mcp", "--name", "claude", "--user", "me", "--project", "."]
        with subprocess.Popen(
            [*command, *options],
            cwd=folders[0],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server:
            assert server.stdin
            assert server.stdout
            line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            server.stdin.write(json.dumps(line).encode() + b"\n")
            server.stdin.flush()
            assert server.stdout.readline()
            monkeypatch.setattr(
                "keepward.hooks.event_handler.handle_event", None
            )  # this process would fail if it answered by itself

            def prompted(folder, text, session, **event):
                monkeypatch.chdir(folder)
                event = json.dumps({"session_id": session, "prompt": text, **event})
                return run("hook", "prompt", *options, stdin=event.encode()).out

            prompted(folders[0], RATE, "s1")
            # The folder is named by the event, or is that of the hook.
            assert "90 euros" in prompted(folders[1], ASKED, "s2", cwd=str(folders[0]))
            assert "90 euros" not in prompted(folders[1], ASKED, "s3")
            server.stdin.close()
            server.wait(20)
    with Memory.open(store, embedder="hashed", config_dir=tmp_path / "home") as memory:
        assert (
            memory.at(scope="/projects/example.org.beta.site")
            .recall(ASKED, within="/projects/example.org.beta.site")
            .hits
        )
        assert memory.list_memories() == []
