"""Erasing: no trace in any file, a chain that still holds, and no way back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from outcomes import brought_back, codes, committed_record, quarantined_item, refused

from keepward import Actor, Memory
from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.interchange import load, write_vault
from keepward.storage import documents
from keepward.storage.driver import SqliteConnection
from support import tamper

#: What may not be found afterwards: a text, what it becomes on revision, and words of both.
FIRST = "Ana's private number is 7741 quokkablue"
SECOND = "Ana's private number is 9932 wombatred"
WORDS = ("7741 quokka", "quokkablue", "9932 wombat", "wombatred", "quokkablu", "quokka-reason", "quokkatag")


def files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (each for each in sorted(folder.rglob("*")) if each.is_file())


def traces(folder: Path, words: tuple[str, ...] = WORDS) -> list[tuple[str, str]]:
    """Return (word, file) wherever a word stands, as UTF-8 or UTF-16, in either case."""
    found = []
    for file in files(folder):
        raw = file.read_bytes().lower()
        for word in words:
            forms = {word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be")}
            if any(form in raw for form in forms):
                found.append((word, file.name))
    return found


def erased(owner: Memory, *ids: str, **chosen: str) -> str:
    """Erase as planned; return the id of the commit."""
    plan = owner.plan_erase(ids, **chosen)
    return owner.erase(plan.digest, ids, **chosen).commit.id


@pytest.fixture
def number(owner: Memory) -> str:
    """A memory of two versions, said with a reason and tags of its own."""
    record = committed_record(
        owner.remember(
            FIRST, tier="archival", subject="ana", tags=["quokkatag"], aliases=["chat:9"], reason="heard: quokka-reason"
        )
    )
    owner.revise(record.id, SECOND, reason="a new one: wombatred")
    return record.id


@pytest.fixture
def other(owner: Memory) -> str:
    return committed_record(owner.remember("Deploys happen on Tuesdays", tier="archival")).id


@pytest.mark.promise("F14")
def test_erased_text_and_its_words_are_in_no_file(owner, number, other, tmp_path):
    owner.context("what is the private number of Ana")
    assert traces(tmp_path)
    erased(owner, number)
    assert traces(tmp_path) == []


@pytest.mark.promise("F14")
def test_a_receipt_loses_its_quote_of_an_erased_text(owner, number):
    text = owner.get(number).text
    asked = owner.recall(text, kinds=["event"], receipt=True)
    assert (text in str(owner.receipt(asked.receipt)), len(asked.hits)) == (True, 0)
    erased(owner, number)
    assert text not in str(owner.receipt(asked.receipt))


@pytest.mark.promise("F14")
def test_terms_and_vectors_of_erased_memories_are_in_no_file(owner, number, tmp_path):
    with sqlite3.connect(f"file:{owner.path}?mode=ro", uri=True) as db:
        terms, vectors, digest = db.execute(
            "SELECT terms, vectors, digest FROM features WHERE id = ?", (number,)
        ).fetchone()
    db.close()
    erased(owner, number)
    raw = b"".join(file.read_bytes() for file in files(tmp_path))
    assert [part for part in (terms, vectors, digest) if part in raw] == []


@pytest.mark.promise("F14")
def test_erasure_also_clears_free_pages_of_the_file(owner, number, tmp_path):
    # SQLite overwrites the cell that it deletes and not where that cell stood before; a plain writer leaves as much.
    tamper.run(owner.path, *tamper.TEXT_IN_FREE_PAGES)
    erased(owner, number)
    assert traces(tmp_path) == []


def test_verify_is_complete_after_an_erasure(owner, number, other):
    owner.context("private number")
    erased(owner, number)
    assert owner.verify().faults == ()


def test_erased_memory_is_in_no_recall_context_or_list(owner, number, other):
    erased(owner, number)
    found = [hit.memory.id for hit in owner.recall("private number of Ana").hits]
    listed = [record.id for record in owner.list_memories()]
    assert (number in found, number in listed, "Ana" in owner.context("private number of Ana").text) == (False,) * 3


def test_another_open_handle_forgets_at_its_next_recall(owner, number, entering):
    reader = entering()
    assert reader.recall("private number wombatred").hits
    erased(owner, number)
    assert reader.recall("private number wombatred").hits == ()


def test_history_shows_the_versions_as_erased(owner, number):
    erased(owner, number)
    shown = [(each.op, each.record.status.value, each.record.text) for each in owner.history(number)]
    assert shown == [("insert", "erased", ""), ("replace", "erased", ""), ("erase", "erased", "")]


def test_past_state_no_longer_contains_erased_content(owner, number, other):
    erased(owner, number)
    assert [record.id for record in owner.list_memories(as_of=3)] == [other]


def test_search_of_the_past_forgets_erased_content_as_a_new_process_does(owner, number, other, entering):
    def scores(memory):
        return [(hit.memory.id, hit.score) for hit in memory.recall("what does the service deploy?", as_of=3)]

    before = scores(owner)
    erased(owner, number)
    assert number in dict(before)
    assert scores(owner) == scores(entering(Actor.operator("olga")))


def test_log_still_names_the_author_of_an_erased_reason(owner, number):
    erased(owner, number)
    assert [(view.details.actor, view.details.reason) for view in owner.log()] == [
        ("operator:olga", "request"),
        ("operator:olga", "[erased]"),
        ("operator:olga", "[erased]"),
    ]


def test_planning_changes_no_byte(owner, number, tmp_path):
    before = {file: file.read_bytes() for file in files(tmp_path) if not file.name.endswith("-shm")}
    owner.plan_erase([number])
    assert {file: file.read_bytes() for file in files(tmp_path) if not file.name.endswith("-shm")} == before


def test_a_plan_is_void_once_its_target_has_changed(owner, number):
    plan = owner.plan_erase([number])
    owner.revise(number, "Ana has no number", reason="cancelled")
    with pytest.raises(Conflict):
        owner.erase(plan.digest, [number])
    assert owner.get(number).text == "Ana has no number"


def test_plan_is_void_after_a_context_contained_its_target(owner, number):
    plan = owner.plan_erase([number])
    owner.context("private number")
    with pytest.raises(Conflict):
        owner.erase(plan.digest, [number])


def test_a_commit_elsewhere_does_not_void_a_plan(owner, number):
    plan = owner.plan_erase([number])
    owner.remember("Deploys happen on Tuesdays", tier="archival")
    assert owner.erase(plan.digest, [number]).plan.digest == plan.digest


def test_a_reason_is_a_code_so_that_it_repeats_nothing(owner, number):
    with pytest.raises(InvalidInput):
        owner.plan_erase([number], reason="Ana asked for it")


def test_summary_that_repeats_the_text_goes_others_are_listed(owner, number, other):
    copy = committed_record(
        owner.remember(f"Note: {SECOND}, deploys weekly", tier="archival", derived_from=[number, other])
    )
    own = committed_record(owner.remember("One guest can be reached by phone", tier="archival", derived_from=[number]))
    plan = owner.plan_erase([number])
    assert ({each.id: each.why for each in plan.targets}, plan.derived) == (
        {number: "named", copy.id: "copy"},
        (own.id,),
    )


@pytest.fixture
def ramipril(owner: Memory) -> tuple[str, str]:
    """Ids of a message about Ana and of a fact that cites it and names no subject."""
    message = committed_record(owner.remember("I take it each morning, says Ana", kind="event", subject="ana")).id
    fact = committed_record(owner.remember("Ana takes Ramipril every morning", tier="archival", evidence=[message])).id
    return message, fact


def test_plan_shows_citations_of_an_erased_memory_with_text(owner, ramipril):
    message, fact = ramipril
    plan = owner.plan_erase(subject="ana")
    shown = [(each.id, each.why, each.text) for each in plan.candidates]
    assert (shown, [(each.id, each.text) for each in plan.targets]) == (
        [(fact, "cites", "Ana takes Ramipril every morning")],
        [(message, "I take it each morning, says Ana")],
    )
    assert all(text in str(plan) for text in ("Ana takes Ramipril every morning", "I take it each morning"))


def test_include_citing_takes_citing_memories_along(owner, ramipril, tmp_path):
    message, fact = ramipril
    second = committed_record(owner.remember("A note on blood pressure", tier="archival", evidence=[fact])).id
    plan = owner.plan_erase(subject="ana", include_citing=True)
    done = owner.erase(plan.digest, subject="ana", include_citing=True)
    assert ({each.id: each.why for each in plan.targets}, plan.candidates) == (
        {message: "named", fact: "cites", second: "cites"},
        (),
    )
    assert traces(tmp_path, ("ramipril", "blood pressure")) == []
    assert {each.text for each in done.plan.targets} == {""}


def test_include_citing_is_part_of_the_digest(owner, ramipril):
    plan = owner.plan_erase(subject="ana", include_citing=True)
    with pytest.raises(Conflict):
        owner.erase(plan.digest, subject="ana")
    assert [owner.get(name).status.value for name in ramipril] == ["active", "active"]


def test_a_citing_memory_stays_when_it_is_not_taken_along(owner, ramipril):
    erased(owner, subject="ana")
    assert [owner.get(name).status.value for name in ramipril] == ["erased", "active"]


def test_a_new_citing_memory_voids_the_plan(owner, ramipril):
    plan = owner.plan_erase(subject="ana")
    committed_record(owner.remember("Ana sleeps well", tier="archival", evidence=[ramipril[0]]))
    with pytest.raises(Conflict):
        owner.erase(plan.digest, subject="ana")


def test_plan_hides_sensitive_text_without_the_right(owner, ramipril, entering):
    committed_record(owner.remember("Ana has diabetes", evidence=[ramipril[0]], sensitivity="sensitive", consent=True))
    eraser = entering(replace(Actor.operator("erin"), can=frozenset({"read", "erase"})))
    shown = [each.text for each in eraser.plan_erase(subject="ana").candidates]
    assert (len(shown), [text for text in shown if "diabetes" in text]) == (2, [])


@pytest.mark.parametrize("text", [SECOND.upper(), f"  {SECOND}.", SECOND.replace("'", "’")])
def test_a_copy_in_other_capitals_or_signs_goes_with_it(owner, number, tmp_path, text):
    copy = committed_record(owner.remember(text, tier="archival", scope="/agents/orion"))
    erased(owner, number)
    assert (owner.get(copy.id).status.value, traces(tmp_path)) == ("erased", [])


def test_a_plan_leaves_out_notes_that_repeat_the_words(owner, number):
    note = committed_record(owner.remember(f"Olga wrote down: {SECOND}, in blue ink", tier="archival"))
    plan = owner.plan_erase([number])
    assert (plan.candidates, [target.id for target in plan.targets]) == ((), [number])
    owner.erase(plan.digest, [number])
    assert [hit.memory.id for hit in owner.recall(SECOND)][:1] == [note.id]


def test_a_citation_that_was_replaced_no_longer_counts(owner, ramipril):
    message, fact = ramipril
    other = committed_record(owner.remember("Ana was at the doctor", kind="event")).id
    with owner.draft(reason="cited wrongly") as draft:
        draft.replace(fact, "Ana takes Ramipril at noon", evidence=[other])
    assert (owner.plan_erase([message]).candidates, owner.plan_erase([other]).candidates[0].id) == ((), fact)


def test_what_another_user_said_stays_and_is_listed(owner):
    ana, bo = owner.user("ana"), owner.user("bo")
    mine, other = committed_record(ana.remember("I live in Porto")), committed_record(bo.remember("I live in Porto"))
    plan = ana.erase()
    assert [target.id for target in plan.targets] == [mine.id]
    assert [(each.id, each.why) for each in plan.candidates] == [(other.id, "quotes")]
    ana.erase(plan.digest)
    assert (owner.get(mine.id).status.value, bo.get(other.id).text) == ("erased", "I live in Porto")
    assert bo.remember("I live in Porto too, by the sea").outcome == "committed"


def test_an_erasure_takes_copies_of_the_same_user_only(owner):
    ana, bert = owner.user("ana"), owner.user("bert")
    first = committed_record(ana.remember(FIRST, tier="archival"))
    copy = committed_record(ana.project("boat").remember(FIRST, tier="archival"))
    other = committed_record(bert.remember(FIRST, tier="archival"))
    erased(owner, first.id)
    assert [owner.get(each.id).status.value for each in (first, copy, other)] == ["erased", "erased", "active"]


def test_a_copy_in_another_scope_goes_with_it(owner, number, tmp_path):
    copy = committed_record(owner.at(scope="/agents/orion").remember(FIRST, tier="archival"))
    erased(owner, number)
    assert (owner.get(copy.id).status.value, traces(tmp_path)) == ("erased", [])


def test_only_the_old_version_that_copied_the_text_is_erased(owner, number, tmp_path):
    living = committed_record(owner.remember(FIRST, tier="archival", scope="/agents/orion"))
    owner.revise(living.id, "Orion keeps no numbers", reason="tidied")
    erased(owner, number)
    texts = [each.record.text for each in owner.history(living.id)]
    assert (texts, traces(tmp_path), owner.verify().ok) == (["", "Orion keeps no numbers"], [], True)


def test_a_complete_subject_can_be_erased(owner, number, other, tmp_path):
    committed_record(owner.remember("Ana likes wombatred paint", tier="archival", subject="ana", scope="/agents/orion"))
    erased(owner, subject="ana")
    assert (traces(tmp_path), [record.id for record in owner.list_memories()]) == ([], [other])


def test_erased_reference_and_its_memories_are_refused_later(owner):
    owner.remember("The page says quokkablue", tier="archival", evidence=["https://a.example/x"])
    erased(owner, source="https://a.example/x")
    again = owner.remember("The page says something else", tier="archival", evidence=["https://a.example/x"])
    assert refused(again) == {"erased"}


def test_nothing_of_that_subject_is_an_error(owner, number):
    with pytest.raises(NotFound):
        owner.plan_erase(subject="bo")
    with pytest.raises(NotFound, match="1 of a subject in other capitals"):
        owner.plan_erase(subject="ANA")


def test_erasing_again_names_the_tombstone(owner, number):
    erased(owner, number)
    with pytest.raises(Conflict, match=number):
        owner.plan_erase([number])


def test_pending_proposal_and_receipt_lose_the_text_with_notice(owner, mem, tmp_path):
    item = quarantined_item(mem.remember(FIRST, tier="core", key="mission"))
    record = committed_record(owner.remember(FIRST, tier="archival"))
    erased(owner, record.id)
    told = [(each.id, each.state, each.steps) for each in mem.notices()]
    assert (traces(tmp_path), told) == ([], [(item.id, "rejected", ())])


def test_what_was_approved_before_leaves_no_digest_to_guess_from(owner, mem):
    item = quarantined_item(mem.remember(FIRST, tier="core", key="mission"))
    done = owner.approve(item.id)
    erased(owner, committed_record(done).id)
    raw = Path(owner.path).read_bytes()
    assert item.digest.encode() not in raw


def test_no_digest_over_a_context_that_contained_it_is_left(owner, number, tmp_path):
    context = owner.context("private number")
    digests = {context.context_id, context.prefix_digest, context.tail_digest}
    digests |= {section.digest for section in context.sections if section.items}
    digests |= {hashlib.sha256(context.text.encode()).hexdigest()}
    empty = hashlib.sha256(b"").hexdigest()
    erased(owner, number)
    raw = b"".join(file.read_bytes() for file in files(tmp_path))
    assert [each for each in digests - {empty} if each.encode() in raw] == []


def test_a_stored_document_that_repeats_it_goes(owner, number, tmp_path, entering):
    user_file = tmp_path / "USER.md"
    user_file.write_text(f"About me\n\n{SECOND}\n")
    reader = entering(Actor.agent("reader"), user_file=user_file)
    context = reader.context("anything at all")
    erased(owner, number)
    user_file.unlink()
    assert (traces(tmp_path), owner.replay(context.receipt.id).missing) == ([], (("user_file", 0), (number, 2)))


def test_replay_shows_a_tombstone_and_the_rest_unchanged(owner, number):
    owner.remember("Ship the app before Easter", tier="core", key="mission")
    context = owner.context("private number")
    erased(owner, number)
    again = owner.replay(context.receipt.id)
    assert (again.same, again.missing, again.unchanged) == (False, ((number, 2),), ("core",))
    assert again.text == context.text.replace(f"[fact] {SECOND} (2026-03-01)", "[erased]")


@pytest.mark.promise("T12", "T14")
def test_rollback_omits_erased_content_and_its_receipt_says_so(owner, number, other, tmp_path):
    with owner.draft(reason="tidy up") as draft:
        draft.replace(number, "Ana has no number")
        draft.replace(other, "Deploys happen on Fridays")
    commit = owner.log(limit=1)[0].commit.id
    erased(owner, number)
    done = owner.rollback(commit)
    assert done.receipt is not None
    told = [reason["code"] for reason in owner.receipt(done.receipt.id)["reasons"]]
    assert (owner.get(other).text, owner.get(number).text, told) == ("Deploys happen on Tuesdays", "", ["erased"])
    assert traces(tmp_path) == []


@pytest.mark.promise("T12", "T14")
def test_rollback_of_only_erased_content_changes_nothing(owner, number):
    erased(owner, number)
    done = owner.rollback("2")
    assert (done.applied, [reason.code for reason in done.reasons], done.receipt is not None) == (
        False,
        ["erased"],
        True,
    )


def test_an_erasure_cannot_be_rolled_back(owner, number):
    commit = erased(owner, number)
    with pytest.raises(Conflict):
        owner.rollback(commit)


@pytest.mark.parametrize("verb", ["restore", "revise", "append", "reinforce", "promote", "forget"])
def test_no_verb_brings_an_erased_memory_back(owner, number, verb):
    erased(owner, number)
    verbs = {
        "restore": lambda: owner.restore(number, reason="back"),
        "revise": lambda: owner.revise(number, "again", reason="back"),
        "append": lambda: owner.append(number, "again", reason="back"),
        "reinforce": lambda: owner.reinforce(number),
        "promote": lambda: owner.promote(number, "again", reason="back"),
        "forget": lambda: owner.forget(number, reason="back"),
    }
    with pytest.raises(Conflict):
        verbs[verb]()


@pytest.mark.promise("T12", "T13")
@pytest.mark.parametrize("text", [FIRST, SECOND, f"  {FIRST}.", FIRST.replace("'", "’")])
def test_erased_text_is_refused_from_everyone_and_names_its_tombstone(owner, mem, number, text):
    erased(owner, number)
    for handle in (owner, mem, mem.at(scope="/agents/orion")):
        outcome = handle.remember(text, tier="archival")
        assert refused(outcome) == {"erased"}
        assert number in outcome.reasons[0].detail


@pytest.mark.promise("T12", "T13")
def test_edit_of_another_memory_cannot_restore_erased_text(owner, number, other):
    erased(owner, number)
    assert refused(owner.revise(other, FIRST, reason="sneaky")) == {"erased"}


@pytest.mark.promise("T12", "T13")
def test_a_foreign_name_that_was_erased_is_not_taken_again(owner, number):
    erased(owner, number)
    assert refused(owner.remember("Something new", tier="archival", aliases=["chat:9"])) == {"erased"}


def test_a_refusal_of_what_was_erased_leaves_no_trace(owner, number, tmp_path):
    erased(owner, number)
    owner.remember(FIRST, tier="archival", reason="quokka-reason")
    assert traces(tmp_path) == []


def test_fact_with_another_number_is_not_taken_as_erased(owner, number):
    erased(owner, number)
    assert committed_record(owner.remember("Ana's private number is 7742 quokkablue", tier="archival")).version == 1


def test_the_names_of_tombstones_cannot_be_given_to_a_memory(owner, number):
    erased(owner, number)
    stolen = owner.get(number).aliases
    assert "reserved" in codes(owner.remember("Something new", tier="archival", aliases=[stolen[0]]))


@pytest.mark.promise("T12", "T13")
def test_an_import_does_not_bring_the_text_back(owner, number, tmp_path):
    erased(owner, number)
    notes = tmp_path / "notes.md"
    notes.write_text(f"# Notes\n\n- {FIRST}\n- Tea is in the left cupboard\n")
    done = load(owner, notes)
    notes.unlink()
    assert (done.refused, traces(tmp_path)) == (1, [])


@pytest.mark.promise("T12", "T13")
def test_older_export_with_erased_text_is_not_restored(owner, number, opened, tmp_path):
    vault = tmp_path / "old.jsonl"
    write_vault(owner, vault)
    erased(owner, number)
    with opened("fresh", actor=Actor.operator("olga")) as fresh:
        with pytest.raises(Conflict, match=number):
            brought_back(fresh, vault)
        assert fresh.list_memories() == []


@pytest.mark.promise("T12", "T13")
def test_an_approval_does_not_bring_the_text_back(owner, mem, number, opened, tmp_path):
    item = quarantined_item(mem.remember("Ana's private number is 7741  quokkablue", tier="core", key="mission"))
    erased(owner, number)
    with pytest.raises(Conflict):
        owner.approve(item.id)
    assert traces(tmp_path) == []


@pytest.mark.promise("T12", "T13")
def test_an_approval_does_not_take_an_erased_name_again(owner, mem, number):
    item = quarantined_item(mem.remember("Ship before Easter", tier="core", key="mission", aliases=["chat:9"]))
    erased(owner, number)
    with pytest.raises(Conflict, match=number):
        owner.approve(item.id)


def test_a_proposal_that_comes_in_while_erasing_voids_the_plan(number, owner, entering, tmp_path):
    slow = entering(Actor.operator("olga"))
    plan = slow.plan_erase([number])
    write = slow._engine.store.write

    def late():
        slow._engine.store.write = write
        entering(Actor.agent()).remember(SECOND, tier="core", key="mission")
        return write()

    slow._engine.store.write = late
    with pytest.raises(Conflict):
        slow.erase(plan.digest, [number])
    assert owner.get(number).text == SECOND
    erased(owner, number)
    assert traces(tmp_path) == []


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first words of every statement, in order; ``run_many`` is one."""
    told: list[str] = []
    run, many = SqliteConnection.execute, SqliteConnection.executemany

    def execute(self: SqliteConnection, text: str, *values: Any) -> Any:
        told.append(text[:15])
        return run(self, text, *values)

    def executemany(self: SqliteConnection, text: str, rows: Any) -> Any:
        told.append(text[:15])
        return many(self, text, rows)

    monkeypatch.setattr(SqliteConnection, "execute", execute)
    monkeypatch.setattr(SqliteConnection, "executemany", executemany)
    return told


def written(told: list[str]) -> list[str]:
    """Return the statements of the first transaction that writes."""
    return told[told.index("BEGIN IMMEDIATE") + 1 : told.index("COMMIT")]


@pytest.mark.parametrize("many", [2, 300])
def test_a_user_is_erased_by_few_statements_whatever_was_said(owner, statements, many):
    ana = owner.user("ana")
    told = [
        {"text": f"Ana's number {n} is {n * 7919}", "tier": "archival", "evidence": ["mail:7"]} for n in range(many)
    ]
    assert {outcome.outcome for outcome in ana.remember_many(told)} == {"committed"}
    ana.context("Ana's number")
    committed_record(owner.user("bo").remember("Ana's number 1 is 7919"))
    statements.clear()
    plan = ana.erase()
    planned = list(statements)
    statements.clear()
    ana.erase(plan.digest)
    assert (len(plan.targets), len(plan.candidates)) == (many, 1)
    assert (planned.count("BEGIN"), len(planned) <= 30, len(written(statements)) <= 30) == (1, True, True)
    assert len(statements) < 110


@pytest.mark.parametrize("asked", [[], ["when are deploys"], ["when are deploys", SECOND]])
def test_within_the_transaction_only_new_receipts_are_unpacked(owner, number, other, monkeypatch, asked):
    unpacked: list[bytes] = []
    unpack, write = documents.decompress_body, owner._engine.store.write
    for query in ("when are deploys", "deploys on which day", "private number"):
        owner.recall(query, limit=1, receipt=True)
    plan = owner.plan_erase([number])
    shown = [each for each in plan.receipts if owner.receipt(each)["kind"] == "recall"]

    def late(**options: Any) -> Any:
        owner._engine.store.write = write
        for query in asked:
            owner.recall(query, limit=1, kinds=["event"], receipt=True)
        unpacked.clear()
        return write(**options)

    def counted(body: bytes) -> bytes:
        unpacked.extend([body] if body[:1] == b"x" else [])
        return unpack(body)

    monkeypatch.setattr(documents, "decompress_body", counted)
    owner._engine.store.write = late
    if SECOND in asked:
        # The new receipt repeats the text, so the plan lacks it.
        with pytest.raises(Conflict):
            owner.erase(plan.digest, [number])
    else:
        owner.erase(plan.digest, [number])
    assert len(shown) == 1
    assert len(unpacked) == (len(asked) + len(shown) if asked else 0)


def test_a_tombstone_says_nothing_without_the_key_of_this_machine(owner, number, tmp_path):
    erased(owner, number)
    normal = FIRST.encode()
    raw = Path(owner.path).read_bytes()
    plain = (hashlib.sha256(form).digest() for form in (normal, normal.lower()))
    assert [each for each in plain if each in raw or each[:16] in raw or each.hex().encode() in raw] == []


def test_export_restores_erased_versions_without_content(owner, number, other, opened, tmp_path):
    owner.context("private number")
    erased(owner, number)
    vault = tmp_path / "vault.jsonl"
    write_vault(owner, vault)
    with opened("fresh", actor=Actor.operator("olga")) as fresh:
        brought_back(fresh, vault)
        whole = fresh.verify()
        assert (whole.faults, fresh.log(limit=1)[0].commit.hash) == ((), owner.log(limit=1)[0].commit.hash)
        assert refused(fresh.remember(FIRST, tier="archival")) == {"erased"}
    assert traces(tmp_path) == []


def test_content_that_is_put_back_is_noticed(owner, number, path):
    ((salt, payload),) = tamper.rows(path, "SELECT salt, payload FROM events WHERE seq = 1")
    erased(owner, number)
    tamper.edit(path, "events", "salt = ?, payload = ?", "seq = 1", (salt, payload))
    faults = owner.verify().faults
    assert [(fault.row, fault.detail) for fault in faults] == [
        ("events default/1/0", "its content was erased and is here again")
    ]


def test_content_that_is_taken_away_without_an_erasure_is_noticed(owner, number, path):
    tamper.edit(path, "events", "salt = NULL, payload = NULL", "seq = 1")
    assert "no erasure names it" in owner.verify().faults[0].detail
    past = owner.history(number)
    assert ([each.record.version for each in past], past.damaged) == ([2], (1,))


def test_missing_version_of_a_living_memory_needs_an_erasure(owner, number, path):
    living = committed_record(owner.remember(FIRST, tier="archival", scope="/agents/orion")).id
    owner.revise(living, "Orion keeps no numbers", reason="tidied")
    owner.revise(living, "Orion keeps no notes", reason="tidied")
    erased(owner, number)
    texts = [each.record.text for each in owner.history(living)]
    assert texts == ["", "Orion keeps no numbers", "Orion keeps no notes"]
    with sqlite3.connect(path) as db:
        db.execute("UPDATE events SET salt = NULL, payload = NULL WHERE memory_id = ? AND version = 2", (living,))
    db.close()
    past = owner.history(living)
    assert ([each.record.text for each in past], past.damaged) == (["", "Orion keeps no notes"], (2,))


def test_a_forged_row_of_erasures_excuses_nothing(owner, number, path):
    tamper.run(path, *tamper.FORGED_ERASURE)
    assert {fault.check for fault in owner.verify().faults} >= {"events", "erased", "seals"}


def test_records_recomputed_know_the_tombstone(owner, number, other):
    erased(owner, number)
    owner.rebuild()
    assert (owner.verify().faults, refused(owner.remember(FIRST, tier="archival"))) == ((), {"erased"})


def test_only_an_erasure_has_a_certificate(owner, number):
    for name in (owner.log()[0].commit.id, "0" * 16):
        with pytest.raises(NotFound, match="nothing was erased under that name"):
            owner.certificate(name)


def test_the_certificate_says_what_when_by_whom_and_its_limits(owner, number):
    commit = erased(owner, number, reason="consent")
    told = owner.certificate(number)
    assert (told["by"], told["reason"], told["memories"], told["at"]) == (
        "operator:olga",
        "consent",
        [number],
        "2026-03-01T09:00:00+00:00",
    )
    assert (told["commit"]["id"], told["cleaned"]["versions"], len(told["limits"]) > 3) == (commit, 2, True)


def test_the_certificate_can_be_checked_with_a_hash_library_alone(owner, number):
    erased(owner, number)
    told = json.loads(json.dumps(owner.certificate(number)))

    def hashed(label: str, *parts: bytes) -> bytes:
        return hashlib.sha256(f"keepward/{label}/v1".encode() + b"\0" + b"".join(parts)).digest()

    made = told["commit"]
    header = {
        "v": 1,
        "id": made["id"],
        "tenant": told["tenant"],
        "seq": made["seq"],
        "at": made["at"],
        "kind": made["kind"],
        "actor": made["actor_kind"],
        "prev": made["prev"],
        "events": made["events"],
        "payload_commit": hashed("payload", bytes.fromhex(made["salt"]), made["details"].encode()).hex(),
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    named = {f"{seq}.{n}" if n >= 0 else str(seq) for seq, n, _ in told["places"]}
    assert hashed("commit", text).hex() == made["hash"] == owner.log(limit=1)[0].commit.hash.hex()
    assert set(json.loads(made["details"])["erased"]) == named


def test_a_certificate_holds_no_content(owner, number):
    erased(owner, number)
    text = json.dumps(owner.certificate(number)).lower()
    assert [word for word in WORDS if word in text] == []


def test_interrupted_erasure_is_finished_at_the_next_opening(
    owner: Memory, number: str, tmp_path: Path, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = sqlite3.connect(owner.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    monkeypatch.setattr("keepward.storage.sqlite.SCRUB_TIMEOUT_MS", 1)
    erased(owner, number)
    unclean = "not yet" in owner.certificate(number)["cleaned"]["file_and_log"]
    reader.close()
    owner.close()
    with opened("store/memory", actor=Actor.operator("olga")) as again:
        assert (unclean, traces(tmp_path)) == (True, [])
        assert "rewritten" in again.certificate(number)["cleaned"]["file_and_log"]


def test_an_erasure_in_one_tenant_leaves_another_alone(owner, number):
    elsewhere = owner.at(tenant="acme")
    record = committed_record(elsewhere.remember(FIRST, tier="archival"))
    erased(owner, number)
    assert (elsewhere.get(record.id).text, codes(elsewhere.remember(FIRST, tier="archival"))) == (FIRST, {"duplicate"})
