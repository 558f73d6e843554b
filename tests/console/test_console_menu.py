"""The command menu: everything of the console is found and done with the keyboard alone."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access, scrolls_sideways

pytestmark = pytest.mark.proof


def option(page, name):
    return page.get_by_role("option", name=name)


def opened(page):
    """Open the menu by its keys and wait for it; return its field."""
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find a screen")
    expect(field).to_be_focused()
    return field


def test_the_menu_leads_to_screens_people_memories_and_commits(console):
    done = console.owner.user("lena").remember("The pier is long", tier="archival", reason="told")
    with console.page("/memories") as page:
        page.get_by_label("Search by words and meaning").focus()
        opened(page)
        page.keyboard.type("integr")
        expect(option(page, "Integrity")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Integrity", level=1).wait_for()
        opened(page)
        page.keyboard.type("lena")
        option(page, "lena user").wait_for()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="lena", level=1).wait_for()
        opened(page)
        page.keyboard.type("the pier")
        option(page, "The pier is long").wait_for()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="The pier is long", level=1).wait_for()
        opened(page)
        page.keyboard.type(f"commit {done.commit.seq}")
        page.get_by_role("option", name=f"Commit {done.commit.seq}", exact=True).wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/commits?at={done.commit.seq}")


def test_the_menu_runs_a_command_and_the_help_names_its_keys(console):
    console.owner.remember("The pier is long", tier="archival", reason="told")
    with console.page("/") as page:
        opened(page)
        page.keyboard.type("verify")
        page.keyboard.press("Enter")
        page.get_by_text("Intact: nothing was changed").last.wait_for()
        opened(page)
        page.keyboard.type("keys")
        page.keyboard.press("Enter")
        page.get_by_role("dialog", name="Keys").get_by_text("Find or do").wait_for()


def test_arrows_walk_through_the_menu_and_escape_leaves_it(console):
    with console.page("/") as page:
        opened(page)
        expect(option(page, "Home")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowDown")
        expect(option(page, "Review")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        expect(option(page, "End session")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("settings", [{"color_scheme": "dark"}, {"viewport": NARROW}], ids=["dark", "phone"])
def test_the_menu_is_for_everybody(console, settings):
    with console.page("/jobs", **settings) as page:
        opened(page)
        assert (faults_of_access(page), scrolls_sideways(page)) == ([], False)
