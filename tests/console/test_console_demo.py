"""The store of the demo in the console: what screens show of it, and one story through several."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from support.browser import NARROW, QUESTION, SHOWN, TABLE, WRONG, faults_of_access, loaded, scrolls_sideways, shown

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def addresses(demo):
    return shown(demo)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_demo_screens_have_no_accessibility_fault(demo, addresses, name, scheme):
    with demo.page(addresses[name], color_scheme=scheme, viewport=NARROW) as page:
        loaded(page)
        assert (faults_of_access(page), scrolls_sideways(page)) == ([], False)


def test_user_explains_corrects_and_undoes_a_wrong_answer(demo):
    bot = demo.agent("support-bot")

    def context_text():
        return bot.context(QUESTION, budget_tokens=700).text

    before = context_text()
    with demo.page() as page:
        page.get_by_role("link", name="Context lab").click()
        page.get_by_role("tab", name="Receipts").click()
        page.get_by_label("Asked by").fill("support-bot")
        page.get_by_role("button", name=f"Open: {QUESTION}").first.click()
        # What the agent was told, memory by memory: one of them is wrong, and from a page of the web.
        page.get_by_role("group", name="The prompt").get_by_role("button").filter(has_text=WRONG).click()
        chosen = page.get_by_role("region", name="Chosen memory")
        chosen.get_by_text("https://nut-trade.example/krume").wait_for()
        chosen.get_by_text("agent:scout").wait_for()
        chosen.get_by_role("button", name="Correct…").click()
        page.get_by_label("What is true").fill("The walnut bread is kneaded with sesame oil: it is not free of sesame.")
        page.get_by_label("Reason (recorded in the journal)").fill("Ana says so")
        page.get_by_role("dialog").get_by_role("button", name="Correct").click()
        page.get_by_role("button", name="Undo").wait_for()
        corrected = context_text()
        page.get_by_role("button", name="Compile it now").click()
        page.get_by_role("group", name="The prompt").get_by_text("kneaded with sesame oil: it").wait_for()
        page.keyboard.press("u")
        page.get_by_text("Undone.").first.wait_for()
    assert (WRONG in before, WRONG in corrected, "kneaded with sesame oil: it" in corrected) == (True, False, True)
    assert WRONG in context_text()


def test_no_two_screens_are_reached_by_one_key():
    keys = re.findall(r'key: "(.)"', TABLE.read_text("utf-8"))
    assert sorted(keys) == sorted(set(keys))
