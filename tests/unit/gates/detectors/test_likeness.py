"""Likeness: what counts as equal, as a rewording, and as a different fact."""

import pytest

from keepward.gates.detectors.near_duplicate import DIFFERENCES, MAX_COMPARED_CHARS, compare, match, normalise

EQUAL = [
    ("The user likes tea.", "the  user\nlikes tea"),
    ("It’s “fine” – really", 'It\'s "fine" - really'),
    ("ｄａｒｋ mode", "dark mode"),
    ("temperature −5", "temperature -5"),
    ("soft\u00adware", "software"),
    ("Great!", "great"),
]
UNEQUAL = [
    ("ship to US", "ship to us"),
    ("10²", "102"),
    ("3½ cups", "31/2 cups"),
    ("5!", "5"),
    ("cd ..", "cd"),
    ("-5", "5"),
    ("5 MB", "5 Mb"),
    ("/Data", "/data"),
    ("fooBar", "foobar"),
    ("flag -V", "flag -v"),
    ("Is it tea?", "is it tea"),
    ("Maße", "Masse"),
]
REWORDED = [
    ("The user prefers dark mode in the editor", "User prefers dark mode in editor"),
    ("The user really prefers dark mode", "User prefers dark-mode"),
    ("Ana prefers tabs, really", "Ana prefers tabs"),
    ("A server is in the cellar", "The server is in a cellar"),
]
#: Pairs that resemble each other and state two things.
TWO = [
    # a qualifier more
    ("The API server runs in Oslo", "The staging API server runs in Oslo"),
    ("The user likes coffee", "The user likes black coffee"),
    ("Ana's key opens the door", "Ana's spare key opens the door"),
    ("The password of the router is in the safe", "The password of the old router is in the safe"),
    # another number or version
    ("The limit is 5 files", "The limit is 6 files"),
    ("The limit is two files", "The limit is three files"),
    ("Use Python 3.11 here", "Use Python 3.12 here"),
    ("Use v1.2.3 here", "Use v1.2.4 here"),
    ("The offset is -5", "The offset is 5"),
    ("Read chapter 10²", "Read chapter 102"),
    # another name or year
    ("Ask Ana first", "Ask Ben first"),
    ("The fair of 2024 was in Rome", "The fair of 2025 was in Rome"),
    ("Ship to US", "Ship to us"),
    # another property of the same thing
    ("The front door of the house is green", "The back door of the house is green"),
    ("Ana's desk phone is new", "Ana's mobile phone is new"),
    # another person
    ("Ana reports to Ben", "Ben reports to Ana"),
    ("Ana's brother lives in Bern", "Ana's sister lives in Bern"),
    # names that differ by a sign
    ("Ana writes C++ at work", "Ana writes C# at work"),
    ("Ana writes C at work", "Ana writes C++ at work"),
    ("Run it with flag -v", "Run it with flag -V"),
    ("Run it with flag -v", "Run it with flag v"),
    # another order, tense, unit, negation
    ("3 cats and 2 dogs", "2 cats and 3 dogs"),
    ("The user lives in Paris", "The user lived in Paris"),
    ("Ana needs a plan", "Ana needs a plane"),
    ("The timeout is 5 s", "The timeout is 5 ms"),
    ("Uploads are enabled", "Uploads are disabled"),
    ("The user can log in", "The user can't log in"),
    ("Is the user in Paris?", "The user is in Paris"),
    ("他喜欢红茶", "他喜欢绿茶"),
]
DIFFERENT = [
    ("The limit is 5 files", "The limit is 6 files", "number"),
    ("3 cats and 2 dogs", "2 cats and 3 dogs", "order"),
    ("The meeting is on Friday", "The meeting is on Monday", "date"),
    ("Ask Ana first", "Ask Ben first", "name"),
    ("Read /etc/a.conf", "Read /etc/b.conf", "name"),
    ("The timeout is 5 s", "The timeout is 5 ms", "unit"),
    ("The user can log in", "The user can't log in", "negation"),
    ("Der Nutzer mag Tee", "Der Nutzer mag kein Tee", "negation"),
    ("User prefers tabs", "User prefers spaces", "value"),
]


def is_duplicate(a, b, ratio_floor=0.7):
    return match(a, [b], ratio_floor=ratio_floor) is not None


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_declared_differences_vanish_under_normalisation(a, b):
    assert normalise(a) == normalise(b)


@pytest.mark.parametrize(("a", "b"), UNEQUAL)
def test_what_carries_meaning_survives_normalisation(a, b):
    assert normalise(a) != normalise(b)


@pytest.mark.parametrize(("a", "b"), REWORDED)
def test_a_rewording_is_a_duplicate(a, b):
    assert is_duplicate(a, b)


@pytest.mark.parametrize(("a", "b", "kind"), DIFFERENT)
def test_a_difference_is_named(a, b, kind):
    assert kind in compare(a, b).differs


@pytest.mark.parametrize(("a", "b"), [*TWO, *((a, b) for a, b, _ in DIFFERENT)])
def test_two_texts_that_differ_in_a_word_stay_two(a, b):
    assert not is_duplicate(a, b)
    assert compare(a, b).differs


def test_two_hundred_facts_with_different_numbers_stay_separate():
    facts = [f"The retry limit of the billing queue is {n} attempts per hour" for n in range(200)]
    pairs = [(facts[n], facts[(n + step) % 200]) for n in range(200) for step in (1, 2, 10, 100)]
    assert not any(is_duplicate(a, b) for a, b in pairs)


def test_differences_are_named_in_the_fixed_order():
    differs = compare("Ask Ana for 5 MB on Friday", "Never ask Ben for 6 KB on Monday").differs
    assert differs == tuple(kind for kind in DIFFERENCES if kind in differs)


def test_a_difference_past_the_limit_is_still_a_difference():
    long = "tea " * MAX_COMPARED_CHARS
    assert not is_duplicate(long + "1", long + "2")


def test_a_hostile_text_is_its_own_duplicate():
    assert [
        hostile
        for hostile in ["a" + "\u0301\u0323" * 16_000, "\ufdfa" * 21_000, "in " * 21_000, "n't " * 16_000]
        if not is_duplicate(hostile, hostile)
    ] == []
