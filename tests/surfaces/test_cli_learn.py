"""The commands that learn."""

from __future__ import annotations

import pytest


@pytest.fixture
def shown(run, saved):
    """A recall with a receipt, as `recall --json` told of it."""
    return run("recall", "indentation", "--receipt", "--json").json


def test_feedback_names_its_author_and_the_agent_limit(run, saved, shown):
    agents = run("feedback", shown["receipt"], "--used", saved["id"]).err
    told = run("feedback", shown["receipt"], "--used", saved["id"], "--as", "operator", "--json").json
    assert ("limited to a share" in agents, told["trust"]) == (True, "owner")


def test_feedback_on_what_was_not_shown_is_a_usage_error(run, saved, shown):
    assert run("feedback", shown["receipt"], "--used", "nobody", "--json").code == 2


def test_training_on_feedback_without_pairs_says_how_to_give_them(run, saved, shown):
    silent = run("train", "--json").json["why"]
    run("feedback", shown["receipt"], "--used", saved["id"], "--as", "operator")
    assert ["--ignored" in why for why in (silent, run("train", "--json").json["why"])] == [False, True]


def test_training_on_agent_feedback_says_how_people_can_count(run, saved, shown):
    other = run("remember", "Bo wants wide indentation", "--json").json["id"]
    receipt = run("recall", "indentation", "--receipt", "--json").json["receipt"]
    run("feedback", receipt, "--used", saved["id"], "--ignored", other)
    assert "--as operator" in run("train", "--json").json["why"]
