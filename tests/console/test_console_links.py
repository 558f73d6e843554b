"""What leads where in the console: names, memories and commits are links, and everything is found by what it is called."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access, loaded, scrolls_sideways

pytestmark = pytest.mark.proof


def remember(console, text, **fields):
    return console.owner.remember(text, **{"tier": "archival", "reason": "told", **fields})


def test_a_proposal_leads_to_its_memory_and_to_its_proposer(console):
    held = remember(console, "Ship before Easter.", tier="core", key="mission").record
    console.agent("orion").remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/review") as page:
        page.locator("article").get_by_role("link", name="Ship before Easter.").click()
        page.get_by_role("heading", name="Ship before Easter.", level=1).wait_for()
        assert page.url.endswith(f"/memories/{held.id}")
        page.go_back()
        page.locator("article").get_by_role("link", name="agent:orion").click()
        page.get_by_role("link", name="Its proposals").click()
        page.locator("article").get_by_text("Ship before Whitsun.").first.wait_for()


def test_a_memory_links_to_its_commit_and_author(console):
    done = remember(console, "The pier is long")
    with console.page(f"/memories/{done.record.id}") as page:
        page.get_by_role("region", name="Fields, and who made each").get_by_role(
            "link", name=f"commit {done.commit.seq}"
        ).click()
        page.get_by_role("article").get_by_role("link", name="operator:ana").click()
        page.get_by_role("region", name="Impact").get_by_text("The pier is long").wait_for()


def test_a_rollback_says_what_goes_and_preserves_its_reason(console):
    done = remember(console, "The pier is long")
    with console.page(f"/commits?at={done.commit.seq}") as page:
        page.get_by_role("button", name="Roll back…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("1 memory goes out of use").wait_for()
        dialog.get_by_label("Reason (recorded in the journal)").fill("it is short")
        dialog.get_by_role("button", name="Roll back", exact=True).click()
        page.get_by_role("list", name="Commits, newest first").get_by_text("it is short").wait_for()
    assert console.owner.list_memories(limit=None) == []


def test_what_changed_this_week_takes_one_click_from_home(console):
    remember(console, "The pier is long")
    with console.page("/") as page:
        page.get_by_role("link", name="What changed this week").click()
        page.get_by_role("list", name="What differs").get_by_text("The pier is long").first.wait_for()
        page.get_by_role("button", name="From the beginning").click()
        page.get_by_text("1 memory differs").wait_for()


def test_memories_that_name_a_person_are_selected_and_erased(console):
    named = remember(console, "Lena keeps the spare key", source="user_message").record
    kept = remember(console, "Lena is a common name").record
    with console.page("/erase") as page:
        page.get_by_label("Who or what is to go").fill("lena")
        said = page.get_by_role("list", name="Memories that say it")
        said.get_by_label("Lena keeps the spare key").check()
        page.get_by_role("button", name="Plan for what is ticked").click()
        page.get_by_label("to confirm").fill("erase 1")
        page.get_by_role("button", name="Erase for good").click()
        page.get_by_role("heading", name="Erased", exact=True).wait_for()
    assert [each.id for each in console.owner.list_memories(limit=None)] == [kept.id]
    assert "spare key" not in str(console.owner.history(named.id))


def test_going_back_to_a_long_list_shows_the_same_rows(console):
    console.owner.remember_many(
        [{"text": f"Shelf {n} holds flour", "tier": "archival"} for n in range(120)], reason="counted"
    )
    with console.page("/memories") as page:
        rows = page.get_by_role("list", name="Memories")
        first = rows.get_by_role("link", name="Shelf").first.inner_text()
        rows.hover()
        page.mouse.wheel(0, 4000)
        expect(rows.get_by_role("link", name=first, exact=True)).to_have_count(0)
        middle = page.evaluate(
            "document.elementFromPoint(700, 420).closest('.memory-row').querySelector('a').innerText"
        )
        rows.get_by_role("link", name=middle, exact=True).click()
        page.get_by_role("region", name="What it says").wait_for()
        page.go_back()
        expect(rows.get_by_role("link", name=middle, exact=True)).to_be_in_viewport()


def test_the_user_page_shows_counts_and_beliefs(console):
    console.owner.user("lena").remember("I take insulin", tier="archival", reason="told")
    console.owner.project("shop").remember("Staging runs on port 9090", tier="archival", reason="told")
    with console.page("/users") as page:
        navigation = page.get_by_role("navigation", name="Console")
        expect(navigation.get_by_role("link", name="Users")).to_have_text("Users1")
        about = page.get_by_role("region", name="About lena")
        about.get_by_role("list", name="What is believed").get_by_role("link", name="I take insulin").wait_for()
        loaded(page)
        assert faults_of_access(page) == []
        about.get_by_role("link", name="Erase for good…").click()
        page.get_by_role("button", name="Plan for what is ticked").click()
        page.get_by_role("list", name="What goes").get_by_text("I take insulin").wait_for()
        navigation.get_by_role("link", name="Projects").click()
        page.get_by_role("region", name="About shop").get_by_role("link", name="Staging runs").wait_for()


def test_an_empty_store_takes_its_first_memory_and_a_file(console):
    with console.page("/") as page:
        expect(page.get_by_role("region", name="Connect an agent")).to_contain_text(
            f"keepward connect claude --db {console.folder / 'm.db'}"
        )
        page.get_by_label("File", exact=True).set_input_files(
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"The pier is long\n\nThe buoy is green\n"}
        )
        page.get_by_role("button", name="Import it").click()
        page.get_by_role("region", name="Import a file").wait_for(state="detached")
    assert "The buoy is green" in " ".join(each.text for each in console.owner.list_memories(limit=None))


def test_a_token_opens_the_console_again(console):
    token = console.owner.create_token("rita", rights="reviewer").secret
    context = console.browser.new_context()
    page = context.new_page()
    page.goto(f"{console.url}/console/review")
    page.get_by_label("Or enter with").fill("kw_wrong")
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Or enter with").fill(token)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Review", level=1).wait_for()
    assert token not in page.url
    context.close()


def test_the_token_form_warns_of_a_scope_without_memories(console):
    console.agent("orion").remember("The buoy is green", tier="archival", scope="/agents/orion", reason="seen")
    with console.page("/tokens") as page:
        page.get_by_role("button", name="Make a token").first.click()
        page.get_by_label("Scope: what").fill("/agent/orion")
        page.get_by_text("Nothing is stored at /agent/orion").wait_for()
        page.get_by_label("Scope: what").fill("/agents/orion")
        page.get_by_text("It reads 1 memory at /agents/orion").wait_for()
        page.get_by_label("Name, as receipts").fill("orion")
        page.get_by_role("button", name="Make it").click()
        page.get_by_text("The lines to paste for orion").click()
        expect(page.get_by_role("dialog")).to_contain_text(
            f"claude mcp add --transport http keepward {console.url}/mcp"
        )


@pytest.mark.parametrize("width", [NARROW["width"], 1024, 2560])
def test_screens_of_lists_fit_every_width(console, width):
    console.owner.user("lena").remember("I take insulin " * 40, tier="archival", reason="told")
    with console.page("/users", viewport={"width": width, "height": 900}) as page:
        for path in ("/users", "/memories", "/memories?view=table", "/commits", "/erase?who=lena", "/tokens"):
            page.goto(f"{console.url}/console{path}")
            loaded(page)
            assert not scrolls_sideways(page), path


def test_a_long_difference_is_reached_by_keys(console):
    long = "\n".join(f"Line {n} of the rules." for n in range(45))
    first = remember(console, long).record
    console.owner.revise(first.id, text=long.replace("Line 7 ", "Line seven "), reason="spelt")
    with console.page(f"/memories/{first.id}") as page:
        page.get_by_role("region", name="Versions").get_by_text("Line seven").first.wait_for()
        loaded(page)
        assert faults_of_access(page) == []
