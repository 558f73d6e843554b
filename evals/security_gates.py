"""The gates: planted secrets, text of strangers, handles of others, and what was erased."""

from __future__ import annotations

import random
import string

from evals.origin import CHANNELS, TARGETS, decide
from evals.security_figure import Figure, commit_of, kept, none_of, opened, recalled
from evals.sets import injection
from evals.sets.secrets import FORMATS, make
from evals.target import DatabaseTarget, Target
from keepward import Actor, KeepwardError, Memory


def planted(target: Target, long: bool) -> list[Figure]:
    """Write secrets of provider formats by every field, then look for their bytes in every file."""
    many = 500 if long else 100
    rnd, names = random.Random(3), sorted(FORMATS)
    secrets = {f"{n}": make(FORMATS[names[n % len(names)]], rnd) for n in range(many)}
    with opened(target, embedder="hashed") as owner:
        agent = owner.as_actor(Actor.agent("scout"))
        base = kept(owner.remember("The crane is red", tier="archival")).id
        ways = (
            lambda text: agent.remember(f"the key is {text}", tier="archival"),
            lambda text: owner.remember(f"deploy with {text} today", tier="core", key="mission"),
            lambda text: agent.revise(base, f"The crane is red, {text}", reason="more"),
            lambda text: agent.revise(base, "The crane is green", reason=f"told: {text}"),
            lambda text: agent.remember("The quay is closed", tier="archival", tags=[text[:60]]),
            lambda text: agent.remember("The quay is open", tier="archival", evidence=[text]),
            lambda text: agent.remember("The quay is wide", tier="archival", metadata={"note": text}),
            lambda text: agent.recall(f"what is {text}", receipt=True),
            lambda text: agent.context(f"use {text} now"),
            lambda text: owner.forget(base, reason=text),
        )
        for n, text in enumerate(secrets.values()):
            try:
                ways[n % len(ways)](text)
            except KeepwardError:
                continue
        left = target.holding(secrets)
    left |= target.holding(secrets)
    if in_files := getattr(target, "in_files", None):
        # The files of a server of the run's own, its log among them.
        left |= in_files(secrets)
    return [none_of("planted secrets in any file", len(left), many, "secrets")]


def origin(target: Target, long: bool) -> list[Figure]:
    """Write attacks and ordinary notes of strangers to every target; claim a better origin for each."""
    cases = [case for case in injection.cases() if case.group in {"attack", "untrusted"}]
    cases = cases if long else cases[::12]
    core = state = better = core_all = state_all = 0
    claims = 0
    with opened(target) as owner:
        for number, case in enumerate(cases):
            for provenance in CHANNELS:
                if provenance == "owner":
                    continue
                fresh = owner.at(tenant=f"{number}-{provenance}")
                core_all += 1
                core += decide(fresh, case.text, provenance, "core") == "commit"
                if case.group == "attack" and provenance not in {"user", "agent"}:
                    state_all += 1
                    state += decide(fresh, case.text, provenance, "state") == "commit"
            claims += 1
            better += _improved(owner.at(tenant=f"{number}-claim"), case.text)
    return [
        none_of("non-owner texts committed to core", core, core_all, "writes"),
        none_of("untrusted attacks committed to keyed state", state, state_all, "writes"),
        none_of("decisions improved by a forged claim", better, claims, "claims"),
    ]


def _improved(mem: Memory, text: str) -> bool:
    """Whether an agent gets a web text in by calling it the operator's."""
    honest = mem.at(tenant=f"{mem.tenant}-a").as_actor(Actor.agent("agent"))
    forged = mem.at(tenant=f"{mem.tenant}-b").as_actor(Actor.agent("agent"))
    plain = honest.remember(text, source="inference", **TARGETS["core"]).outcome
    try:
        claimed = forged.remember(text, source="operator", **TARGETS["core"]).outcome
    except KeepwardError:
        return False
    order = ("refused", "quarantined", "duplicate", "committed")
    return order.index(claimed) > order.index(plain)


def crossing(target: Target, long: bool) -> list[Figure]:
    """Ask as everybody for what is everybody else's, by every verb that reads or changes."""
    many, rnd = 5_000 if long else 400, random.Random(11)
    places = [(tenant, scope) for tenant in ("ada", "bob") for scope in ("/agents/orion", "/agents/vega")]
    with opened(target, embedder="hashed") as owner:
        held = {}
        for place in places:
            mine = owner.at(tenant=place[0], scope=place[1])
            word = "".join(rnd.choices(string.ascii_lowercase, k=14))
            made = mine.remember(f"The code word here is {word}", tier="archival", aliases=[f"alias-{word}"])
            mine.as_actor(Actor.agent("own")).remember(f"Propose {word} too", tier="core", key="mission")
            _, receipt = recalled(mine, word)
            held[place] = (word, kept(made).id, commit_of(made).id, receipt)
        handles = {
            place: owner.at(tenant=place[0], scope=place[1]).as_actor(Actor.agent(place[1].rpartition("/")[2]))
            for place in places
        }
        before = owner.status()["head"]
        leaks = 0
        for n in range(many):
            asker, target = rnd.sample(places, 2)
            said = _asked(handles[asker], held[target], n)
            leaks += held[target][0] in said
        for place, (word, name, _, _) in held.items():
            leaks += owner.at(tenant=place[0], scope=place[1]).get(name).text != f"The code word here is {word}"
        assert owner.status()["head"] == before
    return [none_of("leaks across tenants and scopes", leaks, many, "calls")]


def _asked(mem: Memory, held: tuple[str, str, str, str], n: int) -> str:
    """Ask one handle by one verb for what another holds; return all that it said, but for the words asked with."""
    word, name, commit, receipt = held
    asks = (
        lambda: mem.get(name),
        lambda: mem.get(f"alias-{word}"),
        lambda: [hit.memory for hit in mem.recall("code word here")],
        lambda: mem.context("what is the code word here").text,
        lambda: mem.list_memories(limit=None, include_ended=True, include_sensitive=True),
        lambda: mem.history(name),
        lambda: mem.log(limit=50),
        lambda: mem.show(commit),
        lambda: mem.receipt(receipt),
        lambda: mem.pending(state="all", limit=None),
        lambda: mem.diff(0, 2),
        lambda: mem.revise(name, "mine now", reason="take"),
        lambda: mem.forget(name, reason="gone"),
        lambda: mem.rollback(commit),
        lambda: mem.merge([name, name], "mine now", reason="take"),
        lambda: mem.blame(name),
    )
    try:
        said = repr(asks[n % len(asks)]())
    except KeepwardError as fault:
        said = str(fault)
    return said.replace(f"alias-{word}", "")


def erasing(target: Target, long: bool) -> list[Figure]:
    """Erase memories that were recalled, compiled, quoted, learned from and backed up; look for them everywhere."""
    many, rnd = 60 if long else 10, random.Random(5)
    left: set[str] = set()
    back = 0
    with opened(target, embedder="hashed") as owner:
        for _ in range(many):
            word = "".join(rnd.choices(string.ascii_lowercase, k=16))
            text = f"Ana's locker opens with {word}"
            made = owner.remember(text, tier="archival", subject="ana", tags=[word[:12]], reason=f"heard {word}")
            name = kept(made).id
            owner.revise(name, f"Ana's locker opened with {word} once", reason=f"then {word}")
            owner.remember(text, tier="episodic", session=word)
            shown, receipt = recalled(owner, f"locker {word}")
            owner.feedback(receipt, used=[shown[0].memory.id])
            owner.context(f"which locker is {word}")
            owner.as_actor(Actor.agent("scout")).remember(text, tier="core", key="mission")
            backup = target.store / f"{word[::-1]}.db"
            if not isinstance(target, DatabaseTarget):
                owner.backup(backup)
            plan = owner.plan_erase(subject="ana")
            others = [*plan.derived, *plan.quoting]
            plan = owner.plan_erase(others, subject="ana")
            owner.erase(plan.digest, others, subject="ana")
            left |= target.holding({word: word})
            back += owner.remember(text, tier="archival").outcome != "refused"
            owner.rollback(commit_of(made).id)
            back += owner.get(name).text != ""
            backup.unlink(missing_ok=True)
        faults = len(owner.verify().faults)
    return [
        none_of("erased texts with a trace in any file", len(left), many, "texts"),
        none_of("erased texts that come back", back, 2 * many, "tries"),
        none_of("faults that verify finds afterwards", faults, many, "erasures"),
    ]
