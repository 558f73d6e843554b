"""Several tabs: they share one stream of events, and every tab goes on working."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

pytestmark = pytest.mark.proof
TABS = 8


@pytest.fixture
def tabs(console):
    """Eight tabs of one browser that show the memories."""
    console.owner.remember("The ovens come in May.", tier="archival")
    context = console.browser.new_context(reduced_motion="reduce")
    streams = []
    context.on("request", lambda sent: streams.append(sent) if "/memory/events" in sent.url else None)
    with console.page("/memories", context=context) as first:
        opened = [first]
        for _ in range(TABS - 1):
            tab = context.new_page()
            tab.set_default_timeout(10_000)
            tab.goto(f"{console.url}/console/memories")
            opened.append(tab)
        yield opened
    assert len(streams) < TABS // 2
    context.close()


def shows(tab, text):
    expect(tab.get_by_role("link", name=text)).to_be_visible(timeout=10_000)


def test_eight_tabs_load_and_share_one_stream(console, tabs):
    for tab in tabs:
        shows(tab, "The ovens come in May.")
    tabs[0].get_by_role("link", name="Review").first.click()
    tabs[0].get_by_role("heading", name="Review", level=1).wait_for()


def test_every_tab_hears_of_a_commit(console, tabs):
    for tab in tabs:
        shows(tab, "The ovens come in May.")
    console.agent().remember("The till is red.", tier="archival")
    for tab in tabs:
        shows(tab, "The till is red.")


def test_another_tab_takes_the_stream_over(console, tabs):
    for tab in tabs:
        shows(tab, "The ovens come in May.")
    # The first tab opened the stream.
    tabs[0].goto("about:blank")
    console.agent().remember("The till is red.", tier="archival")
    for tab in tabs[1:]:
        shows(tab, "The till is red.")
    tabs[0].goto(f"{console.url}/console/memories")
