"""What verification reads of a payload equals what the record says; a fingerprint tells any two lists of rows apart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keepward.stores.sqlite.contents import Content, content_of
from keepward.stores.sqlite.fingerprint import Fingerprint

from keepward.errors import Tampered
from keepward.model.codec import decode_record, encode_record
from support.strategies import records

NAMES = [
    *("access", "aliases", "author", "blob", "confidence", "content_type", "created_at", "derived_from", "evidence"),
    *("expires_at", "id", "importance", "key", "kind", "metadata", "occurred_at", "other", "reinforced_at", "scope"),
    *("sensitivity", "source", "stability", "status", "tags", "text", "tier", "trust", "updated_at", "v", "version"),
]
VALUES = [None, True, 0, -1, 2, 10_001, 2**53, 2**60, 1e9, "", "core", "owner", "active", [], ["a"], {}, 10**16]
ROWS = [(n * 7919 - 2**62, n % 5) for n in range(300)]


def told(read, payload):
    """Return what is read, or what kind of fault it is."""
    try:
        return read(payload)
    except Exception as fault:
        return type(fault)


@given(records)
@settings(max_examples=60)
def test_a_payload_says_what_its_record_says(record):
    assert content_of(encode_record(record)) == Content.of(record)


@given(records, st.sampled_from(NAMES), st.sampled_from(VALUES))
@settings(max_examples=200)
def test_a_payload_with_a_strange_value_is_read_as_records_are(record, name, value):
    payload = json.dumps(json.loads(encode_record(record)) | {name: value}).encode()
    assert told(content_of, payload) == told(lambda raw: Content.of(decode_record(raw)), payload)


@given(records, st.sampled_from(NAMES))
@settings(max_examples=100)
def test_a_payload_without_a_field_is_read_as_records_are(record, name):
    fields = json.loads(encode_record(record))
    fields.pop(name, None)
    payload = json.dumps(fields).encode()
    assert told(content_of, payload) == told(lambda raw: Content.of(decode_record(raw)), payload)


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b"7", b"{", b"\xff", b'{"v":1}'])
def test_what_is_no_payload_is_refused(payload):
    with pytest.raises(Tampered):
        content_of(payload)


def sum_of(rows, key=b"", by=50):
    found = Fingerprint(key)
    for start in range(0, len(rows), by):
        part = np.array(rows[start : start + by], dtype=np.int64)
        found.add(np.ascontiguousarray(part[:, 0]), np.ascontiguousarray(part[:, 1]))
    return found


def test_a_fingerprint_does_not_depend_on_order_and_grouping():
    assert sum_of(ROWS) == sum_of(ROWS[::-1], by=7)


@pytest.mark.parametrize(
    "other",
    [ROWS[1:], [*ROWS, ROWS[0]], [(ROWS[0][0], 9), *ROWS[1:]], [(ROWS[0][0], 1), (ROWS[1][0], 0), *ROWS[2:]]],
    ids=["one less", "one more", "one changed", "two exchanged"],
)
def test_other_rows_have_another_fingerprint(other):
    assert sum_of(ROWS) != sum_of(other)


def test_a_fingerprint_depends_on_its_key():
    assert sum_of(ROWS, b"k" * 16) != sum_of(ROWS, b"l" * 16)


def test_a_row_is_hashed_as_the_authors_of_siphash_publish():
    # Vector 16 of the reference implementation: key and message are the bytes 0, 1, 2, ...
    low, high = np.arange(16, dtype=np.uint8).view("<i8").astype(np.int64).reshape(2, 1)
    found = Fingerprint(bytes(range(16)))
    found.add(low, high)
    assert found.total == 0x3F2ACC7F57C29BDB
