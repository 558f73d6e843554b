"""What a server sends becomes the values that the library returns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest

from keepward import errors
from keepward.client.transport import read_result as from_json
from keepward.core.commit import Reason
from keepward.core.json_form import to_json
from keepward.core.principals import Actor, Trust
from keepward.core.proposal import Outcome, Proposal, digest_of
from keepward.core.value import Instant
from keepward.errors import error_of
from keepward.memory import Memory
from support.clock import SteppingClock


def sent(value: Any) -> Any:
    """Return what arrives of a value that was presented."""
    return json.loads(json.dumps(value))


@pytest.fixture
def store(tmp_path):
    with Memory.open(
        tmp_path / "m.db",
        actor=Actor.operator("ana"),
        embedder=None,
        clock=SteppingClock(),
        config_dir=tmp_path / "config",
    ) as memory:
        yield memory


def test_every_value_of_a_verb_comes_back_as_it_was(store: Memory) -> None:
    kept = store.remember("Ana prefers tabs", key="indent", kind="state", metadata={"a": 1.5}, tags=["x", "ü"])
    store.revise(kept.records[0].id, "Ana prefers spaces", reason="she said so")
    context = store.context("indentation")
    values = [
        *store.history(kept.records[0].id),
        *store.log(),
        *store.diff(0),
        store.recall("tabs", receipt=True),
        context,
        store.replay(context.receipt.id),
        store.context("indentation", preview=True),
        store.receipts(),
        store.verify(),
        *store.doctor(),
        store.impact(memory=kept.records[0].id),
        store.plan_contain(memory=kept.records[0].id),
        store.blame("indent"),
        store.bisect("indentation", contains="spaces"),
        store.context_diff(context.receipt.id, context.receipt.id),
        store.plan_erase(kept.records[0].id),
        store.plan_adopt(),
        store.create_token("orion", can=["read"]),
        *store.tokens(),
        store.feedback(context.receipt.id, used=[kept.records[0].id]),
        store.train_reranker(),
        store.rollback("2"),
        store.jobs()[0],
        store.run_job("expire", force=True),
    ]
    wrong = [type(each).__name__ for each in values if from_json(type(each), sent(to_json(each))) != each]
    assert wrong == []


def test_each_outcome_comes_back_as_it_was(store: Memory) -> None:
    agent = store.as_actor(Actor.agent("orion"))
    outcomes = [
        agent.remember("the build runs on Tuesdays"),
        agent.remember("the build runs on Tuesdays"),
        agent.remember("Ship the release", tier="core", key="mission"),
        agent.remember(""),
    ]
    assert [each.outcome for each in outcomes] == ["committed", "duplicate", "quarantined", "refused"]
    assert [from_json(Outcome, sent(to_json(each))) for each in outcomes] == outcomes
    assert [from_json(Outcome, sent(to_json(each))) for each in outcomes] == outcomes


@pytest.mark.promise("T20")
def test_digest_of_a_proposal_can_be_recomputed_from_its_json(store: Memory) -> None:
    store.as_actor(Actor.agent("orion")).remember("Ship the release", tier="core", key="mission", metadata={"n": 1})
    item = from_json(list[Proposal], sent([to_json(each) for each in store.pending()]))[0]
    assert digest_of(item.steps, item.base) == item.digest


def test_a_key_that_no_field_asks_for_is_passed_over() -> None:
    assert from_json(Reason, {"gate": "g", "code": "c", "detail": "d", "newer": 1}).gate == "g"


def test_missing_field_is_an_error_that_names_allowed_values() -> None:
    with pytest.raises(errors.StoreError, match="another version"):
        from_json(Reason, {"gate": "g", "code": "c"})


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, True),
        (Instant, "2026-03-01T10:00:00"),
        (Trust, "nobody"),
        (Literal["a"], "b"),
        (Outcome, {"outcome": "unheard of"}),
    ],
)
def test_a_value_of_another_type_is_an_error(hint: Any, value: Any) -> None:
    with pytest.raises(errors.StoreError):
        from_json(hint, value)


def test_instant_with_an_offset_is_the_same_instant_in_utc() -> None:
    at = datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    assert from_json(datetime, at.isoformat()) == at.astimezone(UTC)


def test_a_token_has_no_hash(store: Memory) -> None:
    issued = store.create_token("orion")
    assert "hash" not in to_json(issued)["token"]
    assert all("hash" not in to_json(each) for each in store.tokens())


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("invalid_input", 400, errors.InvalidInput),
        ("not_found", 404, errors.NotFound),
        ("stale_version", 412, errors.StaleVersion),
        ("conflict", 409, errors.Conflict),
        ("unauthorised", 403, errors.Unauthorised),
        ("context_too_small", 409, errors.ContextTooSmall),
        ("tampered", 500, errors.Tampered),
        ("unauthenticated", 401, errors.Unauthorised),
        ("precondition_failed", 412, errors.StaleVersion),
        ("invalid_body", 422, errors.InvalidInput),
        ("rate_limited", 429, errors.StoreUnavailable),
        (None, 502, errors.StoreUnavailable),
        (None, 500, errors.StoreError),
    ],
)
def test_a_problem_is_the_error_that_the_library_raises(code: str | None, status: int, kind: type) -> None:
    assert type(error_of(code, "detail", status)) is kind


def test_every_error_of_the_library_has_its_code_back() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert [each for each in kinds if type(error_of(each.code, None)) is not each] == []
