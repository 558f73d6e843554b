"""Classes of `keepward.model.dataclass` are compared, hashed and shown as those of `dataclasses`."""

import dataclasses

import pytest

from keepward.model.dataclass import dataclass


def made(decorator, **options):
    @decorator(**options)
    class Point:
        """A point."""

        x: float
        y: int = 0
        name: str = dataclasses.field(default="", compare=False)
        secret: str = dataclasses.field(default="", repr=False)

    return Point


Ours, Theirs = made(dataclass, frozen=True, slots=True, kw_only=True), made(dataclasses.dataclass, frozen=True)
NAN = float("nan")
PAIRS = [({"x": 1}, {"x": 1}), ({"x": 1}, {"x": 2}), ({"x": 1, "name": "a"}, {"x": 1, "name": "b"})]
PAIRS += [({"x": 1, "secret": "a"}, {"x": 1, "secret": "b"}), ({"x": NAN}, {"x": NAN})]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_fields_that_are_compared_decide_what_is_equal(one, other):
    assert (Ours(**one) == Ours(**other)) is (Theirs(**one) == Theirs(**other))


def test_what_is_equal_has_the_same_hash():
    assert hash(Ours(x=1, name="a")) == hash(Ours(x=1, name="b"))


def test_fields_are_shown_but_those_that_are_secret():
    assert repr(Ours(x=1, secret="word")) == repr(Theirs(x=1, secret="word"))


def test_an_object_of_another_class_is_not_equal():
    assert Ours(x=1) != Theirs(x=1)


def test_one_field_alone_is_compared_too():
    one = dataclass(slots=True)(type("One", (), {"__annotations__": {"x": "int"}, "__doc__": "One."}))
    assert (one(1) == one(1), one(1) == one(2)) == (True, False)


def test_what_may_be_changed_has_no_hash():
    with pytest.raises(TypeError):
        hash(made(dataclass, slots=True)(1))


def test_without_comparison_an_object_equals_itself_alone():
    alone = made(dataclass, frozen=True, eq=False)
    assert alone(1) != alone(1)


def test_what_is_frozen_stays_as_it_is():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ours(x=1).x = 2
