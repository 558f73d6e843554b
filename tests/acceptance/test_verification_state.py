"""What `status` and `doctor` say of verifications: the result of each is stored, and a fault stays until refuted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory
from support import tamper

ON_BOTH_DATABASES = True


def edited(path: Path | str) -> Callable[[], object]:
    """Edit a cell of the journal; return what puts it back."""
    ((kind,),) = tamper.rows(path, "SELECT kind FROM commits WHERE tenant = 'default' AND seq = 1")
    tamper.edit(path, "commits", "kind = 'approve'", "tenant = 'default' AND seq = 1")
    return lambda: tamper.edit(path, "commits", "kind = ?", "tenant = 'default' AND seq = 1", (kind,))


def state(memory: Memory) -> dict[str, Any]:
    return memory.status()["verification"]


def check(memory: Memory) -> Any:
    return next(each for each in memory.doctor() if each.name == "verification")


@pytest.fixture
def filled(owner: Memory) -> Memory:
    for n in range(3):
        owner.remember(f"The ferry number {n} crosses the sound", tier="archival")
    return owner


def test_a_store_that_nobody_verified_is_not_intact(owner: Memory) -> None:
    assert (state(owner)["state"], state(owner)["at"]) == ("unverified", None)


def test_result_names_the_commits_it_covered_and_when(filled: Memory, clock: Any) -> None:
    filled.verify()
    at = clock.now()
    clock.move(hours=1)
    filled.remember("The pier is long", tier="archival")
    found = state(filled)
    assert (found["state"], found["commits"], found["at"], found["by"]) == (
        *("intact", 3, at.isoformat()),
        "operator:olga",
    )
    assert check(filled).detail == f"3 of 4 commits verified, {at:%Y-%m-%d %H:%M} UTC"


def test_the_audit_stores_its_result_too(filled: Memory) -> None:
    filled.run_job("integrity_audit", force=True)
    assert (state(filled)["state"], state(filled)["commits"], state(filled)["everywhere"]) == ("intact", 3, False)


@pytest.mark.parametrize("by", ["hand", "job"])
def test_a_fault_stays_until_a_run_without_any(filled: Memory, path: Path | str, clock: Any, by: str) -> None:
    def run() -> None:
        filled.verify() if by == "hand" else filled.run_job("integrity_audit", force=True)

    mend = edited(path)
    run()
    found, since = state(filled), clock.now().isoformat()
    assert (found["state"], found["damaged_since"]) == ("damaged", since)
    assert any(each["row"] == "commits default/1" for each in found["first_faults"])
    assert not check(filled).ok
    mend()
    clock.move(hours=1)
    assert (state(filled)["state"], state(filled)["damaged_since"]) == ("damaged", since)
    run()
    assert (state(filled)["state"], state(filled)["faults"], check(filled).ok) == ("intact", 0, True)


def test_a_narrower_run_without_faults_refutes_nothing(filled: Memory, path: Path | str) -> None:
    mend = edited(path)
    filled.verify()
    mend()
    filled.run_job("integrity_audit", force=True)
    assert state(filled)["state"] == "damaged"


def test_a_fault_is_known_to_another_tenant_and_after_opening_again(
    filled: Memory, path: Path | str, entering: Callable[..., Memory]
) -> None:
    other = entering(Actor.operator("olga"), tenant="other")
    other.remember("The pier is long", tier="archival")
    edited(path)
    filled.verify()
    assert state(other)["state"] == "damaged"
    assert state(entering(Actor.operator("olga")))["state"] == "damaged"


def test_an_edited_result_counts_as_a_fault(filled: Memory, path: Path | str) -> None:
    edited(path)
    filled.verify()
    tamper.edit_documents(path, "artefacts", tamper.body('"open"', '"gone"'), "id = 'verification/newest'")
    assert state(filled)["state"] == "damaged"


def test_a_narrow_handle_learns_the_state_and_no_rows(filled: Memory, path: Path | str) -> None:
    edited(path)
    narrow = filled.as_actor(Actor.agent("orion")).at(scope="/agents/orion")
    assert not narrow.verify().ok
    assert (state(narrow)["state"], state(narrow)["first_faults"]) == ("damaged", [])
    assert state(filled)["state"] == "damaged"


@pytest.mark.promise("Z11")
def test_narrow_handle_counts_only_its_own_verified_and_copied_commits(
    filled: Memory, path: Path | str, tmp_path: Path
) -> None:
    for n in range(2):
        filled.at(scope="/users/ana").remember(f"Ana sails on day {n}", tier="archival")
    filled.verify()
    if isinstance(path, Path):
        filled.backup(tmp_path / "copy.db")
    narrow = filled.as_actor(Actor.agent("orion")).at(scope="/agents/orion")
    narrow.remember("The pier is long", tier="archival")
    found = narrow.status()
    assert (found["commits"], found["verification"]["commits"], found["verification"]["by"]) == (4, 3, None)
    assert found["backups"]["commits"] == (3 if isinstance(path, Path) else 0)
    assert state(filled)["commits"] == 5


def test_read_only_store_is_verified_without_a_stored_result(
    filled: Memory, path: Path | str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Any
) -> None:
    filled.close()
    if isinstance(path, Path):
        # Root may write a file whatever its mode is.
        monkeypatch.setattr("keepward.storage.file.first_unwritable_path", lambda path: path)
    else:
        path = path.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
    reading = Memory.open(path, actor=Actor.operator("olga"), **given)
    found = reading.verify()
    assert found.ok
    assert any("not stored" in note for note in found.notes)
    assert state(reading)["state"] == "unverified"
    reading.close()


def test_verifying_adds_nothing_to_the_journal_and_one_document(filled: Memory, path: Path | str) -> None:
    head, before = filled.status()["head"], len(tamper.documents(path, "artefacts"))
    for _ in range(3):
        filled.verify()
    assert (filled.status()["head"], len(tamper.documents(path, "artefacts"))) == (head, before + 1)
    assert filled.verify().ok


def test_activity_and_sources_count_no_version_with_a_forged_author(owner: Memory, path: Path | str) -> None:
    owner.as_actor(Actor.agent("kim")).remember("The dose is 8 mg", tier="archival", reason="so")
    owner.as_actor(Actor.agent("kit")).remember("The pier is long", tier="archival", reason="so")
    assert {each.name for each in owner.activity().series} == {"agent:kim", "agent:kit"}
    ((payload,),) = tamper.rows(path, "SELECT payload FROM events WHERE seq = 1")
    forged = bytes(payload).replace(b"agent:kim", b"agent:tom")
    tamper.edit(path, "events", "payload = ?", "seq = 1", (forged,))
    found = owner.activity()
    assert ([each.name for each in found.series], found.counts[-1], found.damaged) == (["agent:kit"], 1, 1)
    assert "agent:tom" not in {each.name for each in owner.sources().actors}


def test_only_a_file_is_said_to_have_no_backup(filled: Memory, path: Path | str) -> None:
    assert filled.status()["backups"]["state"] == ("none" if isinstance(path, Path) else "unknown")
