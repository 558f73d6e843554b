"""Facts: what a receipt says of a compiled context, and the context's id.

Invariants
(1) Facts are plain JSON values, hold no memory text, and are enough to make the bytes again.
(2) The id is the hash of all that determines the text, and of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepward.context.render import Rendered, Tally, digest
from keepward.context.sections import Inputs
from keepward.model.codec import canonical
from keepward.model.compiled import Excluded, Section
from keepward.model.value import to_micros


def facts_of(
    inputs: Inputs,
    mode: str,
    rendered: Rendered,
    tokens: Tally,
    sections: Sequence[Section],
    excluded: Sequence[Excluded],
) -> dict[str, Any]:
    """Return the facts of a context."""
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}
    named = {
        "compiled": mode,
        "format": inputs.format,
        "inputs": {
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
            "include_weak": inputs.include_weak,
        },
        "documents": {kind: given[0] for kind, given in documents.items() if given is not None},
        "digests": {
            "text": digest(rendered.formatted(inputs.format)),
            "prefix": rendered.prefix_digest,
            "tail": rendered.tail_digest,
        },
    }
    return {
        "context_id": digest(canonical(named).decode()),
        **named,
        "tokens": tokens.whole,
        "tokens_by_tier": dict(sorted(tokens.by_tier.items())),
        "sections": [_section_facts(section) for section in sections],
        "excluded": [{"id": out.id, "version": out.version, **out.reason.as_dict()} for out in excluded],
        "unlisted": dict(sorted(inputs.unlisted.items())),
    }


def _section_facts(section: Section) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for item in section.items:
        facts = {name: getattr(item, name) for name in ("id", "version", "tier", "kind", "tokens")}
        facts["masks"] = [list(mask) for mask in item.masks]
        if item.block is not None:
            facts["block"] = item.block
        if item.score is not None:
            facts |= {"score": item.score, "weak": item.weak, "parts": dict(item.parts)}
        items.append(facts)
    return {"name": section.name, "tokens": section.tokens, "digest": section.digest, "items": items}
