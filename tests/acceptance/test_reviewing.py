"""Review: bound to what was shown, of stale proposals, and never by the proposer."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item

from keepward import (
    Actor,
    Committed,
    Conflict,
    InvalidInput,
    KeepwardError,
    Memory,
    Move,
    NotFound,
    Policy,
    Proposal,
    StaleVersion,
    Unauthorised,
)
from keepward.cli.main import main
from support import tamper

# --- An approval is another person's, on exactly what was shown, once


MISSION: dict[str, Any] = {"tier": "core", "key": "mission"}
Enter = Callable[..., Memory]


@pytest.fixture
def waiting(mem: Memory, owner: Memory) -> Proposal:
    """An agent's edit of a mission that the owner wrote."""
    committed_record(owner.remember("Sail to Oslo", **MISSION))
    return quarantined_item(mem.remember("Sail to Bergen", reason="the wind", **MISSION))


@pytest.mark.promise("Z24", "D5")
@pytest.mark.parametrize("name", ["olga", "Olga", " olga", "ｏｌｇａ", "оlgа", "o\u034flga", "0lga", "ólga"])
def test_proposer_does_not_approve_by_another_spelling_of_its_name(owner: Memory, entering: Enter, name: str) -> None:
    item = quarantined_item(owner.remember("maybe so", tier="archival", confidence=0.1))
    second = entering(Actor.operator(name), policy=Policy(four_eyes=True))
    for other in (second, entering(Actor.reviewer(name))):
        with pytest.raises(Unauthorised, match="propos"):
            other.approve(item.id)
    assert [each.id for each in owner.pending()] == [item.id]


@pytest.mark.promise("Z24")
def test_proposer_does_not_approve_by_a_handle_it_created(owner: Memory) -> None:
    item = quarantined_item(owner.remember("maybe so", tier="archival", confidence=0.1))
    with pytest.raises(Unauthorised, match="propos"):
        owner.as_actor(Actor.reviewer("rita")).approve(item.id)


@pytest.mark.promise("Z24")
def test_proposer_does_not_approve_with_its_proposing_token(owner: Memory, entering: Enter) -> None:
    secret = owner.create_token("root", rights="owner").secret
    strict = Policy(four_eyes=True)
    item = quarantined_item(entering(token=secret, policy=strict).remember("maybe so", tier="archival", confidence=0.1))
    with pytest.raises(Unauthorised, match="propos"):
        entering(token=secret, policy=strict).approve(item.id)
    assert item.proposer.credential == owner.tokens()[0].id
    committed_record(owner.approve(item.id))


def test_approval_records_approver_token_and_digest(owner: Memory, entering: Enter, waiting: Proposal) -> None:
    issued = owner.create_token("rita", rights="reviewer")
    outcome = entering(token=issued.secret).approve(waiting.id)
    committed_record(outcome)
    receipt = owner.receipt(outcome.receipt.id)
    assert (receipt["approved_by"], receipt["approved_digest"], receipt["credential"]) == (
        "reviewer:rita",
        waiting.digest,
        issued.token.id,
    )


@pytest.mark.promise("Z23", "T19")
def test_approval_of_stale_proposal_is_refused(mem: Memory, owner: Memory, waiting: Proposal) -> None:
    committed_record(owner.revise(waiting.steps[0].after.id, "Sail to Malmö", reason="news"))
    with pytest.raises(StaleVersion, match="has changed since"):
        owner.approve(waiting.id, digest=waiting.digest)
    (stale,) = owner.pending(state="stale")
    assert (stale.id, "has changed since" in (stale.decision or "")) == (waiting.id, True)
    assert mem.context("").text == "## mission\n\nSail to Malmö"


@pytest.mark.promise("Z23")
def test_another_digest_than_the_one_seen_is_not_approved(owner: Memory, waiting: Proposal) -> None:
    other = waiting.digest[:-1] + ("0" if waiting.digest[-1] != "0" else "1")
    with pytest.raises(Conflict, match="not the one you saw"):
        owner.approve(waiting.id, digest=other)
    assert owner.get(waiting.steps[0].after.id).text == "Sail to Oslo"
    committed_record(owner.approve(waiting.id, digest=waiting.digest))


@pytest.mark.promise("Z23", "F4")
def test_one_changed_byte_voids_an_approval(owner: Memory, path: Path, waiting: Proposal) -> None:
    tamper.edit_documents(path, "proposals", tamper.body("Bergen", "Bergem"))
    with pytest.raises(KeepwardError, match="verify"):
        owner.approve(waiting.id)
    assert owner.pending() == []
    assert owner.get(waiting.steps[0].after.id).text == "Sail to Oslo"
    assert [fault.row.split()[0] for fault in owner.verify().faults] == ["proposals"]


@pytest.mark.promise("Z23")
def test_of_many_approvers_one_wins(owner: Memory, entering: Enter, waiting: Proposal) -> None:
    reviewers = [entering(Actor.reviewer(f"rita {n}")) for n in range(6)]

    def decide(reviewer: Memory) -> str:
        try:
            return reviewer.approve(waiting.id).outcome
        except Conflict:
            return "late"

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(decide, reviewers)) == ["committed", *["late"] * 5]
    assert owner.get(waiting.steps[0].after.id).version == 2


@pytest.mark.promise("Z23", "Z2")
def test_a_rejection_that_comes_in_between_stops_an_approval(
    owner: Memory, entering: Enter, waiting: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.services.review import decisions

    fits, other = decisions._check_still_allowed, entering(Actor.reviewer("rita"))

    def slow(*given: Any) -> None:
        fits(*given)
        other.reject(waiting.id, reason="no")

    monkeypatch.setattr(decisions, "_check_still_allowed", slow)
    with pytest.raises(Conflict, match="decided in the meantime"):
        owner.approve(waiting.id)
    assert owner.get(waiting.steps[0].after.id).text == "Sail to Oslo"
    assert [each.state for each in owner.pending(state="all")] == ["rejected"]


@pytest.mark.promise("Z23")
def test_an_approval_that_comes_in_between_stops_a_rejection(
    owner: Memory, entering: Enter, waiting: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.services.review import decisions

    decided, other = decisions._decide, entering(Actor.reviewer("rita"))

    def slow(*given: Any) -> Any:
        other.approve(waiting.id)
        return decided(*given)

    monkeypatch.setattr(decisions, "_decide", slow)
    with pytest.raises(Conflict, match="decided in the meantime"):
        owner.reject(waiting.id, reason="no")
    assert owner.get(waiting.steps[0].after.id).text == "Sail to Bergen"
    assert [each.state for each in owner.pending(state="all")] == ["approved"]


@pytest.mark.promise("T19")
def test_key_used_meanwhile_voids_an_approval(mem: Memory, owner: Memory) -> None:
    item = quarantined_item(mem.remember("Sail to Bergen", **MISSION))
    committed_record(owner.remember("Sail to Oslo", **MISSION))
    with pytest.raises(StaleVersion, match="key"):
        owner.approve(item.id)
    assert mem.context("").text == "## mission\n\nSail to Oslo"


@pytest.mark.promise("T19")
def test_text_the_gates_now_reject_cannot_be_approved(
    owner: Memory, waiting: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.services.review import decisions

    monkeypatch.setattr(decisions, "redact_secrets", lambda text: text.replace("Bergen", "[SECRET]"))
    with pytest.raises(StaleVersion, match="secret"):
        owner.approve(waiting.id)
    assert owner.get(waiting.steps[0].after.id).text == "Sail to Oslo"


@pytest.mark.promise("T21", "C68")
def test_batch_approval_returns_one_answer_each(mem: Memory, owner: Memory) -> None:
    good = quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    seen = quarantined_item(mem.remember("At the quay", tier="core", key="workspace_state", confidence=0.9))
    own = quarantined_item(mem.remember("maybe so", tier="archival", confidence=0.1))
    reviewer = owner.as_actor(Actor.reviewer("agent"))
    decided = owner.approve_many([{"id": good.id, "digest": good.digest}, "nobody", {"id": seen.id, "digest": "00"}])
    decided += reviewer.approve_many([own.id])
    assert [(each.id, each.ok, type(each.error)) for each in decided] == [
        (good.id, True, type(None)),
        ("nobody", False, NotFound),
        (seen.id, False, Conflict),
        (own.id, False, Unauthorised),
    ]
    assert decided[0].outcome is not None
    assert committed_record(decided[0].outcome).text == "Sail to Oslo"
    assert [each.id for each in owner.pending()] == [seen.id, own.id]


@pytest.mark.promise("T21")
def test_batch_rejection_returns_one_answer_each(mem: Memory, owner: Memory) -> None:
    first, second = (
        quarantined_item(mem.remember("Sail to Oslo", **MISSION)),
        quarantined_item(mem.remember("Sail to Bergen", **MISSION)),
    )
    decided = owner.reject_many([first.id, "nobody", second.id, first.id], reason="not now")
    assert [(each.id, each.ok) for each in decided] == [(first.id, True), ("nobody", False), (second.id, True)]
    assert owner.pending() == []
    assert [each.decision for each in mem.notices()] == ["not now", "not now"]


@pytest.mark.promise("T20")
@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\ufe0f", "\u3164", "\u00a0", "\U000e0041", "\u034f", "\u200d"])
def test_a_reviewer_sees_what_no_eye_sees(mem: Memory, owner: Memory, hidden: str) -> None:
    item = quarantined_item(mem.remember(f"Sail{hidden} to Oslo", **MISSION))
    (step,) = owner.proposed_steps(item)
    mark = f"⟦U+{ord(hidden):04X}⟧"
    assert f"Sail{mark} to Oslo" in step.payload
    assert (None, f"Sail{mark} to Oslo") in [(before, after) for _, before, after in step.changes]
    assert hidden not in step.payload


@pytest.mark.promise("T20")
def test_what_is_shown_is_what_is_stored_byte_for_byte(mem: Memory, owner: Memory, waiting: Proposal) -> None:
    (step,) = owner.proposed_steps(waiting)
    committed_record(owner.approve(waiting.id))
    (stored,) = [event.payload for _, events in owner.journal(after=1) for event in events]
    assert stored is not None
    assert step.payload.encode() == stored


@pytest.mark.promise("T20")
def test_typed_marker_does_not_count_as_an_internal_one(mem: Memory, owner: Memory) -> None:
    typed = quarantined_item(mem.remember("Sail⟦U+200B⟧ to Oslo", **MISSION))
    hidden = quarantined_item(mem.remember("Sail\u200b to Oslo", tier="core", key="workspace_state", confidence=0.9))
    texts = [
        after for item in (typed, hidden) for name, _, after in owner.proposed_steps(item)[0].changes if name == "text"
    ]
    assert texts[0] != texts[1]


@pytest.mark.promise("Z25")
def test_rejection_reason_reaches_only_its_proposer_once(owner: Memory, entering: Enter, waiting: Proposal) -> None:
    owner.reject(waiting.id, reason="the harbour is closed")
    assert entering(Actor.agent("another")).notices() == []
    assert [(each.id, each.decision) for each in entering(Actor.agent()).notices()] == [
        (waiting.id, "the harbour is closed")
    ]
    assert entering(Actor.agent()).notices() == []


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command on a store; returns its exit code, its object on stdout, and stderr."""
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    for name in ("ACTOR", "TOKEN", "TENANT", "SCOPE", "DB"):
        monkeypatch.delenv(f"KEEPWARD_{name}", raising=False)

    def run(*words: str) -> tuple[int, Any, str]:
        code = main(["--db", str(tmp_path / "cli.db"), "--embedder", "none", "--json", *words])
        out = capsys.readouterr()
        return code, json.loads(out.out), out.err

    return run


@pytest.mark.promise("Z25")
def test_agent_at_the_terminal_is_notified_once(call: Callable[..., Any]) -> None:
    _, answer, _ = call("remember", "Sail to Oslo", "--tier", "core", "--key", "mission")
    call("reject", answer["item"]["id"], "--reason", "the harbour is closed")
    _, _, loud = call("recall", "Oslo")
    _, _, quiet = call("recall", "Oslo")
    assert ("the harbour is closed" in loud, "the harbour is closed" in quiet) == (True, False)


@pytest.mark.promise("F10")
def test_with_an_agents_token_the_terminal_decides_nothing(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer, _ = call("remember", "Sail to Oslo", "--tier", "core", "--key", "mission")
    _, made, _ = call("token", "create", "--name", "claude", "--scope", "claude")
    monkeypatch.setenv("KEEPWARD_TOKEN", made["token"])
    decide = [
        ("approve", answer["item"]["id"]),
        ("reject", answer["item"]["id"], "--reason", "mine"),
        ("rebuild",),
        ("token", "create", "--name", "me", "--rights", "owner"),
        ("token", "list"),
        ("token", "revoke", made["id"]),
        ("recall", "Oslo", "--as", "operator"),
        ("recall", "Oslo", "--scope", "/"),
        ("recall", "Oslo", "--tenant", "acme"),
    ]
    assert [(words[0], call(*words)[0]) for words in decide] == [(words[0], 7) for words in decide]
    code, written, _ = call("remember", "The ferry is blue")
    assert (code, call("get", written["id"])[1]["author"], call("get", written["id"])[1]["scope"]) == (
        0,
        "agent:claude",
        "/agents/claude",
    )


@pytest.mark.promise("F10")
def test_tokens_are_listed_and_revoked_at_the_terminal(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call("remember", "The ferry is blue")
    _, made, _ = call("token", "create", "--name", "claude", "--can", "read", "--expires", "30d")
    assert made["can"] == ["read"]
    assert [(each["name"], each["state"]) for each in call("token", "list")[1]["tokens"]] == [("claude", "valid")]
    assert made["token"] not in json.dumps(call("token", "list")[1])
    assert call("token", "revoke", made["id"])[1]["state"] == "revoked"
    monkeypatch.setenv("KEEPWARD_TOKEN", made["token"])
    assert call("recall", "anything")[0] == 7


def test_making_a_store_makes_the_owners_token(call: Callable[..., Any]) -> None:
    _, made, _ = call("init")
    assert Path(made["owner_token"]).read_text().startswith("kw_")
    assert call("init")[1]["owner_token"] == made["owner_token"]
    assert call("token", "list")[1]["count"] == 1


def test_move_into_core_is_quarantined_and_bound(mem: Memory, owner: Memory) -> None:
    made = committed_record(mem.remember("Sail to Oslo", tier="archival", confidence=0.9))
    item = quarantined_item(mem.propose([Move(id=made.id, tier="core", key="mission")], reason="important"))
    committed_record(mem.append(made.id, "by way of Bergen", reason="route"))
    with pytest.raises(StaleVersion):
        owner.approve(item.id)
    assert mem.context("").text == ""


# --- A proposal whose memory has changed since: marked as stale, shown with what holds now, edited against that


@pytest.fixture
def stale(mem, owner):
    """A proposal for a block that the owner changed afterwards."""
    block = committed_record(owner.remember("Sail to Oslo", tier="core", key="mission", reason="so"))
    item = quarantined_item(mem.remember("Sail to Bergen", tier="core", key="mission", reason="heard"))
    committed_record(owner.revise(block.id, "Sail to Malmö", tags=["news"], reason="news"))
    return owner.proposal(item.id)


def test_a_stale_proposal_is_marked_in_every_list(mem, owner, stale):
    for found in (owner.pending(), [owner.proposal(stale.id)], mem.pending()):
        (item,) = found
        assert (item.state, item.stale) == ("pending", True)
        then, now, proposed = item.steps[0].before, item.current[0], item.steps[0].after
        assert [each.text for each in (then, now, proposed)] == ["Sail to Oslo", "Sail to Malmö", "Sail to Bergen"]


def test_a_proposal_whose_memory_was_only_confirmed_is_not_stale(mem, owner):
    block = committed_record(owner.remember("Sail to Oslo", tier="core", key="mission", reason="so"))
    quarantined_item(mem.remember("Sail to Bergen", tier="core", key="mission", reason="heard"))
    owner.reinforce(block.id)
    (item,) = owner.pending()
    assert (item.stale, item.current) == (False, ())


def test_a_stale_proposal_is_edited_against_what_holds_now(mem, owner, stale):
    now = stale.current[0]
    done = owner.amend(stale.id, "Sail to Malmö, then Bergen", if_version=now.version, digest=stale.digest)
    assert isinstance(done, Committed)
    record = owner.get(now.id)
    assert (record.text, record.tags, record.version) == ("Sail to Malmö, then Bergen", ("news",), now.version + 1)
    assert owner.proposal(stale.id).state == "approved"
    assert not owner.verify().faults


def test_an_edit_over_another_version_than_the_newest_is_refused(owner, stale):
    now = stale.current[0]
    committed_record(owner.revise(now.id, "Sail to Turku", reason="more news"))
    with pytest.raises(StaleVersion, match="read the proposal again"):
        owner.amend(stale.id, "Sail to Malmö, then Bergen", if_version=now.version)
    assert (owner.get(now.id).text, owner.proposal(stale.id).state) == ("Sail to Turku", "pending")


def test_a_memory_that_was_retired_is_not_edited(owner, stale):
    now = stale.current[0]
    committed_record(owner.forget(now.id, reason="over"))
    with pytest.raises(Conflict, match="is now retired"):
        owner.amend(stale.id, "Sail on", if_version=now.version + 1)


# --- Under four eyes one person does not play two: tokens count as who made them, names as they look


STRICT = Policy(four_eyes=True)


def refused(approver: Memory, name: str) -> None:
    with pytest.raises(Unauthorised, match="propos"):
        approver.approve(name)
    with pytest.raises(Unauthorised, match="propos"):
        approver.amend(name, "Sail to Bergen")
    (one,) = approver.approve_many([name])
    assert isinstance(one.error, Unauthorised)
    assert approver.proposal(name).may_approve is False


LOOKALIKES = (
    "cl4ude",
    "CL4UDE",
    "claud3",
    "cl4ud3",
    "c1aude",
    "cIaude",
    "c|aude",
    "c!aude",
    "cl@ude",
    "claud\u20ac",
    "cl\u0430ude",
    "cla\u03c5de",
    "cl\u00e0ude",
    "\uff43\uff4c\uff41\uff55\uff44\uff45",
    "\U0001d41cl\u2074ude",
    "Cl-4-ude",
    "claude ",
)
OTHERS = (
    ("rnaria", "maria"),
    ("vvilma", "wilma"),
    ("b0b", "Bob"),
    ("5ue", "sue"),
    ("$ue", "sue"),
    ("7om", "tom"),
    ("8en", "ben"),
    ("9reta", "greta"),
    ("2oe", "zoe"),
    ("4nna", "anna"),
    ("ann4", "anna"),
)
DIFFERENT = (
    *(("claude1", f"claude{n}") for n in (2, 3, 4, 6, 7, 8, 9, 10, 11)),
    *(("reviewer-6", f"reviewer-{n}") for n in (8, 9, 5, 66)),
    ("worker-12", "worker-21"),
    ("ana", "anna"),
    ("alicia", "alida"),
    ("clara", "dara"),
    ("tom", "toma"),
    ("ben", "bea"),
    ("gpt-4", "gpt-5"),
)


@pytest.mark.parametrize(("approver", "proposer"), [*((name, "claude") for name in LOOKALIKES), *OTHERS])
def test_a_name_that_is_read_as_the_proposers_approves_nothing(owner: Memory, approver: str, proposer: str) -> None:
    item = quarantined_item(owner.as_actor(Actor.agent(proposer)).remember("Sail to Oslo", **MISSION))
    refused(owner.as_actor(Actor.reviewer(approver)), item.id)


@pytest.mark.parametrize(("approver", "proposer"), [*DIFFERENT, *((b, a) for a, b in DIFFERENT)])
def test_another_ordinary_name_approves(owner: Memory, approver: str, proposer: str) -> None:
    item = quarantined_item(owner.as_actor(Actor.agent(proposer)).remember("Sail to Oslo", **MISSION))
    assert committed_record(owner.as_actor(Actor.reviewer(approver)).approve(item.id)).text == "Sail to Oslo"


@pytest.mark.parametrize(("first", "second"), [("agent", "reviewer"), ("reviewer", "agent"), ("agent", "owner")])
def test_a_token_is_not_named_like_one_of_the_other_class(owner: Memory, first: str, second: str) -> None:
    made = owner.create_token("claude", rights=first)
    with pytest.raises(InvalidInput, match=f"resembles that of the token {made.token.id}"):
        owner.create_token("cl4ude", rights=second)
    # A like name of the same class and an ordinary one are taken.
    for name, rights in (("cl4ude", first), ("claude2", second)):
        owner.create_token(name, rights=rights)
    assert len(owner.tokens()) == 3


def test_a_revoked_or_ended_token_takes_no_name(owner: Memory, clock: Any) -> None:
    made = owner.create_token("claude")
    owner.create_token("ana", expires="1h")
    owner.revoke_token(made.token.id)
    clock.move(hours=2)
    assert owner.create_token("cl4ude", rights="reviewer").token.name == "cl4ude"
    assert owner.create_token("4na", rights="reviewer").token.name == "4na"


def test_the_token_that_a_proposer_made_approves_nothing_of_it(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    item = quarantined_item(ana.remember("Sail to Oslo", **MISSION))
    for rights in ("reviewer", "owner"):
        refused(entering(token=ana.create_token(f"bob {rights}", rights=rights).secret, policy=STRICT), item.id)
    bob = entering(token=owner.create_token("bob", rights="reviewer").secret, policy=STRICT)
    assert committed_record(bob.approve(item.id)).text == "Sail to Oslo"


def test_a_chain_of_tokens_counts_as_its_first_maker(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    eve = entering(token=ana.create_token("eve", rights="owner").secret, policy=STRICT)
    last = entering(token=eve.create_token("rob", rights="reviewer").secret, policy=STRICT)
    refused(last, quarantined_item(ana.remember("Sail to Oslo", **MISSION)).id)
    refused(ana, quarantined_item(eve.remember("Sail to Rome", **MISSION)).id)


def test_a_maker_does_not_approve_what_its_agents_token_proposed(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    agent = entering(token=ana.create_token("planner").secret, policy=STRICT)
    item = quarantined_item(agent.remember("Sail to Oslo", **MISSION))
    refused(ana, item.id)
    refused(entering(token=ana.create_token("rita", rights="reviewer").secret, policy=STRICT), item.id)


def test_owner_at_the_machine_counts_as_the_tokens_it_created(owner: Memory, entering: Enter) -> None:
    local = entering(Actor.operator("olga"), policy=STRICT)
    item = quarantined_item(local.remember("Sail to Oslo", **MISSION))
    refused(entering(token=local.create_token("rita", rights="reviewer").secret, policy=STRICT), item.id)


def test_a_token_of_unknown_maker_approves_nothing(owner: Memory, entering: Enter, monkeypatch: Any) -> None:
    monkeypatch.setattr("keepward.services.tokens.AT_MACHINE", None)
    old = owner.create_token("bob", rights="reviewer").secret
    monkeypatch.undo()
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    refused(entering(token=old, policy=STRICT), quarantined_item(ana.remember("Sail to Oslo", **MISSION)).id)


def test_without_four_eyes_a_reviewer_decides_about_the_owners_agents(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret)
    item = quarantined_item(entering(token=ana.create_token("planner").secret).remember("Sail to Oslo", **MISSION))
    committed_record(entering(token=ana.create_token("rita", rights="reviewer").secret).approve(item.id))


LOOKS = ["Ana", "аna", "аnа", "a\u034fna", "a\u3164na", "ａｎａ", "AΝΑ", "áná", "a na", "ana."]


@pytest.mark.parametrize("name", LOOKS)
def test_a_name_that_looks_the_same_approves_nothing(owner: Memory, entering: Enter, name: str) -> None:
    agent = entering(Actor.agent("ana"))
    item = quarantined_item(agent.remember("Sail to Oslo", **MISSION))
    token = owner.create_token(name, rights="reviewer").secret
    refused(entering(token=token), item.id)
    committed_record(entering(token=owner.create_token("anna", rights="reviewer").secret).approve(item.id))


def test_the_owner_at_the_machine_decides_about_its_agents(owner: Memory, entering: Enter) -> None:
    item = quarantined_item(
        entering(token=owner.create_token("planner").secret, policy=STRICT).remember("Sail on", **MISSION)
    )
    assert committed_record(entering(Actor.operator("olga"), policy=STRICT).approve(item.id)).text == "Sail on"
