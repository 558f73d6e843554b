"""Keepward installs beside the agent frameworks people have, and holds none of them back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ("langchain-mcp-adapters", "crewai", "strands-agents", "openai-agents", "anthropic", "google-adk")
OURS = f"keepward[server,client] @ {ROOT.as_uri()}"


def resolved(report: Path, *wanted: str) -> dict[str, str]:
    """Return the version of every distribution that pip would install into an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    done = subprocess.run(
        [*command, "--report", str(report), *wanted], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in json.loads(report.read_text())["install"]}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_newest_framework_release_resolves_with_keepward_installed(framework, tmp_path):
    alone = resolved(tmp_path / "alone.json", framework)
    beside = resolved(tmp_path / "beside.json", framework, OURS)
    assert beside[framework] == alone[framework]


def test_keepward_resolves_with_all_frameworks_at_once(tmp_path):
    assert set(FRAMEWORKS) < set(resolved(tmp_path / "all.json", OURS, *FRAMEWORKS))
