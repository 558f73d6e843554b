"""Commits in the console: what they are called, what is folded away, and the days that they are listed for."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support import tamper
from support.browser import faults_of_access

pytestmark = pytest.mark.proof


def remember(console, text, **fields):
    return console.owner.remember(text, **{"tier": "archival", "reason": "told", **fields})


def journal(page):
    return page.get_by_role("list", name="Commits, newest first")


def test_a_commit_is_called_by_the_first_words_of_its_memory(console):
    done = remember(console, "The pier is long.\nIt was built in 1912.")
    console.owner.rollback(done.commit.id)
    with console.page("/commits") as page:
        expect(journal(page)).to_contain_text("The pier is long.")
        expect(journal(page)).to_contain_text(f"rollback of commit {done.commit.seq}")
        assert done.commit.id not in journal(page).inner_text()


def test_commits_that_only_count_uses_are_folded(console):
    record = remember(console, "The pier is long.").record
    for _ in range(3):
        console.agent().recall("How long is the pier?")
        console.owner.run_job("learn_importance", force=True)
    with console.page(f"/commits?at={record.version}") as page:
        newest = journal(page).get_by_role("link", name=re.compile("^4"))
        expect(newest).to_be_hidden()
        journal(page).get_by_text("3 commits that only counted uses").click()
        expect(newest).to_be_visible()
        assert faults_of_access(page) == []


def test_what_a_person_confirmed_is_listed_as_a_statement(console):
    record = remember(console, "The pier is long.").record
    for _ in range(3):
        console.owner.reinforce(record.id)
    with console.page("/commits") as page:
        expect(journal(page).get_by_role("link", name=re.compile("^4"))).to_be_visible()
        expect(journal(page)).not_to_contain_text("only counted uses")
        expect(journal(page)).to_contain_text("confirm")


def test_the_journal_is_listed_for_today(console):
    remember(console, "The pier is long.")
    with console.page("/commits") as page:
        today = page.get_by_role("group", name="Since").get_by_role("button", name="Today")
        today.click()
        expect(today).to_have_attribute("aria-pressed", "true")
        expect(journal(page)).to_contain_text("The pier is long.")
        page.goto(f"{console.url}/console/commits?since=2999-01-01T00:00:00Z")
        page.get_by_text("No such commit").wait_for()


def test_a_commit_of_many_changes_has_its_actions_in_sight(console):
    console.owner.remember_many([{"text": f"Shelf {n} holds flour {n * 7}.", "tier": "archival"} for n in range(40)])
    with console.page("/commits") as page:
        page.get_by_role("article").get_by_text("Shelf 39 holds").first.scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="Roll back…")).to_be_in_viewport()


def test_a_damaged_commit_is_named_in_red_beside_those_that_are_intact(console):
    for number in range(3):
        remember(console, f"Pier {number} is long.")
    tamper.edit(console.owner.path, "commits", "at = at + 1", "seq = 2")
    with console.page("/commits") as page:
        expect(journal(page)).to_contain_text("Pier 2 is long.")
        expect(journal(page)).to_contain_text("Pier 0 is long.")
        damage = page.get_by_role("alert", name="Damaged")
        expect(damage).to_contain_text("commit 2 is damaged and not shown")
        expect(damage).to_contain_text("keepward verify")
        assert faults_of_access(page) == []
    with console.page("/") as page:
        news = page.get_by_role("region", name="News")
        expect(news).to_contain_text("Pier 2 is long.")
        expect(news.get_by_role("alert", name="Damaged")).to_contain_text("commit 2")


def test_approvals_cut_by_a_page_say_there_may_be_more(console):
    for n in range(103):
        agent = console.agent(f"bot {n % 3}")
        agent.remember(f"Guess {n}: {n * 7} sacks.", tier="archival", confidence=0.2, reason="a guess")
    console.owner.approve_many([each.id for each in console.owner.pending(limit=None)])
    with console.page("/commits") as page:
        expect(journal(page)).to_contain_text("100+ approvals at once")
        page.get_by_role("button", name="Older").click()
        expect(journal(page)).to_contain_text("3+ approvals at once")


def test_a_damaged_commit_is_red_and_cannot_be_rolled_back(console):
    for name in ("pier", "mole", "quay"):
        remember(console, f"The {name} is long.")
    tamper.edit(console.owner.path, "commits", "at = at + 1", "seq = 2")
    with console.page("/commits") as page:
        page.get_by_role("group", name="Damaged commits").get_by_role("link", name="commit 2").click()
        shown = page.get_by_role("article", name="Commit 2")
        expect(shown.get_by_role("alert", name="Damaged")).to_contain_text("commit 2 is damaged and shown as stored")
        expect(shown).to_contain_text("The mole is long.")
        expect(shown.get_by_role("button", name="Roll back")).to_have_count(0)
        assert faults_of_access(page) == []
