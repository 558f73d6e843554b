"""A store of 1,300 names with some of everything that the console counts.

No name and no text in it has a digit, so that every digit on a screen is a number that the console states. It is
written in the time of a clock that moves, so that some of it has expired when a test looks at it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from keepward import Actor, Memory
from keepward.core.proposal import Committed, Quarantined, Refused

from .clock import SteppingClock

NAMES, SESSIONS = 1_300, 83
PENDING, REFUSED, CONTEXTS = 67, 59, 61
KINDS = ("fact", "document", "rule", "state")
TAGS = ("garden", "kitchen", "harbour")
#: Whom the pages about a person, an agent and a project are of.
PERSON, AGENT, PROJECT = "Babaga", "scout", "mill"
#: Put together here, so that no file holds one.
_SECRET = "AKIA" + "HTLGMXGEDN73U55X"
#: How the store was when a test looks at it, in days before.
STOCKED, USED = 40, 2


def word(number: int) -> str:
    """Return a name of three syllables for a number below 1,331: ``Babaga`` for 5."""
    parts = ["ba", "be", "co", "di", "fu", "ga", "he", "ki", "lo", "mu", "ne"]
    return "".join(parts[number // place % 11] for place in (121, 11, 1)).capitalize()


def write_store(folder: Path, now: datetime) -> list[str]:
    """Write the store into a folder, where a `Console` finds it; return the receipts of its contexts, oldest first.

    ``now`` is the instant at which a test looks.
    """
    clock = SteppingClock(now - timedelta(days=STOCKED))
    given: dict[str, Any] = {"actor": Actor.operator("ana"), "embedder": "none", "config_dir": folder / "home"}
    with Memory.open(folder / "m.db", clock=clock, **given) as owner:
        _make_tokens(owner)
        _stock(owner)
        clock.set(now - timedelta(days=USED))
        owner.run_job("expire", force=True)
        _revise(owner)
        _propose(owner)
        contexts = _compile(owner)
        _end(owner)
        for job in ("compact_working", "learn_importance", "integrity_audit"):
            owner.run_job(job, force=True)
        owner.backup(folder / "copy.db")
        owner.remember("The ferry leaves at noon.", tier="archival", subject="ferry", reason="seen")
        assert owner.verify().ok
        owner.remember("The ferry comes back at night.", tier="archival", subject="ferry", reason="seen")
    return contexts


def _make_tokens(owner: Memory) -> None:
    owner.create_token("orion")
    owner.create_token("lab", scope="/agents/lab", can=["read"])
    owner.create_token("oarsman", scope=_scope_of(5))
    owner.create_token("rita", rights="reviewer")
    owner.create_token("short", expires=timedelta(days=1))
    owner.revoke_token(owner.create_token("gone").token.id)


def _stock(owner: Memory) -> None:
    """Write two memories about each name, in the scopes of users, of projects and of all."""
    rows: list[dict[str, Any]] = []
    for n in range(2 * NAMES):
        name = word(n % NAMES)
        fields = {"subject": name, "scope": _scope_of(n % NAMES), "kind": KINDS[n % 7 % 4], "tags": TAGS[: n % 4]}
        fields |= {"session": f"day {word(n % (SESSIONS - 3))}" if n < 300 else None}
        text = f"{name} rows a boat at dawn." if n < NAMES else f"The key of the shed hangs with {name}."
        rows.append({"text": text, "tier": "archival", **fields})
    rows += [{"text": f"Notice {word(n)} hangs on the board.", "tier": "archival", "ttl": "5d"} for n in range(23)]
    private = {"tier": "archival", "sensitivity": "sensitive"}
    rows += [{"text": f"Paper {word(n)} lies in the drawer.", **private} for n in range(9)]
    written = owner.remember_many(rows, reason="stock", batch=100)
    assert all(isinstance(each, Committed) for each in written)


def _scope_of(n: int) -> str:
    if n < 700:
        return f"/users/{word(n).lower()}"
    return f"/projects/{word(n).lower()}" if n < 1_000 else "/"


def _revise(owner: Memory) -> None:
    """Revise some memories, one of them three times, and confirm one."""
    listed = owner.list_memories(limit=12, within="/", tags=["harbour"])
    for memory in listed[:7]:
        owner.revise(memory.id, f"{memory.text} It was seen again.", reason="seen again")
    for time in ("at noon", "at night"):
        owner.revise(listed[0].id, f"{listed[0].text} It was seen {time}.", reason="seen again")
    owner.reinforce(listed[8].id, reason="so it is")
    owner.user(PERSON.lower()).remember("Rows the boat on Sundays.", tier="archival", subject=PERSON, reason="said")
    for n in range(25):
        owner.project(PROJECT).remember(f"Wheel {word(n)} of the mill turns.", tier="archival", reason="seen")


def _propose(owner: Memory) -> None:
    """Have agents write, propose and be refused; decide on some of it."""
    scout, bot = (owner.as_actor(Actor.agent(name)) for name in (AGENT, "bot"))
    for n in range(31):
        fields = {
            "source": "web",
            "session": f"walk {word(n % 3)}",
            "evidence": [f"https://buoys.example/{word(n % 4)}"],
        }
        read = scout.remember(f"Buoy {word(n)} is far out.", tier="archival", reason="read", **fields)
        assert isinstance(read, Committed), read
    for n in range(PENDING + 8):
        said = bot.remember(f"Perhaps {word(n)} has sacks.", tier="archival", confidence=0.2, reason="a guess")
        assert isinstance(said, Quarantined), said
    for n in range(REFUSED):
        said = bot.remember(f"The key of door {word(n)} is {_SECRET}", tier="archival", reason="told")
        assert isinstance(said, Refused), said
    waiting = owner.pending()
    for each in waiting[:5]:
        owner.approve(each.id)
    for each in waiting[5:8]:
        owner.reject(each.id, reason="no")


def _compile(owner: Memory) -> list[str]:
    scout, bot = (owner.as_actor(Actor.agent(name)) for name in (AGENT, "bot"))
    return [
        (scout if n % 3 else bot)
        .context(f"With whom hangs the key of {word(1_000 + n)}?", budget_tokens=400)
        .receipt.id
        for n in range(CONTEXTS)
    ]


def _end(owner: Memory) -> None:
    listed = owner.list_memories(limit=30, within="/", kinds=["document"])
    for memory in listed[:6]:
        owner.forget(memory.id, reason="no longer so")
    for memory in listed[6:11]:
        owner.archive(memory.id, reason="old")
    owner.supersede(listed[11].id, listed[12].id, reason="one of two")
    owner.rollback(owner.forget(listed[13].id, reason="wrongly").commit.id, reason="it holds")
    gone = [listed[14].id, listed[15].id]
    owner.erase(owner.plan_erase(ids=gone).digest, ids=gone, reason="request")
