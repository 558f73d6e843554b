import pytest

from keepward.services.writing.splitter import UnusableItem, split_item, split_text

SENTENCE = "The harbour opens at six and closes at nine. "


def squeezed(texts) -> str:
    return "".join("".join(texts).split())


@pytest.mark.parametrize(
    "text",
    [SENTENCE * 40, "word " * 300, "x" * 900, "港口六点开门。" * 100, "one\n\ntwo three\n" * 60, "a\u0301" * 400],
)
def test_parts_hold_the_complete_text(text):
    assert squeezed(split_text(text, 100)) == squeezed([text])


def test_no_part_is_longer_than_the_limit():
    assert max(map(len, split_text(SENTENCE * 40 + "x" * 350, 100))) <= 100


def test_a_text_is_cut_between_paragraphs_where_there_are_any():
    paragraph = (SENTENCE * 2).strip()
    assert split_text("\n\n".join([paragraph] * 3), 120) == [paragraph] * 3


def test_hard_cut_does_not_split_a_letter_from_its_accent():
    assert not any(part.startswith("\u0301") for part in split_text("a\u0301" * 400, 99))


def test_an_identifier_is_never_cut_in_two():
    mail = "somebody.with.a.long.name@mail.example.org"
    text = "x" * 80 + " " + mail + " " + "y" * 80
    assert any(mail in part for part in split_text(text, 100))


def test_a_phone_number_with_spaces_is_never_cut_in_two():
    phone = "+49 30 90182017"
    assert any(phone in part for part in split_text("x" * 88 + f" {phone} " + "y" * 80, 100))


def test_long_text_with_a_secret_is_refused_not_cut(made_up_key):
    with pytest.raises(UnusableItem, match="secret"):
        split_text(SENTENCE * 5 + made_up_key + " " + SENTENCE * 5, 100)


def test_parts_are_numbered_in_the_metadata():
    fields = list(split_item({"text": SENTENCE * 4, "aliases": ("a",), "metadata": {"role": "user"}}, 100))
    assert fields[1]["metadata"] == {"role": "user", "part": 2, "parts": len(fields)}
