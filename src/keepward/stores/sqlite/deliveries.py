"""Deliveries: which memories went into which compiled contexts, so that this can be asked by memory.

Invariants
(1) Every row is computed from one compile receipt, which is sealed; rows can be dropped and written anew.
(2) A row counts only as far as its receipt says the same: whoever asks reads the receipt as well.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from keepward.model.journal import Fault
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.rows import Row
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")


def delivered(receipt: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return (memory id, version) of what a compile receipt put into its context, in order, each once."""
    pairs = ((item["id"], item["version"]) for section in receipt["sections"] for item in section["items"])
    return list(dict.fromkeys(pairs))


def write(connection: sqlite3.Connection, tenant: str, receipt_id: str, receipt: Mapping[str, Any]) -> None:
    """Write the rows of one compile receipt."""
    rows = [(tenant, memory_id, version, receipt_id) for memory_id, version in delivered(receipt)]
    connection.executemany(SQL["add_delivery"], rows)


def rebuild(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> None:
    """Write a tenant's rows anew from its receipts; one that does not match its seal has none."""
    connection.execute("DELETE FROM deliveries WHERE tenant = ?", (tenant,))
    connection.executemany(SQL["add_delivery"], _due(connection, sealer, tenant))


def check(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Iterator[Fault]:
    """Yield rows that are missing and rows that no receipt calls for, sorted."""
    due = set(_due(connection, sealer, tenant))
    held = {
        (tenant, *row)
        for row in connection.execute("SELECT memory_id, version, receipt FROM deliveries WHERE tenant = ?", (tenant,))
    }
    for row in sorted(due - held):
        yield Fault(check="deliveries", row=_name(row), detail="the row is missing; `rebuild` writes it")
    for row in sorted(held - due):
        yield Fault(check="deliveries", row=_name(row), detail="no receipt says so; `rebuild` removes it")


def _due(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Iterator[Row]:
    query = "SELECT id, kind, at, body, seal FROM receipts WHERE tenant = ? AND kind = 'compile' ORDER BY id"
    for receipt_id, kind, at, body, seal in connection.execute(query, (tenant,)):
        if not sealer.holds_row(seal, "receipts", tenant, receipt_id, kind, at, body):
            continue  # The receipts' own check names it.
        try:
            pairs = delivered(json.loads(body))
        except (ValueError, KeyError, TypeError):
            continue
        yield from ((tenant, memory_id, version, receipt_id) for memory_id, version in pairs)


def _name(row: Row) -> str:
    return f"deliveries {row[0]}/{row[1]}@{row[2]}/{row[3]}"
