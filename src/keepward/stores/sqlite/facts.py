"""Counts for ``status``: what a tenant holds at an instant."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Any

from keepward.model.trust import Trust
from keepward.model.value import from_micros, to_micros
from keepward.stores.sql import load_queries

SQL = load_queries("keepward.stores.sqlite")
_BY = ("tier", "kind", "scope", "category", "content_type", "source", "trust")
#: What people and agents name themselves: of a scope that is out of sight not even the name of a category is told.
_CHOSEN = frozenset({"scope", "category"})
_RANKS = frozenset(int(rank) for rank in Trust)


def facts(connection: sqlite3.Connection, tenant: str, now: datetime, scopes: Collection[str] | None) -> dict[str, Any]:
    """Return JSON-safe counts at an instant; ``by_scope`` and ``by_category`` are of those ``scopes`` alone.

    ``by_status`` counts all memories, with expiry computed; every other ``by_*`` counts live ones.
    ``bloat`` is events for each live memory. Averages are over live memories, 0 where there are none.
    """
    values = {"tenant": tenant, "now": to_micros(now)}

    def one(name: str) -> Any:
        return connection.execute(SQL[name], values).fetchone()

    statuses: Counter[str] = Counter()
    by: dict[str, Counter[Any]] = {name: Counter() for name in _BY}
    live = importance = topics = sensitive = 0
    for status, *cells in connection.execute(SQL["facts_records"], values):
        statuses[status] += 1
        if status != "active":
            continue
        live += 1
        hidden = () if scopes is None or cells[2] in scopes else _CHOSEN
        for (name, counter), cell in zip(by.items(), cells, strict=False):
            if name not in hidden:
                counter[cell] += 1
        importance, topics, sensitive = importance + cells[7], topics + cells[8], sensitive + cells[9]
    by["trust"] = Counter({Trust(rank).label: count for rank, count in by["trust"].items() if rank in _RANKS})
    found: dict[str, Any] = {"by_status": dict(sorted(statuses.items()))}
    for name, counter in by.items():
        found[f"by_{name}"] = {cell: counter[cell] for cell in sorted(counter.keys() - {None})}
    uses, used = one("facts_usage")
    events, commits, journal_bytes = one("facts_journal")
    depth, oldest = one("facts_queue")
    embedded: dict[str | None, int] = dict(connection.execute(SQL["facts_vectors"], values))
    pending = embedded.pop(None, 0)
    blobs, blob_bytes, loose = one("facts_blobs")
    return found | {
        "live": live,
        "total": sum(statuses.values()),
        "retired": statuses["retired"],
        "events": events,
        "commits": commits,
        "bloat": round(events / live, 4) if live else 0.0,
        "quarantine": depth,
        "quarantine_oldest": None if oldest is None else from_micros(oldest).isoformat(),
        "topics": topics,
        "sensitive": sensitive,
        "average_importance": round(importance / live / 10_000, 4) if live else 0.0,
        "average_uses": round(uses / live, 4) if live else 0.0,
        "used": used,
        "vectors_pending": pending,
        "vectors_by_embedder": dict(sorted(embedded.items())),
        "blobs": {"count": blobs, "bytes": blob_bytes, "unattached": loose},
        "schema": connection.execute("PRAGMA user_version").fetchone()[0],
        "journal_bytes": journal_bytes,
    }
