"""Hooks in the clients that people run: what is told in one session is in the next one's request, and no secret is.

The clients are real; the model behind each is a script on loopback that keeps what it was sent. `npm ci` in `agent/`
installs them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from proof_stage import Stage
from scripted_model import NAME, Model, answering
from test_agent import OFFLINE, provided

pytestmark = [pytest.mark.proof, pytest.mark.nightly]

PROGRAMS = Path(__file__).parent / "agent" / "node_modules" / ".bin"
PREFERENCE, QUESTION = "Remember that I prefer tabs over spaces.", "How should I indent?"
SECRET = "hunter2-Xq9!"
#: What differs between two runs of one client: ids, instants, and marks made of both.
CHANGING = re.compile(
    rb"(?:msg_)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,64}|\b(?:ses|msg|prt)_[\w-]+"
    rb"|\d{4}-\d\d-\d\dT[\d:.]+Z?|cc_version=[\w.]+; |cch=\w+|\b1[78]\d{8,11}\b"
)


class Client(NamedTuple):
    """How one client is run once, without a person and without any other network."""

    #: Words before the prompt, the program first.
    words: tuple[str, ...]
    #: The file with its hooks, and what stands in it before: of which nothing may be lost.
    hooks: str
    before: str
    #: Writes what leads it to the model.
    lead: Callable[[Path, str], dict[str, str]]


def claude(_: Path, url: str) -> dict[str, str]:
    quiet = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"), "1")
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", **quiet}


def codex(home: Path, url: str) -> dict[str, str]:
    provider = {"name": NAME, "base_url": f"{url}/v1", "env_key": "SCRIPTED_KEY", "wire_api": "responses"}
    rows = [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
    chosen = [f'model = "{NAME}"', f'model_provider = "{NAME}"', "", f"[model_providers.{NAME}]", *rows]
    (home / ".codex" / "config.toml").write_text("\n".join([*chosen, ""]))
    return {"SCRIPTED_KEY": "none"}


def gemini(_: Path, url: str) -> dict[str, str]:
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def opencode(home: Path, url: str) -> dict[str, str]:
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(provided(url)))
    return OFFLINE


GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
CLIENTS = {
    "claude": Client(("claude", "-p"), ".claude/settings.json", '{\n  "theme": "dark"\n}\n', claude),
    # A person would have looked at the hooks and trusted them.
    "codex": Client(
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        ".codex/hooks.json",
        '{\n  "description": "mine"\n}\n',
        codex,
    ),
    "gemini": Client(("gemini", "-p"), ".gemini/settings.json", json.dumps(GEMINI, indent=2), gemini),
    "opencode": Client(
        ("opencode", "run", "--model", f"{NAME}/{NAME}"), ".config/opencode/plugins/keepward.js", "", opencode
    ),
}


@dataclass(kw_only=True)
class Talks:
    """Sessions of one client, one after another: what the model was sent in each, and what was left behind."""

    sent: dict[str, list[bytes]] = field(default_factory=dict)
    stored: list[tuple[str, str]] = field(default_factory=list)
    hooks_before: str = ""
    hooks_after: str = ""
    settings_after: str = ""
    log: str = ""


@pytest.fixture(scope="module", params=CLIENTS)
def talks(request, tmp_path_factory) -> Talks:
    client, home = CLIENTS[request.param], tmp_path_factory.mktemp(request.param)
    assert (PROGRAMS / client.words[0]).exists(), "it is not installed: run `npm ci` in tests/proof/agent"
    stage, model, found = Stage(home), Model(), Talks(hooks_before=client.before)
    hooks = home / client.hooks
    hooks.parent.mkdir(parents=True)
    (home / "project").mkdir()
    if client.before:
        hooks.write_text(client.before)
    with answering(model):
        environ = client.lead(home, model.url)
        environ = environ | dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), model.url)

        def ask(name: str, prompt: str, **more: str) -> None:
            start = len(model.sent)
            # OpenCode quotes a word with spaces in it.
            words = prompt.split() if client.words[0] == "opencode" else [prompt]
            program = [str(PROGRAMS / client.words[0]), *client.words[1:], *words]
            done = stage.run(program, inside="project", **environ, **more)
            assert done.returncode == 0, done.stderr
            found.sent[name] = model.sent[start:]

        if request.param == "codex":
            # Only Codex's own command edits its settings.
            stage.environ["PATH"] = os.pathsep.join((str(PROGRAMS), stage.environ["PATH"]))
        connect = ("connect", request.param, "--db", str(stage.store))
        stage.keepward(*connect)
        ask("without", QUESTION)
        settings = Path(stage.keepward(*connect, "--hooks")["path"])
        ask("off", QUESTION, KEEPWARD_HOOKS="off")
        ask("telling", PREFERENCE)
        ask("secret", f"My password is {SECRET} and I like tea.")
        ask("asking", QUESTION)
        stage.keepward(*connect, "--remove")
    everything = stage.keepward("list", "--within", "/", "--as", "operator")["items"]
    found.stored = [(each["author"], each["text"]) for each in everything]
    found.hooks_after = hooks.read_text() if hooks.exists() else ""
    found.settings_after = settings.read_text() if settings.exists() else ""
    log = home / ".config" / "keepward" / "hook.log"
    found.log = log.read_text() if log.exists() else ""
    return found


def same(bodies: list[bytes]) -> list[Any]:
    """Return what was sent with all that differs between two runs masked; Codex has no order of keys."""
    return [json.dumps(json.loads(CHANGING.sub(b"*", body)), sort_keys=True) for body in bodies]


@pytest.mark.promise("B85")
def test_preference_from_one_session_is_in_the_next_request(talks):
    assert any(b"prefer tabs over spaces" in body for body in talks.sent["asking"])


def test_preference_is_not_in_requests_before_it(talks):
    assert not any(b"prefer tabs over spaces" in body for body in talks.sent["without"] + talks.sent["off"])


def test_secret_from_one_session_is_not_in_the_next_request(talks):
    assert any(SECRET.encode() in body for body in talks.sent["secret"])
    assert not any(SECRET.encode() in body for body in talks.sent["asking"])


def test_a_secret_is_not_in_the_store(talks):
    assert [text for _, text in talks.stored if SECRET in text] == []


@pytest.mark.promise("B20")
def test_what_was_said_is_an_event_of_the_client(talks, request):
    name = request.node.callspec.params["talks"]
    assert (f"agent:{name}", PREFERENCE) in talks.stored


def test_switched_off_the_bytes_are_those_without_hooks(talks):
    assert same(talks.sent["off"]) == same(talks.sent["without"])


def test_disconnecting_leaves_the_settings_as_they_were(talks):
    assert (talks.hooks_after, "keepward" in talks.settings_after) == (talks.hooks_before, False)


def test_nothing_went_wrong_in_any_hook(talks):
    assert talks.log == ""
