"""The pipeline: every gate in its order, and one decision out of their verdicts.

Invariants
(1) Order: secrets, privacy, injection, ethics, shape, noise, gates of plug-ins, authority, confidence, duplicate,
    capacity.
(2) The strictest verdict decides; reasons stand in the order of the gates, so that the first names the
    earliest objection.
(3) A rewrite is what the gates behind it see. One that moves a memory to another tier takes back the
    authority gate's objection to the old tier and asks it anew.
(4) A gate that fails, or takes longer than its budget, holds the write; it never lets it through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from keepward.core.change import Revert
from keepward.core.commit import Reason
from keepward.core.memory import Record
from keepward.core.policy import Policy
from keepward.gates import content, state
from keepward.gates.authority import authority
from keepward.gates.gate_types import DuplicateMatch, Gate, GateContext, GateInput, Quarantine, Refuse, Verdict
from keepward.gates.validation import validate

logger = logging.getLogger(__name__)

#: The gates in order, by the name that stands in reasons.
GATES: tuple[tuple[str, Gate], ...] = (
    ("secrets", content.secrets),
    ("privacy", content.privacy),
    ("injection", content.injection),
    ("ethics", content.ethics),
    ("shape", validate),
    ("noise", content.noise),
    ("authority", authority),
    ("confidence", state.confidence),
    ("duplicate", state.duplicate),
    ("capacity", state.capacity),
)
#: How many of them judge content.
_CONTENT_GATE_COUNT = [name for name, _ in GATES].index("authority")
#: What a rollback passes: it brings back what the gates have already judged.
_REVERT_GATES = frozenset({"secrets", "authority", "capacity"})

#: Seconds of processor time that one gate may take for one change. Lengths are bounded before (see ``shape``), so
#: that none comes near it; what does is somebody's find.
GATE_BUDGET_S = 1.0

_CAPTURE_OFF = Reason(gate="policy", code="capture_off", detail="capture is switched off by policy")
_MEMORY_OFF = Reason(
    gate="policy",
    code="memory_off",
    detail="memory is switched off by policy: nothing was stored, and no receipt was kept",
)

Decision = Literal["allow", "quarantine", "refuse", "same"]
#: Decisions by the verdicts that lead to them, strictest first.
_DECISIONS: tuple[tuple[type[Verdict], Decision], ...] = (
    (Refuse, "refuse"),
    (DuplicateMatch, "same"),
    (Quarantine, "quarantine"),
)
#: The gates that compare a memory with others, after all that rewrite it.
_COMPARING_GATES = frozenset({"duplicate", "capacity"})


@dataclass(slots=True, kw_only=True)
class GateResult:
    """The decision on one case."""

    case: GateInput
    decision: Decision = "allow"
    reasons: list[Reason] = field(default_factory=list)
    #: Those of them for which a person has to decide.
    held: list[Reason] = field(default_factory=list)
    #: The memory that says the same, when the decision is ``same``.
    existing: Record | None = None
    #: What the last gates saw of the store.
    view: GateContext | None = None


def run_gates(
    case: GateInput,
    view: GateContext,
    policy: Policy,
    *,
    meter: Callable[[], float] = float,
    compare: Callable[[GateInput, GateContext], GateContext] | None = None,
    plugins: tuple[tuple[str, Gate], ...] = (),
) -> GateResult:
    """Pass a case through every gate, ``plugins`` before authority.

    ``meter`` returns the seconds of processor time used so far.
    ``compare`` adds to the view what the last gates compare with, for what those before them made of the case.
    """
    if not (policy.enabled and policy.capture):
        off = _CAPTURE_OFF if policy.enabled else _MEMORY_OFF
        return GateResult(case=case, view=view, decision="refuse", reasons=[off])
    found: dict[str, Verdict] = {}
    gates = (*GATES[:_CONTENT_GATE_COUNT], *plugins, *GATES[_CONTENT_GATE_COUNT:])
    for name, gate in gates:
        if isinstance(case.change, Revert) and name not in _REVERT_GATES:
            continue
        if name in _COMPARING_GATES and compare is not None:
            view = compare(case, view)
            compare = None
        verdict = _run_gate(name, gate, case, view, policy, meter)
        if verdict is None:
            continue
        found[name] = verdict
        tier, case = case.after.tier, _apply_verdict(case, verdict)
        if case.after.tier is not tier and isinstance(found.get("authority"), Refuse | Quarantine):
            del found["authority"]
            again = _run_gate("authority", authority, case, view, policy, meter)
            if again is not None:
                found["authority"], case = again, _apply_verdict(case, again)
        if name == "shape" and any(isinstance(each, Refuse) for each in found.values()):
            # Text without a usable form is not worth comparing with anything.
            break
    judged = GateResult(case=case, view=view)
    if not found:
        return judged
    verdicts = [found[name] for name, _ in gates if name in found]
    judged.reasons = [reason for each in verdicts for reason in each.reasons]
    judged.held = [reason for each in verdicts if isinstance(each, Quarantine) for reason in each.reasons]
    judged.existing = next((each.existing for each in verdicts if isinstance(each, DuplicateMatch)), None)
    for kind, decision in _DECISIONS:
        if any(isinstance(each, kind) for each in verdicts):
            judged.decision = decision
            break
    return judged


def _apply_verdict(case: GateInput, verdict: Verdict) -> GateInput:
    """Return the case as the gates after this verdict see it."""
    if isinstance(verdict, Refuse | DuplicateMatch):
        return case
    reason = case.reason if verdict.reason is None else verdict.reason
    return replace(case, after=verdict.after or case.after, reason=reason)


def _run_gate(
    name: str, gate: Gate, case: GateInput, view: GateContext, policy: Policy, meter: Callable[[], float]
) -> Verdict | None:
    begun = meter()
    try:
        verdict = gate(case, view, policy)
    except Exception:
        logger.exception("gate failed", extra={"action": "gate_failed", "gate": name})
        # Unread content may hold a secret: it must not even reach the queue.
        refuse = name in {"secrets", "privacy"}
        detail = "the gate failed; " + ("nothing was stored" if refuse else "a person has to decide")
        return (Refuse if refuse else Quarantine)(reasons=(Reason(gate=name, code="gate_failed", detail=detail),))
    spent = meter() - begun
    if spent <= GATE_BUDGET_S or isinstance(verdict, Refuse | DuplicateMatch):
        return verdict
    logger.warning("gate over budget", extra={"action": "gate_over_budget", "gate": name, "seconds": spent})
    late = Reason(gate=name, code="over_budget", detail="the gate took longer than it may; a person has to decide")
    if verdict is None:
        return Quarantine(reasons=(late,))
    return Quarantine(reasons=(*verdict.reasons, late), after=verdict.after, reason=verdict.reason)
