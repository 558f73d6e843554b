"""Names of other systems come back as they went in, and no two become one."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from keepward.core.memory import CORE_BLOCKS
from keepward.core.principals import is_scope
from keepward.core.value import plain_key
from keepward.integrations.namespaces import (
    index_text,
    key_of,
    label_of,
    name_of,
    segment_of,
    texts_of,
    to_namespace,
    to_scope,
)

#: At most 45 bytes of UTF-8.
LABELS = st.text(max_size=11)


@given(LABELS)
@example("Екатерина Иванова")
@example("_..b")
@example("a" * 64)
def test_a_label_comes_back_from_its_segment(label: str) -> None:
    assert label_of(segment_of(label)) == label


@given(st.lists(LABELS, min_size=1, max_size=7))
def test_labels_come_back_from_a_scope(labels: list[str]) -> None:
    scope = to_scope("/app", labels)
    assert (is_scope(scope), to_namespace("/app", scope)) == (True, tuple(labels))


@given(st.text(max_size=40))
def test_a_name_comes_back_from_its_key(name: str) -> None:
    key = key_of(name)
    assert (name_of(key), plain_key(key)) == (name, key)


@given(st.text(max_size=10), st.text(max_size=10))
def test_two_names_have_two_keys(one: str, other: str) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


def test_no_name_takes_that_of_a_core_block() -> None:
    assert not {key_of(name) for name in CORE_BLOCKS} & {*CORE_BLOCKS}


def test_value_is_found_by_named_texts_and_numbers() -> None:
    value = {"text": "red\x00crane", "stars": 4, "tags": ["a", {"b": None, "c": True}]}
    assert index_text(texts_of(value), 100) == "red crane\nstars: 4\na\nc: True"
