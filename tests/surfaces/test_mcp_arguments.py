"""Arguments of tools: what fits comes through, what does not is one plain sentence."""

from __future__ import annotations

import pytest

from keepward import InvalidInput
from keepward.api import OPERATIONS
from keepward.mcp.blocks import block_replace
from keepward.mcp.tools import get_context, recall, remember, revise


@pytest.mark.parametrize("empty", ["", " ", "null", "None", [], [""], ["null"]], ids=str)
@pytest.mark.parametrize("name", ["subject", "tags", "limit"])
def test_an_empty_filter_counts_as_left_out(name, empty):
    assert recall.checked_arguments({"query": "tea", name: empty}) == {"query": "tea"}


@pytest.mark.parametrize("word", ["null", "None"])
def test_a_text_may_be_a_word_for_nothing(word):
    assert revise.checked_arguments({"id": "x", "reason": "y", "text": word})["text"] == word
    given = {"label": "human", "new": word, "old": "", "reason": "r"}
    assert block_replace.checked_arguments(given) == given


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        (remember, {"text": "x", "teir": "core"}, "remember: no argument `teir`; did you mean `tier`?"),
        (recall, {"query": "x", "Limits": 3}, "recall: no argument `Limits`; did you mean `limit`?"),
        (recall, {"objective": "x"}, "recall: no argument `objective`; did you mean `query`?"),
        (get_context, {"query": "x"}, "get_context: no argument `query`; did you mean `objective`?"),
        (recall, {"query": "x", "zebra": 3}, "recall: no argument `zebra`; there are: query, limit"),
    ],
)
def test_an_unknown_argument_is_named_with_the_nearest(tool, given, sentence):
    with pytest.raises(InvalidInput) as fault:
        tool.checked_arguments(given)
    assert sentence in str(fault.value)


def test_a_integer_may_be_written_with_a_point():
    assert recall.checked_arguments({"query": "tea", "limit": 5.0})["limit"] == 5


@pytest.mark.parametrize(
    ("tool", "name", "text", "meant"),
    [
        (recall, "limit", "5", 5),
        (recall, "limit", " 5.0 ", 5),
        (recall, "include_sensitive", "True", True),
        (recall, "tags", "work", ["work"]),
        (recall, "tags", "2026", ["2026"]),
        (recall, "tags", '["work", "ui"]', ["work", "ui"]),
        (recall, "tiers", "core", ["core"]),
        (remember, "confidence", "0.5", 0.5),
        (remember, "metadata", '{"room": 4}', {"room": 4}),
        (remember, "evidence", "chat:42", ["chat:42"]),
    ],
)
def test_a_text_that_can_mean_one_value_counts_as_that(tool, name, text, meant):
    needed = {"query": "x"} if tool is recall else {"text": "x"}
    given = tool.checked_arguments({**needed, name: text})
    assert (given[name], type(given[name])) == (meant, type(meant))


@pytest.mark.parametrize("text", ["5", "true", "[1]", '{"a": 1}'])
def test_a_text_argument_stays_the_text(text):
    assert recall.checked_arguments({"query": text})["query"] == text


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        (recall, {}, "recall needs `query`"),
        (recall, {"query": 3}, "`query` is a text"),
        (recall, {"query": "x", "limit": 51}, "`limit` is a whole number from 1 to 50"),
        (recall, {"query": "x", "limit": 1.5}, "`limit` is a whole number from 1 to 50"),
        (recall, {"query": "x", "limit": "51"}, "`limit` is a whole number from 1 to 50"),
        (recall, {"query": "x", "limit": "5, 6"}, "`limit` is a whole number from 1 to 50"),
        (recall, {"query": "x", "tags": [1]}, "`tags` is a list, each item a text"),
        (recall, {"query": "x", "tags": "ui, style"}, '`tags` is a list, each item a text; write ["one", "two"]'),
        (recall, {"query": "x", "tags": "[" * 20_000}, '`tags` is a list, each item a text; write ["one", "two"]'),
        (recall, {"query": "x", "tags": "[1]"}, "`tags` is a list, each item a text"),
        (remember, {"text": "x", "metadata": "ui"}, "`metadata` is an object"),
        (recall, {"query": "x", "tiers": ["soup"]}, "`tiers` is a list, each item one of archival, core"),
        (recall, {"query": "x", "include_sensitive": "yes"}, "`include_sensitive` is true or false"),
        (recall, {"query": "x", "tags": ["a"] * 1_001}, "at most 1000 items"),
        (recall, {"query": "x" * 20_001}, "at most 20000 characters"),
        (recall, {"query": "a\ud800b"}, "well-formed Unicode"),
        (recall, {"query": "x", "purpose": "x` - at `$.nonesuch`"}, "`purpose` is one of act, answer, core"),
        (remember, {"text": "x", "confidence": float("nan")}, "`confidence` is a number from 0 to 1"),
        (remember, {"text": "x", "confidence": 10**400}, "`confidence` has at most 16 digits"),
    ],
)
def test_what_does_not_fit_is_reported_in_a_sentence(tool, given, sentence):
    with pytest.raises(InvalidInput) as fault:
        tool.checked_arguments(given)
    assert sentence in str(fault.value)


#: Arguments of `remember` that are for programs, not for models.
NOT_FOR_MODELS = {"category", "content_type", "blob", "stability", "access", "session", "speaker", "job", "aliases",
                  "vector", "if_version"}  # fmt: skip


def test_each_argument_of_remember_is_one_of_the_tool_or_named_here():
    known = {*remember.input_schema["properties"], *NOT_FOR_MODELS}
    missing = {each.name for each in OPERATIONS["remember"].arguments.values()} - known
    assert missing == set(), "add it to `RememberFields` in mcp/tools.py, or to NOT_FOR_MODELS in this test"


def test_null_counts_as_left_out():
    assert recall.checked_arguments({"query": "tea", "limit": None}) == {"query": "tea"}
