"""Short ways to say what became of a write; each fails with the reasons when it became something else."""

from __future__ import annotations

from typing import Any

from keepward import Committed, Outcome, Proposal, Quarantined, Record, Refused


def committed_record(outcome: Outcome | None) -> Record:
    """Return the newest of the records that were stored."""
    assert isinstance(outcome, Committed), outcome
    return outcome.records[-1]


def quarantined_item(outcome: Outcome | None) -> Proposal:
    """Return the proposal that waits."""
    assert isinstance(outcome, Quarantined), outcome
    return outcome.item


def refused(outcome: Outcome | None) -> set[str]:
    """Return the codes of the reasons of a refusal."""
    assert isinstance(outcome, Refused), outcome
    return {reason.code for reason in outcome.reasons}


def codes(outcome: Outcome) -> set[str]:
    """Return the codes of all reasons, whatever became of it."""
    return {reason.code for reason in outcome.reasons}


def brought_back(memory: Any, path: Any) -> Any:
    """Restore an export of one's own, by the digest of its plan."""
    from keepward.interchange import plan_restore_export, restore_export

    return restore_export(memory, path, plan_restore_export(memory, path).digest)
