"""Gates: what is refused, what waits, and what a purpose allows."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import codes, committed_record, quarantined_item, refused

from keepward import (
    Actor,
    Committed,
    Conflict,
    Duplicate,
    Insert,
    InvalidInput,
    Memory,
    Outcome,
    Policy,
    Refused,
    Restore,
    Status,
)
from keepward.gates.detectors.noise import phrases
from keepward.interchange import load
from keepward.storage import rows

# --- What may not be written, why, and by no route


EMPTY_REPORTS = {"no changes", "nothing to report", "status unchanged"}


def made_up(alphabet: str, length: int) -> str:
    """Return letters that look random and are the same on every run; nothing like them stands in this file."""
    return "".join(random.Random(length).choices(alphabet, k=length))


LETTERS = string.ascii_letters + string.digits
SECRETS = {
    "openai_key": "sk" + "-" + made_up(LETTERS, 48),
    "aws_access_key": "AKI" + "A" + made_up(string.ascii_uppercase + "234567", 16),
    "github_token": "gh" + "p_" + made_up(LETTERS, 36),
    "gcp_api_key": "AI" + "za" + made_up(LETTERS, 35),
}


def bytes_on_disk(folder: Path) -> bytes:
    """Return every byte that was written below a folder."""
    return b"\0".join(each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())


@pytest.mark.promise("A11", "A37", "A89")
@pytest.mark.parametrize("phrase", sorted(set(phrases().names) - EMPTY_REPORTS))
def test_journal_entry_goes_to_the_episodic_tier_with_notice(mem: Memory, phrase: str) -> None:
    outcome = mem.remember(f"{phrase.capitalize()} 5", tier="archival")
    stored = committed_record(outcome)
    assert (stored.tier.value, stored.expires_at is not None) == ("episodic", True)
    assert "it stays in the episodic tier for 30 days" in outcome.reasons[0].detail
    assert mem.list_memories(tiers=["episodic"], kinds=["event"]) == [stored]
    assert mem.list_memories(tiers=["archival", "core"]) == []
    assert list(mem.recall(phrase, tiers=["archival", "core"])) == []


@pytest.mark.promise("A37", "A11")
@pytest.mark.parametrize("phrase", sorted(EMPTY_REPORTS))
def test_a_report_of_nothing_is_refused_by_name(mem: Memory, phrase: str) -> None:
    outcome = mem.remember(phrase.capitalize() + ".", tier="archival")
    assert refused(outcome) == {"empty_report"}
    assert phrase in outcome.reasons[0].detail
    assert mem.list_memories() == []


@pytest.mark.promise("A37", "Z37")
@pytest.mark.parametrize(
    "fact",
    [
        "The heartbeat interval is 30 s",
        "Check-in at the hotel is at 15:00",
        "Ana wants no changes after 18:00",
        "The routine scan missed a virus",
        "Use ephemeral ports above 49152",
        "A runtime snapshot takes 2 GB",
    ],
)
def test_a_fact_that_only_mentions_a_journal_phrase_is_lasting(mem: Memory, fact: str) -> None:
    outcome = mem.remember(fact, tier="archival")
    assert committed_record(outcome).tier.value == "archival"
    assert outcome.reasons == ()


@pytest.mark.promise("A38", "A41")
@pytest.mark.parametrize("tier", ["log", "canon", "register", "Core", "shelf"])
def test_unknown_tier_is_refused_and_the_four_are_named(mem: Memory, tier: str) -> None:
    with pytest.raises(InvalidInput, match="core, working, episodic, archival"):
        mem.remember("The harbour opens at six", tier=tier)
    outcome = mem.propose([Insert(id="n", text="The harbour opens at six", tier=tier)], reason="seen")
    assert refused(outcome) == {"unknown_name"}


@pytest.mark.promise("A43", "A44")
@pytest.mark.parametrize(
    ("text", "number", "marker"),
    [
        ("Her SSN is {}", "536-22-" + "1847", "[US_SSN]"),
        ("social security number {}", "53622" + "1847", "[US_SSN]"),
        ("SSN: {}", "53622" + "1847", "[US_SSN]"),
        ("It is {} she said", "536 22 " + "1847", "[US_SSN]"),
        ("Her social security number is {}", "536 22 " + "1847", "[US_SSN]"),
        ("SSN{}", "53622" + "1847", "[US_SSN]"),
        ("soc sec no. {}", "53622" + "1847", "[US_SSN]"),
        ("The form shows {}", "536.22." + "1847", "[US_SSN]"),
        ("order {}", "536-22-" + "1847", "[US_SSN]"),
        ("His card is {}", "4111 " + "1111 1111 1111", "[PAYMENT_CARD]"),
        ("His card is {}", "4111-" + "1111-1111-1111", "[PAYMENT_CARD]"),
    ],
)
def test_a_personal_number_never_reaches_the_disk(mem: Memory, path: Path, text: str, number: str, marker: str) -> None:
    assert committed_record(mem.remember(text.format(number), tier="archival")).text == text.format(marker)
    assert number.encode() not in bytes_on_disk(path.parent)


@pytest.mark.promise("A43")
@pytest.mark.parametrize(
    "number",
    ["000-22-1847", "666-22-1847", "536-00-1847", "536-22-0000", "078-05-1120", "219-09-9999", "536221847"],
)
def test_reserved_example_number_is_left_unchanged(mem: Memory, number: str) -> None:
    assert (
        committed_record(mem.remember(f"The form shows {number} as an example", tier="archival")).text.count(number)
        == 1
    )


@pytest.mark.promise("A45")
@pytest.mark.parametrize("text", ["password: {}", "my password is {}", "the password {} opens the door"])
def test_a_password_is_quarantined_masked_with_or_without_a_colon(mem: Memory, path: Path, text: str) -> None:
    word = made_up(LETTERS, 12)
    item = quarantined_item(mem.remember(text.format(word), tier="archival"))
    assert word not in item.steps[0].after.text
    assert word.encode() not in bytes_on_disk(path.parent)
    assert mem.list_memories() == []


@pytest.mark.promise("A46")
@pytest.mark.parametrize("detector", sorted(SECRETS))
def test_an_api_key_is_refused_and_never_reaches_the_disk(mem: Memory, path: Path, detector: str) -> None:
    assert refused(mem.remember(f"The service uses {SECRETS[detector]}", tier="archival")) == {detector}
    assert SECRETS[detector].encode() not in bytes_on_disk(path.parent)


def _by_import(mem: Memory, memory_id: str, text: str) -> int:
    return load(mem, Path(mem.path).with_name("facts.md")).refused


def _by_draft(mem: Memory, memory_id: str, text: str) -> Outcome | None:
    with mem.draft(reason="all at once") as draft:
        draft.insert(text)
    return draft.outcome


ROUTES: dict[str, Callable[[Memory, str, str], object]] = {
    "remember": lambda mem, _, text: mem.remember(text),
    "tag": lambda mem, _, text: mem.remember("red crane", tags=[text]),
    "metadata": lambda mem, _, text: mem.remember("red crane", metadata={"deep": [{"er": text}]}),
    "reason": lambda mem, _, text: mem.remember("red crane", reason=text),
    "batch": lambda mem, _, text: mem.remember_many([{"text": text}])[0],
    "atomic batch": lambda mem, _, text: mem.remember_many([{"text": text}], mode="atomic")[0],
    "key": lambda mem, _, text: mem.remember(text, key="harbour", kind="state"),
    "revise": lambda mem, name, text: mem.revise(name, text, reason="new"),
    "append": lambda mem, name, text: mem.append(name, text, reason="more"),
    "promote": lambda mem, name, text: mem.promote(name, text, reason="lasting"),
    "merge": lambda mem, name, text: mem.merge(
        [name, committed_record(mem.remember("blue ferry")).id], text, reason="one"
    ),
    "draft": _by_draft,
    "import": _by_import,
}


@pytest.mark.promise("A36")
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_a_secret_is_turned_away_by_every_route(mem: Memory, path: Path, route: str) -> None:
    made = committed_record(mem.remember("The harbour opens at six"))
    text = f"The service uses {SECRETS['aws_access_key']}"
    file = path.with_name("facts.md")
    file.write_text(f"# Facts\n\n- {text}\n")
    outcome = ROUTES[route](mem, made.id, text)
    file.unlink()
    assert outcome == 1 if route == "import" else isinstance(outcome, Refused)
    assert SECRETS["aws_access_key"].encode() not in bytes_on_disk(path.parent)
    assert mem.get(made.id) == made


@pytest.mark.promise("A48")
def test_paraphrase_is_answered_with_the_existing_memory(mem: Memory) -> None:
    first = committed_record(mem.remember("Ana prefers tabs over spaces", tier="archival"))
    outcome = mem.remember("Really, Ana prefers tabs over spaces", tier="archival")
    assert isinstance(outcome, Duplicate)
    assert (outcome.record.id, codes(outcome)) == (first.id, {"near_duplicate"})
    assert first.id in outcome.reasons[0].detail
    assert len(mem.list_memories()) == 1


@pytest.mark.promise("A49")
@pytest.mark.parametrize(
    "again",
    ["ana prefers tabs over spaces.", "Ana  prefers tabs over spaces!", "Ana prefers the tabs over spaces, really"],
)
def test_a_minor_rewording_is_not_stored_twice(mem: Memory, again: str) -> None:
    committed_record(mem.remember("Ana prefers tabs over spaces", tier="archival"))
    assert isinstance(mem.remember(again, tier="archival"), Duplicate)


@pytest.mark.promise("A48", "A49")
@pytest.mark.parametrize(
    "other",
    [
        "The ferry to Bergen costs 5 euros on Monday",
        "The ferry to Bergen costs 4 dollars on Monday",
        "The ferry to Bergen costs 4 euros on Friday",
        "The ferry to Oslo costs 4 euros on Monday",
        "The ferry to Bergen never costs 4 euros on Monday",
        "The night ferry to Bergen costs 4 euros on Monday",
    ],
)
def test_different_number_unit_date_name_or_negation_is_another_fact(mem: Memory, other: str) -> None:
    committed_record(mem.remember("The ferry to Bergen costs 4 euros on Monday", tier="archival"))
    assert isinstance(mem.remember(other, tier="archival"), Committed)


@pytest.mark.promise("A48")
def test_similar_text_with_another_fact_is_stored_with_its_similarity(mem: Memory) -> None:
    first = committed_record(mem.remember("The ferry to Bergen costs 4 euros on Monday", tier="archival"))
    outcome = mem.remember("The ferry to Bergen costs 5 euros on Monday", tier="archival")
    committed_record(outcome)
    assert codes(outcome) == {"similar"}
    assert first.id in outcome.reasons[0].detail


@pytest.mark.promise("A48", "A49", "A93")
def test_the_floors_of_likeness_come_from_policy(opened: Callable[..., Memory]) -> None:
    with opened("strict", policy=Policy(duplicate_overlap=1.0, similarity_threshold=1.0)) as mem:
        committed_record(mem.remember("Ana prefers tabs over spaces", tier="archival"))
        assert isinstance(mem.remember("Really, Ana prefers tabs over spaces", tier="archival"), Committed)


@pytest.mark.promise("A70")
def test_the_same_text_in_another_scope_is_another_memory(mem: Memory) -> None:
    one, two = mem.at(scope="orion"), mem.at(scope="elysia")
    first = committed_record(one.remember("Ana prefers tabs over spaces"))
    second = committed_record(two.remember("Ana prefers tabs over spaces"))
    assert first.id != second.id
    assert isinstance(one.remember("Ana prefers tabs over spaces"), Duplicate)


@pytest.mark.promise("A50")
def test_a_full_tier_refuses_until_something_is_forgotten(opened: Callable[..., Memory]) -> None:
    with opened("full", embedder=None, policy=Policy(capacity={"archival": 100}, when_full="refuse")) as mem:
        texts = [{"text": f"crate {n} is on quay {n}", "tier": "archival"} for n in range(100)]
        first = committed_record(mem.remember_many(texts)[0])
        assert refused(mem.remember("one too many", tier="archival")) == {"full"}
        committed_record(mem.forget(first.id, reason="making room"))
        committed_record(mem.remember("one too many", tier="archival"))
        assert refused(mem.restore(first.id, reason="back again")) == {"full"}


@pytest.mark.promise("A50", "A72")
def test_full_tier_makes_room_only_by_archiving(opened: Callable[..., Memory]) -> None:
    with opened("full", policy=Policy(capacity={"archival": 2})) as mem:
        least = committed_record(mem.remember("red crane", tier="archival", importance=0.1))
        committed_record(mem.remember("blue ferry", tier="archival", importance=0.9))
        outcome = mem.remember("green buoy", tier="archival", importance=0.5)
        committed_record(outcome)
        assert {each.text for each in mem.list_memories()} == {"blue ferry", "green buoy"}
        assert mem.get(least.id).status.value == "archived"
        committed_record(mem.propose([Restore(id=least.id)], reason="needed after all"))
        assert "red crane" in {each.text for each in mem.list_memories()}


def test_a_full_tier_archives_only_agents_memories_of_readable_scopes(opened: Callable[..., Memory]) -> None:
    policy = Policy(capacity={"archival": 3}, when_full="archive")
    with opened("full", actor=Actor.operator("olga"), policy=policy) as owner:
        agent = owner.as_actor(Actor.agent())
        for text, handle in (
            ("Ana plays the violin", owner.as_actor(Actor.user("ana")).user("ana")),
            ("Eve sails on Sundays", agent.agent("eve")),
            ("The ferry leaves at noon", owner.as_actor(Actor.user("bo"))),
        ):
            committed_record(handle.remember(text, tier="archival", importance=0.1))
        before = owner.head
        outcome = agent.agent("bob").remember("Bob collects gravel", tier="archival", importance=0.9)
        assert refused(outcome) == {"full"}
        assert "violin" not in repr(outcome)
        assert owner.head == before


def test_a_full_tier_is_not_read_to_make_room(opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("full", embedder=None, policy=Policy(capacity={"archival": 150})) as mem:
        mem.remember_many([{"text": f"Crate {n} holds {n * 7} nails", "tier": "archival"} for n in range(150)])
        decoded, decode = list[bytes](), rows.decode_record
        monkeypatch.setattr(rows, "decode_record", lambda payload: decoded.append(payload) or decode(payload))
        committed_record(mem.remember("The buoy is green", tier="archival"))
        assert len(decoded) <= 10
        assert mem.status()["by_tier"] == {"archival": 150}


def test_a_batch_into_a_full_tier_archives_as_many_as_it_brings(opened: Callable[..., Memory]) -> None:
    with opened("full", policy=Policy(capacity={"archival": 3})) as mem:
        old = [
            committed_record(mem.remember(text, tier="archival")).id for text in ("red crane", "blue ferry", "old quay")
        ]
        mem.remember_many([{"text": text, "tier": "archival"} for text in ("green buoy", "loud gulls", "cheap rope")])
        assert {mem.get(name).status for name in old} == {Status.ARCHIVED}
        assert len(mem.list_memories()) == 3


@pytest.mark.parametrize("when_full", ["refuse", "archive"])
def test_a_full_tier_never_refuses_people(opened: Callable[..., Memory], when_full: Any) -> None:
    policy = Policy(capacity={"archival": 2}, when_full=when_full)
    with opened("full", actor=Actor.operator("olga"), policy=policy) as owner:
        agent, ana = owner.as_actor(Actor.agent()), owner.as_actor(Actor.user("ana"))
        flood = [agent.remember(f"crate {n} is on quay {n}", tier="archival") for n in range(3)]
        assert (flood[2].outcome == "refused") == (when_full == "refuse")
        rule = committed_record(owner.remember("Always ask Ana before a payment", tier="archival", kind="rule"))
        for n in range(3):
            committed_record(owner.remember(f"the owner says {n} twice", tier="archival"))
            committed_record(ana.remember(f"my boat has {n} masts", tier="archival"))
        committed_record(owner.forget(rule.id, reason="a mistake"))
        committed_record(owner.restore(rule.id, reason="it holds after all"))
        assert "Always ask Ana" in owner.context("payment").text


@pytest.mark.parametrize("when_full", ["refuse", "archive"])
def test_a_full_tier_takes_what_a_person_approves(opened: Callable[..., Memory], when_full: Any) -> None:
    policy = Policy(capacity={"archival": 1}, when_full=when_full)
    with opened("full", actor=Actor.operator("olga"), policy=policy) as owner:
        item = quarantined_item(
            owner.as_actor(Actor.agent()).remember("Ask Ana first", kind="rule", stability="permanent")
        )
        committed_record(owner.remember("the crane is red", tier="archival"))
        assert committed_record(owner.approve(item.id)).text == "Ask Ana first"


@pytest.mark.promise("A51")
def test_gates_object_in_their_order(opened: Callable[..., Memory]) -> None:
    policy = Policy(capacity={"archival": 0}, when_full="refuse")
    with opened("gates", policy=policy) as mem:
        key = SECRETS["github_token"]
        order = [each.gate for each in mem.remember(f"{key} and more", tier="archival", subject="a\nb").reasons]
        assert list(dict.fromkeys(order)) == ["secrets", "shape"]
        # What is too long is read by no gate.
        long = f"{key} and " + "more words " * 200
        assert [each.gate for each in mem.remember(long, tier="archival").reasons] == ["shape"]
        odd = mem.remember("the crane is 4 m high", tier="archival", confidence=0.1)
        assert [each.gate for each in odd.reasons] == ["confidence", "capacity"]


# --- What an agent's write meets on its way to core


@pytest.mark.promise("C88")
@pytest.mark.parametrize("key", ["system_prompt", "Mission", None])
def test_core_takes_no_block_outside_the_list(mem: Memory, owner: Memory, key: str | None) -> None:
    for handle in (mem, owner):
        assert "unknown_block" in refused(handle.remember("Sail to Oslo", key=key, tier="core"))
    # No memory elsewhere can bear a block's name, in whatever letters.
    own = None if key is None or key.casefold() == "mission" else key
    fact = committed_record(mem.remember("The tide turns at six", tier="archival", key=own))
    assert "unknown_block" in refused(mem.move(fact.id, tier="core", reason="important"))
    assert "Sail to Oslo" not in mem.context("").text


@pytest.mark.promise("C89")
def test_agent_writes_about_a_person_only_with_their_message(mem: Memory, owner: Memory) -> None:
    about: dict[str, Any] = {"key": "human", "tier": "core"}
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", **about))
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", evidence=["chat:42"], **about))
    own = committed_record(mem.remember("Ana said: I like tea", kind="event", source="user_message")).id
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", evidence=[own], **about))
    said = committed_record(owner.as_actor(Actor.user("ana")).remember("I like tea", kind="event")).id
    assert "needs_approval" in codes(mem.remember("Ana likes tea", evidence=[said], **about))
    assert len(mem.pending()) == 1


def test_user_proposes_the_human_block_with_a_recorded_message(mem: Memory, owner: Memory) -> None:
    mem.add([{"role": "user", "content": "I like tea", "id": "m1"}], session="s1")
    said = mem.get("m1").id
    about: dict[str, Any] = {"key": "human", "tier": "core", "evidence": [said]}
    outcome = mem.remember("Ana likes tea", **about)
    assert refused(outcome) == {"needs_user_evidence"}
    assert "If the user or the owner proposes the block" in outcome.reasons[0].detail
    user = owner.as_actor(Actor.user("ana"))
    assert "needs_user_evidence" in refused(user.remember("Ana likes tea", **about | {"evidence": ["m2"]}))
    assert "needs_approval" in codes(user.remember("Ana likes tea", **about))
    assert committed_record(owner.remember("Ana likes tea", **about)).evidence == (said,)


@pytest.mark.promise("C89")
def test_evidence_of_an_earlier_text_does_not_support_another(mem: Memory, owner: Memory) -> None:
    said = committed_record(owner.as_actor(Actor.user("ana")).remember("I like tea", kind="event")).id
    waiting = quarantined_item(mem.remember("Ana likes tea", key="human", tier="core", evidence=[said]))
    block = committed_record(owner.approve(waiting.id))
    assert "needs_user_evidence" in refused(mem.revise(block.id, "Ana likes gin", reason="inferred"))
    assert "needs_user_evidence" in refused(mem.append(block.id, "and gin", reason="inferred"))
    assert "needs_user_evidence" in refused(mem.remember("Ana likes gin", key="human", tier="core"))
    quarantined_item(mem.revise(block.id, "Ana loves tea", evidence=[said], reason="she said so"))
    quarantined_item(mem.append(block.id, "Ana loves tea", evidence=[said], reason="she said so"))
    quarantined_item(mem.forget(block.id, reason="she left"))


@pytest.mark.promise("C90")
def test_every_agent_change_of_core_ends_in_the_queue(mem: Memory, owner: Memory) -> None:
    block = committed_record(owner.remember("Sail to Oslo", key="mission", tier="core"))
    other = committed_record(mem.remember("Sail to Bergen", tier="archival"))
    quarantined_item(mem.revise(block.id, "Sail to Bergen", reason="x"))
    quarantined_item(mem.append(block.id, "by night", reason="x"))
    quarantined_item(mem.forget(block.id, reason="x"))
    quarantined_item(mem.supersede(block.id, other.id, reason="x"))
    quarantined_item(mem.move(block.id, tier="archival", key=None, reason="x"))
    quarantined_item(mem.move(other.id, tier="core", key="workspace_state", reason="x"))
    quarantined_item(mem.promote(other.id, "Sail to Bergen", reason="x"))
    quarantined_item(mem.reinforce(block.id))
    assert mem.context("").text.startswith("## mission\n\nSail to Oslo")
    assert mem.get(block.id) == block


@pytest.mark.promise("C91")
def test_unsure_core_write_goes_to_the_archive_with_notice(mem: Memory) -> None:
    outcome = mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.5)
    record = committed_record(outcome)
    assert (record.tier.value, record.key) == ("archival", None)
    assert "diverted_to_archival" in codes(outcome)
    assert [each.id for each in mem.list_memories(tiers=["archival"])] == [record.id]
    assert mem.list_memories(tiers=["core"]) == []
    assert mem.recall("Bergen")[0].memory.id == record.id
    assert "## mission" not in mem.context("Bergen").text


@pytest.mark.promise("C91")
def test_what_is_too_unsure_even_for_the_archive_waits(mem: Memory) -> None:
    outcome = mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.29)
    quarantined_item(outcome)
    assert "below_floor" in codes(outcome)
    assert mem.list_memories() == []
    assert mem.context("Bergen").text == ""


@pytest.mark.promise("C91")
def test_an_unsure_edit_of_a_block_leaves_the_block_alone(mem: Memory, owner: Memory) -> None:
    block = committed_record(owner.remember("Sail to Oslo", key="mission", tier="core"))
    for outcome in (
        mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.5),
        mem.revise(block.id, "Sail to Bergen", confidence=0.5, reason="guess"),
    ):
        assert [(step.after.id, step.after.tier.value) for step in quarantined_item(outcome).steps] == [
            (block.id, "core")
        ]
        assert "below_floor" in codes(outcome)
    assert mem.context("").text == "## mission\n\nSail to Oslo"


@pytest.mark.promise("C88")
def test_used_key_survives_a_move_or_a_restore(mem: Memory) -> None:
    holder = committed_record(mem.remember("Quay four", tier="archival", key="berth"))
    other = committed_record(mem.remember("Quay nine is wide", tier="archival"))
    with pytest.raises(Conflict, match="another memory has this key"):
        mem.move(other.id, key="berth", reason="better")
    committed_record(mem.forget(holder.id, reason="sold"))
    committed_record(mem.move(other.id, key="berth", reason="better"))
    with pytest.raises(Conflict, match="another memory has this key"):
        mem.restore(holder.id, reason="bought back")
    assert [each.text for each in mem.list_memories(key="berth")] == ["Quay nine is wide"]
