"""A knowledge graph kept as memories: entities, observations and relations, each one record.

An observation is a keyed archival fact whose subject is its entity, so that recall and compiled contexts of every
other profile find it. Keys make each record unique and exempt from the search for likenesses: two observations
that differ by a comma are two.

Invariants
(1) What was stored is read back character for character, in the order in which it was written: exact names stand
    in the metadata, exact contents in the text, or in the metadata where the text is too short for them.
(2) Every write is a proposal of the caller's and passes the gates; what they change or hold is told.
(3) A reader sees the graph of its scope and of those above; of one name the nearest entity counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepward.model.memory import Kind, Tier
from keepward.model.trust import visible_from

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record

ENTITY, OBSERVATION, RELATION = "graph entity", "graph observation", "graph relation"
#: Longest name that is a subject and stands in a key.
_SUBJECT, _SLUG = 256, 80

#: From, to, type.
Triple = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Entity:
    """One entity with what was observed of it, in the order of writing."""

    record: Record
    name: str
    type: str
    observations: list[tuple[str, Record]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as the tools write it."""
        return {"name": self.name, "entityType": self.type, "observations": [text for text, _ in self.observations]}


@dataclass(slots=True, kw_only=True)
class Graph:
    """Entities by name and relations, each in the order of writing."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[Triple, list[Record]] = field(default_factory=dict)

    def part(self, wanted: Callable[[Entity], bool]) -> dict[str, Any]:
        """Return the entities that are wanted, and the relations that touch one of them."""
        chosen = [entity for entity in self.entities.values() if wanted(entity)]
        names = {entity.name for entity in chosen}
        return {
            "entities": [entity.as_dict() for entity in chosen],
            "relations": [as_dict(triple) for triple in self.relations if triple[0] in names or triple[1] in names],
        }

    def whole(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "entities": [entity.as_dict() for entity in self.entities.values()],
            "relations": [as_dict(triple) for triple in self.relations],
        }


def as_dict(triple: Triple) -> dict[str, str]:
    """Return a relation as the tools write it."""
    return {"from": triple[0], "to": triple[1], "relationType": triple[2]}


def facts_of(record: Record) -> dict[str, Any]:
    """Return the metadata of a record."""
    return record.metadata


def content_of(record: Record) -> str:
    """Return the whole content of an observation."""
    return str(facts_of(record).get("content", record.text))


def triple_of(record: Record) -> Triple:
    """Return a relation's ends and type."""
    facts = facts_of(record)
    return str(facts.get("from", "")), str(facts.get("to", "")), str(facts.get("type", ""))


def entity_of(records: Sequence[Record]) -> dict[str, Any]:
    """Return an entity as the tools write it, from its own record and those of its observations, in this order."""
    facts = facts_of(records[0])
    return {
        "name": str(facts.get("name", "")),
        "entityType": str(facts.get("type", "")),
        "observations": [content_of(record) for record in records[1:]],
    }


def load(memory: Memory) -> Graph:
    """Return the graph that the handle sees."""
    graph = Graph()
    for record in _stored(memory, ENTITY):
        facts = facts_of(record)
        name = str(facts.get("name", ""))
        graph.entities.setdefault(name, Entity(record=record, name=name, type=str(facts.get("type", ""))))
    for record in _stored(memory, OBSERVATION):
        entity = graph.entities.get(str(facts_of(record).get("entity", "")))
        if entity is not None:
            entity.observations.append((content_of(record), record))
    for record in _stored(memory, RELATION):
        graph.relations.setdefault(triple_of(record), []).append(record)
    return _ordered(graph)


def _stored(memory: Memory, category: str) -> list[Record]:
    """Return records of one sort that are in sight, nearest scope first, then oldest first."""
    visible = visible_from(memory.scope)
    found = [each for each in memory.find(category=category, limit=None) if each.scope in visible]
    return sorted(found, key=lambda record: (-len(record.scope), record.id))


def _ordered(graph: Graph) -> Graph:
    """Put everything in the order of writing, whichever scope it lies in; ids rise with time."""
    entities = sorted(graph.entities.values(), key=lambda entity: entity.record.id)
    for entity in entities:
        entity.observations.sort(key=lambda pair: pair[1].id)
    relations = sorted(graph.relations.items(), key=lambda pair: pair[1][0].id)
    return Graph(entities={entity.name: entity for entity in entities}, relations=dict(relations))


def entity_item(name: str, kind: str) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an entity."""
    return _item(ENTITY, name, f"{name} ({kind})", {"name": name, "type": kind}, (name,))


def observation_item(name: str, content: str, limit: int) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for an observation; ``limit`` is the tier's, in characters.

    A longer content stands whole in the metadata, which every gate reads too, and its beginning in the text.
    """
    facts = {"entity": name}
    shown = content
    if len(content) > limit:
        facts["content"] = content
        head = content[: limit - 1]
        # A word is not cut: half of a secret would not be known for one.
        shown = (head.rsplit(None, 1)[0] if head.split() else head) + "…"
    return _item(OBSERVATION, name, shown, facts, (name, content))


def relation_item(triple: Triple) -> dict[str, Any]:
    """Return what ``Memory.remember`` takes for a relation."""
    start, end, kind = triple
    return _item(RELATION, start, f"{start} {kind} {end}", {"from": start, "to": end, "type": kind}, triple)


def _item(category: str, name: str, words: str, facts: dict[str, Any], identity: Sequence[str]) -> dict[str, Any]:
    line = " ".join(name.split())
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


def touching(graph: Graph, names: Iterable[str]) -> list[Record]:
    """Return every record that goes with these entities: themselves, their observations, relations at either end."""
    gone = set(names)
    records = [
        record
        for name in dict.fromkeys(names)
        if (entity := graph.entities.get(name)) is not None
        for record in (entity.record, *(each for _, each in entity.observations))
    ]
    records += [
        record for triple, kept in graph.relations.items() if triple[0] in gone or triple[1] in gone for record in kept
    ]
    return records
