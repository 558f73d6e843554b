"""Maintenance after a command: a process of its own runs the jobs that are due, once the answer was printed.

Invariants
(1) The command does not wait for it, and nothing of the command's is held by it: no terminal, no pipe, no lock.
(2) It runs with a low priority, for twenty seconds at most; what is left is due at the next command.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepward.cli.command_context import CommandContext

#: Seconds after which it begins nothing more.
MAX_RUN_S = 20.0
#: Windows' DETACHED_PROCESS.
_DETACHED = 0x8


def spawn_maintenance(call: CommandContext) -> None:
    """Start the process; where that cannot be done, the jobs stay due."""
    if not sys.executable:
        return
    # Without -P the folder one stands in would be searched for modules first.
    command = [sys.executable, "-P", "-m", "keepward.cli.maintenance"]
    chosen = (call.embedder or "", str(Path(call.config).expanduser().absolute()) if call.config else "")
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        begun = subprocess.Popen(  # noqa: S603  nothing of it was typed but a name and a path, and no shell reads them
            [*command, *chosen],
            # The address of a database may have a password in it, which no list of processes shows from here.
            env={**call.environ, "KEEPWARD_DB": call.url},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=os.name != "nt",
            creationflags=_DETACHED if os.name == "nt" else 0,
        )
        # Nobody waits for it, and the interpreter need not warn that it still runs when this one ends.
        begun.returncode = 0


def main(embedder: str, config: str) -> None:
    """Run what is due in the store that the environment names."""
    from keepward.cli.command_context import CommandContext
    from keepward.memory import run_maintenance
    from keepward.settings import config_folder

    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)
    call = CommandContext(embedder=embedder, config=config, quiet=True, environ=os.environ)
    until = time.monotonic() + MAX_RUN_S
    if call.settings.maintenance:
        chosen = {"embedder": call.embedder or call.settings.embedder, **call.settings.opening}
        run_maintenance(call.url, **chosen, config_dir=config_folder(), should_stop=lambda: time.monotonic() > until)


if __name__ == "__main__":
    main(*sys.argv[1:])
