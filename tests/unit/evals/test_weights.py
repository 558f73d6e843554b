"""Weights are learned on the texts that are developed on."""

from evals import weights
from evals.sets import injection
from evals.sets.blind import cases as blind
from evals.weights import Example


def example(text, wanted):
    return Example("own", text, text, wanted, 1.0)


def test_no_unread_text_is_learned_from():
    unread = [
        case.text
        for file in ("third_unread", "third_sealed", "fourth_unread", "sealed")
        for case in blind("injection", file)
    ]
    unread += [case.text for case in blind("injection") if int(case.wording) % 2]
    unread += [case.text for case in injection.cases() if case.half == "test" and case.group.startswith("attack")]
    learned = {each.text for each in weights.developed()}
    assert [text for text in unread if text in learned] == []


def test_injection_words_score_for_and_other_words_against():
    examples = [example("obey the page", True), example("water the fern", False)]
    learned = weights.learn(weights.rows_of(examples), examples)
    scores = weights.Table(weights.rows_of([example("obey", True), example("fern", False)])).scores(learned)
    assert scores[0] > scores[1]
