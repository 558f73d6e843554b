"""A token writes at its scope and below; writing above takes the right ``share``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept

from keepward import Insert, Memory

Enter = Callable[..., Memory]
OWN = "/agents/a"


@pytest.fixture
def narrow(owner: Memory, entering: Enter) -> Memory:
    return entering(token=owner.create_token("a", scope=OWN).secret)


def codes(said: Any) -> list[str]:
    return [said.outcome, *(each.code for each in said.reasons)]


def test_a_token_changes_nothing_above_its_scope(owner: Memory, narrow: Memory) -> None:
    shared = kept(owner.remember("The ferry leaves at six", key="ferry", tier="archival"))
    own = kept(narrow.remember("The crane is red", tier="archival"))
    assert own.scope == OWN
    tried = [
        narrow.remember("The ferry leaves at nine", scope="/", tier="archival"),
        narrow.remember("The ferry leaves at nine", scope="/agents", tier="archival"),
        narrow.update_by_key("ferry", "The ferry leaves at nine", scope="/"),
        narrow.revise(shared.id, "The ferry leaves at nine", reason="x"),
        narrow.append(shared.id, "or at nine", reason="x"),
        narrow.forget(shared.id, reason="x"),
        narrow.archive(shared.id, reason="x"),
        narrow.supersede(shared.id, own.id, reason="x"),
        narrow.move(own.id, scope="/", reason="x"),
        narrow.propose([Insert(id="n1", text="The ferry is late", scope="/")], reason="x"),
    ]
    assert [codes(each) for each in tried] == [["refused", "out_of_scope"]] * len(tried)
    assert owner.get("ferry") == shared
    assert not narrow.pending()
    assert "The ferry leaves at six" in narrow.context("When does the ferry leave?").text


def test_a_token_writes_below_its_scope(narrow: Memory) -> None:
    below = kept(narrow.remember("Task 4 is done", scope=f"{OWN}/tasks/4", tier="archival"))
    task = narrow.at(scope=below.scope)
    assert kept(task.revise(below.id, "Task 4 is open again", reason="x")).scope == f"{OWN}/tasks/4"


def test_the_right_to_share_writes_above(owner: Memory, entering: Enter) -> None:
    wide = entering(token=owner.create_token("a", scope=OWN, can=["read", "propose", "share"]).secret)
    assert kept(wide.remember("The crane is red", scope="/", tier="archival")).scope == "/"
