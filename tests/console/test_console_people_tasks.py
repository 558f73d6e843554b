"""Tasks of somebody who has not read the documents, each within as many clicks and keys as it needs."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from keepward import Client
from support.browser import loaded

pytestmark = pytest.mark.proof


class Hand:
    """A person at a page: it counts clicks, and keys beside those that write."""

    def __init__(self, page):
        self.page, self.acts = page, 0

    def click(self, role, name, **options):
        self.page.get_by_role(role, name=name, **options).first.click()
        self.acts += 1

    def press(self, key):
        self.page.keyboard.press(key)
        self.acts += 1

    def write(self, label, text):
        self.page.get_by_label(label).fill(text)


def verdict(page):
    return page.get_by_role("status", name="How things are")


def test_home_says_at_once_whether_all_is_well(stage):
    console = stage(embedder="hashed")
    console.owner.remember("The ovens come in May", tier="archival", reason="heard")
    with console.page("/") as page:
        expect(verdict(page)).to_have_text("All is well")
        console.agent().remember("Ship before Whitsun", tier="core", key="mission", reason="so")
        expect(verdict(page)).to_have_text("1 proposal waits for you")


def test_a_belief_about_a_person_is_corrected_in_five_acts(console):
    kept = console.owner.user("lena").remember("Lena takes ten units", tier="archival", reason="told").record
    console.agent().remember("A woman came back with hives", tier="archival", reason="seen")
    with console.page("/") as page:
        hand = Hand(page)
        hand.click("link", "Users")
        page.get_by_role("list", name="What is believed").get_by_text("Lena takes ten units").wait_for()
        hand.click("button", "Revise")
        hand.write("Text", "Lena takes twelve units")
        hand.write("Reason (recorded", "measured")
        hand.press("Enter")
        page.get_by_text("Revised.").last.wait_for()
        assert hand.acts <= 5
    assert console.owner.get(kept.id).text == "Lena takes twelve units"
    assert "twelve units" in console.owner.user("lena").context("how many units").text


def test_a_person_is_erased_by_one_plan(console):
    lena = console.owner.user("lena")
    lena.remember("Lena takes ten units", tier="archival", reason="told")
    console.owner.remember("Lena moved to Riga", tier="archival", subject="lena", reason="told")
    console.owner.remember("Ask Lena for the spare key", tier="archival", reason="told")
    said = {"role": "user", "name": "Lena", "content": "The buoy is painted green since Monday."}
    console.owner.add([said], session="talk", extract=False)
    stays = console.owner.remember("The ovens come in May", tier="archival", reason="heard").record
    with console.page("/") as page:
        hand = Hand(page)
        hand.click("link", "Erase")
        hand.write("Who or what is to go", "Lena")
        expect(page.get_by_label("All about lena")).to_be_checked()
        page.get_by_label("Ask Lena for the spare key").check()
        page.get_by_label("The buoy is painted green").check()
        hand.acts += 2
        hand.click("button", "Plan for what is ticked")
        expect(page.get_by_role("list", name="What goes").get_by_role("listitem")).to_have_count(4)
        hand.write("to confirm", "erase 4")
        hand.press("Enter")
        page.get_by_role("heading", name="Erased", exact=True).wait_for()
        assert hand.acts <= 6
    assert [each.id for each in console.owner.list_memories(limit=None, within="/")] == [stays.id]


def test_a_token_for_an_agent_is_made_and_used(console):
    console.owner.at(scope="/agents/orion").remember("The buoy is green", tier="archival", reason="seen")
    with console.page("/") as page:
        hand = Hand(page)
        hand.click("link", "Tokens")
        page.get_by_role("heading", name="Tokens", level=1).wait_for()
        loaded(page)
        hand.press("n")
        hand.write("Name, as receipts give it", "orion")
        hand.write("Scope: what it may see", "/agents/orion")
        page.get_by_text("It reads 1 memory at /agents/orion").wait_for()
        hand.press("Enter")
        secret = page.get_by_label("The token", exact=True).inner_text()
        assert hand.acts <= 4
    with Client(console.url, secret) as memory:
        assert [each.text for each in memory.list_memories()] == ["The buoy is green"]
