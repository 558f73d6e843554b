"""Waiting proposals as plain JSON values, and back.

Records inside are their canonical payloads, as text, so that what is approved is what is stored, byte
for byte.
"""

from __future__ import annotations

from typing import Any

from keepward.errors import Tampered
from keepward.model.codec import decode_record, encode_record
from keepward.model.commit import Step
from keepward.model.instant import from_micros, to_micros
from keepward.model.memory import Record
from keepward.model.proposal import Waiting
from keepward.model.receipt import Reason
from keepward.model.trust import Actor, ActorKind, Rights

#: Schema number of kept proposals.
PROPOSAL_SCHEMA = 1


def waiting_to_dict(item: Waiting) -> dict[str, Any]:
    """Return a proposal as JSON values; instants are whole microseconds."""
    return {
        "v": PROPOSAL_SCHEMA,
        "id": item.id,
        "tenant": item.tenant,
        "state": item.state,
        "proposer": {
            "kind": item.proposer.kind.value,
            "name": item.proposer.name,
            "rights": item.proposer.rights.value,
            "credential": item.proposer.credential,
        },
        "reason": item.reason,
        "reasons": [reason.as_dict() for reason in item.reasons],
        "steps": [
            {"op": step.op, "before": step.before and _text(step.before), "after": _text(step.after)}
            for step in item.steps
        ],
        "base": dict(sorted(item.base.items())),
        "digest": item.digest,
        "created_at": to_micros(item.created_at),
        "expires_at": to_micros(item.expires_at),
        "decided_by": item.decided_by,
        "decision": item.decision,
        "decided_at": item.decided_at and to_micros(item.decided_at),
        "told": item.told,
    }


def waiting_from_dict(fields: dict[str, Any]) -> Waiting:
    """Return the proposal that ``waiting_to_dict`` wrote.

    Raises:
        Tampered: it did not write this.
    """
    try:
        if fields["v"] != PROPOSAL_SCHEMA:
            raise Tampered("a proposal is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        proposer = fields["proposer"]
        decided_at = fields["decided_at"]
        return Waiting(
            id=fields["id"],
            tenant=fields["tenant"],
            state=fields["state"],
            proposer=Actor(
                kind=ActorKind(proposer["kind"]),
                name=proposer["name"],
                rights=Rights(proposer["rights"]),
                credential=proposer["credential"],
            ),
            reason=fields["reason"],
            reasons=tuple(Reason(**reason) for reason in fields["reasons"]),
            steps=tuple(
                Step(op=step["op"], before=_maybe(step["before"]), after=decode_record(step["after"].encode()))
                for step in fields["steps"]
            ),
            base=dict(fields["base"]),
            digest=fields["digest"],
            created_at=from_micros(fields["created_at"]),
            expires_at=from_micros(fields["expires_at"]),
            decided_by=fields["decided_by"],
            decision=fields["decision"],
            decided_at=None if decided_at is None else from_micros(decided_at),
            told=bool(fields["told"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        raise Tampered("a proposal in the queue is damaged; run `keepward verify`") from fault


def _text(record: Record) -> str:
    return encode_record(record).decode()


def _maybe(payload: str | None) -> Record | None:
    return None if payload is None else decode_record(payload.encode())
