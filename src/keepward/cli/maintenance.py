"""Maintenance after a command: a separate process runs the jobs that are due, after the result is printed.

The command does not wait for the process, and shares no terminal, pipe or lock with it. The process runs with low
priority for at most 20 seconds; the remaining jobs stay due for the next command.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from keepward.cli.command_context import CommandContext
from keepward.memory import run_maintenance
from keepward.settings import config_folder

#: Seconds after which the process starts no more jobs.
MAX_RUN_S = 20.0


def main(embedder: str, config: str) -> None:
    """Run the due jobs of the store that the environment names."""
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
