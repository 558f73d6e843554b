"""The privacy gate: personal identifiers are replaced by typed markers unless given with consent.

With consent they stay and the memory becomes sensitive, so that no context holds it unasked. Fields
that identify (subject, speaker, evidence, ...) are the caller's handles and are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.domain.memory import Sensitivity
from keepward.domain.policy import Policy
from keepward.domain.receipt import Reason
from keepward.gates.detect import privacy
from keepward.gates.detect.engine import redact
from keepward.gates.fields import IDENTIFIERS, mapped, named, texts, whole
from keepward.gates.verdict import Case, Rewrite, Verdict, View


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Redact personal identifiers, or mark the memory sensitive where consent was given."""
    del view, policy
    if privacy.calm(whole(case)):
        return None
    # What stands already was judged when it was written: it may have been kept with consent.
    stood = set() if case.before is None else set(named(case.before))
    found = sorted(
        {
            (name, finding.detector)
            for name, text in texts(case)
            if name not in IDENTIFIERS and (name, text) not in stood
            for finding in privacy.scan(text)
        }
    )
    if not found:
        return None
    if getattr(case.change, "consent", False):
        kept = tuple(
            Reason(
                gate="privacy",
                code=f"kept_{detector}",
                detail=f"{field} keeps a {detector} with consent: marked sensitive",
            )
            for field, detector in found
        )
        return Rewrite(after=replace(case.after, sensitivity=Sensitivity.SENSITIVE), reasons=kept)
    reasons = tuple(
        Reason(
            gate="privacy",
            code=detector,
            detail=f"{field} held a personal identifier ({detector}): it was replaced by a marker; "
            "store it with consent to keep it",
        )
        for field, detector in found
    )
    return Rewrite(
        after=mapped(
            case.after,
            lambda name, text: text if name in IDENTIFIERS or (name, text) in stood else scrub(text),
        ),
        reasons=reasons,
        reason=scrub(case.reason),
    )


def scrub(text: str) -> str:
    """Return the text with every personal identifier replaced by a typed marker."""
    return redact(text, privacy.scan(text))
