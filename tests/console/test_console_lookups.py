"""Names in the console are found among all of a store's, and no list of a part passes for the whole."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import Console, loaded
from support.bulk_data import many_subjects, put_records

pytestmark = pytest.mark.proof
#: Subjects with two memories each, beside Olga Brandt.
SIZES = [60, 1_201, pytest.param(20_000, marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=SIZES)
def many(request, tmp_path_factory, browser):
    """A store of many subjects; Olga Brandt has one memory, whose text does not name her."""
    console = Console(tmp_path_factory.mktemp("many"), browser)
    many_subjects(console.owner, request.param)
    yield console
    console.close()


@pytest.fixture(scope="module")
def adlers(tmp_path_factory, browser):
    """A store with fourteen people of one family name, and 260 memories that say it."""
    console = Console(tmp_path_factory.mktemp("adlers"), browser)
    names = [f"finn adler {n:02}" for n in range(14)]
    put_records(console.owner, [f"Room {n} is for {names[n % 14]}." for n in range(260)], subjects=names * 20)
    yield console
    console.close()


def test_erase_finds_a_rare_person_by_a_part_of_the_name(many):
    with many.page("/erase") as page:
        page.get_by_label("Who or what is to go").fill("olga brandt")
        page.get_by_role("checkbox", name="All about Olga Brandt").wait_for()
        expect(page.get_by_role("checkbox", name="All about Olga Brandt")).to_be_checked()
        page.get_by_role("button", name="Plan for what is ticked").click()
        expect(page.get_by_role("list", name="What goes")).to_contain_text("Takes ten units of insulin.")


def test_the_page_about_a_rare_person_leads_to_her_erasure(many):
    with many.page("/about?name=olga+brandt") as page:
        expect(page.get_by_role("list", name="What is believed")).to_contain_text("Takes ten units of insulin.")
        page.get_by_role("link", name="Erase for good…").first.click()
        page.get_by_role("checkbox", name="All about Olga Brandt").wait_for()


def test_the_menu_offers_a_rare_person(many):
    with many.page("/jobs") as page:
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Find a screen").fill("brandt")
        page.get_by_role("option", name="Olga Brandt subject").click()
        page.get_by_role("heading", name="Olga Brandt", level=1).wait_for()


def test_filters_count_all_subjects_and_find_a_rare_one(many):
    subjects = many.owner.facets(of=["subject"], most=1)
    total = len(subjects.facets["subject"]) + subjects.more["subject"]
    with many.page("/memories") as page:
        group = page.get_by_role("group", name="Subject")
        group.get_by_role("button", name=f"{total - 7:,} more").click()
        expect(group).to_contain_text(f"and {total - 50:,} more")
        group.get_by_role("searchbox").fill("OLGA")
        group.get_by_role("checkbox", name="Olga Brandt").check()
        expect(page.get_by_role("list", name="Memories")).to_contain_text("Takes ten units of insulin.")


def test_erase_says_how_many_say_a_word_and_how_many_are_listed(adlers):
    with adlers.page("/erase") as page:
        page.get_by_label("Who or what is to go").fill("adler")
        offers = page.get_by_role("list", name="People and sources")
        expect(offers).to_contain_text("and 2 more: write more of the name")
        page.get_by_text("260 memories say “adler”").wait_for()
        page.get_by_text("200 memories can be ticked here.").wait_for()
        page.get_by_label("Who or what is to go").fill("finn adler 13")
        expect(page.get_by_role("checkbox", name="All about finn adler 13")).to_be_checked()


def test_a_plan_of_more_than_two_hundred_ids_says_how_many_are_left(console):
    user = console.owner.user("lena")
    put_records(user, [f"Note {n} of the tide." for n in range(260)], scope="/users/lena")
    with console.page("/erase") as page:
        page.get_by_label("Who or what is to go").fill("lena")
        page.get_by_role("checkbox", name="The first 200 kept for the user lena").wait_for()
        page.get_by_role("button", name="Plan for what is ticked").click()
        page.get_by_text("Erase these, then choose the other 60.").first.wait_for()


def test_the_page_about_a_name_says_what_it_does_not_list(adlers):
    put_records(adlers.owner, [f"Fact {n}." for n in range(25)], subject="grete")
    with adlers.page("/about?name=grete") as page:
        expect(page.get_by_role("list", name="What is believed")).to_contain_text("and 5 more")
        loaded(page)


def test_filters_beside_a_search_count_what_was_found(console):
    owner = console.owner
    for n in range(3):
        owner.remember(f"The tide of pier {n} is low", tier="archival", subject="pier", reason="seen")
    put_records(owner, [f"Entry {n} of the ledger." for n in range(40)], subject="ledger")
    with console.page("/memories?q=tide+of+pier") as page:
        page.get_by_text("3 memories found").wait_for()
        tier = page.get_by_role("group", name="Tier")
        expect(tier.get_by_role("checkbox", name="archival")).to_have_accessible_name("long-term archival 3")
        expect(page.get_by_role("complementary", name="Filters")).not_to_contain_text("ledger")
