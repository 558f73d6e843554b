"""A store of its own for programs of others: a home folder, a token, and Keepward started as people start it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import node

#: The command as it is installed beside the interpreter that runs the tests.
KEEPWARD = str(Path(sys.executable).with_name("keepward"))
#: What the environment of these tests must not decide.
_DECIDING = (
    "KEEPWARD_",
    "OPENCODE_",
    "MCP_",
    "XDG_",
    "ANTHROPIC_",
    "CLAUDE",
    "OPENAI_",
    "CODEX_",
    "GEMINI_",
    "GOOGLE_",
)


class Stage:
    """One store, seen from the command line of a user whose home is this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "memory.db"
        self.environ = clean(folder, KEEPWARD_EMBEDDER="none", KEEPWARD_DB=str(self.store))
        self.keepward("init")

    def run(
        self, command: list[str], *, sent: str = "", inside: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in this home, or in a folder inside it."""
        return run(command, self.folder / inside, sent=sent, **{**self.environ, **environ})

    def keepward(self, *arguments: str) -> dict[str, Any]:
        """Run a command of ours and return what it printed as JSON."""
        done = self.run([KEEPWARD, *arguments, "--json", "--quiet"])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def token(self, name: str = "proof") -> str:
        """Return a new token of an agent."""
        return self.keepward("token", "create", "--name", name)["token"]

    @contextmanager
    def serving(self, *, profile: str = "default") -> Iterator[str]:
        """Run `keepward serve` on a free port for as long as the block lasts; gives the address of `/mcp`."""
        settings = self.folder / "settings.toml"
        settings.write_text(f'[server]\nmcp_profile = "{profile}"\n')
        command = [KEEPWARD, "serve", "--port", "0", "--json", "--config", str(settings)]
        with started(command, self.folder, **self.environ) as line:
            yield json.loads(line)["mcp"]


def clean(home: Path, **environ: str) -> dict[str, str]:
    """Return an environment with this home and nothing that would decide for a program what a test decides."""
    kept = {name: value for name, value in node.environment().items() if not name.startswith(_DECIDING)}
    # What runs here talks to servers on loopback, also where a proxy leads elsewhere.
    local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    return {**kept, **local, "HOME": str(home), **environ}


def run(command: list[str], folder: Path, *, sent: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that is its home as well, where no other is named."""
    return subprocess.run(
        command,
        # Some programs believe this and not where they are.
        env=clean(folder) | environ | {"PWD": str(folder)},
        cwd=folder,
        input=sent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@contextmanager
def started(command: list[str], folder: Path, **environ: str) -> Iterator[str]:
    """Run a server for as long as the block lasts; gives its first line, which says that it is ready."""
    with (
        (folder / "server.log").open("a") as log,
        subprocess.Popen(
            command, env=clean(folder, **environ), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            assert line, (folder / "server.log").read_text()
            yield line
        finally:
            process.terminate()
            process.wait(timeout=30)
