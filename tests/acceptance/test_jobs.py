"""Jobs as a machine runs them: when they are due, who runs them, and what is left behind (C101-C105, Z17, Z19)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, Memory, Policy
from keepward.core.job import LEASE_DURATION, JobRow, Run
from keepward.interchange import write_vault
from keepward.jobs import registry, runner
from keepward.jobs.planners import ProposedBatch
from support import tamper

TOOL = Path(__file__).resolve().parents[2] / "tools" / "verify_export.py"
NAMES = [job.name for job in registry.JOBS]
ON_BOTH_DATABASES = True


def receipt_of_run(memory: Memory, run: Run) -> dict[str, Any]:
    """Return the receipt of a run as the store keeps it."""
    return memory.receipt(run.receipt.id)


def replaced(monkeypatch: pytest.MonkeyPatch, name: str, plan: Callable[..., Any]) -> None:
    """Let a job plan otherwise."""
    jobs = [replace(job, plan=plan, do=None) if job.name == name else job for job in registry.JOBS]
    monkeypatch.setattr(runner, "JOBS", tuple(jobs))


def crash(desk: Any) -> list[ProposedBatch]:
    raise RuntimeError("a text of somebody's")


def filled(memory: Memory, clock: Any) -> None:
    """Give every job something to do."""
    items: list[dict[str, Any]] = [{"text": "Gone by tomorrow", "tier": "archival", "ttl": "1d"}]
    for n, what in enumerate(("mast", "sail", "keel", "hull", "rope", "bunk", "anchor")):
        items += (
            {"text": f"We talked about the {what}", "kind": "event", "session": "deck", "source": "chat"},
            {"text": f"The {what} was painted", "tier": "archival", "source": "inference", "subject": f"part {n}"},
            {"text": f"The {what} is wet", "tier": "archival", "stability": "volatile", "source": "inference"},
        )
    items += ({"text": f"Checked port locker {n}", "tier": "working", "session": "watch"} for n in range(2))
    memory.remember_many(items)
    clock.move(days=8)
    memory.remember_many(
        [{"text": f"Checked starboard locker {n}", "tier": "working", "session": "watch"} for n in range(22)]
    )
    memory.recall("painted mast")


# --- what there is and when


@pytest.mark.promise("C101", "C102", "C103", "C104")
def test_every_job_is_listed_with_its_schedule(owner: Memory) -> None:
    listed = {state.name: state.schedule for state in owner.jobs()}
    assert {name: listed[name] for name in ("compact_working", "decay_archival", "integrity_audit")} == {
        "compact_working": "every hour",
        "decay_archival": "daily at 03:00 UTC",
        "integrity_audit": "daily at 04:00 UTC",
    }


def test_what_is_due_runs_once(owner: Memory) -> None:
    assert ([run.job for run in owner.run_jobs()], owner.run_jobs()) == (NAMES, [])


@pytest.mark.promise("C101")
def test_hourly_job_is_due_exactly_one_hour_later(owner: Memory, clock: Any) -> None:
    owner.run_jobs()
    clock.move(minutes=59)
    early = owner.run_jobs()
    clock.move(minutes=1)
    assert (early, [run.job for run in owner.run_jobs()]) == ([], ["expire", "compact_working"])


@pytest.mark.promise("C102")
def test_the_archive_decays_at_three_and_not_before(owner: Memory, clock: Any) -> None:
    owner.run_jobs()
    clock.instant = datetime(2026, 3, 2, 2, 59, tzinfo=UTC)
    early = [run.job for run in owner.run_jobs()]
    clock.move(minutes=1)
    assert ("decay_archival" in early, "decay_archival" in [run.job for run in owner.run_jobs()]) == (False, True)


def test_a_state_reports_the_last_run(owner: Memory, clock: Any) -> None:
    run = owner.run_job("prune")
    state = next(each for each in owner.jobs() if each.name == "prune")
    assert (state.last_at, state.last_outcome, state.last_receipt, state.due) == (
        clock.now(),
        "run",
        run.receipt.id,
        False,
    )


def test_schedules_come_from_policy(opened: Callable[..., Memory]) -> None:
    with opened("s", actor=Actor.operator("olga"), policy=Policy(jobs={"prune": "off", "expire": "5m"})) as owner:
        states = {state.name: (state.schedule, state.due) for state in owner.jobs()}
        assert (states["prune"], states["expire"]) == (("off", False), ("every 5 minutes", True))
        assert owner.run_job("prune").why == "off by policy; force runs it now"


def test_jobs_of_one_tenant_are_no_business_of_another(owner: Memory) -> None:
    owner.run_jobs()
    assert all(state.due for state in owner.at(tenant="other").jobs())


# --- three outcomes


@pytest.mark.promise("C105")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "train_reranker"])
def test_a_run_leaves_a_receipt_with_its_counts(owner: Memory, name: str) -> None:
    receipt = receipt_of_run(owner, owner.run_job(name))
    assert (receipt["kind"], receipt["job"], receipt["outcome"], receipt["actor"]) == (
        "job",
        name,
        "run",
        f"job:{name}",
    )
    assert receipt["counts"].keys() == set(next(job.counts for job in registry.JOBS if job.name == name))


@pytest.mark.promise("C105")
@pytest.mark.parametrize("name", NAMES)
def test_crash_leaves_a_failed_receipt_without_any_text(
    owner: Memory, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, name, crash)
    run = owner.run_job(name)
    assert (run.outcome, receipt_of_run(owner, run)["outcome"], run.why) == (
        "failed",
        "failed",
        "unexpected RuntimeError",
    )


@pytest.mark.promise("C105")
@pytest.mark.parametrize("name", NAMES)
def test_job_that_is_not_due_leaves_a_skipped_receipt(owner: Memory, name: str) -> None:
    owner.run_job(name)
    run = owner.run_job(name)
    assert (run.outcome, receipt_of_run(owner, run)["outcome"], "not due before" in run.why) == (
        "skipped",
        "skipped",
        True,
    )


def test_force_runs_what_is_not_due(owner: Memory) -> None:
    owner.run_job("expire")
    assert owner.run_job("expire", force=True).outcome == "run"


def test_after_a_crash_the_next_job_still_runs(owner: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, "compact_working", crash)
    outcomes = {run.job: run.outcome for run in owner.run_jobs()}
    assert (outcomes["compact_working"], outcomes["summarize_episodic"]) == ("failed", "run")


def test_a_failed_job_is_tried_again_within_the_hour(
    owner: Memory, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(monkeypatch, "prune", crash)
    owner.run_jobs()
    clock.move(hours=1)
    assert "prune" in [run.job for run in owner.run_jobs()]


def test_a_receipt_of_a_run_names_its_commits(owner: Memory, clock: Any) -> None:
    committed_record(owner.remember("Gone by tomorrow", tier="archival", ttl="1d"))
    clock.move(days=2)
    run = owner.run_job("expire")
    assert [owner.show(name).details.actor for name in receipt_of_run(owner, run)["commits"]] == ["job:expire"]


# --- switched off


def test_with_memory_switched_off_jobs_do_nothing_and_say_so(opened: Callable[..., Memory]) -> None:
    def stored() -> list[list[tuple[Any, ...]]]:
        return [tamper.rows(owner.path, f"SELECT * FROM {table}") for table in ("tenants", "commits", "documents")]

    with opened("off", actor=Actor.operator("olga")) as owner:
        owner.remember("The quay is closed", tier="archival", ttl="1s")
        before = stored()
    with opened("off", actor=Actor.operator("olga"), policy=Policy(enabled=False)) as owner:
        outcomes = {run.outcome for run in owner.run_jobs()}
        assert (outcomes, stored() == before) == ({"skipped"}, True)


def test_with_capture_off_only_the_audit_runs(opened: Callable[..., Memory]) -> None:
    with opened("quiet", actor=Actor.operator("olga"), policy=Policy(capture=False)) as owner:
        outcomes = {run.job: run.outcome for run in owner.run_jobs()}
    assert {name for name, outcome in outcomes.items() if outcome == "run"} == {"integrity_audit"}


# --- leases


def holding(owner: Memory, clock: Any, name: str = "expire") -> None:
    """Let another process hold the lease of a job."""
    row = JobRow(tenant="default", job=name, holder="another", until=clock.now() + LEASE_DURATION)
    with owner._engine.store.write() as writer:
        writer.put(row)


def test_leased_job_is_skipped_even_with_force(owner: Memory, clock: Any) -> None:
    holding(owner, clock)
    run = owner.run_job("expire", force=True)
    assert (run.outcome, "lease" in run.why) == ("skipped", True)


def test_a_lease_ends_by_its_time(owner: Memory, clock: Any) -> None:
    holding(owner, clock)
    clock.instant += LEASE_DURATION
    assert owner.run_job("expire").outcome == "run"


def test_a_state_reports_that_a_job_is_running(owner: Memory, clock: Any) -> None:
    holding(owner, clock)
    assert owner.jobs()[0].running_until == clock.now() + LEASE_DURATION


def test_run_that_lost_its_lease_stops_before_its_next_proposal(
    owner: Memory, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed_record(owner.remember("Gone by tomorrow", tier="archival", ttl="1d"))
    clock.move(days=2)
    plan = registry.JOBS[0].plan
    assert plan is not None

    def slow(desk: Any) -> list[ProposedBatch]:
        clock.move(hours=1)
        holding(owner, clock)
        return list(plan(desk))

    replaced(monkeypatch, "expire", slow)
    run = owner.run_job("expire")
    assert (run.outcome, run.commits, owner.jobs()[0].running_until) == ("failed", (), clock.now() + LEASE_DURATION)


def test_of_two_runs_at_once_one_is_skipped(owner: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    began, done = threading.Event(), threading.Event()

    def slow(desk: Any) -> list[ProposedBatch]:
        began.set()
        assert done.wait(10)
        return []

    replaced(monkeypatch, "expire", slow)
    runs: list[Run] = []
    thread = threading.Thread(target=lambda: runs.append(owner.run_job("expire")), daemon=True)
    thread.start()
    assert began.wait(10)
    runs.append(owner.run_job("expire", force=True))
    done.set()
    thread.join(40)
    assert [run.outcome for run in runs] == ["skipped", "run"]


def test_an_interrupt_gives_the_lease_back(owner: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(desk: Any) -> list[ProposedBatch]:
        raise KeyboardInterrupt

    replaced(monkeypatch, "expire", interrupted)
    with pytest.raises(KeyboardInterrupt):
        owner.run_job("expire")
    assert owner.jobs()[0].running_until is None


KILLED = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from keepward import Actor, Memory
from keepward.interchange import write_vault
from keepward.jobs import registry, runner
from dataclasses import replace

class Clock:
    def now(self):
        return datetime.fromisoformat(sys.argv[2])

jobs = [replace(job, plan=lambda context: os.kill(os.getpid(), signal.SIGKILL)) for job in registry.JOBS[:1]]
runner.JOBS = tuple(jobs)
options = {"embedder": None, "clock": Clock(), "config_dir": Path(sys.argv[3])}
Memory.open(sys.argv[1], actor=Actor.operator("olga"), **options).run_job("expire")
"""


@pytest.mark.slow
def test_killed_run_blocks_the_job_until_its_lease_expires(owner: Memory, clock: Any, tmp_path: Path) -> None:
    arguments = [owner.path, clock.now().isoformat(), str(tmp_path / "config")]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    held = owner.run_job("expire").outcome
    clock.instant += LEASE_DURATION
    assert (done.returncode, held, owner.run_job("expire").outcome) == (-9, "skipped", "run")


# --- once and twice, and crashes


@pytest.mark.promise("Z17")
@pytest.mark.parametrize("name", NAMES)
def test_a_job_run_twice_changes_nothing_more_than_once(owner: Memory, clock: Any, name: str) -> None:
    filled(owner, clock)
    owner.run_job(name)
    before = (owner.status()["head"], len(owner.pending()))
    owner.run_job(name, force=True)
    assert (owner.status()["head"], len(owner.pending())) == before


class Killed(BaseException):
    """Ends a process at once, as far as a test can."""


def holds(memory: Memory) -> list[tuple[str, str]]:
    return sorted((record.text, record.status.value) for record in memory.list_memories(limit=None))


@pytest.mark.promise("Z19")
@pytest.mark.parametrize("name", ["expire", "compact_working", "summarize_episodic", "consolidate", "prune"])
def test_crash_before_a_job_commit_loses_and_doubles_nothing(
    opened: Callable[..., Memory], clock: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = clock.instant
    with opened("whole", actor=Actor.operator("olga"), embedder=None) as owner:
        filled(owner, clock)
        run = owner.run_job(name)
        whole = holds(owner)
    assert run.commits or name == "prune"
    clock.instant = start
    from keepward.services.transaction import Transaction

    commit = Transaction.commit
    with opened("torn", actor=Actor.operator("olga"), embedder=None) as owner:
        filled(owner, clock)
        for at in range(len(run.commits)):
            left = [at]

            def dying(*given: Any, left: list[int] = left, **options: Any) -> Any:
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
                return commit(*given, **options)

            monkeypatch.setattr(Transaction, "commit", dying)
            with pytest.raises(Killed):
                owner.run_job(name, force=True)
        monkeypatch.setattr(Transaction, "commit", commit)
        owner.run_job(name, force=True)
        assert holds(owner) == whole


def test_export_of_job_changes_passes_the_independent_verifier(owner: Memory, clock: Any, tmp_path: Path) -> None:
    filled(owner, clock)
    owner.run_jobs()
    write_vault(owner, tmp_path / "vault.jsonl")
    done = subprocess.run([sys.executable, str(TOOL), str(tmp_path / "vault.jsonl")], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# --- the audit


@pytest.mark.promise("C104")
def test_the_audit_of_a_complete_store_finds_nothing(owner: Memory) -> None:
    committed_record(owner.remember("Ship before Easter", tier="core", key="mission"))
    run = owner.run_job("integrity_audit")
    assert (run.outcome, run.counts["faults"], run.counts["checked"] > 0) == ("run", 0, True)


@pytest.mark.promise("C104")
def test_the_audit_reports_a_commit_without_its_receipt(owner: Memory) -> None:
    receipt = (
        committed_record(owner.remember("The quay is closed", tier="archival")).id and owner.log()[0].details.receipt
    )
    tamper.edit(owner.path, "commits", "receipt = NULL", "id = ?", (receipt,))
    run = owner.run_job("integrity_audit")
    assert (run.counts["faults"] > 0, any(receipt in each.detail for each in run.reasons)) == (True, True)


@pytest.mark.promise("C104")
def test_audit_reports_an_oversized_block_in_any_scope(opened: Callable[..., Memory]) -> None:
    with opened("s", actor=Actor.operator("olga"), scope="orion") as owner:
        name = committed_record(
            owner.remember("Ship the whole application before Easter", tier="core", key="mission")
        ).id
    with opened("s", actor=Actor.operator("olga"), policy=Policy(block_budget={"mission": 2})) as owner:
        run = owner.run_job("integrity_audit")
    assert [(each.code, name in each.detail) for each in run.reasons] == [("blocks", True)]


@pytest.mark.promise("C104")
def test_the_audit_still_reports_when_the_journal_itself_is_damaged(owner: Memory, path: Path) -> None:
    committed_record(owner.remember("The quay is closed", tier="archival"))
    committed_record(owner.remember("The crane is red", tier="archival"))
    tamper.delete(path, "tenants")
    run = owner.run_job("integrity_audit")
    assert (run.outcome, run.counts["faults"] > 0, receipt_of_run(owner, run)["counts"]["faults"] > 0) == (
        "run",
        True,
        True,
    )


@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_verify_notices_a_deleted_job_row(owner: Memory, path: Path, which: str) -> None:
    owner.run_jobs()
    rows = tamper.documents(path, "jobs")
    gone = rows[{"first": 0, "middle": len(rows) // 2, "last": -1}[which]]
    tamper.delete_documents(path, "jobs", f"id = '{gone[2]}'")
    assert [fault.row for fault in owner.verify().faults] == ["jobs default"]


def test_verify_notices_an_older_job_row(owner: Memory, path: Path, clock: Any) -> None:
    owner.run_job("prune", force=True)
    before = tamper.documents(path, "jobs")
    clock.move(days=1)
    owner.run_job("prune", force=True)
    tamper.put_documents(path, *before)
    assert [fault.row for fault in owner.verify().faults] == ["documents default"]


def test_edited_job_row_is_ignored_and_named_by_verify(owner: Memory, clock: Any) -> None:
    owner.run_jobs()
    later = int((clock.now() + timedelta(days=900)).timestamp() * 1_000_000)
    change = tamper.body('"last_at":', f'"last_at":{later},"then":')
    tamper.edit_documents(owner.path, "jobs", change, "id = 'integrity_audit'")
    due = [state.name for state in owner.jobs() if state.due]
    assert (due, "jobs default/integrity_audit" in {fault.row for fault in owner.verify().faults}) == (
        ["integrity_audit"],
        True,
    )
