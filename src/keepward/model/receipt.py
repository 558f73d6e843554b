"""Receipts: the immutable record of one decision, of whatever sort.

Invariants
(1) A receipt is stored in the same transaction as what it tells of; a decision without one did not happen.
(2) A receipt holds no secret: findings are names, positions and keyed fingerprints.
(3) A receipt that tells of memory content names ids and versions, and never repeats the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from keepward.model.value import Value

ReceiptKind = Literal[
    "commit",
    "duplicate",
    "refusal",
    "quarantine",
    "approval",
    "rejection",
    "rollback",
    "contain",
    "compile",
    "import",
    "job",
    "recall",
    "token",
    "erase",
    "lift",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Value):
    """Why a gate decided as it did, or why an item stayed out of a context."""

    #: Name of the gate or compiler step.
    gate: str
    #: Stable snake_case code.
    code: str
    #: One sentence for a person; never memory content.
    detail: str

    def as_dict(self) -> dict[str, str]:
        """Return the reason as plain values."""
        return {"gate": self.gate, "code": self.code, "detail": self.detail}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Value):
    """One decision."""

    id: str
    tenant: str
    kind: ReceiptKind
    at: datetime
    #: ``kind:name`` of who asked.
    actor: str
    #: Version of the policy that decided.
    policy: str
    #: Name of the head after the decision.
    head: str
    reasons: tuple[Reason, ...] = ()
    #: JSON-safe facts of this kind of receipt.
    facts: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as plain JSON values."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "kind": self.kind,
            "at": self.at.isoformat(),
            "actor": self.actor,
            "policy": self.policy,
            "head": self.head,
            "reasons": [reason.as_dict() for reason in self.reasons],
            **self.facts,
        }
