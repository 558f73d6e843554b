"""Laws of likeness that hold for any two texts."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keepward.gates.detectors.near_duplicate import NormalizedText, compare, is_near_duplicate, match, normalise

pytestmark = pytest.mark.slow

VOCABULARY = (
    "The user prefers dark mode in editor Ana reports to Ben not doesn't 5 5s db-7 two 10² $3.50 - ... (x) US us "
    "他不喜欢茶 v1.2 a/b 12:30 is of always isn't twenty-one 2026-01-02 “quoted” n'aime cd .. 7! ½"
)
WORDS = st.sampled_from(VOCABULARY.split())
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
TEXTS = st.one_of(SENTENCES, st.text(max_size=40))
quick = settings(max_examples=60, deadline=None, derandomize=True)


def is_duplicate(a, b):
    return match(a, [b]) is not None


@quick
@given(TEXTS)
def test_a_text_is_its_own_duplicate(text):
    assert is_duplicate(text, text)


@quick
@given(TEXTS, TEXTS)
def test_likeness_is_symmetric(a, b):
    assert compare(a, b) == compare(b, a)


@quick
@given(TEXTS, TEXTS)
def test_being_a_duplicate_is_symmetric(a, b):
    assert is_duplicate(a, b) == is_duplicate(b, a)


@quick
@given(TEXTS)
@example("h\u0331\u0345 H\u0331")
@example("5!.")
@example("a\u200b\u0301.")
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@quick
@given(SENTENCES, st.integers(0, 999), st.integers(1, 9))
def test_changing_one_digit_ends_the_likeness(text, pick, step):
    text += " 7"
    places = [at for at, sign in enumerate(text) if sign in "0123456789"]
    at = places[pick % len(places)]
    changed = text[:at] + str((int(text[at]) + step) % 10) + text[at + 1 :]
    assert not is_duplicate(text, changed)


@quick
@given(SENTENCES, st.integers(0, 12))
def test_inserting_not_ends_the_likeness(text, at):
    words = text.split()
    assert not is_duplicate(text, " ".join([*words[:at], "not", *words[at:]]))


@quick
@given(TEXTS, TEXTS)
def test_measures_lie_between_zero_and_one(a, b):
    likeness = compare(a, b)
    assert 0.0 <= likeness.overlap <= 1.0
    assert 0.0 <= likeness.ratio <= 1.0


@quick
@given(SENTENCES, st.lists(st.sampled_from(("s", "ing", ".", " really", " the", "")), min_size=1, max_size=3))
@example("the cat runs", ["s"])
@example("she flies planes", [""])
def test_texts_that_state_the_same_have_one_trait(text, endings):
    other = text + "".join(endings)
    found = match(text, [other])
    assert found is None or found[1] or NormalizedText(text).token_signature == NormalizedText(other).token_signature


@quick
@given(SENTENCES, SENTENCES)
def test_a_trait_apart_separates_two_texts(a, b):
    found = match(a, [b])
    assert found is None or found[1] or NormalizedText(a).trait == NormalizedText(b).trait


@quick
@given(TEXTS, TEXTS, st.floats(0, 1), st.floats(0, 1))
def test_reaching_a_floor_is_what_the_measures_say(a, b, overlap, ratio):
    like = compare(a, b)
    reached = like.overlap >= overlap or like.ratio >= ratio
    assert is_near_duplicate(a, b, overlap_floor=overlap, ratio_floor=ratio) == reached
