"""How often memories were used, and which contexts held them.

Counts of uses are documents, a sealed row a memory; which contexts held a memory is a row of ``deliveries``. What one
context holds is one sealed row at first, under the id of its receipt, and is spread over those rows later: a row for
each of its hundred memories took longer than to compile it.

Invariants
(1) A context counts from its transaction on, spread or not: every read here adds what is not spread yet.
(2) Contexts are spread when importance learns, before anything is erased, and when there are ``MOST`` of them.
(3) ``deliveries`` is computed, from compile receipts: it can be dropped and written anew, and counts only as far as the
    receipts say the same.
(4) A count that does not match its seal stays as it is: it must not get a good one. Such a context counts nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from keepward.errors import Tampered
from keepward.model.commit import Receipt
from keepward.model.value import from_micros, to_micros
from keepward.store.documents import Document, DocumentReads, DocumentWrites, body_of, found
from keepward.store.rows import listed
from keepward.store.seals import Sealer
from keepward.store.sql import Session

#: Contexts that wait to be spread.
MOST = 256
#: Ids up to which a context is read only if it names one of them.
FEW = 8
_NEW = "new"
_CONTEXT = "context"
_log = logging.getLogger(__name__)


class Held(NamedTuple):
    """What a context held that is not spread yet."""

    document: Document
    #: Id, version, and whether it counts as a use.
    items: list[tuple[str, int, bool]]


class UseReads(DocumentReads):
    """What may be asked about uses; a part of ``Reader``."""

    def usage(self, tenant: str, ids: Iterable[str]) -> dict[str, tuple[int, datetime]]:
        """Return (count, last use) by id, of any number of ids."""
        with self._reading(tenant) as db:
            counted = used(db, self._sealer, tenant, frozenset(ids))
        return {name: (count, from_micros(last)) for name, (count, last) in sorted(counted.items())}

    def unlearned(self, tenant: str) -> dict[str, int]:
        """Return, by memory id in order, uses that importance has not learned from."""
        with self._reading(tenant) as db:
            rows = found(db, self._sealer, "documents_in", tenant=tenant, kind="usage", state=_NEW)
            uses = Counter({each.id: _count(each) - _count(each, "learned") for each in rows})
            for held in unspread(db, self._sealer, tenant):
                uses.update(name for name, _, counts in held.items if counts)
        return dict(sorted(uses.items()))

    def deliveries(self, tenant: str, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (memory id, version, receipt id) of the compiled contexts that held any of these memories.

        Oldest receipt first, then by memory and version. The receipt itself is the proof.
        """
        wanted = frozenset(ids)
        with self._reading(tenant) as db:
            rows = {(row[2], row[0], row[1]) for row in db.run("deliveries", tenant=tenant, ids=listed(ids))}
            for held in unspread(db, self._sealer, tenant, wanted):
                rows.update((held.document.id, name, version) for name, version, _ in held.items if name in wanted)
        return [(name, version, receipt) for receipt, name, version in sorted(rows)]


class UseWrites(UseReads, DocumentWrites):
    """What a writer can do about uses."""

    def put_receipt(self, receipt: Receipt, *, counts: bool = True) -> None:
        """Keep a receipt of what was decided without a commit, and of a context that it held what it held.

        ``counts`` False keeps the context and counts no use of its memories. Those of commits: see ``Stage.receipt``.

        Raises:
            Conflict: there is one by that id.
            InvalidInput: its facts are not JSON.
        """
        super().put_receipt(receipt)
        items = _items(receipt.facts) if receipt.kind == "compile" else []
        if not items:
            return
        body = body_of({"held": [(name, version, counts and used) for name, version, used in items]})
        held = Document(receipt.tenant, "usage", receipt.id, _CONTEXT, to_micros(receipt.at), None, body)
        self._put(held, new=True, anyway=True)
        if self._run("unspread", receipt.tenant)[0][0] >= MOST:
            self.spread(receipt.tenant)

    def count_use(self, tenant: str, ids: Sequence[str], at: datetime) -> None:
        """Count one use of each memory, beside the journal."""
        counted, last = Counter(ids), dict.fromkeys(ids, to_micros(at))
        self._turn(tenant, counted, lambda count, learned, times: (count + times, learned), last, make=True)

    def learn_uses(self, tenant: str, uses: Mapping[str, int]) -> None:
        """Note that importance has learned from so many more uses of each memory."""
        self.spread(tenant)
        self._turn(tenant, uses, lambda count, learned, more: (count, min(count, learned + more)), {}, make=False)

    def forget_uses(self, tenant: str, ids: Sequence[str]) -> None:
        """Drop the counts of memories; that contexts held them, their receipts go on saying."""
        self.spread(tenant)
        for row in self._run("documents_by_id", tenant, kind="usage", ids=listed(ids)):
            self._drop(Document._make(row))

    def spread(self, tenant: str) -> None:
        """Write what contexts held to the rows of the memories, and drop the rows of these contexts."""
        contexts = list(unspread(self._db, self._sealer, tenant))
        if not contexts:
            return
        counted: Counter[str] = Counter()
        last: dict[str, int] = {}
        # The oldest comes first.
        for document, items in contexts:
            names = [name for name, _, counts in items if counts]
            counted.update(names)
            last |= dict.fromkeys(names, document.at)
        self._turn(tenant, counted, lambda count, learned, times: (count + times, learned), last, make=True)
        rows = {(tenant, name, version, each.document.id) for each in contexts for name, version, _ in each.items}
        self._db.many("add_delivery", sorted(rows))
        self._db.run("drop_documents", tenant=tenant, kind="usage", ids=listed(each.document.id for each in contexts))
        state = self.state(tenant)
        for each in contexts:
            state.turn(self._sealer, "usage", each.document.seal, None)

    def _turn(self, tenant: str, given: Mapping[str, int], turned: Any, last: Mapping[str, int], *, make: bool) -> None:
        """Change counts of uses, see (4); ``last`` is when they were used last, in microseconds."""
        state = self.state(tenant)
        rows = self._db.run("documents_by_id", tenant=tenant, kind="usage", ids=listed(given)).fetchall()
        before = {row[2]: Document._make(row) for row in rows}
        fresh = []
        for name, number in given.items():
            old = before.get(name)
            if (old is None and not make) or (old is not None and not old.holds(self._sealer)):
                continue
            told = (0, 0) if old is None else (_count(old), _count(old, "learned"))
            count, learned = turned(*told, number)
            body = body_of({"count": count, "learned": learned})
            at = max(last.get(name, 0), 0 if old is None else old.at)
            new = Document(tenant, "usage", name, _NEW if count > learned else None, at, None, body)
            fresh.append(new.sealed(self._sealer))
            state.turn(self._sealer, "usage", old and old.seal, fresh[-1].seal)
        self._db.many("put_document", fresh)


def used(db: Session, sealer: Sealer, tenant: str, ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return (count, last use in microseconds since 1970) by id of those memories that were used."""
    rows = found(db, sealer, "documents_by_id", tenant=tenant, kind="usage", ids=listed(ids))
    counted = {each.id: (_count(each), each.at) for each in rows if each.state != _CONTEXT}
    for document, items in unspread(db, sealer, tenant, ids):
        for name in (name for name, _, counts in items if counts and name in ids):
            count, last = counted.get(name, (0, 0))
            counted[name] = count + 1, max(last, document.at)
    return counted


def unspread(db: Session, sealer: Sealer, tenant: str, ids: Collection[str] | None = None) -> Iterator[Held]:
    """Yield what contexts held that is not spread yet, oldest first; only of those that may name one of few ids.

    One that does not hold is left out and logged.
    """
    sought = [body_of(name) for name in ids] if ids is not None and len(ids) <= FEW else None
    for row in db.stream("documents_in", tenant=tenant, kind="usage", state=_CONTEXT):
        document = Document._make(row)
        if sought is not None and not any(name in document.body for name in sought):
            continue
        try:
            if not document.holds(sealer):
                raise Tampered("its seal does not hold")
            items = [(str(name), int(version), bool(counts)) for name, version, counts in document.json()["held"]]
        except (Tampered, KeyError, TypeError, ValueError) as fault:
            _log.warning("the uses of context %s were left out: %s", row[2], fault, extra={"action": "damaged"})
            continue
        yield Held(document, items)


def delivered(receipt: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return (memory id, version) of what a compile receipt put into its context, in order, each once."""
    return list(dict.fromkeys((name, version) for name, version, _ in _items(receipt)))


def due_deliveries(db: Session, sealer: Sealer, tenant: str) -> Iterator[tuple[str, str, int, str]]:
    """Yield the rows of ``deliveries`` that a tenant's receipts call for; one that does not hold calls for none."""
    for document in found(db, sealer, "documents", tenant=tenant, kind="receipts"):
        try:
            body = document.json()
            pairs = delivered(body) if body["kind"] == "compile" else []
        except (Tampered, KeyError, TypeError):
            continue
        yield from ((tenant, memory_id, version, document.id) for memory_id, version in pairs)


def _items(receipt: Mapping[str, Any]) -> list[tuple[str, int, bool]]:
    items = (item for section in receipt["sections"] for item in section["items"])
    return [(item["id"], item["version"], not item.get("weak", False)) for item in items]


def _count(document: Document, name: str = "count") -> int:
    """Return a number of a count of uses; 0 where it has none, which only a store without a key lets through."""
    number = document.json().get(name, 0)
    return number if isinstance(number, int) else 0
