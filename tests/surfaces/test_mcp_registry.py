"""`server.json`, by which the registry of MCP servers lists the package."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from keepward import __version__
from keepward.cli.main import main
from keepward.settings import PATH_VARIABLES, SETTING_VARIABLES

ROOT = Path(__file__).resolve().parents[2]
SERVER = json.loads((ROOT / "server.json").read_text("utf-8"))
(PACKAGE,) = SERVER["packages"]


def test_registry_entry_has_a_valid_name_and_description():
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert 1 <= len(SERVER["description"]) <= 100
    assert SERVER["$schema"].startswith("https://static.modelcontextprotocol.io/schemas/")


def test_registry_entry_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = PACKAGE["runtimeArguments"][0]["value"]
    assert {SERVER["version"], PACKAGE["version"]} == {__version__}
    assert (PACKAGE["identifier"], extra) == (project["name"], f"{project['name']}[mcp]=={__version__}")
    assert "mcp" in project["optional-dependencies"]


@pytest.mark.parametrize("path", ["plugins/keepward/.claude-plugin/plugin.json", "console/package.json"])
def test_other_manifests_have_the_version_of_the_package(path):
    assert json.loads((ROOT / path).read_text("utf-8"))["version"] == __version__


def test_citation_has_the_version_of_the_package():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_readme_names_the_server_for_the_registry():
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (ROOT / "README.md").read_text("utf-8")


def test_command_and_variables_of_the_registry_entry_exist(capsys):
    command, name = PACKAGE["packageArguments"]
    assert main([command["value"], "--help"]) == 0
    assert name["name"] in capsys.readouterr().out
    assert {each["name"] for each in PACKAGE["environmentVariables"]} <= {*SETTING_VARIABLES.values(), *PATH_VARIABLES}
