"""Memories as files: a folder is a scope below a handle's own, and a file is a memory with its name as the key.

The content of a file is returned byte for byte. A memory of another surface is a file with its text, or with its fields
as JSON; if the changed file is still a JSON object, its fields are updated. There are no empty folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from keepward.core.memory import ContentType, Record, Tier
from keepward.core.proposal import Outcome
from keepward.core.value import load_json
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
        """Return the file at a path, or all files below it, by path. The name of a memory without a key is its id."""
        file = self.get(path)
        if file is not None:
            return {path: file}
        folder, own = self._at(path), self.memory.scope
        records = folder.list_memories(within=folder.scope, kinds=KINDS, limit=None)
        return {
            (*to_namespace(own, record.scope), name_of(record.key) if record.key else record.id): record
            for record in records
        }

    def write(self, path: FilePath, content: str, record: Record | None = None) -> Outcome:
        """Propose the content of a file; ``record`` is its earlier version, if there is one."""
        fields: Any = None
        if record is not None and record.content_type is ContentType.STRUCTURED and [*record.metadata] != ["content"]:
            with suppress(ValueError):
                fields = load_json(content)
        return self._at(path[:-1]).remember(
            index_text([content], self.memory.policy.text_limit[Tier.ARCHIVAL]),
            key=key_of(path[-1]),
            metadata=fields if isinstance(fields, dict) else {"content": content},
            content_type="structured",
            tier="archival",
            kind="document",
            reason="a file was written",
        )

    def retire(self, files: Iterable[Record], reason: str) -> Iterator[Outcome]:
        """Propose to retire files; they can be restored."""
        for record in files:
            yield self.memory.at(scope=record.scope).forget(record.id, reason=reason)

    def _at(self, folder: FilePath) -> Memory:
        return self.memory.at(scope=to_scope(self.memory.scope, folder))


def content_of(record: Record) -> str:
    """Return a memory as the content of a file."""
    if record.content_type is not ContentType.STRUCTURED:
        return record.text
    value = record.metadata
    return str(value["content"]) if [*value] == ["content"] else json.dumps(value, ensure_ascii=False, indent=1)
