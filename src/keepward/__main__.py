"""`python -m keepward`: the command line."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Run the command line; return its exit code."""
    for name in ("stdin", "stdout", "stderr"):
        # What a caller has closed is empty, and its number is free for no file of the store.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path is wanted yet
    if sys.argv[1:2] == ["hook"]:
        # A client waits for it at each prompt: a running server answers before anything else is loaded.
        from keepward.hooks.socket_client import ask_server

        if ask_server(sys.argv[2:], os.environ):
            return 0
    # One question keeps no more than one thread busy; others wait for it by spinning, which on a machine at work takes
    # five times as long. numpy reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Nearly all that a start makes stays, and would be looked through a few hundred times for what does not.
    gc.set_threshold(200_000)
    from keepward.cli.main import main as run

    code = run()
    # Nor is it worth looking through once more at the end: what holds a file has closed it.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(main())
