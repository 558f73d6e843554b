"""The gates that check content: secrets, privacy, injection, ethics and noise.

Reasons name the detector and the field; they never repeat the text.

Invariants
(1) Every stored text is checked. A redaction applies to text, evidence, speaker, tags, category, metadata and reason.
(2) Names for search (key, subject, session, job, source) are never redacted, because one marker would merge different
    people. Such a write is refused, with a hint. A record that a job derives has the names of its sources, which the
    gates have checked.
(3) In names and references only certain findings count: digits in an id are not a phone number.

Late imports: few texts need it.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from keepward.core.change import TEXT_CHANGES, Append
from keepward.core.commit import Reason
from keepward.core.linear_patterns import has_re2
from keepward.core.memory import Kind, Record, Sensitivity, Stability, Tier
from keepward.core.policy import Policy
from keepward.core.principals import ActorKind, Trust
from keepward.errors import InvalidInput
from keepward.gates.detectors import injection as injection_detector
from keepward.gates.detectors import noise as noise_detector
from keepward.gates.detectors import pii as pii_detector
from keepward.gates.detectors import secrets as secrets_detector
from keepward.gates.detectors.matcher import Finding, redact
from keepward.gates.detectors.normalize import Text
from keepward.gates.gate_types import (
    LOOKUP_FIELDS,
    OPAQUE_FIELDS,
    GateContext,
    GateInput,
    Quarantine,
    Refuse,
    Rewrite,
    Verdict,
    is_consulted_data,
    is_message,
    is_source_text,
    map_texts,
    named_texts,
    reasons_of,
)

#: Detectors that do not mistake an id for personal data.
_UNAMBIGUOUS_DETECTORS = frozenset({"email", "phone", "iban", "us_ssn", "payment_card"})
_MARKER = re.compile(r"\[[A-Z0-9_]+\]")
_secret, _private, _injection, _ethics, _noise = map(reasons_of, ("secrets", "privacy", "injection", "ethics", "noise"))


def secrets(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Mask secrets in messages and documents. Elsewhere, refuse documented formats and quarantine likely secrets.

    A message or document is quarantined if it contains nothing but secrets.
    """
    del view, policy
    if case.after.scope != "/" and redact_secrets(case.after.scope) != case.after.scope:
        return Refuse(reasons=(_secret("scope", "the scope seems to contain a secret: choose another"),))
    if secrets_detector.cannot_match(case.all_texts):
        return None
    if not secrets_detector.scan(case.after.text) and not _has_split_secret(case.texts_except_body):
        return None
    findings = [(name, finding) for name, text in case.texts for finding in secrets_detector.scan(text)]
    source = is_source_text(case.after)
    unmaskable = [
        (name, finding) for name, finding in findings if not source or name in LOOKUP_FIELDS or name in OPAQUE_FIELDS
    ]
    certain = [(name, finding) for name, finding in unmaskable if finding.certainty == "certain"]
    if certain:
        advice = "remove it and store it in a secret manager; nothing was stored"
        return Refuse(reasons=_secret_reasons(certain, advice))
    masked = case
    if findings:
        after = map_texts(case.after, lambda _, text: redact_secrets(text))
        masked = dataclasses.replace(case, after=after, reason=redact_secrets(case.reason))
    if _has_split_secret(masked.texts_except_body):
        # The fields together contain a secret that no single field contains.
        return Refuse(reasons=(_secret("split_secret", "a secret is spread over several fields"),))
    # Whether the masked text has a letter or a digit outside its markers.
    has_content = any(map(str.isalnum, _MARKER.sub("", masked.after.text)))
    if source and not unmaskable and has_content:
        return Rewrite(after=masked.after, reasons=_masking_reasons(findings), reason=masked.reason)
    reasons = _secret_reasons(findings, "it is masked and needs review")
    return Quarantine(reasons=reasons, after=masked.after, reason=masked.reason)


def _masking_reasons(findings: Iterable[tuple[str, Finding]]) -> tuple[Reason, ...]:
    """Return a reason for each field and kind of secret, with the number of masked parts."""
    counts = Counter((name, finding.detector) for name, finding in findings)
    return tuple(
        _secret(
            detector,
            f"{field} seemed to contain a secret ({detector}): "
            f"{'1 part was' if count == 1 else f'{count} parts were'} replaced by a marker",
        )
        for (field, detector), count in sorted(counts.items())
    )


def _has_split_secret(fields_text: Text) -> bool:
    """Whether the fields together contain a secret that is not masked yet."""
    for finding in secrets_detector.scan(fields_text):
        before = fields_text.text[: finding.start].rstrip(" \n\t-:=\"'`")
        # After a marker the words before the finding announced a secret that is masked already.
        if not (before.endswith("]") and before[before.rfind("[") + 1 : -1].isupper()):
            return True
    return False


def _secret_reasons(findings: Iterable[tuple[str, Finding]], advice: str) -> tuple[Reason, ...]:
    return tuple(
        _secret(detector, f"{field} seems to contain a secret ({detector}): {advice}")
        for field, detector in sorted({(name, finding.detector) for name, finding in findings})
    )


def redact_secrets(text: str) -> str:
    """Return the text with every secret replaced by a typed marker."""
    form = Text(text)
    return text if secrets_detector.cannot_match(form) else redact(text, secrets_detector.scan(form))


def privacy(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Redact personal identifiers, or refuse those in names (2).

    With consent the identifiers stay and the memory becomes sensitive, so that contexts exclude it by default.
    """
    del policy
    if not view.personal and pii_detector.cannot_match(case.all_texts):
        return None
    # The old texts were checked when they were written, and may be stored with consent.
    old_texts = set() if case.before is None else set(named_texts(case.before))
    derived = case.actor.kind is ActorKind.JOB
    findings = sorted(
        {
            (name, finding.detector)
            for name, text in case.texts
            if (name, text.text) not in old_texts and not (derived and name in LOOKUP_FIELDS)
            for finding in _personal_findings(name, text, view)
        }
    )
    if not findings:
        return None
    consent = bool(getattr(case.change, "consent", False))
    if consent and case.actor.has_right("consent"):
        consented = tuple(
            _private(f"kept_{detector}", f"{field} has a {detector} with consent: the memory is sensitive")
            for field, detector in findings
        )
        return Rewrite(after=replace(case.after, sensitivity=Sensitivity.SENSITIVE), reasons=consented)
    in_names = [(field, detector) for field, detector in findings if field in LOOKUP_FIELDS]
    if in_names:
        message = (
            "{field} is a personal identifier ({detector}); a marker would merge different people: "
            "choose another name, such as a first name or your own number, or give consent"
        )
        return Refuse(
            reasons=tuple(
                _private(detector, message.format(field=field, detector=detector)) for field, detector in in_names
            )
        )
    message = "{field} had a personal identifier ({detector}), replaced by a marker; store it with consent to keep it"
    reasons = [_private(detector, message.format(field=field, detector=detector)) for field, detector in findings]
    if consent:
        detail = "only an actor with the right can state consent: `keepward token create --can read,propose,consent`"
        reasons.append(_private("consent_not_taken", detail))

    def redacted(name: str, text: str) -> str:
        stays = name in LOOKUP_FIELDS or (name, text) in old_texts
        return text if stays else redact(text, _personal_findings(name, Text(text), view))

    return Rewrite(
        after=map_texts(case.after, redacted), reasons=tuple(reasons), reason=redacted("reason", case.reason)
    )


def _personal_findings(name: str, text: Text, view: GateContext) -> Iterator[Finding]:
    """Yield the personal identifiers of a stored text, in order and without overlaps; see (3)."""
    if name in OPAQUE_FIELDS:
        return
    if name in LOOKUP_FIELDS or (name == "evidence" and " " not in text.text):
        for finding in pii_detector.scan(text):
            if finding.certainty == "certain" and finding.detector in _UNAMBIGUOUS_DETECTORS:
                yield finding
        return
    end = 0
    findings = [*pii_detector.scan(text), *view.personal.get(text.text, ())]
    for finding in sorted(findings, key=lambda finding: (finding.start, -finding.end)):
        if finding.start >= end:
            yield finding
            end = finding.end


def redact_personal_data(text: str) -> str:
    """Return the text with every personal identifier replaced by a typed marker."""
    form = Text(text)
    return text if pii_detector.cannot_match(form) else redact(text, pii_detector.scan(form))


def injection(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Quarantine instructions to the model, or lower their trust so that purpose ``act`` leaves them out.

    Trust decides; wording only adds evidence. A statement with a certain instruction is quarantined unless the owner
    wrote it. A statement with a likely instruction is quarantined if its trust is below an agent's. A message, a
    document or program data with a certain instruction is quarantined only if its trust is below an agent's. A message
    that weakens a safeguard is quarantined unless a person wrote it. Any other text with a certain instruction gets the
    taint of a document.
    """
    del policy
    after = case.after
    if injection_detector.cannot_match(case.all_texts):
        return None
    likely_counts = likely_injection_counts(after)
    findings = injection_detector.scan(case.all_texts, likely=False)
    if likely_counts:
        # In names an invisible character may be ordinary.
        findings += injection_detector.scan(after.text)
    trusted = after.trust >= Trust.AGENT
    consulted = is_consulted_data(after) or is_source_text(after)
    certain = {finding.detector for finding in findings if finding.certainty == "certain"}
    if view.identity_in is not None and findings:
        # Every context begins with the identity, so a text that reads like an injected instruction has no place in it.
        detail = "the identity takes no text that reads like an order to ignore others: say it plainly"
        return Refuse(reasons=(_injection("order_in_identity", detail),))
    quarantined = set() if after.trust is Trust.OWNER or (trusted and consulted) else certain
    if likely_counts:
        quarantined |= {finding.detector for finding in findings}
    elif after.trust < Trust.USER and is_message(after):
        quarantined |= certain & {injection_detector.WEAKENS_SAFEGUARD}
    if quarantined:
        message = "the text reads like an instruction to the model ({}); a reviewer must decide"
        return Quarantine(reasons=tuple(_injection(code, message.format(code)) for code in sorted(quarantined)))
    if not (certain and consulted and trusted):
        return None
    heard = min(after.heard or Trust.DOCUMENT, Trust.DOCUMENT)
    message = "the content reads like an instruction to the model ({}); it has the trust of a document"
    reasons = tuple(_injection(f"labelled_{code}", message.format(code)) for code in sorted(certain))
    return Rewrite(after=replace(after, heard=heard), reasons=reasons)


def likely_injection_counts(record: Record) -> bool:
    """Whether a likely instruction quarantines a memory: it does for a statement with less trust than an agent's."""
    return record.trust < Trust.AGENT and not is_source_text(record)


@lru_cache(maxsize=256)
def _compile_owner_rule(pattern: str) -> Any:
    if not has_re2():
        # Nothing was measured of it, and a rule that is not applied must not look as if it were.
        raise InvalidInput("policy.memory_ethics: a rule of your own needs the package google-re2; install it")
    import re2

    return re2.compile(f"(?i){pattern}")


def ethics(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Apply the owner's own rules about content (``memory_ethics`` of the policy)."""
    del view
    text = case.all_texts.text if policy.memory_ethics else ""
    fired = [
        rule
        for rule in policy.memory_ethics
        if (not rule.tiers or case.after.tier in rule.tiers) and _compile_owner_rule(rule.pattern).search(text)
    ]
    if not fired:
        return None
    reasons = tuple(_ethics(rule.name, f"the owner's rule `{rule.name}` applies to this text") for rule in fired)
    refuse = any(rule.action == "refuse" for rule in fired)
    return Refuse(reasons=reasons) if refuse else Quarantine(reasons=reasons)


def noise(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse empty reports; move journal entries to the episodic tier with a TTL.

    Episodic writes pass, because a transcript may contain small talk. Program data and documents pass as well.
    """
    if case.after.tier is Tier.EPISODIC or not isinstance(case.change, TEXT_CHANGES):
        return None
    if is_consulted_data(case.after):
        return None
    match = noise_detector.classify(case.change.text if isinstance(case.change, Append) else case.after.text)
    if match is None:
        return None
    if match.code == "empty_report" or case.before is not None:
        detail = f"`{match.phrase}` contains nothing of later use; it was not stored"
        return Refuse(reasons=(_noise(match.code, detail),))
    ttl = policy.ttl_by_kind.get(Kind.EVENT, policy.ttl_volatile)
    after = replace(
        case.after,
        tier=Tier.EPISODIC,
        kind=Kind.EVENT,
        key=None,
        stability=Stability.VOLATILE,
        expires_at=view.now + ttl,
    )
    detail = f"`{match.phrase}` is a journal entry: it stays in the episodic tier for {ttl.days} days"
    return Rewrite(after=after, reasons=(_noise(match.code, detail),))
