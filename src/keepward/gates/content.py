"""The gates that read what is said: secrets, privacy, injection, ethics and noise.

Reasons name the detector and the field and never repeat the text.

Invariants
(1) Every stored text is read: what is replaced in the text is replaced in evidence, speaker, tags, category, metadata
    and the reason as well.
(2) A name by which memories are looked up (key, subject, session, job, source) is never replaced: one marker would put
    different people under one name. It is refused instead, with what to do. What a job derives keeps the names of its
    sources, which were judged when they came.
(3) In names and references only what is certain counts: digits in an id are no phone number.
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
from keepward.core.memory import Kind, Record, Sensitivity, Stability, Tier
from keepward.core.policy import Policy
from keepward.core.principals import ActorKind, Trust
from keepward.gates.detectors import injection as orders
from keepward.gates.detectors import noise as journal
from keepward.gates.detectors import pii as identifiers
from keepward.gates.detectors import secrets as credentials
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
    is_source_text,
    is_turn,
    map_texts,
    named_texts,
    reasons_of,
)

#: What can be told from an id for certain.
_UNAMBIGUOUS_DETECTORS = frozenset({"email", "phone", "iban", "us_ssn", "payment_card"})
_MARKER = re.compile(r"\[[A-Z0-9_]+\]")
_secret, _private, _order, _ethics, _noise = map(reasons_of, ("secrets", "privacy", "injection", "ethics", "noise"))


def secrets(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Mask secrets in turns of a talk and in documents; elsewhere refuse documented formats and hold likely ones.

    A turn or a document of which masking leaves nothing is held.
    """
    del view, policy
    if case.after.scope != "/" and redact_secrets(case.after.scope) != case.after.scope:
        return Refuse(reasons=(_secret("scope", "the scope holds what looks like a secret: choose another"),))
    if credentials.cannot_match(case.whole):
        return None
    if not credentials.scan(case.after.text) and not _has_split_secret(case.texts_except_body):
        return None
    found = [(name, finding) for name, text in case.texts for finding in credentials.scan(text)]
    source = is_source_text(case.after)
    lasting = [
        (name, finding) for name, finding in found if not source or name in LOOKUP_FIELDS or name in OPAQUE_FIELDS
    ]
    certain = [(name, finding) for name, finding in lasting if finding.certainty == "certain"]
    if certain:
        return Refuse(reasons=_secret_reasons(certain, "remove it and keep it in a secret manager; nothing was stored"))
    masked = case
    if found:
        after = map_texts(case.after, lambda _, text: redact_secrets(text))
        masked = dataclasses.replace(case, after=after, reason=redact_secrets(case.reason))
    if _has_split_secret(masked.texts_except_body):
        # The fields side by side make a secret that none of them holds: somebody has split one.
        return Refuse(reasons=(_secret("split_secret", "a secret is spread over several fields"),))
    if source and not lasting and _has_unmasked_content(masked.after.text):
        return Rewrite(after=masked.after, reasons=_masking_reasons(found), reason=masked.reason)
    return Quarantine(
        reasons=_secret_reasons(found, "it is masked and waits for review"), after=masked.after, reason=masked.reason
    )


def _has_unmasked_content(text: str) -> bool:
    """Whether a masked text holds a letter or a digit outside its markers."""
    return any(map(str.isalnum, _MARKER.sub("", text)))


def _masking_reasons(found: Iterable[tuple[str, Finding]]) -> tuple[Reason, ...]:
    """Return a reason for each field and kind of secret, with the number of parts that were masked."""
    said = "{field} held what looks like a secret ({detector}): {parts} replaced by a marker"
    counts = Counter((name, finding.detector) for name, finding in found)
    return tuple(
        _secret(detector, said.format(field=field, detector=detector, parts=_parts(count)))
        for (field, detector), count in sorted(counts.items())
    )


def _parts(count: int) -> str:
    return "1 part was" if count == 1 else f"{count} parts were"


def _has_split_secret(fields_text: Text) -> bool:
    """Whether fields side by side make a secret that is not masked yet."""
    return not all(_follows_marker(fields_text.text, each) for each in credentials.scan(fields_text))


def _follows_marker(text: str, finding: Finding) -> bool:
    """Whether a finding follows on a marker: what the words before it gave away was masked already."""
    before = text[: finding.start].rstrip(" \n\t-:=\"'`")
    return before.endswith("]") and before[before.rfind("[") + 1 : -1].isupper()


def _secret_reasons(found: Iterable[tuple[str, Finding]], advice: str) -> tuple[Reason, ...]:
    return tuple(
        _secret(detector, f"{field} holds what looks like a secret ({detector}): {advice}")
        for field, detector in sorted({(name, finding.detector) for name, finding in found})
    )


def redact_secrets(text: str) -> str:
    """Return the text with every secret replaced by a typed marker."""
    given = Text(text)
    return text if credentials.cannot_match(given) else redact(text, credentials.scan(given))


def privacy(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Redact personal identifiers, refuse those in names (2), or mark the memory sensitive where consent was given.

    With consent they stay, and no context holds the memory unasked.
    """
    del policy
    if not view.personal and identifiers.cannot_match(case.whole):
        return None
    # What stands already was judged when it was written: it may have been kept with consent.
    stood = set() if case.before is None else set(named_texts(case.before))
    derived = case.actor.kind is ActorKind.JOB
    found = sorted(
        {
            (name, finding.detector)
            for name, text in case.texts
            if (name, text.text) not in stood and not (derived and name in LOOKUP_FIELDS)
            for finding in _personal_findings(name, text, view)
        }
    )
    if not found:
        return None
    given = bool(getattr(case.change, "consent", False))
    if given and case.actor.has_right("consent"):
        said = "{field} keeps a {detector} with consent: marked sensitive"
        kept = tuple(_private(f"kept_{each}", said.format(field=field, detector=each)) for field, each in found)
        return Rewrite(after=replace(case.after, sensitivity=Sensitivity.SENSITIVE), reasons=kept)
    unnamed = [(field, detector) for field, detector in found if field in LOOKUP_FIELDS]
    if unnamed:
        said = (
            "{field} is a personal identifier ({detector}), and a marker would put different people under one name: "
            "choose a name that is not, such as a first name or a number of your own, or give consent"
        )
        return Refuse(reasons=tuple(_private(each, said.format(field=field, detector=each)) for field, each in unnamed))
    said = (
        "{field} held a personal identifier ({detector}): it was replaced by a marker; store it with consent to keep it"
    )
    reasons = [_private(each, said.format(field=field, detector=each)) for field, each in found]
    if given:
        detail = "saying that a person consented takes a right: `keepward token create --can read,propose,consent`"
        reasons.append(_private("consent_not_taken", detail))

    def redacted(name: str, text: str) -> str:
        stays = name in LOOKUP_FIELDS or (name, text) in stood
        return text if stays else redact(text, _personal_findings(name, Text(text), view))

    return Rewrite(
        after=map_texts(case.after, redacted), reasons=tuple(reasons), reason=redacted("reason", case.reason)
    )


def _personal_findings(name: str, text: Text, view: GateContext) -> Iterator[Finding]:
    """Yield what a stored text gives away, in order and apart; see (3)."""
    if name in OPAQUE_FIELDS:
        return
    if name in LOOKUP_FIELDS or (name == "evidence" and " " not in text.text):
        for finding in identifiers.scan(text):
            if finding.certainty == "certain" and finding.detector in _UNAMBIGUOUS_DETECTORS:
                yield finding
        return
    end = 0
    found = [*identifiers.scan(text), *view.personal.get(text.text, ())]
    for finding in sorted(found, key=lambda each: (each.start, -each.end)):
        if finding.start >= end:
            yield finding
            end = finding.end


def redact_personal_data(text: str) -> str:
    """Return the text with every personal identifier replaced by a typed marker."""
    given = Text(text)
    return text if identifiers.cannot_match(given) else redact(text, identifiers.scan(given))


def injection(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Hold instructions to the model, or mark them so that no act goes by them.

    A fact that holds a certain instruction is held unless the owner wrote it; a likely one is held from origins below
    the agent's own, since origin decides and wording only helps. A turn of a talk, a document and a program's data
    are held for a certain instruction from such an origin alone, and a turn that weakens a safeguard unless a person
    wrote it. Otherwise they are marked as if their writer had
    read them in a document, so that purpose ``act`` leaves them out.
    """
    del view, policy
    after = case.after
    soft = likely_injection_counts(after)
    if not soft and orders.cannot_match(case.whole):
        return None
    everything = case.whole
    body = Text(after.text)
    found = list(orders.scan(body, likely=soft))
    if everything.text != after.text:
        # Names of fields and sources are no sentences: the model scores the text alone.
        found += orders.scan(everything, likely=False)
    trusted = after.trust >= Trust.AGENT
    consulted = is_consulted_data(after) or is_source_text(after)
    certain = {finding.detector for finding in found if finding.certainty == "certain"}
    held = set() if after.trust is Trust.OWNER or (trusted and consulted) else certain
    if soft:
        held |= {finding.detector for finding in found}
    elif after.trust < Trust.USER and is_turn(after):
        held |= certain & {orders.WEAKENS_SAFEGUARD}
    if held:
        said = "the text reads like an instruction to the model ({}); a person has to decide"
        return Quarantine(reasons=tuple(_order(code, said.format(code)) for code in sorted(held)))
    if not (certain and consulted and trusted):
        return None
    heard = min(after.heard or Trust.DOCUMENT, Trust.DOCUMENT)
    said = "the content reads like an instruction to the model ({}); it is kept as what a document says"
    reasons = tuple(_order(f"labelled_{code}", said.format(code)) for code in sorted(certain))
    return Rewrite(after=replace(after, heard=heard), reasons=reasons)


def likely_injection_counts(record: Record) -> bool:
    """Whether a likely instruction is enough to hold a memory: a statement whose origin is below the agent's own."""
    return record.trust < Trust.AGENT and not is_source_text(record)


@lru_cache(maxsize=256)
def _compile_owner_rule(pattern: str) -> Any:
    import re2

    return re2.compile(f"(?i){pattern}")


def ethics(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Apply the owner's own rules on what may be remembered (``memory_ethics`` of the policy)."""
    del view
    everything = case.whole.text if policy.memory_ethics else ""
    fired = [
        rule
        for rule in policy.memory_ethics
        if (not rule.tiers or case.after.tier in rule.tiers) and _compile_owner_rule(rule.pattern).search(everything)
    ]
    if not fired:
        return None
    reasons = tuple(_ethics(rule.name, f"the owner's rule `{rule.name}` applies to this text") for rule in fired)
    refuse = any(rule.action == "refuse" for rule in fired)
    return Refuse(reasons=reasons) if refuse else Quarantine(reasons=reasons)


def noise(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse what says nothing; reroute journal marks to the episodic tier with a term.

    What was asked to be episodic is left alone: a transcript keeps its small talk. So is what a program holds.
    """
    if case.after.tier is Tier.EPISODIC or not isinstance(case.change, TEXT_CHANGES):
        return None
    if is_consulted_data(case.after):
        return None
    seen = journal.classify(case.change.text if isinstance(case.change, Append) else case.after.text)
    if seen is None:
        return None
    if seen.code == "empty_report" or case.before is not None:
        detail = f"`{seen.phrase}` says nothing that would help later; it was not stored"
        return Refuse(reasons=(_noise(seen.code, detail),))
    term = policy.ttl_by_kind.get(Kind.EVENT, policy.ttl_volatile)
    after = replace(
        case.after,
        tier=Tier.EPISODIC,
        kind=Kind.EVENT,
        key=None,
        stability=Stability.VOLATILE,
        expires_at=view.now + term,
    )
    detail = f"`{seen.phrase}` is a journal mark: kept in the episodic tier for {term.days} days, not in lasting memory"
    return Rewrite(after=after, reasons=(_noise(seen.code, detail),))
