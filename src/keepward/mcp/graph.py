"""Tools of the profile `graph`: a drop-in for the nine tools of the reference memory server.

Names, arguments and results are the reference's. What the gates held, changed or refused is told in a block of
text of its own, after the one that the reference gives; the structured content holds what is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput
from keepward.mcp import graph_store as kept
from keepward.mcp import shapes
from keepward.mcp.spec import Given, Tool, items, obj, text, texts, yes_no
from keepward.model.memory import Tier
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record


def create_entities(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Remember entities that are not there yet, each with its observations as one."""
    known = set(kept.load(memory).entities)
    created: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, entity in enumerate(given["entities"], start=1):
        name = entity["name"]
        if name in known:
            continue
        known.add(name)
        contents = list(dict.fromkeys(entity["observations"]))
        facts = [kept.entity_item(name, entity["entityType"])]
        facts += [kept.observation_item(name, content, _limit(memory)) for content in contents]
        outcome = memory.remember_many(facts, mode="atomic", reason="entity created")[0]
        if isinstance(outcome, Committed):
            created.append(kept.entity_of(outcome.records))
        notes += _notes(outcome, f"entity {number}")
    return Given(data={"entities": created}, text=_json(created), notes=tuple(notes))


def create_relations(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Remember relations that are not there yet."""
    graph = kept.load(memory)
    wanted = [(each["from"], each["to"], each["relationType"]) for each in given["relations"]]
    new = [triple for triple in dict.fromkeys(wanted) if triple not in graph.relations]
    outcomes = memory.remember_many([kept.relation_item(triple) for triple in new], reason="relation created")
    created = [
        kept.as_dict(kept.triple_of(_record(each))) for each in outcomes if isinstance(each, Committed | Duplicate)
    ]
    notes = _all_notes(outcomes, "relation")
    return Given(data={"relations": created}, text=_json(created), notes=notes)


def add_observations(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Remember what was observed of entities that are there."""
    graph = kept.load(memory)
    if any(each["entityName"] not in graph.entities for each in given["observations"]):
        raise InvalidInput("an entity that is named is not there: create it first with create_entities")
    there = {name: {content for content, _ in entity.observations} for name, entity in graph.entities.items()}
    results: list[dict[str, Any]] = []
    notes: list[str] = []
    for each in given["observations"]:
        name = each["entityName"]
        new = [content for content in dict.fromkeys(each["contents"]) if content not in there[name]]
        outcomes = memory.remember_many(
            [kept.observation_item(name, content, _limit(memory)) for content in new], reason="observation added"
        )
        added = [kept.content_of(_record(each)) for each in outcomes if isinstance(each, Committed | Duplicate)]
        there[name].update(new)
        results.append({"entityName": name, "addedObservations": added})
        notes += _all_notes(outcomes, "observation")
    return Given(data={"results": results}, text=_json(results), notes=tuple(notes))


def delete_entities(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Let go of entities, what was observed of them, and their relations."""
    records = kept.touching(kept.load(memory), given["entityNames"])
    return _retired(memory, records, "entities deleted", "Entities deleted successfully")


def delete_observations(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Let go of observations."""
    graph = kept.load(memory)
    records = [
        record
        for each in given["deletions"]
        if (entity := graph.entities.get(each["entityName"])) is not None
        for content, record in entity.observations
        if content in each["observations"]
    ]
    return _retired(memory, records, "observations deleted", "Observations deleted successfully")


def delete_relations(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Let go of relations."""
    graph = kept.load(memory)
    wanted = [(each["from"], each["to"], each["relationType"]) for each in given["relations"]]
    records = [record for triple in dict.fromkeys(wanted) for record in graph.relations.get(triple, ())]
    return _retired(memory, records, "relations deleted", "Relations deleted successfully")


def read_graph(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Return the whole graph."""
    del given
    return _graph(kept.load(memory).whole())


def search_nodes(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Return the entities that hold a text in name, type or observations, without regard to case."""
    query = given["query"].lower()
    return _graph(
        kept.load(memory).part(
            lambda entity: any(
                query in each.lower()
                for each in (entity.name, entity.type, *(content for content, _ in entity.observations))
            )
        )
    )


def open_nodes(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Return the entities of these names."""
    names = set(given["names"])
    return _graph(kept.load(memory).part(lambda entity: entity.name in names))


def _graph(found: dict[str, Any]) -> Given:
    return Given(data=found, text=_json(found))


def _retired(memory: Memory, records: Sequence[Record], reason: str, message: str) -> Given:
    outcome = memory.forget_many([record.id for record in records], reason=reason)[0] if records else None
    if outcome is None or isinstance(outcome, Committed):
        return Given(data={"success": True, "message": message}, text=message)
    told = shapes.outcome(outcome)[1]
    first = told.splitlines()[0]
    return Given(data={"success": False, "message": first}, text=first, notes=(told,))


def _record(outcome: Committed | Duplicate) -> Record:
    return outcome.records[0] if isinstance(outcome, Committed) else outcome.record


def _all_notes(outcomes: Sequence[Outcome], what: str) -> tuple[str, ...]:
    return tuple(note for n, each in enumerate(outcomes, start=1) for note in _notes(each, f"{what} {n}"))


def _notes(outcome: Outcome, what: str) -> list[str]:
    """Return what the reference's answer has no place for: what is held, refused, or stored otherwise than sent."""
    changed = isinstance(outcome, Committed) and bool(outcome.reasons)
    if not changed and not isinstance(outcome, Quarantined | Refused):
        return []
    return [f"{what}: {shapes.outcome(outcome)[1]}"]


def _limit(memory: Memory) -> int:
    return memory.policy.text_limit[Tier.ARCHIVAL]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


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
_OBSERVED = {"entityName": text("The name of the entity")}
_DONE = {"success": yes_no(), "message": text()}
_FOUND = {"entities": items(_ENTITY), "relations": items(_RELATION)}

TOOLS = (
    Tool(
        name="create_entities",
        title="Create entities",
        about="Create new entities in the knowledge graph; those whose name is there already are left as they are",
        run=create_entities,
        takes={"entities": items(_ENTITY)},
        needs=("entities",),
        gives={"entities": items(_ENTITY)},
        always=("entities",),
        repeatable=True,
    ),
    Tool(
        name="create_relations",
        title="Create relations",
        about="Create new relations between entities in the knowledge graph; relations should be in active voice",
        run=create_relations,
        takes={"relations": items(_RELATION)},
        needs=("relations",),
        gives={"relations": items(_RELATION)},
        always=("relations",),
        repeatable=True,
    ),
    Tool(
        name="add_observations",
        title="Add observations",
        about="Add new observations to existing entities in the knowledge graph",
        run=add_observations,
        takes={
            "observations": items(
                obj({**_OBSERVED, "contents": texts("What to add")}, ("entityName", "contents"), closed=True)
            )
        },
        needs=("observations",),
        gives={"results": items(obj({"entityName": text(), "addedObservations": texts()}))},
        always=("results",),
        repeatable=True,
    ),
    Tool(
        name="delete_entities",
        title="Delete entities",
        about="Delete entities and their relations from the knowledge graph",
        run=delete_entities,
        takes={"entityNames": texts("The names of the entities to delete")},
        needs=("entityNames",),
        gives=_DONE,
        always=("success", "message"),
        destroys=True,
        repeatable=True,
    ),
    Tool(
        name="delete_observations",
        title="Delete observations",
        about="Delete observations from entities in the knowledge graph",
        run=delete_observations,
        takes={
            "deletions": items(
                obj({**_OBSERVED, "observations": texts("What to delete")}, ("entityName", "observations"), closed=True)
            )
        },
        needs=("deletions",),
        gives=_DONE,
        always=("success", "message"),
        destroys=True,
        repeatable=True,
    ),
    Tool(
        name="delete_relations",
        title="Delete relations",
        about="Delete relations from the knowledge graph",
        run=delete_relations,
        takes={"relations": items(_RELATION)},
        needs=("relations",),
        gives=_DONE,
        always=("success", "message"),
        destroys=True,
        repeatable=True,
    ),
    Tool(
        name="read_graph",
        title="Read graph",
        about="Read the entire knowledge graph",
        run=read_graph,
        gives=_FOUND,
        always=("entities", "relations"),
        reads=True,
    ),
    Tool(
        name="search_nodes",
        title="Search nodes",
        about="Search for nodes in the knowledge graph by a text in names, types and observations",
        run=search_nodes,
        takes={"query": text("What to look for in names, types and observations")},
        needs=("query",),
        gives=_FOUND,
        always=("entities", "relations"),
        reads=True,
    ),
    Tool(
        name="open_nodes",
        title="Open nodes",
        about="Open specific nodes in the knowledge graph by their names",
        run=open_nodes,
        takes={"names": texts("The names of the entities to open")},
        needs=("names",),
        gives=_FOUND,
        always=("entities", "relations"),
        reads=True,
    ),
)
