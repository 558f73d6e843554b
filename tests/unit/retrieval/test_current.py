"""Of two statements of the same thing the newer one is told, and siblings are left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from evals.current import Pair, pairs

from keepward.model.memory import Record
from keepward.model.trust import Trust
from keepward.retrieval import current
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
        ("Stefan commutes by train", "Stefan cycles to work, rain or shine", 0.48),
        ("The gym is on Elm Street", "You'll find the gym on Oak Avenue", 0.6),
        ("Lea: the code for the gate is 4471", "Lea: use 9920 for the gate", 0.6),
        ("The CEO is Martin Holt", "Julia Beck is the CEO", 0.62),
        ("The heating works", "The heating doesn't work", 0.75),
        ("Sven: my flight lands at 14:20", "Sven: landing at 16:05", 0.72),
        ("Bo is looking after ticket 5120", "Ticket 5120 is with Marta", 0.62),
        ("The spare key is under the mat", "The spare key is behind the fuse box", 0.7),
    ],
)
def test_the_newer_of_two_statements_outdoes_the_older_whatever_their_wording(
    older: str, newer: str, cosine: float
) -> None:
    assert outdone(told(older, newer), near(cosine)) == {"older": "newer"}


@pytest.mark.parametrize("pair", [*pairs("others"), *pairs("fresh others", (0,))], ids=lambda pair: pair.newer)
@pytest.mark.parametrize("cosine", [0.5, None])
def test_what_is_of_one_form_about_another_is_outdone_by_nothing(pair: Pair, cosine: float | None) -> None:
    assert outdone(told(pair.older, pair.newer), None if cosine is None else near(cosine)) == {}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The flat has two bedrooms", "The flat has three balconies"),
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
    ],
)
def test_values_of_two_things_do_not_outdo_each_other(older: str, newer: str) -> None:
    assert outdone(told(older, newer), near(0.7)) == {}


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


def test_nothing_of_a_text_is_remembered_but_hashes() -> None:
    outdone(told("Priya lives in Leeds", "Priya has relocated to Bristol"), near(0.74))
    known = repr([*current._GLANCES.values(), *current._WORDS.values()]).lower()
    assert not any(word in known for word in ("priya", "leeds", "bristol"))


def test_by_words_alone_only_the_pairs_with_most_in_common_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    texts = [f"Tom keeps jar {number} of plum jam for Ana{number}" for number in range(8)]
    texts += ["The gate of the yard and of the barn opens at 6", "The gate of the yard and of the barn opens at 7"]
    records = [
        make.record(text=text, id=str(at), created_at=make.now + timedelta(days=at)) for at, text in enumerate(texts)
    ]
    read: list[int] = []
    whole = current._outdoes
    monkeypatch.setattr(current, "MOST", 5)
    monkeypatch.setattr(current, "_outdoes", lambda *given: read.append(1) or whole(*given))
    assert (outdone(records, None)["8"], len(read)) == ("9", 5)
