"""Feedback and uses: what stands beside the journal for learning to read.

Invariants
(1) Feedback of a tenant is numbered from 1 without a gap; a second one of the same actor on the same receipt takes
    the place of the first, under its number.
(2) A row that does not match its seal teaches nothing and is never sealed anew.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from keepward.errors import Tampered
from keepward.model.query import Feedback
from keepward.model.trust import Trust
from keepward.model.value import from_micros, to_micros
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.beside import Ledger
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
_log = logging.getLogger(__name__)


def put_feedback(connection: sqlite3.Connection, sealer: Sealer, ledger: Ledger, given: Feedback) -> Feedback:
    """Keep feedback; return it with its number.

    Raises:
        Tampered: the earlier feedback that it would replace does not match its seal.
    """
    asked = {"tenant": given.tenant, "receipt": given.receipt, "actor": given.actor}
    row = connection.execute(SQL["feedback_on"], asked).fetchone()
    old = None
    if row is None:
        (newest,) = connection.execute(SQL["feedback_count"], {"tenant": given.tenant}).fetchone()
        numbered = replace(given, n=newest + 1)
    else:
        n, at, body, old = row
        if not sealer.holds_row(old, "feedback", given.tenant, n, at, given.receipt, given.actor, body):
            raise Tampered("the earlier feedback on this receipt does not match its seal; run `keepward verify`")
        numbered = replace(given, n=n)
    told = {"used": list(given.used), "ignored": list(given.ignored), "trust": given.trust.label}
    body = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    values = (given.tenant, numbered.n, to_micros(given.at), given.receipt, given.actor, body)
    seal = sealer.row("feedback", *values)
    connection.execute(SQL["set_feedback"], (*values, seal))
    ledger.turn("feedback", given.tenant, old, seal)
    return numbered


def feedback(connection: sqlite3.Connection, sealer: Sealer, tenant: str, limit: int) -> list[Feedback]:
    """Return the newest feedback, oldest first, without what does not match its seal."""
    found = []
    for n, at, receipt, actor, body, seal in connection.execute(SQL["feedback"], {"tenant": tenant, "limit": limit}):
        if not sealer.holds_row(seal, "feedback", tenant, n, at, receipt, actor, body):
            _log.warning("feedback %s does not match its seal and was left out", n, extra={"action": "damaged"})
            continue
        told = json.loads(body)
        found.append(
            Feedback(
                tenant=tenant,
                n=n,
                at=from_micros(at),
                receipt=receipt,
                actor=actor,
                # A row without it is of unknown origin, and so of the least trust.
                trust=Trust[told.get("trust", "unknown").upper()],
                used=tuple(told["used"]),
                ignored=tuple(told["ignored"]),
            )
        )
    return found[::-1]


def feedback_count(connection: sqlite3.Connection, tenant: str) -> int:
    """Return the number of the newest feedback, 0 for none."""
    (newest,) = connection.execute(SQL["feedback_count"], {"tenant": tenant}).fetchone()
    return int(newest)


def unlearned(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> dict[str, int]:
    """Return, by memory id in order, uses that importance has not learned from yet."""
    return {
        memory_id: count - learned
        for memory_id, count, last, learned, seal in connection.execute(SQL["unlearned"], {"tenant": tenant})
        if sealer.holds_row(seal, "usage", tenant, memory_id, count, last, learned)
    }


def learn_uses(
    connection: sqlite3.Connection, sealer: Sealer, ledger: Ledger, tenant: str, uses: Mapping[str, int]
) -> None:
    """Note that importance has learned from so many more uses of each memory."""
    rows = connection.execute(SQL["usage"], {"tenant": tenant, "ids": json.dumps(list(uses))}).fetchall()
    fresh = []
    for memory_id, count, last, learned, seal in rows:
        if sealer.holds_row(seal, "usage", tenant, memory_id, count, last, learned):
            values = (tenant, memory_id, count, last, min(count, learned + uses[memory_id]))
            fresh.append((*values, sealer.row("usage", *values)))
            ledger.turn("usage", tenant, seal, fresh[-1][-1])
    connection.executemany(SQL["set_usage"], fresh)
