"""An extract: the sources' own sentences, the same every time, and whose line is whose."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepward.jobs.extracts import extract, split_sentences
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
    assert extract(made(*TURNS), 1_000) == ("\n".join(f"{speaker}: {text}" for speaker, text in TURNS), [1, 1, 1])


def test_what_does_not_fit_gives_each_source_its_say():
    text, lines = extract(made(*TURNS), 140)
    assert [line.partition(":")[0] for line in text.splitlines()] == ["Ana", "Ben", "Ana"]
    assert lines == [1, 1, 1]


def test_overlong_single_sentence_is_cut_with_a_notice():
    assert extract(made((None, "word " * 100)), 30) == ("word word word word word wor …", [1])


def test_a_sentence_is_quoted_once():
    sources = made((None, "The quay is closed. " + "a" * 80), (None, "The quay is closed. " + "b" * 80))
    assert extract(sources, 60) == ("The quay is closed.", [1, 0])


texts = st.lists(st.text(alphabet="ab c.?1\n", min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=6)


@given(texts=texts, limit=st.integers(20, 120))
def test_an_extract_is_within_its_limit_and_counts_its_lines(texts, limit):
    text, lines = extract(made(*((None, each) for each in texts)), limit)
    assert (len(text) <= limit, len(text.split("\n"))) == (True, sum(lines))


@given(texts=texts, limit=st.integers(60, 120))
def test_every_word_of_an_extract_is_in_a_source(texts, limit):
    told = extract(made(*((None, text) for text in texts)), limit)[0].removesuffix("…")
    assert [word for word in told.split() if not any(word in text for text in texts)] == []


@given(text=st.text(alphabet="ab c.?!。1\n", max_size=60))
def test_sentences_have_every_word_of_a_text(text):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
