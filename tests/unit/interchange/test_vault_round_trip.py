import io
import json
import os
import random

import pytest

from keepward.core.policy import Policy
from keepward.core.principals import Actor
from keepward.errors import Conflict, InvalidInput, Unauthorised
from keepward.gates.detectors.matcher import Finding
from keepward.interchange import load, plan_restore_export, restore_export, write_vault
from keepward.interchange.parsing import open_source
from keepward.interchange.vault import verify_file
from keepward.memory import Memory

MARK = Finding(detector="made_up", start=0, end=4)


@pytest.fixture
def filled_store(mem):
    """A store with a memory of two versions, a retired one, a keyed one and one with every odd letter."""
    first = mem.remember("Ana prefers tabs", tier="archival", tags=["editor"], evidence=["chat:42"]).records[0]
    mem.revise(first.id, "Ana prefers spaces", reason="she changed her mind")
    gone = mem.remember("The office has a red door", tier="archival").records[0]
    mem.forget(gone.id, reason="it was painted")
    mem.remember("Ship on Friday", tier="core", key="mission", reason="the plan")
    mem.remember("Zürich \u2028 东京 \U0001f600", tier="archival", metadata={"n": [1, {"x": None}]})
    return mem


@pytest.fixture
def exported(filled_store, tmp_path):
    path = tmp_path / "vault.jsonl"
    write_vault(filled_store, path)
    return path


def test_an_export_does_not_replace_a_store(tmp_path):
    path = tmp_path / "m.db"
    with Memory.open(path, actor=Actor.operator("ada"), embedder=None, config_dir=tmp_path / "home") as memory:
        memory.remember("Ana prefers tabs", blob=memory.put_blob(b"tabs").ref)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InvalidInput, match="is a store; name another file"):
            write_vault(memory, path)
        assert sorted(tmp_path.rglob("*")) == before
        assert path.read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("content", ["precious notes\n", '{"a": 1}\n'])
def test_an_export_does_not_replace_another_file(filled_store, tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(InvalidInput, match="is no export; move it away"):
        write_vault(filled_store, path)
    assert path.read_text() == content


def test_an_export_replaces_an_earlier_one(filled_store, exported):
    filled_store.remember("The pier is closed")
    assert write_vault(filled_store, exported) == len(rows(exported)) > 1


def test_an_export_does_not_replace_a_pipe(filled_store, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="is not a file"):
        write_vault(filled_store, tmp_path / "pipe")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def bring_back(store, path, **options):
    return restore_export(store, path, plan_restore_export(store, path).digest, **options)


def head(store):
    return store.log(limit=1)[0].commit.hash


def test_the_fields_for_people_come_first(exported):
    assert list(rows(exported)[0])[:8] == ["id", "version", "tier", "kind", "key", "scope", "text", "status"]


def test_a_round_trip_preserves_the_head(filled_store, exported, make_store):
    other = make_store("other")
    bring_back(other, exported)
    assert head(other) == head(filled_store)


def test_a_round_trip_preserves_commits_of_many_lines(mem, make_store, tmp_path):
    for part in ("first", "second"):
        mem.remember_many([f"the {part} list has the entry {number}" for number in (3, 14, 159)])
    write_vault(mem, tmp_path / "v.jsonl")
    other = make_store("other")
    bring_back(other, tmp_path / "v.jsonl")
    assert head(other) == head(mem)


def test_import_into_a_used_tenant_adds_active_memories_as_new(exported, make_store):
    other = make_store("other")
    other.remember("Something else", tier="archival")
    done = load(other, exported)
    assert (done.committed, "`keepward restore-export`" in done.notes[0]) == (2, True)


def test_imported_core_block_never_overwrites_an_existing_one(exported, make_store):
    other = make_store("other")
    other.remember("Ship on Monday", tier="core", key="mission", reason="the plan here")
    load(other, exported)
    assert [each.text for each in other.list_memories(tiers=["core"])] == ["Ship on Monday"]


def test_nothing_is_restored_while_policy_switches_memory_off(exported, make_store):
    other = make_store("other", policy=Policy(enabled=False))
    done = load(other, exported)
    assert (done.committed, done.refused, other.log(limit=1)) == (0, 3, [])
    with pytest.raises(Conflict, match="switched off"):
        plan_restore_export(other, exported)


def test_import_restores_nothing_even_for_an_empty_stores_owner(filled_store, exported, make_store):
    other = make_store("other")
    done = load(other, exported)
    assert (
        done.committed,
        done.quarantined,
        other.list_memories(tiers=["core"]),
        head(other) == head(filled_store),
    ) == (
        2,
        1,
        [],
        False,
    )


def test_restore_plan_shows_core_blocks_and_changes_nothing(filled_store, exported, make_store):
    other = make_store("other")
    plan = plan_restore_export(other, exported)
    assert [(each.key, each.text) for each in plan.core] == [("mission", "Ship on Friday")]
    assert (plan.versions, plan.live, plan.head, other.log(limit=1)) == (6, 3, filled_store.head, [])


def test_a_restore_takes_the_digest_of_what_was_shown(filled_store, exported, make_store, tmp_path):
    digest = plan_restore_export(make_store("other"), exported).digest
    filled_store.remember("Something that was added", tier="archival")
    write_vault(filled_store, tmp_path / "later.jsonl")
    with pytest.raises(Conflict):
        restore_export(make_store("third"), tmp_path / "later.jsonl", digest)


def test_a_tenant_that_holds_something_is_not_restored_into(filled_store, exported):
    with pytest.raises(Conflict, match="not empty"):
        plan_restore_export(filled_store, exported)


def test_only_the_owner_restores_an_export(exported, make_store):
    with pytest.raises(Unauthorised):
        plan_restore_export(make_store("other", actor=Actor.agent()), exported)


def test_what_is_no_export_is_not_restored(make_store, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\n- Ana prefers tabs\n")
    with pytest.raises(InvalidInput, match="import it"):
        plan_restore_export(make_store("other"), tmp_path / "notes.md")


def test_a_stream_of_few_letters_gets_the_others_escaped(filled_store, exported):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    write_vault(filled_store, stream)
    stream.flush()
    assert [json.loads(line) for line in raw.getvalue().splitlines()] == rows(exported)


def damaged(path, tmp_path, change):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    out = tmp_path / "damaged.jsonl"
    out.write_text("".join(change(lines)), encoding="utf-8")
    return out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[:-1], "must end at"),
        (lambda lines: [*lines[:-1], lines[-1][:40]], "line 6"),
        (lambda lines: lines[1:], "beginning of the file is missing"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2"),
        (lambda lines: [each.replace("spaces", "commas") for each in lines], "line 2: the content does not match"),
        (lambda lines: [each.replace("her mind", "his mind") for each in lines], "line 2: commit 2"),
        (lambda lines: [lines[0], "not json\n", *lines[1:]], "line 2"),
        (lambda lines: [lines[0].replace('"commit"', '"kommit"'), *lines[1:]], "line 1"),
    ],
)
def test_damaged_file_is_named_by_line_and_nothing_imported(exported, tmp_path, make_store, change, reason):
    other = make_store("other")
    with pytest.raises(InvalidInput, match=reason):
        load(other, damaged(exported, tmp_path, change))
    assert other.log(limit=1) == []


def test_every_flipped_bit_is_noticed(exported, tmp_path):
    whole, rng = exported.read_bytes(), random.Random(7)
    for _ in range(60):
        place = rng.randrange(len(whole))
        flipped = bytes([whole[place] ^ 1 << rng.randrange(8)])
        with (
            pytest.raises(InvalidInput),
            open_source(io.BytesIO(whole[:place] + flipped + whole[place + 1 :])) as source,
        ):
            verify_file(source)


def test_a_field_that_no_hash_covers_is_not_accepted(exported, tmp_path, make_store):
    with pytest.raises(InvalidInput, match="line 3: a field was changed"):
        load(
            make_store("other"),
            damaged(exported, tmp_path, lambda lines: [*lines[:2], lines[2][:-2] + ',"x":1}\n', *lines[3:]]),
        )


def test_a_file_laid_out_again_is_still_the_same_file(filled_store, exported, tmp_path, make_store):
    other = make_store("other")
    bring_back(
        other, damaged(exported, tmp_path, lambda lines: [json.dumps(json.loads(each)) + "\n" for each in lines])
    )
    assert head(other) == head(filled_store)


def test_vault_with_a_secret_is_refused_and_names_the_line(filled_store, make_store, tmp_path, monkeypatch):
    # The gates never let one in, so the word here stands for it.
    monkeypatch.setattr("keepward.gates.detectors.secrets.scan", lambda text: [MARK] if "spaces" in text else [])
    write_vault(filled_store, tmp_path / "v.jsonl")
    with pytest.raises(InvalidInput, match=r"line 2: contains a secret \(made_up\)"):
        load(make_store("other"), tmp_path / "v.jsonl")
