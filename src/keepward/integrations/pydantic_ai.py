"""Pydantic AI over a handle on memories: a toolset with the compiled context, and a store of conversations.

The tools are those of the MCP server. A message is an event of the session that has the conversation's id, with the
message as its fields but for instructions, found by what user and model say in it. Needs the extra ``pydantic-ai``.

Invariants
(1) A context is compiled once a run, for its prompt: instructions do not change between two requests of it.
(2) A save is one commit of a record and its entries, based on the version of the record that was read.
(3) A mistake of a model is a failed call that it reads. A quarantined or refused write is reported in the result of
    the call and in its metadata. A conversation with a quarantined or refused part is not saved: ``NotStored``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from threading import Lock
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import InstructionPart, ModelMessagesTypeAdapter, ToolReturn, ToolReturnPart
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset

from keepward.core.memory import Record, Status
from keepward.draft import Draft
from keepward.errors import NotFound, StaleVersion
from keepward.integrations import require_stored
from keepward.integrations.messages import message_fields, run_shielded, session_messages
from keepward.integrations.namespaces import key_of
from keepward.memory import Memory
from keepward.tools import ToolProfile

_RECORD: TypeAdapter[Any] = TypeAdapter(ConversationRecord)
#: Who says a part of a message; what tools are asked and return is not said.
_SPEAKERS = {"user-prompt": "user", "text": "assistant"}
#: An answer of a tool that is shorter may be in a sentence by chance.
_MIN_ANSWER_CHARS = 16
_TAG = "conversation"
_NEW: Any = {"tags": [_TAG], "tier": "archival", "kind": "fact", "content_type": "structured", "if_version": 0}


class KeepwardToolset(FunctionToolset[Any]):
    """Remember, recall and the other tools of a profile, with what is known for a run's prompt as instructions.

    ``budget_tokens`` is for that context: None for the policy's own, 0 for no context.
    """

    def __init__(
        self, mem: Memory, *, profile: ToolProfile = "default", budget_tokens: int | None = None, **options: Any
    ) -> None:
        self.memory, self.profile, self.budget_tokens = mem, profile, budget_tokens
        self._compiled: str | None = None
        super().__init__([self._tool(each) for each in mem.tools(profile=profile)], **{"id": "keepward", **options})

    async def for_run(self, ctx: Any) -> FunctionToolset[Any]:
        """Return a toolset of one run, with its own context (1)."""
        prompt, own = [ctx.prompt] if isinstance(ctx.prompt, str) else ctx.prompt or (), copy(self)
        said = "\n".join(each for each in prompt if isinstance(each, str))
        if said and self.budget_tokens != 0:
            compiled = await asyncio.to_thread(self.memory.context, said, budget_tokens=self.budget_tokens)
            own._compiled = compiled.text  # noqa: SLF001
        return own

    async def get_instructions(self, ctx: Any) -> list[InstructionPart] | None:
        """Return what is known for the prompt, after the instructions that the toolset was made with."""
        parts = list(await super().get_instructions(ctx) or ())
        if self._compiled:
            parts.append(InstructionPart(content=self._compiled, dynamic=True))
        return parts or None

    def _tool(self, tool: dict[str, Any]) -> Tool[Any]:
        async def call(**arguments: Any) -> ToolReturn:
            result = await run_shielded(lambda: self.memory.call_tool(tool["name"], arguments, profile=self.profile))
            if not result.ok:
                raise ToolFailed(result.text)
            return ToolReturn(return_value=result.text, metadata=result.data)

        return Tool.from_schema(call, tool["name"], tool["description"], tool["input_schema"])


class KeepwardConversationStore(ConversationStore):
    """Conversations at the scope of a handle. Entries that a fork shares stay when one of the two is deleted."""

    def __init__(self, mem: Memory) -> None:
        self.memory = mem
        self._lock = Lock()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        found = await asyncio.to_thread(self._found, conversation_id)
        return None if found is None else _RECORD.validate_python(found.metadata)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records, or those with a scope of the framework, newest first."""
        return await asyncio.to_thread(self._records, {} if scope is None else {"scope": scope}, limit)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry, or raise ``LookupError``."""
        return _entry(await asyncio.to_thread(self._message, entry_id))

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to one, oldest first; with a limit the newest so many."""
        return await asyncio.to_thread(self._history, head_id, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries; raise ``ConversationConflict`` where another one is stored (2)."""
        await run_shielded(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Retire a conversation and the entries that no other one reaches; they can be restored."""
        await run_shielded(self._delete, conversation_id, expected_revision)

    def _found(self, name: str) -> Record | None:
        found = self.memory.list_memories(
            key=key_of(f"{_TAG}:{name}"), tags=[_TAG], scopes=[self.memory.scope], limit=1
        )
        return found[0] if found else None

    def _records(self, where: dict[str, Any], limit: int | None) -> list[ConversationRecord]:
        asked: dict[str, Any] = {"tags": [_TAG], "scopes": [self.memory.scope], "where": where or None}
        found = self.memory.list_memories(**asked, sort="changed", limit=limit)
        return [_RECORD.validate_python(each.metadata) for each in found]

    def _message(self, entry_id: str) -> Record:
        with suppress(NotFound):
            found = self.memory.get(entry_id)
            if found.status is Status.ACTIVE:
                return found
        raise LookupError(entry_id)

    def _history(self, head_id: str | None, limit: int | None = None) -> list[ConversationEntry]:
        known: dict[str, Record] = {}
        entries: list[ConversationEntry] = []
        while head_id is not None and (limit is None or len(entries) < limit):
            if head_id not in known:
                session = str(self._message(head_id).session)
                known |= {alias: each for each in session_messages(self.memory, session) for alias in each.aliases}
            entries.append(_entry(known[head_id]))
            head_id = entries[-1].parent_id
        return entries[::-1]

    def _write(self, record: ConversationRecord, entries: Sequence[ConversationEntry], expected: str | None) -> None:
        name, value = record.conversation_id, _RECORD.dump_python(record, mode="json")
        with self._saving(name, expected, "a conversation was saved") as (stored, draft):
            if record.head_id is not None and record.head_id not in {each.id for each in entries}:
                self._message(record.head_id)
            answers = list(_tool_answers(entries))
            for each in entries:
                draft.insert(**self._fields(name, each, answers), aliases=[each.id])
            if stored is not None:
                draft.replace(stored.id, "", metadata=value, if_version=stored.version)
            else:
                draft.insert("", key=key_of(f"{_TAG}:{name}"), metadata=value, **_NEW)

    def _delete(self, name: str, expected: str) -> None:
        with self._saving(name, expected, "a conversation was deleted") as (stored, draft):
            others = [each for each in self._records({}, None) if each.conversation_id != name and each.forked_from]
            tips = {tip for each in others for tip in (each.head_id, *each.branches)}
            reached = {entry.id for tip in tips for entry in self._history(tip)}
            for each in (stored, *session_messages(self.memory, key_of(name))):
                if each is not None and not reached.intersection(each.aliases):
                    draft.retire(each.id, if_version=each.version)

    @contextmanager
    def _saving(self, name: str, expected: str | None, reason: str) -> Iterator[tuple[Record | None, Draft]]:
        """Give the record of a conversation, which has to be the expected one, and a draft based on it (2)."""
        with self._lock:
            stored = self._found(name)
            if (None if stored is None else stored.metadata["revision"]) != expected:
                raise ConversationConflict(name)
            try:
                with self.memory.draft(reason=reason) as draft:
                    yield stored, draft
            except (StaleVersion, LookupError) as fault:
                raise ConversationConflict(name) from fault
            require_stored(draft.outcome)

    def _fields(self, name: str, entry: ConversationEntry, answers: Sequence[str]) -> dict[str, Any]:
        (message,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
        # They are made for each run: the context in them is no part of what was said.
        message.pop("instructions", None)
        said = [each for each in message["parts"] if each["part_kind"] in _SPEAKERS]
        # A model that repeats the answer of a tool says nothing that is worth recalling.
        said = [
            each for each in said if each["part_kind"] != "text" or not any(map(each["content"].__contains__, answers))
        ]
        speaker = _SPEAKERS[said[0]["part_kind"]] if said else "tool"
        return message_fields(
            self.memory, key_of(name), {"message": message, "parent_id": entry.parent_id}, said, speaker
        )


def _tool_answers(entries: Sequence[ConversationEntry]) -> Iterator[str]:
    """Yield the answers of tools, each as plain text and as JSON, since a model may quote either."""
    for part in (part for each in entries for part in each.message.parts if isinstance(part, ToolReturnPart)):
        answer = part.model_response_str()
        if len(answer) >= _MIN_ANSWER_CHARS:
            yield answer
            yield json.dumps(answer, ensure_ascii=False)[1:-1]


def _entry(found: Record) -> ConversationEntry:
    (message,) = ModelMessagesTypeAdapter.validate_python([found.metadata["message"]])
    return ConversationEntry(id=found.aliases[0], parent_id=found.metadata["parent_id"], message=message)
