"""What of a memory is analysed and embedded."""

import pytest

from keepward.retrieval import chunking

MAY_8 = 1_683_554_160_000_000
LONG = "I went to the old harbour with my brother Anton. We ate fried herring on the wooden pier. He told me a story."


def test_the_named_speaker_and_the_date_are_indexed() -> None:
    assert chunking.indexed_metadata("I like tea", speaker="Ana", created_at=MAY_8) == "Ana\n8 May 2023"


def test_a_role_is_not_a_name() -> None:
    assert [
        speaker
        for speaker in ["user", "Assistant", " ", None]
        if chunking.indexed_metadata("I like tea", speaker=speaker) != ""
    ] == []


def test_key_category_and_tags_are_indexed() -> None:
    text = chunking.indexed_metadata("twenty", key="db.pool_size", tags=("tuning",), category="ops")
    assert text.split("\n") == ["db.pool_size", "ops", "tuning"]


def test_a_short_message_is_one_unit_in_the_third_person() -> None:
    assert chunking.sentence_passages("I'm sure my dog likes me.", speaker="Ana") == [
        "Ana: Ana is sure Ana's dog likes Ana."
    ]


def test_a_user_stays_in_the_first_person() -> None:
    assert chunking.sentence_passages("I walk my dog.", speaker="user") == ["I walk my dog."]


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("I strongly dislike spicy food.", ["spicy food"]),
        ("I like it.", []),
        ("我不喜欢香菜。", []),
        ("Onions are cheap.", []),
    ],
)
def test_subject_of_a_preference_is_embedded_too(text: str, about: list[str]) -> None:
    assert chunking.sentence_passages(text, speaker="user") == chunking.sentence_passages(text) == [text, *about]


def test_sentences_of_a_long_message_become_units() -> None:
    assert chunking.sentence_passages(LONG, speaker="Ana")[1:] == [
        "Ana: Ana went to the old harbour with Ana's brother Anton.",
        "Ana: We ate fried herring on the wooden pier.",
    ]


def test_what_a_user_reports_is_separate_from_what_he_asks() -> None:
    asking = "Since the kitchen slopes under the north window and the old oven went for 90 euros, where should its "
    asking += "replacement from Ghent stand?"
    told = f"Hello. We cook on induction. Could you measure the worktop? {asking}"
    assert chunking.sentence_passages(told, speaker="user")[1:] == ["We cook on induction.", asking]


def test_parts_without_a_named_speaker_are_runs_of_sentences() -> None:
    assert chunking.sentence_passages(LONG) == [LONG]


def test_the_question_answered_precedes_the_complete_text() -> None:
    asked = "Nice! Where did you eat? "
    assert chunking.sentence_passages("On the pier.", speaker="Ana", question=asked) == [
        "Where did you eat? Ana: On the pier."
    ]


def test_a_previous_message_that_asks_nothing_is_left_out() -> None:
    assert chunking.sentence_passages("On the pier.", question="Nice!") == ["On the pier."]


def test_a_very_long_text_has_a_bounded_number_of_units() -> None:
    text = " ".join(f"Sentence number {n} names harbour{n} and pier{n} and boat{n}." for n in range(200))
    assert len(chunking.sentence_passages(text, speaker="Ana")) == chunking.MAX_PASSAGES


def test_all_of_a_long_reply_is_its_opening() -> None:
    text = " ".join(f"Sentence number {n} names harbour{n} and pier{n} and boat{n}." for n in range(200))
    whole, *parts = chunking.sentence_passages(text, speaker="assistant", question="Which harbours are there?")
    assert text.startswith(whole.removeprefix("Which harbours are there? "))
    assert len(whole) < 300
    assert all(f"harbour{n} " in " ".join(parts) for n in range(200))


@pytest.mark.parametrize(("text", "speaker"), [(LONG * 9, "Ana"), (LONG * 9, "user"), ("harbour " * 99, "assistant")])
def test_unsplit_text_is_indexed_completely(text: str, speaker: str) -> None:
    assert chunking.sentence_passages(text, speaker=speaker)[0].endswith(text[-9:].strip())


def test_chinese_sentences_are_distinguished() -> None:
    assert chunking.sentences("我喜欢茶。他喜欢咖啡！") == ["我喜欢茶。", "他喜欢咖啡！"]


@pytest.mark.parametrize("speaker", [None, "user"])
@pytest.mark.parametrize(
    ("text", "by_name"),
    [
        ("I moved to Porto.", "ana moved to Porto."),
        ("The user's cat is called Biscuit.", "ana's cat is called Biscuit."),
        ("J'habite à Lyon avec ma sœur.", "ana habite à Lyon avec ana sœur."),
        ("El usuario vive en Vigo.", "ana vive en Vigo."),
        ("L'utente abita a Roma.", "ana abita a Roma."),
    ],
)
def test_a_text_about_its_subject_is_embedded_by_name_too(text: str, by_name: str, speaker: str | None) -> None:
    assert chunking.sentence_passages(text, speaker=speaker, subject="ana") == list(dict.fromkeys([text, by_name]))


@pytest.mark.parametrize(
    ("text", "more"),
    [("Ana lives in Porto.", {"subject": "ana"}), ("I live in Porto.", {}), ("It’s late.", {"subject": "ana"})],
)
def test_any_other_text_is_embedded_as_said(text: str, more: dict[str, str]) -> None:
    assert chunking.sentence_passages(text, **more) == [text]


def test_what_an_assistant_says_is_not_about_the_subject() -> None:
    assert chunking.sentence_passages("I can help.", speaker="assistant", subject="ana") == ["I can help."]
