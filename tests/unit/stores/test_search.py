"""Profiles: sealed together with their records, so that ranking need not read the journal, and never believed bare."""

from __future__ import annotations

import pytest
from filled import TENANT, opened

from keepward.ports.store import Profile
from keepward.store import reads
from keepward.store.rows import profile_of
from keepward.store.seals import Sealer
from support import tamper


def _profiles(path) -> dict[str, Profile | None]:
    with opened(path) as store:
        return dict(store.profiles(TENANT, after=0))


@pytest.mark.parametrize("cell", ["seal = x'00'", "facts = x'00'", "terms = x'0100'", "trait = x'00'"])
def test_a_profile_whose_bond_is_broken_is_made_from_the_memory_itself(path, cell):
    before = _profiles(path)
    tamper.edit(path, "records", cell)
    plain = {"terms": b"", "vector_model": None, "units": None}
    kept = {name: each and each._replace(**plain) for name, each in before.items()}
    assert {name: each and each._replace(**plain) for name, each in _profiles(path).items()} == kept


@pytest.mark.parametrize("cell", ["scope = '/agents/x'", "trust = 1", "sensitivity = 'sensitive'", "importance = 1"])
def test_a_column_that_somebody_changed_is_not_ranked_by(path, cell):
    tamper.edit(path, "records", cell, "status = 'active'")
    assert [each for each in _profiles(path).values() if each is not None] == []


def test_a_bond_of_another_memory_does_not_hold(path):
    before = _profiles(path)
    tamper.run(path, tamper.SWAPPED_SEALS)
    with opened(path) as store:
        assert {fault.check for fault in store.verify()[1]} == {"seals"}
    assert _profiles(path).keys() == before.keys()


def test_profiles_whose_bonds_hold_are_not_read_from_the_journal(path, monkeypatch):
    before = _profiles(path)
    monkeypatch.setattr(reads, "_profile", None)
    assert _profiles(path) == before


def test_bonds_hold_after_the_store_was_adopted(path, monkeypatch):
    with opened(path) as store:
        before = dict(store.profiles(TENANT, after=0))
        store.adopt("accepted")
        monkeypatch.setattr(reads, "_profile", None)
        assert dict(store.profiles(TENANT, after=0)) == before


def test_damaged_facts_in_a_store_without_a_key_make_no_profile():
    row = ("m", 1, 1, 0, 8, 8, "active", *[None] * 18, 1, b"x", None, 0, b"", b"", b"", b"", b"", b"")
    assert profile_of(Sealer(None), TENANT, row) is None
