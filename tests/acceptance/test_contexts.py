"""Contexts: budgets, explanations, room for people's words, and old receipts."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, InvalidInput, Memory, Policy, Tampered
from keepward.core.compiled import CompiledContext
from keepward.services.reading import explain
from support import tamper

# --- Contexts as people meet them: budgets, weak hits, receipts at their versions, and what differs between two


NOTHING = "Who is the president of France?"


@pytest.fixture
def harbour(opened: Callable[..., Memory]) -> Any:
    """A store of 120 notes about one thing."""
    with opened("harbour", embedder="hashed", actor=Actor.operator()) as mem:
        texts = [f"Harbour log {n}: pier {n} takes ships of {n * 7} metres and has {n % 9} cranes" for n in range(120)]
        mem.remember_many([{"text": text, "tier": "archival"} for text in texts])
        yield mem


def recalled(context: Any) -> int:
    return sum(len(section.items) for section in context.sections if section.name == "recalled")


def test_without_a_budget_at_most_thirty_lines_and_2000_tokens_are_recalled(opened: Callable[..., Memory]) -> None:
    # Without vectors all that has the same words of the query bears on it alike.
    with opened("crates", embedder=None, actor=Actor.operator()) as mem:
        mem.remember_many([{"text": f"Crate {n} holds the amber cups of shelf {n * 7}"} for n in range(60)])
        made = mem.context("Where are the amber cups?")
        assert (recalled(made), made.tokens <= 2_000) == (30, True)
        mem.remember_many([{"text": f"Crate {n} holds the beryl cups: {'wrapped twice ' * 60}{n}"} for n in range(60)])
        made = mem.context("Where are the beryl cups?")
        assert (0 < recalled(made) < 30, made.tokens <= 2_000) == (True, True)


def test_a_named_budget_is_filled_and_the_only_cap(harbour: Memory) -> None:
    made = harbour.context("harbour log of the piers and cranes", budget_tokens=1_500)
    assert recalled(made) > 30
    assert made.tokens <= 1_500


def test_a_budget_above_the_maximum_is_refused(harbour: Memory) -> None:
    with pytest.raises(InvalidInput, match="128,000"):
        harbour.context("harbour", budget_tokens=128_001)


def test_a_question_about_nothing_remembered_brings_permanent_rules_and_few_lines(harbour: Memory) -> None:
    lasting = committed_record(harbour.remember("Never moor at pier 7", kind="rule", stability="permanent"))
    committed_record(harbour.remember("Ask before you dredge", kind="rule"))
    made = harbour.context(NOTHING)
    shown = [item.id for section in made.sections for item in section.items]
    assert (shown[0], recalled(made) <= 3) == (lasting.id, True)


def test_receipt_is_small_and_counts_unnamed_candidates(harbour: Memory) -> None:
    made = harbour.context(NOTHING)
    stored = harbour.receipt(made.receipt.id)
    del stored["explanation"]
    named = len(stored["excluded"]) + sum(len(section["items"]) for section in stored["sections"])
    size = len(zlib.compress(json.dumps(stored).encode()))
    assert size <= 2_000 + 150 * named
    assert sum(stored["unlisted"].values()) > 0


def test_explanation_shows_the_version_of_then_and_of_now(harbour: Memory) -> None:
    record = committed_record(harbour.remember("Ana moors at pier four", tier="archival"))
    made = harbour.context("Where does Ana moor?")
    committed_record(harbour.revise(record.id, "Ana moors at pier nine", reason="she moved"))
    explanation = harbour.receipt(made.receipt.id)["explanation"]
    found = next(each for each in explanation["candidates"] if each["id"] == record.id)
    first = harbour.history(record.id)[0].commit.id
    assert (found["text"], found["now"], found["version"], found["commit"]) == (
        "Ana moors at pier four",
        "Ana moors at pier nine",
        1,
        first,
    )


# --- Explanations: a context cut by memory with a reason for each candidate, what moved a hit, and the list of receipts


QUESTION = "What does the bakery say about bread?"


@pytest.fixture
def filled(owner, mem):
    """A store with a block, a proposal, something secret between people, and more bread than a context holds."""
    owner.remember("Ship the ordering app before Easter", tier="core", key="mission")
    for number in range(12):
        mem.remember(f"Bread number {number} takes {number + 3} hours, the bakery says", tier="archival")
    owner.remember("The bakery owes the bank for its bread oven", tier="archival", sensitivity="sensitive")
    quarantined_item(mem.remember("Ship the ordering app before Whitsun", tier="core", key="mission", confidence=0.9))
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
    found = filled.context(QUESTION, budget_tokens=160, preview=True).explanation.candidates
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
    said = ("Rye bread takes three hours", "Bread that takes hours rises in the warm kitchen")
    filled.add([{"role": "user", "content": text} for text in said], session="kitchen", extract=False)
    hits = filled.recall("How many hours does rye bread take?")
    assert all(hits[0].parts[name] > 0 for name in ("cover", "meaning", "cosine"))
    # Only a better hit of the same session adds to one.
    assert (hits[0].parts["session"], max(hit.parts["session"] for hit in hits) > 0) == (0, True)


def test_an_erased_memory_is_named_without_its_words(filled):
    record = committed_record(filled.remember("Mira Okafor buys rye bread", tier="archival"))
    receipt = filled.context("Who buys rye bread?").receipt.id
    filled.erase(filled.plan_erase(record.id).digest, record.id)
    explanation = filled.receipt(receipt)["explanation"]
    found = next(each for each in explanation["candidates"] if each["id"] == record.id)
    assert (found["text"], found["section"], "Mira" in repr(explanation)) == ("", "recalled", False)
    assert [part["text"].endswith("[erased]") for part in explanation["parts"] if part["id"] == record.id] == [True]


# --- What people wrote keeps its place in a context, however sure an agent is of its own notes


RULE = "Always ask Ana before a payment"


def crowded(owner: Memory, mem: Memory) -> list[str]:
    """Write three states and a rule of the owner, then 70 keyed notes of an agent that claims to be certain."""
    owners = [
        committed_record(owner.remember(f"The {each} stays closed", kind="state", key=each, tier="working")).id
        for each in "abc"
    ]
    owners.append(committed_record(owner.remember(RULE, kind="rule", stability="permanent", tier="archival")).id)
    for number in range(70):
        text = f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6
        mem.remember(text, kind="state", key=f"note-{number}", tier="working", confidence=1.0, source="user")
    return owners


@pytest.mark.slow
def test_certain_agent_notes_displace_no_memory_of_a_person(owner: Memory, mem: Memory) -> None:
    owners = crowded(owner, mem)
    context = owner.context("which payment")
    assert {item.id for section in context.sections for item in section.items} >= {*owners}
    assert RULE in context.text
    assert owner.replay(context.receipt.id).text == context.text


@pytest.mark.slow
def test_what_a_person_wrote_and_fell_out_is_reported(owner: Memory, mem: Memory) -> None:
    owners = crowded(owner, mem)
    context = owner.context("which payment", budget_tokens=40)
    lost = [each.id for each in context.excluded if each.id in owners and each.reason.code == "budget"]
    assert lost
    notes = [note for note in context.notes if "a person wrote" in note]
    assert all(each in notes[0] for each in lost)


@pytest.mark.parametrize(
    "budget", [250, *(pytest.param(n, marks=pytest.mark.slow) for n in (400, 1_000, 2_000, 4_000))]
)
def test_notes_of_an_agent_leave_room_for_a_persons_tail(owner: Memory, mem: Memory, budget: int) -> None:
    owners = [*crowded(owner, mem), committed_record(owner.remember("The task: pay the crane bill", tier="working")).id]
    owners.append(committed_record(owner.remember("Bo pays the crane bill on Fridays")).id)
    context = owner.context("who pays the crane bill", budget_tokens=budget)
    assert {item.id for section in context.sections for item in section.items} >= {*owners}


def spent_by_agents(context: CompiledContext, owners: list[str]) -> int:
    fixed = (section for section in context.sections if section.name in {"pinned", "state", "working"})
    return sum(item.tokens for section in fixed for item in section.items if item.id not in owners)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [400, 1_000, 2_000])
def test_agent_notes_use_at_most_half_of_contested_room(owner: Memory, mem: Memory, budget: int) -> None:
    owners = crowded(owner, mem)
    for number in range(40):
        said = (
            f"Crane bill {number}: " + f"Bo pays the crane bill number {number} on Fridays in the yard of Leeds. " * 3
        )
        owners.append(committed_record(owner.remember(said)).id)
    context = owner.context("who pays the crane bill", budget_tokens=budget)
    assert 0 < spent_by_agents(context, owners) <= budget // 2
    assert owner.replay(context.receipt.id).text == context.text


@pytest.mark.slow
def test_working_notes_of_an_agent_leave_half_of_the_tail(owner: Memory, mem: Memory) -> None:
    for number in range(70):
        mem.remember(f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6, tier="working")
    said = [
        committed_record(owner.remember(f"Crane bill {n}: Bo pays bill {n} of the crane on day {n}")).id
        for n in range(20)
    ]
    context = owner.context("who pays the crane bill")
    assert {item.id for section in context.sections for item in section.items} >= {*said}


@pytest.mark.slow
def test_an_agent_alone_uses_all_of_a_budget(mem: Memory) -> None:
    for number in range(70):
        text = f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6
        mem.remember(text, kind="state", key=f"note-{number}", tier="working")
        mem.remember(f"Found {number}: the crane at pier {number} was painted")
    context = mem.context("which crane was painted", budget_tokens=1_000)
    assert spent_by_agents(context, []) > 850


# --- Old receipts of contexts are reduced to what a replay needs, and still give back the same bytes


ASKED = "ships in the harbour"


def fill(memory: Memory) -> None:
    """Keep more memories than a context of a small budget holds."""
    committed_record(memory.remember("The harbour opens at six", tier="working"))
    committed_record(memory.remember("Ships have right of way in the harbour", stability="permanent", tier="archival"))
    for number in range(60):
        committed_record(memory.remember(f"Pier {number} of the harbour holds {number + 3} ships", tier="archival"))


def compact(memory: Memory) -> int:
    """Run the job now; return how many receipts it compacted."""
    run = memory.run_job("compact_receipts", force=True)
    assert run.outcome == "run", run.why
    return run.counts["receipts"]


@pytest.mark.promise("C79", "C84", "C87")
def test_a_compacted_receipt_replays_the_same_bytes(owner: Memory, clock: Any) -> None:
    fill(owner)
    seen = owner.context(ASKED, budget_tokens=400)
    whole = owner.receipt(seen.receipt.id)
    for record in owner.list_memories(limit=None):
        committed_record(owner.revise(record.id, f"{record.text}, as of late", reason="later"))
    clock.move(days=91)
    assert compact(owner) == 1
    left = owner.receipt(seen.receipt.id)
    again = owner.replay(seen.receipt.id)
    assert (again.text, again.same, again.missing) == (seen.text, True, ())
    assert (left["context_id"], left["compacted_at"]) == (seen.context_id, clock.now().isoformat())
    assert whole["excluded"]
    assert left.keys() == whole.keys() - {"excluded", "unlisted", "signals", "tokens_by_tier"} | {"compacted_at"}
    held = [[(item["id"], item["version"]) for item in part["items"]] for part in whole["sections"]]
    assert [[(item["id"], item["version"]) for item in part["items"]] for part in left["sections"]] == held
    assert {name for part in left["sections"] for item in part["items"] for name in item} <= {
        *("id", "version", "tier", "masks", "block", "weak")
    }
    sizes = [len(json.dumps({**each, "explanation": None})) for each in (left, whole)]
    assert sizes[0] < sizes[1] / 2
    assert owner.verify().ok
    assert "".join(part["text"] for part in left["explanation"]["parts"]) == seen.text


def test_only_receipts_of_old_contexts_are_compacted_and_once(owner: Memory, clock: Any) -> None:
    fill(owner)
    recall = owner.recall(ASKED, receipt=True)
    contexts = [owner.context(ASKED).receipt.id for _ in range(3)]
    clock.move(days=89)
    assert compact(owner) == 0
    late = owner.context(ASKED).receipt.id
    clock.move(days=1)
    assert (compact(owner), compact(owner)) == (3, 0)
    assert ["compacted_at" in owner.receipt(each) for each in (*contexts, late)] == [True, True, True, False]
    assert "compacted_at" not in owner.receipt(str(recall.receipt))


def test_a_receipt_with_feedback_stays_complete(owner: Memory, clock: Any) -> None:
    fill(owner)
    seen = owner.context(ASKED)
    used = [item.id for section in seen.sections for item in section.items if section.name == "recalled"]
    owner.feedback(seen.receipt.id, used=used[:1])
    before = owner.receipt(seen.receipt.id)
    clock.move(days=91)
    assert (compact(owner), owner.receipt(seen.receipt.id)) == (0, before)


def test_the_policy_says_when_receipts_are_compacted(opened: Callable[..., Memory], clock: Any) -> None:
    policy = Policy(compact_receipts_after=timedelta(days=2))
    with opened("early", policy=policy, actor=Actor.operator("olga")) as memory:
        fill(memory)
        memory.context(ASKED)
        clock.move(days=2)
        assert compact(memory) == 1


def test_a_damaged_receipt_is_not_compacted(owner: Memory, clock: Any) -> None:
    fill(owner)
    name = owner.context(ASKED).receipt.id
    tamper.bend_receipt(owner.path, name, b'"version":1', b'"version":2')
    clock.move(days=91)
    with pytest.raises(Tampered):
        owner.receipt(name)
    assert (compact(owner), owner.verify().ok) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, 1_000])
def test_receipt_size_is_bounded_per_candidate(owner: Memory, count: int) -> None:
    names = ("harbour", "pier", "ship", "crane", "depot")
    texts = [f"The {names[n % 5]} number {n} of the harbour holds {n * 7} crates of tea" for n in range(count)]
    owner.remember_many([{"text": text, "tier": "archival"} for text in texts])
    for budget in (2_000, 16_000):
        receipt = owner.receipt(owner.context("which crates are in the harbour", budget_tokens=budget).receipt.id)
        named = len(receipt["excluded"]) + sum(len(part["items"]) for part in receipt["sections"])
        with closing(sqlite3.connect(owner.path)) as connection:
            query = "SELECT length(body) FROM documents WHERE id = ?"
            (size,) = connection.execute(query, (receipt["id"],)).fetchone()
        assert named >= 30
        assert size <= 2_000 + 150 * named
