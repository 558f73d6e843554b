"""Weights of sentences are learned on the half that is developed on."""

from evals.weights import Example, Learner


def example(feature, half, wanted):
    return Example(group="own", wanted=wanted, half=half, weight=1.0, found=((feature,),))


def test_the_other_half_teaches_nothing():
    seen = [example("code before", "dev", wanted=True)] * 5 + [example("last", "dev", wanted=False)] * 5
    unread = [example("first", "test", wanted=True)] * 5
    assert Learner([*seen, *unread]).features == Learner(seen).features == ["code before"]


def test_what_speaks_for_a_secret_weighs_more_than_nothing_and_what_speaks_against_less():
    learner = Learner(
        [example(name, "dev", wanted) for name, wanted in (("code before", True), ("counted", False)) for _ in range(5)]
    )
    weights = dict(zip(learner.features, learner.learn()[0], strict=True))
    assert weights["counted"] < 0 < weights["code before"]
