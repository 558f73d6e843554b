"""Short ways to make records, stages, receipts and proposals for tests of stores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from keepward.core.commit import CommitDetails, Reason, Receipt, Step
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import Actor, Trust
from keepward.core.proposal import Proposal, digest_of
from keepward.ports.store import Features, PendingCommit
from keepward.ports.world import IdSource

from .clock import START
from .ids import CountingIds


class RecordFactory:
    """Makes things with ids of its own, at one instant."""

    def __init__(self, ids: IdSource | None = None, now: datetime = START) -> None:
        self.ids = ids or CountingIds()
        self.now = now

    def record(self, text: str = "tea is in the left cupboard", **fields: Any) -> Record:
        """Return a first version of an archival fact, with other fields as named."""
        values: dict[str, Any] = {
            "id": self.ids.new_id(self.now),
            "version": 1,
            "tier": Tier.ARCHIVAL,
            "kind": Kind.FACT,
            "text": text,
            "scope": "/",
            "source": "operator",
            "trust": Trust.OWNER,
            "confidence": 1.0,
            "importance": 0.5,
            "author": "operator:owner",
            "created_at": self.now,
            "reinforced_at": self.now,
        }
        return Record(**(values | fields))

    def revised(self, record: Record, **fields: Any) -> Record:
        """Return the next version, with fields as named."""
        return replace(record, version=record.version + 1, updated_at=self.now, **fields)

    def features(self, text: str, **fields: Any) -> Features:
        """Return features whose digest and marks follow from the text alone."""
        words = text.lower().split()
        marks = tuple(sorted({int.from_bytes(_sha(word)[:8], "big", signed=True) for word in words}))
        values: dict[str, Any] = {
            "terms": " ".join(words).encode(),
            "digest": _sha(" ".join(words))[:16],
            "marks": marks,
        }
        return Features(**(values | fields))

    def stage(self, *records: Record, op: str | None = None, **fields: Any) -> PendingCommit:
        """Return a commit that inserts first versions and replaces later ones."""
        steps = tuple(
            Step(op=op or ("insert" if each.version == 1 else "replace"), before=None, after=each) for each in records
        )
        first: dict[str, int] = {}
        for each in records:
            first.setdefault(each.id, each.version - 1)
        values: dict[str, Any] = {
            "commit_id": self.ids.new_id(self.now),
            "at": self.now,
            "kind": "write",
            "actor_kind": "operator",
            "details": self.details(),
            "steps": steps,
            "features": tuple(self.features(each.text) for each in records),
            "base": first,
            "salts": tuple(self.ids.salt() for _ in range(len(records) + 1)),
        }
        return PendingCommit(**(values | fields))

    def details(self) -> CommitDetails:
        """Return the details of a commit by the operator, with a receipt of its own."""
        return CommitDetails(
            actor="operator:owner", reason="said so", receipt=self.ids.new_id(self.now), policy="0" * 16
        )

    def receipt(self, tenant: str, receipt_id: str | None = None, **facts: Any) -> Receipt:
        """Return a receipt."""
        return Receipt(
            id=receipt_id or self.ids.new_id(self.now),
            tenant=tenant,
            kind="commit",
            at=self.now,
            actor="operator:owner",
            policy="0" * 16,
            head="1:0000000000000000",
            reasons=(Reason(gate="shape", code="fine", detail="It is well formed."),),
            facts=facts,
        )

    def context(self, tenant: str, *held: str, weak: Sequence[str] = ()) -> Receipt:
        """Return the receipt of a context that held some memories at their first version."""
        items = [{"id": name, "version": 1, "weak": name in weak} for name in held]
        return replace(self.receipt(tenant, sections=[{"name": "recalled", "items": items}]), kind="compile")

    def waiting(self, tenant: str, records: Sequence[Record], **fields: Any) -> Proposal:
        """Return a proposal that waits for a person."""
        steps = tuple(Step(op="insert", before=None, after=each) for each in records)
        base = {each.id: 0 for each in records}
        values: dict[str, Any] = {
            "id": self.ids.new_id(self.now),
            "tenant": tenant,
            "state": "pending",
            "proposer": Actor.agent("orion"),
            "reason": "noticed it",
            "reasons": (Reason(gate="authority", code="needs_approval", detail="Core memory needs a person."),),
            "steps": steps,
            "base": base,
            "digest": digest_of(steps, base),
            "created_at": self.now,
            "expires_at": self.now + timedelta(days=30),
        }
        return Proposal(**(values | fields))


def _sha(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
