"""Maintenance after a command: a separate process runs the jobs that are due, after the result is printed.

The command does not wait for the process, and shares no terminal, pipe or lock with it. The process runs with low
priority for at most 20 seconds; the remaining jobs stay due for the next command.
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

#: Seconds after which the process starts no more jobs.
MAX_RUN_S = 20.0
#: Windows' DETACHED_PROCESS.
_DETACHED = 0x8


def spawn_maintenance(call: CommandContext) -> None:
    """Start the process. If that fails, the jobs stay due."""
    if not sys.executable:
        return
    # Without -P Python would search the working folder for modules first.
    command = [sys.executable, "-P", "-m", "keepward.cli.maintenance"]
    options = (call.embedder or "", str(Path(call.config).expanduser().absolute()) if call.config else "")
    devnull = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        process = subprocess.Popen(  # noqa: S603 - no shell; only a name and a path come from the user
            [*command, *options],
            # The address of a database may contain a password, which a list of processes must not show.
            env={**call.environ, "KEEPWARD_DB": call.url},
            stdin=devnull,
            stdout=devnull,
            stderr=devnull,
            start_new_session=os.name != "nt",
            creationflags=_DETACHED if os.name == "nt" else 0,
        )
        # Without a return code, the interpreter would warn at its end that the process still runs.
        process.returncode = 0


def main(embedder: str, config: str) -> None:
    """Run the due jobs of the store that the environment names."""
    from keepward.cli.command_context import CommandContext
    from keepward.memory import run_maintenance
    from keepward.settings import config_folder

    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)
    call = CommandContext(embedder=embedder, config=config, quiet=True, environ=os.environ)
    deadline = time.monotonic() + MAX_RUN_S
    if call.settings.maintenance:
        options = {"embedder": call.embedder or call.settings.embedder, **call.settings.opening}
        run_maintenance(
            call.url, **options, config_dir=config_folder(), should_stop=lambda: time.monotonic() > deadline
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
