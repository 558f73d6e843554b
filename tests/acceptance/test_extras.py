"""An extra brings what the page of its adapter imports, and `make compat` runs each adapter."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from support.samples import blocks

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
PAGES = {path.stem: path for path in (ROOT / "docs" / "howto" / "frameworks").glob("*.md") if path.stem in EXTRAS}
#: The package that brings a module, where it has another name.
PACKAGES = {
    "agent_framework": "agent-framework-core",
    "agents": "openai-agents",
    "claude_agent_sdk": "claude-agent-sdk",
    "google": "google-adk",
    "llama_index": "llama-index-core",
    "pydantic_ai": "pydantic-ai-slim",
    "strands": "strands-agents",
}
#: What every one of them needs.
COMMON = {"keepward", "typing_extensions"}


def imported(program):
    trees = ast.walk(ast.parse(program))
    names = [alias.name for node in trees if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(ast.parse(program)) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - COMMON


@pytest.mark.parametrize("extra", PAGES)
def test_a_page_imports_only_what_it_installs(extra):
    page = PAGES[extra].read_text("utf-8")
    assert f"pip install 'keepward[{extra}]'" in page
    installed = {re.match(r"[\w-]+", requirement)[0] for requirement in EXTRAS[extra]}
    installed |= set(" ".join(re.findall(r"^pip install (.*)$", page, re.MULTILINE)).split())
    needed = {PACKAGES.get(name, name) for block in blocks("python", page) for name in imported(block)}
    assert needed - installed == set()


def test_every_adapter_runs_in_make_compat():
    source = (ROOT / "tests" / "proof" / "compat.py").read_text("utf-8")
    (table,) = (
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RUNS"
    )
    assert set(table) == set(PAGES)
    assert all((ROOT / "tests" / "proof" / "frameworks" / f"run_{name}.py").exists() for name, _ in table.values())
