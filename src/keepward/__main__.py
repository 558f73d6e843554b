"""`python -m keepward`: the command line.

Late imports: other commands start faster.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Run the command line; return its exit code."""
    for name in ("stdin", "stdout", "stderr"):
        # A closed stream is opened on the null device, so that no file of the store gets its descriptor number.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path is wanted yet
    if sys.argv[1:2] == ["hook"]:
        # A client waits for the hook at each prompt, so a running server is asked before anything else is loaded.
        from keepward.hooks.socket_client import ask_server

        if ask_server(sys.argv[2:], os.environ):
            return 0
    # A query needs one thread. Idle BLAS threads spin, which takes five times as long on a busy machine.
    # numpy reads this variable when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Nearly all objects of a start live until the end; the collector would scan them a few hundred times.
    gc.set_threshold(200_000)
    from keepward.cli.main import main as run

    code = run()
    # A last collection is not worth its time: all files are closed already.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(main())
