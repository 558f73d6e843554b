"""Settings of other programs: whatever the layout, only the one table comes and goes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepward import InvalidInput
from keepward.mcp.connect import delete_key, load, set_key

PLACE = ("mcpServers", "keepward")
ENTRY = {"command": "k", "args": ["mcp", "é"]}

gaps = st.sampled_from(["", " ", "\n", "\n  ", "\t", "\r\n"])
keys = st.lists(st.sampled_from(["a", "b", "x y", 'q"q']), unique=True, max_size=3)
scalars = st.sampled_from(["1", "-2.5e3", "true", "null", '"a"', '"// no {"', '"\\u00e9\\""'])


@st.composite
def lists(draw, inner):
    parts = draw(st.lists(inner, max_size=2))
    return "[" + ",".join(draw(gaps) + part for part in parts) + draw(gaps) + "]"


@st.composite
def objects(draw, inner, more=()):
    """An object as somebody may have laid it out."""
    members = [(json.dumps(key), draw(inner)) for key in draw(keys)] + list(more)
    shown = [draw(gaps) + key + draw(gaps) + ":" + draw(gaps) + value + draw(gaps) for key, value in members]
    return "{" + ",".join(shown) + ("" if shown else draw(gaps)) + "}"


values = st.recursive(scalars, lambda inner: st.one_of(lists(inner), objects(inner)), max_leaves=6)


@st.composite
def files(draw):
    """A client's settings, with servers or without."""
    servers = [('"mcpServers"', draw(objects(values)))] if draw(st.booleans()) else []
    return draw(gaps) + draw(objects(values, servers)) + draw(gaps)


@settings(max_examples=40, deadline=None)
@given(files())
def test_what_is_put_is_there_and_everything_else_stays(text):
    meant = json.loads(text)
    meant.setdefault("mcpServers", {})["keepward"] = ENTRY
    assert json.loads(set_key(text, PLACE, ENTRY, toml=False)) == meant


@settings(max_examples=40, deadline=None)
@given(files())
def test_entry_that_was_put_can_be_dropped(text):
    there = json.loads(text)
    after = delete_key(set_key(text, PLACE, ENTRY, toml=False), PLACE, toml=False)
    assert json.loads(after) == {key: value for key, value in there.items() if (key, value) != ("mcpServers", {})}


@pytest.mark.parametrize(
    "text", ["{", "{]", '{"a" 1}', '{"a": 1, "a": 2}', "{} {}", "nothing", '{"a": 01}', "[]", "{} /* x", "{" * 200]
)
def test_what_is_no_plain_object_is_refused(text):
    with pytest.raises(InvalidInput):
        load(text, toml=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '# mine\nmodel = "x"\n',
        "[mcp_servers]\n",
        '[mcp_servers.other]\ncommand = "y" # keep\nargs = [\n  "a",\n]\n\n[mcp_servers.other.env]\nA = "b"\n',
        "[[many]]\nz = 1\n",
        "x = 1\r\n\r\n[tui]\r\ny = 2\r\n",
    ],
)
def test_a_table_that_was_put_can_be_taken_out_again(text):
    place = ("mcp_servers", "keepward")
    there = set_key(text, place, {**ENTRY, "env": {"HOME": "x\u007f"}}, toml=True)
    assert delete_key(there, place, toml=True) == text
