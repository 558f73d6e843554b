"""Our server for the conformance suite: `python conformance_server.py FOLDER [--fixtures]` prints its address.

It is what `keepward serve` runs: the edge with its check of hosts, limits, authentication, session settings, tools.
Two things are added. A request without a credential gets the token of one agent, since the suite sends none; and with
`--fixtures` the tools, resources and prompts that the suite calls stand beside ours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from conformance_fixtures import extended

from keepward import Actor, Memory
from keepward.http import server
from keepward.http.app_state import ServerOptions
from keepward.mcp import server as http


class Bearer:
    """Gives a request without a credential that of one agent."""

    def __init__(self, app: Any, secret: str) -> None:
        self._app, self._header = app, (b"authorization", f"Bearer {secret}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


def main(folder: Path, *, fixtures: bool) -> None:
    """Serve a new store in a folder until the process is asked to stop."""
    if fixtures:
        made = http.build
        http.build = lambda *given, **options: extended(made(*given, **options))
    with Memory.open(
        folder / "memory.db", actor=Actor.operator("ann"), embedder="none", config_dir=folder / "home"
    ) as memory:
        memory.remember("The suite of the protocol reads this", tier="archival", reason="test")
        secret = memory.create_token("suite").secret
        bound, options = server.bind(ServerOptions(port=0, writes_per_minute=0, quiet=True))
        with bound:
            app = server.build(memory, options)
            app.add_middleware(Bearer, secret=secret)
            ready = server.prepare(app)
            print(f"{options.url}/mcp", flush=True)
            ready.answer(bound)


if __name__ == "__main__":
    main(Path(sys.argv[1]), fixtures="--fixtures" in sys.argv[2:])
