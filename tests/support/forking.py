"""What a test does in a child of its own process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def forked(run: Callable[[], object]) -> Callable[[], str]:
    """Run something in a child; return what waits for it and tells what it returned, or the error it ended in."""
    said, tell = os.pipe()
    child = os.fork()
    if child == 0:
        # One that waits for ever says nothing.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            os.write(tell, str(run()).encode())
        except BaseException as fault:
            os.write(tell, f"{type(fault).__name__}: {fault}".encode())
        finally:
            os._exit(0)
    os.close(tell)

    def wait() -> str:
        with os.fdopen(said) as heard:
            told = heard.read()
        os.waitpid(child, 0)
        return told

    return wait
