"""How recall and compiled contexts fail elsewhere."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from outcomes import committed_record, refused

from keepward import Actor, Memory, ModelUnavailable


class Model:
    """An embedder of one name whose vectors are its own, and which can be away."""

    def __init__(self, name: str, dim: int = 16) -> None:
        self.id, self.dim, self.on = f"{name}:{dim}", dim, True
        self._seed = sum(name.encode())

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if not self.on:
            raise ModelUnavailable("away")
        rows = np.stack([self._row(text) for text in texts]) if texts else np.zeros((0, self.dim))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _row(self, text: str) -> np.ndarray:
        words = text.lower().split() or [""]
        return sum(  # type: ignore[return-value]
            np.random.default_rng([self._seed, *word.encode()]).standard_normal(self.dim) for word in words
        )


def texts(mem: Memory, query: str, **fields: Any) -> list[str]:
    return [hit.memory.text for hit in mem.recall(query, **fields)]


@pytest.mark.promise("Z31")
@pytest.mark.parametrize("embedder", [None, "hashed"])
def test_updated_memory_is_found_by_its_new_text_only(opened: Callable[..., Memory], embedder: str | None) -> None:
    with opened("found", embedder=embedder) as mem:
        made = committed_record(mem.remember("The ferry is called Valkyrie", tier="archival"))
        for n in range(5):
            committed_record(mem.remember(f"Unrelated remark number {n} of the harbour", tier="archival"))
        committed_record(mem.revise(made.id, "The ferry is called Ondine", reason="renamed"))
        assert texts(mem, "Ondine")[0] == "The ferry is called Ondine"
        found = [hit for hit in mem.recall("Valkyrie") if "words" in hit.why]
        assert found == []
        assert "Valkyrie" not in mem.context("what is the ferry called").text


@pytest.mark.promise("Z32")
def test_memory_is_found_by_the_next_recall_of_any_handle(
    mem: Memory, owner: Memory, entering: Callable[..., Memory]
) -> None:
    other = entering(Actor.agent("another"))
    assert texts(other, "Ondine") == []
    committed_record(mem.remember("The ferry is called Ondine", tier="archival"))
    assert [texts(each, "Ondine") for each in (mem, owner, other)] == [["The ferry is called Ondine"]] * 3


@pytest.mark.promise("Z34")
def test_neighbours_keep_order_and_deleted_memories_leave_the_index(mem: Memory, owner: Memory) -> None:
    names = [
        committed_record(mem.remember(f"The ferry {'ferry ' * n}crosses the sound", tier="archival", key=f"f{n}")).id
        for n in range(6)
    ]
    first = [hit.memory.id for hit in mem.recall("ferry crosses")]
    assert (sorted(first), first) == (sorted(names), [hit.memory.id for hit in mem.recall("ferry crosses")])
    committed_record(mem.forget(first[2], reason="sold"))
    rest = [name for name in first if name != first[2]]
    assert [hit.memory.id for hit in mem.recall("ferry crosses")] == rest
    owner.rebuild()
    assert [hit.memory.id for hit in mem.recall("ferry crosses")] == rest


@pytest.mark.promise("Z35", "T29")
def test_vectors_of_two_embedders_are_never_compared(opened: Callable[..., Memory]) -> None:
    with opened("mixed", embedder=Model("one"), actor=Actor.operator()) as mem:
        committed_record(mem.remember("The ferry is called Ondine", tier="archival"))
    for other in (Model("two"), Model("three", 32)):
        with opened("mixed", embedder=other, actor=Actor.operator()) as mem:
            found = mem.recall("Ondine")
            assert [(hit.memory.text, hit.why) for hit in found] == [("The ferry is called Ondine", ("words",))]
            committed_record(mem.remember(f"The crane is called {other.id.split(':')[0]}", tier="archival"))
            assert mem.context("Ondine").text
    with opened("mixed", embedder=Model("three", 32), actor=Actor.operator()) as mem:
        assert mem.reindex() == 2
        assert "meaning" in mem.recall("ferry is called Ondine")[0].why


@pytest.mark.promise("Z36")
@pytest.mark.parametrize("query", ["ferry departure winter", "winter: when does the ferry leave?", "leaves ferry"])
def test_several_words_need_not_is_together(opened: Callable[..., Memory], query: str) -> None:
    with opened("words", embedder=None) as mem:
        committed_record(
            mem.remember("In winter the departure of our old ferry is at seven; it leaves late", tier="archival")
        )
        committed_record(mem.remember("The crane is red", tier="archival"))
        assert "ferry" in texts(mem, query)[0]


@pytest.mark.promise("Z36")
@pytest.mark.parametrize(
    "query", ['"', "AND OR NOT", "ferry*", "(ferry", "NEAR(ferry, 2)", "text:ferry", "-ferry", "'; DROP"]
)
def test_search_syntax_is_text(mem: Memory, query: str) -> None:
    committed_record(mem.remember("The ferry leaves at six", tier="archival"))
    mem.recall(query)
    assert len(mem.list_memories()) == 1


@pytest.mark.promise("Z38", "A44")
@pytest.mark.parametrize(
    "text",
    [
        "The run began at 1712345678901",
        "Order 483920175 was packed",
        "He was the standard bearer of the guild",
        "Commit 3f2a9c1 fixed it",
        "Ask for the password policy",
        "The id is 0190f3c2-7b1e-7c3a-9f00-1a2b3c4d5e6f",
    ],
)
def test_numbers_and_words_that_resemble_secrets_pass(mem: Memory, text: str) -> None:
    assert committed_record(mem.remember(text, tier="archival")).text == text


def _made_up(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(length).choices(letters, k=length))


SECRETS = {
    "a told password": lambda: "the wifi password is " + _made_up(14),
    "a cloud key": lambda: "AK" + "IA" + _made_up(16, string.ascii_uppercase + "234567"),
    "a private key": lambda: "-----BEGIN PRIVATE " + "KEY-----\n" + _made_up(64) + "\n-----END PRIVATE " + "KEY-----",
    "a token of three parts": lambda: ".".join(("ey" + "J" + _made_up(30), "ey" + "J" + _made_up(40), _made_up(43))),
    "an address with a password": lambda: "postgres://ana:" + _made_up(16) + "@db.example.org/main",
}


@pytest.mark.promise("Z38")
@pytest.mark.parametrize("what", sorted(SECRETS))
def test_secrets_are_caught(mem: Memory, what: str) -> None:
    text = SECRETS[what]()
    outcome = mem.remember(text, tier="archival")
    secret = text.split()[-1] if " is " in text else text
    assert outcome.outcome in {"refused", "quarantined"} or secret not in committed_record(outcome).text
    assert secret not in mem.context("password key token").text


@pytest.mark.promise("T4")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("他喜欢在图书馆看书", "图书馆"),
        ("渡し船は六時に出発します", "渡し船"),
        ("Der Fährmann heißt Jürgen", "jürgen"),
        ("Der Fährmann heißt Jürgen", "JURGEN"),
        ("El café está cerrado el miércoles", "cafe miercoles"),
        ("เรือข้ามฟากออกหกโมง", "เรือข้ามฟาก"),
        ("Паром уходит в шесть", "паром"),
    ],
)
def test_recall_works_in_other_scripts(opened: Callable[..., Memory], text: str, query: str) -> None:
    with opened("scripts", embedder=None) as mem:
        committed_record(mem.remember("Something else entirely", tier="archival"))
        committed_record(mem.remember(text, tier="archival"))
        assert texts(mem, query)[:1] == [text]


@pytest.mark.promise("T5")
def test_recalled_text_is_not_stored_again_as_news(mem: Memory) -> None:
    made = committed_record(mem.remember("The ferry leaves at six from the north quay", tier="archival", source="web"))
    said = texts(mem, "when does the ferry leave")[0]
    again = mem.remember(said, tier="archival", source="user_message")
    assert (again.outcome, [each.id for each in mem.list_memories()]) == ("duplicate", [made.id])
    assert mem.get(made.id).trust.label == "web"


@pytest.mark.promise("T5", "F17")
def test_a_compiled_context_is_not_remembered_as_a_memory(mem: Memory) -> None:
    committed_record(mem.remember("The ferry leaves at six from the north quay", tier="archival", source="web"))
    context = mem.context("when does the ferry leave").text
    assert "compiled_text" in refused(mem.remember(context, tier="archival"))
