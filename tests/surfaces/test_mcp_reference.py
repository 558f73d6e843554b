"""The reference of the protocol: up to date, whole, and what is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keepward.mcp.profiles import PROFILE_NAMES, tool_set

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "mcp.md"
TOOLS = {tool.name for name in PROFILE_NAMES for tool in tool_set(name).tools}


@pytest.mark.promise("Z47")
def test_the_reference_of_the_protocol_is_up_to_date(reference):
    assert PAGE.read_text("utf-8") == reference.PAGES["mcp.md"]()


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
