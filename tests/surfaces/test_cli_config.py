"""Settings: file, environment, precedence, and messages that name the key."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

import keepward
from keepward.core.memory import Access, Kind, Tier
from keepward.core.policy import EthicsRule, Policy
from keepward.core.principals import Trust
from keepward.errors import InvalidInput
from keepward.settings import SETTING_VARIABLES, SWITCH_VARIABLES, Settings, config_folder, load, unknown_variables

#: One value that is not the default for every field of a policy: TOML text, and what it means.
CHOSEN = {
    "enabled": ("false", False),
    "capture": ("false", False),
    "recall": ("false", False),
    "text_limit": ("{core = 10}", {**Policy().text_limit, Tier.CORE: 10}),
    "scopes": ('["/"]', ("/",)),
    "ttl_by_kind": ('{event = "5d"}', {**Policy().ttl_by_kind, Kind.EVENT: timedelta(days=5)}),
    "archive_facts_after": ('"365d"', timedelta(days=365)),
    "evidence_roots": ('["/srv/app"]', ("/srv/app",)),
    "archive_unused": ('["event"]', ("event",)),
    "ttl_volatile": ('"2w"', timedelta(weeks=2)),
    "four_eyes": ("true", True),
    "ttl_working": ("3600", timedelta(hours=1)),
    "metadata_limit": ("100", 100),
    "structured_limit": ("1000", 1000),
    "pending_limit": ("7", 7),
    "compact_receipts_after": ('"30d"', timedelta(days=30)),
    "review_keep": ('"4d"', timedelta(days=4)),
    "review_ttl": ('"3d"', timedelta(days=3)),
    "confidence_floor": ("{archival = 0.5}", {**Policy().confidence_floor, Tier.ARCHIVAL: 0.5}),
    "rule_floor": ("0.9", 0.9),
    "access": ('{archival = "append"}', {**Policy().access, Tier.ARCHIVAL: Access.APPEND}),
    "block_access": ('{mission = "read_only"}', {**Policy().block_access, "mission": Access.READ_ONLY}),
    "core_keys": ('["mission"]', ("mission",)),
    "capacity": ("{working = 5}", {**Policy().capacity, Tier.WORKING: 5}),
    "when_full": ('"refuse"', "refuse"),
    "duplicate_overlap": ("0.7", 0.7),
    "similarity_threshold": ("0.8", 0.8),
    "block_budget": ("{mission = 30}", {**Policy().block_budget, "mission": 30}),
    "pinned_budget": ("1", 1),
    "working_budget": ("2", 2),
    "retrieved_budget": ("3", 3),
    "context_budget": ("4", 4),
    "max_items": ("5", 5),
    "candidates": ('"process"', "process"),
    "process_limit": ("1000", 1000),
    "least_trust": ('{act = "user"}', {**Policy().least_trust, "act": Trust.USER}),
    "mark_what_was_read": ("false", False),
    "agent_feedback_share": ("0.1", 0.1),
    "jobs": ('{prune = "off"}', {**Policy().jobs, "prune": "off"}),
    "removal_share": ("0.5", 0.5),
    "fade_confidence": ("0.2", 0.2),
    "fade_importance": ("0.3", 0.3),
    "summary_least": ("4", 4),
    "summary_most": ("8", 8),
    "archive_summarized": ("true", True),
    "thread_length": ("30", 30),
    "merge_after": ('"3d"', timedelta(days=3)),
    "merge_least": ("4", 4),
    "merge_most": ("9", 9),
    "merge_cosine": ("0.9", 0.9),
    "memory_ethics": (
        '[{name = "no health", pattern = "diagnos", action = "refuse", tiers = ["core"]}]',
        (EthicsRule(name="no health", pattern="diagnos", action="refuse", tiers=(Tier.CORE,)),),
    ),
}
PLAIN = {
    "tenant": "acme",
    "scope": "orion",
    "actor": "agent:x",
    "embedder": "none",
    "embedder_prefixes": "query: ||passage: ",
    "extractor": "http://localhost:9/v1#small",
    "redactor": "codename",
    "reranker": "shortest",
    "gates": "prices, taxes",
    "counter": "estimate",
}
FILES = {"identity": "SOUL.md", "user_file": "USER.md"}
SPANS = {"embedder_timeout": ("800s", timedelta(seconds=800))}


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    (folder / "keepward.toml").write_text(text)
    return load(store=folder / "m.db", file=folder / "keepward.toml", environ=environ or {})


def test_every_field_of_a_policy_is_covered_here():
    assert CHOSEN.keys() == set(Policy.__struct_fields__)


@pytest.mark.parametrize("name", CHOSEN)
def test_each_policy_setting_is_read(tmp_path, name):
    text, meant = CHOSEN[name]
    policy = read(tmp_path, f"[policy]\n{name} = {text}\n").policy
    governs = name not in {"candidates", "process_limit", "evidence_roots"}
    assert (getattr(policy, name), policy.version != Policy().version) == (meant, governs)


def test_every_choice_outside_policy_is_covered_here():
    assert (
        SETTING_VARIABLES.keys()
        == {*PLAIN, *FILES, *SPANS}
        == set(Settings.__struct_fields__)
        - {"policy", "server", "maintenance", "file", "digest", "named", "loosens", "withheld", "origins"}
    )


@pytest.mark.parametrize(
    ("text", "environ", "meant"),
    [("", {}, True), ("maintenance = false", {}, False), ("maintenance = false", {"KEEPWARD_MAINTENANCE": "on"}, True)],
)
def test_maintenance_is_switched_by_the_file_and_the_environment(tmp_path, text, environ, meant):
    assert read(tmp_path, text, environ).maintenance is meant


@pytest.mark.parametrize("name", PLAIN)
def test_each_plain_setting_is_read_from_the_file(tmp_path, name):
    assert getattr(read(tmp_path, f'{name} = "{PLAIN[name]}"'), name) == PLAIN[name]


@pytest.mark.parametrize("name", FILES)
def test_a_path_is_taken_from_the_folder_of_the_file(tmp_path, name):
    assert getattr(read(tmp_path, f'{name} = "{FILES[name]}"'), name) == tmp_path / FILES[name]


@pytest.mark.parametrize("name", PLAIN)
def test_the_environment_beats_the_file(tmp_path, name):
    settings = read(tmp_path, f'{name} = "{PLAIN[name]}"', {SETTING_VARIABLES[name]: "other"})
    assert getattr(settings, name) == "other"


@pytest.mark.parametrize("name", SPANS)
def test_each_duration_is_read_from_the_file_and_the_environment(tmp_path, name):
    text, meant = SPANS[name]
    assert getattr(read(tmp_path, f'{name} = "{text}"'), name) == meant
    assert getattr(read(tmp_path, "", {SETTING_VARIABLES[name]: text}), name) == meant


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("wrong", ["soon", "0s", "-1s"])
def test_a_duration_that_cannot_be_meant_is_refused(tmp_path, name, wrong):
    with pytest.raises(InvalidInput, match=name):
        read(tmp_path, f'{name} = "{wrong}"')
    with pytest.raises(InvalidInput, match=SETTING_VARIABLES[name]):
        read(tmp_path, "", {SETTING_VARIABLES[name]: wrong})


@pytest.mark.parametrize("name", SWITCH_VARIABLES)
def test_each_switch_is_read_from_the_environment(tmp_path, name):
    assert getattr(read(tmp_path, "", {SWITCH_VARIABLES[name]: "off"}).policy, name) is False


def test_every_variable_that_the_package_names_is_known():
    package = Path(keepward.__file__).parent
    named = {
        name for file in package.rglob("*.py") for name in re.findall(r"\bKEEPWARD_[A-Z_]*[A-Z]", file.read_text())
    }
    assert (unknown_variables(dict.fromkeys(named, "1")), len(named) > 8) == ([], True)


def test_a_misspelt_variable_is_reported(run, monkeypatch):
    monkeypatch.setenv("KEEPWARD_CAPTUR", "off")
    assert "KEEPWARD_CAPTUR does nothing" in run("init").err


def test_switch_other_than_on_or_off_is_an_error(tmp_path):
    with pytest.raises(InvalidInput, match="KEEPWARD_RECALL"):
        read(tmp_path, "", {"KEEPWARD_RECALL": "perhaps"})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("tenat = 'x'", "tenat"),
        ("tenant = 3", "tenant"),
        ("maintenance = 'yes'", "maintenance"),
        ("policy = 3", "policy"),
        ("[policy]\nbudget = 3", "policy.budget"),
        ("[policy]\nmax_items = -1", "policy.max_items"),
        ("[policy]\nrule_floor = nan", "policy.rule_floor"),
        ("[policy]\nttl_working = 'hunter2'", "policy.ttl_working"),
        ("[policy.text_limit]\ncore = 'hunter2'", "policy.text_limit.core"),
        ("[policy.text_limit]\nhunter = 2", "policy.text_limit"),
        ("[policy.capacity]\ncore = 2", "policy.capacity"),
        ("[policy.access]\ncore = 'hunter2'", "policy.access.core"),
        ("[[policy.memory_ethics]]\nname = 'x'", "policy.memory_ethics.0.pattern"),
        ("[[policy.memory_ethics]]\nname = 'x'\npattern = '(hunter2'", "policy.memory_ethics.0"),
    ],
)
def test_a_wrong_setting_names_its_key_and_not_its_value(tmp_path, text, key):
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text)
    assert (key in str(caught.value), "hunter2" in str(caught.value)) == (True, False)


def test_invalid_toml_is_an_error_without_its_content(tmp_path):
    with pytest.raises(InvalidInput, match=r"keepward.toml is not TOML \(at line 1") as caught:
        read(tmp_path, "password hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(InvalidInput, match="no settings file"):
        load(store=tmp_path / "m.db", file=tmp_path / "other.toml", environ={})


def test_keepward_config_names_the_file(tmp_path):
    # As an editor on Windows saves it.
    (tmp_path / "other.toml").write_bytes(b'\xef\xbb\xbftenant = "acme"\r\n')
    assert load(store=tmp_path / "m.db", environ={"KEEPWARD_CONFIG": str(tmp_path / "other.toml")}).tenant == "acme"


def test_policy_written_from_its_own_values_is_equal(tmp_path):
    plain = Policy().as_dict()
    # TOML's inline values are JSON's, but for the sign between name and value.
    lines = [
        f"{name} = {json.dumps(value)}" if not isinstance(value, dict) else f"{name} = {{{_inline(value)}}}"
        for name, value in plain.items()
        if value not in ([], None)
    ]
    assert read(tmp_path, "[policy]\n" + "\n".join(lines)).policy.version == Policy().version


def _inline(table: dict[str, object]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"KEEPWARD_HOME": "/k", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/k"),
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/keepward"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/keepward"),
        ({"HOME": "/h"}, "/h/.config/keepward"),
    ],
)
def test_the_config_folder_follows_the_environment(environ, folder):
    assert config_folder(environ) == Path(folder)


def test_config_folder_exists_without_a_home_directory():
    assert config_folder({}).name in {"keepward", ".keepward"}


def test_an_option_beats_the_settings_file(run, tmp_path):
    (tmp_path / "keepward.toml").write_text('tenant = "acme"\n')
    assert run("init", "--config", "keepward.toml", "--tenant", "other", "--json").json["tenant"] == "other"
