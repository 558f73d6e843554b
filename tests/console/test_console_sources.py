"""Sources: what a poisoned page touched, how it is taken out of use, and that one rollback brings it back."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access, scrolls_sideways

pytestmark = pytest.mark.proof
PAGE = "https://refunds.example/policy"


@pytest.fixture
def poisoned(console):
    """A page, what was made of it, a clean note, and a context that held both."""
    agent = console.agent("claude")
    agent.remember("The shop opens at eight", tier="archival")
    page = agent.remember("Refunds are settled by wire", tier="archival", source="web", evidence=[PAGE]).records[0]
    agent.remember("Wire is how all refunds go", derived_from=[page.id], tier="archival")
    agent.context("refunds by wire")
    return page.id


def test_source_is_inspected_contained_and_restored_by_one_undo(console, poisoned):
    before = console.agent("claude").context("refunds by wire").text
    with console.page("/sources?list=references") as page:
        page.get_by_role("button", name=PAGE).click()
        impact = page.get_by_role("region", name="Impact")
        impact.get_by_text("context held any").or_(impact.get_by_text("contexts held any")).wait_for()
        impact.get_by_role("button", name="Take out of use…").click()
        plan = page.get_by_role("dialog")
        plan.get_by_text("Wire is how all refunds go").first.wait_for()
        assert "The shop opens" not in plan.inner_text()
        plan.get_by_label("Reason (recorded").fill("the page was poisoned")
        plan.get_by_role("button", name="Take 2 memories out of use").click()
        page.get_by_text("Took 2 memories out of use.").last.wait_for()
        assert "wire" not in console.agent("claude").context("refunds by wire").text.lower()
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").last.wait_for()
    assert console.agent("claude").context("refunds by wire").text == before


def test_a_plan_that_has_grown_meanwhile_is_not_applied(console, poisoned):
    with console.page("/sources?list=references") as page:
        page.get_by_role("button", name=PAGE).click()
        page.get_by_role("button", name="Take out of use…").click()
        plan = page.get_by_role("dialog")
        plan.get_by_label("Reason (recorded").fill("the page was poisoned")
        console.agent("claude").remember("Refunds by wire take a day", derived_from=[poisoned], tier="archival")
        plan.get_by_role("button", name="Take 2 memories out of use").click()
        plan.get_by_text("Something was added since").wait_for()
        assert "wire" in console.agent("claude").context("refunds by wire").text.lower()
        plan.get_by_role("button", name="Take 3 memories out of use").click()
        page.get_by_text("Took 3 memories out of use.").last.wait_for()
    assert "wire" not in console.agent("claude").context("refunds by wire").text.lower()


def test_pages_of_a_host_go_out_of_use_together(console, poisoned):
    scout = console.agent("scout")
    for name in ("terms", "faq"):
        scout.remember(
            f"The {name} speak of wire", tier="archival", source="web", evidence=[f"https://refunds.example/{name}"]
        )
    scout.remember("The mill delivers on Monday", tier="archival", source="web", evidence=["https://mill.example/"])
    with console.page("/sources?list=references&find=REFUNDS") as page:
        pages = page.get_by_role("list", name="refunds.example")
        expect(pages.get_by_role("listitem")).to_have_count(3)
        expect(page.get_by_text("https://mill.example/")).to_have_count(0)
        page.get_by_label("Find a source").fill("")
        page.get_by_role("button", name="https://mill.example/").wait_for()
        page.get_by_role("button", name="Take all of it out of use…").click()
        page.get_by_label("Reason (recorded").fill("the host was poisoned")
        page.keyboard.press("Enter")
        page.get_by_text("Took 4 memories out of use.").last.wait_for()
        assert [each.text for each in console.owner.list_memories(sources=["web"])] == ["The mill delivers on Monday"]
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").last.wait_for()
    assert len(console.owner.list_memories(sources=["web"])) == 4


@pytest.mark.parametrize(
    "settings", [{}, {"color_scheme": "dark"}, {"viewport": NARROW}], ids=["light", "dark", "phone"]
)
def test_it_is_for_everybody_and_no_wider_than_its_window(console, poisoned, settings):
    with console.page(f"/sources?list=references&name={PAGE}", **settings) as page:
        page.get_by_text("touched directly").wait_for()
        assert (faults_of_access(page), scrolls_sideways(page)) == ([], False)


def test_containing_a_source_leaves_a_correction_unticked_and_names_its_writer(console):
    agent, page_of = console.agent("scout"), {"source": "web", "evidence": ["https://p.example/a"], "tier": "archival"}
    wrong = agent.remember("The bread contains sesame.", reason="read", **page_of).record
    gone = agent.remember("The buoy is green.", reason="read", **page_of).record
    console.owner.revise(wrong.id, "The bread contains no sesame.", reason="tasted")
    with console.page("/sources?name=agent:scout") as page:
        page.get_by_role("button", name="Take out of use").first.click()
        dialog = page.get_by_role("dialog")
        spared = dialog.get_by_label("The bread contains no sesame.")
        expect(spared).not_to_be_checked()
        expect(dialog.get_by_role("group")).to_contain_text("operator:ana")
        going = dialog.get_by_role("list", name="What would be taken out of use")
        expect(going.get_by_role("listitem")).to_have_count(1)
        expect(going).to_contain_text("agent:scout")
        spared.check()
        expect(going.get_by_role("listitem")).to_have_count(2)
        spared.uncheck()
        expect(going.get_by_role("listitem")).to_have_count(1)
        dialog.get_by_label("Reason").fill("a bad page")
        dialog.get_by_role("button", name="Take 1 memory out of use").click()
        page.get_by_text("Took 1 memory out of use").first.wait_for()
    assert console.owner.get(wrong.id).status == "active"
    assert console.owner.get(gone.id).status != "active"


def test_an_impact_says_how_many_contexts_it_does_not_list(console, poisoned):
    agent = console.agent("claude")
    for _ in range(104):
        agent.context("refunds by wire")
    with console.page(f"/sources?list=references&name={PAGE}") as page:
        impact = page.get_by_role("region", name="Impact")
        expect(impact).to_contain_text("105contexts held any")
        expect(impact.get_by_role("listitem").filter(has_text="and 5 more")).to_be_visible()


def test_a_context_of_an_impact_opens_its_receipt(console, poisoned):
    with console.page(f"/sources?list=references&name={PAGE}") as page:
        page.get_by_role("region", name="Impact").locator("a[href*='receipt=']").first.click()
        page.get_by_role("button", name="Replay").wait_for()
        expect(page.get_by_role("tab", name="Receipts")).to_have_attribute("aria-selected", "true")
        page.get_by_role("tab", name="Compile").click()
        expect(page.get_by_role("button", name="Replay")).to_have_count(0)
