"""A CSV with a column `text`, and a file with one text a line, come in as facts."""

from __future__ import annotations

import pytest

from keepward.core.principals import Actor
from keepward.errors import InvalidInput
from keepward.interchange import load

TABLE = """text,tags,confidence,date,id,mood
"Ana prefers tabs, not spaces","style, code",0.9,2026-03-04,n-1,calm
"The pier is
closed",,,,,
"""


@pytest.fixture
def put(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_row_becomes_a_fact_with_its_columns_as_fields(make_store, put):
    mem = make_store(actor=Actor.operator())
    done = load(mem, put("notes.csv", TABLE))
    first = mem.get("n-1")
    assert (done.format, done.committed, done.failed) == ("csv", 2, ())
    assert (first.text, first.tags, first.confidence) == ("Ana prefers tabs, not spaces", ("code", "style"), 0.9)
    assert (first.occurred_at.isoformat()[:10], first.metadata) == ("2026-03-04", {"mood": "calm"})


def test_a_text_of_several_lines_stays_one_memory(make_store, put):
    mem = make_store(actor=Actor.operator())
    load(mem, put("notes.csv", TABLE))
    assert "The pier is\nclosed" in {each.text for each in mem.list_memories()}


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ";"), ("a.tsv", "\t")])
def test_a_table_may_have_another_delimiter(make_store, put, name, delimiter):
    mem = make_store(actor=Actor.operator())
    load(mem, put(name, f"id{delimiter}text\nn-1{delimiter}The crane, at pier nine, is red\n"))
    assert mem.get("n-1").text == "The crane, at pier nine, is red"


@pytest.mark.parametrize("table", ["note,tags\nThe pier is closed,\n", 'text\n"not closed\n'])
def test_a_table_that_cannot_be_read_is_an_error(make_store, put, table):
    with pytest.raises(InvalidInput, match=r"notes\.csv"):
        load(make_store(actor=Actor.operator()), put("notes.csv", table))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,b,core,", "core memory"),
        ("a,b,,much", "confidence is not a number"),
        (",b,,", "no text"),
        ("a,b,,,c", "more cells"),
    ],
)
def test_an_unusable_row_is_reported_with_its_line(make_store, put, row, why):
    path = put("notes.csv", f"text,subject,tier,confidence\nThe pier is closed,,,\n{row}\n")
    done = load(make_store(actor=Actor.operator()), path)
    assert (done.committed, [number for number, _ in done.failed]) == (1, [3])
    assert why in done.failed[0][1]
