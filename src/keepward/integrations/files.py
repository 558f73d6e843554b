"""Memories as files: a folder is a scope below a handle's own, and a file is a memory with its name as the key.

Invariants
(1) Content comes back to the byte. What another surface keeps is read as its text, or its fields as JSON, and a changed
    file that still is a JSON object gives its fields again.
(2) There are no empty folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from keepward.core.memory import ContentType, Record, Tier
from keepward.core.proposal import Outcome
from keepward.integrations import KINDS, find_item
from keepward.integrations.namespaces import index_text, key_of, name_of, to_namespace, to_scope
from keepward.memory import Memory

#: The parts of a path below the root; none for the root itself.
FilePath = tuple[str, ...]


class Files:
    """The files below the scope of a handle."""

    def __init__(self, mem: Memory) -> None:
        self.memory = mem

    def get(self, path: FilePath) -> Record | None:
        return find_item(self._at(path[:-1]), path[-1]) if path else None

    def all(self, path: FilePath) -> dict[FilePath, Record]:
        """Return the file at a place, or all files below it, by their places; one without a key is named by its id."""
        file = self.get(path)
        if file is not None:
            return {path: file}
        folder, own = self._at(path), self.memory.scope
        found = folder.list_memories(within=folder.scope, kinds=KINDS, limit=None)
        return {(*to_namespace(own, each.scope), name_of(each.key) if each.key else each.id): each for each in found}

    def write(self, path: FilePath, content: str, record: Record | None = None) -> Outcome:
        """Propose the content of a file, which was made from ``record`` where there is one."""
        return self._at(path[:-1]).remember(
            index_text([content], self.memory.policy.text_limit[Tier.ARCHIVAL]),
            key=key_of(path[-1]),
            metadata=_value(record, content),
            content_type="structured",
            tier="archival",
            kind="document",
            reason="a file was written",
        )

    def retire(self, files: Iterable[Record], reason: str) -> Iterator[Outcome]:
        """Propose that files are gone; they can be restored."""
        for each in files:
            yield self.memory.at(scope=each.scope).forget(each.id, reason=reason)

    def _at(self, folder: FilePath) -> Memory:
        return self.memory.at(scope=to_scope(self.memory.scope, folder))


def content_of(record: Record) -> str:
    """Return what a memory holds as a file (1)."""
    if record.content_type is not ContentType.STRUCTURED:
        return record.text
    value = record.metadata
    return str(value["content"]) if [*value] == ["content"] else json.dumps(value, ensure_ascii=False, indent=1)


def _value(record: Record | None, content: str) -> dict[str, Any]:
    if record is not None and record.content_type is ContentType.STRUCTURED and [*record.metadata] != ["content"]:
        with suppress(ValueError):
            value = json.loads(content)
            if isinstance(value, dict):
                return value
    return {"content": content}
