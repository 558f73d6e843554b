"""Moving a store of the first format, in which every kind of thing had a table and three seals, to this one."""

from __future__ import annotations

from pathlib import Path

from keepward.errors import StoreUnavailable
from keepward.ports.world import Anchor
from keepward.store.sqlite import Connections


def upgraded(connections: Connections, anchor: Anchor | None, file: Path) -> None:
    """Move a store to this format, in one transaction."""
    raise StoreUnavailable("to be done")
