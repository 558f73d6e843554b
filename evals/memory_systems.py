"""Memory systems that are compared: each is told turns, and gives the notes that a model reads before a question.

Each is used as its own documents show, with its own defaults for how much it finds. Model and embeddings come from the
meter. A package is imported when its system is opened; ``SYSTEMS`` says how to install it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from evals.model_meter import Meter
from evals.recall_run import POLICY, fields_of
from evals.recall_sets import Told
from keepward import Actor, Memory
from keepward.ports.models import TokenCounter

USER = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a system is opened with."""

    meter: Meter
    counter: TokenCounter
    #: An empty folder of its own.
    folder: Path
    #: The most tokens that notes may have; None leaves each system its default.
    budget: int | None = None

    def packed(self, lines: Iterable[str]) -> str:
        """Return lines, best first, as long as they fit the budget."""
        taken: list[str] = []
        for line in lines:
            if self.budget is None or self.counter.count("\n".join([*taken, line])) <= self.budget:
                taken.append(line)
        return "\n".join(taken)


class System(Protocol):
    """A memory that is told turns and asked for notes."""

    def tell(self, turns: Sequence[Told]) -> None:
        """Store some turns of one session, in their order."""

    def notes(self, question: str) -> str:
        """Return what the model reads before this question."""

    def close(self) -> None:
        """Let go of files and connections."""


def line_of(turn: Told) -> str:
    """Return a turn as a line with its day and its speaker."""
    day = f"[{turn.at:%Y-%m-%d %H:%M}] " if turn.at else ""
    return day + turn.line


def messages_of(turns: Sequence[Told]) -> list[dict[str, str]]:
    """Return turns as messages of a chat: what an assistant said is its own, all else is the user's."""
    roles = {"assistant": "assistant"}
    return [{"role": roles.get(turn.speaker or "", "user"), "content": line_of(turn)} for turn in turns]


class Nothing:
    """No memory: the floor."""

    def __init__(self, _: Setup) -> None:
        """Take nothing."""

    def tell(self, _: Sequence[Told]) -> None:
        """Store nothing."""

    def notes(self, _: str) -> str:
        """Return nothing."""
        return ""

    def close(self) -> None:
        """Do nothing."""


class Everything:
    """The complete conversation, whatever the budget: the ceiling, as long as it fits the model."""

    def __init__(self, _: Setup) -> None:
        self._lines: list[str] = []

    def tell(self, turns: Sequence[Told]) -> None:
        """Append the lines."""
        self._lines += [line_of(turn) for turn in turns]

    def notes(self, _: str) -> str:
        """Return all lines."""
        return "\n".join(self._lines)

    def close(self) -> None:
        """Do nothing."""


class Keepward:
    """Keepward as the recall evaluation uses it: a turn is an event; no model is called."""

    def __init__(self, setup: Setup) -> None:
        self._budget = setup.budget
        self._memory = Memory.open(
            setup.folder / "store.db",
            actor=Actor.operator(),
            embedder=setup.meter.embedder,
            counter=setup.counter,
            policy=POLICY,
            config_dir=setup.folder / "config",
        )

    def tell(self, turns: Sequence[Told]) -> None:
        """Remember each turn."""
        self._memory.remember_many([fields_of(turn) for turn in turns], reason="comparison")

    def notes(self, question: str) -> str:
        """Return the context for the question."""
        if self._budget is None:
            return self._memory.context(question).text
        return self._memory.context(question, budget_tokens=self._budget).text

    def close(self) -> None:
        """Close the store."""
        self._memory.close()


class Mem0:
    """mem0: its model extracts memories from the turns."""

    def __init__(self, setup: Setup) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(setup.folder / "home")
        from mem0 import Memory as Mem0Memory

        meter, dim = setup.meter, setup.meter.embedder.dim
        server = {"openai_base_url": meter.url, "api_key": "metered"}
        self._setup = setup
        self._memory = Mem0Memory.from_config(
            {
                "llm": {"provider": "openai", "config": {"model": meter.model, "temperature": 0, **server}},
                "embedder": {"provider": "openai", "config": {"model": "metered", "embedding_dims": dim, **server}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(setup.folder / "vectors"),
                        "collection_name": "notes",
                        "embedding_model_dims": dim,
                        "on_disk": True,
                    },
                },
                "history_db_path": str(setup.folder / "history.db"),
            }
        )

    def tell(self, turns: Sequence[Told]) -> None:
        """Add the turns as one exchange."""
        self._memory.add(messages_of(turns), user_id=USER)

    def notes(self, question: str) -> str:
        """Return the memories that a search finds."""
        found = self._memory.search(question, filters={"user_id": USER})
        return self._setup.packed(f"- {item['memory']}" for item in found["results"])

    def close(self) -> None:
        """Close the vector store."""
        self._memory.vector_store.client.close()


class LangMem:
    """LangMem: its manager extracts memories and keeps them in a store of LangGraph."""

    def __init__(self, setup: Setup) -> None:
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_memory_store_manager

        server: dict[str, Any] = {"base_url": setup.meter.url, "api_key": "metered"}
        # Its own check of lengths needs a tokenizer of OpenAI.
        embed = OpenAIEmbeddings(model="metered", check_embedding_ctx_length=False, **server)
        self._setup, self._space = setup, ("memories", USER)
        self._store = InMemoryStore(index={"dims": setup.meter.embedder.dim, "embed": embed})
        model = ChatOpenAI(model=setup.meter.model, temperature=0, **server)
        self._manager = create_memory_store_manager(model, namespace=self._space, store=self._store)

    def tell(self, turns: Sequence[Told]) -> None:
        """Let the manager read the turns."""
        self._manager.invoke({"messages": messages_of(turns)}, config={"configurable": {}})

    def notes(self, question: str) -> str:
        """Return the memories that a search finds."""
        found = self._store.search(self._space, query=question)
        return self._setup.packed(f"- {item.value['content']['content']}" for item in found)

    def close(self) -> None:
        """Do nothing: the store is in memory."""


class Graphiti:
    """Graphiti: its model makes a graph of entities and facts, here in an embedded Kuzu."""

    def __init__(self, setup: Setup) -> None:
        os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
        from graphiti_core import Graphiti as GraphitiMemory
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.driver.kuzu_driver import KuzuDriver
        from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

        meter = setup.meter
        model = LLMConfig(
            api_key="metered", base_url=meter.url, model=meter.model, small_model=meter.model, temperature=0
        )
        vectors = OpenAIEmbedderConfig(
            api_key="metered", base_url=meter.url, embedding_model="metered", embedding_dim=meter.embedder.dim
        )
        self._setup, self._count = setup, 0
        self._loop = asyncio.Runner()
        driver = KuzuDriver(str(setup.folder / "graph"))
        self._graph = GraphitiMemory(
            graph_driver=driver,
            llm_client=OpenAIGenericClient(config=model),
            embedder=OpenAIEmbedder(config=vectors),
            cross_encoder=OpenAIRerankerClient(config=model),
        )
        # Graphiti's own method builds no index for words in Kuzu, and its search needs one.
        self._loop.run(driver.graph_ops.build_indices_and_constraints(driver))

    def tell(self, turns: Sequence[Told]) -> None:
        """Add the turns as one episode of their time."""
        self._count += 1
        self._loop.run(
            self._graph.add_episode(
                name=f"episode {self._count}",
                episode_body="\n".join(f"{turn.speaker or USER}: {turn.text}" for turn in turns),
                source_description="a conversation",
                reference_time=next((turn.at for turn in turns if turn.at), datetime.now(UTC)),
            )
        )

    def notes(self, question: str) -> str:
        """Return the facts that a search finds, with the time for which they hold."""
        found = self._loop.run(self._graph.search(question))
        return self._setup.packed(
            f"- {edge.fact}"
            + (f" (from {edge.valid_at:%Y-%m-%d})" if edge.valid_at else "")
            + (f" (until {edge.invalid_at:%Y-%m-%d})" if edge.invalid_at else "")
            for edge in found
        )

    def close(self) -> None:
        """Close the graph."""
        self._loop.run(self._graph.close())
        self._loop.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a system is opened."""

    open: Callable[[Setup], System]
    #: Modules that it imports, and what installs them.
    modules: tuple[str, ...] = ()
    install: str = ""


SYSTEMS = {
    "keepward": Entry(open=Keepward),
    "full": Entry(open=Everything),
    "none": Entry(open=Nothing),
    "mem0": Entry(open=Mem0, modules=("mem0",), install="mem0ai"),
    "langmem": Entry(open=LangMem, modules=("langmem", "langchain_openai"), install="langmem langchain-openai"),
    "graphiti": Entry(open=Graphiti, modules=("graphiti_core", "kuzu"), install="'graphiti-core[kuzu]'"),
}
