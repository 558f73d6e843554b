"""How often memories were used, and which contexts delivered them.

Counts of uses are documents, one sealed row for each memory. ``deliveries`` has a row for each memory that a context
delivered. A context writes both in its own transaction.

Invariants
(1) ``deliveries`` is computed from compile receipts: it can be deleted and rebuilt, and counts only as far as the
    receipts agree.
(2) A count whose seal does not match is never rewritten, because that would give it a valid seal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from keepward.core.commit import Receipt, items_in
from keepward.core.value import from_micros, to_micros
from keepward.errors import Tampered
from keepward.storage.documents import DocumentReads, DocumentWrites, StoredDocument, encode_body, select_verified
from keepward.storage.rows import json_array
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection

_UNLEARNED = "new"


class UseReads(DocumentReads):
    """Reads of uses; a part of ``StoreReader``."""

    def usage(self, tenant: str, ids: Iterable[str]) -> dict[str, tuple[int, datetime]]:
        """Return (count, last use) by id, for any number of ids."""
        with self._reading(tenant) as db:
            counted = use_counts(db, self._sealer, tenant, frozenset(ids))
        return {name: (count, from_micros(last)) for name, (count, last) in sorted(counted.items())}

    def ask_about(self, tenant: str, memory_id: str) -> None:
        """Let the answers to ``records``, ``usage`` and ``children`` of a memory come with that to the next read."""
        self.ask_ahead("records_by_id", tenant, ids=json_array([memory_id]))
        self.ask_ahead("documents_by_id", tenant, pages=True, kind="usage", ids=json_array([memory_id]))
        self.ask_ahead("linked", tenant, kind="lineage", ids=json_array([memory_id]))

    def unlearned_uses(self, tenant: str, ids: Collection[str] | None = None) -> dict[str, int]:
        """Return, by memory id in order, the uses that importance has not learned from, of all or of some memories."""
        with self._reading(tenant) as db:
            if ids is None:
                rows = select_verified(db, self._sealer, "documents_in", tenant=tenant, kind="usage", state=_UNLEARNED)
            else:
                names = json_array(ids)
                rows = select_verified(db, self._sealer, "documents_by_id", tenant=tenant, kind="usage", ids=names)
            counts = {row.id: _counts(row) for row in rows if row.state == _UNLEARNED}
        return {name: count - learned for name, (count, learned) in sorted(counts.items())}

    def deliveries(self, tenant: str, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (memory id, version, receipt id) of the compiled contexts that delivered any of these memories.

        Oldest receipt first, then by memory and version. The receipt itself is the proof.
        """
        rows = self._run("deliveries", tenant, ids=json_array(ids))
        return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


class UseWrites(UseReads, DocumentWrites):
    """Writes of uses; a part of ``UnitOfWork``."""

    def put_receipt(self, receipt: Receipt) -> None:
        """Store the receipt of a decision without a commit, and for a context the memories that it delivered.

        For receipts of commits see ``PendingCommit.receipt``.

        Raises:
            Conflict: a receipt with this id exists.
            InvalidInput: its facts are not JSON.
        """
        super().put_receipt(receipt)
        if receipt.kind == "compile":
            self._db.run_many("add_delivery", _deliveries(receipt.tenant, receipt.id, receipt.facts))

    def count_uses(self, tenant: str, uses: Mapping[str, tuple[int, datetime]]) -> None:
        """Count uses of memories without a commit: by id how many, and when the last one was."""
        counted = {name: count for name, (count, _) in uses.items()}
        last = {name: to_micros(at) for name, (_, at) in uses.items()}
        self._update_counts(tenant, counted, lambda count, learned, times: (count + times, learned), last, make=True)

    def learn_uses(self, tenant: str, uses: Mapping[str, int]) -> None:
        """Record how many more uses of each memory importance has learned from."""
        self._update_counts(
            tenant, uses, lambda count, learned, more: (count, min(count, learned + more)), {}, make=False
        )

    def _update_counts(
        self, tenant: str, numbers: Mapping[str, int], change: Any, last: Mapping[str, int], *, make: bool
    ) -> None:
        """Change counts of uses, see (2); ``last`` is the last use in microseconds."""
        with self._reading(tenant) as db:
            known = db.run("documents_by_id", tenant=tenant, kind="usage", ids=json_array(numbers))
        state, rows = self.state(tenant), known.fetchall()
        before = {row[2]: StoredDocument._make(row) for row in rows}
        fresh = []
        for name, number in numbers.items():
            old = before.get(name)
            if (old is None and not make) or (old is not None and not old.has_valid_seal(self._sealer)):
                continue
            old_counts = (0, 0) if old is None else _counts(old)
            count, learned = change(*old_counts, number)
            body = encode_body({"count": count, "learned": learned})
            at = max(last.get(name, 0), 0 if old is None else old.at)
            new = StoredDocument(
                tenant, "usage", name, _UNLEARNED if count > learned else None, None, at, None, None, body
            )
            fresh.append(new.sealed(self._sealer))
            state.replace_document(self._sealer, "usage", old and old.seal, fresh[-1].seal)
        self._db.run_many("put_document", fresh)


def use_counts(db: Connection, sealer: Sealer, tenant: str, ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return (count, last use in microseconds since 1970) by id of the used memories."""
    rows = select_verified(db, sealer, "documents_by_id", tenant=tenant, kind="usage", ids=json_array(ids))
    return {row.id: (_counts(row)[0], row.at) for row in rows}


def project_deliveries(db: Connection, sealer: Sealer, tenant: str) -> Iterator[tuple[str, str, int, str]]:
    """Yield the rows of ``deliveries`` that result from a tenant's receipts; a damaged receipt results in none."""
    for document in select_verified(db, sealer, "documents", tenant=tenant, kind="receipts"):
        yield from deliveries_of(document)


def deliveries_of(receipt: StoredDocument) -> list[tuple[str, str, int, str]]:
    """Return the rows of ``deliveries`` that result from a receipt; none for a damaged one."""
    try:
        body = receipt.json()
        return _deliveries(receipt.tenant, receipt.id, body) if body["kind"] == "compile" else []
    except (Tampered, KeyError, TypeError):
        return []


def _deliveries(tenant: str, receipt_id: str, facts: Mapping[str, Any]) -> list[tuple[str, str, int, str]]:
    return list(dict.fromkeys((tenant, item["id"], item["version"], receipt_id) for item in items_in(facts)))


def _counts(document: StoredDocument) -> tuple[int, int]:
    """Return the uses that a document counts, and how many of them importance has learned from."""
    body = document.json()
    return body["count"], body["learned"]
