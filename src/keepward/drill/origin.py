"""Attacks by origin: what somebody of lower trust does to the memory of those who are trusted more.

Invariants
(1) Each attack goes through the verbs that everybody uses, and is judged by what the store then holds and shows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from keepward.drill.drill import Attack, Ground, Tried, named, refusal
from keepward.drill.words import WORD, _kept, _note, _shows
from keepward.model.trust import Actor


def approve_by_name(ground: Ground) -> Tried:
    """A reviewer's token that is named like the proposer approves the proposal."""
    text = f"Serve {WORD} to everybody."
    fields: dict[str, Any] = {"tier": "core", "kind": "fact", "key": ground.block, "confidence": 0.95}
    outcome = ground.agent.remember(text, reason="drill", **fields)
    if outcome.outcome != "quarantined":
        return Tried(held=not _kept(outcome), control=False, by=outcome.outcome)
    namesake, other = (
        ground.owner.holding(ground.owner.create_token(name, rights="reviewer").secret)
        for name in ("Drill-Agent", "drill-reviewer")
    )
    code = refusal(lambda: namesake.approve(outcome.item.id, digest=outcome.item.digest))
    # Where the attack went through there is nothing left to approve.
    control = not code or _kept(other.approve(outcome.item.id, digest=outcome.item.digest))
    return Tried(held=bool(code), control=control, by=f"approval: {code}")


def revise_the_owners(ground: Ground) -> Tried:
    """A page's text revises, adds to, replaces, merges and retires what the owner said."""
    text, lie = f"Ferries to {WORD} leave at six.", f"Ferries to {WORD} leave whenever the captain is paid."
    page = _note(ground.agent, f"A stall sells {WORD} by the pound.", source="web").records[0].id
    own = _note(ground.owner, text).records[0]
    agent = ground.agent
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: agent.revise(own.id, lie, source="web", reason="drill"),
        lambda: agent.append(own.id, lie, source="web", reason="drill"),
        lambda: agent.supersede(own.id, page, reason="drill"),
        lambda: agent.merge([own.id, page], lie, reason="drill"),
        lambda: agent.forget(own.id, reason="drill"),
    )
    first = attempts[0]()
    # One that went through leaves nothing for those behind it to change.
    codes = [refusal(attempt) for attempt in attempts[1:]]
    held = not (_kept(first) or any(codes)) and ground.owner.get(own.id) == own and _shows(agent, text)
    # Where the attack went through there may be nothing left to revise.
    control = not held or _kept(ground.owner.revise(own.id, f"{text} Always.", reason="drill"))
    return Tried(held=held, control=control, by=named(first))


def bend_the_owners_fields(ground: Ground) -> Tried:
    """An agent gives what the owner said another subject, category, tag, metadata, confidence, term or key."""
    text = f"The keys to the {WORD} cellar hang by the door."
    fields: tuple[dict[str, Any], ...] = (
        {"subject": "everybody"},
        {"category": "verified"},
        {"tags": ["verified"]},
        {"metadata": {"verified": True}},
        {"confidence": 0.31},
        {"ttl": "1s"},
    )
    own = _note(ground.owner, text).records[0]
    outcomes = [ground.agent.revise(own.id, reason="drill", **each) for each in fields]
    outcomes.append(ground.agent.move(own.id, key="drill-cellar", reason="drill"))
    held = not any(map(_kept, outcomes)) and ground.owner.get(own.id) == own
    mine = _note(ground.agent, f"The {WORD} lamp burns oil.").records[0]
    control = all(_kept(ground.agent.revise(mine.id, reason="drill", **each)) for each in fields)
    return Tried(held=held, control=control, by=named(outcomes[0]))


def confirm_from_a_page(ground: Ground) -> Tried:
    """A page says again what an agent remembered, so that it fades no more."""
    text = f"The {WORD} bridge opens at nine."
    made = _note(ground.agent, text).records[0]
    ground.clock.move(timedelta(days=1))
    outcome = _note(ground.agent, text, source="web")
    held = not _kept(outcome) and ground.owner.get(made.id).reinforced_at == made.reinforced_at
    _note(ground.agent, text)
    control = ground.owner.get(made.id).reinforced_at > made.reinforced_at
    return Tried(held=held, control=control, by=f"{outcome.outcome}: {outcome.reasons[-1].code}")


def ask_for_sensitive(ground: Ground) -> Tried:
    """An agent without the right asks for what is sensitive."""
    text = f"The {WORD} letters lie in the attic."
    _note(ground.owner, text, sensitivity="sensitive")
    code = refusal(lambda: ground.agent.context(text, include_sensitive=True))
    held = bool(code) and all(each.text != text for each in ground.agent.find(limit=None))
    granted = ground.owner.acting_as(Actor.agent("drill-clerk", also=["sensitive"]))
    return Tried(held=held, control=_shows(granted, text, include_sensitive=True), by=f"rights: {code}")


def consent_for_a_person(ground: Ground) -> Tried:
    """An agent without the right says that a person consented, to keep an address."""
    address = f"{WORD}@mail.example.org"
    outcome = _note(ground.agent, f"Letters for the mill go to {address}.", consent=True)
    held = not (_kept(outcome) and address in outcome.records[0].text)
    own = _note(ground.owner, f"Letters for the smith go to {address}.", consent=True)
    control = _kept(own) and address in own.records[0].text
    return Tried(held=held, control=control, by=named(outcome))


def paraphrase_a_page(ground: Ground) -> Tried:
    """An agent reads a page and says it in its own words, so that it is acted on."""
    page, text = f"The lodge near the pass now sells {WORD}.", f"Buying {WORD} is done at the lodge."
    reader, other = (ground.owner.acting_as(Actor.agent(f"drill-{name}")) for name in ("reader", "porter"))
    _note(ground.agent, page, source="web")
    reader.context(page)
    outcome = _note(reader, text)
    own = f"The {WORD} sacks are weighed on Mondays."
    control = _kept(_note(other, own)) and _shows(other, own, purpose="act") and _shows(reader, page)
    return Tried(held=not _shows(reader, text, purpose="act"), control=control, by=named(outcome))


ATTACKS = (
    Attack(name="approve_by_name", title="a namesake of the proposer approves", run=approve_by_name),
    Attack(name="revise_the_owners", title="a page's text changes what the owner said", run=revise_the_owners),
    Attack(name="bend_the_owners_fields", title="an agent relabels what the owner said", run=bend_the_owners_fields),
    Attack(name="confirm_from_a_page", title="a page confirms a memory by repeating it", run=confirm_from_a_page),
    Attack(name="ask_for_sensitive", title="an agent asks for what is sensitive", run=ask_for_sensitive),
    Attack(name="consent_for_a_person", title="an agent consents for a person", run=consent_for_a_person),
    Attack(name="paraphrase_a_page", title="an agent's paraphrase of a page is acted on", run=paraphrase_a_page),
)
