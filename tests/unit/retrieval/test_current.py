"""Of two statements of the same thing the newer one is told, and siblings are left alone."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from evals.current import Pair, pairs
from hypothesis import given
from hypothesis import strategies as st

from keepward.model.memory import Record
from keepward.model.trust import Trust
from keepward.retrieval import current, statements, states
from support.stages import Maker


def outdone(records: list[Record], vectors: np.ndarray | None) -> dict[str, str]:
    return {name: newer.id for name, newer in current.outdone(records, vectors).items()}


def told(older: str, newer: str, **fields: Any) -> list[Record]:
    make = Maker()
    records = []
    for days, (name, text) in enumerate((("older", older), ("newer", newer))):
        speaker, colon, said = text.partition(": ")
        spoken = bool(colon) and " " not in speaker
        words = {"text": said, "speaker": speaker} if spoken else {"text": text}
        at = make.now + timedelta(days=days)
        records.append(make.record(**words, id=name, created_at=at, **fields))
    return records


def near(cosine: float) -> np.ndarray:
    """Return two vectors with this cosine."""
    return np.array([[1.0, 0.0], [cosine, (1 - cosine**2) ** 0.5]], dtype=np.float32)


@pytest.mark.parametrize(
    ("older", "newer", "cosine"),
    [
        ("Priya lives in Leeds", "Priya has relocated to Bristol", 0.74),
        ("Omar works as a nurse", "Omar is a primary school teacher", 0.5),
        ("Max is allergic to peanuts", "It turned out that Max's allergy is to cashews", 0.8),
        ("The API runs on port 8080", "The API runs on port 9443", 0.8),
        ("Jun's favourite colour is green", "Jun's favourite colour is blue", 0.8),
        ("Ana: I live in Leeds", "Ana: I moved to Bristol last week", 0.5),
        ("I live in Lisbon, in a small flat by the river", "I moved to Porto", 0.56),
        ("Stefan commutes by train", "Stefan cycles to work, rain or shine", 0.48),
        ("The gym is on Elm Street", "You'll find the gym on Oak Avenue", 0.6),
        ("Lea: the code for the gate is 4471", "Lea: use 9920 for the gate", 0.6),
        ("The CEO is Martin Holt", "Julia Beck is the CEO", 0.62),
        ("The heating works", "The heating doesn't work", 0.75),
        ("Sven: my flight lands at 14:20", "Sven: landing at 16:05", 0.72),
        ("Bo is looking after ticket 5120", "Ticket 5120 is with Marta", 0.62),
        ("The spare key is under the mat", "The spare key is behind the fuse box", 0.7),
        ("The boiler is broken", "The boiler runs again", 0.6),
        ("Dogs are allowed in the yard", "The landlord has banned dogs from the yard", 0.6),
        ("Ana: I smoke a pack a day", "Ana: Six weeks without a cigarette!", 0.3),
        ("Bo is on parental leave", "Bo is back at work", 0.4),
        ("The parcel is on its way", "The parcel was delivered", 0.6),
        ("Cleo: I want to study law", "Cleo: I'm going for marine biology, not law", 0.5),
        ("Jo: my knee hurts on stairs", "Jo: the knee didn't complain once", 0.4),
        ("Elif speaks three languages", "Elif speaks four languages", 0.9),
        ("Viktor does the weekly shopping", "Ines does the weekly shopping", 0.6),
        ("Customers get invoices on the first", "Invoices go out on the 15th", 0.7),
        ("Lars: my boss is Helga", "Lars: I report to Dominik", 0.22),
        ("The cat sleeps in the kitchen", "The cat sleeps on our bed", 0.7),
        ("Deploys are done by hand", "Deploys are fully automatic", 0.7),
        ("Finn: I have braces", "Finn: the braces are off!", 0.7),
        ("Ria: I'm studying for my bar exam", "Ria: passed the bar exam!!", 0.6),
        ("The team lead is Henrik Dahl", "The team lead is now Sara Moen", 0.45),
        ("User prefers dark mode", "User prefers light mode", 0.8),
        ("User prefers concise answers", "User prefers detailed answers", 0.8),
        ("Use 4 spaces for indentation", "Use tabs for indentation", 0.6),
        ("The team uses Slack for chat", "The team uses Teams for chat", 0.7),
        ("Always answer in German", "Always answer in English", 0.8),
        ("Ana prefers tabs over spaces", "Ana prefers spaces over tabs", 0.99),
        ("Ana prefers tabs", "Ana prefers spaces over tabs", 0.85),
        ("Ana prefers tabs over spaces", "Ana prefers spaces", 0.85),
    ],
)
def test_the_newer_of_two_statements_outdoes_the_older_whatever_their_wording(
    older: str, newer: str, cosine: float
) -> None:
    assert outdone(told(older, newer), near(cosine)) == {"older": "newer"}


@pytest.mark.parametrize(
    "pair", [*pairs("others"), *pairs("fresh others", (0,)), *pairs("states others")], ids=lambda pair: pair.newer
)
@pytest.mark.parametrize("cosine", [0.5, None])
def test_what_is_of_one_form_about_another_is_outdone_by_nothing(pair: Pair, cosine: float | None) -> None:
    assert outdone(told(pair.older, pair.newer), None if cosine is None else near(cosine)) == {}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The flat has two bedrooms", "The flat has three balconies"),
        ("I live in Lisbon", "My sister moved to Porto"),
        ("I live in Lisbon", "Our office relocated to Porto"),
        ("I play the cello", "I stopped eating sugar"),
        ("I live in Lisbon", "Priya moved to Porto"),
        ("The library closes at six", "The library opens at nine"),
        ("The museum is open on Sundays", "The museum is closed on Mondays"),
        ("The server has 16 GB of memory", "The server has 4 cores"),
        ("My daughter starts school in September", "My daughter starts piano in May"),
        ("Lea: My laptop is from Dell", "Lea: My laptop bag is from Samsonite"),
        ("The wedding is in June", "The wedding is in the old mill"),
        ("Ben: I love Dune", "Ben: I love Emma"),
        ("The API supports JSON", "The API supports XML"),
        ("Ferry number 3 sails to island 21", "Ferry number 21 sails to island 147"),
        ("Our company has an office in Oslo", "Our company has an office in Rome"),
        ("Lea: Ich mag gern Birnen", "Lea: Ich mag gern Kirschen"),
        ("Yara: I owe Kim 200 euros", "Yara: I owe Tim 50 euros"),
        ("Ticket 4411 is assigned to Bo", "Ticket 4412 is assigned to Marta"),
        ("Our bikes are in the cellar", "Our skis are in the attic"),
        ("Invoices are made by the service Quillon", "Quillon is written in Kotlin"),
        ("Jo: I met the plumber on Monday", "Jo: I paid the plumber on Thursday"),
        ("Maria: You did well in the race", "Maria: Thanks for the race, Ana!"),
        ("The boiler is broken", "The pump of the boiler works"),
        ("My left knee hurts", "My right knee is fine"),
        ("The gate to the north is locked", "The gate to the south is open"),
        ("The pool is closed in winter", "The pool is open in summer"),
        ("The parcel arrived", "A parcel is on its way"),
        ("Bo is on holiday", "Bo's brother is back"),
        ("Rosa is lost", "Rosa found a job"),
        ("Ivo: I'm on a diet", "Ivo: my cat eats everything"),
        ("Ben: I hope the boiler gets fixed", "Ben: the boiler is broken"),
        ("The tank holds 40 litres of diesel", "There are 12 litres of oil in the canister"),
        ("Lea: I'm allergic to cats", "Lea: I have a peanut allergy"),
        ("Lea: I'm not a fan of comedies", "Lea: I'm not a fan of musicals"),
        ("Oda: I weigh 71 kilos", "Oda: my dog weighs 6 kilos"),
        ("The kindergarten is 40 euros a week", "The trip of the kindergarten is 52 euros"),
        ("Elif speaks three languages", "Elif plays four instruments"),
        ("Viktor does the weekly shopping", "Ines does the laundry"),
        ("Bo's cast is on the left arm", "Bo's cast of the play is complete"),
        ("Cleo: no word from the bank about the loan", "Cleo: the bank said yes to the new card!"),
        ("Lars: my boss is Helga", "Lars: my brother reports to Dominik"),
        ("The recipe needs three eggs", "The recipe needs two lemons"),
        ("The kids may watch TV on Sundays", "The kids are not allowed to watch TV on Mondays"),
        ("Lea: I avoid lanolin in soap", "Lea: I don't like lanolin in soap"),
        ("Ana's mother Ingrid lives in Bergen", "Ana moved to Oslo"),
        ("Ana moved to Oslo", "Ana's friend Ida moved to Bergen"),
        ("Ana is allergic to hazelnuts", "Ana is allergic to cat hair"),
        ("Ana works at the bank", "Ana worked at the harbour from 2016 to 2020"),
        ("User prefers tea", "User prefers trains"),
        ("User prefers planes", "User prefers tea over coffee"),
        ("I have an aversion to gyms", "I prefer not to use the machines at gyms"),
        ("User prefers meetings in the morning", "User prefers workouts in the morning"),
        ("Answer in English", "Answer in bullets"),
        ("The team uses Slack for chat", "The team uses Zoom for calls"),
    ],
)
def test_values_of_two_things_do_not_outdo_each_other(older: str, newer: str) -> None:
    assert outdone(told(older, newer), near(0.7)) == {}


def test_what_is_noted_about_two_people_in_the_first_person_is_not_compared() -> None:
    (older, _), (_, newer) = (told("I live in Lisbon", "I moved to Porto", subject=name) for name in ("ana", "ben"))
    assert outdone([older, newer], near(0.6)) == {}


def test_what_two_people_say_of_themselves_is_not_compared() -> None:
    older, newer = told("Ben: Hey Ana! I live in Leeds", "Ana: Hey Ben! I moved to Bristol")
    assert outdone([older, newer], near(0.9)) == {}


def test_a_change_among_many_things_outdoes_nothing() -> None:
    long = "Ana: I am glad that we talked so long, so much has changed since the summer, and I can hardly tell you all"
    assert outdone(told("Ana: I talked to Ben for hours", long), near(0.7)) == {}


def test_names_in_common_are_not_enough_for_a_change() -> None:
    assert outdone(told("Ben: I'm reading Dune", "Ben: I'm learning Korean now"), near(0.65)) == {}


def test_what_is_trusted_less_outdoes_nothing() -> None:
    older, newer = told("Priya lives in Leeds", "Priya has relocated to Bristol")
    doubtful = Maker().record(newer.text, id="newer", created_at=newer.created_at, trust=Trust.WEB)
    assert outdone([older, doubtful], near(0.74)) == {}


def test_what_outdoes_is_not_outdone_itself() -> None:
    older, newer = told("Priya lives in Leeds", "Priya has relocated to Bristol")
    last = Maker().record("Priya moved to York", id="last", created_at=newer.created_at + timedelta(days=1))
    vectors = np.ones((3, 1), dtype=np.float32)
    assert outdone([last, older, newer], vectors) == {"older": "last", "newer": "last"}


SUBJECTS = ("The boiler", "The dishwasher", "The gate", "The office printer", "Ana", "Bo", "Ana's sister")
STATES = {
    f"{thing} {state}"
    for thing in SUBJECTS[:4]
    for state in (
        "is broken",
        "works again",
        "is closed",
        "is open",
        "is for sale",
        "was sold",
        "failed",
        "is not broken",
    )
}
HABITS = {
    f"{name} {habit}"
    for name in SUBJECTS[4:]
    for habit in ("smokes", "has stopped smoking", "is on holiday", "is back at work", "is a vegan", "eats meat")
}


@given(texts=st.lists(st.sampled_from(sorted(STATES | HABITS)), min_size=2, max_size=7), shuffled=st.randoms())
def test_states_are_compared_within_one_subject_whatever_the_order_they_are_given_in(
    texts: list[str], shuffled: random.Random
) -> None:
    make = Maker()
    records = [make.record(text, id=f"{at}", created_at=make.now + timedelta(days=at)) for at, text in enumerate(texts)]
    mixed = shuffled.sample(records, len(records))
    found = outdone(mixed, np.ones((len(records), 1), dtype=np.float32))
    said = [next(each for each in SUBJECTS if text.startswith(f"{each} ")) for text in texts]
    assert found == outdone(records, np.ones((len(records), 1), dtype=np.float32))
    assert all(said[int(older)] == said[int(newer)] and older < newer for older, newer in found.items())


def test_an_equal_text_is_outdone_by_nothing() -> None:
    assert [text for text in sorted(STATES | HABITS) if outdone(told(text, text), near(1.0))] == []


def test_a_statement_is_outdone_by_the_newest_of_a_chain() -> None:
    older, newer = told("The boiler is broken", "The boiler is not broken, it runs again")
    last = Maker().record("The boiler runs no longer", id="last", created_at=newer.created_at + timedelta(days=1))
    vectors = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0.8, 0.6]], dtype=np.float32)
    assert outdone([older, newer, last], vectors) == {"older": "last", "newer": "last"}


def test_nothing_of_a_text_is_remembered_but_hashes() -> None:
    outdone(told("Priya lives in Leeds", "Priya has relocated to Bristol"), near(0.74))
    outdone(told("Priya's boiler is broken on Sundays", "Priya's boiler works on Sundays"), near(0.74))
    caches = statements._GLANCES, statements._WORDS, statements._STATES, current._PAIRS
    known = repr([*current._PAIRS, *(value for cache in caches for value in cache.values())]).lower()
    assert not any(word in known for word in ("priya", "leeds", "bristol", "boiler", "sundays"))


def test_a_text_names_the_states_that_it_tells_of() -> None:
    texts = [*STATES, *HABITS, *(f"The heating is on. {text}" for text in STATES)]
    tells = [(text, state) for text in texts for state in states.read(text, "")]
    assert len(tells) > 2 * len(STATES)
    assert all(states.named(text) >> (state.side.bit_length() - 1) // 2 & 1 for text, state in tells)


def test_another_choice_is_told_among_many_statements() -> None:
    make = Maker()
    texts = [f"Tom prefers dish{number} and bowl{number} on day{number}" for number in range(20)]
    texts += ["User prefers dark mode", "User prefers light mode"]
    records = [
        make.record(text=text, id=str(at), created_at=make.now + timedelta(days=at)) for at, text in enumerate(texts)
    ]
    assert outdone(records, np.ones((len(records), 1), dtype=np.float32)) == {"20": "21"}
    assert current.could_outdo(records[-1])


def test_a_pair_that_was_read_before_is_read_again_where_it_is_less_close_in_meaning() -> None:
    pair = told("Hanna studies chemistry in Graz.", "Hanna switched to architecture.")
    assert [outdone(pair, near(cosine)) for cosine in (0.9, 0.5, 0.9)] == [{"older": "newer"}, {}, {"older": "newer"}]


def test_a_pair_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = told("The archive of the club is on Elm Street", "You'll find the archive of the club on Oak Avenue")
    first = outdone(pair, near(0.6))
    monkeypatch.setattr(current, "_outdoes", lambda *_: pytest.fail("it was read again"))
    assert outdone(pair, near(0.6)) == first


def test_by_words_alone_only_the_pairs_with_most_in_common_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    texts = [f"Tom keeps {number} jars and {50 + number} pots of jam{number}" for number in range(8)]
    texts += ["The gate of the yard and of the barn opens at 6", "The gate of the yard and of the barn opens at 7"]
    records = [
        make.record(text=text, id=str(at), created_at=make.now + timedelta(days=at)) for at, text in enumerate(texts)
    ]
    read: list[int] = []
    whole = current._outdoes
    monkeypatch.setattr(current, "MOST", 5)
    monkeypatch.setattr(current, "FEW", 5)
    monkeypatch.setattr(current, "_outdoes", lambda *given: read.append(1) or whole(*given))
    assert (outdone(records, None)["8"], len(read)) == ("9", 5)


def test_of_many_of_one_form_only_pairs_that_can_give_two_values_of_one_thing_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = Maker()
    texts = [f"For the audit Tom keeps jar {20 + number} for Ana{number}" for number in range(30)]
    texts += ["The gate of the yard opens at 6", "The gate of the yard opens at 7"]
    records = [
        make.record(text=text, id=str(at), created_at=make.now + timedelta(days=at)) for at, text in enumerate(texts)
    ]
    read: list[int] = []
    whole = current._outdoes
    monkeypatch.setattr(current, "_outdoes", lambda *given: read.append(1) or whole(*given))
    near = np.ones((len(records), 1), dtype=np.float32)
    assert (outdone(records, near), len(read)) == ({"30": "31"}, 1)
    monkeypatch.setattr(current, "_of_one_thing", lambda *_: pytest.fail("the same were looked at again"))
    assert outdone(records, near) == {"30": "31"}
