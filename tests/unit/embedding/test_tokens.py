"""Token counters: an estimate that adds up, and exact counts where a tokenizer is at hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepward.embedding import tokens
from keepward.embedding.tokens import EstimateCounter, choose_counter, tiktoken_counter, tokenizers_counter
from keepward.errors import ModelUnavailable

ESTIMATE = EstimateCounter()
PROSE = (
    "It was a bright cold morning, and nobody remembered who had left the gate open. The dog knew, "
    "but the dog had other plans, most of which involved the river and a long, muddy walk home."
)
#: Characters of every kind the estimate tells apart, so that joins between kinds are tried often.
MIXED = st.text(st.sampled_from("aAbZ0 9\n\t.-(_'éźж日か한\u0301\u0915😀—\ud800"), max_size=24)


@given(MIXED, MIXED)
@settings(max_examples=100, deadline=None)
def test_estimate_of_a_text_exceeds_its_parts_by_one(a: str, b: str) -> None:
    assert ESTIMATE.count(a + b) <= ESTIMATE.count(a) + ESTIMATE.count(b) + 1


def test_english_prose_has_about_four_characters_per_token() -> None:
    assert 3.8 < len(PROSE) / ESTIMATE.count(PROSE) < 5


def test_code_takes_about_three_and_a_half_characters_a_token() -> None:
    code = Path(__file__).read_text(encoding="utf-8")
    assert 3 < len(code) / ESTIMATE.count(code) < 4.5


def test_han_and_kana_take_one_character_a_token() -> None:
    assert ESTIMATE.count("日本の首都は東京です") == 10


def test_long_runs_are_counted_without_trying_every_split() -> None:
    assert [
        text for text in ["aB" * 50_000, " " * 100_000, "A" * 100_000, "(" * 100_001] if ESTIMATE.count(text) < 1
    ] == []


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {"the": 0, "key": 1, "[UNK]": 2}, "unk_token": "[UNK]"}
    truncation = {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": truncation,
                "padding": None,
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": None,
                "decoder": None,
                "model": model,
            }
        ),
        encoding="utf-8",
    )
    return path


def test_tokenizer_file_counts_all_text_despite_truncation(vocabulary: Path) -> None:
    assert tokenizers_counter(vocabulary).count("the key the key the key") == 6


def test_counter_is_named_by_its_vocabulary_not_its_path(vocabulary: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes(vocabulary.read_bytes())
    assert tokenizers_counter(copy).name == tokenizers_counter(vocabulary).name


def test_a_file_that_is_no_tokenizer_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ModelUnavailable, match="not a tokenizer"):
        tokenizers_counter(path).count("x")


def test_missing_tiktoken_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ModelUnavailable, match="pip install tiktoken"):
        tiktoken_counter("o200k_base").count("x")


@pytest.mark.parametrize(
    ("name", "counted_by"), [("estimate", "estimate-v1"), ("tiktoken:o200k_base", "tiktoken:o200k_base")]
)
def test_a_name_gives_its_counter(name: str, counted_by: str) -> None:
    assert choose_counter(name).name == counted_by


@pytest.mark.parametrize("name", ["", "tiktoken:", "words", "estimate:2"])
def test_an_unknown_name_is_answered_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="tiktoken:<encoding>"):
        choose_counter(name)


@given(st.text(st.sampled_from("aAbZ0 9\n\t\r.-(_'\u2028éж日か😀#"), max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_text_costs_what_its_lines_cost_together(text: str) -> None:
    units = 0
    for piece in tokens._PIECE.finditer(text):
        least, each = tokens._COSTS[piece.lastgroup or "other"]
        units += max(least, each * (piece.end() - piece.start()))
    assert EstimateCounter().count(text) == (max(1, -(-units // tokens._UNIT)) if text else 0)


@given(st.lists(st.text(st.sampled_from("aAbZ09.-(_'éж日か😀٣²"), max_size=6), max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_word_costs_the_same_wherever_it_was_seen_before(words: list[str]) -> None:
    line = " ".join(words)
    known = EstimateCounter()
    for each in (line[::-1], *words):
        known.count(each)
    assert known.count(line) == EstimateCounter().count(line)


def test_a_counter_forgets_when_it_remembers_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MAX_CACHED_LINES", 2)
    counter = EstimateCounter()
    counter.count("one\ntwo\nthree")
    assert len(counter._line_costs) == 1
