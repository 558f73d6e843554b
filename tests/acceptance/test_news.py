"""News: every number of what happened since an instant is that of the store, however much happened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, Memory, Unauthorised
from keepward.services.reading import news as news_module
from support.bulk_data import put_records

ON_BOTH_DATABASES = True
KEY = "AKIA" + "HTLGMXGEDN73U55X"
NUMBERS = ("learned", "changed", "ended", "erased", "decisions", "refusals")


def totals(memory: Memory, since: datetime) -> dict[str, int | None]:
    news = memory.news(since)
    return {name: getattr(news, name).total for name in NUMBERS if getattr(news, name).total != 0}


def remembered(memory: Memory, text: str, **more: Any) -> str:
    return committed_record(memory.remember(text, tier="archival", reason="told", **more)).id


@pytest.fixture
def later(owner: Memory, clock: Any) -> Callable[[], datetime]:
    """Let a month pass, and return the beginning of the last week of it."""

    def pass_month() -> datetime:
        clock.move(days=30)
        return owner.now - timedelta(days=7)

    return pass_month


def test_each_memory_is_counted_under_what_happened_to_it(owner: Memory, later: Callable[[], datetime]) -> None:
    names = [remembered(owner, f"The lock of gate {n} is old") for n in range(6)]
    since = later()
    assert totals(owner, since) == {}
    owner.revise(names[0], "The lock of gate 0 is new", reason="seen")
    owner.reinforce(names[1], reason="seen")
    owner.forget(names[2], reason="gone")
    owner.archive(names[3], reason="old")
    owner.erase(owner.plan_erase([names[4]]).digest, [names[4]])
    remembered(owner, "The pier is long")
    assert totals(owner, since) == {"learned": 1, "changed": 1, "ended": 2, "erased": 1}
    news = owner.news(since)
    (changed,), (erased,) = news.changed.newest, news.erased.newest
    assert (changed.text, changed.actor, changed.op) == ("The lock of gate 0 is new", "operator:olga", "replace")
    assert (erased.memory, erased.text, erased.op) == (names[4], "", "erase")


def test_what_expires_has_ended_before_and_after_a_job_notes_it(
    owner: Memory, clock: Any, later: Callable[[], datetime]
) -> None:
    remembered(owner, "The gate is shut", ttl="28d")
    remembered(owner, "The gate was shut once", ttl="1d")
    since = later()
    before = totals(owner, since)
    (noted_by_nobody,) = owner.news(since).ended.newest
    owner.run_job("expire")
    assert (before, totals(owner, since)) == ({"ended": 1}, {"ended": 1})
    assert (noted_by_nobody.actor, noted_by_nobody.text) == (None, "The gate is shut")


def test_numbers_hold_beyond_any_page(owner: Memory, clock: Any, later: Callable[[], datetime]) -> None:
    since = later()
    put_records(owner, [f"Entry {n} of the ledger." for n in range(1_500)])
    agent = owner.as_actor(Actor.agent("scribe"))
    for n in range(60):
        agent.remember(f"Key {n} is {KEY}", tier="archival", reason="told")
    assert totals(owner, since) == {"learned": 1_500, "refusals": 60}
    news = owner.news(since, most=2)
    assert [len(news.learned.newest), len(news.refusals.newest)] == [2, 2]
    assert "secret" in news.refusals.newest[0].text


def test_more_refusals_than_are_read_are_counted(
    owner: Memory, later: Callable[[], datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = owner.as_actor(Actor.agent("scribe"))
    agent.remember(f"Key old is {KEY}", tier="archival", reason="told")
    since = later()
    for n in range(8):
        # Words that look like another receipt's are no such receipt.
        agent.remember(f'Key {n} is {KEY}: "kind":"rejection"', tier="archival", reason='"kind":"rejection"')
    item = agent.remember("Ship soon.", tier="core", key="mission").item
    owner.approve(item.id, digest=item.digest)
    monkeypatch.setattr(news_module, "MAX_COUNTED", 4)
    monkeypatch.setattr(news_module, "_BATCH", 2)
    assert totals(owner, since) == {"learned": 1, "decisions": 1, "refusals": 8}


def test_decisions_are_counted_by_what_was_decided(owner: Memory, later: Callable[[], datetime]) -> None:
    since = later()
    agent = owner.as_actor(Actor.agent("scribe"))
    items = [
        agent.remember(f"Ship {when}.", tier="core", key=key).item
        for when, key in (("soon", "mission"), ("late", "workspace_state"))
    ]
    owner.approve(items[0].id, digest=items[0].digest)
    owner.reject(items[1].id, reason="no")
    assert totals(owner, since) == {"learned": 1, "decisions": 2}


def test_reviewer_of_a_scope_hears_of_that_scope_alone(owner: Memory, entering: Any, clock: Any) -> None:
    since = owner.now
    clock.move(hours=1)
    remembered(owner.at(scope="/agents/orion"), "The oven is old")
    remembered(owner.at(scope="/agents/lyra"), "The lathe is old")
    token = owner.create_token("rita", rights="reviewer", scope="/agents/orion")
    learned = entering(token=token.secret).news(since).learned
    assert (learned.total, [each.text for each in learned.newest]) == (1, ["The oven is old"])


def test_news_take_a_reviewer_or_the_owner(mem: Memory) -> None:
    with pytest.raises(Unauthorised):
        mem.news("2026-01-01")
