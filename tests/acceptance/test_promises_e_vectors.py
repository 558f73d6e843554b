"""Vectors are asked for once, kept small, and read while somebody writes."""

from __future__ import annotations

import sqlite3

import pytest

from keepward import Memory


@pytest.mark.promise("E4")
def test_recall_reports_search_by_meaning_and_words(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    assert mem.recall("kiln").used == ("text", "vector")


@pytest.mark.promise("E24")
def test_reader_can_read_during_a_write_transaction(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    writer = sqlite3.connect(mem.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert mem.recall("kiln")[0].memory.text == "The kiln is fired on Mondays"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
