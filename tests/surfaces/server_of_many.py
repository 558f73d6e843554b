"""One of several servers of a database, in a process of its own: `python server_of_many.py ADDRESS HOME PORT`."""

from __future__ import annotations

import sys
from pathlib import Path

from keepward import Actor, Memory
from keepward.http import ServerOptions
from keepward.http.server import bind, build, prepare


def main(address: str, home: str, port: str) -> None:
    with Memory.open(
        address, actor=Actor.operator("olga"), embedder="none", config_dir=Path(home), maintenance=False
    ) as memory:
        bound, options = bind(ServerOptions(port=int(port), writes_per_minute=0, quiet=True))
        server = prepare(build(memory, options))
        print(f"{options.port} {memory.owner_token()}", flush=True)
        server.answer(bound)


if __name__ == "__main__":
    main(*sys.argv[1:])
