"""The sets of facts."""

from __future__ import annotations

from collections import Counter

import pytest
from evals.sets_facts import NOTHING, PAIRS, asked, corrections, facts, nothing, pairs


def test_facts_are_300_different_texts_of_6_to_25_words():
    told = facts()
    assert len(told) == 300
    assert len({fact.id for fact in told}) == len({fact.text for fact in told}) == 300
    assert all(6 <= len(fact.text.split()) <= 25 for fact in told)
    kinds = Counter(fact.id.rstrip("0123456789") for fact in told)
    assert (kinds["pref"], kinds["rule"]) == (20, 12)


def test_each_answerable_question_names_facts():
    questions = [*asked(unread=False), *asked(unread=True)]
    assert len({each.text for each in questions}) == 100
    known = {fact.id for fact in facts()}
    assert all(each.bearing and each.bearing <= known for each in questions)


def test_no_question_about_nothing_is_there_twice():
    groups = [nothing(group) for group in NOTHING]
    assert [len(group) for group in groups] == [100, 100]
    answerable = {each.text for unread in (False, True) for each in asked(unread=unread)}
    assert len({each.text for group in groups for each in group} - answerable) == 200


@pytest.mark.parametrize("kind", [*PAIRS, "corrections"])
def test_pairs_are_thirty_of_different_statements(kind):
    given = corrections() if kind == "corrections" else pairs(kind)
    assert len(given) == 30
    assert len({text for each in given for text in (each.older, each.newer)}) == 60
    assert len({each.question for each in given}) == 30
