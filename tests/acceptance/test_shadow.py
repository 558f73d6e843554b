"""Shadow: Keepward beside a host's own memory changes no byte of the host's prompt, and says what it would have added."""

from __future__ import annotations

from typing import Any

import pytest

from keepward import Memory


def host(query: str, *, limit: int = 3) -> str:
    return f"host says {limit} things about {query}\u2028\r\n"


def test_the_host_answers_byte_for_byte(owner: Memory) -> None:
    owner.remember("We deploy on Fridays")
    search = owner.shadow(host)
    assert search("When do we deploy?", limit=5) == host("When do we deploy?", limit=5)
    assert "We deploy on Fridays" in search.text
    report = search.report()
    assert (report.calls, report.added, report.failed) == (1, 1, 0)
    assert [(each.text, each.calls) for each in report.memories] == [("We deploy on Fridays", 1)]
    assert report.most_tokens > 0


def test_an_answer_of_any_type_is_the_same_object(owner: Memory) -> None:
    answer = {"hits": []}
    assert owner.shadow(lambda **_: answer)(query="boats") is answer


def test_no_model_read_it(owner: Memory) -> None:
    made = owner.remember("We deploy on Fridays").record
    before = [receipt.id for receipt in owner.receipts().items]
    owner.shadow(host)("When do we deploy?")
    assert [receipt.id for receipt in owner.receipts().items] == before
    owner.remember("Tea is at four")  # writes the uses that are counted
    assert owner._engine.store.usage("default", [made.id]) == {}


def test_errors_of_the_host_are_its_own(owner: Memory) -> None:
    def fails(query: str) -> str:
        raise LookupError(query)

    with pytest.raises(LookupError, match="boats"):
        owner.shadow(fails)("boats")


def test_errors_of_keepward_are_in_the_report(owner: Memory) -> None:
    owner.remember("Ana leads the bakery and its three shops", key="mission", tier="core")
    search = owner.shadow(host, budget_tokens=1)
    assert search("boats") == host("boats")
    search.capture("no messages")  # type: ignore[arg-type]
    report = search.report()
    assert (report.failed, len(report.errors)) == (2, 2)


def test_what_was_said_is_captured(owner: Memory, clock: Any) -> None:
    search = owner.shadow(host)
    search.capture([{"role": "user", "content": "Remember that the ferry is red."}], session="s1")
    search("Which colour has the ferry?")
    assert "ferry is red" in search.text


def test_what_was_erased_is_in_no_report(owner: Memory) -> None:
    made = owner.remember("Ana lives in Graz").record
    search = owner.shadow(host)
    search("Where does Ana live?")
    owner.erase(owner.plan_erase([made.id]).digest, [made.id])
    assert search.report().memories == ()
    assert search.report().added == 1
