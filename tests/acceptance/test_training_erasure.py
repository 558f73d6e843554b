"""Erasing unlearns: what was learned from feedback on an erased memory goes with it, and recall still works."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_feedback import START, THINGS, WORLD, asked, first, taught

from keepward import Actor, Memory
from keepward.errors import Conflict
from support.clock import SteppingClock


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose reranker serves, trained on feedback about 24 things."""
    folder = tmp_path_factory.mktemp("made")
    clock = SteppingClock(START)
    given: dict[str, Any] = {"embedder": "hashed", "clock": clock, "config_dir": folder / "config"}
    with Memory.open(folder / "trained.db", actor=Actor.operator("olga"), **given) as memory:
        memory.remember_many(WORLD)
        clock.advance(timedelta(hours=1))
        taught(memory, things=THINGS[:24])
        assert memory.train_reranker().serving
    return folder


@pytest.fixture
def owner(made: Path, tmp_path: Path, opened: Callable[..., Memory], clock: Any) -> Iterator[Memory]:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clock.move(hours=2)
    with opened("trained", actor=Actor.operator("olga")) as memory:
        yield memory


def answer(memory: Memory, thing: str) -> str:
    """Return the id of the memory that feedback called useful about a thing."""
    return next(hit.memory.id for hit in memory.recall(asked(thing)) if "final" in hit.memory.text)


def erased(memory: Memory, *ids: str) -> Any:
    return memory.erase(memory.plan_erase(ids).digest, ids)


def raw(memory: Memory, query: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(f"file:{memory.path}?mode=ro", uri=True)) as db:
        return db.execute(query, values).fetchall()


def weights(memory: Memory) -> list[str]:
    query = "SELECT body FROM documents WHERE kind = 'artefacts' AND id LIKE 'reranker/%' ORDER BY id"
    return [body.decode() for (body,) in raw(memory, query) if body]


@pytest.mark.promise("F14")
def test_weights_learned_from_an_erased_memory_are_in_no_file(owner: Memory, tmp_path: Path) -> None:
    held = [part for text in weights(owner) for part in (text[200:260].encode(), base64.b64decode(text)[300:360])]
    assert held
    erased(owner, answer(owner, "billing"))
    everything = b"".join(file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file())
    assert [part for part in held if part in everything] == []


@pytest.mark.promise("F14")
def test_no_feedback_names_an_erased_memory(owner: Memory) -> None:
    name = answer(owner, "billing")
    query = "SELECT count(*) FROM documents WHERE kind = 'feedback' AND instr(body, ?)"
    assert raw(owner, query, name.encode()) != [(0,)]
    erased(owner, name)
    assert raw(owner, query, name.encode()) == [(0,)]


def test_feedback_numbers_are_stable_so_held_out_ones_are_too(owner: Memory) -> None:
    before = raw(owner, "SELECT state, id FROM documents WHERE kind = 'feedback' ORDER BY state")
    erased(owner, answer(owner, "billing"))
    assert raw(owner, "SELECT state, id FROM documents WHERE kind = 'feedback' ORDER BY state") == before


def test_the_other_names_of_a_feedback_stay(owner: Memory) -> None:
    name = answer(owner, "billing")
    query = "SELECT state, body FROM documents WHERE kind = 'feedback' AND instr(body, ?) ORDER BY state LIMIT 1"
    ((n, told),) = raw(owner, query, name.encode())
    erased(owner, name)
    ((left,),) = raw(owner, "SELECT body FROM documents WHERE kind = 'feedback' AND state = ?", n)
    before = json.loads(told)
    wanted = {side: [each for each in before[side] if each != name] for side in ("used", "ignored")}
    assert json.loads(left) == {**before, **wanted}


def test_recall_receipt_hides_the_distance_of_an_erased_memory(owner: Memory) -> None:
    name = answer(owner, "billing")
    receipt = owner.recall(asked("billing"), receipt=True).receipt or ""
    assert [item for item in owner.receipt(receipt)["items"] if item["id"] == name and "parts" in item]
    erased(owner, name)
    assert [item for item in owner.receipt(receipt)["items"] if item["id"] == name] == [{"id": name, "version": 1}]


def test_context_receipt_hides_the_distance_of_an_erased_memory(owner: Memory) -> None:
    name = answer(owner, "billing")
    receipt = owner.context(asked("billing")).receipt.id

    def scored() -> list[bool]:
        parts = owner.receipt(receipt)["sections"]
        return ["score" in item for part in parts for item in part["items"] if item["id"] == name]

    assert scored() == [True]
    erased(owner, name)
    assert scored() == [False]


def test_after_an_erasure_recall_is_in_the_plain_order(owner: Memory) -> None:
    assert first(owner, "atlas") != first(owner, "atlas", order="fused")
    erased(owner, answer(owner, "billing"))
    found = owner.recall(asked("atlas"))
    assert [hit.memory.id for hit in found] == [hit.memory.id for hit in owner.recall(asked("atlas"), order="fused")]
    assert found.reranker is None


def test_handle_of_another_process_recalls_in_plain_order_too(owner: Memory, opened: Callable[..., Memory]) -> None:
    with opened("trained") as reader:
        assert reader.recall(asked("atlas")).reranker
        erased(owner, answer(owner, "billing"))
        assert reader.recall(asked("atlas")).reranker is None


def test_training_again_learns_from_what_is_left(owner: Memory) -> None:
    erased(owner, answer(owner, "billing"))
    again = owner.train_reranker()
    assert (again.serving, first(owner, "atlas")) == (True, "atlas: final delivery in April.")


def test_retrained_weights_equal_those_without_the_erased_feedback(
    owner: Memory, opened: Callable[..., Memory]
) -> None:
    # The pairs of the erased memory are the only ones that go: learning without them gives the same bytes.
    from keepward.retrieval.reranker import train
    from keepward.services.reading.learned_order import training_examples

    name = answer(owner, "billing")
    erased(owner, name)
    owner.train_reranker()
    told = training_examples(owner._context)
    fresh, _ = train(told, model=owner._engine.embedder.id, dim=owner._engine.embedder.dim, share=0.25)
    assert weights(owner) == [base64.b64encode(fresh.dump()).decode()]
    assert len(told) == 23


def test_status_and_doctor_give_advice_without_an_error(owner: Memory) -> None:
    erased(owner, answer(owner, "billing"))
    stands = owner.status()["reranker"]
    assert (stands["serving"], stands["error"], "an erasure dropped" in stands["why"]) == (False, None, True)
    assert next(check.ok for check in owner.doctor() if check.name == "reranker")


def test_the_plan_and_the_certificate_count_what_is_unlearned(owner: Memory) -> None:
    plan = owner.plan_erase([answer(owner, "billing")])
    done = owner.erase(plan.digest, [plan.targets[0].id])
    cleaned = owner.certificate(done.commit.id)["cleaned"]
    assert (len(plan.feedback), cleaned["feedback"], cleaned["learned_weights"]) == (1, 1, 1)


def test_weights_that_never_saw_the_memory_go_on_serving(owner: Memory) -> None:
    before = owner.status()["reranker"]["version"]
    # Nobody was shown this one: it came after the training.
    stranger = owner.remember("The quay is closed on Mondays", tier="archival").records[0].id
    erased(owner, stranger)
    stands = owner.status()["reranker"]
    assert (stands["version"], stands["serving"]) == (before, True)


def test_repeated_feedback_in_other_words_does_not_preserve_weights(owner: Memory) -> None:
    shown = owner.recall(asked("voucher"), limit=5, receipt=True, order="fused")
    ids = [hit.memory.id for hit in shown]
    owner.feedback(shown.receipt or "", used=[ids[0]], ignored=ids[1:])
    owner.train_reranker()
    owner.feedback(shown.receipt or "", used=[ids[1]], ignored=ids[2:])
    erased(owner, ids[0])
    assert owner.status()["reranker"]["serving"] is False


def test_a_feedback_that_comes_in_while_planning_voids_the_plan(owner: Memory) -> None:
    name = answer(owner, "billing")
    shown = owner.recall(asked("billing"), receipt=True)
    plan = owner.plan_erase([name])
    owner.feedback(shown.receipt or "", used=[name])
    with pytest.raises(Conflict, match="has changed"):
        owner.erase(plan.digest, [name])


def test_past_state_is_in_plain_order_without_error(owner: Memory) -> None:
    then = owner.log()[0].commit.seq
    erased(owner, answer(owner, "billing"))
    found = owner.recall(asked("atlas"), as_of=then)
    assert (found.reranker, any("left out" in note for note in found.notes)) == (None, False)


def test_a_rollback_of_the_training_brings_no_erased_weights_back(owner: Memory) -> None:
    training = owner.log()[0].commit.id
    erased(owner, answer(owner, "billing"))
    owner.rollback(training)
    stands = owner.status()["reranker"]
    assert (stands["serving"], stands["error"]) == (False, None)


def test_verify_is_complete_after_unlearning(owner: Memory) -> None:
    erased(owner, answer(owner, "billing"))
    assert owner.verify().faults == ()


@pytest.mark.promise("T12")
def test_a_backup_brings_no_erased_weights_back(owner: Memory, tmp_path: Path, opened: Callable[..., Memory]) -> None:
    held = [part for text in weights(owner) for part in (text[200:260].encode(), base64.b64decode(text)[300:360])]
    owner.backup(tmp_path / "copy.db")
    aside = (tmp_path / "copy.db").read_bytes()
    erased(owner, answer(owner, "billing"))
    owner.close()
    (tmp_path / "copy.db").write_bytes(aside)
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"trained.db{end}").unlink(missing_ok=True)
    Memory.restore_backup(
        tmp_path / "copy.db", tmp_path / "trained.db", actor=Actor.operator("olga"), config_dir=tmp_path / "config"
    )
    assert [part for part in held if part in (tmp_path / "trained.db").read_bytes()] == []
