import io
import random
from contextlib import suppress

import pytest

from keepward.errors import InvalidInput
from keepward.interchange.imports import READERS, ImportFormat, detect, load
from keepward.interchange.parsing import open_source, parse
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": 9223372036854775808}', "64 bits"),
        ('{"a": 1e999}', "too large"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "\\u0000"}', "NUL"),
        ("", "not valid JSON"),
    ],
)
def test_an_odd_json_text_is_refused_with_a_plain_reason(text, reason):
    with pytest.raises(UnusableItem, match=reason):
        parse(text)


def test_lines_lose_their_byte_order_mark_and_windows_line_ends(put):
    with open_source(put("a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": 2}')) as source:
        assert list(source.lines()) == [(1, '{"a": 1}'), (3, '{"b": 2}')]


def test_line_that_is_not_utf8_is_named_and_skipped(put):
    with open_source(put("a.jsonl", b'"\xff"\n"b"\n')) as source:
        lines = list(source.lines())
    assert (str(lines[0][1]), lines[1]) == ("the line is not UTF-8 text", (2, '"b"'))


def test_overlong_line_is_named_and_skipped(put, monkeypatch):
    monkeypatch.setattr("keepward.interchange.parsing.ROW_LIMIT", 8)
    with open_source(put("a.jsonl", '"' + "x" * 30 + '"\n"b"\n')) as source:
        lines = list(source.lines())
    assert ([number for number, _ in lines], lines[1][1]) == ([1, 2], '"b"')


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"\xef\xbb\xbf \n\n", "empty"), ('[{"role"'.encode("utf-16"), "UTF-16"), (b"a\0b", "text file")],
)
def test_a_file_without_readable_text_is_an_error(put, content, reason):
    with pytest.raises(InvalidInput, match=reason), open_source(put("a.json", content)):
        pass


def test_a_folder_is_an_error(tmp_path):
    with pytest.raises(InvalidInput, match="cannot read"), open_source(tmp_path):
        pass


class Pipe(io.RawIOBase):
    """Bytes that can be read once."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.data.readinto(buffer)


def test_a_stream_in_memory_has_a_largest_size(monkeypatch):
    monkeypatch.setattr("keepward.interchange.parsing.TOTAL_LIMIT", 8)
    with pytest.raises(InvalidInput, match="save it to a file"), open_source(Pipe(b'"more than eight"\n')):
        pass


def test_an_open_file_is_read_where_it_lies(put, monkeypatch):
    monkeypatch.setattr("keepward.interchange.parsing.TOTAL_LIMIT", 2)
    with put("a.jsonl", '"a"\n"b"\n').open("rb") as file, open_source(file) as source:
        assert [list(source.lines()) for _ in "ab"] == [[(1, '"a"'), (2, '"b"')]] * 2


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.json", '[{"role": "user", "content": "hi"}]', "messages"),
        ("a.jsonl", '{"role": "user", "content": "hi"}\n{"role": "user", "content": "ho"}\n', "messages"),
        ("a.jsonl", 'broken\n{"role": "user", "content": "hi"}\n', "markdown?"),
        ("a.jsonl", '{broken\n{"role": "user", "content": "hi"}\n', "messages"),
        ("a.jsonl", '{"id": "0123456789ab", "text": "x", "scope": "shared"}\n', "legacy-jsonl"),
        ("a.jsonl", '{"id":"x","version":1,"op":"insert","seq":1,"n":0,"seal":"00"}\n', "vault"),
        ("notes.md", "just a paragraph", "markdown"),
        ("notes", "# Heading\n\ntext", "markdown"),
    ],
)
def test_the_format_is_recognised_by_the_content(put, name, content, form):
    with open_source(put(name, content)) as source:
        if form == "markdown?":
            with pytest.raises(InvalidInput, match="name its format, one of"):
                detect(source)
        else:
            assert detect(source) == form


@pytest.mark.parametrize("content", ['[{"x": 1}]', '{"x": 1}\n{"x": 2}\n'])
def test_unknown_format_is_an_error_that_names_the_formats(put, content):
    with open_source(put("a.json", content)) as source, pytest.raises(InvalidInput, match="vault, messages"):
        detect(source)


def test_truncated_json_is_an_error_and_no_other_format(put):
    with (
        open_source(put("a.json", '[{"role": "user", "content": "hi"}')) as source,
        pytest.raises(InvalidInput, match="cut"),
    ):
        detect(source)


ODD = (b"\x00", b"\\ud800", b"9" * 25, b"NaN", b"[[[[", b'"', b"null", b"\xff", b"{}", b"-1e400", b"\\u0000", b"")
SAMPLES = {
    "messages": b'{"role":"user","content":"hi","timestamp":"2026-01-01"}\n{"role":"user","content":["x"]}\n',
    "legacy-jsonl": b'{"id":"0123456789ab","text":"x","tags":["a"],"created_at":"2026-01-01","version":2}\n',
    "markdown": b"# A\n\n- b\n  - c\n\n```\nx\n```\ntext\n====\n<!-- q -->\n",
}


@pytest.mark.parametrize("form", SAMPLES)
def test_a_damaged_file_causes_only_the_documented_error(mem, form):
    rng = random.Random(form)
    for _ in range(40):
        data, place = bytearray(SAMPLES[form]), rng.randrange(len(SAMPLES[form]))
        data[place : place + rng.randrange(6)] = rng.choice(ODD)
        for chosen in ("auto", form):
            with suppress(InvalidInput), open_source(io.BytesIO(bytes(data))) as source:
                found = detect(source) if chosen == "auto" else chosen
                list(READERS[found].read(source, ImportRun(mem, "damaged")))


def test_an_added_format_is_recognised_and_read(monkeypatch, mem, put):
    def read(source, run):
        for number, value in source.objects():
            yield number, {"text": value["note"]}

    toy = ImportFormat(lambda value: isinstance(value, dict) and "note" in value, read)
    monkeypatch.setitem(READERS, "toy", toy)
    done = load(mem, put("toy.jsonl", [{"note": "The ferry leaves at six"}]))
    assert (done.format, done.committed) == ("toy", 1)
