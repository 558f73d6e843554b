"""Present: values as plain JSON values; see ``model.plain``."""

from __future__ import annotations

from keepward.model.plain import (
    changed,
    commit,
    difference,
    hit,
    instant,
    outcome,
    plain,
    reasons,
    recall,
    record,
    step,
    waiting,
)
from keepward.model.value import counted, redaction

__all__ = [
    "changed",
    "commit",
    "counted",
    "difference",
    "hit",
    "instant",
    "outcome",
    "plain",
    "reasons",
    "recall",
    "record",
    "redaction",
    "step",
    "waiting",
]
