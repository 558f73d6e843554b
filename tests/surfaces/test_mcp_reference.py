"""The reference of MCP is complete, and a list of tools does not load the SDK."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from keepward.mcp.profiles import CORE, PROFILE_NAMES, PROMPTS, TEMPLATES, tool_set

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {tool.name for name in PROFILE_NAMES for tool in tool_set(name).tools}


@pytest.mark.promise("Z47")
def test_every_tool_is_documented_and_every_documented_tool_exists(reference):
    page = reference.complete_page("mcp.md")
    assert set(re.findall(r"^### (.+)$", page, re.MULTILINE)) == TOOLS


@pytest.mark.promise("Z47")
def test_every_resource_and_prompt_is_documented(reference):
    page = reference.complete_page("mcp.md")
    names = [each.uri for each in (CORE, *TEMPLATES)] + [each.name for each in PROMPTS]
    assert [name for name in names if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_every_profile_is_reported_in_the_how_to(name):
    assert f"| `{name}` |" in (ROOT / "docs" / "howto" / "mcp.md").read_text("utf-8")


def test_neither_help_nor_a_list_of_tools_loads_the_sdk():
    script = (
        "import sys;"
        "from keepward.cli.main import main;"
        "main(['--help']); main(['mcp', '--list']);"
        "print([name for name in ('mcp', 'fastapi', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
