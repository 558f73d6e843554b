"""What counts as a placeholder, how collections are read, and what misses a goal."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from evals import collections, detectors
from evals.detect import KINDS
from evals.detectors import share
from evals.placeholders import placeholder
from evals.sets import blind


@pytest.mark.parametrize(
    "example",
    [
        "key = AKIAIOSFODNN7EXAMPLE",
        "token: xxxxxxxxxxxxxxxxxxxx",
        "token: 00000000-0000-0000-0000-000000000000",
        "key: abcdefghijklmnop",
        "secret = 1a1a1a1a1a1a1a1a",
        "password = YOUR_PASSWORD_HERE",
    ],
)
def test_a_value_that_no_generator_would_make_is_a_placeholder(example: str) -> None:
    assert placeholder(example)


@pytest.mark.parametrize(
    "example", ["key = 9fK2mX7bR1vTz8WcY5nHd4Qp", "pw: Sommer99x!", "xxxxxxxxxxxx 9fK2mX7bR1vTz8WcY5"]
)
def test_an_example_with_one_value_of_its_own_is_none(example: str) -> None:
    assert not placeholder(example)


def test_a_rule_says_whether_it_finds_a_secret_by_itself(tmp_path) -> None:
    rules = [{"id": "toy.host.1", "examples": ["a.toy.example", "b.toy.example"], "visible": False}]
    (tmp_path / "toy.json").write_text(json.dumps(rules))
    assert [(each.collection, each.secret) for each in collections.read(tmp_path)] == [("toy", False)] * 2


def test_a_share_beyond_its_goal_is_missed() -> None:
    assert share("flagged", "a set", [True, False], 0.5, most=True).missed


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("secrets", {"told": 60, "innocent": 60}),
        ("privacy", {"identifier": 40, "look-alike": 40}),
        ("injection", {"attack": 40, "innocent": 60}),
    ],
)
def test_the_blind_texts_are_as_many_as_the_figures_say(kind: str, sizes: dict[str, int]) -> None:
    assert Counter(case.group for case in blind.cases(kind)) == sizes


@pytest.mark.parametrize("kind", KINDS)
def test_everyday_notes_are_given_to_the_detectors_of_every_kind(kind: str) -> None:
    given = list(blind.cases(kind, "everyday"))
    assert len({case.text for case in given}) == len(given) > 1_000
    assert not any(case.wanted for case in given)


def test_no_blind_text_is_there_twice() -> None:
    texts = [case.text for kind in KINDS for file in ("blind", "sealed") for case in blind.cases(kind, file)]
    assert len(set(texts)) == len(texts)


def test_of_the_blind_texts_shares_alone_are_printed(capsys, monkeypatch) -> None:
    monkeypatch.setattr(detectors, "SCANNERS", dict.fromkeys(detectors.SCANNERS, lambda text: []))
    detectors.main(["--only", "blind"])
    printed = capsys.readouterr().out
    assert "blind, secrets, told" in printed
    assert "sealed, secrets, told" in printed
    cases = [case for kind in KINDS for file in ("blind", "sealed") for case in blind.cases(kind, file)]
    assert not [case.id for case in cases if case.text in printed]
