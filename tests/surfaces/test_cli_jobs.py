"""The jobs command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from keepward import Actor, Memory, Policy
from keepward.core.job import SCHEDULES
from support import tamper


def test_the_list_has_every_job_with_its_schedule(run, saved):
    told = run("jobs", "--json").json
    assert ([each["name"] for each in told["jobs"]], told["count"]) == (list(SCHEDULES), len(SCHEDULES))


def test_a_job_that_is_not_due_says_when_it_is(run, saved):
    run("jobs", "run", "prune")
    assert "not due before" in run("jobs", "run", "prune").out


def test_audit_finding_ends_in_exit_code_1(run, saved):
    tamper.edit(Path("keepward.db"), "commits", "receipt = NULL")
    assert run("jobs", "run", "integrity_audit").code == 1


def test_a_compacted_receipt_says_so(run, saved):
    receipt = run("context", "tabs or spaces", "--json").json["receipt"]["id"]
    name = receipt["id"] if isinstance(receipt, dict) else receipt
    when = datetime.now(UTC)
    policy = Policy(compact_receipts_after=timedelta(0))
    with Memory.open("keepward.db", actor=Actor.operator("olga"), embedder=None, policy=policy) as memory:
        assert memory.run_job("compact_receipts").counts["receipts"] == 1
    told = run("receipt", name, "--json").json
    assert datetime.fromisoformat(told["compacted_at"]) >= when
    assert told["compacted_at"][:16].replace("T", " ") in run("receipt", name).out
