"""A knowledge graph as memories: what is remembered for an entity, an observation or a relation.

One record each, for the tools of the reference memory server (``mcp/graph``) and for the import of its file alike. A
key makes each record unique and exempt from the search for likenesses: two observations that differ by a comma are two.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from keepward.model.memory import Kind, Tier

ENTITY, OBSERVATION, RELATION = "graph entity", "graph observation", "graph relation"
#: Longest name that is a subject and stands in a key.
_SUBJECT, _SLUG = 256, 80


def entity_item(name: str, kind: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an entity."""
    return _item(ENTITY, f"{name} ({kind})", {"name": name, "type": kind}, name)


def relation_item(start: str, kind: str, end: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for a relation."""
    return _item(RELATION, f"{start} {kind} {end}", {"from": start, "to": end, "type": kind}, start, end, kind)


def observation_item(name: str, content: str, limit: int) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an observation; ``content_of`` returns its content.

    One that does not name its entity is found by that name, too: it stands before the content. What is beyond ``limit``
    characters then stands whole in the metadata, which every gate reads too, and its beginning in the text.
    """
    line = _line(name)
    named = re.search(rf"(?<!\w){re.escape(line)}(?!\w)", content, re.IGNORECASE)
    head = "" if named or not line else f"{line}: "
    facts = {"entity": name} | ({"named": True} if head else {})
    if len(head) + len(content) <= limit:
        return _item(OBSERVATION, head + content, facts, name, content)
    begun = (head + content)[: limit - 1]
    # A word is not cut: half of a secret would not be known for one.
    shown = (begun.rsplit(None, 1)[0] if begun.split() else begun) + "…"
    return _item(OBSERVATION, shown, facts | {"content": content}, name, content)


def content_of(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the content of an observation as it was given, or as its text was changed since."""
    if "content" in metadata:
        return str(metadata["content"])
    return text.removeprefix(f"{_line(str(metadata['entity']))}: ") if metadata.get("named") else text


def _line(name: str) -> str:
    return " ".join(name.split())


def _item(category: str, words: str, facts: dict[str, Any], *identity: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for a record of the graph; ``identity`` begins with its entity."""
    line = _line(identity[0])
    mark = hashlib.sha256(json.dumps([category, *identity]).encode()).hexdigest()[:16]
    return {
        "text": words,
        "tier": Tier.ARCHIVAL.value,
        "kind": Kind.FACT.value,
        # Prefixed, so that an entity called `mission` is not taken for the block.
        "key": f"graph/{line[:_SLUG].strip()}/{mark}",
        "subject": line[:_SUBJECT] or None,
        "category": category,
        "metadata": facts,
    }
