"""Start the maintenance after a command, see ``cli.maintenance``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: Windows' DETACHED_PROCESS.
_DETACHED = 0x8


def spawn_maintenance(url: str, *, embedder: str | None, config: str | None, environ: Mapping[str, str]) -> None:
    """Start the process. If that fails, the jobs stay due."""
    if not sys.executable:
        return
    # Without -P Python would search the working folder for modules first.
    command = [sys.executable, "-P", "-m", "keepward.cli.maintenance"]
    options = (embedder or "", str(Path(config).expanduser().absolute()) if config else "")
    devnull = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        process = subprocess.Popen(  # noqa: S603 - no shell; only a name and a path come from the user
            [*command, *options],
            # The address of a database may contain a password, which a list of processes must not show.
            env={**environ, "KEEPWARD_DB": url},
            stdin=devnull,
            stdout=devnull,
            stderr=devnull,
            start_new_session=os.name != "nt",
            creationflags=_DETACHED if os.name == "nt" else 0,
        )
        # Without a return code, the interpreter would warn at its end that the process still runs.
        process.returncode = 0
