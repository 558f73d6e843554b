"""Weights of sentences are learned on the half that is developed on."""

from evals.weights import Example, Learner


def example(feature, half, wanted):
    return Example(group="own", wanted=wanted, half=half, weight=1.0, found=((feature,),))


def test_the_other_half_teaches_nothing():
    seen = [example("remember", "dev", wanted=True)] * 5 + [example("rank", "dev", wanted=False)] * 5
    unread = [example("begins", "test", wanted=True)] * 5
    assert Learner([*seen, *unread]).features == Learner(seen).features == ["remember"]


def test_what_speaks_for_an_order_weighs_more_than_nothing_and_what_speaks_against_less():
    learner = Learner(
        [example(name, "dev", wanted) for name, wanted in (("remember", True), ("story", False)) for _ in range(5)]
    )
    weights = dict(zip(learner.features, learner.learn()[0], strict=True))
    assert weights["story"] < 0 < weights["remember"]
