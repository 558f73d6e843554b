"""Install the package with all that its tests need, and pass the everyday tests; it needs no make.

``python tools/everyday.py`` installs into the Python that runs it, as the workflow `tests` does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Folders of tests that need the programs of `make test-proof`.
PROOF = ("tests/console", "tests/proof")


def commands(python: str) -> list[list[str]]:
    """Return the commands in their order."""
    pip = [python, "-m", "pip", "install", "--constraint", "constraints.txt"]
    ignored = [f"--ignore={each}" for each in PROOF]
    chosen = ["-m", "not slow and not proof and not nightly"]
    return [
        [*pip, "pip"],
        [*pip, "--editable", ".[all]", "--group", "dev"],
        [
            python,
            "-m",
            "pytest",
            "--numprocesses",
            "auto",
            "--dist",
            "loadfile",
            "-p",
            "no:schemathesis",
            *ignored,
            *chosen,
        ],
    ]


def main() -> int:
    """Run the commands until one fails; return its exit code."""
    for command in commands(sys.executable):
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONUTF8": "1"}, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
