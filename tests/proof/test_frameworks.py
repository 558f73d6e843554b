"""Frameworks' own tests pass on our adapters, and what their pages say runs: in an environment beside Keepward.

The tests come from the sdist of each framework; a plugin in `frameworks/` puts our adapter in the place of theirs and
names what it leaves out, with the reason. What no plugin names is run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import node
import pytest
from compat import OVER_MCP, VENDORS
from proof_stage import clean

from support.samples import blocks

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "frameworks"
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The tests of one framework that apply to an adapter."""

    package: str
    plugin: str
    #: Files of its sdist, and options.
    tests: tuple[str, ...]
    #: How many are passed, and left out by name.
    passed: int
    left_out: int


SUITES = {
    "langgraph": Suite(
        package="langgraph-checkpoint-sqlite",
        plugin="langgraph_store",
        tests=("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"),
        passed=148,
        left_out=5,
    ),
    "anthropic": Suite(
        package="anthropic",
        plugin="anthropic_memory",
        # What its other tests need stands in their conftest, and is not here.
        tests=("--noconftest", "-o", "addopts=", "tests/lib/tools/memory_tools/test_filesystem.py"),
        passed=72,
        left_out=27,
    ),
    "openai-agents": Suite(
        package="openai-agents",
        plugin="openai_session",
        tests=("tests/memory/test_session.py", "tests/memory/test_session_limit.py"),
        passed=66,
        left_out=5,
    ),
    "crewai": Suite(
        package="crewai",
        plugin="crewai_storage",
        tests=(
            "--noconftest",
            *("-o", "addopts=", "-W", "ignore"),
            *(f"tests/memory/test_{name}.py" for name in ("unified_memory", "memory_root_scope", "storage_factory")),
            *(f"tests/memory/test_lancedb_{name}.py" for name in ("filter_escaping", "update")),
        ),
        passed=148,
        left_out=9,
    ),
    "strands": Suite(
        package="strands-agents",
        plugin="strands_store",
        tests=(
            "--noconftest",
            # Its configuration names a plugin that is not here.
            *("-o", "addopts=", "-W", "ignore::pytest.PytestConfigWarning"),
            "tests/strands/vended_memory_stores/test_memory_store/test_store.py",
        ),
        passed=25,
        left_out=17,
    ),
}


#: What keeps frameworks from calling home.
SILENT = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
#: Frameworks of the second environment, by the names of our modules.
OLDER = {"crewai", "google_adk", "strands"}


def requirements(*frameworks: str) -> Path:
    """Return the list of packages of the environment that has these frameworks."""
    return HERE / ("requirements-older.txt" if OLDER.intersection(frameworks) else "requirements.txt")


def interpreter(*frameworks: str) -> str:
    """Return an interpreter that has these frameworks and Keepward, in a folder that is made once."""
    listed = requirements(*frameworks)
    folder = node.MODULES / ".cache" / listed.stem.replace("requirements", "frameworks")
    found, ready = folder / "bin" / "python", folder / ".ready"
    wanted = listed.read_text()
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=120)
        # The second list is complete, and older than what we pin.
        bounds = ["--no-deps"] if OLDER.intersection(frameworks) else ["--constraint", str(ROOT / "constraints.txt")]
        install = [*PIP, "install", *bounds, "--requirement", str(listed), "--editable", str(ROOT)]
        subprocess.run([str(found), *install], check=True, timeout=600)
        ready.write_text(wanted)
    return str(found)


def sources(package: str, listed: Path) -> Path:
    """Return the folder of an sdist, in the version that is pinned; fetched once."""
    (version,) = re.findall(rf"^{package}==(\S+)$", listed.read_text(), re.MULTILINE)
    name = f"{package.replace('-', '_')}-{version}"
    cache = node.MODULES / ".cache" / "sdists"
    if not (cache / name).exists():
        options = ["--no-deps", "--no-binary", package, "--dest", str(cache), f"{package}=={version}"]
        subprocess.run([sys.executable, *PIP, "download", *options], check=True, timeout=300)
        with tarfile.open(cache / f"{name}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return cache / name


@pytest.mark.parametrize("name", SUITES)
def test_framework_tests_pass_except_the_listed_ones(tmp_path, capsys, name):
    suite = SUITES[name]
    command = [interpreter(name), "-m", "pytest", "-q", "-p", suite.plugin, "-p", "no:cacheprovider", *suite.tests]
    done = subprocess.run(
        command,
        cwd=sources(suite.package, requirements(name)),
        env=clean(tmp_path, PYTHONPATH=str(HERE), **SILENT),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    closing = done.stdout.strip().rpartition("\n")[2]
    with capsys.disabled():
        print(f"\n{name}: {closing.strip('= ')}")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", closing.partition(" in ")[0])}
    assert counts == {"passed": suite.passed, "deselected": suite.left_out}, done.stdout[-4_000:]


#: Programs that run a framework whose model answers from a script: what one process keeps, the next one finds.
RUNS = (
    "anthropic",
    "openai_agents",
    "claude_agent_sdk",
    "langmem",
    "deepagents",
    "agent_framework",
    "pydantic_ai",
    "llama_index",
    "google_adk",
    "strands",
    "crewai",
)


def runs(folder: Path, *command: str) -> None:
    """Run a command in a folder, without an embedder; it has to end well."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean(folder, KEEPWARD_EMBEDDER="none", **SILENT),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


@pytest.mark.parametrize("name", RUNS)
def test_agent_finds_its_memory_after_a_restart_with_gate_results(tmp_path, name):
    for step in ("remember", "recall"):
        runs(tmp_path, interpreter(name), str(HERE / f"run_{name}.py"), step)


def snippets() -> list[str]:
    """Return the Python blocks of the pages on adapters; `make compat` runs those of vendors and over MCP."""
    elsewhere = OVER_MCP.keys() | VENDORS.keys()
    pages = sorted((ROOT / "docs" / "howto" / "frameworks").glob("*.md"))
    return [block for page in pages if page.stem not in elsewhere for block in blocks("python", page.read_text())]


@pytest.mark.parametrize("number", range(len(snippets())))
def test_what_the_page_on_integrations_says_runs(tmp_path, number):
    snippet = snippets()[number]
    python = interpreter(*re.findall(r"keepward\.integrations\.(\w+)", snippet))
    runs(tmp_path, python, "-W", "error::UserWarning", "-c", snippet)
