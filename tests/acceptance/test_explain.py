"""Explanations: a context cut by memory with a reason for each candidate, what moved a hit, and the list of receipts."""

from __future__ import annotations

import pytest
from outcomes import held, kept

from keepward.services import explain

QUESTION = "What does the bakery say about bread?"


@pytest.fixture
def filled(owner, mem):
    """A store with a block, a proposal, something secret between people, and more bread than a context holds."""
    owner.remember("Ship the ordering app before Easter", tier="core", key="mission")
    for number in range(12):
        mem.remember(f"Bread number {number} takes {number + 3} hours, the bakery says", tier="archival")
    owner.remember("The bakery owes the bank for its bread oven", tier="archival", sensitivity="sensitive")
    held(mem.remember("Ship the ordering app before Whitsun", tier="core", key="mission", confidence=0.9))
    return owner


def test_a_context_is_explained_in_a_preview_alone(filled):
    asked = filled.context(QUESTION), filled.context(QUESTION, preview=True)
    assert [each.explanation is None for each in asked] == [True, False]


@pytest.mark.parametrize("form", ["markdown", "messages"])
def test_the_parts_of_a_preview_make_up_its_text(filled, form):
    parts = filled.context(QUESTION, format=form, preview=True).explanation.parts
    assert "".join(part.text for part in parts) == filled.context(QUESTION).text


def test_each_candidate_is_included_or_excluded_with_the_receipts_reason(filled):
    context = filled.context(QUESTION, budget_tokens=160)
    found = filled.receipt(context.receipt.id)["explanation"]["candidates"]
    places = {item.id: section.name for section in context.sections for item in section.items}
    reasons = {out.id: out.reason.code for out in context.excluded}
    assert {each["id"]: each["section"] or each["code"] for each in found} == {**places, **reasons}


def test_a_preview_explains_what_a_receipt_explains(filled):
    previewed = filled.context(QUESTION, budget_tokens=160, preview=True)
    stored = filled.receipt(filled.context(QUESTION, budget_tokens=160).receipt.id)
    assert previewed.to_dict()["explanation"] == stored["explanation"]


def test_a_receipt_of_no_context_has_no_explanation(filled):
    receipts = filled.recall(QUESTION, receipt=True).receipt, filled.receipts(kinds=["commit"]).items[0].id
    assert ["explanation" in filled.receipt(each) for each in receipts] == [False, False]


def test_a_preview_says_what_waits_and_what_had_no_room(filled):
    found = filled.context(QUESTION, budget_tokens=160, include_weak=True, preview=True).explanation.candidates
    assert {"quarantine", "budget", "sensitive"} <= {each.code for each in found if each.section is None}


def test_a_preview_store_no_receipt_and_counts_no_use(filled):
    before = filled.receipts().items[0].id
    previewed = filled.context(QUESTION, preview=True)
    assert (previewed.receipt, previewed.kept, filled.receipts().items[0].id) == (None, False, before)
    recalled = [each.id for each in previewed.explanation.candidates if each.section == "recalled"]
    assert {filled.get(each).uses for each in recalled} == {0}


def test_a_preview_of_the_past_shows_what_a_commit_changed(filled):
    seq = filled.log(limit=1)[0].commit.seq
    filled.remember("The bakery bakes rye bread on Fridays", tier="archival")
    texts = [filled.context("rye bread on Fridays", as_of=at, preview=True).text for at in (seq, None)]
    assert ["rye" in text for text in texts] == [False, True]


def test_words_that_the_caller_may_not_read_are_withheld(filled):
    reader = filled.with_token(filled.create_token("rita", rights="reviewer", can=["read", "approve"]).secret)
    previewed = reader.context(QUESTION, preview=True).explanation
    found = next(each for each in previewed.candidates if each.code == "sensitive")
    assert "bank" not in found.text


def test_a_receipt_withholds_words_that_its_reader_may_not_read(filled, mem):
    receipt = filled.context(QUESTION, include_sensitive=True).receipt.id
    owners, agents = (each.receipt(receipt)["explanation"] for each in (filled, mem))
    hidden = [each["text"] for each in agents["candidates"] if "bank" not in each["text"]]
    assert (len(owners["candidates"]), "bank" in repr(owners), "bank" in repr(agents)) == (len(hidden), True, False)


def test_receipts_are_found_by_kind_actor_and_objective(filled, mem):
    wanted = mem.context("When is the rye bread ready?").receipt.id
    filled.context("When is the rye bread ready?")
    mem.context("Who delivers flour?")
    found = filled.receipts(kinds=["compile"], actor=mem.actor.name, objective="RYE").items
    assert [each.id for each in found] == [wanted]


def test_pages_of_receipts_hold_each_once(filled):
    seen, page = [], filled.receipts(limit=4)
    while page.items or page.before:
        seen += [each.id for each in page.items]
        if page.before is None:
            break
        page = filled.receipts(limit=4, before=page.before)
    assert seen == [each.id for each in filled.receipts(limit=500).items]


def test_a_page_that_finds_nothing_among_many_goes_on(filled, monkeypatch):
    monkeypatch.setattr(explain, "MAX_RECEIPTS_READ", 4)
    monkeypatch.setattr(explain, "_RECEIPT_BATCH", 2)
    page = filled.receipts(kinds=["erase"])
    assert (page.items, page.before is None) == ((), False)


def test_the_parts_of_a_hit_sum_to_its_order(filled):
    hits = filled.recall("bread number 4", limit=5)
    sums = [sum(hit.parts[name] for name in ("cover", "meaning", "feature", "session", "newer")) for hit in hits]
    assert sums == pytest.approx([hit.parts["fused"] for hit in hits], abs=1e-5)
    assert sums == sorted(sums, reverse=True)


def test_each_signal_of_a_hit_has_its_part(filled):
    filled.remember_many([{"text": f"Rye bread takes {n} hours, says Ana", "session": "kitchen"} for n in range(3)])
    best = filled.recall("How many hours does rye bread take?")[0]
    assert all(best.parts[name] > 0 for name in ("cover", "meaning", "session", "cosine"))


def test_an_erased_memory_is_named_without_its_words(filled):
    record = kept(filled.remember("Mira Okafor buys rye bread", tier="archival"))
    receipt = filled.context("Who buys rye bread?").receipt.id
    filled.erase(filled.plan_erase(record.id).digest, record.id)
    explanation = filled.receipt(receipt)["explanation"]
    found = next(each for each in explanation["candidates"] if each["id"] == record.id)
    assert (found["text"], found["section"], "Mira" in repr(explanation)) == ("", "recalled", False)
    assert [part["text"].endswith("[erased]") for part in explanation["parts"] if part["id"] == record.id] == [True]
