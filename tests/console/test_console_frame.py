"""The frame of the console: the link, the navigation, the keys, and what happens when the server goes away."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

pytestmark = pytest.mark.proof


def test_link_opens_the_console_and_removes_its_code(console):
    with console.page() as page:
        expect(page).to_have_title("Home · Keepward")
        assert "code" not in page.url


def test_a_link_that_was_used_says_how_to_get_another(console):
    page = console.browser.new_page()
    link = console.serving.console_link()
    console.serving.sessions.redeem(link.partition("#code=")[2])
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("create another link")
    page.close()


def test_question_mark_shows_the_keys_and_escape_hides_them(console):
    with console.page() as page:
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog", name="Keys").wait_for(state="detached")


def test_what_is_committed_elsewhere_appears_by_itself(console):
    with console.page() as page:
        page.get_by_text("live", exact=True).wait_for()
        console.agent().remember("The ovens come in May.", reason="heard")
        page.get_by_role("link", name="Memories 1").or_(page.get_by_text("Memories1")).first.wait_for()


def test_a_store_without_a_memory_says_what_brings_one(console):
    with console.page("/memories") as page:
        expect(page.get_by_text("Nothing is remembered yet")).to_be_visible()


def test_a_session_that_ends_asks_for_another_link(console):
    with console.page(expected=["401"]) as page:
        page.get_by_role("button", name="End session").click()
        page.get_by_role("heading", name="The console needs its link").wait_for()


def test_what_was_written_outlives_a_session_that_ends(console):
    console.agent().remember("Ship the app by June", tier="core", key="mission")
    with console.page("/review", expected=["401"]) as page:
        page.get_by_role("article").get_by_role("button", name="Edit").click()
        page.get_by_role("textbox").last.fill("Ship the app by July")
        names = [each["value"] for each in page.context.cookies() if each["name"] == console.serving.cookie]
        console.serving.sessions.end(names[0])
        console.agent().remember("The ovens come in May.", reason="heard")
        page.get_by_role("heading", name="The console needs its link").wait_for()
        expect(page.locator("textarea")).to_have_count(0)
        assert "Ship the app" not in page.content()
        other = page.context.new_page()
        console.sign_in(other)
        other.close()
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.get_by_role("textbox").last).to_have_value("Ship the app by July")


def test_server_restart_is_reported_and_cleared(console):
    with console.page(expected=["ERR_", "Failed to load"]) as page:
        page.get_by_text("live", exact=True).wait_for()
        console.stop()
        page.get_by_text("The server does not answer.").wait_for()
        console.start()
        page.get_by_text("live", exact=True).wait_for()
        expect(page.get_by_text("The server does not answer.")).to_have_count(0)


def test_an_open_page_whose_token_is_revoked_says_so(console):
    rita = console.owner.create_token("rita", rights="reviewer").token.id
    with console.page("/review", credential=rita, expected=["401"]) as page:
        page.get_by_text("Nothing waits for you").wait_for()
        console.owner.revoke_token(rita)
        page.get_by_role("link", name="Commits").click()
        expect(page.get_by_role("alert")).to_contain_text("was revoked")


def test_a_reviewer_is_told_that_a_screen_is_the_owners(console):
    rita = console.owner.create_token("rita", rights="reviewer").token.id
    with console.page("/tokens", credential=rita) as page:
        page.get_by_text("Only the owner sees this").wait_for()
        page.get_by_role("heading", name="Tokens", level=1).wait_for()
