"""Memories that are graphs: the reference memory server of MCP, and episodes and facts of Zep and Graphiti.

What becomes of what stands in docs/coming-from.md. An entity, an observation and a relation are a memory each. A key
makes each unique and exempt from the search for likenesses: two observations that differ by a comma are two.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Kind, Tier
from keepward.interchange.messages import turns
from keepward.interchange.reading import Flaw, Item, Plan, Source, listed, noted, records, well_formed
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory

_ACTOR = re.compile(r"([^\n:]{1,64}):\s")
_ROLES = {"user", "assistant", "system", "tool", "function"}


def is_server_memory(value: Any) -> bool:
    """Whether a JSON value is a line of the memory server's file, or what ``read_graph`` answers."""
    if not isinstance(value, dict):
        return False
    whole = {"entities", "relations"} <= value.keys()
    entity, relation = {"name", "entityType", "observations"}, {"from", "to", "relationType"}
    return whole or entity <= value.keys() or relation <= value.keys()


def plan_server_memory(source: Source, mem: Memory) -> Plan:
    """Read entities with their observations, and relations; what is said twice counts once."""
    limit, (total, rows) = mem.policy.text_limit[Tier.ARCHIVAL], records(source, "entities", "relations")

    def entries() -> Iterator[Item | Flaw]:
        for number, row in rows():
            try:
                if isinstance(row, Unusable):
                    raise row
                well_formed(row)
                for fields in _graph_items(row, limit):
                    # Its key names it, and nothing else here does.
                    named = {**fields, "aliases": (f"mcp-memory:{fields['key']}",)}
                    yield Item(number=number, fields=named, named=True, review="unless_owner")
            except (Unusable, AttributeError, TypeError):
                yield Flaw(number=number, reason="it is no entity and no relation: a name or a type is missing")

    return Plan(total=total, entries=entries())


def _graph_items(row: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    names = ("from", "relationType", "to") if "relationType" in row else ("name", "entityType")
    given, said = [row.get(name) for name in names], row.get("observations", [])
    texts = [each for each in (*given, *said) if isinstance(each, str) and each.strip()]
    if len(texts) < len(given) + len(said):
        raise Unusable("a name or a type is missing")
    if "relationType" in row:
        return [relation_item(*texts[:3])]
    name, kind, *observations = texts
    return [entity_item(name, kind), *(observation_item(name, each, limit) for each in dict.fromkeys(observations))]


def is_zep(value: Any) -> bool:
    """Whether a JSON value is an episode or a fact of Zep or Graphiti, or a list of either."""
    if not isinstance(value, dict):
        return False
    lists = any(isinstance(value.get(name), list) for name in ("episodes", "edges", "facts"))
    episode = {"uuid", "content"} <= value.keys() and bool({"source", "source_description", "role_type"} & value.keys())
    return lists or episode or {"uuid", "fact", "name"} <= value.keys()


def plan_zep(source: Source, mem: Memory) -> Plan:
    """Read episodes and the facts that hold."""
    limits, (total, rows) = mem.policy.text_limit, records(source, "episodes", "edges", "facts")
    places, left = Counter[str](), Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, row in rows():
            if not isinstance(row, dict):
                yield Flaw(number=number, reason="an episode is an object")
            elif "fact" in row:
                if row.get("invalid_at") or row.get("expired_at"):
                    left["facts that no longer hold"] += 1
                    continue
                given = {"name": row.get("uuid"), "when": row.get("valid_at"), "category": row.get("name")}
                refs = tuple(each for each in listed(row.get("episodes")) if isinstance(each, str))
                yield from noted(number, limits[Tier.ARCHIVAL], row["fact"], evidence=refs, **given)
            elif row.get("source") == "message" or row.get("role_type"):
                own = next((row[key] for key in ("session_id", "thread_id", "group_id") if row.get(key)), None)
                name = str(own or source.session or source.stem)
                places[name] += 1
                yield from turns([(places[name], _spoken(row))], name, limits[Tier.EPISODIC], left, number)
            else:
                when = row.get("valid_at") or row.get("created_at")
                given = {"name": row.get("uuid"), "category": row.get("source_description") or None}
                yield from noted(number, limits[Tier.ARCHIVAL], row.get("content"), kind="document", when=when, **given)

    return Plan(total=total, entries=entries(), left=left)


def _spoken(row: dict[str, Any]) -> dict[str, Any]:
    """Return an episode as a message, whose speaker is its role, or stands before a colon at its beginning."""
    content, when = str(row.get("content") or ""), row.get("valid_at") or row.get("created_at")
    if row.get("role_type"):
        role = row["role_type"] if row["role_type"] in _ROLES else "user"
        return {"role": role, "name": row.get("role"), "content": content, "id": row.get("uuid"), "timestamp": when}
    speaker = _ACTOR.match(content)
    name = speaker[1].strip() if speaker else ""
    role = {"ai": "assistant", "human": "user"}.get(name.lower(), name.lower())
    own = {"role": role} if role in _ROLES else {"role": "user", "name": name or None}
    said = content[speaker.end() :] if speaker else content
    return own | {"content": said, "id": row.get("uuid"), "timestamp": when}


# --- an entity, an observation, a relation as a memory

_ENTITY, _OBSERVATION, _RELATION = "graph entity", "graph observation", "graph relation"
#: Longest name that is a subject and stands in a key.
_SUBJECT, _SLUG = 256, 80


def entity_item(name: str, kind: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an entity."""
    return _item(_ENTITY, f"{name} ({kind})", {"name": name, "type": kind}, name)


def relation_item(start: str, kind: str, end: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for a relation."""
    return _item(_RELATION, f"{start} {kind} {end}", {"from": start, "to": end, "type": kind}, start, end, kind)


def observation_item(name: str, content: str, limit: int) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an observation.

    One that does not name its entity is found by that name, too: it stands before the content. What is beyond ``limit``
    characters then stands whole in the metadata, which every gate reads too, and its beginning in the text.
    """
    line = _line(name)
    named = re.search(rf"(?<!\w){re.escape(line)}(?!\w)", content, re.IGNORECASE)
    head = "" if named or not line else f"{line}: "
    facts = {"entity": name} | ({"named": True} if head else {})
    if len(head) + len(content) <= limit:
        return _item(_OBSERVATION, head + content, facts, name, content)
    begun = (head + content)[: limit - 1]
    # A word is not cut: half of a secret would not be known for one.
    shown = (begun.rsplit(None, 1)[0] if begun.split() else begun) + "…"
    return _item(_OBSERVATION, shown, facts | {"content": content}, name, content)


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
