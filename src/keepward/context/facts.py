"""Facts: what a receipt keeps of a context, enough to make its bytes again.

Invariants
(1) Facts are plain JSON values and hold no memory text.
(2) The context's id is the hash of all that determines the text, and of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keepward.context.admission import finite
from keepward.context.budget import Entry, Tally
from keepward.context.render import RENDERER, Rendered, alone_in, digest
from keepward.context.sections import SECTIONS, Compiled, Inputs
from keepward.model.codec import canonical
from keepward.model.commit import Reason
from keepward.model.compiled import Excluded, Item, Section
from keepward.model.value import to_micros


def compiled(
    inputs: Inputs,
    mode: str,
    *,
    rendered: Rendered,
    tokens: Tally,
    entries: Mapping[str, Sequence[Entry]],
    left_out: Sequence[tuple[tuple[str, int], Reason]],
    count: Callable[[str], int],
    best: float | None,
    below: int,
) -> Compiled:
    """Return the finished context, given the entries of each section in the order of the text."""
    digests = rendered.section_digests()
    sections = tuple(
        Section(
            name=name,
            tokens=tokens.by_section[name],
            digest=digests[name],
            items=tuple(_item(entry, inputs, count) for entry in entries.get(name, ())),
        )
        for name in SECTIONS
        if name in digests
    )
    excluded = tuple(Excluded(id=name, version=version, reason=why) for (name, version), why in left_out)
    named = {
        "compiled": mode,
        "renderer": RENDERER,
        "format": inputs.format,
        "inputs": _determinants(inputs),
        "documents": {
            kind: given[0]
            for kind, given in (("identity", inputs.identity), ("user_file", inputs.user_file))
            if given is not None
        },
        "digests": {
            "text": digest(rendered.text),
            "prefix": rendered.prefix_digest,
            "tail": rendered.tail_digest,
        },
    }
    context_id = digest(canonical(named).decode())
    by_tier = dict(sorted(tokens.by_tier.items()))
    facts = {
        "context_id": context_id,
        **named,
        "tokens": tokens.whole,
        "tokens_by_tier": by_tier,
        "sections": [_section(section) for section in sections],
        "relevance": {"floor": inputs.floor, "below": below},
        "excluded": [{"id": out.id, "version": out.version, **out.reason.as_dict()} for out in excluded],
    }
    return Compiled(
        text=rendered.text,
        context_id=context_id,
        sections=sections,
        excluded=excluded,
        tokens=tokens.whole,
        tokens_by_tier=by_tier,
        prefix_digest=rendered.prefix_digest,
        tail_digest=rendered.tail_digest,
        facts=facts,
        best=best,
        below=below,
    )


def _determinants(inputs: Inputs) -> dict[str, Any]:
    return {
        "objective": inputs.objective,
        "purpose": inputs.purpose,
        "now": to_micros(inputs.now),
        "head": inputs.head,
        "scope": inputs.scope,
        "policy": inputs.policy.version,
        "budget_tokens": inputs.budget_tokens,
        "counter": inputs.counter_name,
        "versions": dict(sorted(inputs.versions.items())),
        "include_sensitive": inputs.include_sensitive,
        # A hash is of whole numbers, so that it is the same on every machine.
        "floor": round(inputs.floor * 1_000_000),
    }


def _item(entry: Entry, inputs: Inputs, count: Callable[[str], int]) -> Item:
    record, line = entry.record, entry.line
    alone = alone_in(line, inputs.format) if line else ""
    return Item(
        id=record.id,
        version=record.version,
        tier=record.tier._value_,
        kind=record.kind._value_,
        tokens=count(alone),
        masks=entry.masks,
        score=entry.score,
        parts={name: finite(part) for name, part in sorted(entry.parts.items())},
        weak=entry.score is not None and entry.score < inputs.policy.relevance_weak,
        block=line.block if line else None,
    )


def _section(section: Section) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for item in section.items:
        facts: dict[str, Any] = {
            "id": item.id,
            "version": item.version,
            "tier": item.tier,
            "kind": item.kind,
            "tokens": item.tokens,
            "masks": [list(mask) for mask in item.masks],
        }
        if item.block is not None:
            facts["block"] = item.block
        if item.score is not None:
            facts |= {"score": item.score, "weak": item.weak, "parts": dict(item.parts)}
        items.append(facts)
    return {"name": section.name, "tokens": section.tokens, "digest": section.digest, "items": items}
