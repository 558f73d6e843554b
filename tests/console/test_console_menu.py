"""The command menu: everything of the console is found and done with the keyboard alone."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access, scrolls_sideways
from support.bulk_data import many_waiting

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


def held_back(page, asked):
    """Hold back what the server answers where the address matches; return the function that lets it go."""
    held, free = [], []

    def hold(route):
        if free:
            route.continue_()
        else:
            held.append(route)

    def let_go():
        free.append(True)
        for route in held:
            route.continue_()

    page.route(re.compile(asked), hold)
    return let_go


def test_enter_waits_until_the_names_have_arrived(console):
    console.owner.user("lena").remember("The pier is long", tier="archival", reason="told")
    with console.page("/") as page:
        let_go = held_back(page, r"/memory/.*[?&]name=lena")
        opened(page)
        page.keyboard.type("lena")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").get_by_text("Looking for names")).to_be_visible()
        let_go()
        page.get_by_role("heading", name="lena", level=1).wait_for()


def test_what_arrows_chose_stays_chosen_when_names_arrive(console):
    console.owner.user("lena").remember("Lena walks on the pier", tier="archival", reason="told")
    with console.page("/") as page:
        let_go = held_back(page, r"/memory/.*[?&]name=lena")
        opened(page)
        page.keyboard.type("lena")
        option(page, "Lena walks on the pier").wait_for()
        page.keyboard.press("ArrowUp")
        expect(option(page, "Search memories for")).to_have_attribute("aria-selected", "true")
        let_go()
        option(page, "lena user").wait_for()
        expect(option(page, "Search memories for")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(
    ("path", "asked", "key"), [("/review", r"/memory/quarantine\?", "a"), ("/memories", r"/memory/items\?", "d")]
)
def test_a_key_waits_until_all_are_selected(console, path, asked, key):
    many_waiting(console.owner, 30)
    for number in range(30):
        console.owner.remember(f"Pier {number} is long", tier="archival", reason="told")
    with console.page(path) as page:
        if path == "/review":
            page.get_by_role("listbox").get_by_role("option").first.wait_for()
            page.keyboard.press("x")
        else:
            page.get_by_role("checkbox", name="Select").first.check()
        let_go = held_back(page, asked)
        page.get_by_role("button", name="Select all 30").click()
        page.get_by_text("Selecting…").wait_for()
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_have_count(0)
        let_go()
        page.get_by_text(re.compile(r"^30( memories)? selected")).wait_for()
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_contain_text("30")
