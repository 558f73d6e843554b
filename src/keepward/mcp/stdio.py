"""stdio: one client, one handle, one line of JSON a message.

Invariants
(1) stdout carries the protocol and nothing else; while it runs, whatever else is printed goes to stderr.
(2) An interrupt ends the process at once: what was committed is stored, what was not is not.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from keepward.mcp.profiles import Profile
from keepward.mcp.server import as_agent, build

if TYPE_CHECKING:
    from keepward.memory import Memory


def serve(memory: Memory, profile: Profile, *, name: str, reviewer: Memory | None = None) -> None:
    """Answer on stdin and stdout until stdin ends.

    An owner's handle is lowered to that of an agent of this name.
    """
    handle = as_agent(memory, name)
    server = build(profile, lambda _: handle, reviewer=reviewer)

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if threading.current_thread() is threading.main_thread():
        # The thread that reads stdin cannot be woken: Python's own handler would wait for the next line (2).
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(run)
