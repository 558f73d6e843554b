"""Every screen, whoever looks at it and however: contrast and names, narrow windows, keys alone, less motion."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, WIDE, faults_of_access, loaded, screens, screens_of_one, scrolls_sideways

pytestmark = pytest.mark.proof
SCREENS = screens()
#: Whether the link of the navigation that is current has the title of the screen.
SAYS_SO = """() => {
  const [title, current] = ['h1', 'nav [aria-current=page]'].map((each) => document.querySelector(each)?.textContent);
  return title && current?.includes(title);
}"""


@pytest.mark.parametrize("path", SCREENS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_has_no_fault_of_access(demo, path, scheme):
    with demo.page(path, color_scheme=scheme) as page:
        found = {}
        for width, size in (("wide", WIDE), ("narrow", NARROW)):
            page.set_viewport_size(size)
            loaded(page)
            found[width] = faults_of_access(page)
        assert found == {"wide": [], "narrow": []}
        assert not scrolls_sideways(page)


#: Widths at which the layout changes, in CSS pixels; a screen is the narrowest just above one.
STEPS = (480, 760, 900, 1100)


def test_the_layout_changes_at_four_widths(demo):
    with demo.page("/") as page:
        sheet = page.request.get(demo.url + page.locator("link[rel=stylesheet]").first.get_attribute("href")).text()
    assert sorted({int(width) for width in re.findall(r"@media[^{]*?(?:max-width:|width<=)\s*(\d+)px", sheet)}) == [
        *STEPS
    ]


def test_no_screen_is_wider_than_its_window_beside_a_step(demo):
    wide = []
    with demo.page("/") as page:
        for path in [*SCREENS, "/memories?view=table"]:
            page.goto(f"{demo.url}/console{path}")
            loaded(page)
            for step in STEPS:
                for width in (step, step + 1):
                    page.set_viewport_size({"width": width, "height": 800})
                    if scrolls_sideways(page):
                        wide.append((path, width))
    assert wide == []


def test_the_screen_of_one_memory_has_no_fault_of_access(demo):
    (path, *_) = screens_of_one(demo)
    with demo.page(path) as page:
        found = {}
        for scheme in ("light", "dark"):
            for width, size in (("wide", WIDE), ("narrow", NARROW)):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size(size)
                loaded(page)
                found[scheme, width] = (faults_of_access(page), scrolls_sideways(page))
        assert set(map(str, found.values())) == {"([], False)"}


@pytest.mark.parametrize("path", SCREENS)
def test_a_screen_is_reached_by_its_link_and_says_so(demo, path):
    with demo.page("/") as page:
        page.get_by_role("navigation", name="Console").locator(f'a[href="/console{path}"]').last.click()
        page.wait_for_url(f"**/console{path}*")
        page.wait_for_function(SAYS_SO)


def test_the_console_is_used_without_a_mouse(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/") as page:
        loaded(page)
        page.keyboard.press("Tab")
        page.keyboard.press("g")
        page.keyboard.press("r")
        page.locator("article button[aria-disabled=false]").first.wait_for()
        while page.evaluate("document.activeElement.textContent").startswith("Approve") is False:
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("Nothing waits for you").wait_for()
    assert [each.text for each in console.owner.list_memories(limit=None)] == ["Ship before Whitsun."]


def test_focus_continues_after_its_element_disappears(console):
    console.owner.remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    focus = "() => document.activeElement.closest('section')?.getAttribute('aria-label')"
    with console.page("/core") as page:
        card = page.get_by_role("region", name="mission")
        card.get_by_role("button", name="Edit").focus()
        page.keyboard.press("Enter")
        card.get_by_role("textbox").first.wait_for()
        page.keyboard.press("Escape")
        card.get_by_role("button", name="Edit").wait_for()
        assert page.evaluate(focus) == "mission"


def test_no_letter_of_a_search_is_a_shortcut(console):
    console.owner.remember("flux of the oven", tier="archival", reason="so")
    with console.page("/memories") as page:
        page.get_by_label("Search by words and meaning").focus()
        page.keyboard.type("fl")
        page.wait_for_url("**/memories?q=fl")
        page.keyboard.type("ux")
        page.wait_for_url("**/memories?q=flux")
        page.get_by_text("1 memory found").wait_for()
        expect(page.get_by_role("region", name="Selected memories")).to_have_count(0)


def test_what_was_written_is_not_lost_by_one_slip(console):
    written = console.owner.remember("Ship before Whitsun.", tier="archival", reason="so")
    with console.page(f"/memories/{written.id}") as page:
        page.get_by_role("button", name="Revise").click()
        text = page.get_by_role("dialog").get_by_role("textbox").first
        text.fill("Ship before Easter.")
        box = text.bounding_box()
        page.mouse.move(box["x"] + 40, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(5, 5, steps=3)
        page.mouse.up()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").get_by_role("alert").get_by_text("would be lost").wait_for()
        expect(text).to_have_value("Ship before Easter.")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_half_written_block_waits_while_one_looks_elsewhere(console):
    console.owner.remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/core?block=mission&open=edit") as page:
        page.get_by_label("Text of mission").fill("Ship before Easter.")
        page.get_by_role("link", name="Jobs").click()
        page.get_by_role("heading", name="Jobs", level=1).wait_for()
        page.get_by_role("link", name="Core").click()
        page.get_by_role("region", name="mission").get_by_role("button", name="Edit").click()
        expect(page.get_by_label("Text of mission")).to_have_value("Ship before Easter.")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("region", name="mission").get_by_role("button", name="Edit").click()
        expect(page.get_by_label("Text of mission")).to_have_value("Ship before Whitsun.")


def test_who_asked_for_less_motion_sees_none(console):
    with console.page("/", reduced_motion="reduce") as page:
        loaded(page)
        console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
        page.goto(f"{console.url}/console/review")
        page.locator("article button[aria-disabled=false]").first.wait_for()
        page.keyboard.press("a")
        page.get_by_role("button", name="Undo").wait_for()
        assert page.evaluate("document.getAnimations().length") == 0


def test_times_are_the_readers_with_utc_next_to(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/review", timezone_id="Asia/Tokyo", locale="en-GB") as page:
        made = page.locator("article time").first
        at = made.get_attribute("datetime")
        assert made.get_attribute("title") == f"{at[:19].replace('T', ' ')} UTC"
        shown = page.evaluate(
            "(at) => new Date(at).toLocaleTimeString('en-GB', {timeZone: 'Asia/Tokyo', timeStyle: 'short'})", at
        )
        expect(made).to_contain_text(shown)


def test_the_description_of_the_api_opens_next_to_the_console(console):
    with console.page("/") as page:
        page.goto(f"{console.url}/docs")
        page.get_by_role("heading", name="The HTTP API").wait_for()
        page.locator("summary", has_text="/memory/status").first.wait_for()
        expect(page.get_by_role("link", name="The console")).to_have_attribute("href", "/console/")
