"""A server of embeddings that fails: memories are stored and found by words, and one line says what helps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from keepward import Actor, InvalidInput, Memory, ModelUnavailable, Policy
from keepward.embedding.hashed import HashedEmbedder
from keepward.embedding.remote import HttpEmbedder
from keepward.services.search import features
from support.loopback import Script, Server, serving

DIM = 32
ABOUT_ANA = (
    "Ana lives in Porto",
    "Ana is a marine biologist",
    "Ana has a brother who bakes bread",
    "Ana rows on the river every Sunday",
)


@dataclass
class Hashed(Script):
    """Answers each text with the vector of its words."""

    dim: int = DIM
    #: What is done to the answer.
    spoil: Callable[[list[dict[str, Any]]], Any] = lambda rows: {"data": rows}

    def answer(self, asked: dict[str, Any]) -> Any:
        vectors = HashedEmbedder(self.dim).embed(asked["input"]).tolist()
        return self.spoil([{"index": at, "embedding": vector} for at, vector in enumerate(vectors)])


def cell(value: Any) -> Callable[[list[dict[str, Any]]], Any]:
    """Return what replaces the first number of every vector."""
    return lambda rows: {"data": [{**row, "embedding": [value, *row["embedding"][1:]]} for row in rows]}


@dataclass
class Fault:
    """How a server fails, and a part of the sentence about it."""

    says: str
    script: dict[str, Any] = field(default_factory=dict)
    #: Whether nothing listens.
    down: bool = False
    #: Whether it never answers.
    hangs: bool = False


FAULTS = {
    "is down": Fault("did not answer", down=True),
    "hangs": Fault("did not answer", hangs=True),
    "is busy": Fault("status 503", {"statuses": [503] * 99}),
    "answers with an error": Fault("status 400", {"statuses": [400] * 99}),
    "refuses the key": Fault("check the api key", {"statuses": [401] * 99}),
    "redirects": Fault("redirects are not followed", {"statuses": [302] * 99, "headers": {"Location": "/elsewhere"}}),
    "sends a page": Fault("not an embeddings answer", {"body": b"<html>busy</html>"}),
    "sends nothing": Fault("not an embeddings answer", {"body": b""}),
    "sends deep JSON": Fault("not an embeddings answer", {"body": b"[" * 100_000}),
    "sends a list": Fault("not an embeddings answer", {"body": b"[1, 2]"}),
    "sends no vector": Fault("exactly one vector", {"spoil": lambda rows: {"data": []}}),
    "sends one vector too many": Fault("exactly one vector", {"spoil": lambda rows: {"data": [*rows, rows[0]]}}),
    "sends words": Fault("not an embeddings answer", {"spoil": cell("much")}),
    "sends a huge number": Fault("not an embeddings answer", {"spoil": cell(10**400)}),
    "sends no number": Fault("not finite", {"spoil": cell(float("nan"))}),
    "sends infinity": Fault("not finite", {"spoil": cell(float("inf"))}),
    "sends zeros": Fault("zero", {"spoil": lambda rows: {"data": [{**row, "embedding": [0.0] * DIM} for row in rows]}}),
}
#: These need vectors that came before.
LATER = {**FAULTS, "sends another dimension": Fault("16 dimensions where 32 were expected", {"dim": 16})}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


class Stage:
    """A store whose embedder is a server that can fail; its clock stands still until it is moved."""

    def __init__(self, server: Server, opened: Callable[..., Memory]) -> None:
        self.server, self.seconds = server, 0.0
        self.opened = opened
        self.embedder: HttpEmbedder | None = None
        self.heal()

    def heal(self) -> None:
        self.server.script = Hashed()
        self.wait(30.0)
        # A failed server is asked again after a minute.
        self.seconds += 61

    def wait(self, seconds: float) -> None:
        """Wait so long for an answer; a server that hangs is not waited for, and a slow machine is."""
        if self.embedder is not None:
            self.embedder._query_seconds = self.embedder._server._timeout = seconds

    def fail(self, fault: Fault) -> None:
        self.server.script = Hashed(**fault.script)
        if fault.hangs:
            self.server.script.hold = threading.Event()
            self.wait(0.05)

    def open(self, fault: Fault | None = None, **options: Any) -> Memory:
        # Port 9 (discard) is not served on any machine that runs tests.
        url = "http://127.0.0.1:9" if fault is not None and fault.down else self.server.url
        self.embedder = HttpEmbedder(url, "small", query_seconds=30.0, sleep=lambda _: None, clock=lambda: self.seconds)
        if fault is not None and fault.hangs:
            self.wait(0.05)
        return self.opened("dead", embedder=self.embedder, actor=Actor.operator("olga"), **options)


@pytest.fixture
def stage(server: Server, opened: Callable[..., Memory]) -> Iterator[Stage]:
    made = Stage(server, opened)
    yield made
    made.fail(Fault(""))


def assert_says(sentence: str, fault: Fault, command: str) -> None:
    """The sentence is one line, says what happened, and names the command that helps."""
    assert "\n" not in sentence
    assert fault.says in sentence
    assert command in sentence


def noted(notes: Sequence[str]) -> str:
    """Return the one note about the embedder."""
    (note,) = [each for each in notes if "embedder" in each]
    return note


@pytest.mark.promise("B52", "B53", "D23")
@pytest.mark.parametrize("name", FAULTS)
def test_memory_is_stored_and_found_while_the_server_fails(stage: Stage, name: str) -> None:
    fault = FAULTS[name]
    stage.fail(fault)
    with stage.open(fault) as mem:
        outcome = mem.remember("The ferry leaves at six")
        assert outcome.outcome == "committed"
        (reason,) = [each for each in outcome.reasons if each.code == "no_vector"]
        assert_says(reason.detail, fault, "`keepward reindex`")
        found = mem.recall("When does the ferry leave?")
        assert [hit.memory.text for hit in found] == ["The ferry leaves at six"]
        assert found.used == ("text",)
        assert_says(noted(found.notes), fault, "`keepward doctor`")
        assert len(mem.recall("Anything else?")) == 0
        assert mem.status()["vectors_pending"] == 1
        (check,) = [each for each in mem.doctor() if each.name == "embedder"]
        assert not check.ok
        assert_says(check.detail, fault, "")
        assert "`keepward reindex`" in check.remedy


@pytest.mark.promise("B52", "B53", "D23")
@pytest.mark.parametrize("name", LATER)
def test_server_that_fails_later_leaves_recall_and_writes(stage: Stage, name: str) -> None:
    fault = LATER[name]
    with stage.open() as mem:
        mem.remember("The kiln is fired on Mondays")
        assert mem.recall("kiln").used == ("text", "vector")
        if fault.down:
            stage.fail(Fault("", {"statuses": [503] * 99}))
            fault = Fault("status 503")
        else:
            stage.fail(fault)
        outcome = mem.remember("The ferry leaves at six")
        (reason,) = [each for each in outcome.reasons if each.code == "no_vector"]
        assert_says(reason.detail, fault, "`keepward reindex`")
        for text in ("The kiln is fired on Mondays", "The ferry leaves at six"):
            found = mem.recall(text)
            assert found[0].memory.text == text
            assert_says(noted(found.notes), fault, "`keepward doctor`")
        stage.heal()
        assert mem.reindex() == 1
        found = mem.recall("ferry")
        assert (found[0].memory.text, found.used, found.notes) == (
            "The ferry leaves at six",
            ("text", "vector"),
            (),
        )


@pytest.mark.parametrize("name", FAULTS)
def test_context_has_what_bears_while_the_server_fails(stage: Stage, name: str) -> None:
    fault = FAULTS[name]
    stage.fail(fault)
    with stage.open(fault) as mem:
        for text in ABOUT_ANA:
            mem.remember(text)
        compiled = mem.context("Who is Ana?")
        assert [text for text in ABOUT_ANA if text in compiled.text] == list(ABOUT_ANA)
        assert_says(noted(compiled.notes), fault, "`keepward doctor`")


def test_context_says_so_and_its_receipt_names_no_embedder(stage: Stage) -> None:
    with stage.open(FAULTS["is down"]) as mem:
        mem.remember("The ferry leaves at six")
        compiled = mem.context("ferry")
        assert "The ferry leaves at six" in compiled.text
        assert_says(noted(compiled.notes), FAULTS["is down"], "`keepward doctor`")
        receipt = compiled.receipt.as_dict()
        assert receipt["inputs"]["versions"]["embedder"] == "unavailable"
        assert any("words alone" in each["detail"] for each in receipt["reasons"])


def test_messages_are_added_with_one_note(stage: Stage) -> None:
    with stage.open(FAULTS["is down"]) as mem:
        added = mem.add(
            [{"role": "user", "content": "The ferry leaves at six."}, {"role": "user", "content": "The kiln is red."}],
            session="s1",
        )
        assert all(turn.ok for turn in added.turns)
        assert len([note for note in added.notes if "`keepward reindex`" in note]) == 1


def test_receipt_of_a_write_says_that_the_vector_is_missing(stage: Stage) -> None:
    with stage.open(FAULTS["is down"]) as mem:
        outcome = mem.remember("The ferry leaves at six")
        assert [each.code for each in outcome.receipt.reasons] == ["no_vector"]


def test_memory_off_the_server_is_asked_for_nothing(stage: Stage) -> None:
    with stage.open(policy=Policy(capture=False)) as mem:
        assert not mem.remember("The ferry leaves at six").ok
        assert stage.server.script.seen == []


def test_query_gives_up_on_a_server_that_hangs_and_asks_again_once_it_answered(stage: Stage) -> None:
    with stage.open() as mem:
        mem.remember("The ferry leaves at six")
    hold = threading.Event()
    stage.server.script.hold = hold
    embedder = HttpEmbedder(stage.server.url, "small", None, DIM, query_seconds=0.3, clock=lambda: 0.0)
    with stage.opened("dead", embedder=embedder) as mem:
        assert "did not answer a query within 0.3 seconds" in noted(mem.recall("ferry").notes)
        asked = len(stage.server.script.seen)
        assert "did not answer a query" in noted(mem.recall("ferry").notes)
        assert len(stage.server.script.seen) == asked
        hold.set()
        [thread.join(20) for thread in threading.enumerate() if thread.name == "keepward-query"]
        embedder._query_seconds = 30.0
        assert mem.recall("ferry").used == ("text", "vector")


class Broken(HashedEmbedder):
    """An embedder of one's own with a fault in one of its parts."""

    def __init__(self, part: str, fault: BaseException) -> None:
        super().__init__(DIM)
        self._part, self._fault = part, fault

    def __getattribute__(self, name: str) -> Any:
        part = object.__getattribute__(self, "__dict__").get("_part")
        if name == part and name in {"id", "dim"}:
            raise self._fault
        if name == part:
            return self._raise
        return object.__getattribute__(self, name)

    def embed_query(self, texts: Sequence[str]) -> Any:
        return super().embed(texts)

    def _raise(self, *_: Any) -> Any:
        raise self._fault


@pytest.mark.parametrize("part", ["embed", "embed_query", "id", "dim"])
@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("the ferry leaves"),
        KeyError("ferry"),
        InvalidInput("ferry"),
        ModelUnavailable("it rests"),
        OSError(),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_embedder_of_ones_own_that_raises_anything_is_unavailable(
    opened: Callable[..., Memory], part: str, fault: Exception
) -> None:
    embedder = Broken("", fault)
    with opened("own", embedder=embedder, actor=Actor.operator("olga")) as mem:
        embedder._part = part
        assert mem.remember("The ferry leaves at six").ok
        found = mem.recall("ferry")
        assert [hit.memory.text for hit in found] == ["The ferry leaves at six"]
        helps = "`keepward reindex`" if part == "embed" else "`keepward doctor`"
        assert (helps in noted(found.notes), "leaves" in noted(found.notes)) == (True, False)
        assert "The ferry leaves at six" in mem.context("ferry").text
        assert mem.status()["live"] == 1
        assert [each.ok for each in mem.doctor() if each.name == "embedder"] == [False]
        assert mem.jobs()


def test_iterator_of_vectors_is_read() -> None:
    class Lazy(HashedEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            return iter(super().embed(texts))

    assert features.vectors_of(Lazy(DIM), ["a", "b"]).shape == (2, DIM)


def test_embedder_without_a_hash_gives_advice(opened: Callable[..., Memory]) -> None:
    @dataclass
    class Unhashable:
        id: str = "unhashable:32"
        dim: int = DIM

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            return HashedEmbedder(DIM).embed(texts)

    with opened("own", embedder=Unhashable()) as mem:
        mem.remember("I never eat fish")
        assert mem.recall("Can you recommend a place for dinner?").used == ("vector",)
