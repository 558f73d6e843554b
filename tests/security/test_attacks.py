"""Every attack that the drill leaves out comes to nothing, and goes through where its defence is taken away.

The attacks stand in ``evals/attacks_by_request.py`` and ``evals/attacks_by_statement.py``; ``python -m evals.security``
makes them on both kinds of stores.
"""

from __future__ import annotations

import pytest
from evals.attack_store import attacked
from evals.attacks import attacks
from evals.security_figure import opened
from evals.target import Target

from keepward import Actor, Policy, Trust
from keepward.drill.attacks import ATTACKS

pytestmark = pytest.mark.slow

NAMES = [attack.name for attack in attacks()]


def results(folder, names, policy=None, *, used=True):
    target = Target(folder)
    with opened(target) as owner:
        if used:
            owner.remember("Ship the app before Easter", tier="core", key="mission", confidence=0.95)
            owner.remember("Ana prefers tabs", tier="archival")
    chosen = [attack for attack in attacks() if attack.name in names]
    return {each.name: each.status for each in attacked(target, chosen, policy)}


@pytest.fixture(scope="module", params=["used", "empty"])
def made(request, tmp_path_factory):
    """Every attack, made on a store in use, and on an empty one."""
    return results(tmp_path_factory.mktemp("attacked"), NAMES, used=request.param == "used")


@pytest.fixture
def status(tmp_path):
    """Make one attack on a store in use."""
    return lambda name, policy=None: results(tmp_path, [name], policy)[name]


@pytest.mark.promise("F5")
@pytest.mark.parametrize("name", NAMES)
def test_every_attack_comes_to_nothing(made, name):
    assert made[name] == "fired"


def test_no_two_attacks_have_one_name_or_title():
    every = [*ATTACKS, *attacks()]
    assert len({each.name for each in every}) == len({each.title for each in every}) == len(every)


@pytest.mark.parametrize(
    ("gate", "attack"),
    [
        ("authority", "poison_core"),
        ("authority", "poison_state"),
        ("authority", "self_approval"),
        ("authority", "revive_contained"),
        ("authority", "revise_the_owners"),
        ("authority", "bend_the_owners_fields"),
        ("secrets", "plant_secret_everywhere"),
        ("duplicate", "revive_by_restating"),
        ("shape", "borrow_block"),
    ],
)
def test_an_attack_goes_through_without_its_gate(status, monkeypatch, gate, attack):
    from keepward.gates import pipeline

    monkeypatch.setattr(pipeline, "GATES", tuple(pair for pair in pipeline.GATES if pair[0] != gate))
    assert status(attack) == "breached"


#: An attack, the functions that are its defence, and what a broken build has in their place.
BROKEN = [
    ("foreign_store", ["storage.store.EventStore._require_trusted"], lambda _: None),
    ("foreign_settings", ["settings_trust.is_accepted"], lambda *_: True),
    ("bend_receipt", ["storage.seals.Sealer.matches_row"], lambda *_: True),
    ("read_below", ["services.reading.visible.VisibleReader.can_see"], lambda *_: True),
    ("borrow_voice", ["context.lines.trust_label"], lambda *_: None),
    ("outlive_erasure", ["services.undoing.erasure._is_chosen"], lambda *_: False),
    ("name_a_secret", ["services.arguments._no_secret"], lambda name: name),
    ("drown_the_gates", ["services.writing.write.validation_error"], lambda *_: ()),
    ("flood_the_queue", ["services.writing.write._queue_is_full"], lambda *_: False),
    ("approve_by_name", ["core.principals.Actor.may_be_same_actor"], Actor.is_same_actor),
    ("confirm_from_a_page", ["services.writing.write._confirm_existing"], lambda *_: None),
    ("ask_for_sensitive", ["core.principals.Actor.has_right"], lambda *_: True),
    ("consent_for_a_person", ["core.principals.Actor.has_right"], lambda *_: True),
]


@pytest.mark.parametrize(("attack", "defences", "instead"), BROKEN, ids=[each[0] for each in BROKEN])
def test_an_attack_goes_through_without_its_defence(status, monkeypatch, attack, defences, instead):
    for each in defences:
        monkeypatch.setattr(f"keepward.{each}", instead)
    assert status(attack) == "breached"


def test_a_proposer_who_may_decide_approves_its_own_edit(status, monkeypatch):
    monkeypatch.setattr(Actor, "may_decide", True)
    monkeypatch.setattr(Actor, "may_be_same_actor", lambda *_: False)
    assert status("self_approval") == "breached"


@pytest.mark.promise("C98")
def test_a_purpose_that_accepts_everything_lets_a_page_act(status):
    policy = Policy(least_trust=dict.fromkeys(("answer", "act", "core"), Trust.UNKNOWN))
    assert status("act_on_web", policy) == "breached"


def test_policy_without_taint_lets_a_paraphrase_act(status):
    assert status("paraphrase_a_page", Policy(mark_what_was_read=False)) == "breached"


def test_an_attack_that_no_one_could_make_proves_nothing(status):
    assert status("poison_core", Policy(core_keys=())) == "inconclusive"
