"""The privacy gate: personal identifiers are replaced by typed markers unless given with consent.

With consent they stay and the memory becomes sensitive, so that no context holds it unasked.

Invariants
(1) Every stored text is read: what is replaced in the text is replaced in evidence, speaker, tags, category, metadata
    and the reason as well.
(2) A name by which memories are looked up (key, subject, session, job, source) is never replaced: one marker would put
    different people under one name. It is refused instead, with what to do. What a job derives keeps the names of its
    sources, which were judged when they came.
(3) In names and references only what is certain counts: digits in an id are no phone number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from keepward.gates.detect import privacy
from keepward.gates.detect.engine import redact
from keepward.gates.detect.finding import Finding
from keepward.gates.fields import HANDLES, NAMES, mapped, named, texts, whole
from keepward.gates.verdict import Case, Refuse, Rewrite, Verdict, View
from keepward.model.commit import Reason
from keepward.model.memory import Sensitivity
from keepward.model.policy import Policy
from keepward.model.trust import ActorKind

#: What can be told from an id for certain.
_PLAIN = frozenset({"email", "phone", "iban", "us_ssn", "payment_card"})


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Redact personal identifiers, refuse those in names, or mark the memory sensitive where consent was given."""
    del policy
    if not view.personal and privacy.calm(whole(case)):
        return None
    # What stands already was judged when it was written: it may have been kept with consent.
    stood = set() if case.before is None else set(named(case.before))
    derived = case.actor.kind is ActorKind.JOB
    found = sorted(
        {
            (name, finding.detector)
            for name, text in texts(case)
            if (name, text) not in stood and not (derived and name in NAMES)
            for finding in _found(name, text, view)
        }
    )
    if not found:
        return None
    given = bool(getattr(case.change, "consent", False))
    if given and case.actor.able("consent"):
        kept = tuple(
            Reason(
                gate="privacy",
                code=f"kept_{detector}",
                detail=f"{field} keeps a {detector} with consent: marked sensitive",
            )
            for field, detector in found
        )
        return Rewrite(after=replace(case.after, sensitivity=Sensitivity.SENSITIVE), reasons=kept)
    unnamed = tuple(
        Reason(
            gate="privacy",
            code=detector,
            detail=f"{field} is a personal identifier ({detector}), and a marker would put different people under one "
            "name: choose a name that is not, such as a first name or a number of your own, or give consent",
        )
        for field, detector in found
        if field in NAMES
    )
    if unnamed:
        return Refuse(reasons=unnamed)
    reasons = tuple(
        Reason(
            gate="privacy",
            code=detector,
            detail=f"{field} held a personal identifier ({detector}): it was replaced by a marker; "
            "store it with consent to keep it",
        )
        for field, detector in found
    )
    if given:
        detail = "saying that a person consented takes a right: `keepward token create --can read,propose,consent`"
        reasons = (*reasons, Reason(gate="privacy", code="consent_not_taken", detail=detail))
    return Rewrite(
        after=mapped(
            case.after,
            lambda name, text: (
                text if name in NAMES or (name, text) in stood else redact(text, list(_found(name, text, view)))
            ),
        ),
        reasons=reasons,
        reason=redact(case.reason, list(_found("reason", case.reason, view))),
    )


def _found(name: str, text: str, view: View) -> Iterator[Finding]:
    """Yield what a stored text gives away, in order and apart; see (3)."""
    if name in HANDLES:
        return
    reference = name in NAMES or (name == "evidence" and " " not in text)
    if reference:
        yield from (each for each in privacy.scan(text) if each.certainty == "certain" and each.detector in _PLAIN)
        return
    end = 0
    for finding in sorted(
        [*privacy.scan(text), *view.personal.get(text, ())], key=lambda each: (each.start, -each.end)
    ):
        if finding.start >= end:
            yield finding
            end = finding.end


def scrub(text: str) -> str:
    """Return the text with every personal identifier replaced by a typed marker."""
    return redact(text, privacy.scan(text))
