"""Names are one whether their accents are composed or not: as they are written, and as they are looked for."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from outcomes import kept

from keepward import Memory

COMPOSED = "Zoë"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
FORMS = pytest.mark.parametrize(
    ("written", "asked"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED), (DECOMPOSED, DECOMPOSED)]
)


def given(name: str, value: str) -> dict[str, Any]:
    return {name: [value] if name in {"tags", "aliases"} else value}


@FORMS
@pytest.mark.parametrize("field", ["subject", "category", "session", "tags", "key"])
def test_a_filter_finds_either_form_of_a_name(mem: Memory, field: str, written: str, asked: str) -> None:
    one = kept(mem.remember("She sails on Sundays", **given(field, written)))
    assert [each.id for each in mem.list_memories(**given(field, asked))] == [one.id]
    assert mem.list_memories(**given(field, asked), sort="importance").total == 1
    if field not in {"key", "session"}:
        assert [hit.memory.id for hit in mem.recall("who sails", **given(field, asked))] == [one.id]


@FORMS
@pytest.mark.parametrize("field", ["aliases", "key"])
def test_a_memory_is_read_by_either_form_of_its_name(mem: Memory, field: str, written: str, asked: str) -> None:
    one = kept(mem.remember("She sails on Sundays", **given(field, written)))
    assert mem.get(asked).id == one.id


@FORMS
@pytest.mark.parametrize("field", ["subject", "session", "aliases"])
def test_erasing_finds_either_form_of_a_name(owner: Memory, field: str, written: str, asked: str) -> None:
    one = kept(owner.remember("She sails on Sundays", **given(field, written)))
    plan = owner.plan_erase(**{"subject" if field == "subject" else "source": asked})
    assert one.id in str(plan.to_dict())


@FORMS
def test_a_message_has_the_composed_names(mem: Memory, written: str, asked: str) -> None:
    message = {"role": "user", "content": "I sail on Sundays", "name": written, "id": written}
    mem.add([message], session=written, subject=written)
    mem.add([message | {"id": asked}], session=asked, subject=asked)
    turns = mem.list_memories(session=asked, subject=asked)
    assert [(each.speaker, each.subject, each.session, each.aliases) for each in turns] == [
        (COMPOSED, COMPOSED, COMPOSED, (COMPOSED,))
    ]


def test_a_revision_has_the_composed_names(mem: Memory) -> None:
    one = kept(mem.remember("She sails on Sundays"))
    mem.revise(one.id, subject=DECOMPOSED, tags=[DECOMPOSED, COMPOSED], reason="named")
    assert (mem.get(one.id).subject, mem.get(one.id).tags) == (COMPOSED, (COMPOSED,))


@FORMS
def test_recall_in_a_session_takes_either_form(mem: Memory, written: str, asked: str) -> None:
    mem.add([{"role": "user", "content": "I sail on Sundays"}], session=written)
    assert len(mem.recall("who sails", session=asked)) == 1


@pytest.mark.parametrize("field", ["subject", "category", "session", "tags"])
def test_names_that_were_stored_decomposed_are_found(mem: Memory, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    with monkeypatch.context() as before:
        before.setattr("keepward.services.write.with_plain_names", lambda change: change)
        one = kept(mem.remember("She sails on Sundays", **given(field, DECOMPOSED)))
    assert getattr(mem.get(one.id), field) in (DECOMPOSED, (DECOMPOSED,))
    for asked in (COMPOSED, DECOMPOSED):
        assert [each.id for each in mem.list_memories(**given(field, asked))] == [one.id]
        assert mem.list_memories(**given(field, asked), sort="importance").total == 1
        if field != "session":
            assert [hit.memory.id for hit in mem.recall("who sails", **given(field, asked))] == [one.id]
