"""The stored content of a version has the fields of a record."""

from __future__ import annotations

from msgspec.structs import fields

from keepward.core.memory import MemoryFields, Record

#: Fields of a record that no filter, count or ranking of many memories reads.
ONLY_OF_A_RECORD = {"status", "access", "uses", "last_used", "children", "base_confidence", "base_importance"}


def test_stored_content_has_the_fields_of_a_record():
    named = {each.encode_name for each in fields(Record)}
    assert named - {each.encode_name for each in fields(MemoryFields)} == ONLY_OF_A_RECORD
    assert {each.encode_name for each in fields(MemoryFields)} <= named
