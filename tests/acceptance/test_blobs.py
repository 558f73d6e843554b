"""Blobs, loose and packed."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import brought_back, codes, committed_record, quarantined_item, refused

from keepward import Actor, Memory, Policy
from keepward.errors import Conflict, InvalidInput, NotFound, StaleVersion, Tampered
from keepward.services.writing.unpack import Budget, unpack_parts
from support import tamper

# --- Blobs: content beside the store, from putting it to its erasure, seen from outside


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
OGG = b"OggS\0\2" + bytes(200)
MP4 = b"\0\0\0\x1cftypisom" + bytes(200)
PDF = b"%PDF-1.7\n\xb5\xb5\n" + bytes(200)
KEY = "AKIA" + "Q7TZ5LWM3XJ2KD4R"
GONE = "no blob by that name"


def folder(memory: Memory) -> Path:
    return Path(f"{memory.path}.blobs")


def files(place: Path) -> list[Path]:
    """Return the files of blobs under a folder, without its lock."""
    return sorted(path for path in place.rglob("*") if path.is_file() and path.name != "lock")


def file_of(memory: Memory, ref: str) -> Path:
    return next(path for path in files(folder(memory)) if path.name == ref.removeprefix("sha256:"))


def swept(owner: Memory) -> dict[str, int]:
    """Run the chore; return what it counted."""
    run = owner.run_job("sweep_blobs", force=True)
    assert run.outcome == "run", run
    return dict(run.counts)


# --- putting and reading


@pytest.mark.promise("E2", "E9", "E27")
@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (PNG, "image"),
        (OGG, "audio"),
        (MP4, "video"),
        (PDF, "file"),
        (b'{"rows": [1, 2]}', "structured"),
        ("Grüße aus Köln".encode(), "text"),
    ],
)
def test_content_of_every_type_is_remembered_and_recalled(mem: Memory, data: bytes, content_type: str) -> None:
    ref = mem.put_blob(data).ref
    mem.remember("what the harbour camera saw", tier="archival", blob=ref)
    [hit] = mem.recall("harbour camera", content_types=[content_type])
    assert (hit.memory.content_type, mem.read_blob(str(hit.memory.blob))) == (content_type, data)


@pytest.mark.promise("E9")
def test_a_content_type_that_there_is_not_is_refused(mem: Memory) -> None:
    with pytest.raises(InvalidInput, match="unknown content type"):
        mem.remember("a smell", content_type="smell")


@pytest.mark.promise("E36")
def test_a_hit_names_the_blob(mem: Memory) -> None:

    ref = mem.put_blob(PNG).ref
    mem.remember("the red house by the sea", tier="archival", blob=ref)
    [hit] = mem.recall("red house")
    assert (hit.memory.blob, hit.to_dict()["memory"]["blob"], hit.to_dict()["memory"]["content_type"]) == (
        ref,
        ref,
        "image",
    )


@pytest.mark.promise("E5", "E10", "E20", "E21")
def test_content_is_stored_by_hash_in_a_dated_folder(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    [file] = files(folder(owner))
    assert (file.parent.relative_to(folder(owner)).parts[1:], f"sha256:{file.name}", file.read_bytes()) == (
        ("2026", "03", "01"),
        ref,
        PNG,
    )


def test_no_byte_of_the_content_is_in_the_database(owner: Memory) -> None:
    owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG + b"a rare sequence").ref)
    held_in = [path.name for path in Path(owner.path).parent.glob("*.db*") if path.is_file()]
    assert all(b"a rare sequence" not in Path(owner.path).with_name(name).read_bytes() for name in held_in)


@pytest.mark.promise("E21")
def test_same_bytes_are_stored_once_regardless_of_actor_and_time(owner: Memory, clock: Any) -> None:
    first = owner.put_blob(PNG)
    clock.move(days=40)
    again = owner.as_actor(Actor.agent("other")).put_blob(PNG, media_type="image/png")
    assert (again, len(files(folder(owner)))) == (first, 1)


def test_without_a_blob_no_folder_is_made(owner: Memory, tmp_path: Path) -> None:
    owner.remember("no picture", tier="archival")
    owner.verify()
    swept(owner)
    owner.backup(tmp_path / "b.db")
    assert not folder(owner).exists()


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "no bytes"), (bytes(32 * 2**20 + 1), "at most 32 MB"), ("x", "bytes")]
)
def test_empty_too_much_and_what_is_no_bytes_is_refused(mem: Memory, data: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        mem.put_blob(data)


@pytest.mark.slow
def test_the_largest_blob_is_taken(mem: Memory) -> None:
    data = PNG + bytes(32 * 2**20 - len(PNG))
    assert mem.put_blob(data).bytes == 32 * 2**20


def test_bytes_of_another_type_than_declared_are_refused(owner: Memory) -> None:
    with pytest.raises(InvalidInput, match="look like image/png"):
        owner.put_blob(PNG, media_type="text/plain")
    assert not files(folder(owner))


@pytest.mark.parametrize("data", [b"<!doctype html><script>1</script>", b"<svg onload='x()'></svg>"])
def test_active_content_is_stored_and_said_to_be_active(mem: Memory, data: bytes) -> None:
    blob = mem.put_blob(data)
    assert (blob.active, mem.read_blob(blob.ref)) == (True, data)


def test_blob_of_an_in_memory_store_ends_with_it() -> None:
    with Memory.open(":memory:", embedder=None) as mem:
        ref = mem.put_blob(PNG).ref
        mem.remember("the red house", blob=ref)
        assert (mem.read_blob(ref), mem.verify().ok) == (PNG, True)


def test_a_blob_is_there_when_the_store_is_opened_again(opened: Callable[..., Memory]) -> None:
    with opened("again") as mem:
        ref = mem.put_blob(PNG).ref
        mem.remember("the red house", blob=ref)
    with opened("again", actor=Actor.agent("somebody else")) as mem:
        assert mem.read_blob(ref) == PNG


def test_with_memory_switched_off_nothing_is_stored(opened: Callable[..., Memory]) -> None:
    with opened("off", policy=Policy(enabled=False)) as mem:
        with pytest.raises(Conflict, match="switched off"):
            mem.put_blob(PNG)
        assert not folder(mem).exists()


# --- secrets


@pytest.mark.promise("Z6")
@pytest.mark.parametrize(
    "data",
    [
        f"aws_access_key_id = {KEY}\n".encode(),
        f"line one\nkey: {KEY}".encode("utf-16"),
        json.dumps({"deploy": {"key": KEY}}).encode(),
        b"ordinary words\n" * 9_000 + f"then {KEY} here\n".encode(),
        base64.b64encode(f"key {KEY} and some more words".encode()),
        PNG + b"tEXtComment\0" + f"made with {KEY} on a plane".encode() + bytes(9),
        "K\xf6ln, the wifi password is hunter2-Zebra-91".encode("latin-1"),
    ],
    ids=["text", "utf16", "json", "far-down", "base64", "in-a-picture", "latin"],
)
def test_content_with_a_secret_is_refused_and_never_stored(owner: Memory, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret"):
        owner.put_blob(data, media_type="text/plain" if data.startswith(b"K\xf6ln") else None)
    assert not files(Path(owner.path).parent / "memory.db.blobs")


def test_the_refusal_names_the_line_and_never_the_secret(mem: Memory) -> None:
    with pytest.raises(InvalidInput) as refusal:
        mem.put_blob(f"one\ntwo\nthree {KEY}\n".encode())
    assert ("in line 3" in str(refusal.value), KEY in str(refusal.value)) == (True, False)


# --- rights


def test_blob_is_not_found_without_upload_or_visible_memory(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    other = owner.as_actor(Actor.agent("other"))
    with pytest.raises(NotFound, match=GONE):
        other.read_blob(ref)


def test_unknown_blob_gets_the_same_answer_as_a_hidden_one(mem: Memory, owner: Memory) -> None:
    said = []
    for ref in (mem.put_blob(PNG).ref, "sha256:" + "0" * 64):
        with pytest.raises(NotFound) as refusal:
            owner.as_actor(Actor.agent("other")).read_blob(ref)
        said.append(str(refusal.value))
    assert said[0] == said[1]


def test_blob_is_readable_by_readers_of_its_memory(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    mem.remember("the red house", tier="archival", blob=ref)
    assert owner.as_actor(Actor.agent("other")).at(scope="/agents/other").read_blob(ref) == PNG


def test_blob_of_another_tenant_is_hidden_from_its_owner_too(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    with pytest.raises(NotFound, match=GONE):
        owner.at(tenant="other").read_blob(ref)


def test_the_same_bytes_of_two_tenants_lie_apart(owner: Memory) -> None:
    first, second = owner.put_blob(PNG), owner.at(tenant="other").put_blob(PNG)
    assert (first, len({path.relative_to(folder(owner)).parts[0] for path in files(folder(owner))})) == (second, 2)


def test_a_memory_that_no_longer_holds_opens_no_blob(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    record = committed_record(mem.remember("the red house", tier="archival", blob=ref))
    owner.forget(record.id, reason="sold")
    with pytest.raises(NotFound, match=GONE):
        owner.as_actor(Actor.agent("other")).read_blob(ref)


def test_writing_a_blob_name_into_a_memory_opens_no_blob(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    other = owner.as_actor(Actor.agent("other"))
    told = refused(other.remember("mine now", blob=ref))
    with pytest.raises(NotFound, match=GONE):
        other.read_blob(ref)
    assert told == {"unknown_blob"}


@pytest.mark.parametrize("ref", ["2026/03/ab", "../../etc/passwd", "sha256:xyz", ""])
def test_a_name_that_is_none_is_refused(mem: Memory, ref: Any) -> None:
    assert refused(mem.remember("the red house", blob=ref)) & {"bad_blob", "odd_unicode"}


def test_a_content_type_that_the_bytes_are_not_is_refused(mem: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    assert refused(mem.remember("a song", blob=ref, content_type="audio")) == {"content_type"}


# --- review


def test_approval_shows_hash_size_and_type_but_no_bytes(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    item = quarantined_item(mem.remember("our mission, drawn", tier="core", key="mission", blob=ref))
    [step] = owner.proposed_steps(item)
    assert {name: after for name, _, after in step.changes}["blob"] == f"{ref}, {len(PNG)} bytes, image/png"


def test_only_reviewers_may_read_the_blob_of_a_pending_proposal(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    quarantined_item(mem.remember("our mission, drawn", tier="core", key="mission", blob=ref))
    reviewer = owner.as_actor(Actor.reviewer("rita"))
    with pytest.raises(NotFound):
        owner.as_actor(Actor.agent("other")).read_blob(ref)
    assert reviewer.read_blob(ref) == PNG


def test_what_is_approved_refers_to_its_blob(mem: Memory, owner: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    item = quarantined_item(mem.remember("our mission, drawn", tier="core", key="mission", blob=ref))
    owner.approve(item.id, digest=item.digest)
    assert owner.as_actor(Actor.agent("other")).read_blob(ref) == PNG


def test_two_pictures_under_one_description_are_two_memories(mem: Memory) -> None:
    first = mem.remember("a screenshot of the map", tier="archival", blob=mem.put_blob(PNG).ref)
    second = mem.remember("a screenshot of the map", tier="archival", blob=mem.put_blob(PNG[:-1]).ref)
    assert committed_record(first).id != committed_record(second).id


def test_the_same_picture_under_the_same_description_is_one_memory(mem: Memory) -> None:
    ref = mem.put_blob(PNG).ref
    committed_record(mem.remember("a screenshot of the map", tier="archival", blob=ref))
    assert "duplicate" in codes(mem.remember("a screenshot of the map", tier="archival", blob=ref))


# --- undoing


@pytest.mark.promise("Z41")
def test_restored_memory_has_its_blob_after_any_time(mem: Memory, owner: Memory, clock: Any) -> None:
    ref = mem.put_blob(PNG).ref
    record = committed_record(mem.remember("the red house", tier="archival", blob=ref))
    owner.forget(record.id, reason="sold")
    clock.move(days=400)
    swept(owner)
    owner.restore(record.id, reason="bought back")
    assert owner.as_actor(Actor.agent("other")).read_blob(ref) == PNG


def test_a_rollback_brings_back_the_blob_of_the_version_before(owner: Memory, clock: Any) -> None:
    old, new = owner.put_blob(PNG).ref, owner.put_blob(OGG).ref
    owner.remember("the logo, first draft", tier="archival", key="logo", blob=old)
    changed = owner.remember("the jingle of the firm", tier="archival", key="logo", blob=new)
    clock.move(days=3)
    swept(owner)
    owner.rollback(changed.commit.id)  # type: ignore[union-attr]
    [record] = owner.list_memories(tiers=["archival"])
    assert (record.blob, owner.read_blob(old), owner.verify().ok) == (old, PNG, True)


def test_a_rollback_to_a_blob_that_is_not_stored_is_refused(owner: Memory) -> None:
    old, new = owner.put_blob(PNG).ref, owner.put_blob(OGG).ref
    owner.remember("the logo, first draft", tier="archival", key="logo", blob=old)
    changed = owner.remember("the jingle of the firm", tier="archival", key="logo", blob=new)
    with owner._engine.store.write() as writer:
        assert writer.drop_blob("default", old)
    with pytest.raises(Conflict, match="upload the bytes again"):
        owner.rollback(changed.commit.id)  # type: ignore[union-attr]
    [record] = owner.list_memories(tiers=["archival"])
    assert record.blob == new


# --- the chore


def test_what_nothing_refers_to_goes_a_day_later(owner: Memory, clock: Any) -> None:
    ref = owner.put_blob(PNG).ref
    clock.move(hours=24)
    assert (swept(owner)["blobs"], files(folder(owner))) == (1, [])
    with pytest.raises(NotFound):
        owner.read_blob(ref)


def test_it_stays_for_a_day(owner: Memory, clock: Any) -> None:
    ref = owner.put_blob(PNG).ref
    clock.move(hours=23, minutes=59)
    assert (swept(owner)["blobs"], owner.read_blob(ref)) == (0, PNG)


def test_no_read_removes_anything(owner: Memory, clock: Any) -> None:
    ref = owner.put_blob(PNG).ref
    clock.move(days=9)
    owner.recall("picture")
    owner.status()
    assert owner.read_blob(ref) == PNG


def test_putting_it_again_gives_it_another_day(owner: Memory, clock: Any) -> None:
    owner.put_blob(PNG)
    clock.move(hours=23)
    ref = owner.put_blob(PNG).ref
    clock.move(hours=2)
    assert (swept(owner)["blobs"], owner.read_blob(ref)) == (0, PNG)


def test_blob_of_a_pending_proposal_stays_until_the_decision(mem: Memory, owner: Memory, clock: Any) -> None:
    ref = mem.put_blob(PNG).ref
    item = quarantined_item(mem.remember("our mission, drawn", tier="core", key="mission", blob=ref))
    clock.move(days=2)
    stays = swept(owner)["blobs"]
    owner.reject(item.id, reason="not ours")
    assert (stays, swept(owner)["blobs"]) == (0, 1)


def test_what_was_swept_before_it_is_referred_to_is_refused(mem: Memory, owner: Memory, clock: Any) -> None:
    ref = mem.put_blob(PNG).ref
    clock.move(days=2)
    swept(owner)
    assert refused(mem.remember("too late", blob=ref)) == {"unknown_blob"}


def test_memory_is_never_committed_on_a_blob_being_deleted(
    opened: Callable[..., Memory], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.services.writing import blobs

    class Redactor:
        """Is asked before the transaction, so that another one fits in between."""

        def find(self, text: str) -> list[tuple[int, int, str]]:
            return []

    judge = blobs.refusal_reason
    with opened("meanwhile", actor=Actor.operator("olga"), redactor=Redactor()) as owner:
        mem = owner.as_actor(Actor.agent())
        ref = mem.put_blob(PNG).ref
        clock.move(days=2)

        def slow(*given: Any) -> Any:
            answer = judge(*given)
            monkeypatch.undo()
            swept(owner)
            return answer

        monkeypatch.setattr(blobs, "refusal_reason", slow)
        assert (refused(mem.remember("just in time", blob=ref)), owner.verify().ok) == ({"unknown_blob"}, True)


def test_what_an_interrupted_write_left_goes_with_the_chore(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    stray = file_of(owner, ref).with_name("e" * 64)
    stray.write_bytes(b"nobody's")
    part = stray.with_name(f"{ref[7:]}.9.1.part")
    part.write_bytes(b"half")
    assert (swept(owner)["strays"], files(folder(owner))) == (2, [file_of(owner, ref)])


@pytest.mark.parametrize(
    "statement", ["UPDATE documents SET at = 0 WHERE kind = 'blobs'", "DELETE FROM documents WHERE kind = 'blobs'"]
)
def test_edited_or_deleted_row_loses_no_blob_bytes(
    opened: Callable[..., Memory], tmp_path: Path, statement: str
) -> None:
    with opened("bent", actor=Actor.operator("olga")) as owner:
        owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref)
    tamper.run(tmp_path / "bent.db", statement)
    with opened("bent", actor=Actor.operator("olga")) as owner:
        owner.run_job("sweep_blobs", force=True)
        assert (len(files(folder(owner))), owner.verify().ok) == (1, False)


@pytest.mark.slow
def test_crash_between_file_and_row_leaves_only_a_stray_file(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from keepward import Actor, Memory
        from keepward.services.writing import blobs
        from keepward.machine.blob_files import FileBlobs
        keep = FileBlobs.save
        def killed(self, place, data):
            keep(self, place, data)
            os.kill(os.getpid(), signal.SIGKILL)
        FileBlobs.save = killed
        from pathlib import Path
        given = {"embedder": None, "config_dir": Path(sys.argv[2])}
        with Memory.open(sys.argv[1], actor=Actor.operator("olga"), **given) as memory:
            memory.put_blob(b"%PDF-1.7 half a put")
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path / "m.db"), str(tmp_path / "config")]
    done = subprocess.run(command, check=False, capture_output=True)
    given: dict[str, Any] = {"embedder": None, "config_dir": tmp_path / "config", "actor": Actor.operator("olga")}
    with Memory.open(tmp_path / "m.db", **given) as owner:
        left = len(files(folder(owner)))
        whole = owner.verify().ok
        assert (done.returncode, left, whole, swept(owner)["strays"], files(folder(owner))) == (
            -signal.SIGKILL,
            1,
            True,
            1,
            [],
        )


# --- damage


def test_a_changed_byte_is_never_returned(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    file = file_of(owner, ref)
    file.write_bytes(PNG[:-1] + b"\0")
    with pytest.raises(Tampered, match=ref):
        owner.read_blob(ref)


@pytest.mark.parametrize("damage", ["changed", "gone", "cut"])
def test_verify_names_a_blob_whose_file_does_not_hold(owner: Memory, damage: str) -> None:
    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    file = file_of(owner, ref)
    file.unlink() if damage == "gone" else file.write_bytes(PNG[:-1] + b"\0" if damage == "changed" else PNG[:9])
    assert [fault.row for fault in owner.verify().faults] == [f"blobs default/{ref}"]


def test_the_audit_finds_it_as_well(owner: Memory) -> None:
    file_of(owner, owner.put_blob(PNG).ref).unlink()
    assert dict(owner.run_job("integrity_audit", force=True).counts)["faults"] == 1


def test_putting_the_bytes_again_heals_it(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    file_of(owner, ref).write_bytes(b"bent")
    owner.put_blob(PNG)
    assert (owner.read_blob(ref), owner.verify().ok) == (PNG, True)


def test_doctor_says_how_many_blobs_have_lost_their_file(owner: Memory) -> None:
    file_of(owner, owner.put_blob(PNG).ref).unlink()
    [check] = [each for each in owner.doctor() if each.name == "blobs"]
    assert (check.ok, check.detail) == (False, "1 stored, 1 of them without their file")


def test_status_counts_blobs_their_bytes_and_those_without_a_memory(owner: Memory) -> None:
    owner.put_blob(OGG)
    owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref)
    assert owner.status()["blobs"] == {"count": 2, "bytes": len(PNG) + len(OGG), "unattached": 1}


def test_the_records_of_blobs_are_recomputed_from_the_journal(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    owner.rebuild()
    assert (owner.verify().ok, owner.as_actor(Actor.agent("other")).read_blob(ref)) == (True, PNG)


def test_unwritable_blob_folder_is_reported_plainly(owner: Memory) -> None:
    from keepward.errors import StoreUnavailable

    folder(owner).write_text("a file where the folder should be")
    with pytest.raises(StoreUnavailable, match="folder of blobs"):
        owner.put_blob(PNG)


# --- erasing


def erased(owner: Memory, *ids: str) -> dict[str, Any]:
    """Erase memories; return what the certificate says was cleaned."""
    done = owner.erase(owner.plan_erase(ids).digest, ids)
    return dict(owner.certificate(done.commit.id)["cleaned"])


@pytest.mark.promise("F14")
def test_certificate_counts_a_blob_erased_with_its_last_memory(owner: Memory) -> None:
    record = committed_record(owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref))
    cleaned = erased(owner, record.id)
    assert (cleaned["blobs"], files(folder(owner)), owner.verify().ok) == (1, [], True)


def test_its_name_is_in_no_file_either(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    erased(owner, committed_record(owner.remember("the red house", tier="archival", blob=ref)).id)
    digest = ref.removeprefix("sha256:").encode()
    places = [path for path in Path(owner.path).parent.parent.rglob("*") if path.is_file()]
    assert [path.name for path in places if digest in path.read_bytes()] == []


def test_shared_blob_survives_and_the_plan_names_the_other_memory(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    first = committed_record(owner.remember("the red house", tier="archival", blob=ref))
    second = committed_record(owner.remember("where the picnic was", tier="archival", blob=ref))
    plan = owner.plan_erase(first.id)
    assert (plan.blobs, plan.quoting, erased(owner, first.id)["blobs"], owner.read_blob(ref)) == (
        (),
        (second.id,),
        0,
        PNG,
    )


def test_another_picture_under_the_same_description_is_no_copy(owner: Memory) -> None:
    first = committed_record(owner.remember("a screenshot of the map", tier="archival", blob=owner.put_blob(PNG).ref))
    second = committed_record(owner.remember("a screenshot of the map", tier="archival", blob=owner.put_blob(OGG).ref))
    plan = owner.plan_erase(first.id)
    assert ([target.id for target in plan.targets], plan.quoting) == ([first.id], (second.id,))


def test_erased_content_is_not_put_again(owner: Memory) -> None:
    erased(owner, committed_record(owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref)).id)
    with pytest.raises(Conflict, match="erased and is not stored again: tombstone"):
        owner.as_actor(Actor.agent("other")).put_blob(PNG)


def test_a_rollback_does_not_bring_erased_content_back(owner: Memory) -> None:
    ref = owner.put_blob(PNG).ref
    record = committed_record(owner.remember("the red house", tier="archival", blob=ref))
    gone = owner.forget(record.id, reason="sold")
    erased(owner, record.id)
    owner.rollback(gone.commit.id)  # type: ignore[union-attr]
    with pytest.raises(NotFound):
        owner.read_blob(ref)


def test_every_version_counts_when_content_is_erased(owner: Memory) -> None:
    owner.remember("the logo, first draft", tier="archival", key="logo", blob=owner.put_blob(PNG).ref)
    record = committed_record(
        owner.remember("the jingle of the firm", tier="archival", key="logo", blob=owner.put_blob(OGG).ref)
    )
    assert (erased(owner, record.id)["blobs"], files(folder(owner))) == (2, [])


def test_blob_file_that_resisted_removal_is_removed_at_next_opening(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.machine.blob_files import FileBlobs

    def stuck(self: FileBlobs, place: str) -> None:
        raise PermissionError(13, "Permission denied")

    with opened("stuck", actor=Actor.operator("olga")) as owner:
        record = committed_record(owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref))
        with monkeypatch.context() as patch:
            patch.setattr(FileBlobs, "remove", stuck)
            said = erased(owner, record.id)["file_and_log"]
        left = len(files(folder(owner)))
    with opened("stuck", actor=Actor.operator("olga")) as owner:
        assert ("not yet" in said, left, files(folder(owner))) == (True, 1, [])


# --- copies


def test_a_backup_carries_the_blobs_and_brings_them_back(owner: Memory, tmp_path: Path) -> None:
    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    made = owner.backup(tmp_path / "b.db")
    back = Memory.restore_backup(
        tmp_path / "b.db", tmp_path / "r.db", actor=Actor.operator("olga"), config_dir=tmp_path / "config"
    )
    with Memory.open(tmp_path / "r.db", actor=Actor.agent("x"), embedder=None, config_dir=tmp_path / "config") as mem:
        assert (made.blobs, back.blobs, mem.read_blob(ref), mem.verify().ok) == (1, 1, PNG, True)


def test_an_erasure_reaches_the_blobs_of_backups(owner: Memory, tmp_path: Path) -> None:
    record = committed_record(owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref))
    owner.backup(tmp_path / "b.db")
    before = len(files(tmp_path / "b.db.blobs"))
    erased(owner, record.id)
    assert (before, files(tmp_path / "b.db.blobs")) == (1, [])


def test_restored_old_backup_lacks_erased_blobs(owner: Memory, tmp_path: Path) -> None:
    record = committed_record(owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref))
    owner.backup(tmp_path / "b.db")
    (tmp_path / "away").mkdir()
    for name in ("b.db", "b.db.blobs"):
        (tmp_path / name).rename(tmp_path / "away" / name)
    erased(owner, record.id)
    back = Memory.restore_backup(
        tmp_path / "away" / "b.db", tmp_path / "r.db", actor=Actor.operator("olga"), config_dir=tmp_path / "config"
    )
    assert (back.blobs, files(tmp_path / "r.db.blobs")) == (0, [])


def test_a_backup_names_what_the_store_itself_has_lost(owner: Memory, tmp_path: Path) -> None:
    ref = owner.put_blob(PNG).ref
    file_of(owner, ref).write_bytes(b"bent")
    made = owner.backup(tmp_path / "b.db")
    assert (made.blobs, made.faulty) == (0, (ref,))


def test_export_and_import_transfer_all_blobs(owner: Memory, opened: Callable[..., Memory], tmp_path: Path) -> None:
    from keepward.interchange import write_vault

    ref = owner.put_blob(PNG, media_type="image/png").ref
    retired = committed_record(owner.remember("the red house", tier="archival", blob=ref))
    owner.forget(retired.id, reason="sold")
    write_vault(owner, tmp_path / "v.jsonl")
    with opened("back", actor=Actor.operator("olga")) as back:
        done = brought_back(back, tmp_path / "v.jsonl")
        assert (back.read_blob(ref), back.head, back.verify().ok, "1 blobs came with it" in done.notes) == (
            PNG,
            owner.head,
            True,
            True,
        )


def test_import_into_a_used_store_checks_every_blob(
    owner: Memory, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    from keepward.interchange import load, write_vault

    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    write_vault(owner, tmp_path / "v.jsonl")
    with opened("used", actor=Actor.operator("olga")) as used:
        used.remember("something else", tier="archival")
        done = load(used, tmp_path / "v.jsonl")
        assert (done.committed, used.as_actor(Actor.agent("other")).read_blob(ref)) == (1, PNG)


def test_blob_changed_after_export_is_not_imported(
    owner: Memory, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    from keepward.interchange import load, write_vault

    ref = owner.put_blob(PNG).ref
    owner.remember("the red house", tier="archival", blob=ref)
    write_vault(owner, tmp_path / "v.jsonl")
    (tmp_path / "v.jsonl.blobs" / ref[7:]).write_bytes(PNG[:-1])
    with opened("used", actor=Actor.operator("olga")) as used:
        used.remember("something else", tier="archival")
        [(_, why)] = load(used, tmp_path / "v.jsonl").failed
    assert "its bytes do not match the hash in its name" in why


def test_an_import_without_the_folder_says_what_is_missing(
    owner: Memory, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    from keepward.interchange import write_vault

    owner.remember("the red house", tier="archival", blob=owner.put_blob(PNG).ref)
    write_vault(owner, tmp_path / "v.jsonl", blobs=False)
    with opened("bare", actor=Actor.operator("olga")) as bare:
        done = brought_back(bare, tmp_path / "v.jsonl")
        faults = [fault.check for fault in bare.verify().faults]
    assert (any(re.search(r"1 blobs .* could not be stored", note) for note in done.notes), faults) == (
        True,
        ["blobs"],
    )


def test_approval_with_a_missing_blob_is_stale_and_stores_nothing(
    mem: Memory, owner: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = mem.put_blob(PNG).ref
    item = quarantined_item(mem.remember("our mission, drawn", tier="core", key="mission", blob=ref))
    with owner._engine.store.write() as writer:
        assert writer.drop_blob("default", ref)
    with pytest.raises(StaleVersion):
        owner.approve(item.id, digest=item.digest)
    assert owner.list_memories(tiers=["core"]) == []


def test_blobs_and_their_folder_are_for_their_owner_alone(owner: Memory) -> None:
    owner.put_blob(PNG)
    modes = {oct(path.stat().st_mode & 0o777) for path in (folder(owner), *folder(owner).rglob("*"))}
    assert modes == {"0o700", "0o600"}


# --- Secrets in packed blobs are refused, and what could not be looked into is said


TEXT = f"notes of today\naws_access_key_id = {KEY}\n".encode()


def zipped(*contents: bytes, method: int = zipfile.ZIP_DEFLATED, lead: bytes = b"") -> bytes:
    file = io.BytesIO(lead)
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "a", method) as archive:
        for n, content in enumerate(contents):
            archive.writestr(f"{n}.txt", content)
    return file.getvalue()


def claimed(data: bytes, size: int) -> bytes:
    """Return an archive of one file with another claimed size."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.infolist()[0]
    return data.replace(info.file_size.to_bytes(4, "little"), size.to_bytes(4, "little"))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT),
        gzip.compress(b"nothing here\n") + gzip.compress(TEXT),
        gzip.compress(TEXT)[:-6],
        zipped(b"nothing here", TEXT),
        zipped(TEXT, method=zipfile.ZIP_STORED),
        zipped(TEXT.decode().encode("utf-16")),
        zipped(TEXT, lead=b"#!/bin/sh\nexit\n"),
        claimed(zipped(TEXT + bytes(500)), 8),
        gzip.compress(bytes(2 << 20) + TEXT),
    ],
    ids=["gzip", "second member", "cut", "zip", "stored", "utf-16", "behind a script", "claims less", "far behind"],
)
def test_a_packed_secret_is_refused_and_nothing_stored(mem: Memory, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret") as told:
        mem.put_blob(data)
    assert KEY not in str(told.value)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (bz2.compress(TEXT), "bzip2 is not unpacked"),
        (b"%PDF-1.7\n\xb5\xb5\n" + bytes(200), "of a PDF only texts in one piece"),
        (zipped(gzip.compress(TEXT)), "inside of packed ones"),
        (gzip.compress(zipped(TEXT)), "inside of packed ones"),
        (zipped(TEXT, method=zipfile.ZIP_BZIP2), "another way than deflate"),
        (gzip.compress(b"plain words\n" * 99)[:-9], "damaged"),
        (gzip.compress(bytes(40 << 20)), "first 32 MB"),
        (zipped(*[bytes(20 << 20)] * 2), "first 32 MB"),
        (gzip.compress(b"") * 10_001, "more than 10000 files"),
    ],
    ids=["bzip2", "pdf", "gzip in zip", "zip in gzip", "bzip2 in zip", "damaged", "large", "large together", "many"],
)
def test_what_could_not_be_scanned_is_said(mem: Memory, data: bytes, note: str) -> None:
    kept = mem.put_blob(data)
    assert [each for each in kept.notes if note in each], kept.notes


# --- Texts and metadata of pictures and PDF files


def chunk(name: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")


def png(*chunks: bytes) -> bytes:
    head = chunk(b"IHDR", bytes((0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0)))
    end = (chunk(b"IDAT", zlib.compress(b"\0\0")), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join((head, *chunks, *end))


def ztxt(text: bytes = TEXT) -> bytes:
    return png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(text)))


def jpeg(marker: int, content: bytes) -> bytes:
    part = bytes((0xFF, marker)) + (len(content) + 2).to_bytes(2, "big") + content
    return b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + part + b"\xff\xd9"


def gif(comment: bytes) -> bytes:
    blocks = b"".join(
        bytes((len(part),)) + part for part in (comment[n : n + 255] for n in range(0, len(comment), 255))
    )
    return b"GIF89a\1\0\1\0\0\0\0\x21\xfe" + blocks + b"\0\x3b"


def webp(name: bytes, content: bytes) -> bytes:
    part = name + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)
    return b"RIFF" + (len(part) + 4).to_bytes(4, "little") + b"WEBP" + part


def pdf(content: bytes, about: bytes = b"/Filter /FlateDecode") -> bytes:
    packed = zlib.compress(content)
    head = b"%PDF-1.7\n%\xb5\xb5\xb5\xb5\n1 0 obj\n<< /Length "
    return head + str(len(packed)).encode() + b" " + about + b" >>\nstream\r\n" + packed + b"\nendstream\nendobj\n"


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><dc:description>' + TEXT + b"</dc:description></x:xmpmeta>"
HEX = b"\nexif\n      84\n" + b"\n".join(TEXT.hex().encode()[n : n + 72] for n in range(0, 2 * len(TEXT), 72)) + b"\n"
HOLDERS = {
    "zTXt": ztxt(),
    "compressed iTXt": png(chunk(b"iTXt", b"Comment\0\1\0en\0Note\0" + zlib.compress(TEXT))),
    "compressed iTXt without a language": png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP))),
    "iTXt": png(chunk(b"iTXt", b"Comment\0\0\0\0\0" + TEXT)),
    "tEXt": png(chunk(b"tEXt", b"Comment\0" + TEXT)),
    "eXIf": png(chunk(b"eXIf", b"MM\0*\0\0\0\x08" + TEXT)),
    "iCCP": png(chunk(b"iCCP", b"profile\0\0" + zlib.compress(bytes(64) + TEXT))),
    "a profile as hex digits": ztxt(HEX),
    "after many": png(
        *[chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"tea"))] * 300, chunk(b"zTXt", b"A\0\0" + zlib.compress(TEXT))
    ),
    "a damaged one before it": png(chunk(b"zTXt", b"A\0\0damaged"), chunk(b"zTXt", b"A\0\0" + zlib.compress(TEXT))),
    "cut": png(chunk(b"zTXt", b"A\0\0" + zlib.compress(TEXT * 9)[:-6])),
    "PNG in zip": zipped(ztxt()),
    "PNG in gzip": gzip.compress(ztxt()),
    "PNG behind other bytes": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + ztxt(),
    "JPEG comment": jpeg(0xFE, TEXT),
    "JPEG EXIF": jpeg(0xE1, b"Exif\0\0MM\0*\0\0\0\x08" + TEXT),
    "JPEG XMP": jpeg(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP),
    "GIF comment": gif(TEXT),
    "GIF comment of two blocks": gif(b"t" * 211 + TEXT),
    "WebP EXIF": webp(b"EXIF", b"MM\0*\0\0\0\x08" + TEXT),
    "WebP XMP": webp(b"XMP ", XMP),
    "PDF": pdf(b"BT /F1 12 Tf 72 712 Td (" + TEXT + b") Tj ET"),
    "PDF without blanks": pdf(b"BT (" + TEXT + b") Tj ET", b"/Filter[/FlateDecode]"),
    "PDF in zip": zipped(pdf(b"BT (" + TEXT + b") Tj ET")),
}


@pytest.mark.parametrize("data", HOLDERS.values(), ids=HOLDERS)
def test_a_secret_in_a_picture_or_pdf_is_refused_and_nothing_stored(mem: Memory, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret") as told:
        mem.put_blob(data)
    assert KEY not in str(told.value)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (ztxt(bytes(2 << 20)), "first 32 MB"),
        (png(*[chunk(b"zTXt", b"A\0\0" + zlib.compress(bytes(1 << 20)))] * 2), "first 32 MB"),
        (png(*[chunk(b"zTXt", b"A\0\0" + zlib.compress(b"tea"))] * 10_002), "first 10000 packed parts"),
        (zipped(*[ztxt(bytes(1 << 20))] * 2), "first 32 MB"),
        (pdf(bytes(2 << 20)), "first 32 MB"),
    ],
    ids=["large", "large together", "many", "large in zip", "PDF"],
)
def test_what_comes_out_of_pictures_is_bounded_and_said(
    mem: Memory, monkeypatch: pytest.MonkeyPatch, data: bytes, note: str
) -> None:
    # The limit of 32 MB, made smaller.
    monkeypatch.setattr("keepward.services.writing.blobs.Budget", lambda: Budget(3 << 19))
    kept = mem.put_blob(data)
    assert [each for each in kept.notes if note in each], kept.notes


def test_overlapping_parts_that_give_no_output_are_bounded() -> None:
    # Each of the parts reaches to the end, through blocks of deflate that give nothing.
    empty = b"\x78\x01" + b"\0\0\0\xff\xff" * 200_000
    part = b"\xff\xff\xff\xffzTXtA\0\0"
    budget, notes = Budget(), []
    assert b"".join(unpack_parts(part * 9_000 + empty, notes, budget)) == b""
    assert budget.left > -(1 << 20)


def test_overlapping_files_of_a_zip_are_not_unpacked(mem: Memory) -> None:
    made = zipped(*[b"x" * 100] * 3, method=zipfile.ZIP_STORED)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        infos = archive.infolist()
        # The list of files names the first content thrice, with the size of all three.
        for info in infos:
            info.header_offset, info.compress_size = 0, len(made) // 2
        out = io.BytesIO(made[: archive.start_dir])
        out.seek(0, io.SEEK_END)
        archive.fp, archive._didModify, archive.start_dir = out, True, archive.start_dir
        archive._write_end_record()
        archive.fp = None
    assert [each for each in mem.put_blob(out.getvalue()).notes if "damaged" in each]


@pytest.mark.parametrize("data", [ztxt(b"a boat at noon"), gif(b"tea"), jpeg(0xFE, b"tea")], ids=["PNG", "GIF", "JPEG"])
def test_pictures_without_a_secret_are_stored_without_a_note(mem: Memory, data: bytes) -> None:
    assert mem.put_blob(data).notes == ()


def test_packed_text_without_a_secret_is_stored_without_a_note(mem: Memory) -> None:
    assert mem.put_blob(zipped(b"the ferry leaves at six")).notes == mem.put_blob(gzip.compress(b"tea")).notes == ()
