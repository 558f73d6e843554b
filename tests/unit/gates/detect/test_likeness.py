"""Likeness: what counts as equal, as a rewording, and as a different fact."""

import pytest

from keepward.gates.detect.likeness import LONGEST, PROTECTED, compare, match, normalise

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
    ("The user prefers dark mode in the editor", "User prefers dark mode in the editor"),
    ("Deploy with Kubernetes", "Deploy using Kubernetes"),
    ("The user really prefers dark mode", "User prefers dark-mode"),
    ("Ana has two cats", "Ana has 2 cats"),
    ("The limit is twenty-one files", "The limit is 21 files"),
    ("The timeout is 5s", "The timeout is 5 seconds."),
    ("The user's cat likes fish", "The user's cats like fish"),
    ("It doesn't work offline", "It does not work offline"),
    ("On Monday Ben calls Ana", "Ben calls Ana on Monday"),
    ("In the editor, the user prefers dark mode", "The user prefers dark mode in the editor"),
]
DIFFERENT = [
    ("The limit is 5 files", "The limit is 6 files", "number"),
    ("The limit is two files", "The limit is 3 files", "number"),
    ("3 cats and 2 dogs", "2 cats and 3 dogs", "order"),
    ("The offset is -5", "The offset is 5", "number"),
    ("The meeting is on Friday", "The meeting is on Monday", "date"),
    ("Released on 2026-01-02", "Released on 2026-01-03", "date"),
    ("Ask Ana first", "Ask Ben first", "name"),
    ("Deploy target is db-7", "Deploy target is db-8", "name"),
    ("Use v1.2.3 here", "Use v1.2.4 here", "name"),
    ("Read /etc/a.conf", "Read /etc/b.conf", "name"),
    ("Call foo_bar() here", "Call foo_baz() here", "name"),
    ("Ship to US", "Ship to us", "name"),
    ("The timeout is 5 s", "The timeout is 5 ms", "unit"),
    ("It costs $5", "It costs €5", "unit"),
    ("The user likes tea", "The user does not like tea", "negation"),
    ("The user can log in", "The user can't log in", "negation"),
    ("Deploy with Docker", "Deploy without Docker", "negation"),
    ("Der Nutzer mag Tee", "Der Nutzer mag keinen Tee", "negation"),
    ("Il aime le thé", "Il n'aime pas le thé", "negation"),
    ("Le gusta el té", "No le gusta el té", "negation"),
    ("他喜欢茶", "他不喜欢茶", "negation"),
    ("彼はお茶を飲む", "彼はお茶を飲まない", "negation"),
    ("Uploads are enabled", "Uploads are disabled", "negation"),
    ("Allow uploads", "Deny uploads", "negation"),
    ("Run it before the tests", "Run it after the tests", "negation"),
    ("The port is available", "The port is unavailable", "negation"),
    ("All users may log in", "Only users may log in", "quantifier"),
    ("He always deploys", "He never deploys", "quantifier"),
    ("Ana reports to Ben", "Ben reports to Ana", "order"),
    ("The client calls the server", "The server calls the client", "order"),
    ("Move it from A1 to B2", "Move it from B2 to A1", "order"),
    ("User prefers tabs", "User prefers spaces", "value"),
    ("The user likes coffee", "The user likes black coffee", "value"),
    ("The user lives in Paris", "The user lived in Paris", "value"),
    ("Ana needs a plan", "Ana needs a plane", "value"),
    ("他喜欢红茶", "他喜欢绿茶", "value"),
]


def is_duplicate(a, b, **floors):
    return match(a, [b], **floors) is not None


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
def test_a_protected_difference_is_named(a, b, kind):
    assert kind in compare(a, b).differs


@pytest.mark.parametrize(("a", "b", "kind"), DIFFERENT)
def test_a_protected_difference_keeps_both(a, b, kind):
    assert not is_duplicate(a, b)


def test_two_hundred_facts_that_differ_by_a_number_stay_two_hundred():
    facts = [f"The retry limit of the billing queue is {n} attempts per hour" for n in range(200)]
    pairs = [(facts[n], facts[(n + step) % 200]) for n in range(200) for step in (1, 2, 10, 100)]
    assert not any(is_duplicate(a, b) for a, b in pairs)


def test_differences_are_named_in_the_fixed_order():
    differs = compare("Ask Ana for 5 MB on Friday", "Never ask Ben for 6 KB on Monday").differs
    assert differs == tuple(kind for kind in PROTECTED if kind in differs)


def test_floors_of_one_refuse_only_what_overlaps_wholly():
    assert not is_duplicate("the", "is a", overlap_floor=1.0, ratio_floor=1.0)


def test_equal_texts_have_likeness_one():
    likeness = compare("Tea.", "tea")
    assert (likeness.overlap, likeness.ratio) == (1.0, 1.0)


def test_a_difference_past_the_limit_is_still_a_difference():
    long = "tea " * LONGEST
    assert not is_duplicate(long + "1", long + "2")


def test_long_equal_texts_are_duplicates():
    assert is_duplicate("tea " * LONGEST, "Tea  " * 1 + "tea " * (LONGEST - 1))


@pytest.mark.parametrize("hostile", ["a" + "\u0301\u0323" * 16_000, "\ufdfa" * 21_000, "in " * 21_000, "n't " * 16_000])
def test_a_hostile_text_is_its_own_duplicate(hostile):
    assert is_duplicate(hostile, hostile)
