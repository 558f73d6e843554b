"""Arguments of tools: what fits comes through, what does not is one plain sentence."""

from __future__ import annotations

import pytest

from keepward import InvalidInput
from keepward.mcp.arguments import checked
from keepward.mcp.graph import TOOLS
from keepward.mcp.tools_read import RECALL
from keepward.mcp.tools_write import REMEMBER, REVISE

CREATE = next(tool for tool in TOOLS if tool.name == "create_entities")


def test_arguments_that_fit_come_through():
    assert checked(RECALL, {"query": "tea", "limit": 5, "tags": ["a"]}) == {"query": "tea", "limit": 5, "tags": ["a"]}


def test_null_counts_as_left_out():
    assert checked(RECALL, {"query": "tea", "limit": None}) == {"query": "tea"}


def test_a_whole_number_may_be_written_with_a_point():
    assert checked(RECALL, {"query": "tea", "limit": 5.0})["limit"] == 5


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        (RECALL, {}, "recall needs `query`: what to look for"),
        (RECALL, {"query": 3}, "`query` is a text"),
        (RECALL, {"query": "x", "limit": 0}, "`limit` is a whole number from 1 to 50"),
        (RECALL, {"query": "x", "limit": 51}, "`limit` is a whole number from 1 to 50"),
        (RECALL, {"query": "x", "limit": 1.5}, "`limit` is a whole number from 1 to 50"),
        (RECALL, {"query": "x", "limit": "5"}, "`limit` is a whole number from 1 to 50"),
        (RECALL, {"query": "x", "limit": True}, "`limit` is a whole number from 1 to 50"),
        (RECALL, {"query": "x", "tags": "a"}, "`tags` is a list"),
        (RECALL, {"query": "x", "tags": [1]}, "each of `tags` is a text"),
        (RECALL, {"query": "x", "tiers": ["soup"]}, "each of `tiers` is one of core, working"),
        (RECALL, {"query": "x", "include_sensitive": "yes"}, "`include_sensitive` is true or false"),
        (RECALL, {"query": "x", "tags": ["a"] * 1_001}, "at most 1000 items"),
        (RECALL, {"query": "x" * 20_001}, "at most 20000 characters"),
        (RECALL, {"query": "a\0b"}, "well-formed Unicode"),
        (RECALL, {"query": "a\ud800b"}, "well-formed Unicode"),
        (REMEMBER, {"text": "x", "confidence": float("nan")}, "`confidence` is a number from 0 to 1"),
        (REMEMBER, {"text": "x", "confidence": float("inf")}, "`confidence` is a number from 0 to 1"),
        (REMEMBER, {"text": "x", "confidence": 10**400}, "`confidence` is a number from 0 to 1"),
        (REVISE, {"id": "x", "reason": "y", "if_version": 10**400}, "`if_version` is a whole number of at least 1"),
        (CREATE, {"entities": ["x"]}, "each of `entities` is an object with `name`"),
        (CREATE, {"entities": [{"name": "x"}]}, "each of `entities` needs `entityType`"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(tool, given, sentence):
    with pytest.raises(InvalidInput) as fault:
        checked(tool, given)
    assert sentence in str(fault.value)


def test_a_sentence_repeats_neither_name_nor_value_of_what_was_sent():
    with pytest.raises(InvalidInput) as fault:
        checked(CREATE, {"entities": [{"name": "x", "entityType": "y", "observations": [], "hunter2": "hunter3"}]})
    assert "hunter" not in str(fault.value)
