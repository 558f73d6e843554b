"""The secrets gate: no credential reaches the disk, in whatever field it hides.

A documented format is refused; what only reads like a secret is held with the secret masked. Reasons
name the detector and the field and never repeat the text.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.gates.detect import secrets
from keepward.gates.detect.engine import redact
from keepward.gates.detect.finding import Finding
from keepward.gates.fields import aside, mapped, texts, whole
from keepward.gates.verdict import Case, Quarantine, Refuse, Verdict, View
from keepward.model.commit import Reason
from keepward.model.policy import Policy


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Refuse certain secrets, hold likely ones masked."""
    del view, policy
    if case.after.scope != "/" and scrub(case.after.scope) != case.after.scope:
        return Refuse(reasons=(_reason("scope", "the scope holds what looks like a secret: choose another"),))
    if secrets.calm(whole(case)):
        return None
    beside = aside(case)
    if not secrets.scan(case.after.text) and not _spread(beside):
        return None
    found = [(name, finding) for name, text in texts(case) for finding in secrets.scan(text)]
    certain = [(name, finding) for name, finding in found if finding.certainty == "certain"]
    if certain:
        return Refuse(reasons=_reasons(certain, "remove it and keep it in a secret manager; nothing was stored"))
    masked = case
    if found:
        after = mapped(case.after, lambda _, text: scrub(text))
        masked = replace(case, after=after, reason=scrub(case.reason))
        beside = aside(masked)
    if _spread(beside):
        # The fields side by side make a secret that none of them holds: somebody has split one.
        return Refuse(reasons=(_reason("split_secret", "a secret is spread over several fields"),))
    return Quarantine(
        reasons=_reasons(found, "it is masked and waits for review"), after=masked.after, reason=masked.reason
    )


def _spread(beside: str) -> bool:
    """Whether fields side by side make a secret that is not masked yet."""
    return not all(_answered(beside, each) for each in secrets.scan(beside))


def _answered(text: str, finding: Finding) -> bool:
    """Whether a finding follows on a marker: what the words before it gave away was masked already."""
    before = text[: finding.start].rstrip(" \n\t-:=\"'`")
    return before.endswith("]") and before[before.rfind("[") + 1 : -1].isupper()


def scrub(text: str) -> str:
    """Return the text with every secret replaced by a typed marker."""
    return text if secrets.calm(text) else redact(text, secrets.scan(text))


def _reasons(found: list[tuple[str, Finding]], advice: str) -> tuple[Reason, ...]:
    return tuple(
        _reason(detector, f"{field} holds what looks like a secret ({detector}): {advice}")
        for field, detector in sorted({(name, finding.detector) for name, finding in found})
    )


def _reason(code: str, detail: str) -> Reason:
    return Reason(gate="secrets", code=code, detail=detail)
