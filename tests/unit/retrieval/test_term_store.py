"""The postings of a tenant: what holds a term."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keepward.retrieval.inverted_index import InvertedIndex
from keepward.retrieval.tokenizer import pack, term_hash

WORDS = st.lists(st.sampled_from(["tea", "harbour", "piano", "garden"]), max_size=4)


def filled(*groups: list[list[str]]) -> InvertedIndex:
    """Rows added group by group, read after each, so that they stand in several segments."""
    store, row = InvertedIndex(), 0
    for texts in groups:
        store.extend(row, [pack(words) for words in texts])
        store.postings(0)
        row += len(texts)
    return store


@given(st.lists(st.lists(WORDS, min_size=1, max_size=40), min_size=1, max_size=5))
def test_rows_with_a_term_are_those_of_its_postings(groups: list[list[list[str]]]) -> None:
    store = filled(*groups)
    rows = np.arange(sum(map(len, groups)), dtype=np.intp)
    for word in ("tea", "harbour", "zeppelin"):
        assert store.count(term_hash(word)) == len(store.postings(term_hash(word))[0])
        assert np.array_equal(
            store.holding(rows, [term_hash(word)])[0], np.isin(rows, store.postings(term_hash(word))[0])
        )


def test_nothing_holds_a_term_where_everything_was_removed() -> None:
    store = filled([["tea"], ["harbour"]])
    store.renumber(np.array([-1, -1], dtype=np.int32))
    assert not store.holding(np.array([0, 5], dtype=np.intp), [term_hash("tea")]).any()
