"""Where nothing that is remembered bears on a question, recall, context and memory block are empty and say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Memory
from keepward.model.policy import Policy

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


def test_a_question_about_nothing_remembered_has_no_hits(told: Memory) -> None:
    assert len(told.recall(NOTHING)) == 0


def test_a_question_that_is_answered_has_its_answer_first_and_not_weak(told: Memory) -> None:
    best = told.recall(ASKED)[0]
    assert (best.memory.text, best.weak, 0.5 < best.score <= 1) == (FACTS[2], False, True)


@pytest.mark.parametrize("embedder", EMBEDDERS)
def test_one_word_of_a_question_is_enough_among_a_dozen_facts(
    opened: Callable[..., Memory], embedder: str | None
) -> None:
    others = [f"{name} keeps {what}" for name in ("Carla", "Dmitri", "Elif") for what in ("bees", "maps", "stamps")]
    with opened("dozen", embedder=embedder, actor=Actor.operator()) as mem:
        for text in (*FACTS, *others):
            kept(mem.remember(text))
        assert mem.recall("How heavy is Ben?")[0].memory.text == FACTS[4]


@pytest.mark.parametrize("text", ["format this file", "What should I bring for the cousin?"])
def test_a_task_and_a_request_for_advice_let_in_weak_preferences(opened: Callable[..., Memory], text: str) -> None:
    with opened("task", embedder="hashed", actor=Actor.operator()) as mem:
        kept(mem.remember(FACTS[0]))
        kept(mem.remember(FACTS[1]))
        assert [hit.weak for hit in mem.recall(text)] == [True, True]
        shown = mem.context(text).text
        assert (FACTS[0] in shown, FACTS[1] in shown) == (True, False)


def test_what_was_below_the_floor_is_told_with_the_way_to_see_it(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        for text in FACTS:
            kept(mem.remember(text))
        found = mem.recall(NOTHING, receipt=True)
        receipt = mem.receipt(found.receipt or "")
        assert (found.below, found.floor, found.best is not None and found.best < 0.1) == (5, 0.1, True)
        assert any("floor of 0.1; a floor of 0 shows" in note for note in found.notes)
        assert any("a floor of 0" in reason["detail"] for reason in receipt["reasons"])
        assert receipt["relevance"] == {"floor": 0.1, "below": 5}
        assert receipt["inputs"]["versions"]["relevance"] == "hashed.1"


def test_without_a_floor_everything_that_was_found_is_shown_and_marked_weak(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        for text in FACTS:
            kept(mem.remember(text))
        found = mem.recall(NOTHING, floor=0)
        assert (len(found), {hit.weak for hit in found}, found.below) == (5, {True}, 0)


def test_scores_are_shares_that_fall_with_the_rank(told: Memory) -> None:
    scores = [hit.score for hit in told.recall(ASKED, floor=0)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_a_context_for_something_else_leaves_out_weak_hits_and_names_them(told: Memory) -> None:
    compiled = told.context(NOTHING)
    assert compiled.text == ""
    assert {each.reason.code for each in compiled.excluded} <= {"weak"}
    assert {each["code"] for each in compiled.receipt.facts["excluded"]} <= {"weak"}


def test_a_context_that_includes_weak_hits_holds_what_was_found(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        kept(mem.remember(FACTS[0]))
        compiled = mem.context(NOTHING, include_weak=True)
        assert FACTS[0] in compiled.text
        assert mem.replay(compiled.receipt.id).text == compiled.text


def test_a_memory_block_for_something_else_is_empty(told: Memory) -> None:
    assert (told.memory_block(NOTHING).text, FACTS[2] in told.memory_block(ASKED).text) == ("", True)


def test_only_what_was_relevant_counts_as_used(opened: Callable[..., Memory]) -> None:
    with opened("told", embedder="hashed", actor=Actor.operator()) as mem:
        for text in FACTS:
            kept(mem.remember(text))
        mem.recall(NOTHING)
        mem.recall(NOTHING, floor=0)
        mem.context(NOTHING, include_weak=True)
        found = mem.recall(ASKED, receipt=True)
        assert sum(not hit.weak for hit in found) == 1 < len(found)
        assert uses(mem) == 1


def test_the_policy_sets_the_floor(opened: Callable[..., Memory]) -> None:
    with opened("loose", embedder="hashed", actor=Actor.operator(), policy=Policy(relevance_floor=0.0)) as mem:
        kept(mem.remember(FACTS[0]))
        assert len(mem.recall(NOTHING)) == 1


def test_what_the_reader_may_not_see_does_not_lift_a_context_over_the_floor(opened: Callable[..., Memory]) -> None:
    with opened("hidden", embedder="hashed", actor=Actor.operator()) as mem:
        kept(mem.remember("The whale that dives the deepest is Cuvier's", sensitivity="sensitive", consent=True))
        kept(mem.remember(FACTS[0]))
        assert mem.context(NOTHING).text == ""


@pytest.mark.parametrize("floor", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_floor_that_is_no_share_is_an_error(told: Memory, floor: Any) -> None:
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        told.recall(ASKED, floor=floor)


@pytest.mark.parametrize(
    ("filters", "meant"),
    [({"kinds": ["fcat"]}, "fact"), ({"tiers": ["archivall"]}, "archival")],
)
def test_a_misspelt_filter_is_an_error_that_says_what_was_meant(
    told: Memory, filters: dict[str, Any], meant: str
) -> None:
    for verb in (lambda: told.recall(ASKED, **filters), lambda: told.find(**filters)):
        with pytest.raises(InvalidInput, match=f"did you mean {meant}"):
            verb()
