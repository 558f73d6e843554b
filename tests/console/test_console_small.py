"""What a new operator ran into: small windows, early keys, and answers that come in another order."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, loaded
from support.bulk_data import put_records

pytestmark = pytest.mark.proof


def test_a_proposal_is_opened_and_approved_by_keys_on_a_phone(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission")
    with console.page("/review", viewport=NARROW) as page:
        page.get_by_role("listbox").get_by_role("option").first.wait_for()
        page.keyboard.press("Enter")
        page.locator("article button[aria-disabled=false]", has_text="Approve").first.wait_for()
        page.keyboard.press("a")
        page.get_by_text("Nothing waits for you").wait_for()
    assert [each.text for each in console.owner.list_memories()] == ["Ship before Whitsun."]


def test_what_was_not_looked_at_is_opened_before_it_is_approved(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission")
    with console.page("/review", viewport=NARROW) as page:
        page.get_by_role("listbox").get_by_role("option").first.wait_for()
        page.keyboard.press("a")
        page.get_by_text("look at it for a moment first").first.wait_for()
        page.locator("article").get_by_text("Ship before Whitsun.").first.wait_for()


def test_a_search_of_many_says_that_there_are_more(console):
    put_records(console.owner, [f"Note {n} is about the boiler." for n in range(130)])
    with console.page("/memories?q=boiler") as page:
        page.get_by_text("100+ memories found; 130 say “boiler”").wait_for()
        page.get_by_text("Counts are of the 100 memories that are shown.").wait_for()


def test_a_search_shows_what_it_found_while_texts_are_looked_through(console):
    console.owner.remember("The boiler is in the cellar.", tier="archival", reason="seen")
    with console.page("/memories") as page:
        held = []
        page.route("**/memory/items?*text=boiler*", lambda route: held.append(route))
        page.get_by_role("combobox", name="Search by words and meaning").fill("boiler")
        found = page.get_by_role("region", name="Found")
        found.get_by_role("link", name="The boiler is in the cellar.").wait_for()
        expect(found).to_contain_text("1+ memories found")
        for each in held:
            each.continue_()
        expect(found).to_contain_text("1 memory found")


def test_an_erasure_says_that_texts_are_still_looked_through(console):
    console.owner.remember("Pays in rates.", tier="archival", subject="Lena", reason="told")
    console.owner.remember("Ask Lena for the spare key.", tier="archival", reason="told")
    with console.page("/erase") as page:
        held = []
        page.route("**/memory/items?*text=Lena*", lambda route: held.append(route))
        page.get_by_label("Who or what is to go").fill("Lena")
        expect(page.get_by_label("All about Lena")).to_be_checked()
        waiting = page.get_by_text("Still looking for memories that say it")
        waiting.wait_for()
        for each in held:
            each.continue_()
        page.get_by_label("Ask Lena for the spare key").wait_for()
        expect(waiting).to_have_count(0)


def test_a_running_erasure_asks_for_no_second_plan(console):
    kept = console.owner.remember("The boiler is in the cellar.", tier="archival", reason="seen").record
    with console.page(f"/erase?ids={kept.id}") as page:
        page.get_by_label("to confirm").wait_for()
        asked = []
        page.on("request", lambda sent: asked.append(sent.url) if sent.url.endswith("/erase/plan") else None)
        # The news of the erasure comes, and its answer does not yet.
        page.route("**/memory/erase", lambda route: _answered_late(console, page, route))
        page.get_by_label("to confirm").fill("erase 1")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Erased", exact=True).wait_for()
        loaded(page)
        assert asked == []


def _answered_late(console, page, route):
    with page.expect_response(lambda got: "/memory/commits" in got.url):
        answer = route.fetch()
    route.fulfill(response=answer)


def test_taking_a_host_out_of_use_says_in_how_many_commits(console):
    for n in range(2):
        console.agent().remember(
            f"Walnut bread {n} is free of sesame.", tier="archival", source="web", evidence=[f"https://nut.example/{n}"]
        )
    with console.page("/sources?list=references") as page:
        page.get_by_role("button", name="Take all of it out of use…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("It takes 2 commits at most")
        dialog.get_by_label("Reason").fill("wrong")
        dialog.get_by_role("button", name="Take 2 memories out of use").click()
        page.get_by_text("Took 2 memories out of use.").last.wait_for()
    assert (
        console.owner.log(limit=2).items[0].commit.kind == console.owner.log(limit=2).items[1].commit.kind == "contain"
    )


def test_a_key_that_comes_before_the_commit_is_read_opens_its_rollback(console):
    console.owner.remember("The pier is long.", tier="archival", reason="seen")
    with console.page("/commits") as page:
        loaded(page)
        held = []
        page.route("**/memory/commits/1", lambda route: held.append(route))
        page.reload()
        page.get_by_role("article", name="Commit 1").wait_for()
        page.keyboard.press("z")
        for each in held:
            each.continue_()
        page.get_by_role("dialog", name="Roll back commit 1").wait_for()


#: Says once that more of an element came on screen, as a browser does that is busy.
MORE_OF_IT = """(() => {
  let said = false;
  IntersectionObserver.prototype.takeRecords = function () {
    if (said) return [];
    said = true;
    return [{intersectionRatio: 1, intersectionRect: {height: innerHeight}}];
  };
})()"""


def test_what_comes_on_screen_by_and_by_counts_as_read(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission")
    with console.page("/") as page:
        page.add_init_script(MORE_OF_IT)
        page.goto(f"{console.url}/console/review")
        page.locator("article button[aria-disabled=false]", has_text="Approve").first.wait_for()


def test_a_token_says_what_it_sees_in_a_store_of_many_scopes(console):
    for n in range(210):
        console.owner.at(scope=f"/users/u{n}").remember(f"Rows boat {n}.", tier="archival", reason="seen")
    console.owner.remember("The ovens come in May.", tier="archival", reason="seen")
    with console.page("/tokens?new=1") as page:
        page.get_by_label("Scope: what it may see").fill("/users/u7")
        page.get_by_text("It reads 1 memory at /users/u7 and 1 memory shared above it.").wait_for()


def test_a_long_comparison_is_read_page_by_page(console):
    put_records(console.owner, [f"Boat {n} is red." for n in range(130)])
    with console.page("/commits?compare=yes&from=0") as page:
        page.get_by_text("130 memories differ").wait_for()
        page.get_by_text("130 added").wait_for()
        expect(page.get_by_role("list", name="What differs").locator("> li")).to_have_count(100)
        page.get_by_role("button", name="Show 30 of 30 more").click()
        expect(page.get_by_role("list", name="What differs, from 101").locator("> li")).to_have_count(30)
