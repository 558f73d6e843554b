"""What tools tell of memories: the keys of `present`, fewer of them, for readers who pay by the token.

Invariants
(1) A key means what it means in `present`; what is absent is left out.
(2) The text of a proposal that waits is shown to its proposer alone, and not where it was held as an instruction
    to the model: handed back to that model, it would have reached its aim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keepward import present
from keepward.model.commit import Reason
from keepward.model.proposal import Outcome, Waiting
from keepward.model.query import Hit

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record

_HIT = (
    "rank",
    "id",
    "text",
    "tier",
    "kind",
    "key",
    "subject",
    "scope",
    "trust",
    "source",
    "confidence",
    "version",
    "tags",
    "metadata",
    "speaker",
    "occurred_at",
    "created_at",
    "score",
    "weak",
)
#: Gates whose findings are not handed back with the text that they are about.
WITHHELD = frozenset({"injection"})
_SAID = {
    "committed": "committed",
    "duplicate": "already remembered; it was confirmed and nothing new was stored",
    "quarantined": "held for a person to review; until then nothing changes",
    "refused": "refused; nothing was stored but the receipt",
}


def bare(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that hold something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def hit(item: Hit) -> dict[str, Any]:
    """Return one recalled memory."""
    full = {**present.hit(item), "subject": item.memory.subject, "weak": item.weak or None}
    return bare({name: full[name] for name in _HIT})


def record(item: Record) -> dict[str, Any]:
    """Return a memory at one version, without what is empty."""
    return bare(present.record(item))


def reasons(found: Iterable[Reason]) -> list[str]:
    """Return reasons as sentences, each with the gate and the code that gave it."""
    return [f"{each.gate}: {each.detail} ({each.code})" for each in found]


def outcome(result: Outcome, notices: Iterable[str] = ()) -> tuple[dict[str, Any], str]:
    """Return what became of a write, as data and in words."""
    full = present.outcome(result)
    names = ("outcome", "id", "version", "tier", "kind", "key", "expires_at", "commit", "proposal", "receipt")
    data = bare({name: full[name] for name in names}) | {"reasons": reasons(result.reasons)}
    told = list(notices)
    if told:
        data["notices"] = told
    if result.redacted:
        data["redacted"] = list(result.redacted)
    lines = ["; ".join(filter(None, (_SAID[result.outcome], present.redaction(result.redacted))))]
    if result.outcome != "refused" and full["id"]:
        until = f", until {full['expires_at'][:16]} UTC" if full["expires_at"] else ""
        lines.append(f"memory {full['id']} version {full['version']} ({full['tier']} {full['kind']}{until})")
    if full["proposal"]:
        lines.append(f"proposal {full['proposal']}: a person decides with `keepward pending`")
    lines += [f"why: {each}" for each in data["reasons"]]
    lines += told
    lines.append(f"receipt {full['receipt']}")
    return data, "\n".join(lines)


def is_withheld(item: Waiting) -> bool:
    """Whether a waiting text is kept from its own proposer too; see (2)."""
    return any(reason.gate in WITHHELD for reason in item.reasons)


def waiting(memory: Memory, item: Waiting) -> dict[str, Any]:
    """Return a proposal of the caller's own."""
    changes = [
        bare(
            {
                "op": step.op,
                "id": step.after.id,
                "tier": step.after.tier.value,
                "kind": step.after.kind.value,
                "key": None if is_withheld(item) else step.after.key,
                "text": None if is_withheld(item) else step.after.text,
            }
        )
        for step in item.steps
    ]
    return bare(
        {
            "id": item.id,
            "state": item.state,
            "reason": None if is_withheld(item) else item.reason,
            "reasons": reasons(item.reasons),
            "changes": changes,
            "withheld": is_withheld(item) or None,
            "created_at": present.instant(item.created_at),
            "expires_at": present.instant(item.expires_at),
            "decided_by": item.decided_by,
            "decision": item.decision,
            "yours": item.proposer.is_same(memory.actor),
        }
    )
