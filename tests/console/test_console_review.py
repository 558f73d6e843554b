"""Review in the console: each journey ends in what the store holds, or in what an agent is told."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access

pytestmark = pytest.mark.proof


#: Say that the window is in front, where a page began behind another; see `BEHIND`.
IN_FRONT = "() => { window.front = true; document.dispatchEvent(new Event('visibilitychange')); }"
#: Run before a page's own scripts: its window is behind another until `IN_FRONT`.
BEHIND = """
Object.defineProperty(document, "visibilityState", {get: () => (window.front ? "visible" : "hidden")});
"""


def propose(console, *texts):
    """Have an agent propose texts for the block of the mission, which a person has to approve; in order."""
    for text in texts:
        console.agent().remember(text, tier="core", key="mission", reason=f"why {text[:20]}")


def wait(console, count):
    """Have an agent propose facts that are too uncertain to be stored unasked."""
    sent = [
        {"text": f"Guess {n}: shelf {n} holds flour {n * 7}.", "tier": "archival", "confidence": 0.2}
        for n in range(count)
    ]
    console.agent().remember_many(sent, reason="a guess")
    assert len(console.owner.pending()) == count


def texts(console):
    return [each.text for each in console.owner.list_memories(limit=None)]


def settle(page):
    """Wait until what is open was on screen for long enough to be approved."""
    page.locator("article button[aria-disabled=false]", has_text="Approve").first.wait_for()


def heading(page, text):
    page.locator("article").get_by_text(text).first.wait_for()


def test_one_key_approves_a_proposal_into_the_prompt(console):
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("a")
        page.get_by_text("Nothing waits for you").wait_for()
    assert "Ship before Whitsun." in console.agent().context("what is the mission?").text


def test_after_a_decision_the_next_proposal_opens_with_a_message(console):
    propose(console, "First mission.", "Second mission.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("a")
        heading(page, "Second mission.")
        expect(page.get_by_role("status").first).to_contain_text("Approved “First mission.”")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "listbox"


def test_what_was_approved_is_undone_by_a_rollback(console):
    console.owner.remember("Ship before Easter.", tier="core", key="mission", reason="so")
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("a")
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone by a rollback").first.wait_for()
    assert texts(console) == ["Ship before Easter."]


def propose_identity(console):
    console.owner.update_identity("I am Orion and I answer plainly.", reason="who I am")
    console.agent().update_identity("I am Orion and I answer briefly.", reason="Ana asked")


@pytest.mark.promise("B82")
def test_new_identity_is_a_diff_with_an_undoable_approval(console):
    propose_identity(console)
    with console.page("/review") as page:
        settle(page)
        expect(page.locator("article del").first).to_have_text("plainly")
        expect(page.locator("article ins").first).to_have_text("briefly")
        page.keyboard.press("a")
        page.get_by_role("button", name="Undo").wait_for()
        assert console.owner.identity().text == "I am Orion and I answer briefly."
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone by a rollback").first.wait_for()
    assert console.owner.identity().text == "I am Orion and I answer plainly."


@pytest.mark.promise("B82")
def test_reviewer_may_reject_but_not_approve_a_new_identity(console):
    propose_identity(console)
    rita = console.owner.create_token("rita", rights="reviewer").token.id
    with console.page("/review", credential=rita) as page:
        expect(page.get_by_text("You may reject this")).to_be_visible()
        expect(page.locator("article").get_by_role("button", name="Reject")).to_be_visible()
        expect(page.locator("article").get_by_role("button", name="pprove")).to_have_count(0)


def test_nothing_is_approved_before_it_was_on_screen(console):
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        # However long the page takes to be there, until it is in front its time does not count.
        page.add_init_script(BEHIND)
        page.reload()
        heading(page, "Ship before Whitsun.")
        page.clock.install()
        page.clock.pause_at("2099-01-01")
        page.evaluate(IN_FRONT)
        page.clock.run_for(200)
        # A page that hung for a minute showed nothing meanwhile.
        page.clock.fast_forward(60_000)
        page.keyboard.press("a")
        page.get_by_text("Not yet").first.wait_for()
        assert len(console.owner.pending()) == 1
        page.clock.resume()
        settle(page)
        page.keyboard.press("a")
        page.get_by_text("Approved “").first.wait_for()


def test_double_key_press_does_not_approve_the_next_proposal(console):
    propose(console, "First mission.", "Second mission.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("a")
        page.keyboard.press("a")
        heading(page, "Second mission.")
    assert [each.reason for each in console.owner.pending()] == ["why Second mission."]


def test_a_rejection_has_a_reason_that_its_proposer_is_reported(console):
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        page.get_by_role("button", name="Reject…").wait_for()
        page.keyboard.press("r")
        page.get_by_label("Reason (the proposer reads it)").fill("Easter it is")
        page.keyboard.press("Enter")
        page.get_by_text("Nothing waits for you").wait_for()
    assert [each.decision for each in console.agent().notices()] == ["Easter it is"]


@pytest.mark.parametrize("keys", ["r", "Jr"], ids=["one", "many"])
def test_rejections_are_taken_back_and_wait_as_they_did(console, keys):
    propose(console, "First mission.", "Second mission.")
    before = [(each.id, each.digest) for each in console.owner.pending()]
    rita = console.owner.create_token("rita", rights="reviewer").token.id
    with console.page("/review", credential=rita) as page:
        settle(page)
        for key in keys:
            page.keyboard.press(key)
        page.get_by_label("Reason (the proposer reads it)").fill("not now")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("again").first.wait_for()
    assert [(each.id, each.digest) for each in console.owner.pending()] == before
    kinds = [each.kind for each in console.owner.receipts(limit=4).items]
    assert (kinds.count("rejection"), kinds.count("reopening")) == (len(keys), len(keys))


def test_reasons_that_were_given_lately_are_offered(console):
    propose(console, "Ship before Whitsun.", "Ship before Easter.")
    console.owner.reject(console.owner.pending()[0].id, reason="Ask Tom first")
    with console.page("/review") as page:
        page.get_by_role("button", name="Reject…").click()
        page.get_by_role("button", name="Ask Tom first").click()
        page.get_by_role("dialog").get_by_role("button", name="Reject", exact=True).click()
        page.get_by_text("Nothing waits for you").wait_for()
    assert [each.decision for each in console.owner.pending(state="rejected")] == ["Ask Tom first"] * 2


def test_other_words_are_stored_as_the_reviewers_own(console):
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("e")
        page.get_by_label("What is stored, as your own words").fill("Ship by the first of May.")
        page.get_by_role("button", name="Approve as yours").click()
        page.get_by_text("Nothing waits for you").wait_for()
    stored = console.owner.list_memories(limit=None)
    assert [(each.text, each.trust.label) for each in stored] == [("Ship by the first of May.", "owner")]


def test_thirty_are_approved_with_one_confirmation_that_lists_them(console):
    wait(console, 30)
    with console.page("/review") as page:
        settle(page)
        for _ in range(29):
            page.keyboard.press("J")
        page.get_by_text("30 selected").wait_for()
        page.keyboard.press("a")
        read_all(page, 30)
        page.get_by_role("button", name="Approve all 30").click()
        page.get_by_text("Nothing waits for you").wait_for()
        page.goto(f"{console.url}/console/commits")
        acts = page.get_by_role("list", name="Commits, newest first").locator("> li")
        expect(acts.filter(has_text="30 approvals at once by operator:ana")).to_have_count(1)
        expect(acts).to_have_count(1)
    assert len(texts(console)) == 30


def select_all(page, count):
    settle(page)
    page.keyboard.press("x")
    page.get_by_role("button", name=f"Select all {count}").click()
    page.get_by_text(f"{count} selected").wait_for()


def read_all(page, count):
    """Go from one unread proposal of a batch to the next, until all were on screen."""
    rows = page.get_by_role("list", name="What is in the batch").get_by_role("listitem")
    expect(rows).to_have_count(count)
    status = page.get_by_role("dialog").get_by_role("status")
    for _ in range(count):
        before = status.inner_text()
        if "All were read." in before:
            break
        # It goes away once all are read.
        page.get_by_role("button", name="Go to the next unread").evaluate_all(
            "found => found.forEach((b) => b.click())"
        )
        expect(status).not_to_have_text(before)
    expect(status).to_contain_text("All were read.")


def test_many_approvals_say_how_many_are_done_while_they_run(console):
    wait(console, 30)
    with console.page("/review", expected=["ERR_", "Failed to"]) as page:
        select_all(page, 30)
        page.keyboard.press("a")
        read_all(page, 30)
        dialog, held = page.get_by_role("dialog"), []

        def hold(route):
            if len(route.request.post_data_json["items"]) == 20:
                route.continue_()
            else:
                held.append(route)

        page.route("**/memory/quarantine/approve", hold)
        dialog.get_by_role("button", name="Approve all 30").click()
        expect(dialog.get_by_role("status")).to_contain_text("20 of 30 approved.")
        assert len(texts(console)) == 20
        # What is approved stays so when the rest fails.
        held[0].abort()
        page.get_by_text("Approved 20 of 30; then:").last.wait_for()
        page.get_by_text("10 selected").wait_for()
    assert len(console.owner.pending()) == 10


def test_what_was_read_of_a_batch_is_approved_and_the_rest_stays_selected(console):
    wait(console, 30)
    with console.page("/review") as page:
        select_all(page, 30)
        page.keyboard.press("a")
        dialog = page.get_by_role("dialog")
        rows = dialog.get_by_role("listitem").filter(has_text="seen")
        rows.first.wait_for()
        expect(dialog.get_by_role("progressbar", name="Read")).to_have_attribute("max", "30")
        assert faults_of_access(page) == []
        dialog.get_by_role("button", name=re.compile(r"Approve the \d+ read")).click()
        dialog.wait_for(state="detached")
        done = len(texts(console))
        page.get_by_text(f"{30 - done} selected").wait_for()
    assert 0 < done < 30
    assert len(console.owner.pending()) == 30 - done


def test_all_that_one_proposed_is_rejected_at_once(console):
    wait(console, 30)
    with console.page("/review") as page:
        select_all(page, 30)
        page.keyboard.press("r")
        page.get_by_role("dialog").get_by_role("textbox").fill("a flood")
        page.keyboard.press("Enter")
        page.get_by_text("Rejected 30").first.wait_for()
    assert console.owner.pending() == []


def test_two_reviewers_race_in_two_browsers_and_one_is_reported(console):
    propose(console, "Ship before Whitsun.")
    rita, rob = (console.owner.create_token(name, rights="reviewer").token.id for name in ("rita", "rob"))
    refused = ["409"]
    with (
        console.page("/review", credential=rita, expected=refused) as first,
        console.page("/review", credential=rob, expected=refused) as second,
    ):
        settle(first)
        settle(second)
        for page in (first, second):
            page.keyboard.press("a")
        for page in (first, second):
            page.get_by_text("Nothing waits for you").wait_for()
    (commit,) = [each for each in console.owner.log() if each.details.approved_by]
    assert commit.details.approved_by in {"reviewer:rita", "reviewer:rob"}
    assert "Ship before Whitsun." in console.agent().context("what is the mission?").text


def test_a_reviewer_sees_what_reviewers_may_do(console):
    propose(console, "Ship before Whitsun.")
    rita = console.owner.create_token("rita", rights="reviewer").token.id
    with console.page("/", credential=rita) as page:
        page.get_by_text("reviewer:rita").wait_for()
        expect(page.get_by_role("navigation", name="Console")).to_contain_text("Commits")
        named = page.get_by_role("navigation", name="Console").get_by_role("link").all_inner_texts()
        shown = {each.split("\n")[0].strip() for each in named}
        assert {"Review", "Memories", "Commits"} <= shown
        assert not {"Erase", "Tokens", "Settings"} & shown
        page.goto(f"{console.url}/console/review")
        settle(page)
        page.keyboard.press("a")
        page.get_by_text("Nothing waits for you").wait_for()
    (commit,) = [each for each in console.owner.log() if each.details.approved_by]
    assert commit.details.approved_by == "reviewer:rita"


def test_what_was_decided_on_a_stale_base_is_reported(console):
    mission = console.owner.remember("Ship before Easter.", tier="core", key="mission", reason="so").records[0]
    propose(console, "Ship before Whitsun.")
    with console.page("/review", expected=["409", "412"]) as page:
        settle(page)
        console.owner.revise(mission.id, "Ship in June.", reason="later")
        page.keyboard.press("a")
        page.get_by_text(re.compile("is outdated|has changed since")).first.wait_for()
    assert texts(console) == ["Ship in June."]


def test_what_is_proposed_elsewhere_appears_by_itself(console):
    with console.page("/review") as page:
        page.get_by_text("live", exact=True).wait_for()
        propose(console, "Ship before Whitsun.")
        heading(page, "Ship before Whitsun.")


def test_what_is_being_read_stays_when_the_queue_changes(console):
    propose(console, "First mission.", "Second mission.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("j")
        heading(page, "Second mission.")
        console.owner.reject(console.owner.pending()[0].id, reason="no")
        page.get_by_text("1 waits").wait_for()
        heading(page, "Second mission.")


def test_the_address_leads_back_to_what_was_open(console):
    propose(console, "First mission.", "Second mission.")
    with console.page("/review") as page:
        settle(page)
        page.keyboard.press("j")
        heading(page, "Second mission.")
        page.reload()
        heading(page, "Second mission.")


@pytest.mark.promise("C118")
def test_a_proposal_shows_what_why_and_from_where(console):
    console.owner.remember("Ship before Easter.", tier="core", key="mission", reason="so")
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        settle(page)
        for part in (
            "Change the mission",
            "agent:assistant",
            "why Ship before Whitsun",
            "changes only with approval",
        ):
            expect(page.locator("article")).to_contain_text(part)


@pytest.mark.promise("C118")
def test_invisible_characters_are_drawn_where_they_stays(console):
    console.agent().remember("Pay to\u202e Ana\u200b.", tier="core", key="mission", reason="so")
    with console.page("/review") as page:
        heading(page, "RLO")
        assert "\u202e" not in page.locator("article").inner_text()


def test_evidence_opens_inline(console):
    heard = console.owner.remember("Tom said that Easter is too early.", tier="archival", reason="heard").records[0]
    console.agent().remember("Ship later.", tier="core", key="mission", reason="so", evidence=[heard.id])
    with console.page("/review") as page:
        page.locator("article summary", has_text=heard.id[:8]).click()
        page.locator("article").get_by_text("Tom said that Easter is too early.").first.wait_for()


def test_a_reviewer_decides_on_a_phone(console):
    propose(console, "Ship before Whitsun.")
    with console.page("/review", viewport=NARROW, has_touch=True) as page:
        page.get_by_role("listbox").get_by_role("option").first.tap()
        settle(page)
        page.get_by_role("button", name="Approve", exact=True).tap()
        page.get_by_text("Approved “").first.wait_for()
    assert texts(console) == ["Ship before Whitsun."]


@pytest.fixture
def outdated(console):
    """A proposal for the mission, which the owner changed afterwards; the text that holds now is `Ship in June.`"""
    mission = console.owner.remember("Ship before Easter.", tier="core", key="mission", reason="so").records[0]
    propose(console, "Ship before Whitsun.")
    console.owner.revise(mission.id, "Ship in June.", reason="later")
    return mission


def test_a_stale_proposal_shows_then_now_and_proposed(console, outdated):
    with console.page("/review") as page:
        page.get_by_role("option").get_by_text("outdated", exact=True).wait_for()
        changed = page.get_by_role("region", name="Changed since")
        for text in ("Ship before Easter.", "Ship in June.", "Ship before Whitsun."):
            changed.get_by_text(text).wait_for()
        expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
        assert faults_of_access(page) == []


def test_a_stale_proposal_is_edited_against_what_holds_now(console, outdated):
    with console.page("/review") as page:
        page.get_by_role("button", name="Edit against the current text").click()
        page.get_by_role("textbox").fill("Ship in June, before Whitsun.")
        page.get_by_role("button", name="Approve as yours").click()
        page.get_by_text("Nothing waits for you").wait_for()
    assert texts(console) == ["Ship in June, before Whitsun."]


def test_an_open_proposal_reports_its_changed_base(console):
    mission = console.owner.remember("Ship before Easter.", tier="core", key="mission", reason="so").records[0]
    propose(console, "Ship before Whitsun.")
    with console.page("/review") as page:
        settle(page)
        console.owner.revise(mission.id, "Ship in June.", reason="later")
        page.get_by_role("region", name="Changed since").get_by_text("Ship in June.").wait_for()


def test_decided_and_stale_proposals_are_listed(console, outdated):
    propose(console, "Ship next year.")
    rejected = next(each for each in console.owner.pending() if not each.stale)
    console.owner.reject(rejected.id, reason="too late")
    with console.page("/review") as page:
        page.get_by_label("State").select_option("Rejected")
        page.get_by_role("option", name="Ship next year.").wait_for()
        heading(page, "too late")
        page.get_by_label("State").select_option("Waiting")
        page.get_by_role("option", name="Ship before Whitsun.").wait_for()
