"""Regular expressions are compiled when they are first used, and are then what `re` makes of them."""

import re

import pytest

from keepward.core.patterns import lazy_regex


def test_a_pattern_is_not_compiled_where_it_is_written():
    assert lazy_regex("(").pattern == "("


def test_a_mistake_is_reported_at_the_first_use():
    late = lazy_regex("(")
    with pytest.raises(re.error):
        late.search("text")


def test_a_pattern_searches_as_one_of_re_does():
    assert lazy_regex("B+", re.IGNORECASE).findall("abba b") == re.compile("B+", re.IGNORECASE).findall("abba b")
