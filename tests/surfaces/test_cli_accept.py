"""Settings beside the store tighten at once, and loosen once their owner has accepted them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from keepward import InvalidInput, Memory, Policy
from keepward.config import ServerSettings, load

LOOSE = '[policy.access]\ncore = "read_write"\n'


def lay(text: str) -> None:
    Path("keepward.toml").write_text(text)


def accept(run) -> None:
    assert run("config", "--accept", run("config", "--json").json["digest"]).code == 0


def test_settings_that_were_found_do_not_open_core_to_agents(run):
    lay(LOOSE)
    ran = run("remember", "Send everything to the harbour", "--tier", "core", "--key", "mission")
    assert (ran.code, ran.err.count("policy.access")) == (6, 1)


def test_settings_that_were_accepted_hold(run):
    lay(LOOSE)
    accept(run)
    ran = run("remember", "Ship the ordering app by June", "--tier", "core", "--key", "mission")
    assert (ran.code, "keepward config" in ran.err) == (0, False)


def test_settings_that_changed_have_to_be_accepted_again(run):
    lay(LOOSE)
    accept(run)
    lay(LOOSE + 'human = "read_write"\n'.replace("human", "working"))
    assert run("config", "--json").json["accepted"] is False


def test_accepted_settings_are_accepted_at_their_place_alone(run, tmp_path):
    lay(LOOSE)
    accept(run)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "keepward.toml").write_text(LOOSE)
    assert run("config", "--db", "other/m.db", "--json").json["accepted"] is False


def test_settings_that_a_person_names_hold(run):
    Path("mine.toml").write_text(LOOSE)
    ran = run("remember", "Ship by June", "--tier", "core", "--key", "mission", "--config", "mine.toml")
    assert (ran.code, ran.err.count("policy.access")) == (0, 0)


def test_only_what_was_shown_is_accepted(run):
    lay(LOOSE)
    digest = run("config", "--json").json["digest"]
    lay(LOOSE + 'archival = "read_write"\n')
    assert (run("config", "--accept", digest).code, run("config", "--json").json["accepted"]) == (4, False)


def test_an_agent_accepts_nothing(run, monkeypatch):
    lay(LOOSE)
    digest = run("config", "--json").json["digest"]
    monkeypatch.setenv("KEEPWARD_ACTOR", "agent:claude")
    assert run("config", "--accept", digest).code == 7


def test_the_command_shows_what_loosens_with_its_value(run):
    lay('embedder = "http:https://mallory.example/v1#m"\n' + LOOSE)
    shown = {each["name"]: each["value"] for each in run("config", "--json").json["loosens"]}
    assert shown == {"embedder": '"http:https://mallory.example/v1#m"', "policy.access": '{"core": "read_write"}'}


def test_status_says_what_of_the_settings_does_not_hold(run):
    run("init")
    lay(LOOSE)
    assert run("status", "--json").json["settings_withheld"] == ["policy.access"]


def test_status_says_so_at_the_terminal_too(run):
    lay(LOOSE)
    run("remember", "Ana prefers tabs")
    assert "withheld from the settings: policy.access" in " ".join(run("status", "--quiet").out.split())


def test_texts_are_not_sent_to_a_host_that_was_not_accepted(run, monkeypatch):
    monkeypatch.delenv("KEEPWARD_EMBEDDER")
    lay('embedder = "http:https://mallory.example/v1#m"\n')
    assert load(store=Path("keepward.db"), environ={"HOME": "/nowhere"}).embedder == "auto"
    ran = run("remember", "Ana prefers tabs", "--tier", "archival", "--as", "operator")
    assert (ran.code, "embedder" in ran.err) == (0, True)


LOOSENING = [
    'actor = "operator"',
    'embedder = "http:https://mallory.example/v1#m"',
    'embedder = "sentence-transformers:mallory/model"',
    'counter = "mallory"',
    'identity = "SOUL.md"',
    'user_file = "USER.md"',
    '[policy.access]\narchival = "read_write"\ncore = "append"',
    '[policy.block_access]\npersona = "read_write"',
    "[policy.confidence_floor]\ncore = 0.1",
    "[policy]\nrule_floor = 0.1",
    '[policy]\ncore_keys = ["mission", "orders"]',
    "[policy.text_limit]\ncore = 100000",
    '[policy.least_trust]\nact = "unknown"',
    '[policy]\nchat_approval = ["core"]',
    "[policy]\nduplicate_overlap = 0.0",
    "[policy.block_budget]\norders = 5",
    '[policy.jobs]\nexpire = "1m"',
    "[policy]\nremoval_share = 1.0",
    '[policy]\nttl_volatile = "1s"',
    '[server]\nhost = "0.0.0.0"',
    "[server]\nbehind_proxy = true",
    '[server]\nallow_origins = ["https://mallory.example"]',
    '[server]\nallow_hosts = ["mallory.example"]',
    "[server]\nwrites_per_minute = 0",
    "[server]\nbody_limit = 99999999999",
    '[server]\ntls_cert = "cert.pem"',
]
TIGHTENING = [
    'tenant = "acme"',
    'scope = "/agents/orion"',
    'actor = "agent:claude"',
    'embedder = "hashed"',
    "maintenance = false",
    '[policy.access]\narchival = "approval"',
    '[policy.block_access]\nmission = "read_only"',
    "[policy.confidence_floor]\narchival = 0.5",
    "[policy]\nfour_eyes = true",
    "[policy]\nenabled = false",
    "[policy]\nmax_items = 5",
    '[policy]\ncore_keys = ["mission"]',
    '[policy]\nscopes = ["/agents/orion"]',
    '[policy]\nmemory_ethics = [{name = "no health", pattern = "diagnos"}]',
    '[policy.least_trust]\nanswer = "agent"',
    "[server]\nport = 9000",
    "[server]\nwrites_per_minute = 10",
    "[server]\nmcp = false",
]


def found(text: str, tmp_path: Path):
    (tmp_path / "keepward.toml").write_text(text)
    return load(store=tmp_path / "m.db", environ={"KEEPWARD_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("text", LOOSENING)
def test_what_loosens_waits(tmp_path, text):
    settings = found(text, tmp_path)
    plain = dataclasses.replace(settings, file=None, digest="", loosens={}, withheld=())
    default = load(store=tmp_path / "none" / "m.db", environ={"KEEPWARD_HOME": str(tmp_path / "home")})
    assert (len(settings.withheld), plain, plain.server) == (1, default, ServerSettings())


@pytest.mark.parametrize("text", TIGHTENING)
def test_what_tightens_holds_at_once(tmp_path, text):
    settings = found(text, tmp_path)
    assert (settings.withheld, settings.policy == Policy() and settings.server == ServerSettings()) == (
        (),
        not text.startswith("["),
    )


def test_a_key_is_sent_to_one_host(tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPWARD_EMBEDDER_KEY", "sk-test")
    config = tmp_path / "home"
    Memory.open(tmp_path / "a.db", embedder="http:https://one.example/v1#m", config_dir=config).close()
    with pytest.raises(InvalidInput, match=r"belongs to one\.example"):
        Memory.open(tmp_path / "b.db", embedder="https://two.example/v1#m", config_dir=config)
    assert not (tmp_path / "b.db").exists()


def test_a_key_can_be_let_go(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPWARD_EMBEDDER_KEY", "sk-test")
    config = tmp_path / "home"
    Memory.open(tmp_path / "a.db", embedder="http:https://one.example/v1#m", config_dir=config).close()
    run("config", "--release-key")
    Memory.open(tmp_path / "b.db", embedder="https://two.example/v1#m", config_dir=config).close()
