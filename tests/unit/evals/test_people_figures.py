"""The facts of five people, and the cells that count what is found of them."""

from __future__ import annotations

from evals.people import ASKED, STORED, measure, people


def test_five_people_have_ten_facts_each():
    everybody = people()
    assert [len(each.facts) for each in everybody] == [10] * 5
    assert len({fact for each in everybody for fact in each.facts}) == 50


def test_a_fact_is_stated_and_asked_in_three_ways():
    ana = people()[0]
    assert [ana.statement(0, by) for by in STORED] == [
        "I moved to Porto last spring",
        "Ana moved to Porto last spring",
        "The user moved to Porto last spring",
    ]
    assert [ana.question(0, by) for by in ASKED] == [
        "Which city do I live in?",
        "Which city does the user live in?",
        "Which city does Ana live in?",
    ]


def test_no_context_holds_what_another_person_said():
    cells = measure(people()[:2], "I", embedder="hashed")
    assert {asked: cell.asked for asked, cell in cells.items()} == dict.fromkeys(ASKED, 20)
    assert sum(cell.foreign for cell in cells.values()) == 0
