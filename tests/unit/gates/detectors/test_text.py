"""Normal forms and what reviewers see."""

import pytest

from keepward.gates.detectors.normalize import Text, first_forbidden_char, show_invisible


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("ig\u200bnore", "ignore"),
        ("ｉｇｎｏｒｅ", "ignore"),
        ("ignоrе", "ignore"),
        ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
        ("contraseña", "contrasena"),
        ("Привет, мир", "Привет, мир"),
    ],
)
def test_disguised_letters_become_plain(given, plain):
    assert Text(given).normal.text == plain


def test_spans_map_back_over_deleted_characters():
    form = Text("a ig\u200bnore b").normal
    start = form.text.index("ignore")
    assert form.original_span(start, start + 6) == (2, 9)


def test_dropped_characters_keep_the_way_back():
    tight = Text("ab cd").without(" ")
    assert tight.original_span(1, 3) == (1, 4)


def test_invisible_characters_are_shown_by_their_number():
    assert show_invisible("a\u200bb\u202ec") == "a⟦U+200B⟧b⟦U+202E⟧c"


@pytest.mark.parametrize("text", ["a\ud800", "a\x00", "a\ufffe", "a\x07", "a\x9f", "\U0001ffff"])
def test_odd_unicode_is_named(text):
    assert str(first_forbidden_char(text)).startswith("U+")


def test_each_letter_of_a_percent_encoding_preserves_its_position():
    plain = "für alle: grün \ufffd"
    encoded = "%66%c3%bc%72%20%61%6c%6c%65%3a%20%67%72%c3%bc%6e%20%ff"
    form = Text(encoded).unescaped
    assert form is not None
    assert form.text == plain
    start = plain.index("grün")
    first, last = form.original_span(start, start + 4)
    assert encoded[first:last] == "%67%72%c3%bc%6e"
