"""The pipeline: all gates in order, and one decision made of their verdicts.

The order is secrets, privacy, injection, ethics, shape, noise, gates of plug-ins, authority, confidence, duplicate,
capacity. The strictest verdict decides; reasons are in the order of the gates. Later gates see the rewritten record. If
a rewrite moves a memory to another tier, the authority gate is run again for the new tier. A gate that fails, or
exceeds its time budget, quarantines the write or refuses it; it never lets the write pass.
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

#: The gates in order, with the name that reasons contain.
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
#: Number of gates that check content.
_CONTENT_GATE_COUNT = [name for name, _ in GATES].index("authority")
#: The gates of a rollback: the others have already checked the restored content.
_REVERT_GATES = frozenset({"secrets", "authority", "capacity"})

#: Seconds of processor time that one gate may take for one change. Lengths are limited first (see ``shape``), so a gate
#: exceeds the budget only on a text that attacks it.
GATE_BUDGET_S = 1.0

_CAPTURE_OFF = Reason(gate="policy", code="capture_off", detail="capture is switched off by policy")
_MEMORY_OFF = Reason(
    gate="policy",
    code="memory_off",
    detail="memory is switched off by policy: nothing was stored, not even a receipt",
)

Decision = Literal["allow", "quarantine", "refuse", "same"]
#: Decision of each verdict, strictest first.
_DECISIONS: tuple[tuple[type[Verdict], Decision], ...] = (
    (Refuse, "refuse"),
    (DuplicateMatch, "same"),
    (Quarantine, "quarantine"),
)
#: The gates that compare a memory with others; they run after all gates that rewrite it.
_COMPARING_GATES = frozenset({"duplicate", "capacity"})


@dataclass(slots=True, kw_only=True)
class GateResult:
    """The decision on one case."""

    case: GateInput
    decision: Decision = "allow"
    reasons: list[Reason] = field(default_factory=list)
    #: The reasons that need a reviewer's decision.
    review_reasons: list[Reason] = field(default_factory=list)
    #: The memory that says the same, if the decision is ``same``.
    existing: Record | None = None
    #: The context of the last gates.
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
    """Run every gate on a case, ``plugins`` before authority.

    ``meter`` returns the seconds of processor time used so far. ``compare`` adds the memories to compare with to the
    view, after the earlier gates have rewritten the case.
    """
    if not (policy.enabled and policy.capture):
        off = _CAPTURE_OFF if policy.enabled else _MEMORY_OFF
        return GateResult(case=case, view=view, decision="refuse", reasons=[off])
    verdicts_by_gate: dict[str, Verdict] = {}
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
        verdicts_by_gate[name] = verdict
        tier, case = case.after.tier, _apply_verdict(case, verdict)
        if case.after.tier is not tier and isinstance(verdicts_by_gate.get("authority"), Refuse | Quarantine):
            del verdicts_by_gate["authority"]
            again = _run_gate("authority", authority, case, view, policy, meter)
            if again is not None:
                verdicts_by_gate["authority"], case = again, _apply_verdict(case, again)
        if name == "shape" and any(isinstance(verdict, Refuse) for verdict in verdicts_by_gate.values()):
            # The later gates could not process a text of the wrong shape.
            break
    result = GateResult(case=case, view=view)
    verdicts = [verdicts_by_gate[name] for name, _ in gates if name in verdicts_by_gate]
    for verdict in verdicts:
        result.reasons += verdict.reasons
        if isinstance(verdict, Quarantine):
            result.review_reasons += verdict.reasons
        if isinstance(verdict, DuplicateMatch):
            result.existing = verdict.existing
    for kind, decision in _DECISIONS:
        if any(isinstance(verdict, kind) for verdict in verdicts):
            result.decision = decision
            break
    return result


def _apply_verdict(case: GateInput, verdict: Verdict) -> GateInput:
    """Return the case for the gates after this verdict."""
    if isinstance(verdict, Refuse | DuplicateMatch):
        return case
    reason = case.reason if verdict.reason is None else verdict.reason
    return replace(case, after=verdict.after or case.after, reason=reason)


def _run_gate(
    name: str, gate: Gate, case: GateInput, view: GateContext, policy: Policy, meter: Callable[[], float]
) -> Verdict | None:
    started = meter()
    try:
        verdict = gate(case, view, policy)
        if verdict is not None and not isinstance(verdict, Verdict):
            raise TypeError("a gate returns a verdict or None")
    except KeyboardInterrupt:
        raise
    except BaseException:
        # A plug-in may raise SystemExit, which must not end the program.
        logger.exception("gate failed", extra={"action": "gate_failed", "gate": name})
        # Content that was not checked may contain a secret, so it must not even reach the review queue.
        refuse = name in {"secrets", "privacy"}
        detail = "the gate failed; " + ("nothing was stored" if refuse else "a reviewer must decide")
        return (Refuse if refuse else Quarantine)(reasons=(Reason(gate=name, code="gate_failed", detail=detail),))
    seconds = meter() - started
    if seconds <= GATE_BUDGET_S or isinstance(verdict, Refuse | DuplicateMatch):
        return verdict
    logger.warning("gate over budget", extra={"action": "gate_over_budget", "gate": name, "seconds": seconds})
    late = Reason(gate=name, code="over_budget", detail="the gate exceeded its time budget; a reviewer must decide")
    if verdict is None:
        return Quarantine(reasons=(late,))
    return Quarantine(reasons=(*verdict.reasons, late), after=verdict.after, reason=verdict.reason)
