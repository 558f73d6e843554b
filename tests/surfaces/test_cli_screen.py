"""What reaches a terminal: text and nothing but text, within the width."""

from __future__ import annotations

import io

import pytest

from keepward.cli.render import Screen, escape_invisible


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    return Screen(stream), stream


LONG = "word " * 60


def widest(stream):
    return max(len(line) for line in stream.getvalue().splitlines())


def test_a_paragraph_fits_the_width(screen):
    screen[0].line(LONG, indent=7)
    assert widest(screen[1]) <= 60


def test_a_labelled_text_fits_the_width(screen):
    screen[0].labelled("a label longer than its column", LONG)
    assert widest(screen[1]) <= 60 + len("a label longer than its column")


def test_a_diff_fits_the_width(screen):
    screen[0].change("text", LONG, LONG)
    assert widest(screen[1]) <= 60


def test_a_table_wraps_its_last_column_in_the_width(screen):
    screen[0].table(("id", "text"), [("1", LONG)])
    assert widest(screen[1]) <= 60


def test_a_row_that_leaves_no_room_is_by_itself(screen):
    screen[0].table(("id", "made by", "at", "text"), [("a" * 30, "b" * 16, "c" * 12, "tea at four")])
    said = screen[1].getvalue().splitlines()
    assert [line.split(maxsplit=1)[0] for line in said] == ["id", "made", "at", "text"]
    assert widest(screen[1]) <= 60


def test_a_row_by_itself_is_indented_as_its_table(screen):
    screen[0].table(("id", "text"), [("a" * 50, "tea at four"), ("b" * 50, "tea")], indent=4)
    said = [line for line in screen[1].getvalue().splitlines() if line]
    assert [len(line) - len(line.lstrip()) for line in said] == [4, 4, 4, 4]


def test_wide_characters_fit_the_width(screen):
    screen[0].line("記憶は監査できる。" * 20)
    assert widest(screen[1]) <= 30


def test_markup_in_a_memory_is_shown_as_it_is(screen):
    screen[0].line("[bold red]not a style[/]")
    assert screen[1].getvalue() == "[bold red]not a style[/]\n"


def test_nothing_but_text_reaches_a_pipe(screen):
    screen[0].heading("\x1b[31mred\x07")
    assert screen[1].getvalue() == "\n<U+001B>[31mred<U+0007>\n"


@pytest.mark.parametrize("char", ["\x1b", "\u202e", "\u200b", "\u2066", "\x85", "\ufeff", "\U000e0041", "\u2028"])
def test_a_character_that_hides_or_moves_is_written_out(char):
    assert escape_invisible(f"a{char}b") == f"a<U+{ord(char):04X}>b"


@pytest.mark.parametrize("text", ["naïve", "記憶", "a\n\tb", "می‌خواهم", "👩‍🚀"])
def test_ordinary_writing_stays_as_it_is(text):
    assert escape_invisible(text) == text


def test_a_reviewer_sees_joiners_too():
    assert escape_invisible("a\u200db", joiners=False) == "a<U+200D>b"


def test_a_long_word_is_not_wrapped(screen):
    screen[0].result({"digest": "d" * 64})
    assert screen[1].getvalue() == f"digest  {'d' * 64}\n"


RESULT = {
    "ok": True,
    "path": None,
    "faults": [],
    "checked_at": "2026-03-04T05:06:07.123456+00:00",
    "counts": {"rows": 2},
}


def test_any_result_is_shown_by_its_filled_fields(screen):
    screen[0].result(RESULT)
    assert [line.split(maxsplit=1) for line in screen[1].getvalue().splitlines()] == [
        ["ok", "yes"],
        ["checked", "at  2026-03-04 05:06 UTC"],
        ["counts", "rows 2"],
    ]


def test_lists_are_tables_with_the_longest_text_last(screen):
    screen[0].result({"items": [{"why": "tea at four", "id": "a1", "none": None}, {"why": "a cup", "id": "b2"}]})
    assert [line.split(maxsplit=1) for line in screen[1].getvalue().splitlines()] == [
        ["id", "why"],
        ["a1", "tea at four"],
        ["b2", "a cup"],
    ]


def test_a_hidden_field_is_not_shown_at_any_depth(screen):
    screen[0].result({"item": {"salt": "s1", "rows": [{"salt": "s2", "id": "a1"}]}, "salt": "s3"}, ("salt",))
    assert [word in screen[1].getvalue() for word in ("s1", "s2", "s3", "a1")] == [False, False, False, True]


def test_a_result_without_any_field_says_so(screen):
    screen[0].result({"memories": []})
    assert screen[1].getvalue() == "Nothing found.\n"


def test_a_stream_without_utf8_gets_the_nearest_plain_sign(run, monkeypatch):
    import sys

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    run("remember", "tea “first” 記", "--as", "operator")
    run("recall", "tea")
    assert b'tea "first" ?' in stream.buffer.getvalue()


def test_changes_whose_sides_are_no_memories_are_a_table(screen):
    screen[0].result({"changes": [{"id": "a1", "before": None, "after": "cafe"}]})
    assert [line.split() for line in screen[1].getvalue().splitlines()] == [["id", "after"], ["a1", "cafe"]]
