"""Shares of relevance: what lifts them, what does not, and that they fall with the order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from keepward.retrieval import fusion, relevance
from keepward.retrieval.relevance import HASHED, MEANING, WORDS, Leading, asks_advice, best_odds, calibration, shares

PLAIN = Leading(
    cosine=np.array([0.2]),
    held=np.array([[False], [False]]),
    parts=np.array([1]),
    turns=np.array([0]),
    roles=np.array([False]),
    score=np.array([0.4]),
    mean=0.05,
)
CHAT = replace(PLAIN, turns=np.array([2]), roles=np.array([True]), cosine=np.array([0.4]))


def odds(
    lead: Leading, text: str = "Which ferry sails", *, count: int = 20, how: relevance.Calibration = MEANING
) -> float:
    return best_odds(how, lead, [0, 0], count, text)


@pytest.mark.parametrize(
    ("model", "expected"),
    [(None, WORDS), ("hashed:1:384", HASHED), ("minilm:ab:384", MEANING), ("http:h:m:8", MEANING)],
)
def test_each_way_of_searching_has_constants_of_its_own(model: str | None, expected: relevance.Calibration) -> None:
    assert calibration(model) is expected


def test_what_is_closer_in_meaning_is_surer() -> None:
    assert odds(replace(PLAIN, cosine=np.array([0.5]))) > 0 > odds(PLAIN)


def test_what_holds_words_of_the_question_is_surer() -> None:
    assert odds(replace(PLAIN, held=np.array([[True], [False]]))) > odds(PLAIN)


def test_what_has_no_vector_is_judged_by_its_words() -> None:
    held = replace(PLAIN, held=np.array([[True], [True]]), parts=np.array([0]), cosine=np.array([0.0]))
    assert odds(held) == odds(held, how=WORDS) > 0


def test_a_turn_of_a_talk_is_judged_by_its_score() -> None:
    talk = replace(PLAIN, turns=np.array([relevance.TALK]))
    assert odds(replace(talk, score=np.array([2.0])), count=500) > 0 > odds(talk, count=500)


def test_of_many_memories_one_is_good_by_luck() -> None:
    talk = replace(PLAIN, turns=np.array([relevance.TALK]), score=np.array([1.2]))
    assert odds(talk, count=30) > odds(talk, count=3_000)


def test_nothing_is_surer_than_the_surest() -> None:
    assert odds(replace(PLAIN, cosine=np.array([1.0]))) == relevance.SUREST


def test_shares_fall_with_the_score_and_lie_between_0_and_1() -> None:
    found = shares(4.0, np.array([2.0, 1.8, 1.0, 0.0])).tolist()
    assert found == sorted(found, reverse=True)
    assert (found[0], 0 <= found[-1] < 0.05) == (0.982, True)


def test_scores_of_nothing_are_alike() -> None:
    assert len(set(shares(-3.0, np.zeros(3)).tolist())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "What should I cook tonight?",
        "Can you recommend a book on tides?",
        "What would be fun for me?",
        "format this file",
        "Please write a reply to the landlord",
        "Could you sketch a helper that counts words?",
        "Was soll ich Oma schenken?",
        "周末应该去哪儿?",
    ],
)
def test_a_request_for_advice_is_known(text: str) -> None:
    assert asks_advice(text)
    assert odds(PLAIN, text) == relevance.ADVICE


@pytest.mark.parametrize(
    "text",
    [
        "Who wrote Hamlet?",
        "Do whales sleep?",
        "Test results of March?",
        "What did Sam suggest Evan try?",
        "Which book did Tim recommend to John?",
    ],
)
def test_a_question_of_what_was_is_no_request_for_advice(text: str) -> None:
    assert not asks_advice(text)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("How do I move boxes over a long distance?", True),
        ("Would you look this over?", True),
        ("What should I cook?", True),
        ("How did you advise me to pack?", False),
        ("Could you tell whether Ana called?", False),
        ("Who wrote Hamlet?", False),
    ],
)
def test_a_request_is_told_from_a_question_of_what_was(text: str, asked: bool) -> None:
    assert relevance.requests(text) is asked


def test_what_all_texts_have_in_common_is_taken_off_a_cosine() -> None:
    wide, narrow = (fusion.beyond(np.array([0.8]), mean, 50)[0] for mean in (0.1, 0.7))
    assert wide == pytest.approx(0.8)
    assert narrow == pytest.approx((0.8 - 0.4) / 0.6)


def test_the_mean_of_two_memories_takes_nothing_off() -> None:
    assert fusion.beyond(np.array([0.8]), 0.8, 2)[0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Which loaf did you suggest for my sister?", "user"),
        ("What were your recommendations?", "user"),
        ("Was hast du mir für Oma empfohlen?", "user"),
        ("How far do I cycle to work?", "assistant"),
        ("Wie heißt mein Hund?", "assistant"),
        ("What would you recommend for me?", "assistant"),
        ("What did Anna suggest to Tom?", ""),
    ],
)
def test_a_question_tells_whether_user_or_assistant_said_the_answer(text: str, other: str) -> None:
    roles = relevance.other_roles(text)
    assert (other in roles) if other else not roles


def test_a_turn_is_judged_by_what_it_says_however_many_memories_there_are() -> None:
    chat = replace(CHAT, turns=np.array([relevance.TALK]))
    assert odds(chat, count=500) == odds(chat, count=5_000) > 0


def test_of_what_people_say_to_each_other_the_score_speaks_as_well() -> None:
    talk = replace(CHAT, turns=np.array([relevance.TALK]), roles=np.array([False]))
    assert odds(replace(talk, score=np.array([2.0]))) > odds(talk) == odds(replace(talk, score=np.array([0.1])))


def test_a_turn_of_a_short_chat_is_judged_as_one_of_a_long_chat() -> None:
    assert odds(CHAT) == odds(replace(CHAT, turns=np.array([relevance.TALK])))


def test_a_question_about_what_a_chat_is_about_is_surer_than_one_far_from_all_of_it() -> None:
    assert odds(replace(CHAT, mean=0.1)) > odds(CHAT) > odds(replace(CHAT, mean=0.0))


def test_what_a_chat_tells_of_more_than_once_is_surer() -> None:
    def told(*cosines: float) -> Leading:
        fields = {
            name: np.repeat(getattr(CHAT, name), 3, axis=-1) for name in ("held", "parts", "turns", "roles", "score")
        }
        return replace(CHAT, **fields, cosine=np.array(cosines))

    assert odds(told(0.4, 0.4, 0.4)) > odds(told(0.4, 0.1, 0.1))


def test_a_remark_about_oneself_has_no_floor_and_what_is_looked_for_has_one() -> None:
    assert odds(PLAIN, "I agreed to run the school fair after all") == relevance.ADVICE > odds(PLAIN, "my school fair")


@pytest.mark.parametrize(
    ("text", "name", "time"),
    [
        ("Where does Ana live?", True, False),
        ("Which books has Ana read?", True, False),
        ("What is her dog called?", True, False),
        ("When did Ana move?", False, True),
        ("In which month was the fair?", False, True),
        ("Wann ist Ana umgezogen?", False, True),
        ("¿Cuándo se mudó Ana?", False, True),
        ("いつ引っ越したの？", False, True),
        ("Où habite Ana ?", True, False),
        ("How is Ana?", False, False),
        ("Wo wohnt Ana?", False, False),
    ],
)
def test_a_question_tells_what_kind_of_answer_it_asks_for(text: str, name: bool, time: bool) -> None:
    assert (relevance.asks_name(text), bool(relevance.time_terms(text))) == (name, time)
