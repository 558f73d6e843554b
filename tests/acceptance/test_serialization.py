"""Every result can be sent on: plain JSON values, and metadata as it came."""

from __future__ import annotations

import json
import pkgutil
import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import keepward.core
import keepward.services
from keepward import InvalidInput, Memory
from keepward.core.value import ResultMixin

METADATA = {
    "n": 1,
    "share": 0.25,
    "list": [1, "zwei", None],
    "nested": {"yes": True},
    "ü": "茶",
    "empty": {},
    "big": 2**60,
}
#: What verbs return that is no result of ours.
OTHERS = {"Actor", "Any", "Draft", "Iterator", "Memory", "None", "Path", "Policy", "Self", "Conversation"}


def results(owner: Memory, folder: Path) -> list[Any]:
    """Return one result of nearly every verb."""
    kept = owner.remember(
        "Ana prefers tabs", key="indent", kind="state", tier="archival", metadata=METADATA, subject="ana"
    )
    agent = owner.as_actor(owner.actor.agent())
    held = agent.remember("Ship it", tier="core", key="mission", confidence=0.9)
    assert held.item is not None
    assert kept.commit is not None
    context = owner.context("indentation", budget_tokens=500)
    blob = owner.put_blob(b"%PDF-1.4 a plan")
    found = owner.recall("tabs", receipt=True)
    return [
        kept,
        held,
        owner.remember("Ana prefers tabs", tier="archival"),
        owner.remember("too sure", confidence=2.0),
        found,
        *found,
        owner.get("indent"),
        owner.list_memories(),
        *owner.history(str(kept.id)),
        context,
        owner.replay(context.receipt.id),
        *owner.doctor(),
        *owner.pending(),
        *owner.proposed_steps(held.item),
        *owner.log(),
        *owner.diff(0),
        owner.feedback(str(found.receipt), used=[str(kept.id)]),
        owner.impact(memory=str(kept.id)),
        owner.blame("indent"),
        owner.create_token("orion", expires=3600),
        *owner.tokens(),
        *owner.jobs(),
        owner.run_job("expire"),
        owner.verify(),
        owner.reject(held.item.id, reason="not now"),
        owner.rollback(kept.commit.id, dry_run=True),
        owner.plan_contain(memory=str(kept.id)),
        owner.plan_erase(subject="ana"),
        owner.backup(folder / "copy.kwb"),
        blob,
    ]


def test_every_result_is_plain_json(owner: Memory, tmp_path: Path) -> None:
    for each in results(owner, tmp_path):
        assert isinstance(each, ResultMixin), type(each)
        told = each.to_dict()
        assert json.loads(json.dumps(told, allow_nan=False)) == told, type(each)


def test_every_verb_gives_what_can_be_made_plain() -> None:
    rooms = (keepward.services, keepward.core)
    for module in (one for room in rooms for one in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")):
        import_module(module.name)
    known = {kind.__name__ for kind in _below(ResultMixin)} | {"Outcome"}
    for name in dir(Memory):
        verb = getattr(Memory, name)
        if name.startswith("_") or not callable(verb):
            continue
        told = str(verb.__annotations__["return"])
        assert set(re.findall(r"\b[A-Z]\w+", told)) <= known | OTHERS, (name, told)


def _below(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_below(direct))]


def test_hit_gives_the_metadata_of_its_memory_as_an_object(owner: Memory) -> None:
    owner.remember("Ana prefers tabs", tier="archival", metadata=METADATA)
    assert owner.recall("tabs").to_dict()["hits"][0]["metadata"] == METADATA


@pytest.mark.promise("E17", "E28")
def test_metadata_comes_back_as_it_went_in(owner: Memory) -> None:
    out = owner.remember("The crane is red", tier="archival", metadata=METADATA)
    memory = owner.get(str(out.id))
    assert memory.metadata == METADATA
    assert memory.to_dict()["metadata"] == METADATA
    memory.metadata["n"] = 2
    assert owner.recall("crane")[0].memory.metadata == METADATA
    changed = owner.revise(memory.id, reason="counted", metadata={"n": 3})
    assert changed.record is not None
    assert changed.record.metadata == {"n": 3}
    emptied = owner.revise(memory.id, reason="cleared", metadata=None)
    assert emptied.record is not None
    assert emptied.record.metadata == {}
    assert [each.record.metadata for each in owner.history(memory.id)] == [METADATA, {"n": 3}, {}]


@pytest.mark.promise("E17")
@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {"a": object()}, {"a": {1: 2}}, {1: 2}, [1], "x"])
def test_metadata_that_would_come_back_otherwise_is_an_error(owner: Memory, metadata: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        owner.remember("The crane is red", tier="archival", metadata=metadata)
    assert owner.list_memories() == []


def test_a_memory_that_faded_between_two_reads_is_the_same(owner: Memory, clock: Any) -> None:
    made = owner.remember("Ana prefers tabs", tier="archival").id
    first = owner.get(made)
    clock.instant += timedelta(days=40)
    second = owner.get(made)
    assert second.confidence < first.confidence
    assert first == second
    assert not first != second  # noqa: SIM202  what is asked
    assert len({first, second}) == 1


def test_a_token_is_shown_without_its_secret(owner: Memory) -> None:
    issued = owner.create_token("orion", expires=3600)
    shown = repr(issued)
    assert issued.secret not in shown
    assert repr(issued.token.hash) not in shown
    assert issued.token.id in shown
