"""An agent that works for half a year and never tidies up: what it needs stays at hand, noise goes by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from keepward import Actor, Memory
from keepward.core.policy import Policy
from support.clock import SteppingClock

PLACES = ("harbour", "bakery", "archive", "airport", "clinic", "library", "foundry", "orchard", "museum", "stadium")
THINGS = ("kiln", "crane", "server", "boiler", "printer", "ferry", "lift", "scanner", "press", "pump", "gate", "lamp")
DAYS = 180
#: A fact is learned every third day and asked for every fortnight or so.
LEARNED, ASKED = 3, 14


@dataclass(frozen=True)
class Lived:
    """The store after the agent's time, and what happened in it."""

    memory: Memory
    facts: dict[str, str]
    noise: int
    #: Live memories that are noise, as a share, a month in and at the end.
    early: float
    late: float


def share_of_noise(memory: Memory) -> float:
    live = memory.list_memories(limit=None)
    return sum("chatter" in record.tags for record in live) / len(live)


#: Facts are never archived by age unless policy names them.
POLICY = Policy(archive_unused=("event", "working", "fact"))


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lived")
    clock, facts, noise, early = SteppingClock(), {}, 0, 0.0
    with Memory.open(
        folder / "m.db", actor=Actor.operator(), embedder="hashed", clock=clock, config_dir=folder / "c", policy=POLICY
    ) as owner:
        agent = owner.as_actor(Actor.agent("worker"))
        for day in range(DAYS):
            if day % LEARNED == 0:
                n = day // LEARNED
                where, what = PLACES[n % len(PLACES)], THINGS[n // 5 % len(THINGS)]
                text = f"The {what} of the {where} is looked after by crew {100 + 37 * n}"
                agent.remember(text, source="user_message", tags=["fact"])
                facts[f"Which crew looks after the {what} of the {where}?"] = text
            for hour in range(3):
                agent.remember(
                    f"Run {day}-{hour} took {(7 * day + hour) % 50} seconds on worker {(day + hour) % 9}",
                    source="tool",
                    importance=0.2,
                    confidence=0.5,
                    tags=["chatter"],
                )
                noise += 1
            questions = list(facts)
            agent.recall(questions[(5 * day) % len(questions)], limit=3)
            for question in questions[day % ASKED :: ASKED]:
                agent.recall(question, limit=1)
            clock.advance(timedelta(days=1))
            owner.run_jobs()
            if day == 30:
                early = share_of_noise(owner)
        yield Lived(memory=agent, facts=facts, noise=noise, early=early, late=share_of_noise(owner))


@pytest.mark.slow
@pytest.mark.promise("E56")
def test_what_was_asked_for_is_still_found_first(lived):
    first = [lived.memory.recall(question, limit=1)[0].memory.text for question in lived.facts]
    assert sum(got == wanted for got, wanted in zip(first, lived.facts.values(), strict=True)) >= 0.95 * len(first)


@pytest.mark.slow
@pytest.mark.promise("E56")
def test_most_noise_is_put_away_by_itself(lived):
    assert lived.late * len(lived.memory.list_memories(limit=None)) < lived.noise / 2


@pytest.mark.slow
@pytest.mark.promise("E56")
def test_the_share_of_noise_falls(lived):
    assert lived.late < lived.early
