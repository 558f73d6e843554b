"""Recall marks weak hits. Contexts leave them out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Memory

FACTS = (
    "Ana prefers tabs over spaces",
    "The staging server runs PostgreSQL 16",
    "Deploys happen every Tuesday at ten",
    "The key of the attic is with the caretaker",
    "Ben is allergic to cat hair",
)
ASKED, NOTHING = "When do deploys happen?", "Which whale dives the deepest?"
EMBEDDERS = ("hashed", None)


@pytest.fixture(params=EMBEDDERS, ids=["hashed", "words"])
def told(request: pytest.FixtureRequest, opened: Callable[..., Memory]) -> Any:
    with opened("told", embedder=request.param, actor=Actor.operator()) as mem:
        for text in FACTS:
            kept(mem.remember(text))
        yield mem


def uses(mem: Memory) -> int:
    return round(mem.status()["average_uses"] * mem.status()["live"])


def test_question_about_nothing_remembered_has_only_weak_hits(told: Memory) -> None:
    assert all(hit.weak for hit in told.recall(NOTHING))


def test_answer_comes_first_and_is_not_weak(told: Memory) -> None:
    best = told.recall(ASKED)[0]
    assert (best.memory.text, best.weak, 0.2 < best.score <= 1) == (FACTS[2], False, True)


@pytest.mark.parametrize("embedder", EMBEDDERS)
def test_one_rare_word_makes_a_hit_strong(opened: Callable[..., Memory], embedder: str | None) -> None:
    others = [f"{name} keeps {what}" for name in ("Carla", "Dmitri", "Elif") for what in ("bees", "maps", "stamps")]
    with opened("dozen", embedder=embedder, actor=Actor.operator()) as mem:
        for text in (*FACTS, *others):
            kept(mem.remember(text))
        best = mem.recall("How heavy is Ben?")[0]
        assert (best.memory.text, best.weak) == (FACTS[4], False)


def test_word_that_many_memories_hold_makes_no_hit_strong(opened: Callable[..., Memory]) -> None:
    with opened("common", embedder=None, actor=Actor.operator()) as mem:
        for tool in ("hammer", "plane", "rasp", "file"):
            kept(mem.remember(f"The workshop has a {tool}"))
        assert [hit.weak for hit in mem.recall("Who built the workshop?")] == [True] * 4
        assert [hit.weak for hit in mem.recall("Is a rasp in the workshop?", limit=2)] == [False, True]


def test_scores_fall_with_the_rank_from_1_to_0(told: Memory) -> None:
    scores = [hit.score for hit in told.recall(ASKED)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_floor_leaves_out_hits_with_lower_scores(told: Memory) -> None:
    scores = [hit.score for hit in told.recall(ASKED)]
    assert [hit.score for hit in told.recall(ASKED, floor=scores[0])] == scores[:1]


def test_weak_hits_do_not_count_as_used(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        for text in FACTS:
            kept(mem.remember(text))
        mem.recall(NOTHING)
        found = mem.recall(ASKED, receipt=True)
        assert sum(not hit.weak for hit in found) == 1 < len(found)
        assert uses(mem) == 1


def test_context_leaves_out_weak_hits_and_names_them(told: Memory) -> None:
    compiled = told.context(NOTHING)
    assert compiled.text == ""
    assert {each.reason.code for each in compiled.excluded} <= {"weak"}


def test_context_includes_weak_hits_where_asked(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        kept(mem.remember(FACTS[0]))
        compiled = mem.context(NOTHING, include_weak=True)
        assert FACTS[0] in compiled.text
        assert mem.replay(compiled.receipt.id).text == compiled.text


@pytest.mark.parametrize(("text", "let_in"), [("fix this bug", False), ("What should I bring for the cousin?", True)])
def test_weak_preferences_enter_contexts_of_requests_for_advice(
    opened: Callable[..., Memory], text: str, let_in: bool
) -> None:
    with opened("task", embedder="hashed", actor=Actor.operator()) as mem:
        kept(mem.remember(FACTS[0]))
        kept(mem.remember(FACTS[1]))
        assert [hit.weak for hit in mem.recall(text)] == [True, True]
        shown = mem.context(text).text
        assert (FACTS[0] in shown, FACTS[1] in shown) == (let_in, False)


def test_memory_block_leaves_out_weak_hits(told: Memory) -> None:
    assert (told.memory_block(NOTHING).text, FACTS[2] in told.memory_block(ASKED).text) == ("", True)


@pytest.mark.parametrize("floor", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_floor_outside_0_to_1_is_an_error(told: Memory, floor: Any) -> None:
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        told.recall(ASKED, floor=floor)
