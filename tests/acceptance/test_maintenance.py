"""Maintenance, bookkeeping, and a clock that jumps."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, Committed, Duplicate, Memory, Policy, StaleVersion
from keepward.core.job import SCHEDULES, JobRow
from keepward.core.proposal import Proposal
from keepward.core.reducer import content
from keepward.embedding.hashed import HashedEmbedder
from keepward.errors import Conflict
from keepward.jobs import maintenance
from keepward.jobs.maintenance import MIN_INTERVAL, due_jobs, run_pending
from keepward.retrieval import chunking
from keepward.retrieval.tokenizer import PREFERENCE_TERM, term_hash, unpack_many
from keepward.services.search import features
from keepward.services.writing import staged
from keepward.storage import sqlite as opening

# --- Maintenance: jobs that are due run by themselves, and nobody waits for them


def never() -> bool:
    return False


def receipts(memory: Memory, job: str) -> list[str | None]:
    return [each.last_receipt for each in memory.jobs() if each.name == job]


def ran(memory: Memory) -> set[str]:
    return {each.name for each in memory.jobs() if each.last_at is not None}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread begin as soon as it is woken."""
    monkeypatch.setattr(maintenance, "IDLE_BEFORE_START_S", 0.0)


def over(thread_of: Memory) -> None:
    """Wait until everything that was due has run."""
    patience = threading.Event()
    for _ in range(1000):
        if all(not state.due and state.running_until is None for state in thread_of.jobs()):
            return
        patience.wait(0.01)
    raise AssertionError("the jobs that are due did not run")


def test_due_jobs_run_by_themselves_after_a_write(opened: Callable[..., Memory], quick: None) -> None:
    with opened("store", actor=Actor.operator("olga"), maintenance=True) as mem:
        committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        over(mem)
        assert ran(mem) == set(SCHEDULES)
        receipt = mem.receipt(str(receipts(mem, "expire")[0]))
    assert (receipt["actor"], receipt["asked_by"]) == ("job:expire", "system:maintenance")


def test_automatic_job_does_only_what_policy_allows(opened: Callable[..., Memory], clock: Any, quick: None) -> None:
    with opened("store", actor=Actor.operator("olga")) as mem:
        brief = committed_record(mem.remember("The pump is borrowed until Friday", ttl="1d"))
        lasting = committed_record(mem.remember("The ferry leaves at six"))
    clock.move(days=40)
    with opened("store", actor=Actor.operator("olga"), maintenance=True) as mem:
        over(mem)
        assert mem.get(brief.id).status.value == "expired"
        assert mem.get(lasting.id).status.value in {"active", "archived"}
        assert mem.verify().ok


def test_nothing_runs_where_maintenance_is_off(opened: Callable[..., Memory], quick: None) -> None:
    with opened("store", actor=Actor.operator("olga"), maintenance=False) as mem:
        mem.remember("The ferry leaves at six")
        assert mem._shared.maintenance is None
        assert ran(mem) == set()


def test_custom_clock_or_in_memory_store_starts_nothing_automatically(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Any
) -> None:
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "on")
    given: dict[str, Any] = {"embedder": "none", "config_dir": tmp_path / "config"}
    with Memory.open(tmp_path / "a.db", clock=clock, **given) as mem:
        assert mem._shared.maintenance is None
    with Memory.open(":memory:", **given) as mem:
        assert mem._shared.maintenance is None
    with Memory.open(tmp_path / "b.db", **given) as mem:
        assert mem._shared.maintenance is not None


def test_closing_ends_the_thread(opened: Callable[..., Memory], quick: None) -> None:
    with opened("store", maintenance=True) as mem:
        mem.remember("The ferry leaves at six")
        thread = mem._shared.maintenance._thread
        assert thread.is_alive()
    assert not thread.is_alive()


def test_stopped_run_returns_its_lease_and_stays_due(owner: Memory) -> None:
    owner.remember("The ferry leaves at six", ttl=timedelta(seconds=1))
    owner._engine.clock.move(minutes=5)
    looks = iter([False, False])
    # It is asked before the tenant, before the job, and before what the job proposes.
    run_pending(owner._engine, should_stop=lambda: next(looks, True))
    [expire] = [state for state in owner.jobs() if state.name == "expire"]
    assert (expire.due, expire.running_until, expire.last_at) == (True, None, None)


def test_a_tenant_is_maintained_once_a_minute_for_any_actor(owner: Memory, clock: Any) -> None:
    owner.remember("The ferry leaves at six")
    assert due_jobs(owner._engine, "default") == list(SCHEDULES)
    run_pending(owner._engine, should_stop=never)
    with owner._engine.store.write() as writer:
        writer.put(JobRow(tenant="default", job="expire"))
    assert due_jobs(owner._engine, "default") == []
    clock.move(seconds=MIN_INTERVAL.total_seconds())
    assert due_jobs(owner._engine, "default") == ["expire"]


def test_unclosed_unreferenced_store_leaves_no_thread(opened: Callable[..., Memory], quick: None) -> None:
    memory = opened("store", actor=Actor.operator("olga"), maintenance=True)
    store, thread = memory._engine.store, memory._shared.maintenance._thread
    del memory
    gc.collect()
    thread.join(20)
    store.close()
    assert not thread.is_alive()


def test_two_processes_do_nothing_twice(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=Actor.operator("olga")) as one, opened("store", actor=Actor.operator("olga")) as two:
        one.remember("The ferry leaves at six")
        pair = [
            threading.Thread(target=run_pending, args=(each._engine,), kwargs={"should_stop": never}, daemon=True)
            for each in (one, two)
        ]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join(60)
        kinds = [each for each in one._engine.store.receipts("default") if each["kind"] == "job"]
    assert sorted(each["job"] for each in kinds) == sorted(SCHEDULES)


def test_every_tenant_is_maintained(owner: Memory) -> None:
    owner.remember("The ferry leaves at six")
    owner.at(tenant="other").remember("Tea is served at nine")
    run_pending(owner._engine, should_stop=never)
    assert ran(owner) == ran(owner.at(tenant="other")) == set(SCHEDULES)


def test_where_policy_switched_memory_off_nothing_is_written(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=Actor.operator("olga")) as mem:
        mem.remember("The ferry leaves at six")
    with opened("store", actor=Actor.operator("olga"), policy=Policy(enabled=False)) as mem:
        run_pending(mem._engine, should_stop=never)
        assert ran(mem) == set()


def test_unwritable_store_is_logged_and_retried(
    owner: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from keepward.errors import StoreUnavailable

    def locked(*_: Any, **__: Any) -> None:
        raise StoreUnavailable

    owner.remember("The ferry leaves at six")
    monkeypatch.setattr("keepward.jobs.maintenance.run_job", locked)
    run_pending(owner._engine, should_stop=never)
    assert [each.action for each in caplog.records] == ["maintenance"]


def test_status_shows_last_run_and_next_due_time_per_job(owner: Memory, clock: Any) -> None:
    owner.remember("The ferry leaves at six")
    owner.run_jobs()
    expire = owner.status()["jobs"]["expire"]
    assert expire["last_at"] == clock.now().isoformat()
    assert expire["due_at"] == (clock.now() + timedelta(hours=1)).isoformat()
    assert (expire["last_outcome"], expire["due"]) == ("run", False)


# --- another embedder


class Other(HashedEmbedder):
    """The same vectors under another name."""

    id = "other:64"


def test_change_of_embedder_is_reported_everywhere(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=Actor.operator("olga")) as mem:
        mem.remember("The ferry leaves at six")
        mem.remember("Tea is served at nine")
        before = mem.status()["embedder"]
    with opened("store", actor=Actor.operator("olga"), embedder=Other()) as mem:
        for query in ("ferry", "Boat departures?"):
            assert any("keepward reindex" in note for note in mem.recall(query).notes)
        assert any("keepward reindex" in note for note in mem.context("Boat departures?").notes)
        assert (mem.status()["vectors_pending"], mem.status()["vectors_by_embedder"]) == (2, {before: 2})
        [vectors] = [each for each in mem.doctor() if each.name == "vectors"]
        assert not vectors.ok
        assert "the embedder has changed" in vectors.detail
        assert mem.recall("ferry", floor=0).hits[0].why == ("words",)
        mem.remember("The tide turns at noon")
        assert mem.recall("tide", floor=0).hits[0].why == ("words", "meaning")


def test_open_handle_embeds_by_itself_after_a_change_of_embedder(opened: Callable[..., Memory], quick: None) -> None:
    with opened("store") as mem:
        for n in range(40):
            mem.remember(f"Locker {n} holds rope number {n * 7}")
    with opened("store", actor=Actor.operator("olga"), embedder=Other(), maintenance=True) as mem:
        mem.recall("rope", floor=0)
        over(mem)
        assert mem.status()["vectors_pending"] == 0
        found = mem.recall("rope", floor=0)
        assert found.notes == ()
        assert "meaning" in found.hits[0].why


def test_next_recall_uses_vectors_computed_by_another_process(opened: Callable[..., Memory]) -> None:
    with opened("store") as mem:
        mem.remember("The ferry leaves at six")
    with opened("store", embedder=Other()) as serving:
        assert serving.recall("ferry", floor=0).notes
        with opened("store", actor=Actor.operator("olga"), embedder=Other()) as other:
            assert other.reindex() == 1
        assert serving.recall("ferry", floor=0).hits[0].why == ("words", "meaning")
        assert serving.recall("ferry", floor=0).notes == ()


def test_embedding_that_is_stopped_goes_on_where_it_was(owner: Memory) -> None:
    from dataclasses import replace

    for n in range(40):
        owner.remember(f"Locker {n} holds rope number {n * 7}")
    engine = replace(owner._engine, embedder=Other())
    run_pending(
        engine,
        should_stop=lambda: (
            engine.store.facts("default", engine.clock.now())["vectors_by_embedder"].get("other:64", 0) > 16
        ),
    )
    done = engine.store.facts("default", engine.clock.now())["vectors_by_embedder"]["other:64"]
    assert 16 < done < 40
    engine.clock.move(minutes=2)
    run_pending(engine, should_stop=never)
    assert engine.store.facts("default", engine.clock.now())["vectors_by_embedder"] == {"other:64": 40}


# --- another recipe


@pytest.fixture
def of_old(opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Memory]:
    """A store whose two vectors an earlier release made, by other rules, and one that came with its memory."""
    with opened("store") as mem, monkeypatch.context() as patch:
        patch.setattr(chunking, "EMBEDDING_VERSION", "0")
        patch.setattr(chunking, "sentence_passages", lambda text, **_: ["something else"])
        for text in ("The ferry leaves at six", "Tea is served at nine"):
            committed_record(mem.remember(text, tier="archival"))
        committed_record(
            mem.remember("The tide turns at noon", tier="archival", vector=HashedEmbedder().embed(["tide"])[0].tolist())
        )
    return opened


def test_vectors_of_an_earlier_version_are_compared_until_replaced(
    of_old: Callable[..., Memory],
) -> None:
    with of_old("store", actor=Actor.operator("olga")) as mem:
        found = mem.recall("ferry", floor=0)
        assert (found.hits[0].why, found.notes) == (("words", "meaning"), ())
        assert mem.status()["vectors_pending"] == 2
        [vectors] = [each for each in mem.doctor() if each.name == "vectors"]
        assert (vectors.ok, "2 of them are ranked by what an earlier release computed" in vectors.detail) == (
            False,
            True,
        )


def test_open_handle_recomputes_vectors_of_an_earlier_version(of_old: Callable[..., Memory], quick: None) -> None:
    with of_old("store", actor=Actor.operator("olga"), maintenance=True) as mem:
        before = mem.recall("Tea at nine", floor=0, order="cosine").hits[0].parts["cosine"]
        over(mem)
        assert mem.status()["vectors_pending"] == 0
        found = mem.recall("Tea at nine", floor=0, order="cosine").hits[0]
        assert (found.memory.text, found.parts["cosine"] > before) == ("Tea is served at nine", True)


@pytest.mark.parametrize(("embedder", "given"), [("hashed", False), ("hashed", True), (None, False)])
def test_reindex_recomputes_vectors_but_preserves_user_supplied_ones(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, embedder: str | None, given: bool
) -> None:
    vector = {"vector": HashedEmbedder().embed(["tide"])[0].tolist()} if given else {}
    with opened("store", embedder=embedder, actor=Actor.operator("olga")) as mem:
        with monkeypatch.context() as patch:
            patch.setattr(chunking, "EMBEDDING_VERSION", "2")
            patch.setattr(staged, "PROVIDED", "given")
            patch.setattr(features, "_marker_terms", lambda _: [])
            record = committed_record(mem.remember("Please always answer in French", tier="archival", **vector))

        def marks_and_vectors() -> tuple[bool, bytes]:
            ((_, features),) = mem._context.store.indexed("default")
            terms, *_ = unpack_many([features.terms])
            return term_hash(PREFERENCE_TERM) in terms, features.vectors

        (before, old), done = marks_and_vectors(), (mem.reindex(), mem.reindex())
        after, new = marks_and_vectors()
        assert (before, done, after) == (False, (1, 0), True)
        assert (old == new) or not given
        assert mem.get(record.id).text == record.text


def test_next_recall_uses_vectors_recomputed_by_another_process(of_old: Callable[..., Memory]) -> None:
    with of_old("store") as serving:
        before = serving.recall("Tea at nine", floor=0, order="cosine").hits[0].parts["cosine"]
        with of_old("store", actor=Actor.operator("olga")) as other:
            assert other.reindex() == 2
        assert serving.recall("Tea at nine", floor=0, order="cosine").hits[0].parts["cosine"] > before


# --- the command line


def shell(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    names = {**os.environ, "KEEPWARD_HOME": str(folder / "home"), "KEEPWARD_EMBEDDER": "hashed", **environ}
    names.setdefault("KEEPWARD_DB", str(folder / "store.db"))
    return subprocess.run(
        [sys.executable, "-m", "keepward", *arguments],
        env=names,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )


def statuses(folder: Path, last: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    patience = threading.Event()
    for _ in range(100):
        jobs = json.loads(shell(folder, "status", "--json").stdout)["jobs"]
        if last(jobs):
            return dict(jobs)
        patience.wait(0.1)
    raise AssertionError("the jobs that are due did not run")


@pytest.mark.slow
def test_writing_command_starts_a_process_for_due_jobs(tmp_path: Path) -> None:
    began = time.monotonic()
    done = shell(tmp_path, "remember", "The ferry leaves at six", KEEPWARD_MAINTENANCE="on")
    # Its pipes were closed with it: the process that it left holds none of them.
    assert time.monotonic() - began < 20
    assert "committed" in done.stdout
    statuses(tmp_path, lambda jobs: all(each["last_outcome"] for each in jobs.values()))


@pytest.mark.parametrize(("setting", "named", "used"), [("hashed", "", "hashed"), ("none", "hashed", "hashed")])
def test_process_for_due_jobs_has_the_embedder_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, named: str, used: str
) -> None:
    from keepward.cli import maintenance

    asked: list[Any] = []
    monkeypatch.setattr(maintenance, "run_maintenance", lambda url, **given: asked.append((url, given["embedder"])))
    monkeypatch.setattr("os.nice", lambda _: None)
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "store.db"))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", setting)
    for maintained in ("on", "off"):
        monkeypatch.setenv("KEEPWARD_MAINTENANCE", maintained)
        maintenance.main(named, "")
    assert asked == [(str(tmp_path / "store.db"), used)]


def test_process_for_due_jobs_shares_nothing_with_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from keepward.cli.spawn import spawn_maintenance

    started: list[tuple[list[str], dict[str, Any]]] = []

    def start(command: list[str], **given: Any) -> Any:
        started.append((command, given))
        return SimpleNamespace()

    monkeypatch.setattr(subprocess, "Popen", start)
    url = "postgresql://ann:secret@db/memory"
    spawn_maintenance(url, embedder="none", config=None, environ={})
    [(command, given)] = started
    assert {given[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}
    assert (given["start_new_session"], given["env"], url in command) == (True, {"KEEPWARD_DB": url}, False)


def test_a_command_that_reads_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from keepward.cli import spawn
    from keepward.cli.main import main

    left: list[Any] = []
    monkeypatch.setattr(spawn, "spawn_maintenance", lambda url, **_: left.append(url))
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "store.db"))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "none")
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "on")
    main(["remember", "The ferry leaves at six"])
    assert len(left) == 1
    main(["recall", "ferry"])
    main(["status"])
    assert len(left) == 1
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "off")
    main(["remember", "Tea is served at nine"])
    assert len(left) == 1


# --- Reinforcement, learning from use and repetition make versions that stand in nobody's way


def used(owner: Memory, name: str) -> None:
    """Let a memory be recalled, and let the due jobs learn from that."""
    assert name in {hit.memory.id for hit in owner.recall("the ferry", limit=5)}
    before = owner.get(name).version
    owner.run_job("learn_importance")
    assert owner.get(name).version == before + 1


def repeated(owner: Memory, name: str) -> None:
    assert isinstance(owner.remember(owner.get(name).text), Duplicate)


def confirmed(owner: Memory, name: str) -> None:
    committed_record(owner.reinforce(name))


BOOKKEEPING = [used, repeated, confirmed]
Step = Callable[[Memory, str], None]


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_commit_is_rolled_back_exactly_after_bookkeeping(owner: Memory, clock: Any, step: Step) -> None:
    first = committed_record(owner.remember("The ferry is red"))
    clock.move(hours=1)
    outcome = owner.revise(first.id, "The ferry is blue", reason="painted")
    assert isinstance(outcome, Committed)
    clock.move(hours=1)
    step(owner, first.id)
    clock.move(hours=1)
    done = owner.rollback(outcome.commit.id)
    assert (done.applied, done.conflicts, done.undone) == (True, (), (outcome.commit.id,))
    assert content(owner.get(first.id)) == content(first)
    assert [each.record.version for each in owner.history(first.id)] == [1, 2, 3, 4]
    assert (owner.rollback(outcome.commit.id).already, owner.verify().ok) == (True, True)


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_what_was_remembered_is_withdrawn_after_bookkeeping_on_it(owner: Memory, step: Step) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    step(owner, outcome.records[0].id)
    assert owner.rollback(outcome.commit.id).applied
    assert owner.list_memories() == []


def test_taking_later_commits_along_takes_no_bookkeeping_of_other_memories(owner: Memory) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    other = committed_record(owner.remember("The harbour opens at six"))
    assert len(owner.recall("the ferry and the harbour", limit=5)) == 2
    owner.run_job("learn_importance")
    learnt = owner.get(other.id)
    done = owner.rollback(outcome.commit.id, with_later=True)
    assert (done.applied, done.undone, owner.get(other.id)) == (True, (outcome.commit.id,), learnt)


def test_content_change_still_blocks_a_rollback(owner: Memory) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    name = outcome.records[0].id
    confirmed(owner, name)
    committed_record(owner.revise(name, tags=["boats"], reason="sorted"))
    confirmed(owner, name)
    done = owner.rollback(outcome.commit.id)
    assert (done.applied, [each.memory_id for each in done.conflicts]) == (False, [name])


def test_recorded_expiry_does_not_block_a_rollback(owner: Memory, clock: Any) -> None:
    with owner.draft(reason="two at once") as draft:
        draft.insert("The ferry is late today", ttl="1h")
        draft.insert("The ferry is red")
    assert isinstance(draft.outcome, Committed)
    clock.move(hours=2)
    owner.run_job("expire")
    assert owner.rollback(draft.outcome.commit.id).applied
    assert owner.list_memories() == []


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_edit_of_the_read_version_succeeds_after_bookkeeping(owner: Memory, step: Step) -> None:
    name = committed_record(owner.remember("The ferry is red")).id
    step(owner, name)
    assert committed_record(owner.revise(name, "The ferry is blue", reason="painted", if_version=1)).version == 3
    for wrong in (1, 2, 4):
        with pytest.raises(StaleVersion):
            owner.revise(name, "The ferry is green", reason="again", if_version=wrong)
    assert owner.get(name).text == "The ferry is blue"


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_an_approval_holds_after_bookkeeping_and_preserves_what_was_learnt(
    owner: Memory, mem: Memory, clock: Any, step: Step
) -> None:
    name = committed_record(owner.remember("The ferry is red", access="approval")).id
    item = quarantined_item(mem.revise(name, "The ferry is blue", reason="painted"))
    clock.move(hours=1)
    step(owner, name)
    learnt = owner.get(name)
    after = committed_record(owner.approve(item.id, digest=item.digest))
    assert (after.text, after.version, after.importance) == ("The ferry is blue", 3, learnt.importance)
    assert (owner.get(name), owner.verify().ok) == (after, True)


def test_an_approval_is_stale_once_the_content_has_changed(owner: Memory, mem: Memory) -> None:
    name = committed_record(owner.remember("The ferry is red", access="approval")).id
    item = quarantined_item(mem.revise(name, "The ferry is blue", reason="painted"))
    confirmed(owner, name)
    committed_record(owner.revise(name, "The ferry is green", reason="painted already"))
    confirmed(owner, name)
    with pytest.raises(StaleVersion):
        owner.approve(item.id)
    assert owner.get(name).text == "The ferry is green"


# --- A clock that jumps forward takes nothing out of the review queue for good


@pytest.fixture
def waiting(mem: Memory) -> Proposal:
    return quarantined_item(mem.remember("Sail to Oslo", tier="core", key="mission", confidence=0.9))


def test_clock_that_returns_finds_the_review_queue_unchanged(owner: Memory, clock: Any, waiting: Proposal) -> None:
    clock.move(days=400)
    assert owner.pending() == []
    clock.move(days=-400)
    assert [each.id for each in owner.pending()] == [waiting.id]


@pytest.mark.parametrize("back", [0, 400])
def test_maintenance_during_a_jump_loses_no_proposal(owner: Memory, clock: Any, waiting: Proposal, back: int) -> None:
    clock.move(days=400)
    owner.run_job("sweep_blobs", force=True)
    clock.move(days=-back)
    owner.run_job("sweep_blobs", force=True)
    owner.reopen(waiting.id, reason="the clock was wrong")
    assert [each.id for each in owner.pending()] == [waiting.id]
    assert committed_record(owner.approve(waiting.id, digest=waiting.digest)).text == "Sail to Oslo"


def test_expired_proposal_is_reopened_with_a_new_ttl(owner: Memory, clock: Any, waiting: Proposal) -> None:
    clock.move(days=31)
    with pytest.raises(Conflict, match="keepward reopen"):
        owner.approve(waiting.id)
    owner.reopen(waiting.id, reason="I was away")
    clock.move(days=29)
    assert [each.id for each in owner.pending()] == [waiting.id]
    clock.move(days=2)
    assert owner.pending() == []


def test_an_expired_body_goes_a_term_after_maintenance_found_it(owner: Memory, clock: Any, waiting: Proposal) -> None:
    for days in (400, 31):
        clock.move(days=days)
        owner.run_job("sweep_blobs", force=True)
    with pytest.raises(Conflict, match="was dropped"):
        owner.reopen(waiting.id, reason="too late")


def test_the_owner_is_reported_what_a_jump_expired(owner: Memory, clock: Any, waiting: Proposal) -> None:
    def expired() -> int:
        return int(owner.status()["quarantine"]["expired"])

    told = [expired()]
    for days in (400, 29, 2):
        clock.move(days=days)
        owner.run_job("sweep_blobs", force=True)
        told.append(expired())
    assert told == [0, 1, 1, 0]


# --- What a write costs does not grow with what is remembered: counted in the database's steps, not in time


EVERY = 50


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One number: the steps that SQLite took, in fifties, on connections opened from here on."""
    taken = [0]
    connect = opening.connect

    def counted(*given, **named):
        made = connect(*given, **named)

        def step() -> int:
            taken[0] += 1
            return 0

        made.set_progress_handler(step, EVERY)
        return made

    monkeypatch.setattr(opening, "connect", counted)
    yield taken


NUMBERS = count()


def note() -> str:
    """A note of its own words, some shared with thousands of others."""
    number = next(NUMBERS)
    word = "".join("bcdfghklmn"[int(digit)] + "aeiou"[int(digit) % 5] for digit in str(7 * number + 1))
    return f"Ana keeps {word} in the cellar of house {number} for the {word}ist"


def median(mem: Memory, steps: list[int]) -> float:
    """Steps of one write, the middle of eleven."""
    costs = []
    for _ in range(11):
        before = steps[0]
        mem.remember(note(), tier="archival")
        costs.append(steps[0] - before)
    return statistics.median(costs)


@pytest.mark.slow
@pytest.mark.promise("F18")
def test_write_cost_does_not_grow_with_the_store(steps: list[int], opened) -> None:
    with opened("flat", embedder=None) as mem:
        mem.remember_many([{"text": note(), "tier": "archival"} for _ in range(200)])
        few = median(mem, steps)
        mem.remember_many([{"text": note(), "tier": "archival"} for _ in range(20_000)], batch=2_000)
        many = median(mem, steps)
    # The trees of the tables are a level deeper, and that is all.
    assert 0 < many < 1.5 * few
