"""The stores that an eval runs on: files, a PostgreSQL server of the run's own, or a database that is named."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from evals.target import Target, target_of
from keepward.locations import parse_location

#: Lends an empty target in a folder.
Targets = Callable[[Path], AbstractContextManager[Any]]
#: What ``--store`` takes, in words.
STORE = "file, postgresql, or postgresql://…"


@contextmanager
def targets(store: str) -> Iterator[Targets]:
    """Lend what makes empty stores; the server is started for it, and stopped after it."""
    if store == "postgresql":
        from benchmarks.database import Server

        from evals.security_server import ServerTarget

        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with folder as name, closing(Server(Path(name))) as server:
            yield lambda folder: closing(ServerTarget(folder, server))
    else:
        yield files if store == "file" else lambda folder: closing(target_of(parse_location(store), folder))


def files(folder: Path) -> AbstractContextManager[Target]:
    """Lend an empty target that is a file."""
    return closing(Target(folder))
