"""Export everything about one person, agent or project: its memories with old versions, proposals and contexts.

The journal is read once, so that a version counts whose memory says something else today.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from keepward.core.commit import Event
from keepward.core.copies import SubjectExport, SubjectMemory
from keepward.core.json_form import to_json
from keepward.core.memory import NAME_FIELDS, NAME_LIST_FIELDS, Record
from keepward.core.principals import SHARED_SCOPE, is_actor, is_within_scope, main_scope
from keepward.core.proposal import Proposal
from keepward.errors import InvalidInput, KeepwardError, Tampered
from keepward.services.access import context_deliveries
from keepward.services.reading.visible import VisibleReader

if TYPE_CHECKING:
    from keepward.core.journal import Delivery
    from keepward.services.request_context import RequestContext

#: Why a memory is in an export, the closest bond first.
BONDS = ("about", "own", "said", "mentions")
#: The scopes of a name, by the kind of its actor; a name without a kind has all of them.
_SCOPE_FOLDERS = {"user": ("users",), "agent": ("agents",), "": ("users", "agents", "projects")}
#: What no export of a subject has.
_LEFT_OUT = (
    "Memories that mean it by another name, by a pronoun, or as a part of a longer word.",
    "What was erased: its content no longer exists.",
    "The texts of contexts and the questions that they answered; `keepward receipt` shows those of one context.",
    "Counts of use, feedback, learned weights and vectors.",
    "Copies elsewhere: backups, other exports, and what models were given.",
)


def export_subject(context: RequestContext, name: str) -> SubjectExport:
    """Return everything about a name, from one snapshot. Nothing changes.

    Raises:
        InvalidInput: the name is empty, or the handle is not at the shared scope.
    """
    if context.scope != SHARED_SCOPE:
        raise InvalidInput(f"this export reads every scope, not only {context.scope}: export from the scope /")
    subject = _Subject(name)
    reader = VisibleReader(context)
    bonds: dict[str, str] = {}
    for _, events in context.store.events(context.tenant):
        for event in events:
            bond = subject.bond_of(_fields(event))
            if bond is not None:
                bonds[event.memory_id] = min(bond, bonds.get(event.memory_id, bond), key=BONDS.index)
    memories, unreadable = list[SubjectMemory](), 0
    for memory_id, bond in sorted(bonds.items(), key=lambda pair: (BONDS.index(pair[1]), pair[0])):
        try:
            versions = reader.history(memory_id)
        except KeepwardError:
            unreadable += 1
            continue
        unreadable += bool(versions.notes) or any(version.damage for version in versions)
        memories.append(SubjectMemory(id=memory_id, bond=bond, versions=tuple(versions)))
    contexts, damaged = _contexts(context, reader, [memory.id for memory in memories])
    left_out = list(_LEFT_OUT)
    if any(version.record.blob for memory in memories for version in memory.versions):
        left_out.append("The bytes of files: `blob` names each, and `read_blob` returns it.")
    if unreadable or damaged:
        left_out.append(
            f"{unreadable + damaged} memories or receipts that could not be read, or in part: run `keepward verify`."
        )
    return SubjectExport(
        name=name,
        at=context.clock.now(),
        head=context.store.head(context.tenant).name,
        memories=tuple(memories),
        proposals=tuple(item for item in reader.proposals(None) if subject.is_in(item, bonds.keys())),
        contexts=contexts,
        left_out=tuple(left_out),
    )


def _contexts(context: RequestContext, reader: VisibleReader, ids: list[str]) -> tuple[tuple[Delivery, ...], int]:
    """Return the contexts that contained any of some memories, oldest first, and how many receipts are damaged."""
    found, damaged = list[Any](), 0
    for receipt, pairs in context_deliveries(context, dict.fromkeys(ids, 1), {}).items():
        try:
            found += filter(None, [reader.delivery(receipt, pairs)])
        except Tampered:
            damaged += 1
    return tuple(sorted(found, key=lambda delivery: (delivery.at, delivery.receipt))), damaged


def _fields(event: Event) -> dict[str, Any]:
    """Return the fields of a version; none if its content was erased."""
    return {} if event.payload is None else json.loads(event.payload)


class _Subject:
    """What a name matches: a subject, the scopes and statements of an actor, and words of a text, whatever the case."""

    def __init__(self, name: str) -> None:
        self.name = name.strip()
        kind, _, bare = self.name.rpartition(":")
        if not bare:
            raise InvalidInput("name whom or what to export, such as `olga brandt` or `agent:planner`")
        # Only a kind of actor precedes a name; a page such as https://a.example is a complete name.
        self.bare = bare if kind in {*_SCOPE_FOLDERS, "operator", "reviewer"} else self.name
        self.scopes = tuple(f"/{folder}/{self.bare}".casefold() for folder in _SCOPE_FOLDERS.get(kind, ()))
        self._mention = re.compile(rf"(?<!\w){re.escape(self.bare)}(?!\w)", re.IGNORECASE)

    def bond_of(self, fields: dict[str, Any]) -> str | None:
        """Return how a version is bound to the name; None if it is not."""
        if not fields:
            return None
        if self._is(fields.get("subject")):
            return "about"
        scope = main_scope(str(fields.get("scope", "")).casefold())
        if any(is_within_scope(scope, own) for own in self.scopes):
            return "own"
        said_by = (fields.get("text_by") or "", fields.get("author") or "")
        if self._is(fields.get("speaker")) or any(is_actor(label, self.name) for label in said_by):
            return "said"
        words = [fields.get(name) for name in ("text", *NAME_FIELDS)]
        words += [word for name in NAME_LIST_FIELDS for word in fields.get(name) or ()]
        words.append(fields.get("metadata"))
        return "mentions" if any(self._mention.search(_text(word)) for word in words if word) else None

    def is_in(self, item: Proposal, ids: Any) -> bool:
        """Whether a proposal is by the name, or would change or store a memory that is bound to it."""
        records: list[Record] = [side for step in item.steps for side in (step.before, step.after) if side is not None]
        return is_actor(item.proposer.label, self.name) or any(
            record.id in ids or self.bond_of(to_json(record)) is not None for record in records
        )

    def _is(self, value: str | None) -> bool:
        return value is not None and value.casefold() in {self.bare.casefold(), self.name.casefold()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
