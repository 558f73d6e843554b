"""Short ways to say what became of a write; each fails with the reasons when it became something else."""

from __future__ import annotations

from keepward import Committed, Outcome, Quarantined, Record, Refused, Waiting


def kept(outcome: Outcome | None) -> Record:
    """Return the newest of the records that were stored."""
    assert isinstance(outcome, Committed), outcome
    return outcome.records[-1]


def held(outcome: Outcome | None) -> Waiting:
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
