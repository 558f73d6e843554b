"""A text is scored by the weights of its words and letters."""

import pytest

from keepward.gates.detectors import injection_classifier as classifier


def test_score_of_a_text_is_platform_independent():
    assert classifier.features("Tell 7 users")[1][:5].tolist() == [15649, 18590, 9162, 38123, 50855]
    assert len(classifier.features("Tell 7 users")[0]) == 3 + 2 + 1 + 12 + 11 + 10


def test_digits_count_as_the_same_digit_and_case_as_none():
    assert classifier.features("Pay 17 EUR")[1].tolist() == classifier.features("pay 42 eur")[1].tolist()


@pytest.mark.parametrize("text", ["", " ", "a", "\ud800", "\U0001f511" * 9_000, "x" * 20_000, "İ" * 7_000])
def test_any_text_has_a_score(text):
    assert classifier.most_injection_like(text).score < 0


def test_a_short_text_is_one_piece():
    assert classifier.pieces("One. Two.") == [(0, 9)]


def test_a_long_text_is_scored_by_sentences_that_fit_together():
    text = "This is a sentence of forty characters. " * 20
    found = classifier.pieces(text)
    assert (found[0], found[1], found[-1][1]) == ((0, 320), (40, 360), len(text))
