"""Profiles are made of sealed records and sealed features: what does not match its seal is not ranked by."""

from __future__ import annotations

import pytest
from filled import TENANT, opened

from keepward.ports.store import Features, IndexedMemory
from keepward.storage.rows import RecordRow, profile_of
from keepward.storage.seals import Sealer
from support import tamper


def _profiles(path) -> dict[str, IndexedMemory | None]:
    with opened(path) as store:
        return dict(store.profiles(TENANT, after=0))


@pytest.mark.parametrize("cell", ["seal = x'00'", "units = 9", "terms = x'0100'", "trait = x'00'"])
def test_damaged_features_leave_a_profile_without_them(path, cell):
    before = _profiles(path)
    tamper.edit(path, "features", cell)
    none = Features(terms=b"")
    left = {name: each and each._replace(features=none) for name, each in before.items()}
    assert {name: each and each._replace(features=none) for name, each in _profiles(path).items()} == left


@pytest.mark.parametrize("cell", ["scope = '/agents/x'", "trust = 1", "sensitivity = 'sensitive'", "body = x'7b7d'"])
def test_a_column_that_another_actor_changed_is_not_ranked_by(path, cell):
    tamper.edit(path, "records", cell, "status = 'active'")
    assert [each for each in _profiles(path).values() if each is not None] == []


def test_a_bond_of_another_memory_does_not_hold(path):
    before = _profiles(path)
    tamper.run(path, tamper.SWAPPED_SEALS)
    with opened(path) as store:
        assert {fault.check for fault in store.verify()[1]} == {"seals"}
    assert _profiles(path).keys() == before.keys()


def test_a_damaged_body_makes_no_profile_without_a_key():
    row = RecordRow(**{**dict.fromkeys(RecordRow._fields), "id": "m", "version": 1, "body": b"x", "seal": b""})
    assert profile_of(Sealer(None), TENANT, row, None) is None
