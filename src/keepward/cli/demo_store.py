"""The store of `serve --demo`: six weeks of the bakery's team, so that there is something to look at on every page.

Invariants
(1) It is written through the front door alone, by the people and agents it names, each with their own rights: every
    receipt, refusal and proposal in it is what the store really answered.
(2) What is said, and when, stands in `demo_store.toml`, and what is attached to it in the folder `bakery`; numbers are
    made from the day, so that two stores of one moment hold the same texts. The clock ends at that moment, and nothing
    in the store is later.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.call import named_actor
from keepward.cli.demo import leave_waiting, play
from keepward.core.patterns import table
from keepward.place import Place, address

if TYPE_CHECKING:
    from keepward.core.memory import Record
    from keepward.core.trust import Actor
    from keepward.memory import Memory

#: How far back the first day lies, and how long the play of the demo and the last proposals lie back.
WEEKS = 6
_JUST_NOW = timedelta(minutes=9)
#: How long ago jobs ran last.
_TENDED = timedelta(minutes=25)
#: What machines count is told apart from what people say by this trust.
_MACHINES = frozenset({"tool", "web"})


class _Clock:
    """Stands where it was set."""

    def __init__(self, instant: datetime) -> None:
        self.instant = instant

    def now(self) -> datetime:
        return self.instant


_story = partial(table, __package__, "demo_store.toml")


def furnish(place: Place, owner: Actor, *, embedder: str, config_dir: Path, now: datetime | None = None) -> None:
    """Make a new store and let six weeks pass in it, up to ``now``.

    A model is asked once for all that was written before anybody gave feedback, which takes a third of the time.
    """
    from keepward.memory import Memory

    given: dict[str, Any] = {"actor": owner, "config_dir": config_dir, "maintenance": False}
    with Memory.open(address(place), embedder=None, **given) as memory:
        end = (now or memory.now).replace(microsecond=0)
    clock = _Clock(end - timedelta(weeks=WEEKS))
    moments = _moments(end)
    taught = next(number for number, (_, each) in enumerate(moments) if each["act"] == "feedback")
    with Memory.open(address(place), embedder=None, clock=clock, **given) as memory:
        for _ in play(memory.acting_as(named_actor("agent:assistant")), memory):
            pass
        _tokens(memory)
        _live_through(memory, clock, moments[:taught])
    with Memory.open(address(place), embedder=embedder, clock=clock, **given) as memory:
        memory.reindex()
        _live_through(memory, clock, moments[taught:])
        clock.instant = end - _JUST_NOW
        leave_waiting(memory.acting_as(named_actor("agent:assistant")))
        clock.instant = end


def _live_through(memory: Memory, clock: _Clock, moments: Iterable[tuple[datetime, dict[str, Any]]]) -> None:
    for at, moment in moments:
        clock.instant = at
        _act(memory, moment)


def _moments(end: datetime) -> list[tuple[datetime, dict[str, Any]]]:
    """Return what happens, in order, and when; nothing later than the last proposals."""
    story = _story()
    found = [(_instant(end, each["ago"], each["at"]), each) for each in story["moments"]]
    found.append((_instant(end, story["feedback"]["ago"], story["feedback"]["at"]), {"act": "feedback"}))
    found.append((end - _TENDED, {"act": "jobs"}))
    for ago in range(WEEKS * 7 - 1, 0, -1):
        day = (end - timedelta(days=ago)).date()
        if day.weekday() < 6:
            found.append((_instant(end, ago, story["daily"]["at"]), _counted(story["daily"], _day(day))))
        else:
            if ago // 7 % 2 == 0:
                found.append((_instant(end, ago, "03:00"), {"act": "jobs"}))
            found.append((_instant(end, ago, story["weekly"]["at"]), _counted(story["weekly"], _week(day, ago))))
    return sorted(((at, each) for at, each in found if at < end - _JUST_NOW), key=lambda pair: pair[0])


def _instant(end: datetime, ago: int, at: str) -> datetime:
    return datetime.combine((end - timedelta(days=ago)).date(), time.fromisoformat(at), UTC)


def _counted(machine: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what a machine writes of a day or a week."""
    return {
        "act": "write",
        "by": machine["by"],
        "why": "counted",
        "with": {"tier": "archival", "kind": "event", "source": "tool", "tags": ["numbers"]},
        "writes": [{"text": machine["text"].format(**numbers), "occurred_at": numbers["at"]}],
    }


def _day(day: date) -> dict[str, Any]:
    mixed = zlib.crc32(day.isoformat().encode())
    busy = (96, 58, 84, 102, 168, 238)[day.weekday()]
    orders = busy + mixed % 23
    at = datetime.combine(day, time(19), UTC)
    left = 4 + mixed // 64 % 19
    return {"day": f"{day:%A} {day.day} {day:%B}", "orders": orders, "loaves": orders // 7, "left": left, "at": at}


def _week(day: date, ago: int) -> dict[str, Any]:
    more = 2 + (WEEKS * 7 - ago) // 7
    at = datetime.combine(day, time(4), UTC)
    return {"oven": 1 + ago // 7 % 2, "minutes": 26 + more, "more": more, "week": day.isocalendar()[1], "at": at}


# --- acts


def _act(owner: Memory, moment: dict[str, Any]) -> None:
    """Let one thing happen, by whom it names and where, else by the owner."""
    by = moment.get("by", "operator")
    handle = owner if by == "operator" else owner.acting_as(named_actor(by))
    handle = handle.at(scope=moment["scope"]) if "scope" in moment else handle
    match moment["act"]:
        case "write":
            fields = moment.get("with", {})
            handle.remember_many([{**fields, **each} for each in moment["writes"]], reason=moment["why"])
        case "read":
            # An agent asks what is known, and writes down what it read on pages.
            handle.context(moment["question"], budget_tokens=600)
            handle.remember_many([{"tier": "archival", **each} for each in moment["reads"]], reason="read on a page")
        case "talk":
            _talk(owner, moment)
        case "context":
            given = {"budget_tokens": moment["budget"], "purpose": moment.get("purpose", "answer")}
            handle.context(moment["question"], **given)
        case "blob":
            data = Path(__file__).with_name("bakery").joinpath(moment["blob"]).read_bytes()
            kept = handle.put_blob(data, media_type=moment["media_type"])
            handle.remember(reason="kept for later", blob=kept.ref, **moment["memory"])
        case "derive":
            # An agent concludes something from what another one read.
            parent = _holding(owner, moment["from"])
            handle.remember(reason=moment["why"], derived_from=[parent.id], **moment["memory"])
        case "propose":
            _propose(owner, handle, moment)
        case "revise":
            handle.revise(_holding(owner, moment["find"]).id, moment["text"], reason=moment["why"])
        case "undo":
            owner.rollback(owner.log(limit=1)[0].commit.id)
        case "contain":
            plan = owner.plan_contain(source=moment["source"])
            owner.contain(plan.digest, source=moment["source"], reason=moment["why"])
        case "erase":
            owner.erase(owner.plan_erase(subject=moment["subject"]).digest, subject=moment["subject"])
        case "jobs":
            owner.run_jobs()
        case "feedback":
            _feedback(owner)


def _talk(owner: Memory, moment: dict[str, Any]) -> None:
    for by, text in moment["turns"]:
        speaker = by.partition(":")[2].capitalize()
        fields = {"tier": "episodic", "session": moment["session"], "speaker": speaker, "ttl": "60d"}
        owner.acting_as(named_actor(by)).remember(text, reason="said in the team's chat", **fields)


def _propose(owner: Memory, agent: Memory, moment: dict[str, Any]) -> None:
    fields: dict[str, Any] = {**moment["proposal"], "reason": moment["why"]}
    if "revises" in moment:
        agent.revise(_holding(owner, moment["revises"]).id, **fields)
    elif "promotes" in moment:
        agent.promote(_holding(owner, moment["promotes"]).id, **fields)
    elif "ends" in moment:
        agent.forget(_holding(owner, moment["ends"]).id, reason=moment["why"])
    else:
        agent.remember(**fields)
    if "decide" in moment:
        item = owner.pending()[-1]
        if moment["decide"] == "approve":
            owner.approve(item.id, digest=item.digest)
        else:
            owner.reject(item.id, reason=moment["reason"])


def _feedback(owner: Memory) -> None:
    """Let the owner say which hits were of use: the closest that people said, and not what machines count."""
    for number in range(_story()["feedback"]["rounds"]):
        for question in _story()["feedback"]["questions"]:
            found = owner.recall(question, limit=12 + number, receipt=True)
            counted = [hit.memory.id for hit in found if hit.memory.trust.label in _MACHINES]
            told = [hit.memory.id for hit in found if hit.memory.trust.label not in _MACHINES]
            if found.receipt and counted and told:
                owner.feedback(found.receipt, used=told[:3], ignored=counted)
    owner.train_reranker()


def _holding(owner: Memory, begins: str) -> Record:
    """Return the newest memory that holds a text."""
    return next(each for each in owner.find(limit=None) if begins in each.text)


def _tokens(owner: Memory) -> None:
    owner.create_token("support-bot", expires="365d")
    owner.create_token("mira-phone", rights="reviewer")
    owner.revoke_token(owner.create_token("old-laptop", expires="30d").token.id)
