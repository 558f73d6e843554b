"""Tasks of an operator on a store of 20,000 memories about 1,300 people, on a phone, a tablet and a desk."""

from __future__ import annotations

import json

import httpx2
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from keepward.core.json_form import to_json
from support.browser import Console, scrolls_sideways
from support.bulk_data import put_records

pytestmark = [pytest.mark.proof, pytest.mark.nightly]
MEMORIES, PEOPLE = 20_000, 1_300
WIDTHS = [390, 800, 1440]
#: One person for each width: what a task does to her, no other task meets.
PERSONS = {390: "Olga Brandt", 800: "Inga Brandt", 1440: "Vera Brandt"}


@pytest.fixture(scope="module")
def large(tmp_path_factory, browser):
    console = Console(tmp_path_factory.mktemp("large"), browser)
    console.patience = 40_000
    names = [f"person {n:04}" for n in range(PEOPLE)]
    owner = console.owner
    texts = [f"Entry {n} of {names[n % PEOPLE]}: shelf {n * 7} at house {n % 97}." for n in range(MEMORIES)]
    put_records(owner, texts, subjects=[names[n % PEOPLE] for n in range(MEMORIES)])
    for width, name in PERSONS.items():
        agent = console.agent()
        kept = agent.remember(f"{name} takes 8 mg", subject=name, tier="archival", reason="told").records[0]
        owner.revise(kept.id, text=f"{name} takes 80 mg", reason="corrected")
        agent.remember(f"A letter for {name}", tier="archival", reason="seen")
        agent.context(f"What does {name} take?")
        importer = console.agent(f"importer-{width}")
        for n in range(25):
            importer.remember(f"Crate {width} {n} holds {n * 7} lamps", tier="archival", reason="import")
        owner.remember(f"The captain of ferry {width} is Kim", sensitivity="sensitive", tier="archival", reason="told")
    yield console
    console.close()


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.fixture
def page(large, width):
    """A page of that width; no screen of a task is wider than it."""
    with large.page("/", viewport={"width": width, "height": 844}) as page:
        yield page
        assert not scrolls_sideways(page)


def find(page, text):
    """Open what the menu has first for a text, as a hurried person does: no waiting for what it offers."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find a screen")).to_be_focused()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_a_belief_about_a_person_is_found_by_keyboard_and_corrected(large, page, width):
    name = f"person {width % PEOPLE:04}"
    find(page, name)
    page.get_by_role("heading", name=name, level=1).wait_for()
    page.get_by_role("list", name="What is believed").get_by_role("button", name="Revise").first.click()
    page.get_by_label("Text").fill(f"{name} moved to Riga")
    page.get_by_label("Reason (recorded").fill("told")
    page.keyboard.press("Enter")
    page.get_by_text("Revised.").last.wait_for()
    assert f"{name} moved to Riga" in [each.text for each in large.owner.list_memories(subject=name, limit=None)]


def test_everything_about_a_person_is_exported(large, page, width):
    name = PERSONS[width]
    find(page, name)
    page.get_by_role("button", name="Export…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 memories with 3 versions")
    with page.expect_download() as saved:
        dialog.get_by_role("link", name="Download").click()
    written = json.loads(saved.value.path().read_text())
    assert written["memories"] == to_json(large.owner.export_subject(name))["memories"]


def test_a_person_is_erased_with_a_certificate(large, page, width):
    name = PERSONS[width]
    find(page, "erase somebody")
    page.get_by_label("Who or what is to go").fill(name)
    expect(page.get_by_label(f"All about {name}")).to_be_checked()
    page.get_by_label(f"A letter for {name}").check()
    page.get_by_role("button", name="Plan for what is ticked").click()
    expect(page.get_by_role("list", name="What goes").get_by_role("listitem")).to_have_count(2)
    page.get_by_label("to confirm").fill("erase 2")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Erased", exact=True).wait_for()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Certificate to read and print").first.click()
    assert "Certificate of erasure" in saved.value.path().read_text()
    assert [each.text for each in large.owner.list_memories(limit=None) if name in each.text] == []


def test_a_bad_import_is_taken_out_of_use(large, page, width):
    find(page, f"importer-{width}")
    page.get_by_role("link", name="See its impact").or_(
        page.get_by_role("button", name="Take out of use")
    ).first.wait_for()
    page.get_by_role("button", name="Take out of use…").first.click()
    plan = page.get_by_role("dialog")
    plan.get_by_label("Reason (recorded").fill("a bad import")
    plan.get_by_role("button", name="Take 25 memories out of use").click()
    page.get_by_text("Took 25 memories out of use.").last.wait_for()
    assert f"Crate {width}" not in large.owner.context(f"What does crate {width} 3 hold?").text


def test_a_token_of_a_colleague_is_made_and_revoked(large, page, width):
    find(page, "make a token")
    page.get_by_label("Name, as receipts").fill(f"luc-{width}")
    page.get_by_label("propose").uncheck()
    page.get_by_role("button", name="Make it").click()
    secret = page.get_by_label("The token", exact=True).inner_text()
    page.get_by_role("button", name="I have it").click()
    with httpx2.Client(base_url=large.url, headers={"Authorization": f"Bearer {secret}"}) as bearer:
        seen = bearer.get("/memory/status").status_code
        row = page.get_by_role("row", name=f"luc-{width}")
        row.get_by_role("button", name="Revoke…").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
        page.get_by_text(f"The token of luc-{width} has ended.").first.wait_for()
        assert (seen, bearer.get("/memory/status").status_code) == (200, 401)


def test_retention_is_found_and_its_line_is_given(page):
    find(page, "retention")
    working = page.get_by_role("region", name="Retention").get_by_role("listitem", name="Working memory")
    expect(working).to_contain_text("1 day")
    working.get_by_text("Change").click()
    working.get_by_label("Keep for").fill("12h")
    expect(working.locator("code.lines")).to_contain_text('ttl_working = "12h"')


def test_a_sensitive_memory_says_why_it_was_not_recalled(page, width):
    find(page, "recall lab")
    question = f"Who is the captain of ferry {width}?"
    page.get_by_label("Question").fill(question)
    page.keyboard.press("Enter")
    page.get_by_label("Why not another memory?").fill(f"captain of ferry {width}")
    row = page.get_by_role("list", name="Not considered").get_by_role("listitem").filter(has_text=f"ferry {width}")
    expect(row).to_contain_text("sensitive")


def test_the_newest_backup_is_shown_with_its_place(large, page, width):
    copy = large.folder / f"copy-{width}.db"
    large.owner.backup(copy)
    find(page, "integrity")
    backups = page.get_by_role("region", name="Backups")
    expect(backups).to_contain_text(str(copy))
    expect(backups).to_contain_text("verified when it was made")
