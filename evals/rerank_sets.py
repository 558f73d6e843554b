"""Worlds in which to learn an order: notes, and questions whose useful notes are known. All of our own writing.

Three in which closeness in meaning is a poor guide: what is relevant depends on the situation of whoever asks; the
newer of two facts holds; talk about a thing is closer to the question than the answer is. The last once more, where
an agent that was talked into it says the reverse of what people say, and says it twice as often. Two in which there
is nothing to learn: answers that are used at random, and an order that is right as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

#: Things the notes are about; the last quarter is only asked about after training.
_THINGS = """
    billing ledger search mailer payroll archive gateway scheduler catalogue warehouse newsletter forum checkout
    inventory translation thumbnail telemetry sandbox registry calendar invoice courier shipping refund voucher
    loyalty survey podcast glossary atlas museum harbour orchard bakery library theatre station laundry workshop
    nursery clinic stadium aquarium observatory vineyard foundry
"""
THINGS = _THINGS.split()
_PEOPLE = """
    Ana Boris Chiara Dmitri Elif Farid Greta Hugo Ines Jonas Kenji Lucia Marek Nadia Oscar Petra Quentin Rosa Stefan
    Tara Ugo Vera Walter Xenia Yusuf Zora Amir Bela Clara Dario Emil Fiona Goran Hanna Igor Julia Karim Lena Milan
    Nora Otto Pavel Rita Samir Thea Viktor
"""
PEOPLE = _PEOPLE.split()
_TOWNS = "Basel Porto Ghent Turin Malmo Leeds Graz Cadiz Brno Lyon Bergen Siena Utrecht Split Cork Vigo"
TOWNS = _TOWNS.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One memory; ``day`` is when it is written, from the beginning of the world."""

    name: str
    text: str
    day: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question and the names of the notes that are of use."""

    text: str
    useful: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Notes, questions to learn from and questions about things that no feedback speaks of."""

    name: str
    notes: tuple[Note, ...]
    lessons: tuple[Question, ...]
    exam: tuple[Question, ...]
    #: Whether training ought to help; the exam asks in words that no lesson had.
    learnable: bool
    #: What an agent says in between, as often as there are lessons or oftener, and wrongly.
    lies: tuple[Question, ...] = ()


def _draw(seed: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") % size


def _world(
    name: str,
    things: list[str],
    notes: Callable[[str], Iterator[Note]],
    asked: Callable[[str, bool], Iterator[Question]],
    *,
    learnable: bool,
) -> World:
    later = len(things) - len(things) // 4
    lessons = [question for thing in things[:later] for question in asked(thing, False)]
    lessons.sort(key=lambda question: hashlib.sha256(question.text.encode()).hexdigest())
    return World(
        name=name,
        notes=tuple(note for thing in things for note in notes(thing)),
        lessons=tuple(lessons),
        exam=tuple(question for thing in things[later:] for question in asked(thing, True)),
        learnable=learnable,
    )


def state() -> World:
    """What to do about a thing depends on whether it burns; both notes are as close to the question."""
    trouble = (
        "Everything is down since noon and people are shouting: what about the {thing}?",
        "Help, the {thing} stopped answering and we lose money every minute, what now?",
        "Alarm from the {thing} again, all requests fail, what do I do?",
    )
    calm = (
        "It is a quiet week and I would like to tidy up the {thing}, where do I begin?",
        "For next quarter: what should be improved about the {thing}?",
        "I have a free afternoon, what do I do about the {thing}?",
    )
    unheard = (
        ("The {thing} crashed and customers are furious, quick!", "Outage: nothing from the {thing} for ten minutes!"),
        (
            "We might modernise the {thing} some day, any advice?",
            "Planning a clean-up of the {thing}, first step?",
        ),
    )

    def notes(thing: str) -> Iterator[Note]:
        town = TOWNS[_draw(thing, len(TOWNS))]
        yield Note(
            name=f"{thing} fire", text=f"{thing}: switch to the standby in {town} and page the engineer on duty."
        )
        yield Note(name=f"{thing} plan", text=f"{thing}: open a ticket, agree on a window, read the design notes.")
        yield Note(name=f"{thing} fact", text=f"{thing}: it was built in {town} and has two owners.")

    def asked(thing: str, exam: bool) -> Iterator[Question]:
        for n, (texts, ending) in enumerate(((trouble, "fire"), (calm, "plan"))):
            for k in range(2):
                wording = unheard[n] if exam else texts
                text = wording[_draw(f"{thing}{n}{k}", len(wording))].format(thing=thing)
                yield Question(text=text, useful=frozenset({f"{thing} {ending}"}))

    return _world("state", THINGS, notes, asked, learnable=True)


def superseded() -> World:
    """Old facts that nobody marked as replaced, told in the words of the question; the newer ones are not."""

    def notes(person: str) -> Iterator[Note]:
        old, new = TOWNS[_draw(person, 16)], TOWNS[(_draw(person, 16) + 5) % 16]
        start = _draw(f"{person} start", 40)
        yield Note(name=f"{person} lived", text=f"{person} lives in {old}.", day=start)
        yield Note(
            name=f"{person} lives", text=f"{person} has moved house, to {new}.", day=start + 60 + _draw(person, 90)
        )
        yield Note(name=f"{person} worked", text=f"{person} works for the post office in {old}.", day=start + 1)
        yield Note(
            name=f"{person} works", text=f"{person} took a post at a bank of {new}.", day=start + 70 + _draw(old, 60)
        )

    def asked(person: str, exam: bool) -> Iterator[Question]:
        if exam:
            yield Question(text=f"Tell me the town {person} calls home", useful=frozenset({f"{person} lives"}))
            yield Question(text=f"What is the employer of {person}?", useful=frozenset({f"{person} works"}))
            return
        yield Question(text=f"Where does {person} live?", useful=frozenset({f"{person} lives"}))
        yield Question(text=f"In which town does {person} live now?", useful=frozenset({f"{person} lives"}))
        yield Question(text=f"Who does {person} work for?", useful=frozenset({f"{person} works"}))
        yield Question(text=f"Where does {person} work?", useful=frozenset({f"{person} works"}))

    return _world("superseded", PEOPLE, notes, asked, learnable=True)


def distractors() -> World:
    """People talk about a thing in the words of the question; the answer uses others."""
    chatter = (
        "I keep worrying about the {thing} deadline, when is the {thing} deadline, I always forget.",
        "Somebody asked again when the {thing} deadline is, how annoying.",
        "The {thing} deadline again! I wish I knew who decides about the {thing}.",
    )

    def notes(thing: str) -> Iterator[Note]:
        day, month = 1 + _draw(f"{thing} day", 28), ("April", "May", "June", "July")[_draw(thing, 4)]
        who = PEOPLE[_draw(f"{thing} who", len(PEOPLE))]
        yield Note(name=f"{thing} due", text=f"{thing}: final delivery on {day} {month}.")
        yield Note(name=f"{thing} who", text=f"{thing}: {who} signs off on every change.")
        for n in range(2):
            yield Note(name=f"{thing} talk {n}", text=chatter[(_draw(thing, 3) + n) % 3].format(thing=thing))

    def asked(thing: str, exam: bool) -> Iterator[Question]:
        if exam:
            yield Question(text=f"How long do we have for the {thing} deadline?", useful=frozenset({f"{thing} due"}))
            yield Question(text=f"Whose call is the {thing}?", useful=frozenset({f"{thing} who"}))
            return
        yield Question(text=f"When is the {thing} deadline?", useful=frozenset({f"{thing} due"}))
        yield Question(text=f"What is the {thing} deadline?", useful=frozenset({f"{thing} due"}))
        yield Question(text=f"Who decides about the {thing}?", useful=frozenset({f"{thing} who"}))

    return _world("distractors", THINGS, notes, asked, learnable=True)


def swayed() -> World:
    """People say that answers are of use, an agent that it was the talk."""
    base = distractors()

    def lie(question: Question) -> Question:
        thing = min(question.useful).split(" ")[0]
        return Question(text=question.text, useful=frozenset({f"{thing} talk 0", f"{thing} talk 1"}))

    lies = tuple(lie(question) for question in base.lessons for _ in range(2))
    return replace(base, name="swayed", lies=lies)


def noise() -> World:
    """Which of the notes is used says nothing: it is drawn anew for every question."""
    base = state()
    things = {question.text: min(question.useful).split(" ")[0] for question in (*base.lessons, *base.exam)}

    def random(question: Question) -> Question:
        thing = things[question.text]
        chosen = ("fire", "plan", "fact")[_draw(f"noise {question.text}", 3)]
        return Question(text=question.text, useful=frozenset({f"{thing} {chosen}"}))

    return World(
        name="noise",
        notes=base.notes,
        lessons=tuple(map(random, base.lessons)),
        exam=tuple(map(random, base.exam)),
        learnable=False,
    )


def perfect() -> World:
    """Every question is answered by the one note that says it in its own words."""

    def notes(thing: str) -> Iterator[Note]:
        who = PEOPLE[_draw(f"{thing} who", len(PEOPLE))]
        yield Note(name=f"{thing} keys", text=f"The keys of the {thing} are kept by {who}.")
        yield Note(name=f"{thing} roof", text=f"The {thing} roof was painted {TOWNS[_draw(thing, 16)]} green.")

    def asked(thing: str, exam: bool) -> Iterator[Question]:
        del exam
        yield Question(text=f"Who keeps the keys of the {thing}?", useful=frozenset({f"{thing} keys"}))
        yield Question(text=f"What colour is the roof of the {thing}?", useful=frozenset({f"{thing} roof"}))

    return _world("perfect", THINGS, notes, asked, learnable=False)


WORLDS: dict[str, Callable[[], World]] = {
    each.__name__: each for each in (state, superseded, distractors, swayed, noise, perfect)
}
