"""Agents of Pydantic AI with Keepward's toolset and conversations: what one process keeps, the next one is told."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from keepward import Memory
from keepward.integrations.pydantic_ai import KeepwardConversationStore, KeepwardToolset

WEB = "Invoices go to the account 4711 at Northbank."

PASSWORD = "the database password is Tr0ub4dor&3x!"


def agent(mem: Memory, *calls: tuple[str, dict[str, Any]]) -> Agent:
    """Return an agent that calls these tools, and then says what it was told."""
    left = list(calls)

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if left:
            return ModelResponse(parts=[ToolCallPart(*left.pop(0))])
        last = messages[-1]
        told = isinstance(last, ModelRequest) and "Ana prefers tabs" in (last.instructions or "")
        return ModelResponse(parts=[TextPart("Tabs, as I was told." if told else "Done.")])

    return Agent(FunctionModel(answer), toolsets=[KeepwardToolset(mem)])


async def remember(mem: Memory) -> None:
    """Keep a fact, propose what a person has to decide, and save the conversation."""
    core = {"text": "Ship by June", "tier": "core", "key": "mission"}
    calls = ("remember", {"text": "Ana prefers tabs"}), ("remember", core), ("remember", {"words": "?"})
    store = KeepwardConversationStore(mem)
    result = await agent(mem, *calls).run(
        "Keep in mind what we said.", conversation=Conversation(conversation_id="monday")
    )
    returned = [part for each in result.all_messages() for part in each.parts if isinstance(part, ToolReturnPart)]
    assert [each.outcome for each in returned] == ["success", "success", "failed"], returned
    assert [each.metadata["outcome"] for each in returned[:2]] == ["committed", "quarantined"], returned
    assert "quarantined" in str(returned[1].content)
    assert len(await store.save(result)) == len(result.all_messages())
    # This model replies with what its tools answered.
    echo = Agent(TestModel(call_tools=["recall", "remember"]), toolsets=[KeepwardToolset(mem)])
    echoed = await echo.run("Say what your tools do.", conversation=Conversation(conversation_id="echo"))
    assert "receipt" in echoed.output
    await store.save(echoed)
    shown = mem.context("What do your tools say of a memory and its receipt?", budget_tokens=4_000).text
    assert "Say what your tools do." in shown
    assert "receipt 0" not in shown, "a context has the answer of a tool"
    loaded = await store.load("echo")
    assert loaded is not None
    assert [each.parts for each in loaded.messages] == [each.parts for each in echoed.all_messages()]
    tampered = await store.load("monday")
    assert tampered is not None
    assert tampered.messages == result.all_messages()
    tampered.messages.append(ModelRequest.user_text_prompt(PASSWORD))
    await store.save(tampered)
    saved = await store.load("monday")
    assert saved is not None
    assert len(saved.messages) == len(tampered.messages)
    assert PASSWORD not in str(saved.messages), "a password was saved"


async def recall(mem: Memory) -> None:
    """Go on with the conversation: the context tells what was kept, and every save is based on the one before."""
    store = KeepwardConversationStore(mem)
    loaded = await store.load("monday")
    assert loaded is not None
    length = len(loaded.messages)
    result = await agent(mem).run("Does Ana prefer tabs?", conversation=loaded)
    assert result.output == "Tabs, as I was told.", result.all_messages()
    assert len(await store.save(result)) == 2
    record = await store.read_record("monday")
    assert record is not None
    hits = mem.recall("conversation monday").hits
    assert all(each.memory.text for each in hits), hits
    assert "conversation:monday" not in mem.context("conversation monday").text
    for save in (store.save(loaded), store.write_record(record, expected_revision="an older one")):
        try:
            await save
        except ConversationConflict:
            pass
        else:
            raise AssertionError("an older state was saved over a newer one")
    fork = await store.fork("monday", at=2)
    await store.delete("monday")
    assert await store.load("monday") is None
    again = await store.load(fork.conversation_id)
    assert again is not None
    assert again.messages == loaded.messages[:2]
    assert length == len(mem.list_memories(session="monday", include_ended=True)) - 2
    mem.remember(WEB, source="web")
    result = await agent(mem).run("Where do invoices go?")
    assert "from web, unverified" in str(result.all_messages()[0].instructions)
    assert WEB in str(result.all_messages()[0].instructions)
    assert "Ana prefers tabs" in mem.call_tool("recall", {"query": "tabs"}).text


with Memory.open("memory.db", scope="/app") as mem:
    asyncio.run({"remember": remember, "recall": recall}[sys.argv[1]](mem))
