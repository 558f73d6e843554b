"""The drill: green on a sound store, red where a defence is taken away, and never in touch with the store itself."""

from __future__ import annotations

import logging
import threading

import pytest

from keepward import Actor, Memory, Policy
from keepward.drill import drill as drilling
from keepward.drill.attacks import ATTACKS, Attack, AttackResult
from keepward.drill.drill import drill

pytestmark = pytest.mark.slow

NAMES = [attack.name for attack in ATTACKS]


def filled(folder):
    path = folder / "store" / "m.db"
    path.parent.mkdir()
    with Memory.open(path, embedder=None, config_dir=folder / "config", actor=Actor.operator("olga")) as memory:
        memory.remember("Ship the app before Easter", tier="core", key="mission", confidence=0.95)
        memory.remember("Ana prefers tabs", tier="archival")
    return path


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path)


@pytest.fixture(scope="module")
def drilled(tmp_path_factory):
    """One drill of a store in use."""
    return results(filled(tmp_path_factory.mktemp("drilled")))


def results(store, *names, policy=None):
    chosen = [attack for attack in ATTACKS if attack.name in names or not names]
    return {each.name: each for each in drill(store, tenant="default", policy=policy or Policy(), attacks=chosen)}


def status(store, name, **options):
    return results(store, name, **options)[name].status


@pytest.fixture
def without(monkeypatch):
    """Take a gate out of the pipeline, as a broken build might."""

    def remove(name):
        from keepward.gates import pipeline

        monkeypatch.setattr(pipeline, "GATES", tuple(pair for pair in pipeline.GATES if pair[0] != name))

    return remove


@pytest.fixture
def files(store, tmp_path):
    """What lies in the store's folder and in the configuration folder."""

    def look():
        return {
            str(each.relative_to(tmp_path)): (each.read_bytes(), each.stat().st_mtime_ns)
            for folder in (store.parent, tmp_path / "config")
            for each in sorted(folder.rglob("*"))
            if each.is_file()
        }

    return look


def test_what_an_attack_makes_the_copy_say_is_not_logged(store, caplog):
    logger = logging.getLogger("keepward.storage.rows")

    def elsewhere():
        logger.warning("of another store")

    def run(_):
        logger.warning("of the copy")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(20)
        # Another drill of the same process begins and ends meanwhile.
        results(store, "no_such_attack")
        logger.warning("of the copy")
        return AttackResult(True, True, "")

    drill(store, tenant="default", policy=Policy(), attacks=[Attack("x", "x", run)])
    logger.warning("of the store")
    said = [each.message for each in caplog.records if each.name == logger.name]
    assert said == ["of another store", "of the store"]


@pytest.mark.promise("F5")
@pytest.mark.parametrize("name", NAMES)
def test_every_defence_fires_on_a_store_in_use(drilled, name):
    assert drilled[name].status == "fired"


def test_every_defence_fires_on_an_empty_store(tmp_path):
    Memory.open(tmp_path / "e.db", embedder=None, config_dir=tmp_path / "config").close()
    assert {each.status for each in results(tmp_path / "e.db").values()} == {"fired"}


def test_each_attack_names_its_attempt_and_its_evidence(drilled):
    assert len(set(NAMES)) == len({attack.title for attack in ATTACKS}) == len(NAMES) == 14
    assert [each.name for each in drilled.values() if "; see `keepward " not in each.defence] == []


@pytest.mark.parametrize("command", sorted({attack.see for attack in ATTACKS}))
def test_each_command_that_the_drill_names_exists(command):
    from keepward.cli.main import main

    assert main([command.split()[1], "--help"]) == 0


@pytest.mark.parametrize(
    ("gate", "attack"),
    [
        ("secrets", "plant_secret"),
        ("authority", "override_the_user"),
        ("authority", "delete_as_agent"),
        ("authority", "write_above"),
        ("authority", "poison_import"),
    ],
)
def test_a_gate_that_is_taken_out_fails_a_check(store, without, monkeypatch, gate, attack):
    without(gate)
    # Scope and rights are checked before the gates too.
    monkeypatch.setattr("keepward.services.writing.write.outside_rights", lambda *_: None)
    assert status(store, attack) == "breached"


def test_a_prompt_that_no_one_screens_fails_a_check(store, without, monkeypatch):
    from keepward.services.reading import contexts
    from keepward.services.reading.output_filter import OutputFilterResult

    without("injection")
    monkeypatch.setattr(contexts, "filter_output", lambda records: [OutputFilterResult() for _ in records])
    assert status(store, "order_the_model") == "breached"


def test_a_root_that_ends_nowhere_fails_a_check(store, monkeypatch):
    from pathlib import Path

    from keepward.machine.source_files import SourceFiles

    monkeypatch.setattr(SourceFiles, "_resolved_roots", lambda _: [Path("/")])
    assert status(store, "cite_outside") == "breached"


def test_an_erasure_that_no_one_remembers_fails_a_check(store, monkeypatch):
    from keepward.services.writing import tombstones

    monkeypatch.setattr(tombstones, "tombstone_for", lambda *_: None)
    assert status(store, "revive_erased") == "breached"


def test_a_reach_that_goes_anywhere_fails_a_check(store, monkeypatch):
    from keepward.services.reading.visible import VisibleReader

    monkeypatch.setattr(VisibleReader, "can_see", lambda *_: True)
    assert status(store, "cross_scopes") == "breached"


@pytest.mark.promise("F5")
def test_an_anchor_that_forgets_fails_a_check(store, monkeypatch):
    from keepward.machine.trust_store import TrustStore

    monkeypatch.setattr(TrustStore, "last_head", lambda *_: None)
    assert status(store, "restore_older") == "breached"


def test_a_check_that_cannot_fail_is_no_green_line(store):
    policy = Policy(access={"archival": "approval"})
    assert status(store, "write_above", policy=policy) == "inconclusive"


def test_an_attack_whose_control_fails_is_inconclusive(store):
    attack = Attack("x", "x", lambda _: AttackResult(held=True, control=False, defence="nothing"))
    found = drill(store, tenant="default", policy=Policy(), attacks=[attack])
    assert [each.status for each in found] == ["inconclusive"]


def test_memory_that_is_paused_is_drilled_all_the_same(store):
    assert status(store, "override_the_user", policy=Policy(enabled=False, capture=False)) == "fired"


@pytest.mark.parametrize("name", ["order_the_model", "edit_text", "restore_older"])
def test_the_drill_touches_neither_the_store_nor_its_noted_heads(store, files, name):
    before = files()
    results(store, name)
    assert files() == before


def test_store_open_elsewhere_is_drilled_with_its_newest_commit(store, tmp_path):
    seen = []
    attack = Attack("x", "x", lambda copy: seen.extend(copy.owner.list_memories(limit=None)))
    with Memory.open(store, embedder=None, config_dir=tmp_path / "config", actor=Actor.operator("olga")) as memory:
        newest = memory.remember("Bo prefers spaces", tier="archival").records[0]
        with pytest.raises(TypeError):
            drill(store, tenant="default", policy=Policy(), attacks=[attack])
    assert newest.id in {each.id for each in seen}


def test_the_drill_leaves_no_folder_behind(store, monkeypatch, tmp_path):
    monkeypatch.setattr(drilling.tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    results(store, "order_the_model")
    assert set(tmp_path.iterdir()) == before
