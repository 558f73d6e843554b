"""Candidates of the duplicate gate are found by small rows: a mark that was mixed with its place, and a position."""

import sqlite3
from contextlib import closing

import pytest
from filled import TENANT

from keepward.storage.store import open_store
from support import tamper
from support.factories import RecordFactory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.db"


@pytest.fixture
def store(path):
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def make():
    return RecordFactory()


def put(store, stage):
    with store.write() as writer:
        writer.append(TENANT, stage)


def likely(store, make, record):
    (found,) = store.duplicate_candidates(TENANT, [(record, make.features(record.text))], make.now)
    return list(found)


def test_equal_candidates_are_ordered_by_last_change(store, make):
    first, second = make.record("tea in cupboard 1"), make.record("tea in cupboard 2")
    put(store, make.stage(first, second))
    put(store, make.stage(make.revised(first, importance=0.9)))
    assert likely(store, make, make.record("tea in cupboard")) == [first.id, second.id]


def test_a_memory_is_not_among_its_own_candidates(store, make):
    first, second = make.record("tea in cupboard 1"), make.record("tea in cupboard 2")
    put(store, make.stage(first, second))
    assert likely(store, make, first) == [second.id]


def test_change_without_features_leaves_no_mark_at_the_old_position(store, path, make):
    first = make.record("tea in cupboard 1")
    put(store, make.stage(first))
    put(store, make.stage(make.revised(first, importance=0.9), features=(None,)))
    with closing(sqlite3.connect(path)) as connection:
        held = {row[0] for row in connection.execute("SELECT position FROM marks")}
    assert held == {2 << 20}


def test_labels_whose_record_is_missing_are_passed_over(store, path, make):
    first, second = make.record("tea in cupboard 1"), make.record("tea in cupboard 2")
    put(store, make.stage(first, second))
    tamper.delete(path, "records", where=f"id = '{first.id}'")
    assert likely(store, make, make.record("tea in cupboard")) == [second.id]


def test_reads_together_are_of_one_state_whatever_others_write_meanwhile(store, path, make):
    put(store, make.stage(make.record("tea in cupboard 1")))
    with open_store(path) as other, store.read_snapshot(TENANT):
        before = store.head(TENANT), store.tally(TENANT)
        put(other, make.stage(make.record("tea in cupboard 2")))
        assert (store.head(TENANT), store.tally(TENANT)) == before
    assert store.tally(TENANT) == {"archival": 2}


def test_reads_of_another_tenant_are_not_among_those_read_together(store, make):
    with store.read_snapshot(TENANT), store.write() as writer:
        writer.append("elsewhere", make.stage(make.record("tea in cupboard 1")))
    with store.read_snapshot(TENANT):
        assert store.tally("elsewhere") == {"archival": 1}


def test_read_after_a_failed_snapshot_sees_the_newest_state(store, make):
    with pytest.raises(KeyError), store.read_snapshot(TENANT):
        raise KeyError
    put(store, make.stage(make.record("tea in cupboard 1")))
    assert store.tally(TENANT) == {"archival": 1}
