"""What every part of the store is made of: a way to read one state of a tenant."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from keepward.store.seals import Sealer
from keepward.store.sql import Session

#: What no id begins with: the end of a range of ids that begin alike.
LAST = "\U0010ffff"


class Snapshot:
    """One state: of the store as it is when asked, or, of a writer, as its own transaction sees it."""

    _sealer: Sealer

    def _reading(self, tenant: str) -> AbstractContextManager[Session]:
        """Open a snapshot of a tenant that was held against what this machine has seen of it."""
        raise NotImplementedError

    def _everywhere(self) -> AbstractContextManager[Session]:
        """Open a snapshot of all tenants, for what is asked before a tenant is known and for an owner's tools."""
        raise NotImplementedError

    def _run(self, name: str, tenant: str, **values: Any) -> list[Any]:
        """Return all rows of a named statement."""
        with self._reading(tenant) as db:
            return db.run(name, tenant=tenant, **values).fetchall()


def between(prefix: str) -> dict[str, str]:
    """Return the range of ids that begin so."""
    return {"low": prefix, "high": prefix + LAST}
