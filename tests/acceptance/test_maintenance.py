"""Maintenance: jobs that are due run by themselves, and nobody waits for them."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, Memory, Policy
from keepward.core.job import SCHEDULES, JobRow
from keepward.embedding.hashed import HashedEmbedder
from keepward.jobs import maintenance
from keepward.jobs.maintenance import MIN_INTERVAL, due_jobs, run_pending
from keepward.retrieval import chunking
from keepward.retrieval.tokenizer import PREFERENCE_TERM, term_hash, unpack_many
from keepward.services import gate_context, search_features


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
        kept(mem.remember("The ferry leaves at six", tier="archival"))
        over(mem)
        assert ran(mem) == set(SCHEDULES)
        receipt = mem.receipt(str(receipts(mem, "expire")[0]))
    assert (receipt["actor"], receipt["asked_by"]) == ("job:expire", "system:maintenance")


def test_automatic_job_does_only_what_policy_allows(opened: Callable[..., Memory], clock: Any, quick: None) -> None:
    with opened("store", actor=Actor.operator("olga")) as mem:
        brief = kept(mem.remember("The pump is borrowed until Friday", ttl="1d"))
        lasting = kept(mem.remember("The ferry leaves at six"))
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
    monkeypatch.setattr("keepward.jobs.runner.run_job", locked)
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
            kept(mem.remember(text, tier="archival"))
        kept(
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
            patch.setattr(gate_context, "PROVIDED", "given")
            patch.setattr(search_features, "_marker_terms", lambda _: [])
            record = kept(mem.remember("Please always answer in French", tier="archival", **vector))

        def marks_and_vectors() -> tuple[bool, bytes]:
            (each,) = mem._session.store.indexed("default")
            terms, *_ = unpack_many([each.features.terms])
            return term_hash(PREFERENCE_TERM) in terms, each.features.vectors

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


def test_a_command_that_reads_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from keepward.cli import maintenance as cli_maintenance
    from keepward.cli.main import main

    left: list[Any] = []
    monkeypatch.setattr(cli_maintenance, "spawn_maintenance", left.append)
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
