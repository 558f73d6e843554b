"""Asking the person in the chat: what was held may be put to them where policy says so.

Invariants
(1) Policy decides, per tier, and says no unless the owner says otherwise. Whatever it says, the identity, texts from
    sources below the agent's own, and what was held as an order to the model, as a secret or by a rule of the
    owner's are decided in the review queue alone.
(2) The person decides through a handle that is not the agent's and that may decide; the agent's cannot. Their answer
    is bound to the digest of what they were shown, with every invisible character written out.
(3) Anything but a plain approval or rejection leaves the proposal where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keepward.engine.view import WITHHELD
from keepward.errors import KeepwardError
from keepward.mcp.tool import Answer
from keepward.mcp.tools import outcome, reasons
from keepward.model.memory import CORE_BLOCKS, Kind
from keepward.model.proposal import Outcome, Waiting
from keepward.model.trust import Trust, trust_of

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.commit import Step

APPROVE, REJECT, LATER = "approve", "reject", "decide later"
#: The form that the person fills in.
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve stores exactly what is shown; reject discards it; otherwise it waits.",
            "enum": [APPROVE, REJECT, LATER],
        }
    },
    "required": ["decision"],
}
#: Gates whose holds a person in the chat may decide on.
_GATES = frozenset({"authority", "confidence", "shape", "duplicate", "noise"})
#: Longest text that is shown in a chat; what is longer is read where there is room for it.
_SHOWN = 4_000


def askable(memory: Memory, item: Waiting) -> bool:
    """Whether a held proposal of this handle's may be put to the person in the chat; see (1)."""
    tiers = memory.policy.chat_approval
    if not tiers or item.state != "pending" or not item.proposer.is_same(memory.actor):
        return False
    held = [reason for reason in item.reasons if reason.code != "untrusted_origin"]
    if len(held) != len(item.reasons) or not {reason.gate for reason in held} <= _GATES:
        return False
    if len(question(memory, item)) > _SHOWN:
        return False
    return all(_fits(memory, item, step) for step in item.steps)


def _fits(memory: Memory, item: Waiting, step: Step) -> bool:
    for side in (step.before, step.after):
        if side is None:
            continue
        # Nobody approves what is not shown.
        if side.tier not in memory.policy.chat_approval or side.text == WITHHELD:
            return False
        if side.kind is Kind.IDENTITY or side.key == CORE_BLOCKS[0]:
            return False
    if step.before is not None and step.before.trust < Trust.AGENT:
        return False
    # An approval lends a person's word, so what is proposed shows as theirs; its origin is in its source.
    return trust_of(item.proposer, step.after.source, _parents(memory, step)) >= Trust.AGENT


def _parents(memory: Memory, step: Step) -> list[Trust]:
    try:
        return [memory.get(parent).trust for parent in step.after.derived_from]
    except KeepwardError:
        # What it was made from cannot be looked at: nobody vouches for it here.
        return [Trust.UNKNOWN]


def question(memory: Memory, item: Waiting) -> str:
    """Return what the person is asked, with what an approval would store (2)."""
    lines = [f"{memory.actor.name} asks to change what is remembered: {item.reason}"]
    for step, shown in zip(item.steps, memory.shown(item), strict=True):
        lines.append(f"{shown.op} {step.after.tier.value} {step.after.key or step.after.kind.value}")
        for field, before, after in shown.changes:
            lines += [f"  {field} - {before}"] if before is not None else []
            lines += [f"  {field} + {after}"] if after is not None else []
    lines += [f"Held because {each}" for each in reasons(item.reasons)]
    return "\n".join(lines)


def decision_of(content: Mapping[str, Any] | None) -> str:
    """Return the person's decision from the form as it came back; see (3)."""
    chosen = (content or {}).get("decision")
    return chosen if chosen in {APPROVE, REJECT} else LATER


def decide(memory: Memory, reviewer: Memory, answer: Answer, decision: str) -> Answer:
    """Carry out the person's decision on what a tool left waiting; return what became of it."""
    item = answer.held
    if item is None or decision not in {APPROVE, REJECT}:
        return answer
    try:
        if decision == REJECT:
            reviewer.reject(item.id, reason="rejected by the person in the chat")
            # The agent is told here and now.
            memory.notices()
            told = "the person in the chat rejected it; do not propose it again unasked"
            return Answer(data=answer.data | {"decided": "rejected"}, text=f"{told}\n{answer.text}")
        result: Outcome = reviewer.approve(item.id, digest=item.digest)
    except KeepwardError as fault:
        return Answer(data=answer.data, text=answer.text, notes=(f"the decision could not be carried out: {fault}",))
    data, told = outcome(result)
    return Answer(data=data | {"decided": "approved"}, text=f"approved by the person in the chat; {told}")
