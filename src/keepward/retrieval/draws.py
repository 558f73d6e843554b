"""Draws: which feedback each step of a training learns from, so that no voice counts beyond its share.

A lot is what counts once: one feedback of a person; or one receipt, whatever agents said of it and how often.

Invariants
(1) A draw is a hash of seed, step and place in the batch; nothing else is random.
(2) A lot is drawn as a whole first, then a feedback in it, then a pair in that: a feedback that names many memories
    counts no more than one that names two.
(3) In every step agents' lots together are drawn with at most their share, measured by what people had said until
    then; where no person has said anything, they are not drawn at all. So they add at most that share of the steps.
(4) What is drawn in a step depends on the feedback up to that step alone, so that a training can go on where it
    stopped.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

_WHOLE = float(1 << 64)


@dataclass(slots=True, kw_only=True)
class Lots:
    """The lots of the feedback so far."""

    #: 0..1, of agents' lots among the draws; from 1 on they are not bounded.
    share: float
    #: Lots of a class that are drawn from, newest.
    buffer: int
    #: Places of the feedback in each lot, in the order of arrival.
    people: list[list[int]] = field(default_factory=list)
    agents: list[list[int]] = field(default_factory=list)
    _receipts: dict[str, list[int]] = field(default_factory=dict)

    def add(self, place: int, *, receipt: str, bounded: bool) -> None:
        """Take in one feedback."""
        if not bounded:
            self.people.append([place])
        elif receipt in self._receipts:
            self._receipts[receipt].append(place)
        else:
            lot = self._receipts[receipt] = [place]
            self.agents.append(lot)

    @property
    def weight(self) -> float:
        """How many lots the agents' ones count for."""
        if self.share >= 1.0:
            return float(len(self.agents))
        return min(float(len(self.agents)), self.share / (1.0 - self.share) * len(self.people))

    def due(self, every: int, *, last: bool) -> int:
        """Return the steps that are due: one for so many lots, and one more for a rest where nothing follows."""
        size = len(self.people) + self.weight
        return math.ceil(size / every) if last else math.floor(size / every)

    def draw(self, seed: int, step: int, batch: int) -> Iterator[tuple[int, int]]:
        """Yield, with repeats, places of feedback and a number from which to choose a pair of it."""
        people, agents = self.people[-self.buffer :], self.agents[-self.buffer :]
        weight = self.weight
        odds = weight / (len(self.people) + weight)
        for n in range(batch):
            digest = hashlib.sha256(f"keepward/replay/{seed}/{step}/{n}".encode()).digest()
            who, lot, place, pair = (int.from_bytes(digest[at : at + 8], "big") for at in range(0, 32, 8))
            lots = agents if not people or who / _WHOLE < odds else people
            chosen = lots[lot % len(lots)]
            yield chosen[place % len(chosen)], pair
