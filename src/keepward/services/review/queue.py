"""The review queue in pages, and what helps a person to decide on one proposal.

Every proposal that is counted or shown matches its seal.
A reviewer sees every field of the payload byte for byte; invisible characters are written as ``⟦U+200B⟧``, so that two
payloads that differ never look the same.
The review context shows no more than the reviewer may read; it writes nothing and counts no use.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from keepward.core.journal import Delivery
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
from keepward.core.query import Filter
from keepward.core.serialization import encode_record
from keepward.core.value import from_micros
from keepward.errors import KeepwardError, Tampered
from keepward.gates.detectors import injection, pii, secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.normalize import show_invisible
from keepward.services.access import context_deliveries
from keepward.services.reading.recall import search
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.review import decisions

#: Most memories that are shown as similar.
MAX_SIMILAR = 5
#: Characters of a text that are used to search for similar memories.
MAX_QUERY_LENGTH = 2_000
#: Detectors that find the words for which a gate quarantines a text.
_DETECTORS: Mapping[str, Callable[[str], list[Finding]]] = {
    "secrets": secrets.scan,
    "privacy": pii.scan,
    "injection": injection.scan,
}
#: How harmful a mistaken approval is, by gate.
_HARM: Mapping[str, int] = {"injection": 3, "secrets": 3, "ethics": 2, "privacy": 2, "authority": 1}
#: What each gate checks, for a reader who sees it for the first time.
GATE_DESCRIPTIONS: Mapping[str, str] = {
    "secrets": "It looks for passwords, keys and tokens, which memory never stores.",
    "privacy": "It looks for data about persons, which stays only where the person agreed.",
    "injection": "It looks for text that gives orders to a model that reads it.",
    "ethics": "It looks for what the rules of the owner exclude from memory.",
    "shape": "It checks that a memory is complete and of a usable form.",
    "noise": "It looks for what is not worth remembering.",
    "authority": "It checks that the proposer may make this change alone.",
    "confidence": "It checks that the proposer is sure enough.",
    "duplicate": "It looks for what is remembered already or was corrected before.",
    "capacity": "It checks that there is room.",
    "jobs": "It stops an automatic step that would archive too much at once.",
}


def pending(
    context: RequestContext,
    *,
    state: str = "pending",
    proposer: str | None = None,
    gate: str | None = None,
    tier: str | None = None,
    sort: str = "age",
    offset: int = 0,
    limit: int | None = 50,
) -> ProposalPage:
    """Return one page of the proposals that a handle may read, oldest first, and how many there are.

    Sorted by ``danger``, proposals of the most harmful gates come first, and the oldest first among equals.
    A proposal past its deadline is ``expired``. ``state`` may also be ``all``; ``limit`` None returns all.
    ``counts`` has the number of proposals in this state by proposer, gate, tier and operation.
    """
    items = decisions.proposals(context, state)
    chosen = [
        item
        for item in items
        if (proposer in {None, item.proposer.label})
        and (gate is None or gate in _gates(item))
        and (tier is None or tier in _tiers(item))
    ]
    if sort == "danger":
        chosen.sort(key=_danger, reverse=True)
    counts = {
        "proposer": Counter(item.proposer.label for item in items),
        "gate": Counter(gate for item in items for gate in _gates(item)),
        "tier": Counter(tier for item in items for tier in _tiers(item)),
        "op": Counter(op for item in items for op in {step.op for step in item.steps}),
    }
    end = None if limit is None else offset + limit
    return ProposalPage(
        items=tuple(decisions.with_review_state(context, chosen[offset:end])),
        offset=offset,
        total=len(chosen),
        counts={name: dict(sorted(counter.items())) for name, counter in counts.items()},
        oldest_at=min((item.created_at for item in chosen), default=None),
    )


def _gates(item: Proposal) -> set[str]:
    return {reason.gate for reason in item.reasons}


def _danger(item: Proposal) -> tuple[int, bool]:
    """Return how harmful an approval by mistake would be: by the gates that quarantined it, then by the tier."""
    return max((_HARM.get(gate, 0) for gate in _gates(item)), default=0), "core" in _tiers(item)


def _tiers(item: Proposal) -> set[str]:
    return {step.after.tier.value for step in item.steps}


def proposal(context: RequestContext, proposal_id: str) -> Proposal:
    """Return a proposal of any state that a handle may read; a reviewer also gets the review context.

    Raises:
        NotFound: none with this id is visible.
    """
    item = decisions.proposal(context, proposal_id)
    return replace(item, review_context=_review_context(context, item)) if context.actor.may_decide else item


def _review_context(context: RequestContext, item: Proposal) -> ReviewContext:
    own = {step.after.id for step in item.steps}
    texts = [step.after for step in item.steps if step.before is None or step.before.text != step.after.text]
    references = list(dict.fromkeys(ref for step in item.steps for ref in step.after.evidence))
    known = VisibleReader(context).references(references)
    # The contexts that contained the memories that it would change.
    changed = dict.fromkeys((step.after.id for step in item.steps if step.before is not None), 1)
    delivered = context_deliveries(context, changed, {}) if changed else {}
    newest = filter(None, (_delivery(context, name, delivered[name]) for name in sorted(delivered, reverse=True)))
    last = next(newest, None)
    # The owner sees every context; others see that of their scopes.
    contexts = len(delivered) if VisibleReader(context).oversees_all else (last is not None) + sum(1 for _ in newest)
    gates = [reason.gate for reason in item.reasons if reason.gate in GATE_DESCRIPTIONS]
    exposure = ContextExposure(contexts=contexts, last=last) if changed else None
    return ReviewContext(
        meaning={gate: GATE_DESCRIPTIONS[gate] for gate in gates},
        evidence=tuple(Evidence(reference=name, memory=known.get(name)) for name in references),
        similar=_similar(context, texts[0], own) if texts else (),
        reached=exposure,
        flagged=_flagged(item, texts),
    )


def _delivery(context: RequestContext, name: str, pairs: set[tuple[str, int]]) -> Delivery | None:
    with suppress(Tampered):
        return VisibleReader(context).delivery(name, pairs)
    return None


def _flagged(item: Proposal, texts: list[Record]) -> tuple[Flagged, ...]:
    gates = [gate for gate in _DETECTORS if any(reason.gate == gate for reason in item.reasons)]
    return tuple(
        Flagged(memory=record.id, gate=gate, code=finding.detector, start=finding.start, end=finding.end)
        for record in texts
        for gate in gates
        for finding in _DETECTORS[gate](record.text)
    )


def _similar(context: RequestContext, record: Record, own: set[str]) -> tuple[Similar, ...]:
    reader, context = VisibleReader(context), dataclasses.replace(context, scope=record.scope)
    sensitive = VisibleReader(context).may_ask_for_sensitive
    filters = Filter(scopes=reader.readable_scopes(VisibleReader(context).scopes), include_sensitive=sensitive)
    try:
        options = {"limit": MAX_SIMILAR + len(own), "purpose": "answer", "order": "fused"}
        result = search(context, record.text[:MAX_QUERY_LENGTH], filters, **options, gated=not sensitive)  # type: ignore[arg-type]
    except KeepwardError:
        # A failing aid, such as a model that is unavailable, must not stop a decision.
        return ()
    hits = [hit for hit in result.hits if hit.memory.id not in own][:MAX_SIMILAR]
    return tuple(Similar(memory=hit.memory, score=hit.score, why=hit.why) for hit in hits)


def escape_invisible(text: str) -> str:
    """Return a text with every invisible character written out, as ``⟦U+200B⟧``.

    If the text contains such a marker itself, its bracket is written out too, so that both can be told apart.
    """
    return show_invisible(text.replace("⟦U+", "⟦U+27E6⟧U+"))


def review_steps(item: Proposal, blob: Callable[[str], str] | None = None) -> list[ProposedStep]:
    """Return the steps of a proposal, in the order in which they would be stored.

    ``blob`` returns a description of the blob with a reference.
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
    if name in {"expires_at", "occurred_at", "valid_from", "valid_until", "stale_at"} and isinstance(value, int):
        return from_micros(value).isoformat()
    return escape_invisible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
