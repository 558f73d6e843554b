"""Core, Context lab and Recall lab: each journey ends in what the store holds, or in what an agent is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import faults_of_access

pytestmark = pytest.mark.proof

QUESTION = "When does the ferry leave?"


@pytest.fixture
def ferry(console):
    """A mission, and three facts of which one is read on a page and wrong."""
    console.owner.remember("Carry people over the river.", tier="core", key="mission", reason="what it is for")
    agent = console.agent()
    agent.remember("The ferry leaves at six from pier two.", tier="archival", source="web", reason="read on a page")
    agent.remember("The ferry takes forty people and no cars.", tier="archival", reason="said by the captain")
    agent.remember("Tickets for the ferry are sold at the kiosk until five.", tier="archival", reason="asked there")
    return console


def context_of_agent(console, **asked):
    """Return what an agent is told."""
    return console.agent().context(QUESTION, **asked).text


def part(page, text):
    """Return the part of the prompt that holds a text."""
    return page.get_by_role("group", name="The prompt").get_by_role("button").filter(has_text=text)


def test_edit_of_a_block_shows_tokens_and_can_be_undone(ferry):
    text = "Carry people and bicycles over the river."
    with ferry.page("/core?block=mission") as page:
        page.get_by_role("region", name="mission").wait_for()
        page.keyboard.press("e")
        page.get_by_label("Text of mission").fill(text)
        page.get_by_text(re.compile(r"about 1\d of 300 tokens")).wait_for()
        page.get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Undo").wait_for()
        changed = context_of_agent(ferry)
        page.keyboard.press("u")
        page.get_by_text("Undone.").first.wait_for()
    assert (text in changed, text in context_of_agent(ferry)) == (True, False)


def test_text_over_the_budget_of_its_block_is_not_saved(ferry):
    with ferry.page("/core?block=mission&open=edit", expected=["422"]) as page:
        page.get_by_label("Text of mission").fill("too long " * 400)
        page.get_by_text("too many").wait_for()
        page.get_by_label("Text of mission").fill("one by one " * 108)
        page.get_by_role("button", name="Save").click()
        page.get_by_text("shorten it").first.wait_for()
    assert ferry.owner.get("mission").version == 1


def test_a_block_that_another_actor_changed_meanwhile_is_not_overwritten(ferry):
    with ferry.page("/core?block=mission&open=edit") as page:
        page.get_by_label("Text of mission").fill("Mine.")
        ferry.owner.remember("Theirs.", key="mission", kind="state", tier="core")
        page.get_by_text("Somebody changed this block meanwhile").wait_for()
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
    assert ferry.owner.get("mission").text == "Theirs."


def test_prompt_on_the_screen_is_the_agents_prompt(ferry):
    with ferry.page(f"/context?q={QUESTION}&budget=900") as page:
        part(page, "pier two").wait_for()
        shown = [each.inner_text() for each in page.locator(".prompt .prompt-text").all()]
    words = " ".join(" ".join(shown).split())
    assert (words, ferry.owner.receipts(kinds=["compile"]).items) == (
        " ".join(ferry.owner.context(QUESTION, budget_tokens=900, preview=True).text.split()),
        (),
    )


def test_a_smaller_budget_leaves_memories_out_and_says_why(ferry):
    with ferry.page(f"/context?q={QUESTION}&budget=900") as page:
        part(page, "forty people").wait_for()
        slider = page.get_by_role("slider", name="Budget")
        slider.focus()
        slider.press("Home")
        page.get_by_role("region", name="Candidates").get_by_text("no room").first.wait_for()
        budget = int(page.url.partition("budget=")[2].partition("&")[0])
    previewed = ferry.owner.context(QUESTION, budget_tokens=budget, preview=True).explanation
    assert {each.code for each in previewed.candidates} >= {"budget"}


def test_a_budget_below_core_says_what_is_needed(ferry):
    with ferry.page(f"/context?q={QUESTION}&budget=2", expected=["409"]) as page:
        page.get_by_text("core memory needs").wait_for()


def test_the_past_is_shown_as_it_was(ferry):
    ferry.agent().remember("In winter the ferry leaves at seven.", tier="archival", reason="new plan")
    with ferry.page("/context?q=When does the ferry leave in winter?") as page:
        part(page, "In winter").wait_for()
        page.get_by_role("slider", name="As of").press("ArrowLeft")
        part(page, "In winter").wait_for(state="detached")
        expect(part(page, "pier two")).to_have_count(1)


def test_the_commit_with_which_a_text_came_in_is_named(ferry):
    with ferry.page(f"/context?q={QUESTION}") as page:
        part(page, "forty people").click()
        page.get_by_role("button", name="When did it come in?").click()
        page.get_by_text("It came in with").wait_for()
        named = page.get_by_text("It came in with").get_by_role("link").inner_text()
    assert named == f"commit {ferry.owner.bisect(QUESTION, contains='forty people').commit.commit.seq}"


def test_two_contexts_are_compared_with_the_commit_behind_the_difference(ferry):
    with ferry.page("/context?q=When does the ferry leave on Sundays?") as page:
        part(page, "pier two").wait_for()
        page.get_by_role("button", name="Keep for comparison").click()
        page.get_by_role("button", name="Keep and compare").wait_for()
        ferry.agent().remember("On Sundays the ferry leaves at nine.", tier="archival", reason="the captain said so")
        part(page, "On Sundays").wait_for()
        page.get_by_role("button", name="Keep and compare").click()
        row = page.get_by_role("region", name="Differences").get_by_role("listitem").filter(has_text="On Sundays")
        row.wait_for()
        named = row.get_by_role("link").inner_text()
    second, first = (each.id for each in ferry.owner.receipts(kinds=["compile"]).items)
    item = next(each for each in ferry.owner.context_diff(first, second).items if each.change == "added")
    assert (item.change, named) == ("added", f"commit {item.commit.commit.seq}")


def test_receipt_of_an_agent_context_is_found_and_replayed(ferry):
    ferry.agent("captain").context(QUESTION)
    ferry.agent("cook").context("What is for lunch?")
    with ferry.page("/context?view=receipts") as page:
        page.get_by_label("Asked by").fill("captain")
        page.get_by_role("button", name="What is for lunch?").wait_for(state="detached")
        page.get_by_role("button", name=f"Open: {QUESTION}").click()
        part(page, "pier two").wait_for()
        page.get_by_role("button", name="Replay").click()
        page.get_by_text("Replayed: the same bytes as then.").first.wait_for()
        receipt = page.url.partition("receipt=")[2].partition("&")[0]
    assert ferry.owner.replay(receipt).same


def test_copied_python_call_gives_the_result_on_screen(ferry):
    context = ferry.browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    with ferry.page(f"/context?q={QUESTION}&budget=600", context=context) as page:
        page.get_by_role("button", name="Copy as Python").click()
        page.get_by_role("button", name="Copied").wait_for()
        program = page.evaluate("navigator.clipboard.readText()")
    context.close()
    environ = {**os.environ, "KEEPWARD_TOKEN": ferry.owner.create_token("reader").secret}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert ("pier two" in done.stdout, done.stderr) == (True, "")


def test_hits_are_rated_used_or_unused_by_one_click(ferry):
    with ferry.page("/recall?q=ferry") as page:
        for hit, word in ((1, "used"), (2, "not")):
            of_hit = page.get_by_role("group", name=f"Feedback on hit {hit}")
            with page.expect_response(lambda answer: answer.request.method == "POST" and answer.ok):
                of_hit.get_by_role("button", name=word).click()
            of_hit.locator("[aria-pressed=true]").wait_for()
        page.get_by_text("Noted.").first.wait_for()
    receipt = ferry.owner.receipts(kinds=["recall"]).items[0].id
    hits = [each["id"] for each in ferry.owner.receipt(receipt)["items"]]
    given = ferry.owner.feedback(receipt, used=[hits[0]], ignored=[hits[1]])
    # Said again it takes the place of what was said by the clicks: one word on one receipt.
    assert (given.n, ferry.owner.status()["reranker"]["feedback"]) == (1, 1)


def test_the_bars_of_a_hit_say_what_each_part_adds(ferry):
    with ferry.page("/recall?q=ferry pier") as page:
        bar = page.get_by_role("region", name="Hits").get_by_role("img").first
        bar.wait_for()
        said = bar.get_attribute("aria-label")
    hit = ferry.owner.recall("ferry pier")[0]
    assert hit.parts["cover"] == hit.parts["fused"]
    assert said == f"words +{hit.score:.2f}"


def test_missing_learned_ranking_is_explained_before_and_after_training(ferry):
    with ferry.page("/recall") as page:
        card = page.get_by_role("region", name="Learned ranking")
        card.get_by_text("not in use").wait_for()
        card.get_by_role("button", name="Train now").click()
        page.get_by_text("It is not in use").first.wait_for()
    assert ferry.owner.status()["reranker"]["serving"] is False


#: A question that one memory answers, and that many others share a word with.
WHO = "When does the ferry captain Olga take insulin?"
REFUSED = {
    "called Olga": "It is only for agent lab; the question was asked at /.",
    "sails at night": "It is sensitive",
    "leaves on Sunday": "It was forgotten.",
}


@pytest.fixture
def unseen(console):
    """One answer, many that share a word with the question, and three that no question brings."""
    owner, told = console.owner, {"tier": "archival", "reason": "told"}
    owner.remember("The ferry captain Olga takes insulin at noon.", **told)
    owner.at(scope="/agents/lab").remember("The ferry captain is called Olga.", **told)
    owner.remember("The ferry captain sails at night.", sensitivity="sensitive", **told)
    gone = owner.remember("The ferry captain leaves on Sunday.", **told).record
    owner.forget(gone.id, reason="stays")
    crates = [f"Crate {n} of the harbour weighs {n * 3} kilos, said the captain." for n in range(160)]
    owner.remember_many([{"text": text, "tier": "archival"} for text in crates], reason="weighed")
    return console


def test_recall_lab_says_why_an_expected_memory_was_not_recalled(unseen):
    with unseen.page(f"/recall?q={WHO}") as page:
        page.get_by_label("Why not another memory?").fill("ferry captain")
        rows = page.get_by_role("list", name="Not considered").get_by_role("listitem")
        for words, why in REFUSED.items():
            expect(rows.filter(has_text=words)).to_contain_text(why)
        page.get_by_label("Why not another memory?").fill("no such words")
        page.get_by_text("No memory says it that is not among the hits.").wait_for()
    recalled = [hit.memory.text for hit in unseen.owner.recall(WHO, limit=100).hits]
    assert not [text for text in recalled for words in REFUSED if words in text]


def test_an_expected_memory_of_a_low_rank_is_told_with_its_rank(unseen):
    late = unseen.owner.recall(WHO, limit=100).hits[50]
    words = late.memory.text.partition(" of ")[0]
    with unseen.page(f"/recall?q={WHO}&limit=5&expected={words} of") as page:
        expect(page.get_by_role("list", name="Not considered")).to_contain_text(f"rank {late.rank}")


def test_candidates_fold_what_hardly_bears_and_are_searched(unseen):
    preview = unseen.owner.context(WHO, budget_tokens=1_200, preview=True).explanation
    weak = [each for each in preview.candidates if each.code == "weak"]
    with unseen.page(f"/context?q={WHO}&budget=1200") as page:
        candidates = page.get_by_role("region", name="Candidates")
        candidates.get_by_role("button", name=f"{len(weak)} hardly relevant").wait_for()
        rows = candidates.get_by_role("list", name="Candidates", exact=True).get_by_role("listitem")
        expect(candidates.get_by_text("hardly relevant", exact=True)).to_have_count(0)
        candidates.get_by_label("Find a memory among").fill("captain is called")
        expect(candidates.get_by_role("list", name="Not considered")).to_contain_text(REFUSED["called Olga"])
        words = weak[0].text.partition(" weighs")[0]
        candidates.get_by_label("Find a memory among").fill(words)
        expect(rows.filter(has_text=words)).to_contain_text("hardly relevant")
        assert faults_of_access(page) == []
    assert len(weak) > 1


def test_two_contexts_are_compared_older_first_whichever_was_chosen_first(ferry):
    held = ferry.owner.remember("Biscuit gets 8 mg twice a day.", tier="archival", reason="vet").record
    gone = ferry.owner.remember("Biscuit eats twice a day.", tier="archival", reason="vet").record
    older = ferry.owner.context("What does Biscuit get a day?").receipt.id
    ferry.owner.revise(held.id, "Biscuit gets 80 mg twice a day.", reason="new plan")
    ferry.owner.forget(gone.id, reason="a mistake")
    newer = ferry.owner.context("What does Biscuit get a day?").receipt.id
    for a, b in ((newer, older), (older, newer)):
        with ferry.page(f"/context?view=compare&a={a}&b={b}") as page:
            rows = page.get_by_role("region", name="Differences").get_by_role("listitem")
            row = rows.filter(has_text="80 mg")
            expect(row).to_contain_text("changed")
            expect(row.locator(".was")).to_contain_text("8 mg")
            expect(row.locator(".now")).to_contain_text("80 mg")
            expect(rows.filter(has_text="Biscuit eats")).to_contain_text("removed")
            expect(page.get_by_role("region", name="Older context")).to_contain_text("8 mg")


def test_parts_of_a_score_sum_without_the_own_session(ferry):
    with ferry.page(f"/recall?q={QUESTION}") as page:
        hits = page.get_by_role("region", name="Hits").get_by_role("listitem")
        hits.first.wait_for()
        for each in hits.all():
            score = float(each.locator(".line b.num").first.inner_text())
            shares = [float(text.replace("−", "-")) for text in each.locator(".shares b.num").all_inner_texts()]
            assert abs(sum(shares) - score) < 0.005 * (len(shares) + 2)
            expect(each).not_to_contain_text("session")
