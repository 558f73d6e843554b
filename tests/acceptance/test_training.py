"""Trainings: erasures meanwhile, and how far the feedback of agents counts."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from outcomes import brought_back
from test_feedback import START, THINGS, WORLD, asked, first, taught

from keepward import Actor, InvalidInput, Memory, Policy
from keepward.errors import Conflict
from keepward.interchange import write_vault
from keepward.retrieval import reranker
from support.clock import SteppingClock

OLGA = Actor.operator("olga")


GIVEN: dict[str, Any] = {"embedder": "hashed"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with feedback of a person on 30 things, and one with that of an agent; neither was trained yet."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("said", "scouted"):
        clock = SteppingClock(START)
        with Memory.open(
            folder / f"{name}.db", actor=OLGA, clock=clock, config_dir=folder / "config", **GIVEN
        ) as memory:
            memory.remember_many(WORLD)
            clock.advance(timedelta(hours=1))
            taught(memory if name == "said" else memory.as_actor(Actor.agent("scout")))
    return folder


@pytest.fixture
def owner(made: Path, tmp_path: Path, opened: Callable[..., Memory], clock: Any) -> Iterator[Memory]:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clock.move(hours=2)
    with opened("said", actor=OLGA) as memory:
        yield memory


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """Name of the weights of a training on what people said alone."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    clock = SteppingClock(START + timedelta(hours=2))
    with Memory.open(folder / "said.db", actor=OLGA, clock=clock, config_dir=folder / "config", **GIVEN) as memory:
        return memory.train_reranker().version


def stored_artefacts(memory: Memory) -> list[str]:
    with closing(sqlite3.connect(f"file:{memory.path}?mode=ro", uri=True)) as db:
        query = "SELECT id FROM documents WHERE kind = 'artefacts' ORDER BY id"
        return [name.partition("/")[0] for (name,) in db.execute(query)]


# --- erasures meanwhile


def erased(memory: Memory, thing: str = "billing") -> str:
    name = next(hit.memory.id for hit in memory.recall(asked(thing)) if "final" in hit.memory.text)
    memory.erase(memory.plan_erase([name]).digest, [name])
    return name


@pytest.mark.promise("F14")
def test_a_training_during_which_something_is_erased_store_nothing(
    owner: Memory, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = reranker.train

    def erase_and_train(*given: Any, **how: Any) -> Any:
        with opened("said", actor=OLGA) as other:
            erased(other)
        return train(*given, **how)

    monkeypatch.setattr(reranker, "train", erase_and_train)
    with pytest.raises(Conflict, match="train it again"):
        owner.train_reranker()
    assert ("reranker" in stored_artefacts(owner), owner.status()["reranker"]["version"]) == (False, None)


# --- policy


def test_with_memory_switched_off_nothing_is_trained(owner: Memory, opened: Callable[..., Memory]) -> None:
    head = owner.head
    with opened("said", actor=OLGA, policy=Policy(enabled=False)) as off:
        found = off.train_reranker()
    assert (found.receipt, "switched off" in found.why, owner.head) == (None, True, head)


# --- whose word counts


def test_feedback_is_stored_with_the_trust_of_who_gave_it(owner: Memory) -> None:
    shown = owner.recall(asked("atlas"), receipt=True)
    told = [
        owner.as_actor(actor).feedback(shown.receipt or "", used=[shown[0].memory.id])
        for actor in (Actor.agent("scout"), Actor.user("ana"), Actor.importer("box"))
    ]
    assert [each.trust.label for each in told] == ["agent", "user", "import"]


@pytest.mark.slow
def test_three_to_one_agent_majority_does_not_reverse_the_order(owner: Memory) -> None:
    for _ in range(3):
        taught(owner.as_actor(Actor.agent("scout")), "always forget")
    found = owner.train_reranker()
    assert (found.serving, "final delivery" in first(owner, "atlas")) == (True, True)
    assert 0.0 < found.from_agents < 0.3


def test_agents_alone_train_nothing_and_get_advice(owner: Memory, opened: Callable[..., Memory]) -> None:
    with opened("scouted", actor=OLGA) as memory:
        found = memory.train_reranker()
    assert (found.receipt, found.serving, "feedback of people, of which there is none" in found.why) == (
        None,
        False,
        True,
    )


def test_policy_can_let_agents_count_as_people_do(owner: Memory, opened: Callable[..., Memory]) -> None:
    with opened("scouted", actor=OLGA, policy=Policy(agent_feedback_share=1.0)) as memory:
        assert memory.train_reranker().serving


def test_policy_can_leave_agents_out(owner: Memory, opened: Callable[..., Memory], whole: str | None) -> None:
    taught(owner.as_actor(Actor.agent("scout")), "always forget", THINGS[:9])
    with opened("said", actor=OLGA, policy=Policy(agent_feedback_share=0.0)) as memory:
        assert memory.train_reranker().version == whole


def test_weights_from_agents_stop_when_policy_requires_people(owner: Memory, opened: Callable[..., Memory]) -> None:
    with opened("scouted", actor=OLGA, policy=Policy(agent_feedback_share=1.0)) as memory:
        assert memory.train_reranker().serving
    with opened("scouted", actor=OLGA) as memory:
        memory.train_reranker()
        assert memory.status()["reranker"]["serving"] is False


@pytest.mark.slow
def test_agent_cannot_choose_held_out_feedback_of_people(opened: Callable[..., Memory]) -> None:
    with opened("store", actor=OLGA) as memory:
        memory.remember_many(WORLD)
        for thing in THINGS:
            taught(memory, things=[thing])
            # Three in between, so that by the number of the feedback no person's would ever be held out.
            for agent in ("a", "b", "c"):
                taught(memory.as_actor(Actor.agent(agent)), things=[thing])
        assert memory.train_reranker().held_out == len(THINGS) // 4


def test_a_persons_feedback_on_a_receipt_outweighs_an_agents(owner: Memory) -> None:
    from keepward.services.reading.learned_order import training_examples

    shown = owner.recall(asked("atlas"), limit=3, receipt=True)
    ids = [hit.memory.id for hit in shown]
    owner.feedback(shown.receipt or "", used=ids[:1], ignored=ids[1:2])
    owner.as_actor(Actor.agent("scout")).feedback(shown.receipt or "", used=ids[1:], ignored=ids[:1])
    spoken = [each for each in training_examples(owner._context) if each.receipt == shown.receipt]
    assert [(each.from_agent, each.pairs) for each in spoken] == [(False, 1)]


def test_status_reports_present_and_past_weight_of_agents(owner: Memory) -> None:
    taught(owner.as_actor(Actor.agent("scout")), things=THINGS[:9])
    found = owner.train_reranker()
    told = owner.status()["reranker"]
    assert (told["agents_at_most"], told["from_agents"]) == (0.25, found.from_agents)


def test_a_share_is_from_nothing_to_all() -> None:
    with pytest.raises(InvalidInput, match="agent_feedback_share"):
        Policy(agent_feedback_share=1.5)


def test_a_restored_export_ranks_plainly(owner: Memory, tmp_path: Path, clock: Any) -> None:
    assert owner.train_reranker().serving
    write_vault(owner, tmp_path / "vault.jsonl")
    with Memory.open(tmp_path / "there.db", actor=OLGA, clock=clock, config_dir=tmp_path / "other", **GIVEN) as there:
        brought_back(there, tmp_path / "vault.jsonl")
        assert "never trained" in there.status()["reranker"]["why"]
        assert there.recall(asked("atlas")).reranker is None
