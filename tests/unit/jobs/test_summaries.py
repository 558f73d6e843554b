"""A summary without a model: the sources' own sentences, the same every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepward.jobs.planners import extractive_summary
from support.factories import RecordFactory

TURNS = [
    ("Ana", "We sail to Bergen on Friday. The weather looks fine."),
    ("Ben", "Who packs the charts? I have the charts of Bergen here."),
    ("Ana", "Bring 40 litres of water. And something to read."),
]


def made(*turns):
    maker = RecordFactory()
    return [maker.record(text, speaker=speaker) for speaker, text in turns]


def test_short_sources_appear_in_full_with_their_speakers():
    assert extractive_summary(made(*TURNS), 1_000) == "\n".join(f"{speaker}: {text}" for speaker, text in TURNS)


def test_what_does_not_fit_gives_each_source_its_say():
    assert [line.partition(":")[0] for line in extractive_summary(made(*TURNS), 140).splitlines()] == [
        "Ana",
        "Ben",
        "Ana",
    ]


def test_overlong_single_sentence_is_cut_with_a_notice():
    assert extractive_summary(made((None, "word " * 100)), 30) == "word word word word word wor …"


def test_a_sentence_is_quoted_once():
    assert extractive_summary(
        made((None, "The quay is closed. " + "a" * 80), (None, "The quay is closed. " + "b" * 80)), 60
    ) == ("The quay is closed.")


texts = st.lists(st.text(alphabet="ab c.?1\n", min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=6)


@given(texts=texts, limit=st.integers(20, 120))
def test_a_summary_is_within_its_limit(texts, limit):
    assert len(extractive_summary(made(*((None, text) for text in texts)), limit)) <= limit


@given(texts=texts, limit=st.integers(60, 120))
def test_every_word_of_a_summary_is_in_a_source(texts, limit):
    told = extractive_summary(made(*((None, text) for text in texts)), limit).removesuffix("…")
    assert [word for word in told.split() if not any(word in text for text in texts)] == []
