"""The conformance suite of the protocol passes on our server, in both eras, without a list of expected failures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import node
import pytest
from proof_stage import run, started

pytestmark = pytest.mark.proof

SERVER = Path(__file__).with_name("conformance_server.py")
SUITE = node.MODULES / "@modelcontextprotocol" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
#: Scenarios that a revision runs without asking for them, and that ours pass all the same.
BEYOND = {
    "2025-11-25": ("server-session-lifecycle", "json-schema-2020-12"),
    "2026-07-28": ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"),
}
#: What the product answers by itself, by the scenario's revision.
PLAIN = (
    *(("2025-11-25", name) for name in ("server-initialize", "ping", "server-session-lifecycle")),
    *(
        (revision, name)
        for revision in REVISIONS
        for name in (
            "tools-list",
            "resources-list",
            "prompts-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
        )
    ),
    *(("2026-07-28", name) for name in ("caching", "sep-2164-resource-not-found", "http-header-validation")),
)
#: Results of a check that is no failure: it holds, or it only tells.
HELD = {"SUCCESS", "INFO"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one call of the suite found: its exit code, its words, and its checks by scenario."""

    code: int
    words: str
    checks: dict[str, list[dict[str, Any]]]

    def wrong(self, *scenarios: str) -> list[tuple[str, str, str]]:
        """Return the checks of these scenarios that did not hold."""
        return [
            (name, check["id"], check.get("errorMessage", ""))
            for name in scenarios
            for check in self.checks[name]
            if check["status"] not in HELD
        ]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Run our server on a store in a folder; gives its address."""
    command = [sys.executable, str(SERVER), str(folder), *options]
    with started(command, folder) as line:
        yield line.strip()


def suite(folder: Path, url: str, *options: str) -> Run:
    """Call the suite once; what it finds is kept in a folder."""
    found = folder / "-".join(("results", *options)).replace("--", "")
    command = node.command("conformance", "server", "--url", url, "--output-dir", str(found), *options)
    done = run(command, folder)
    checks: dict[str, list[dict[str, Any]]] = {}
    for each in sorted(found.glob("server-*/checks.json")):
        name = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$", r"\1", each.parent.name)
        checks[name] = json.loads(each.read_text())
    return Run(code=done.returncode, words=done.stdout + done.stderr, checks=checks)


def required(revision: str) -> list[str]:
    """Return the scenarios that a revision asks a server to pass."""
    # It comes with a package of the group `proof`; to be collected this file does without.
    import yaml

    return yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text())["server"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """What the suite found on our server with its fixtures beside our tools, by revision."""
    folder = tmp_path_factory.mktemp("suite")
    with serving(folder, "--fixtures") as url:
        return {revision: suite(folder, url, "--requirements", revision) for revision in REVISIONS}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Runs one scenario on our server as it is."""
    folder = tmp_path_factory.mktemp("plain")
    with serving(folder) as url:
        yield lambda revision, name: suite(folder, url, "--scenario", name, "--spec-version", revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_suite_of_a_revision_is_passed(ours, revision):
    assert ours[revision].code == 0, ours[revision].words


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_check_of_every_scenario_that_a_revision_requires_holds(ours, revision):
    assert ours[revision].wrong(*required(revision)) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_that_a_revision_requires_found_something_that_holds(ours, revision):
    empty = [
        name
        for name in required(revision)
        if not any(check["status"] == "SUCCESS" for check in ours[revision].checks.get(name, []))
    ]
    assert empty == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_scenarios_that_are_not_required_but_apply_hold_too(ours, revision):
    assert ours[revision].wrong(*BEYOND[revision]) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_wire_message_fits_the_schema_of_its_revision(ours, revision):
    checks = [check for found in ours[revision].checks.values() for check in found]
    wire = [check["status"] for check in checks if check["id"] == "wire-schema-valid"]
    assert (set(wire), len(wire) >= 25) == ({"SUCCESS"}, True)


@pytest.mark.parametrize(("revision", "name"), PLAIN)
def test_the_server_without_fixtures_passes_what_needs_none(plain, revision, name):
    found = plain(revision, name)
    assert (found.code, list(found.checks), found.wrong(*found.checks)) == (0, [name], []), found.words


def test_stateless_server_without_fixtures_passes_every_testable_check(plain):
    checks = plain("2026-07-28", "server-stateless").checks["server-stateless"]
    failed = [check["id"] for check in checks if check["status"] in {"FAILURE", "WARNING"}]
    untestable = [check["id"] for check in checks if (check.get("details") or {}).get("untestable")]
    assert (failed, len(checks) > len(untestable) * 5) == (untestable, True)
