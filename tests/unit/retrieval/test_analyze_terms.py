"""Text to terms, and their packed form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepward.retrieval import tokenizer


def unpacked(blob: bytes) -> tuple:
    hashes, counts, named, _, lengths = tokenizer.unpack_many([blob])
    return hashes, counts, named, int(lengths[0])


def test_irregular_forms_match_their_base() -> None:
    assert tokenizer.terms("went children") == tokenizer.terms("go child")


def test_accents_and_case_are_folded() -> None:
    assert tokenizer.terms("CAFÉ Straße") == tokenizer.terms("cafe strasse")


def test_stop_words_are_left_out() -> None:
    assert tokenizer.terms("what did you do with the piano") == ["piano"]


def test_a_text_of_stop_words_preserves_them() -> None:
    assert tokenizer.terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("getUserById", "user", "getuserbyid"),
        ("INC-2077", "2077", "inc-2077"),
        ("db.pool_size", "pool", "db.pool_size"),
    ],
)
def test_an_identifier_gives_its_parts_and_itself(text: str, part: str, whole: str) -> None:
    assert {part, whole} <= set(tokenizer.terms(text))


def test_thousands_are_one_number() -> None:
    assert tokenizer.terms("1,000,000") == ["1000000"]


def test_ordinals_are_numbers() -> None:
    assert tokenizer.terms("the 7th") == ["7"]


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert [
        text
        for text in ["学习西班牙语", "のさくら", "ภาษาไทย", "한국어를"]
        if tokenizer.terms(text) != [text[i : i + 2] for i in range(len(text) - 1)]
    ] == []


def test_a_single_character_is_a_term() -> None:
    assert tokenizer.terms("茶 tea") == ["茶", "tea"]


def test_a_single_han_character_between_kana_is_a_word() -> None:
    assert set(tokenizer.terms("姉の仕事")) & set(tokenizer.terms("姉は看護師")) == {"姉"}


def test_words_with_vowel_signs_stay_complete() -> None:
    assert tokenizer.terms("हिन्दी") == ["हिन्दी"]


@given(st.text(st.characters(), max_size=60))
def test_no_text_makes_the_analyser_raise(text: str) -> None:
    assert all(tokenizer.terms(text))


@given(st.lists(st.text(max_size=6), max_size=40))
def test_packed_terms_do_not_depend_on_their_order(words: list[str]) -> None:
    assert tokenizer.pack(words) == tokenizer.pack(words[::-1])


def test_hashes_are_the_same_on_every_machine() -> None:
    assert tokenizer.term_hash("tea") == 648460319


@pytest.mark.parametrize("blob", [b"", b"\x01" + bytes(4), b"\x02" + bytes(6)])
def test_a_foreign_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(ValueError, match="reindex"):
        tokenizer.unpack_many([blob])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Maria's manager is Tomasz Wilk.", {"tomasz", "wilk"}),
        ("It broke with ticket KW-2207.", {"kw-2207"}),
        ("The page needs node.js", {"node.js"}),
        ("She left. Nobody saw her", set()),
        ('He said "Never again"', set()),
        ("我住在 PostgreSQL 附近", {"postgresql"}),
        ("", set()),
    ],
)
def test_names_are_capitals_inside_a_sentence_and_identifiers(text: str, names: set[str]) -> None:
    assert tokenizer.analyse(text).names == names


@given(st.text(st.characters(), max_size=60))
def test_a_name_is_a_term_of_its_text(text: str) -> None:
    assert tokenizer.analyse(text).names <= set(tokenizer.terms(text))


def test_packed_names_are_distinguished_from_other_terms() -> None:
    hashes, _, named, _ = unpacked(tokenizer.pack(["tea", "wilk"], ["wilk"]))
    assert hashes[named].tolist() == [tokenizer.term_hash("wilk")]
