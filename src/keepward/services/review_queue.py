"""What a person looks at to decide: the queue by windows, and what bears on one proposal.

Invariants
(1) Every proposal that is counted or shown matches its seal.
(2) A reviewer sees every field of the payload, byte for byte, but that every character no reader sees is written as
    ``⟦U+200B⟧``; two payloads that differ never look the same.
(3) What is opened for a decision is no more than who decides may read; nothing is written and no use is counted.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from keepward.core.memory import VERSION_FIELDS, Record
from keepward.core.proposal import (
    ContextExposure,
    Evidence,
    Flagged,
    Proposal,
    ProposalPage,
    ProposedStep,
    ReviewContext,
    Similar,
)
from keepward.core.query import Filter, check_limit
from keepward.core.serialization import encode_record
from keepward.core.value import from_micros
from keepward.errors import InvalidInput, KeepwardError
from keepward.gates.detectors import injection, pii, secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.normalize import show_invisible
from keepward.services import review
from keepward.services.access import context_deliveries
from keepward.services.read import search
from keepward.services.request_context import RequestContext

#: Most memories that are shown as similar.
MAX_SIMILAR = 5
#: Of a text, so many characters are looked for.
MAX_QUERY_LENGTH = 2_000
#: Detectors that find the words for which a gate quarantines a text.
_DETECTORS: Mapping[str, Callable[[str], list[Finding]]] = {
    "secrets": secrets.scan,
    "privacy": pii.scan,
    "injection": injection.scan,
}
#: How harmful a mistaken approval is, by gate.
_HARM: Mapping[str, int] = {"injection": 3, "secrets": 3, "ethics": 2, "privacy": 2, "authority": 1}
#: What each gate looks for, for somebody who reads it the first time.
GATE_DESCRIPTIONS: Mapping[str, str] = {
    "secrets": "It looks for passwords, keys and tokens, which memory never keeps.",
    "privacy": "It looks for data about persons, which stays only where the person agreed.",
    "injection": "It looks for text that gives orders to a model that reads it.",
    "ethics": "It looks for what the rules of the owner keep out of memory.",
    "shape": "It looks whether a memory is complete and of a usable form.",
    "noise": "It looks for what is not worth remembering.",
    "authority": "It asks whether who proposes this may change it alone.",
    "confidence": "It asks whether the proposer is sure enough.",
    "duplicate": "It looks for what is remembered already or was corrected before.",
    "capacity": "It asks whether there is room.",
    "jobs": "It keeps an automatic step from putting away too much at once.",
}


def pending(
    session: RequestContext,
    *,
    state: str = "pending",
    proposer: str | None = None,
    gate: str | None = None,
    tier: str | None = None,
    sort: str = "age",
    offset: int = 0,
    limit: int | None = 50,
) -> ProposalPage:
    """Return one window of the proposals that a handle may read, oldest first, and how many there are.

    Sorted by ``danger``, those of the most harmful gates come first, and of equal ones the oldest.

    A proposal past its deadline is ``expired``. ``state`` is that of all of them, or ``all``; ``limit`` None is for
    all.
    ``counts`` has, of all that have the state, how many there are by proposer, gate, tier and operation.
    """
    check_limit(limit)
    if sort not in {"age", "danger"}:
        raise InvalidInput(f"sort {sort!r}: must be age or danger")
    known = review.proposals(session, state)
    chosen = [
        each
        for each in known
        if (proposer in {None, each.proposer.label})
        and (gate is None or gate in _gates(each))
        and (tier is None or tier in _tiers(each))
    ]
    if sort == "danger":
        chosen.sort(key=_danger, reverse=True)
    counts = {
        "proposer": Counter(each.proposer.label for each in known),
        "gate": Counter(gate for each in known for gate in _gates(each)),
        "tier": Counter(tier for each in known for tier in _tiers(each)),
        "op": Counter(op for each in known for op in {step.op for step in each.steps}),
    }
    end = None if limit is None else offset + limit
    return ProposalPage(
        review.with_review_state(session, chosen[offset:end]),
        offset=offset,
        total=len(chosen),
        counts={name: dict(sorted(each.items())) for name, each in counts.items()},
        oldest_at=chosen[0].created_at if chosen else None,
    )


def _gates(item: Proposal) -> set[str]:
    return {each.gate for each in item.reasons}


def _danger(item: Proposal) -> tuple[int, bool]:
    """Return how harmful an approval by mistake would be: by the gates that quarantined it, then by the tier."""
    return max((_HARM.get(gate, 0) for gate in _gates(item)), default=0), "core" in _tiers(item)


def _tiers(item: Proposal) -> set[str]:
    return {step.after.tier.value for step in item.steps}


def proposal(session: RequestContext, proposal_id: str) -> Proposal:
    """Return a proposal that a handle may read, whatever became of it; a reviewer gets what bears on the decision.

    Raises:
        NotFound: none by that id is visible.
    """
    item = review.proposal(session, proposal_id)
    # What bears on it spans every scope.
    return replace(item, review_context=_review_context(session, item)) if session.actor.may_decide else item


def _review_context(session: RequestContext, item: Proposal) -> ReviewContext:
    own = {step.after.id for step in item.steps}
    texts = [step.after for step in item.steps if step.before is None or step.before.text != step.after.text]
    named = list(dict.fromkeys(ref for step in item.steps for ref in step.after.evidence))
    known = session.reader.references(named)
    # The contexts that held what it would change, as it is.
    changed = dict.fromkeys((step.after.id for step in item.steps if step.before is not None), 1)
    held = context_deliveries(session, changed) if changed else {}
    newest = (session.reader.delivery(name, held[name]) for name in sorted(held, reverse=True))
    return ReviewContext(
        meaning={each.gate: GATE_DESCRIPTIONS[each.gate] for each in item.reasons if each.gate in GATE_DESCRIPTIONS},
        evidence=tuple(Evidence(reference=each, memory=known.get(each)) for each in named),
        similar=_similar(session, texts[0], own) if texts else (),
        reached=ContextExposure(contexts=len(held), last=next(filter(None, newest), None)) if changed else None,
        flagged=_flagged(item, texts),
    )


def _flagged(item: Proposal, texts: list[Record]) -> tuple[Flagged, ...]:
    gates = [gate for gate in _DETECTORS if any(reason.gate == gate for reason in item.reasons)]
    return tuple(
        Flagged(memory=record.id, gate=gate, code=finding.detector, start=finding.start, end=finding.end)
        for record in texts
        for gate in gates
        for finding in _DETECTORS[gate](record.text)
    )


def _similar(session: RequestContext, record: Record, own: set[str]) -> tuple[Similar, ...]:
    session = dataclasses.replace(session, scope=record.scope)
    sensitive = session.reader.may_ask_for_sensitive
    filters = Filter(scopes=session.reader.scopes, include_sensitive=sensitive)
    try:
        asked = {"limit": MAX_SIMILAR + len(own), "purpose": "answer", "order": "fused"}
        found = search(session, record.text[:MAX_QUERY_LENGTH], filters, **asked, gated=not sensitive)  # type: ignore[arg-type]
    except KeepwardError:
        # A decision does not wait for what only helps with it, such as a model that cannot be asked now.
        return ()
    hits = [each for each in found.hits if each.memory.id not in own][:MAX_SIMILAR]
    return tuple(Similar(memory=each.memory, score=each.score, why=each.why) for each in hits)


def escape_invisible(text: str) -> str:
    """Return a text with every character that no reader sees written out, as ``⟦U+200B⟧``.

    A text that holds such a mark itself has its bracket written out too, so that it cannot pass for one.
    """
    return show_invisible(text.replace("⟦U+", "⟦U+27E6⟧U+"))


def review_steps(item: Proposal, blob: Callable[[str], str] | None = None) -> list[ProposedStep]:
    """Return the steps of a proposal, in the order in which they would be stored.

    ``blob`` says in words what a reference to a blob stands for.
    """
    return [
        ProposedStep(
            op=step.op,
            id=step.after.id,
            base=item.base.get(step.after.id, 0),
            payload=escape_invisible(encode_record(step.after).decode()),
            changes=_changes(step.before, step.after, blob),
        )
        for step in item.steps
    ]


def _changes(
    before: Record | None, after: Record, blob: Callable[[str], str] | None
) -> tuple[tuple[str, str | None, str | None], ...]:
    old = json.loads(encode_record(before)) if before else {}
    new = json.loads(encode_record(after))
    names = sorted((old.keys() | new.keys()) - VERSION_FIELDS - {"v"})
    differing = [name for name in names if old.get(name) != new.get(name)]
    if blob is not None and "blob" in differing:
        old, new = ({**side, "blob": blob(side["blob"])} if "blob" in side else side for side in (old, new))
    return tuple((name, _as_text(name, old.get(name)), _as_text(name, new.get(name))) for name in differing)


def _as_text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if name in {"confidence", "importance"} and isinstance(value, int):
        return f"{value / 10_000:g}"
    if name in {"expires_at", "occurred_at"} and isinstance(value, int):
        return from_micros(value).isoformat()
    return escape_invisible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
