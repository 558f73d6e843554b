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
    from keepward.cli.call import Call

#: Seconds after which it begins nothing more.
TERM = 20.0
#: Windows' DETACHED_PROCESS.
_DETACHED = 0x8


def leave(call: Call) -> None:
    """Start the process; where that cannot be done, the jobs stay due."""
    if not sys.executable:
        return
    # Without -P the folder one stands in would be searched for modules first.
    command = [sys.executable, "-P", "-m", "keepward.cli.maintenance"]
    chosen = (str(call.path.absolute()), call.embedder or "", str(Path(call.config).absolute()) if call.config else "")
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        begun = subprocess.Popen(  # noqa: S603  nothing of it was typed but paths, and no shell reads them
            [*command, *chosen],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=os.name != "nt",
            creationflags=_DETACHED if os.name == "nt" else 0,
        )
        # Nobody waits for it, and the interpreter need not warn that it still runs when this one ends.
        begun.returncode = 0


def main(path: str, embedder: str, file: str) -> None:
    """Run what is due in a store."""
    from keepward.config import home, load
    from keepward.memory import maintain

    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)
    settings = load(store=Path(path), file=Path(file) if file else None)
    until = time.monotonic() + TERM
    if settings.maintenance:
        maintain(
            path,
            policy=settings.policy,
            embedder=embedder or settings.embedder,
            counter=settings.counter,
            identity=settings.identity,
            user_file=settings.user_file,
            config_dir=home(),
            halted=lambda: time.monotonic() > until,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
