"""An owner may allow that what was erased is remembered again; nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import brought_back, codes, kept, refused

from keepward import Actor, Memory
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised

TEXT = "Ana's private number is 7741 quokkablue"


def erased(owner: Memory, *ids: str) -> str:
    plan = owner.plan_erase(ids)
    return owner.erase(plan.digest, ids).commit.id


@pytest.fixture
def stone(owner: Memory) -> str:
    """The id of an erased memory."""
    made = kept(owner.remember(TEXT, tier="archival", aliases=["chat:9"]))
    erased(owner, made.id)
    return made.id


def test_what_was_erased_is_remembered_again_once_its_owner_has_lifted_it(owner: Memory, stone: str) -> None:
    refused(owner.remember(TEXT, tier="archival"))
    owner.lift_erasure(stone)
    assert kept(owner.remember(TEXT, tier="archival")).text == TEXT


def test_a_name_that_was_erased_can_be_given_again(owner: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    assert kept(owner.remember("The quay is closed", tier="archival", aliases=["chat:9"])).aliases == ("chat:9",)


def test_an_agent_may_say_it_again_then(owner: Memory, mem: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    assert kept(mem.remember(TEXT.replace("private number", "favourite jersey"), tier="archival"))


def test_an_earlier_version_may_be_said_again_too(owner: Memory) -> None:
    made = kept(owner.remember("Deploys happen on Tuesdays at nine", tier="archival"))
    owner.revise(made.id, "Deploys happen on Fridays at noon", reason="new")
    erased(owner, made.id)
    owner.lift_erasure(made.id)
    assert kept(owner.remember("Deploys happen on Tuesdays at nine", tier="archival"))


@pytest.mark.parametrize("actor", [Actor.agent(), Actor.reviewer("rita"), Actor.user("ana")])
@pytest.mark.promise("F10")
def test_nobody_but_the_owner_lifts(owner: Memory, stone: str, actor: Actor) -> None:
    with pytest.raises(Unauthorised):
        owner.acting_as(actor).lift_erasure(stone)


def test_the_tombstone_stays_and_holds_nothing(owner: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    record = owner.get(stone)
    assert (record.status.value, record.text, record.aliases) == ("erased", "", ())


def test_a_lift_is_a_commit_with_a_receipt(owner: Memory, stone: str) -> None:
    done = owner.lift_erasure(stone)
    receipt = owner.receipt(done.receipt.id)
    assert (done.commit.kind, receipt["kind"], receipt["targets"][0]["id"]) == ("lift", "lift", stone)


def test_every_tombstone_of_the_same_text_is_lifted_with_it(owner: Memory) -> None:
    made = kept(owner.remember(TEXT, tier="archival"))
    copy = kept(owner.at(scope="orion").remember(TEXT, tier="archival"))
    erased(owner, made.id)
    assert owner.lift_erasure(made.id).tombstones == (made.id, copy.id)
    assert kept(owner.remember(TEXT, tier="archival"))


def test_another_tombstone_goes_on_refusing_what_is_its_own(owner: Memory, stone: str) -> None:
    other = kept(owner.remember("The vault code hangs behind the door", tier="archival"))
    erased(owner, other.id)
    owner.lift_erasure(stone)
    assert codes(owner.remember("The vault code hangs behind the door", tier="archival")) == {"erased"}


def test_what_is_said_again_can_be_erased_again(owner: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    again = kept(owner.remember(TEXT, tier="archival"))
    erased(owner, again.id)
    assert codes(owner.remember(TEXT, tier="archival")) == {"erased"}


def test_a_second_lift_says_that_nothing_stands_in_the_way(owner: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    with pytest.raises(Conflict, match="nothing stands"):
        owner.lift_erasure(stone)


def test_a_memory_that_was_not_erased_is_not_lifted(owner: Memory) -> None:
    made = kept(owner.remember("The quay is closed", tier="archival"))
    with pytest.raises(InvalidInput, match="not erased"):
        owner.lift_erasure(made.id)


def test_what_is_not_there_is_not_lifted(owner: Memory) -> None:
    with pytest.raises(NotFound):
        owner.lift_erasure("0190f3c2-7b1e-7c3a-9f00-1a2b3c4d5e6f")


def test_a_rollback_brings_neither_the_content_nor_the_refusal_back(owner: Memory, stone: str) -> None:
    done = owner.lift_erasure(stone)
    owner.rollback(done.commit.id)
    assert owner.get(stone).text == ""
    assert kept(owner.remember(TEXT, tier="archival"))


def test_the_certificate_of_the_erasure_is_still_found(owner: Memory, stone: str) -> None:
    before = owner.certificate(stone)
    owner.lift_erasure(stone)
    assert owner.certificate(stone) == before


def test_verify_is_whole_after_a_lift(owner: Memory, stone: str) -> None:
    owner.lift_erasure(stone)
    assert owner.verify().faults == ()


def test_an_export_with_a_lift_verifies_and_is_restored(
    owner: Memory, stone: str, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    import subprocess
    import sys

    from keepward.interchange import write_vault

    owner.lift_erasure(stone)
    with (tmp_path / "vault.jsonl").open("w", encoding="utf-8") as out:
        write_vault(owner, out)
    tool = Path(__file__).parents[2] / "tools" / "verify_export.py"
    done = subprocess.run([sys.executable, tool, tmp_path / "vault.jsonl"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with opened("other", actor=Actor.operator("olga")) as copy:
        brought_back(copy, tmp_path / "vault.jsonl")
        assert copy.status()["head"] == owner.status()["head"]


def test_an_older_backup_that_comes_back_holds_nothing_of_it_and_does_not_refuse_it(
    opened: Callable[..., Memory], tmp_path: Path
) -> None:
    with opened("store", actor=Actor.operator("olga")) as owner:
        made = kept(owner.remember(TEXT, tier="archival"))
        owner.backup(tmp_path / "copy.db")
        old = (tmp_path / "copy.db").read_bytes()
        erased(owner, made.id)
        owner.lift_erasure(made.id)
    (tmp_path / "copy.db").write_bytes(old)
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"store.db{end}").unlink(missing_ok=True)
    Memory.restore_backup(
        tmp_path / "copy.db", tmp_path / "store.db", actor=Actor.operator("olga"), config_dir=tmp_path / "config"
    )
    with opened("store", actor=Actor.operator("olga")) as owner:
        assert owner.get(made.id).text == ""
        assert kept(owner.remember(TEXT, tier="archival"))
