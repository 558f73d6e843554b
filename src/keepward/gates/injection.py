"""The injection gate: orders to the model that pose as memory wait for a person.

Unmistakable forms are held whoever sends them. Softer wording is held only from origins below the
agent's own, since origin decides and wording only helps; the turns of a transcript are exempt from that.
"""

from __future__ import annotations

from keepward.gates.detect import injection
from keepward.gates.fields import whole
from keepward.gates.verdict import Case, Quarantine, Verdict, View
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Record, Tier
from keepward.model.policy import Policy
from keepward.model.trust import Trust


def softly_worded_counts(record: Record) -> bool:
    """Whether soft wording is enough to hold a memory: its origin is below the agent's own.

    A transcript's turn is what a named person said to another; "if you ever want to, call me" is speech there.
    """
    speech = record.kind is Kind.EVENT and record.tier is Tier.EPISODIC and record.speaker is not None
    return record.trust < Trust.AGENT and not speech


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Hold what reads like an instruction to the model."""
    del view, policy
    everything = whole(case)
    if injection.calm(everything):
        return None
    soft = softly_worded_counts(case.after)
    codes = sorted(
        {
            finding.detector
            for text in {case.after.text, everything}
            for finding in injection.scan(text)
            if soft or finding.certainty == "certain"
        }
    )
    if not codes:
        return None
    return Quarantine(
        reasons=tuple(
            Reason(
                gate="injection",
                code=code,
                detail=f"the text reads like an instruction to the model ({code}); a person has to decide",
            )
            for code in codes
        )
    )
