"""A knowledge graph kept as memories: a drop-in for the nine tools of the reference memory server.

Names, arguments and results of the tools are the reference's. What the gates held, changed or refused is told in a
block of text of its own, after the one that the reference gives; the structured content holds what is in memory.

Entities, observations and relations are one record each. An observation is a keyed archival fact whose subject is its
entity, so that recall and compiled contexts of every other profile find it. Keys make each record unique and exempt
from the search for likenesses: two observations that differ by a comma are two.

Invariants
(1) What was stored is read back character for character, in the order in which it was written: exact names stand
    in the metadata, exact contents in the text, or in the metadata where the text is too short for them.
(2) Every write is a proposal of the caller's and passes the gates; what they change or hold is told.
(3) A reader sees the graph of its scope and of those above; of one name the nearest entity counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput
from keepward.mcp.tool import Answer, Run, Tool, items, obj, text, texts, tool, yes_no
from keepward.mcp.tools import outcome
from keepward.model.graph import ENTITY, OBSERVATION, RELATION, content_of, entity_item, observation_item, relation_item
from keepward.model.memory import Tier
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused
from keepward.model.trust import visible_from

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record

#: From, to, type.
Triple = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Entity:
    """One entity with what was observed of it, in the order of writing."""

    record: Record
    name: str
    type: str
    observations: list[tuple[str, Record]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Graph:
    """Entities by name and relations, each in the order of writing."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[Triple, list[Record]] = field(default_factory=dict)

    def part(self, wanted: Callable[[Entity], bool] | None = None) -> Answer:
        """Return the entities that are wanted and the relations that touch one of them; all of it by default."""
        chosen = [entity for entity in self.entities.values() if wanted is None or wanted(entity)]
        names = {entity.name for entity in chosen}
        data = {
            "entities": [
                _entity(entity.name, entity.type, [said for said, _ in entity.observations]) for entity in chosen
            ],
            "relations": [
                _relation(triple)
                for triple in self.relations
                if wanted is None or triple[0] in names or triple[1] in names
            ],
        }
        return _answer(data, data)


def load(memory: Memory) -> Graph:
    """Return the graph that the handle sees, everything in the order of writing: ids rise with time."""
    visible = visible_from(memory.scope)

    def stored(category: str) -> list[Record]:
        found = [each for each in memory.find(category=category, limit=None) if each.scope in visible]
        return sorted(found, key=lambda record: record.id)

    entities: dict[str, Entity] = {}
    for record in stored(ENTITY):
        name, kind = (str(record.metadata.get(key, "")) for key in ("name", "type"))
        # Of one name the nearest counts; of two in one scope the first.
        if name not in entities or len(entities[name].record.scope) < len(record.scope):
            entities[name] = Entity(record=record, name=name, type=kind)
    graph = Graph(entities=dict(sorted(entities.items(), key=lambda item: item[1].record.id)))
    for record in stored(OBSERVATION):
        entity = graph.entities.get(str(record.metadata.get("entity", "")))
        if entity is not None:
            entity.observations.append((_content(record), record))
    for record in stored(RELATION):
        graph.relations.setdefault(_triple(record), []).append(record)
    return graph


def _content(record: Record) -> str:
    return content_of(record.text, record.metadata)


def _triple(record: Record) -> Triple:
    start, end, kind = (str(record.metadata.get(key, "")) for key in ("from", "to", "type"))
    return start, end, kind


def _entity(name: str, kind: str, observations: list[str]) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": observations}


def _relation(triple: Triple) -> dict[str, str]:
    return dict(zip(("from", "to", "relationType"), triple, strict=True))


def _observation(memory: Memory, name: str, content: str) -> dict[str, Any]:
    return observation_item(name, content, memory.policy.text_limit[Tier.ARCHIVAL])


_ENTITY = obj(
    {
        "name": text("The name of the entity"),
        "entityType": text("The type of the entity"),
        "observations": texts("What was observed of it"),
    },
    ("name", "entityType", "observations"),
    closed=True,
)
_RELATION = obj(
    {
        "from": text("The name of the entity where the relation starts"),
        "to": text("The name of the entity where the relation ends"),
        "relationType": text("The type of the relation, in active voice"),
    },
    ("from", "to", "relationType"),
    closed=True,
)
_FOUND = {"entities": items(_ENTITY), "relations": items(_RELATION)}


def _of_entity(key: str, about: str) -> dict[str, Any]:
    """Return the schema of a list of texts, each list said of one entity."""
    return items(
        obj({"entityName": text("The name of the entity"), key: texts(about)}, ("entityName", key), closed=True)
    )


def _tool(title: str, takes: dict[str, Any] | None = None, **more: Any) -> Callable[[Run], Tool]:
    return tool(title, takes=takes, needs=tuple(takes or ()), **more)


_creates = partial(_tool, repeatable=True)
_deletes = partial(_tool, gives={"success": yes_no(), "message": text()}, destroys=True, repeatable=True)
_reads = partial(_tool, gives=_FOUND, reads=True)


@_creates("Create entities", {"entities": items(_ENTITY)}, gives={"entities": items(_ENTITY)})
def create_entities(memory: Memory, given: dict[str, Any]) -> Answer:
    """Create new entities in the knowledge graph; those whose name is there already are left as they are"""
    known = set(load(memory).entities)
    created: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, entity in enumerate(given["entities"], start=1):
        name, kind = entity["name"], entity["entityType"]
        if name in known:
            continue
        known.add(name)
        # An entity is stored with its observations as one, or not at all.
        facts = [entity_item(name, kind)]
        facts += [_observation(memory, name, content) for content in dict.fromkeys(entity["observations"])]
        result = memory.remember_many(facts, mode="atomic", reason="entity created")[0]
        if isinstance(result, Committed):
            head, *rest = result.records
            facts_of = head.metadata
            created.append(
                _entity(facts_of.get("name", ""), facts_of.get("type", ""), [_content(each) for each in rest])
            )
        notes += _notes([result], f"entity {number}")
    return _answer({"entities": created}, created, notes)


@_creates("Create relations", {"relations": items(_RELATION)}, gives={"relations": items(_RELATION)})
def create_relations(memory: Memory, given: dict[str, Any]) -> Answer:
    """Create new relations between entities in the knowledge graph; relations should be in active voice"""
    there = load(memory).relations
    new = [triple for triple in _triples(given) if triple not in there]
    facts = [relation_item(a, kind, b) for a, b, kind in new]
    results = memory.remember_many(facts, reason="relation created")
    created = [_relation(_triple(each)) for each in _stored(results)]
    return _answer({"relations": created}, created, _notes(results, "relation", numbered=True))


@_creates(
    "Add observations",
    {"observations": _of_entity("contents", "What to add")},
    gives={"results": items(obj({"entityName": text(), "addedObservations": texts()}))},
)
def add_observations(memory: Memory, given: dict[str, Any]) -> Answer:
    """Add new observations to existing entities in the knowledge graph"""
    entities = load(memory).entities
    if any(each["entityName"] not in entities for each in given["observations"]):
        raise InvalidInput("an entity that is named is not there: create it first with create_entities")
    there = {name: {content for content, _ in entity.observations} for name, entity in entities.items()}
    added: list[dict[str, Any]] = []
    notes: list[str] = []
    for each in given["observations"]:
        name = each["entityName"]
        new = [content for content in dict.fromkeys(each["contents"]) if content not in there[name]]
        facts = [_observation(memory, name, content) for content in new]
        results = memory.remember_many(facts, reason="observation added")
        there[name].update(new)
        added.append({"entityName": name, "addedObservations": [_content(each) for each in _stored(results)]})
        notes += _notes(results, "observation", numbered=True)
    return _answer({"results": added}, added, notes)


@_deletes("Delete entities", {"entityNames": texts("The names of the entities to delete")})
def delete_entities(memory: Memory, given: dict[str, Any]) -> Answer:
    """Delete entities and their relations from the knowledge graph"""
    graph, names = load(memory), dict.fromkeys(given["entityNames"])
    gone = [graph.entities[name] for name in names if name in graph.entities]
    records = [record for each in gone for record in (each.record, *(of for _, of in each.observations))]
    touching = [said for triple, said in graph.relations.items() if triple[0] in names or triple[1] in names]
    return _retired(memory, [*records, *(record for said in touching for record in said)], "entities")


@_deletes("Delete observations", {"deletions": _of_entity("observations", "What to delete")})
def delete_observations(memory: Memory, given: dict[str, Any]) -> Answer:
    """Delete observations from entities in the knowledge graph"""
    entities = load(memory).entities
    records = [
        record
        for each in given["deletions"]
        if each["entityName"] in entities
        for content, record in entities[each["entityName"]].observations
        if content in each["observations"]
    ]
    return _retired(memory, records, "observations")


@_deletes("Delete relations", {"relations": items(_RELATION)})
def delete_relations(memory: Memory, given: dict[str, Any]) -> Answer:
    """Delete relations from the knowledge graph"""
    there = load(memory).relations
    return _retired(memory, [record for triple in _triples(given) for record in there.get(triple, ())], "relations")


@_reads("Read graph")
def read_graph(memory: Memory, given: dict[str, Any]) -> Answer:
    """Read the entire knowledge graph"""
    return load(memory).part()


@_reads("Search nodes", {"query": text("What to look for in names, types and observations")})
def search_nodes(memory: Memory, given: dict[str, Any]) -> Answer:
    """Search for nodes in the knowledge graph by a text in names, types and observations"""
    query = given["query"].lower()

    def fits(entity: Entity) -> bool:
        return any(
            query in each.lower() for each in (entity.name, entity.type, *(said for said, _ in entity.observations))
        )

    return load(memory).part(fits)


@_reads("Open nodes", {"names": texts("The names of the entities to open")})
def open_nodes(memory: Memory, given: dict[str, Any]) -> Answer:
    """Open specific nodes in the knowledge graph by their names"""
    names = set(given["names"])
    return load(memory).part(lambda entity: entity.name in names)


def _triples(given: dict[str, Any]) -> Iterable[Triple]:
    return dict.fromkeys((each["from"], each["to"], each["relationType"]) for each in given["relations"])


def _answer(data: dict[str, Any], shown: Any, notes: Iterable[str] = ()) -> Answer:
    return Answer(data=data, text=json.dumps(shown, indent=2, ensure_ascii=False), notes=tuple(notes))


def _retired(memory: Memory, records: Sequence[Record], what: str) -> Answer:
    reason = f"{what} deleted"
    result = memory.forget_many([record.id for record in records], reason=reason)[0] if records else None
    if result is None or isinstance(result, Committed):
        message = f"{reason.capitalize()} successfully"
        return Answer(data={"success": True, "message": message}, text=message)
    said = outcome(result)[1]
    first = said.splitlines()[0]
    return Answer(data={"success": False, "message": first}, text=first, notes=(said,))


def _stored(results: Iterable[Outcome]) -> list[Record]:
    """Return the records that hold what was sent."""
    made = [each for each in results if isinstance(each, Committed | Duplicate)]
    return [each.records[0] if isinstance(each, Committed) else each.record for each in made]


def _notes(results: Sequence[Outcome], what: str, *, numbered: bool = False) -> list[str]:
    """Return what the reference's answer has no place for: what is held, refused, or stored otherwise than sent."""
    return [
        f"{what}{f' {number}' if numbered else ''}: {outcome(each)[1]}"
        for number, each in enumerate(results, start=1)
        if isinstance(each, Quarantined | Refused) or (isinstance(each, Committed) and each.reasons)
    ]


TOOLS = (
    *(create_entities, create_relations, add_observations, delete_entities, delete_observations, delete_relations),
    *(read_graph, search_nodes, open_nodes),
)
