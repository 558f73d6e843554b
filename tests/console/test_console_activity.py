"""Activity: what was written day by day; the list shows what was written on the brushed days."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from support.browser import loaded

pytestmark = pytest.mark.proof
BREAD = [f"Rye bread number {n} rests for a day in the cold" for n in range(4)]
TRAINS = [f"Train number {n} to Leeds leaves from platform two" for n in range(4)]


@pytest.fixture
def console(stage):
    made = stage()
    agent = made.agent()
    for text in (*BREAD, *TRAINS):
        agent.remember(text, tier="archival")
    return made


def brushed(page, count):
    """Return the texts that are listed once so many are."""
    links = page.get_by_role("region", name="Written then").get_by_role("link")
    links.nth(count - 1).wait_for()
    return set(links.all_inner_texts())


def drag(page, over, begin, end):
    """Drag over an element, once nothing on the page moves any more; places are parts of its width and height."""
    loaded(page)
    over.scroll_into_view_if_needed()
    edge = over.bounding_box()

    def place(across, down):
        return {"x": 1 + across * (edge["width"] - 2), "y": 1 + down * (edge["height"] - 2)}

    over.hover(position=place(*begin))
    page.mouse.down()
    over.hover(position=place(*end))
    page.mouse.up()


def test_a_brush_over_days_preserves_what_was_written_then(console):
    with console.page("/activity?days=30") as page:
        # All of it was written today, and today is the last of these days.
        drag(page, page.get_by_role("img", name="Versions written a day"), (0.25, 0.4), (0.5, 0.4))
        page.wait_for_url(re.compile("since=.*until="))
        page.get_by_text("No memory was written then").wait_for()
        page.get_by_role("button", name="all days").click()
        assert brushed(page, 8) == {*BREAD, *TRAINS}
