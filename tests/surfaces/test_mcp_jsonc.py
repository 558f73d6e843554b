"""JSON with comments, edited in place: whatever the layout, only the one value comes and goes."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepward import InvalidInput
from keepward.mcp import jsonc, tomltext

PLACE = ("mcpServers", "keepward")
ENTRY = {"command": "k", "args": ["mcp", "é"]}

gaps = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // to the end {\n", ' /* "}{ */ '])
scalars = st.sampled_from(["1", "-2.5e3", "true", "null", '"a"', '"// no {"', '"\\u00e9\\""'])
keys = st.lists(st.sampled_from(["a", "b", "x y", 'q"q']), unique=True, max_size=3)


@st.composite
def written(draw, depth=0):
    """A value as somebody may have laid it out."""
    kind = draw(st.integers(0, 2)) if depth < 2 else 0
    if kind == 0:
        return draw(scalars)
    if kind == 1:
        parts = draw(st.lists(written(depth=depth + 1), max_size=2))
        shown, ends = [draw(gaps) + part + draw(gaps) for part in parts], "[]"
    else:
        shown, ends = [draw(member(key, depth)) for key in draw(keys)], "{}"
    trail = "," if shown and draw(st.booleans()) else ""
    return ends[0] + ",".join(shown) + trail + draw(gaps) + ends[1]


@st.composite
def member(draw, key, depth):
    return draw(gaps) + json.dumps(key) + draw(gaps) + ":" + draw(gaps) + draw(written(depth=depth + 1)) + draw(gaps)


@st.composite
def files(draw):
    """A client's settings, with servers or without."""
    parts = [draw(member(key, 0)) for key in draw(keys)]
    if draw(st.booleans()):
        inner = [draw(member(key, 1)) for key in draw(keys)]
        trail = "," if inner and draw(st.booleans()) else ""
        parts.append(f'{draw(gaps)}"mcpServers": {{{",".join(inner)}{trail}{draw(gaps)}}}{draw(gaps)}')
    trail = "," if parts and draw(st.booleans()) else ""
    return draw(gaps) + "{" + ",".join(parts) + trail + draw(gaps) + "}" + draw(gaps)


@settings(max_examples=60, deadline=None)
@given(files())
def test_what_is_put_is_there_and_everything_else_stays(text):
    meant = copy.deepcopy(jsonc.load(text))
    meant.setdefault("mcpServers", {})["keepward"] = ENTRY
    assert jsonc.load(jsonc.put(text, PLACE, ENTRY)) == meant


@settings(max_examples=60, deadline=None)
@given(files())
def test_what_was_put_can_be_taken_out_again(text):
    meant = jsonc.load(text)
    found = jsonc.load(jsonc.drop(jsonc.put(text, PLACE, ENTRY), PLACE))
    # An object that is empty after that goes too.
    assert found == {key: value for key, value in meant.items() if (key, value) != ("mcpServers", {})}


@settings(max_examples=60, deadline=None)
@given(files())
def test_no_comment_is_lost(text):
    after = jsonc.drop(jsonc.put(text, PLACE, ENTRY), PLACE)
    emptied = jsonc.load(text).get("mcpServers") == {}
    assert emptied or [after.count(mark) for mark in ("//", "/*")] == [text.count(mark) for mark in ("//", "/*")]


@pytest.mark.parametrize("text", ["{", "{]", '{"a" 1}', '{"a": 1, "a": 2}', "{} {}", "nothing", '{"a": 01}', "{" * 200])
def test_what_is_no_json_with_comments_is_refused(text):
    with pytest.raises(InvalidInput):
        jsonc.load(text)


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
    put = tomltext.put(text, ("mcp_servers", "keepward"), {**ENTRY, "env": {"HOME": "x\u007f"}})
    assert tomltext.drop(put, ("mcp_servers", "keepward")) == text
