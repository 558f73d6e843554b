"""The drill: green on a sound store, red where a defence is taken away, and never in touch with the store itself."""

from __future__ import annotations

import logging
import threading

import pytest

from keepward import Actor, Memory, Policy
from keepward.drill import drill as drilling
from keepward.drill.drill import Attack, Tried, attacks, drill

pytestmark = pytest.mark.slow

NAMES = [attack.name for attack in attacks()]


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
    """One drill of a store in use, with every attack."""
    return lines(filled(tmp_path_factory.mktemp("drilled")))


def lines(store, *names, policy=None):
    chosen = [attack for attack in attacks() if attack.name in names] if names else None
    return {line.name: line for line in drill(store, tenant="default", policy=policy or Policy(), chosen=chosen)}


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


def test_what_an_attack_makes_the_store_say_is_not_logged_and_what_others_say_is(store, caplog):
    logger = logging.getLogger("keepward.store.rows")

    def elsewhere():
        logger.warning("of another store")

    def run(_):
        logger.warning("of the copy")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(20)
        # Another drill of the same process begins and ends meanwhile.
        lines(store, "no_such_attack")
        logger.warning("of the copy")
        return Tried(True, True, "")

    drill(store, tenant="default", policy=Policy(), chosen=[Attack("x", "x", run)])
    logger.warning("of the store")
    said = [each.message for each in caplog.records if each.name == logger.name]
    assert said == ["of another store", "of the store"]


def test_a_store_that_is_obeyed_unknown_turns_a_line_red(store, monkeypatch):
    from keepward.store.store import Store

    monkeypatch.setattr(Store, "_admit", lambda self: None)
    assert lines(store, "foreign_store")["foreign_store"].status == "breached"


def test_settings_that_hold_unaccepted_turn_a_line_red(store, monkeypatch):
    monkeypatch.setattr("keepward.accepted.is_accepted", lambda *_: True)
    assert lines(store, "foreign_settings")["foreign_settings"].status == "breached"


@pytest.mark.promise("F5")
@pytest.mark.parametrize("name", NAMES)
def test_every_defence_fires_on_a_store_in_use(drilled, name):
    assert drilled[name].status == "fired"


@pytest.mark.slow
def test_every_defence_fires_on_an_empty_store(tmp_path):
    Memory.open(tmp_path / "e.db", embedder=None, config_dir=tmp_path / "config").close()
    assert {line.status for line in lines(tmp_path / "e.db").values()} == {"fired"}


def test_the_names_of_attacks_are_unique():
    assert len(set(NAMES)) == len(NAMES) >= 20


def test_every_attack_says_what_it_tries():
    assert len({attack.title for attack in attacks() if attack.title}) == len(NAMES)


@pytest.mark.parametrize(
    ("gate", "attack"),
    [
        ("authority", "poison_core"),
        ("authority", "poison_state"),
        ("authority", "self_approval"),
        ("authority", "revive_contained"),
        ("authority", "revise_the_owners"),
        ("authority", "bend_the_owners_fields"),
        ("secrets", "plant_secret"),
        ("duplicate", "revive_by_restating"),
    ],
)
def test_a_gate_that_is_taken_out_turns_a_line_red(store, without, gate, attack):
    without(gate)
    assert lines(store, attack)[attack].status == "breached"


def test_a_sealer_that_accepts_everything_turns_a_line_red(store, monkeypatch):
    from keepward.store.seals import Sealer

    monkeypatch.setattr(Sealer, "holds_row", lambda *_: True)
    assert lines(store, "bend_receipt")["bend_receipt"].status == "breached"


@pytest.mark.promise("F5")
def test_an_anchor_that_forgets_turns_a_line_red(store, monkeypatch):
    from keepward.adapters.home import FileAnchor

    monkeypatch.setattr(FileAnchor, "noted", lambda *_: None)
    assert lines(store, "restore_older")["restore_older"].status == "breached"


@pytest.mark.promise("C98")
def test_a_purpose_that_accepts_everything_turns_a_line_red(store):
    from keepward import Trust

    policy = Policy(least_trust=dict.fromkeys(("answer", "act", "core"), Trust.UNKNOWN))
    assert lines(store, "act_on_web", policy=policy)["act_on_web"].status == "breached"


def test_a_reach_that_goes_down_turns_a_line_red(store, monkeypatch):
    from keepward.engine import audit, read, view

    for module in (audit, read, view):
        monkeypatch.setattr(module, "reaches", lambda *_: True)
    assert lines(store, "read_below")["read_below"].status == "breached"


def test_names_of_blocks_that_are_not_reserved_turn_a_line_red(store, without):
    without("shape")
    assert lines(store, "borrow_block")["borrow_block"].status == "breached"


def test_a_prompt_without_origins_turns_a_line_red(store, monkeypatch):
    monkeypatch.setattr("keepward.context.lines.origin", lambda *_: None)
    assert lines(store, "borrow_voice")["borrow_voice"].status == "breached"


def test_an_erasure_that_passes_over_the_queue_turns_a_line_red(store, monkeypatch):
    from keepward.engine import erase as erase_plan

    monkeypatch.setattr(erase_plan, "_is_chosen", lambda *_: False)
    assert lines(store, "outlive_erasure")["outlive_erasure"].status == "breached"


def test_names_that_nobody_reads_turn_a_line_red(store, monkeypatch):
    from keepward.verbs import arguments

    monkeypatch.setattr(arguments, "_no_secret", lambda name: name)
    assert lines(store, "name_a_secret")["name_a_secret"].status == "breached"


def test_a_length_that_is_asked_last_turns_a_line_red(store, monkeypatch):
    from keepward.engine import write

    monkeypatch.setattr(write, "ill_formed", lambda *_: ())
    assert lines(store, "drown_the_gates")["drown_the_gates"].status == "breached"


def test_a_queue_without_an_end_turns_a_line_red(store, monkeypatch):
    from keepward.engine import write

    monkeypatch.setattr(write, "_waiting_enough", lambda *_: False)
    assert lines(store, "flood_the_queue")["flood_the_queue"].status == "breached"


def test_an_approval_by_the_proposer_turns_a_line_red(store, monkeypatch):
    from keepward.model.trust import Actor as Principal

    monkeypatch.setattr(Principal, "may_decide", True)
    monkeypatch.setattr(Principal, "could_be", lambda *_: False)
    assert lines(store, "self_approval")["self_approval"].status == "breached"


def test_names_that_are_told_apart_by_class_turn_a_line_red(store, monkeypatch):
    from keepward.model.trust import Actor as Principal

    monkeypatch.setattr(Principal, "could_be", Principal.is_same)
    assert lines(store, "approve_by_name")["approve_by_name"].status == "breached"


def test_a_repetition_that_confirms_whoever_says_it_turns_a_line_red(store, monkeypatch):
    from keepward.engine import write

    monkeypatch.setattr(write, "_weigh", lambda *_: None)
    assert lines(store, "confirm_from_a_page")["confirm_from_a_page"].status == "breached"


@pytest.mark.parametrize("attack", ["ask_for_sensitive", "consent_for_a_person"])
def test_rights_that_every_credential_has_turn_a_line_red(store, monkeypatch, attack):
    from keepward.model.trust import Actor as Principal

    monkeypatch.setattr(Principal, "able", lambda *_: True)
    assert lines(store, attack)[attack].status == "breached"


def test_a_policy_that_marks_nothing_that_was_read_turns_a_line_red(store):
    policy = Policy(mark_what_was_read=False)
    assert lines(store, "paraphrase_a_page", policy=policy)["paraphrase_a_page"].status == "breached"


def test_a_check_that_cannot_fail_is_no_green_line(store):
    policy = Policy(core_keys=())
    assert lines(store, "poison_core", policy=policy)["poison_core"].status == "inconclusive"


def test_an_attack_whose_control_fails_is_inconclusive(store):
    attack = Attack(name="x", title="x", run=lambda _: Tried(held=True, control=False, by="nothing"))
    found = drill(store, tenant="default", policy=Policy(), chosen=[attack])
    assert [line.status for line in found] == ["inconclusive"]


def test_memory_that_is_paused_is_drilled_all_the_same(store):
    policy = Policy(enabled=False, capture=False)
    assert lines(store, "poison_state", policy=policy)["poison_state"].status == "fired"


@pytest.mark.parametrize("name", ["poison_core", "edit_text", "restore_older", "cut_file"])
def test_the_drill_touches_neither_the_store_nor_its_noted_heads(store, files, name):
    before = files()
    lines(store, name)
    assert files() == before


def test_a_store_in_use_by_somebody_else_is_drilled_with_its_newest_commit(store, tmp_path):
    seen = []
    attack = Attack(name="x", title="x", run=lambda ground: seen.extend(ground.owner.find(limit=None)))
    with Memory.open(store, embedder=None, config_dir=tmp_path / "config", actor=Actor.operator("olga")) as memory:
        newest = memory.remember("Bo prefers spaces", tier="archival").records[0]
        with pytest.raises(TypeError):
            drill(store, tenant="default", policy=Policy(), chosen=[attack])
    assert newest.id in {each.id for each in seen}


def test_the_drill_leaves_no_folder_behind(store, monkeypatch, tmp_path):
    monkeypatch.setattr(drilling.tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    lines(store, "poison_core")
    assert set(tmp_path.iterdir()) == before
