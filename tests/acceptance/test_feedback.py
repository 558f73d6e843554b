"""Feedback and what is learned from it (promises E12, E30, E31, E37, E38, E55; regressions Z39, Z42, Z43, Z44, F11)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Insert, InvalidInput, Memory, NotFound, Policy, Run
from support import tamper
from support.clock import SteppingClock

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
NAMES = """billing ledger search mailer payroll archive gateway scheduler catalogue warehouse newsletter forum
checkout inventory translation thumbnail telemetry sandbox registry calendar invoice courier shipping refund voucher
loyalty survey podcast glossary atlas"""
THINGS = NAMES.split()
WORLD = [
    {"text": text.format(thing=thing), "tier": "archival"}
    for thing in THINGS
    for text in (
        "When is the {thing} deadline, I always forget the {thing} deadline.",
        "{thing}: final delivery in April.",
    )
]


def asked(thing: str) -> str:
    return f"When is the {thing} deadline?"


def taught(memory: Memory, useful: str = "final delivery", things: list[str] = THINGS) -> None:
    """Give feedback on a recall about each thing: what holds these words was used, the rest was not."""
    for thing in things:
        shown = memory.recall(asked(thing), limit=5, receipt=True, order="fused")
        assert shown.receipt is not None
        used = [hit.memory.id for hit in shown if useful in hit.memory.text and thing in hit.memory.text]
        memory.feedback(shown.receipt, used=used, ignored=[hit.memory.id for hit in shown if hit.memory.id not in used])


def first(memory: Memory, thing: str, **how: Any) -> str:
    return memory.recall(asked(thing), **how)[0].memory.text


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stores where talk about a thing stands nearer to the question than the answer does, one of them trained."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("plain", "trained"):
        options: dict[str, Any] = {"embedder": "hashed", "clock": SteppingClock(START), "config_dir": folder / "config"}
        with Memory.open(folder / f"{name}.db", actor=Actor.operator("olga"), **options) as memory:
            memory.remember_many(WORLD)
            options["clock"].advance(timedelta(hours=1))
            if name == "trained":
                taught(memory, things=THINGS[:24])
                assert memory.train_reranker().serving
    return folder


@pytest.fixture
def keeper(made: Path, tmp_path: Path, opened: Callable[..., Memory], clock: Any) -> Iterator[Memory]:
    """The owner's handle on a copy of the untrained store."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clock.move(hours=2)
    with opened("plain", actor=Actor.operator("olga")) as memory:
        yield memory


@pytest.fixture
def trained(made: Path, tmp_path: Path, opened: Callable[..., Memory], clock: Any) -> Iterator[Memory]:
    """The owner's handle on a copy of the trained store."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clock.move(hours=2)
    with opened("trained", actor=Actor.operator("olga")) as memory:
        yield memory


# --- giving feedback


def test_feedback_is_stored_with_its_actor_in_order(keeper: Memory) -> None:
    agent = keeper.as_actor(Actor.agent("scout"))
    given = []
    for thing in THINGS[:2]:
        shown = agent.recall(asked(thing), receipt=True)
        given.append(agent.feedback(shown.receipt or "", used=[shown[0].memory.id]))
    assert [(each.n, each.actor) for each in given] == [(1, "agent:scout"), (2, "agent:scout")]


def test_feedback_binds_to_a_context_too(keeper: Memory) -> None:
    compiled = keeper.context(asked("billing"))
    item = compiled.sections[-1].items[0].id
    assert keeper.feedback(compiled.receipt.id, used=[item]).receipt == compiled.receipt.id


def test_feedback_on_a_memory_outside_the_receipt_is_an_error(keeper: Memory) -> None:
    shown = keeper.recall(asked("billing"), limit=1, receipt=True)
    other = keeper.recall(asked("atlas"), limit=1)[0].memory.id
    with pytest.raises(InvalidInput, match="not in it"):
        keeper.feedback(shown.receipt or "", used=[other])


def test_a_memory_cannot_be_used_and_ignored_at_once(keeper: Memory) -> None:
    shown = keeper.recall(asked("billing"), receipt=True)
    with pytest.raises(InvalidInput, match="once"):
        keeper.feedback(shown.receipt or "", used=[shown[0].memory.id], ignored=[shown[0].memory.id])


@pytest.mark.parametrize("used", [[], [f"memory-{number}" for number in range(1001)]], ids=["none", "too many"])
def test_feedback_names_at_least_one_memory_and_at_most_1000(keeper: Memory, used: list[str]) -> None:
    shown = keeper.recall(asked("billing"), receipt=True)
    with pytest.raises(InvalidInput, match="from 1 to 1000"):
        keeper.feedback(shown.receipt or "", used=used)


def test_feedback_on_a_receipt_of_a_write_is_an_error(keeper: Memory) -> None:
    out = keeper.remember("The quay is closed on Mondays", tier="archival")
    with pytest.raises(NotFound):
        keeper.feedback(out.receipt.id, used=["x"])


def test_a_recall_store_no_receipt_unless_it_is_asked_to(keeper: Memory) -> None:
    assert keeper.recall(asked("billing")).receipt is None


def test_repeated_feedback_replaces_the_earlier_one(keeper: Memory) -> None:
    shown = keeper.recall(asked("billing"), receipt=True)
    keeper.feedback(shown.receipt or "", used=[shown[0].memory.id])
    again = keeper.feedback(shown.receipt or "", ignored=[shown[0].memory.id])
    assert (again.n, keeper.status()["reranker"]["feedback"]) == (1, 1)


def test_with_memory_switched_off_feedback_is_harmless_and_not_stored(opened: Callable[..., Memory]) -> None:
    with opened("store") as memory:
        memory.remember("The quay is closed", tier="archival")
        shown = memory.recall("quay", receipt=True)
    with opened("store", policy=Policy(enabled=False)) as off:
        assert off.feedback(shown.receipt or "", used=[shown[0].memory.id]).n == 0


@pytest.mark.promise("Z44")
def test_feedback_alone_changes_no_context_and_no_head(keeper: Memory) -> None:
    before = (keeper.context(asked("billing")).context_id, keeper.status()["head"])
    taught(keeper)
    assert (keeper.context(asked("billing")).context_id, keeper.status()["head"]) == before


# --- learning


@pytest.mark.promise("E30", "E55", "Z42")
def test_feedback_also_improves_answers_about_unrated_memories(trained: Memory) -> None:
    assert all("final delivery" in first(trained, thing) for thing in THINGS[24:])


@pytest.mark.promise("E30")
def test_before_feedback_the_order_is_the_fused_one(keeper: Memory) -> None:
    plain = [hit.memory.id for hit in keeper.recall(asked("atlas"), order="fused")]
    assert [hit.memory.id for hit in keeper.recall(asked("atlas"))] == plain


@pytest.mark.promise("E31")
def test_the_order_by_cosine_is_that_of_the_cosines(trained: Memory) -> None:
    cosines = [hit.parts["cosine"] for hit in trained.recall(asked("atlas"), order="cosine")]
    assert cosines == sorted(cosines, reverse=True)


@pytest.mark.promise("E55")
def test_status_reports_version_held_out_feedback_and_gain(trained: Memory) -> None:
    told = trained.status()["reranker"]
    assert told["serving"]
    assert told["held_out"] == 6
    assert told["gain"] > 0.05
    assert trained.recall(asked("atlas")).reranker == told["version"]


@pytest.mark.promise("E55", "Z42")
def test_feedback_that_confirms_the_order_leaves_the_reranker_off(keeper: Memory) -> None:
    for thing in THINGS:
        shown = keeper.recall(asked(thing), limit=5, receipt=True)
        ids = [hit.memory.id for hit in shown]
        keeper.feedback(shown.receipt or "", used=ids[:1], ignored=ids[1:])
    found = keeper.train_reranker()
    assert not found.serving
    assert keeper.recall(asked("atlas")).reranker is None
    assert "gains less" in keeper.status()["reranker"]["why"]


@pytest.mark.promise("E55")
def test_little_feedback_leaves_the_reranker_off_and_reports_the_minimum(keeper: Memory) -> None:
    taught(keeper, things=THINGS[:8])
    assert "an evaluation needs 20 pairs" in keeper.train_reranker().why


def test_training_twice_on_the_same_feedback_is_training_once(trained: Memory) -> None:
    receipts = trained.receipts().items
    assert (trained.train_reranker().receipt, trained.receipts().items) == (None, receipts)


@pytest.mark.slow
def test_training_has_a_receipt_and_is_no_commit(keeper: Memory) -> None:
    taught(keeper, things=THINGS[:24])
    head = keeper.head
    receipt = keeper.train_reranker().receipt
    assert (keeper.head, keeper.receipt(receipt.id)["reasons"][0]["code"]) == (head, "serves")


@pytest.mark.slow
def test_another_store_with_the_same_feedback_learns_the_same_weights(keeper: Memory, made: Path, clock: Any) -> None:
    clock.move(hours=-1)
    taught(keeper, things=THINGS[:24])
    with Memory.open(made / "trained.db", embedder="hashed", config_dir=made / "config") as other:
        assert keeper.train_reranker().version == other.status()["reranker"]["version"]


@pytest.mark.promise("E32")
def test_a_learned_recall_gives_at_most_its_limit_best_first(trained: Memory) -> None:
    scores = [hit.score for hit in trained.recall(asked("atlas"), limit=7)]
    assert (len(scores), scores) == (7, sorted(scores, reverse=True))


@pytest.mark.promise("E33")
def test_a_learned_recall_respects_its_content_types(trained: Memory) -> None:
    trained.remember("atlas deadline table", tier="archival", content_type="structured")
    found = trained.recall(asked("atlas"), content_types=["structured"])
    assert [hit.memory.text for hit in found] == ["atlas deadline table"]


@pytest.mark.promise("E34")
def test_a_learned_recall_respects_the_least_importance(trained: Memory) -> None:
    trained.remember("The atlas deadline is what matters most", tier="archival", importance=0.9)
    found = trained.recall(asked("atlas"), min_importance=0.8)
    assert [hit.memory.importance for hit in found] == [0.9]


@pytest.mark.promise("E35")
def test_hit_has_rank_score_memory_and_learned_part(trained: Memory) -> None:
    hits = trained.recall(asked("atlas"), limit=5).hits
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    totals = [hit.parts["fused"] + hit.parts["learned"] for hit in hits]
    assert totals == sorted(totals, reverse=True)
    assert all(hit.memory.text and 0 <= hit.score <= 1 for hit in hits)


@pytest.mark.promise("E37")
def test_recall_counts_one_use_of_each_strong_hit(keeper: Memory) -> None:
    before = keeper.status()
    hits = keeper.recall(asked("atlas"), limit=3, receipt=True)
    after = keeper.status()
    uses = [round(each["average_uses"] * each["live"]) for each in (before, after)]
    strong = sum(not hit.weak for hit in hits)
    assert 0 < strong < 3
    assert uses[1] - uses[0] == strong


# --- receipts name it


@pytest.mark.promise("Z44")
def test_a_past_context_replays_after_another_training(trained: Memory) -> None:
    then = trained.context(asked("atlas"))
    taught(trained, useful="always forget")
    assert trained.train_reranker().version != then.receipt.facts["inputs"]["versions"]["reranker"]
    assert trained.context(asked("atlas")).text != then.text
    assert trained.replay(then.receipt.id).text == then.text


def test_past_state_is_ranked_with_the_weights_of_now(trained: Memory) -> None:
    seq = trained.log(limit=1)[0].commit.seq
    assert trained.recall(asked("atlas"), as_of=seq).reranker == trained.status()["reranker"]["version"]


def test_every_context_names_the_reranker_that_took_part(trained: Memory) -> None:
    receipt = trained.receipt(trained.context(asked("atlas")).receipt.id)
    assert receipt["inputs"]["versions"]["reranker"] == trained.status()["reranker"]["version"]


@pytest.mark.promise("F11", "Z44")
def test_reranked_contexts_of_one_state_are_identical(trained: Memory) -> None:
    compiled = trained.context(asked("atlas"))
    for thing in THINGS[:5]:
        trained.recall(asked(thing), receipt=True)
    again = trained.context(asked("atlas"))
    assert (again.text, again.context_id) == (compiled.text, compiled.context_id)


def test_another_process_serves_the_same_weights(trained: Memory, opened: Callable[..., Memory]) -> None:
    ranked = [(hit.memory.id, hit.score) for hit in trained.recall(asked("atlas"))]
    with opened("trained") as other:
        assert [(hit.memory.id, hit.score) for hit in other.recall(asked("atlas"))] == ranked


def test_reserved_scope_of_the_store_accepts_no_writes(trained: Memory) -> None:
    change = Insert(id="forged", text="The weights are mine", scope="/.keepward", key="reranker")
    with pytest.raises(InvalidInput, match="unknown scope"):
        trained.propose([change], reason="try")


def test_the_store_verifies_after_a_training(trained: Memory) -> None:
    assert trained.verify().ok


@pytest.mark.promise("Z43")
@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM documents WHERE {tamper.RERANKER}",
        f"UPDATE documents SET body = CAST('AAAA' AS BLOB) WHERE {tamper.RERANKER}",
    ],
)
def test_unloadable_weights_are_reported_and_recall_continues(
    trained: Memory, opened: Callable[..., Memory], tmp_path: Path, statement: str
) -> None:
    tamper.run(tmp_path / "trained.db", statement)
    with opened("trained", actor=Actor.operator("olga")) as memory:
        found = memory.recall(asked("atlas"))
        assert [hit.memory.id for hit in found] == [
            hit.memory.id for hit in memory.recall(asked("atlas"), order="fused")
        ]
        assert any("reranker was left out" in note for note in found.notes)
        assert memory.status()["reranker"]["error"]
        assert [each.ok for each in memory.doctor() if each.name == "reranker"] == [False]


@pytest.mark.promise("Z43")
def test_weights_of_another_embedder_are_ignored_with_a_note(trained: Memory, opened: Callable[..., Memory]) -> None:
    with opened("trained", embedder=None) as memory:
        assert any("another embedder" in note for note in memory.recall(asked("atlas")).notes)


# --- importance from use


def learn_importance(keeper: Memory) -> Run:
    return keeper.run_job("learn_importance", force=True)


@pytest.mark.promise("E12", "E38", "Z39")
def test_importance_rises_with_use_and_stays_at_most_one(keeper: Memory) -> None:
    for _ in range(40):
        keeper.recall(asked("atlas"), limit=1)
    top = keeper.recall(asked("atlas"), limit=1)[0].memory
    learn_importance(keeper)
    assert top.importance < keeper.get(top.id).importance <= 1


@pytest.mark.promise("Z39")
def test_used_memories_become_more_important_than_unused_ones(keeper: Memory) -> None:
    used = keeper.recall(asked("atlas"), limit=1)[0].memory.id
    learn_importance(keeper)
    assert [each.id for each in keeper.list_memories(min_importance=0.501)] == [used]


@pytest.mark.promise("E38")
def test_learning_importance_twice_is_learning_it_once(keeper: Memory) -> None:
    keeper.recall(asked("atlas"), limit=1)
    learn_importance(keeper)
    assert learn_importance(keeper).commits == ()


@pytest.mark.promise("E38")
def test_use_makes_a_memory_no_truer(keeper: Memory) -> None:
    before = keeper.recall(asked("atlas"), limit=1)[0].memory
    learn_importance(keeper)
    after = keeper.get(before.id)
    assert after.base_importance > before.base_importance
    assert (after.reinforced_at, after.base_confidence) == (before.reinforced_at, before.base_confidence)


@pytest.mark.promise("E38")
def test_changes_learned_from_use_can_be_rolled_back(keeper: Memory) -> None:
    before = keeper.recall(asked("atlas"), limit=1)[0].memory
    (commit,) = learn_importance(keeper).commits
    keeper.rollback(commit)
    assert keeper.get(before.id).base_importance == before.base_importance
