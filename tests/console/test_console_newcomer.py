"""What somebody who sees the console for the first time reads: unbroken words, plain names, and sentences that are so."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support import tamper
from support.browser import NARROW, loaded, screens

pytestmark = pytest.mark.proof
SCREENS = screens()
#: Words and numbers of at most 16 characters that are broken in two, other than at a hyphen.
BROKEN = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.parentElement.checkVisibility()) continue;
    for (const word of text.data.matchAll(/(?<![^\\s(])[\\p{L}\\p{N},.:]{2,16}(?![^\\s)])/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
#: Tables that are wider than what holds them.
TOO_WIDE = """() => [...document.querySelectorAll('main table')]
  .filter((each) => each.getBoundingClientRect().right > each.parentElement.getBoundingClientRect().right + 1)
  .map((each) => each.getAttribute('aria-label'))"""
#: Upper and lower edge of the first line of a label's words.
FIRST_LINE = """(label) => {
  const range = document.createRange();
  range.selectNodeContents(label.querySelector('input').nextSibling);
  const [line] = range.getClientRects();
  return [line.top, line.bottom];
}"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory, browser):
    """A store with memories of a user, of agents and of many projects, tokens, and a proposal."""
    from support.browser import Console

    console = Console(tmp_path_factory.mktemp("shop"), browser, maintenance=False)
    owner = console.owner
    owner.remember("Greet each guest by name.", tier="core", key="operating_rules", reason="so")
    for n in range(14):
        owner.user(f"guest-{n:02}").remember(f"Likes room {n}", tier="archival", reason="told")
    owner.project("roof").remember("The roof is done in May", tier="archival", reason="told")
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    for name in ("rita", "orion"):
        owner.create_token(name, rights="owner")
    yield console
    console.close()


@pytest.mark.parametrize("width", [NARROW["width"], 800, 1440])
def test_no_short_word_is_broken_and_no_code_is_shown_as_such(shop, width):
    found = {}
    with shop.page("/", viewport={"width": width, "height": 900}) as page:
        for path in SCREENS:
            page.goto(f"{shop.url}/console{path}")
            page.get_by_role("heading", level=1).wait_for()
            loaded(page)
            if faults := page.evaluate(BROKEN) + page.evaluate(TOO_WIDE):
                found[path] = faults
            text = page.get_by_role("main").inner_text()
            if signs := [sign for sign in ("`", "at(scope=") if sign in text]:
                found[f"{path} says"] = signs
    assert found == {}


def test_the_label_of_a_box_stands_beside_it_on_a_phone(shop):
    with shop.page("/erase", viewport=NARROW) as page:
        label = page.locator("label").filter(has_text="Also erase memories")
        box = label.get_by_role("checkbox").bounding_box()
        top, bottom = label.evaluate(FIRST_LINE)
    assert top <= box["y"] + box["height"] / 2 <= bottom


def test_home_names_tiers_and_blocks_as_other_screens_do(shop):
    with shop.page("/") as page:
        expect(page.get_by_role("region", name="Tiers")).to_contain_text("long-term")
        expect(page.get_by_role("region", name="Block budgets")).to_contain_text("Rules")
        expect(page.get_by_role("region", name="Block budgets")).to_contain_text("Where things stand")


def test_a_context_without_a_question_says_that_none_is_asked(console):
    console.owner.remember("The shop opens at nine", tier="archival", reason="told")
    with console.page("/context") as page:
        page.get_by_text("no question is asked").wait_for()
        page.get_by_text("Write a question").wait_for()
        expect(page.get_by_text("Nothing is remembered yet")).to_have_count(0)


def test_a_gain_that_nothing_measured_is_not_shown(console):
    with console.page("/recall") as page:
        learned = page.get_by_role("region", name="Learned ranking")
        expect(learned).to_contain_text("not in use")
        expect(learned).not_to_contain_text("points of pairs")


def test_a_user_among_many_is_found_by_a_part_of_the_name(shop):
    with shop.page("/users", viewport=NARROW) as page:
        page.get_by_label("Find a user").fill("-07")
        page.get_by_role("region", name="About guest-07").get_by_text("Likes room 7").wait_for()
        rows = page.get_by_role("region", name="Users").get_by_role("button")
        expect(rows).to_have_count(1)
        page.get_by_label("Find a user").fill("nobody")
        page.get_by_text("No user has such a name").wait_for()
        page.get_by_label("Find a user").fill("")
        expect(rows).to_have_count(14)


def test_an_erasure_offers_no_rollback_and_is_named_by_what_it_did(console):
    for n in "ab":
        console.owner.remember(f"Ana lives at {n}", subject="ana", tier="archival", reason="told")
    plan = console.owner.plan_erase(subject="ana")
    console.owner.erase(plan.digest, subject="ana")
    with console.page("/commits") as page:
        expect(page.get_by_role("list", name="Commits, newest first")).to_contain_text("erased 2 memories")
        page.get_by_text("An erasure cannot be rolled back").wait_for()
        page.keyboard.press("z")
        expect(page.get_by_role("button", name="Roll back…")).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_fault_has_a_time_to_the_minute(console):
    record = console.owner.remember("The pier is long.", tier="archival", reason="told").record
    tamper.run(console.owner.path, tamper.BENT_BODY.format(record.id))
    console.owner.verify()
    with console.page("/", expected=["500"]) as page:
        fault = page.get_by_role("region", name="To look at")
        fault.get_by_text("UTC").first.wait_for()
        expect(fault).not_to_contain_text("+00:00")
        word = fault.get_by_text("wrong", exact=True).first
        assert word.evaluate("(tag) => tag.scrollWidth <= tag.clientWidth")
