"""The page about one name: what is believed of it, what it said, where it is named, and what can be done from there."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from keepward.core.json_form import to_json
from keepward.core.memory import Status
from support.browser import NARROW, faults_of_access, loaded, scrolls_sideways

pytestmark = pytest.mark.proof


@pytest.fixture
def lena(console):
    """Somebody whom memories are about, who wrote some, whom others quote and name."""
    owner = console.owner
    believed = owner.user("lena").remember("Lena takes ten units of insulin", tier="archival", reason="told").record
    owner.user("lena").remember("Lena takes twelve units of insulin", tier="archival", reason="told")
    console.agent("orion").remember("Ask Lena for the spare key", tier="archival", reason="seen")
    owner.add([{"role": "user", "name": "Lena", "content": "The buoy is painted green since Monday."}], session="talk")
    owner.context("How much insulin does Lena take?")
    return believed.id


def part(page, name):
    return page.get_by_role("list", name=name)


def test_a_name_gathers_what_is_believed_said_and_named(console, lena):
    with console.page("/about?name=lena") as page:
        part(page, "What is believed").get_by_text("Lena takes ten units").wait_for()
        part(page, "What others wrote down as said").get_by_text("The buoy is painted").wait_for()
        part(page, "Where the name is mentioned").get_by_text("Ask Lena for the spare key").wait_for()
        page.get_by_role("button", name="In which prompts").click()
        part(page, "Prompts that held it").get_by_role("link").first.wait_for()
        loaded(page)
        assert faults_of_access(page) == []


def test_names_in_a_list_lead_to_the_page_about_them(console, lena):
    with console.page("/memories?q=spare+key") as page:
        page.get_by_role("region", name="Found").get_by_role("link", name="agent:orion").first.click()
        page.get_by_role("heading", name="agent:orion", level=1).wait_for()
        page.get_by_role("region", name="Impact").get_by_role("link", name="Ask Lena").wait_for()
        page.goto(f"{console.url}/console/memories/{lena}")
        page.get_by_role("region", name="Fields, and who made each").get_by_role(
            "link", name="lena", exact=True
        ).click()
        part(page, "What is believed").get_by_text("Lena takes ten units").wait_for()


def test_a_belief_is_revised_and_forgotten_on_the_page(console, lena):
    with console.page("/about?name=lena") as page:
        row = part(page, "What is believed").get_by_role("listitem").filter(has_text="ten units")
        row.get_by_role("button", name="Revise").click()
        page.get_by_label("Text").fill("Lena takes eleven units of insulin")
        page.get_by_label("Reason (recorded").fill("measured")
        page.keyboard.press("Enter")
        part(page, "What is believed").get_by_role("link", name="Lena takes eleven units").wait_for()
        row = part(page, "What is believed").get_by_role("listitem").filter(has_text="eleven units")
        row.get_by_role("button", name="Forget").click()
        page.get_by_label("Reason (recorded").fill("she stopped")
        page.keyboard.press("Enter")
        page.get_by_text("Forgotten.").last.wait_for()
        expect(part(page, "What is believed")).not_to_contain_text("eleven units")
    assert console.owner.get(lena).status is Status.RETIRED


def test_of_two_statements_that_disagree_one_is_kept(stage):
    console = stage(embedder="hashed")
    user = console.owner.user("lena")
    older = user.remember("The locker of Lena on the second floor is number 14", tier="archival", reason="told").record
    newer = user.remember("The locker of Lena on the second floor is number 41", tier="archival", reason="told").record
    with console.page("/users") as page:
        pair = part(page, "Statements that disagree").get_by_role("listitem")
        expect(pair).to_contain_text(["number 14"])
        pair.locator(".stack", has_text="number 41").get_by_role("button", name="Keep this one").click()
        page.get_by_text("Kept.").last.wait_for()
        expect(part(page, "Statements that disagree")).to_have_count(0)
    assert console.owner.get(older.id).superseded_by == newer.id


def test_a_source_has_a_page_with_its_impact(console):
    page_of_web = "https://refunds.example/policy?a=b%20c"
    wrong = console.agent().remember(
        "Refunds go out by wire", tier="archival", source="web", evidence=[page_of_web], reason="seen"
    )
    with console.page(f"/memories/{wrong.record.id}") as page:
        page.get_by_role("link", name="https://refunds.example").click()
        page.get_by_role("heading", name="https://refunds.example", level=1).wait_for()
        impact = page.get_by_role("region", name="Impact")
        impact.get_by_role("button", name="Take out of use…").click()
        page.get_by_label("Reason (recorded").fill("the page was poisoned")
        page.keyboard.press("Enter")
        page.get_by_text("Took 1 memory out of use.").last.wait_for()
    assert console.owner.list_memories(limit=None) == []


def test_a_name_that_nothing_has_leads_to_a_search(console, lena):
    with console.page("/about?name=nobody") as page:
        page.get_by_text("Nothing is known under this name").wait_for()
        page.get_by_role("link", name="Search for it").click()
        page.wait_for_url("**/memories?q=nobody")


@pytest.mark.parametrize("width", [NARROW["width"], 2560])
def test_the_page_about_a_name_fits_every_width(console, lena, width):
    with console.page("/about?name=lena", viewport={"width": width, "height": 900}, color_scheme="dark") as page:
        part(page, "What is believed").get_by_text("Lena takes ten units").wait_for()
        loaded(page)
        assert (faults_of_access(page), scrolls_sideways(page)) == ([], False)


def test_everything_about_a_person_is_exported_in_one_act(console):
    agent = console.agent()
    held = agent.remember("Takes 8 mg", subject="olga brandt", tier="archival", reason="told").records[0]
    console.owner.revise(held.id, text="Takes 80 mg", reason="corrected")
    agent.remember("A letter for Olga Brandt", tier="archival", reason="seen")
    agent.remember("Olga Brandt owns the shop", key="mission", kind="state", tier="core", reason="so")
    agent.context("What does Olga Brandt take?")
    with console.page("/about?name=olga brandt") as page:
        page.get_by_role("button", name="Export…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("2 memories with 3 versions, 1 proposal, and 1 context")
        expect(dialog.get_by_role("list", name="What is left out")).to_contain_text("by another name")
        assert faults_of_access(page) == []
        with page.expect_download() as saved:
            dialog.get_by_role("link", name="Download").click()
        written = json.loads(saved.value.path().read_text())
    assert saved.value.suggested_filename == "olga-brandt.json"
    assert written["memories"] == to_json(console.owner.export_subject("olga brandt"))["memories"]


def test_page_of_an_agent_shows_its_rights_proposals_and_contexts(console):
    owner = console.owner
    owner.create_token("orion", rights="agent", scope="/agents/orion")
    orion = console.agent("orion")
    orion.remember("The buoy is green", tier="archival", reason="seen")
    orion.remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    owner.reject(orion.remember("Ship before May.", tier="core", key="mission", reason="so").item.id, reason="no")
    orion.context("Which colour has the buoy?")
    with console.page("/about?name=agent:orion") as page:
        head = page.get_by_role("region", name="Who it is")
        expect(head).to_contain_text("agent")
        expect(head.get_by_role("list", name="Tokens")).to_contain_text("at /agents/orion, may propose, read")
        expect(head).to_contain_text("first seen")
        proposed = page.get_by_role("region", name="What it proposed")
        expect(proposed).to_contain_text("1 waiting")
        expect(proposed).to_contain_text("1 rejected")
        page.get_by_role("region", name="What it was given").get_by_role("link", name="Which colour").wait_for()
        loaded(page)
        assert faults_of_access(page) == []
        proposed.get_by_role("link", name="Ship before Whitsun.").click()
        page.locator("article").get_by_text("Ship before Whitsun.").first.wait_for()


def test_a_reviewer_is_told_from_the_owner(console):
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    rita = console.owner.create_token("rita", rights="reviewer").token
    with console.page("/review", credential=rita.id) as page:
        page.locator("article button[aria-disabled=false]", has_text="Approve").first.click()
        page.get_by_text("Nothing waits for you").wait_for()
    console.owner.revoke_token(rita.id)
    with console.page("/about?name=rita") as page:
        head = page.get_by_role("region", name="Who it is")
        expect(head.get_by_role("list", name="Tokens")).to_contain_text("revoked")
        expect(head.get_by_role("definition").first).to_have_text("reviewer")


def test_the_page_of_a_person_says_since_when_it_is_known(console, lena):
    with console.page("/about?name=lena") as page:
        head = page.get_by_role("region", name="Who it is")
        expect(head).to_contain_text("whom memories are about")
        expect(head).to_contain_text("user")
        expect(head).to_contain_text("first seen")
