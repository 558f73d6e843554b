"""The sets of everyday turns: unchanged, complete, and told through ``Memory``."""

from __future__ import annotations

import pytest
from evals import sets_turns
from evals.sets_turns import HALVES
from evals.turns import WAYS, Context, store

#: Number of fields of each line.
FIELDS = {
    "advice": 2, "both": 3, "filler": 1, "forgetting": 3, "languages": 3, "never": 1, "questions": 2, "replies": 1,
    "smalltalk": 1, "tasks": 2, "updates": 3, "world": 1,
}  # fmt: skip
#: Fewest cases of a kind whose figure is a percentage.
LEAST = {"seen": 40, "unread": 50}


@pytest.mark.parametrize("half", HALVES)
def test_sets_of_turns_are_unchanged(half: str) -> None:
    assert sets_turns.digest(half) == sets_turns.DIGESTS[half]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("half", HALVES)
def test_lines_have_all_fields_and_are_different(half: str, name: str) -> None:
    lines = sets_turns.lines(half, name)
    assert {len(line) for line in lines} == {FIELDS[name]}
    assert all(field for line in lines for field in line)
    assert len({tuple(line) for line in lines}) == len(lines) >= (40 if name == "replies" else LEAST[half])


def test_no_case_is_in_both_halves() -> None:
    seen, unread = ({tuple(line) for name in FIELDS for line in sets_turns.lines(half, name)} for half in HALVES)
    assert not {line for line in seen & unread if len(line) > 1}


@pytest.mark.parametrize("half", HALVES)
def test_small_stores_have_objectives_with_what_bears_on_them(half: str) -> None:
    stores = sets_turns.small(half)
    assert len(stores) >= LEAST[half]
    assert all(1 <= len(each.statements) <= 15 and each.objectives for each in stores)
    assert all(
        objective and set(bearing) <= {*range(len(each.statements))}
        for each in stores
        for objective, bearing in each.objectives
    )


@pytest.mark.parametrize("half", HALVES)
def test_floods_have_an_owner_who_is_asked_and_notes(half: str) -> None:
    floods = sets_turns.floods(half)
    assert len(floods) == 6
    assert all(each.fact and each.rule and each.question and each.task and len(each.notes) >= 10 for each in floods)


@pytest.mark.parametrize("way", WAYS)
def test_statement_is_in_the_context_with_its_date_however_it_was_told(way: str) -> None:
    with store(None) as here:
        here.tell(["The boat is moored at pier nine"], way)
        context = here.context("Where is the boat moored?")
        assert context.has("The boat is moored at pier nine")
        assert context.recalled
        assert context.date_of("The boat is moored at pier nine").startswith(f"{here.clock.instant:%Y-%m-%d}")


def test_date_of_a_line_is_behind_it_or_above_it() -> None:
    text = "### 2025-01-06 Mon\n\n[fact] Tea (09:00)\n\n## Memory Context\n\n[fact] Coffee (2025-01-08)"
    context = Context(recalled=(), tokens=0, text=text)
    assert [context.date_of(each) for each in ("Tea", "Coffee", "Rum")] == ["2025-01-06 09:00", "2025-01-08", ""]
