"""Words of other memory systems: the first lines that their users type either work or say the call here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from keepward import AsyncMemory, Client, InvalidInput, Memory
from keepward.core.foreign_words import ARGUMENTS, HANDLES, METHODS
from keepward.operations import OPERATIONS

HELLO = [{"role": "user", "content": "I like tea"}]


@pytest.fixture
def handles(mem: Memory) -> Iterator[list[Any]]:
    """Every kind of handle."""
    with Client("http://localhost:1") as client:
        yield [mem, mem.user("ana"), mem.project("shop").agent("plan"), AsyncMemory(mem), client, client.user("ana")]


def awaited(result: Any) -> Any:
    async def wait() -> Any:
        return await result

    return asyncio.run(wait()) if asyncio.iscoroutine(result) else result


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # mem0
        ("search", "recall("),
        ("get_all", "list_memories("),
        ("update", "revise("),
        ("delete", "forget("),
        ("delete_all", 'user("ana").erase()'),
        ("reset", 'user("ana").erase()'),
        # LangChain and LangMem
        ("save_context", "add([{"),
        ("load_memory_variables", "context("),
        ("clear", 'user("ana").erase()'),
        ("put", "remember("),
        ("similarity_search", "recall("),
        # Letta
        ("archival_memory_insert", "remember("),
        ("archival_memory_search", "recall("),
        ("core_memory_append", "append("),
        ("blocks", "list_memories("),
        # Zep and Graphiti
        ("add_episode", "add([{"),
        ("get_user_context", "context("),
        ("thread", "session("),
        ("add_memory", "remember("),
        # A vault of canon and register, notes, tiers, blocks and a bank
        ("update_by_topic", "remember("),
        ("promote_to_canon", "promote("),
        ("propose_deletions", "merge_candidates("),
        ("writeNote", "remember("),
        ("mergeNotes", "merge("),
        ("update_soul", "update_identity("),
        ("memory_begin_edits", "draft("),
        ("approve_mutation", "approve("),
        ("buildSystemPrompt", "context("),
        ("prune", 'run_job("prune")'),
    ],
)
def test_a_method_of_another_system_shows_the_call_here(handles: list[Any], name: str, shown: str) -> None:
    for handle in handles:
        with pytest.raises(AttributeError) as fault:
            getattr(handle, name)
        assert f"{type(handle).__name__} has no {name}; here it is {shown}" in str(fault.value)


def test_a_name_of_no_system_shows_no_call(handles: list[Any]) -> None:
    for handle in handles:
        with pytest.raises(AttributeError, match=r"has no nothing_of_the_sort$"):
            handle.nothing_of_the_sort  # noqa: B018


@pytest.mark.parametrize("open_", [Memory, AsyncMemory, lambda: Memory("memory.db"), lambda: Memory(config={})])  # type: ignore[arg-type, call-arg]
def test_a_store_that_is_called_like_a_class_says_how_it_is_opened(open_: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r'Memory\.open\("memory\.db"\)'):
        open_()


def test_the_class_of_a_handle_shows_how_it_is_opened() -> None:
    for kind in (Memory, AsyncMemory):
        with pytest.raises(AttributeError, match=r"Memory\.open"):
            kind.from_config({})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda mem: mem.add(HELLO, user_id="ana"), 'memory.user("ana").add('),
        (lambda mem: mem.remember("x", user_id="ana"), 'memory.user("ana").remember('),
        (lambda mem: mem.recall("x", user_id="ana"), 'memory.user("ana").recall('),
        (lambda mem: mem.context("x", user="ana"), 'memory.user("ana").context('),
        (lambda mem: mem.remember("x", agent_id="planner"), 'memory.agent("planner").remember('),
        (lambda mem: mem.recall("x", project_id="shop"), 'memory.project("shop").recall('),
        (lambda mem: mem.recall("x", namespace="app"), 'memory.at(scope="/agents/planner").recall('),
        (lambda mem: mem.add(HELLO, run_id="r1"), "did you mean `session`?"),
        (lambda mem: mem.context("x", session="s1"), 'memory.recall("...", session="s1")'),
        (lambda mem: mem.context(query="x"), "did you mean `objective`?"),
        (lambda mem: mem.recall(objective="x"), "did you mean `query`?"),
        (lambda mem: mem.memory_block(objective="x"), "did you mean `query`?"),
        (lambda mem: mem.recall("x", top_k=3), "did you mean `limit`?"),
        (lambda mem: mem.recall("x", k=3), "did you mean `limit`?"),
        (lambda mem: mem.list_memories(top_k=3), "did you mean `limit`?"),
        (lambda mem: mem.recall("x", filters={"a": 1}), "did you mean `where`?"),
        (lambda mem: mem.recall("x", threshold=0.5), "did you mean `floor`?"),
        (lambda mem: mem.context("x", max_tokens=500), "did you mean `budget_tokens`?"),
        (lambda mem: mem.remember(content="x"), "did you mean `text`?"),
        (lambda mem: mem.remember("x", id="7"), "`aliases`"),
        (lambda mem: mem.revise(id="7", text="x"), "did you mean `memory_id`?"),
        (lambda mem: mem.remember("x", topic_id="status"), "did you mean `key`?"),
        (lambda mem: mem.remember("x", topicId="status"), "did you mean `key`?"),
        (lambda mem: mem.remember("x", permission="familiar"), "did you mean `access`?"),
        (lambda mem: mem.remember("x", provenance="user_message"), "did you mean `source`?"),
        (lambda mem: mem.remember("x", jobId="7"), "did you mean `job`?"),
        (lambda mem: mem.remember("x", ttlDays=7), "did you mean `ttl`?"),
        (lambda mem: mem.remember("x", parent_id="7"), "did you mean `derived_from`?"),
        (lambda mem: mem.remember("x", content_ref="a.png"), "did you mean `blob`?"),
        (lambda mem: mem.remember("x", supersededBy="7"), "supersede(old_id, by=new_id)"),
        (lambda mem: mem.remember("x", userId="ana"), 'memory.user("ana").remember('),
        (lambda mem: mem.list_memories(topic_id="status"), "did you mean `key`?"),
    ],
)
def test_an_argument_of_another_system_shows_the_one_here(
    handles: list[Any], call: Callable[[Any], Any], shown: str
) -> None:
    for handle in handles:
        with pytest.raises(TypeError) as fault:
            awaited(call(handle))
        assert shown in str(fault.value)


@pytest.mark.parametrize("messages", ["I like tea", HELLO[0], ["I like tea"]], ids=["text", "message", "texts"])
def test_a_text_is_no_message_and_the_error_shows_one(handles: list[Any], messages: Any) -> None:
    for handle in handles[:4]:
        with pytest.raises(InvalidInput, match=r'\{"role": "user", "content": "\.\.\."\}'):
            awaited(handle.add(messages))
    assert not [*handles[0].list_memories(), *handles[1].list_memories()]


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (lambda got: got["recall"]["results"], "for hit in recall: hit.memory.text"),
        (lambda got: got["recall"].get("results"), "for hit in recall: hit.memory.text"),
        (lambda got: got["recall"][0].text, "hit.memory.text"),
        (lambda got: got["recall"][0]["memory"], "hit.memory.text"),
        (lambda got: got["recall"][0].metadata, "hit.memory.metadata"),
        (lambda got: got["recall"][0]["score"], ".score"),
        (lambda got: got["listed"]["results"], "for memory in memories: memory.text"),
        (lambda got: got["listed"][0]["memory"], "memory.text"),
        (lambda got: got["added"]["results"], "for fact in added.facts: fact.record.text"),
        (lambda got: got["outcome"]["id"], ".id"),
        (lambda got: got["outcome"].memory_id, "outcome.id"),
        (lambda got: got["context"].content, "context.text"),
    ],
)
def test_a_result_names_its_own_attribute(mem: Memory, read: Callable[[dict[str, Any]], Any], shown: str) -> None:
    ana = mem.user("ana")
    got = {"outcome": ana.remember("Ana likes tea"), "added": ana.add(HELLO), "recall": ana.recall("tea")}
    got |= {"listed": ana.list_memories(), "context": ana.context("tea")}
    with pytest.raises((AttributeError, TypeError)) as fault:
        read(got)
    assert f"; here it is {shown}" in str(fault.value)
    assert got["listed"][:1] == [got["listed"][0]]
    assert got["recall"][0:1] == got["recall"].hits[:1]


def test_every_word_shows_a_call_that_exists(mem: Memory) -> None:
    for word, call in METHODS.items():
        name = call.partition("(")[0]
        assert not hasattr(Memory, word), word
        assert hasattr(Memory, name) or name.startswith(("Memory.open", "the command ")), call
    arguments = {wire for about in OPERATIONS.values() for wire in (*about.arguments, *about.signature.parameters)}
    assert {name for names in ARGUMENTS.values() for name in names} <= arguments
    assert {"user", "agent", "project"} <= {*HANDLES.values()}


@pytest.mark.parametrize(
    ("fields", "here"),
    [
        ({"tier": "canon"}, "stability permanent"),
        ({"tier": "register"}, "kind state and a key"),
        ({"tier": "log"}, "kind event"),
        ({"kind": "soul"}, "update_identity"),
        ({"kind": "log"}, "kind event"),
        ({"access": "familiar"}, "access approval"),
        ({"access": "readonly"}, "access read_only"),
    ],
)
def test_a_value_of_another_system_names_the_one_here(mem: Memory, fields: dict[str, str], here: str) -> None:
    ((what, word),) = fields.items()
    calls = [lambda: mem.remember("Ana prefers tabs", **fields)]  # type: ignore[arg-type]
    if what != "access":
        calls.append(lambda: mem.list_memories(**{f"{what}s": [word]}))  # type: ignore[arg-type]
    for call in calls:
        with pytest.raises(InvalidInput, match=f"unknown {what}: {word} is here .*{here}"):
            call()
