"""Author, speaker and time: of the text that stands there, not of its first version and not of a job's."""

from __future__ import annotations

import json

import pytest
from outcomes import brought_back, committed_record, quarantined_item

from keepward import Actor, Unauthorised
from keepward.core.serialization import encode_record
from keepward.interchange import write_vault

WRONG, RIGHT = "Biscuit gets 80 mg of the heart tablet a day", "Biscuit gets 8 mg of the heart tablet a day"
QUESTION = "heart tablet of Biscuit"
PAGE = "https://vet.example/doses"


@pytest.fixture
def agent(owner):
    return owner.as_actor(Actor.agent("scout"))


@pytest.fixture
def kim(entering):
    """Another person with the rights of the owner."""
    return entering(Actor.operator("kim"))


@pytest.fixture
def nora(owner):
    return owner.as_actor(Actor.user("nora"))


@pytest.fixture
def said(owner):
    """What Nora said in January, as the owner noted it in March."""
    return committed_record(owner.remember(WRONG, speaker="Nora", occurred_at="2026-01-30T10:00:00Z", tier="archival"))


@pytest.fixture
def corrected(owner, kim, clock, said):
    """The same memory, corrected by the owner five days later, and touched by others since."""
    clock.move(days=5)
    committed_record(kim.revise(said.id, RIGHT, reason="read the label"))
    clock.move(days=1)
    owner.revise(said.id, tags=["dose"], importance=0.9, reason="sorted")
    owner.reinforce(said.id)
    clock.move(days=1)
    return owner.get(said.id)


def voice(record):
    return record.speaker, record.text_by, f"{record.said_at:%m-%d}"


def test_the_first_text_has_the_author_and_time_of_the_memory(said):
    assert (said.text_by, said.text_at) == (said.author, said.created_at)


def test_a_corrected_text_is_by_who_corrected_it_whatever_changed_since(corrected):
    assert voice(corrected) == (None, "operator:kim", "03-06")
    assert (corrected.author, f"{corrected.created_at:%m-%d}") == ("operator:olga", "03-01")


@pytest.mark.promise("C122")
def test_a_context_shows_a_correction_under_its_day_and_without_the_old_speaker(owner, corrected):
    text = owner.context(QUESTION).text
    assert f"[fact] {RIGHT} (2026-03-06)" in text
    assert "Nora" not in text


@pytest.mark.promise("C122")
def test_a_hit_and_a_list_name_who_corrected_and_when(owner, corrected):
    (hit,) = owner.recall(QUESTION)
    for found in (
        hit.to_dict()["memory"],
        owner.list_memories()[0].to_dict(),
        owner.list_memories(text="mg")[0].to_dict(),
    ):
        assert (found["text_by"], found["text_at"][:10], found["speaker"]) == ("operator:kim", "2026-03-06", None)


def test_an_author_filters_counts_and_sorts_by_the_present_text(owner, corrected):
    assert len(owner.list_memories(authors=["operator:kim"])) == 1
    assert len(owner.list_memories(authors=["operator:olga"])) == 0
    assert [(each.value, each.count) for each in owner.facets(of=["author"]).facets["author"]] == [("operator:kim", 1)]
    committed_record(owner.remember("The shop opens at eight", tier="archival"))
    assert [each.text_by for each in owner.list_memories(sort="author")] == ["operator:kim", "operator:olga"]


@pytest.mark.parametrize(("span", "count"), [({"since": "2026-03-06"}, 1), ({"until": "2026-03-06"}, 0)])
def test_a_list_by_time_takes_the_time_of_the_text(owner, corrected, span, count):
    assert len(owner.list_memories(**span)) == count


def test_a_text_in_its_own_words_keeps_the_speaker_and_gets_a_new_day(nora, owner, clock):
    said = committed_record(owner.remember(WRONG, speaker="Nora", occurred_at="2026-01-30", tier="archival"))
    clock.move(days=5)
    change = nora.revise(said.id, RIGHT, reason="I misspoke")
    owner.approve(quarantined_item(change).id)
    assert voice(owner.get(said.id)) == ("Nora", "user:nora", "03-06")


def test_a_correction_may_say_who_said_it_and_when(owner, clock, said):
    clock.move(days=5)
    committed_record(owner.revise(said.id, RIGHT, speaker="Nora", occurred_at="2026-02-02", reason="she said eight"))
    assert voice(owner.get(said.id)) == ("Nora", "operator:olga", "02-02")
    committed_record(owner.revise(said.id, speaker=None, occurred_at=None, reason="unknown"))
    assert voice(owner.get(said.id)) == (None, "operator:olga", "03-06")


def test_an_event_in_the_past_keeps_its_date_when_its_text_is_corrected(owner, clock):
    visit = committed_record(owner.remember("Ana movd to Oslo", occurred_at="2020-05-01", tier="archival"))
    clock.move(days=5)
    committed_record(owner.revise(visit.id, "Ana moved to Oslo", reason="typo"))
    assert voice(owner.get(visit.id)) == (None, "operator:olga", "05-01")


def test_added_lines_and_a_promotion_are_by_who_wrote_them(owner, clock, said, kim):
    clock.move(days=5)
    committed_record(kim.append(said.id, "With food."))
    assert voice(owner.get(said.id)) == (None, "operator:kim", "03-06")
    clock.move(days=1)
    committed_record(owner.promote(said.id, owner.get(said.id).text))
    assert voice(owner.get(said.id)) == (None, "operator:kim", "03-06")
    committed_record(owner.promote(said.id, RIGHT))
    assert voice(owner.get(said.id)) == (None, "operator:olga", "03-07")


def test_a_key_written_again_is_by_its_last_writer_unless_the_text_is_the_same(owner, clock, kim):
    state = committed_record(owner.remember("8080", key="deploy.port", kind="state", speaker="Nora"))
    clock.move(days=5)
    committed_record(kim.remember("8080", key="deploy.port", kind="state", tags=["net"], speaker="Nora"))
    assert voice(owner.get(state.id)) == ("Nora", "operator:olga", "03-01")
    committed_record(kim.remember("9090", key="deploy.port", kind="state"))
    assert voice(owner.get(state.id)) == (None, "operator:kim", "03-06")


def test_a_value_without_text_is_by_who_changed_it(owner, clock, kim):
    value = committed_record(
        owner.remember("", key="port", content_type="structured", metadata={"port": 1}, tier="archival")
    )
    clock.move(days=5)
    committed_record(kim.revise(value.id, metadata={"port": 2}))
    assert voice(owner.get(value.id)) == (None, "operator:kim", "03-06")


def test_a_rollback_brings_back_the_author_with_the_text(owner, clock, said, kim):
    clock.move(days=5)
    changed = kim.revise(said.id, RIGHT, reason="read the label")
    clock.move(days=1)
    owner.rollback(changed.commit.id)
    assert voice(owner.get(said.id)) == ("Nora", "operator:olga", "01-30")
    (text,) = (each for each in owner.blame(said.id).origins if each.field == "text")
    assert text.actor == "operator:olga"


def test_a_redaction_that_leaves_the_text_as_it_was_changes_no_author(owner, clock, kim):
    said = committed_record(owner.remember("Ana's card is 4111 1111 1111 1111", speaker="Nora", tier="archival"))
    assert "4111" not in said.text
    clock.move(days=5)
    kim.revise(said.id, "Ana's card is 4111 1111 1111 1111", tags=["card"])
    now = owner.get(said.id)
    assert (now.tags, *voice(now)) == (("card",), "Nora", "operator:olga", "03-01")


def test_an_approved_text_is_by_its_proposer_and_an_amended_one_by_the_reviewer(owner, agent, clock, said):
    first = quarantined_item(agent.revise(said.id, RIGHT, reason="read the label"))
    clock.move(days=5)
    owner.approve(first.id)
    assert voice(owner.get(said.id)) == (None, "agent:scout", "03-01")
    (text,) = (each for each in owner.blame(said.id).origins if each.field == "text")
    assert (text.actor, text.approved_by) == ("agent:scout", "operator:olga")
    second = quarantined_item(agent.revise(said.id, "Biscuit gets 9 mg", reason="again"))
    committed_record(owner.amend(second.id, "Biscuit gets 8 mg, with food"))
    assert voice(owner.get(said.id)) == (None, "operator:olga", "03-06")
    assert {each.name: each.total for each in owner.activity().series} == {"operator:olga": 2, "agent:scout": 1}


def test_an_outdated_proposal_that_is_amended_is_by_who_wrote_its_words(owner, agent, clock, said, kim):
    committed_record(agent.remember("The oven is at 230 degrees", tier="archival", key="oven"))
    oven = owner.get("oven")
    kim.revise(oven.id, "The oven is at 240 degrees", reason="measured")
    late = quarantined_item(agent.revise(oven.id, "The oven is at 220 degrees", reason="measured too"))
    clock.move(days=1)
    kim.revise(oven.id, "The oven is at 250 degrees", reason="measured")
    committed_record(owner.amend(late.id, tags=["oven"], if_version=owner.get(oven.id).version))
    assert (owner.get(oven.id).text, owner.get(oven.id).text_by) == ("The oven is at 220 degrees", "agent:scout")


def test_trust_follows_the_present_text(owner, agent, clock, kim):
    page = committed_record(agent.remember(WRONG, source="web", tier="archival"))
    assert page.trust.label == "web"
    committed_record(owner.revise(page.id, RIGHT, reason="read the label"))
    assert (owner.get(page.id).trust.label, owner.get(page.id).text_by) == ("owner", "operator:olga")
    committed_record(kim.revise(page.id, source="web", tags=["x"]))
    assert owner.get(page.id).text_by == "operator:olga"


def test_a_newer_text_counts_as_newer_in_recall(owner, clock):
    first = committed_record(owner.remember("The harbour bus leaves from gate four", tier="archival"))
    clock.move(days=20)
    committed_record(owner.remember("The harbour bus leaves from the market in winter", tier="archival"))
    clock.move(days=20)
    committed_record(owner.revise(first.id, "The harbour bus leaves from gate seven", reason="moved"))
    newer = {hit.memory.id == first.id: hit.parts["newer"] for hit in owner.recall("harbour bus")}
    assert newer[True] > newer[False]


def test_the_newest_rules_are_those_of_the_newest_texts(owner, clock):
    for number in range(12):
        committed_record(owner.remember(f"Never touch file {number} of {number}", kind="rule", stability="permanent"))
        clock.move(days=1)
    before = owner.context("hello").sections
    committed_record(owner.reinforce(owner.list_memories(text="file 0")[0].id))
    assert [each.digest for each in owner.context("hello").sections] == [each.digest for each in before]


def test_activity_counts_new_texts_by_their_authors(owner, corrected):
    assert {each.name: each.total for each in owner.activity().series} == {"operator:olga": 1, "operator:kim": 1}


def test_a_source_counts_what_is_still_its_own(owner, agent, clock):
    page = committed_record(agent.remember(WRONG, source="web", evidence=[PAGE], session="s1", tier="archival"))
    committed_record(agent.remember("Cats sleep a lot", source="web", evidence=[PAGE], session="s1", tier="archival"))
    committed_record(owner.revise(page.id, RIGHT, reason="read the label"))
    found = owner.sources()
    for group, name in (("actors", "agent:scout"), ("sources", "web"), ("references", PAGE), ("sessions", "s1")):
        (own,) = (each for each in getattr(found, group) if each.name == name)
        assert (own.memories, own.corrected, dict(own.trust)) == (1, 1, {"web": 1}), group


@pytest.mark.promise("C123")
@pytest.mark.parametrize("way", [{"actor": "agent:scout"}, {"source": "web"}, {"source": PAGE}, {"session": "s1"}])
def test_what_another_writer_corrected_is_listed_and_stays_in_use(owner, agent, clock, way):
    page = committed_record(agent.remember(WRONG, source="web", evidence=[PAGE], session="s1", tier="archival"))
    tip = committed_record(
        agent.remember("Cats sleep a lot", source="web", evidence=[PAGE], session="s1", tier="archival")
    )
    false = committed_record(agent.remember("Give Biscuit ten tablets", derived_from=[page.id], tier="archival"))
    before = agent.context(QUESTION).receipt.id
    committed_record(owner.revise(page.id, RIGHT, reason="read the label"))
    true = committed_record(owner.remember("One tablet is enough for Biscuit", derived_from=[page.id], tier="archival"))
    after = owner.context(RIGHT).receipt.id
    found = owner.impact(**way)
    assert ([each.id for each in found.corrected], [each.id for each in found.direct]) == (
        [page.id],
        [tip.id] + ([false.id] if way == {"actor": "agent:scout"} else []),
    )
    assert before in {each.receipt for each in found.contexts}
    assert page.id not in {name for each in found.contexts if each.receipt == after for name, _ in each.items}
    plan = owner.plan_contain(**way)
    assert plan.notes == (
        "1 memory was corrected since by another writer and stays in use; to take one out too, contain it by its id",
    )
    owner.contain(plan.digest, **way, reason="a bad page")
    live = {each.id for each in owner.list_memories()}
    assert live == {page.id, true.id}
    assert owner.plan_contain(**way).items == ()


def test_a_commit_counts_what_another_writer_corrected_as_corrected(owner, agent):
    written = agent.remember(WRONG, source="web", tier="archival")
    committed_record(owner.revise(committed_record(written).id, RIGHT, reason="read the label"))
    assert [each.text for each in owner.impact(commit=written.commit.id).corrected] == [RIGHT]


def test_a_memory_named_by_its_id_is_contained_with_its_correction(owner, agent):
    page = committed_record(agent.remember(WRONG, source="web", tier="archival"))
    committed_record(owner.revise(page.id, RIGHT, reason="read the label"))
    assert [each.id for each in owner.plan_contain(memory=page.id).items] == [page.id]


def test_what_is_still_partly_its_own_or_was_changed_elsewhere_is_contained(owner, agent):
    longer = committed_record(agent.remember(WRONG, source="web", tier="archival"))
    committed_record(owner.append(longer.id, "Ask the vet."))
    sorted_ = committed_record(agent.remember("Cats sleep a lot", source="web", tier="archival"))
    committed_record(owner.revise(sorted_.id, tags=["cats"]))
    undone = committed_record(agent.remember("Dogs bark at night", source="web", tier="archival"))
    change = owner.revise(undone.id, "Dogs sleep at night", reason="quiet ones")
    owner.rollback(change.commit.id)
    own = committed_record(agent.remember("Fish drink much", source="web", tier="archival"))
    agent.revise(own.id, "Fish drink a lot", reason="style")
    found = owner.impact(source="web")
    assert ({each.id for each in found.direct}, found.corrected) == (
        {longer.id, sorted_.id, undone.id, own.id},
        (),
    )


def test_a_derived_memory_that_another_writer_corrected_stays_too(owner, agent):
    page = committed_record(agent.remember(WRONG, source="web", tier="archival"))
    made = committed_record(agent.remember("Give Biscuit ten tablets", derived_from=[page.id], tier="archival"))
    committed_record(owner.revise(made.id, "Give Biscuit one tablet", reason="read the label"))
    found = owner.impact(source="web")
    assert ([each.id for each in found.corrected], found.derived) == ([made.id], ())


def test_a_sensitive_text_of_another_writer_is_not_changed_unread(owner, agent):
    secret = committed_record(agent.remember("Nora has a heart disease", sensitivity="sensitive", tier="archival"))
    assert agent.revise(secret.id, "Nora has a weak heart", reason="said so").ok
    committed_record(owner.revise(secret.id, "Nora has a heart murmur", reason="read the letter"))
    with pytest.raises(Unauthorised):
        agent.revise(secret.id, "Nora is well", reason="guess")


def test_a_receipt_names_the_author_and_the_commit_of_the_text(owner, corrected):
    (line,) = owner.receipt(owner.context(QUESTION).receipt.id)["explanation"]["candidates"]
    wrote = owner.history(corrected.id)[1]
    found = line["version"], line["author"], line["commit"]
    assert found == (corrected.version, "operator:kim", wrote.commit.id)


def test_author_and_time_survive_a_rebuild_an_export_and_a_verification(owner, opened, tmp_path, corrected):
    owner.rebuild()
    assert voice(owner.get(corrected.id)) == voice(corrected)
    assert owner.verify().ok
    path = tmp_path / "all.jsonl"
    write_vault(owner, path)
    with opened("other", actor=Actor.operator("olga")) as other:
        brought_back(other, path)
        assert (other.get(corrected.id), other.verify().ok) == (corrected, True)


def test_a_payload_has_no_author_of_a_text_that_is_the_first(said, corrected):
    assert not {"text_by", "text_at"} & json.loads(encode_record(said)).keys()
    assert {"text_by", "text_at"} <= json.loads(encode_record(corrected)).keys()
