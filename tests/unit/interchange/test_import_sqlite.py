"""SQLite files of other programs that are hostile, damaged or in use: a clear error, and nothing lost or run."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from keepward.errors import InvalidInput, StoreUnavailable
from keepward.interchange import load, sqlite_file
from keepward.interchange.parsing import open_source
from support import foreign

COLUMNS = "prefix text, key text, value text, expires_at text"
#: Minutes of work for SQLite that one function call does, so that nothing but the end of its process stops it.
SLOW = "instr(hex(zeroblob(1500000)), hex(zeroblob(750000)) || '1')"
ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    " SELECT 'a' AS prefix, '' || i AS key, '{}' AS value, NULL AS expires_at FROM n"
)
ROW = """INSERT INTO store (prefix, key, value) VALUES ('pier', 'a', '{"text": "The pier is closed"}')"""


def base_of(path, *statements):
    with closing(sqlite3.connect(path)) as base, base:
        for statement in statements:
            base.execute(statement)
    return path


def as_path(path):
    return path


def as_stream(path):
    return io.BytesIO(path.read_bytes())


def texts(mem):
    return {each.text for each in mem.list_memories(within="/", limit=None)}


@pytest.mark.parametrize("given", [as_path, as_stream])
@pytest.mark.parametrize("how", ["virtual", "stored"])
def test_generated_column_is_refused_and_not_computed(mem, tmp_path, how, given):
    path = tmp_path / "s.db"
    if how == "virtual":
        foreign.computed_store(path)
    else:
        base_of(path, f"CREATE TABLE store ({COLUMNS}, boom AS (key || 'x') STORED)", ROW)
    with pytest.raises(InvalidInput, match=r"table 'store' has the generated column 'boom'.*copy the other columns"):
        load(mem, given(path))
    assert texts(mem) == set()


def test_generated_column_of_another_table_is_not_read(mem, tmp_path):
    other = f"CREATE TABLE other (a, boom AS ({SLOW}) VIRTUAL)"
    path = base_of(tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", ROW, other)
    assert load(mem, path).quarantined == 1


@pytest.mark.parametrize("given", [as_path, as_stream])
def test_expressions_of_indexes_and_triggers_are_not_run(mem, tmp_path, given):
    path = base_of(
        tmp_path / "s.db",
        f"CREATE TABLE store ({COLUMNS}, CHECK (key <> 'b'))",
        ROW,
        "CREATE INDEX slow ON store (prefix, key, value, expires_at, key || prefix) WHERE prefix < 'z'",
        f"CREATE TRIGGER t AFTER INSERT ON store BEGIN SELECT {SLOW}; END",
    )
    assert load(mem, given(path)).quarantined == 1
    assert [step.after.text for each in mem.pending() for step in each.steps] == ["The pier is closed"]


@pytest.mark.parametrize("query", [ENDLESS, f"SELECT 'a' prefix, 'b' key, '{{}}' value, {SLOW} expires_at"])
@pytest.mark.parametrize("given", [as_path, as_stream])
def test_view_named_like_the_table_is_not_read(mem, tmp_path, query, given):
    path = base_of(tmp_path / "s.db", f"CREATE VIEW store AS {query}")
    with pytest.raises(InvalidInput, match=r"holds no store.*views and virtual tables are not read"):
        load(mem, given(path))


@pytest.mark.parametrize("named", ["auto", "langgraph"])
def test_view_that_claims_to_be_a_table_is_not_read(mem, tmp_path, named):
    path = base_of(tmp_path / "s.db", "CREATE TABLE store (x)", f"CREATE VIEW seen AS {ENDLESS}")
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA writable_schema=ON")
        base.execute("DELETE FROM sqlite_master WHERE name = 'store'")
        base.execute("UPDATE sqlite_master SET type = 'table', name = 'store', tbl_name = 'store'")
    with pytest.raises(InvalidInput):
        load(mem, path, format=named)
    # The name of a table, with the text of a view of this name elsewhere.
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA writable_schema=ON")
        text = f"CREATE VIEW store AS {ENDLESS}"
        base.execute("UPDATE sqlite_master SET type = 'view', name = 'other', tbl_name = 'other', sql = ?", [text])
        row = "INSERT INTO sqlite_master VALUES ('table', 'store', 'store', 2, 'CREATE TABLE plain (x)')"
        base.execute(row)
    with pytest.raises(InvalidInput):
        load(mem, path, format=named)
    assert texts(mem) == set()


def test_table_without_text_of_its_own_is_damage(mem, tmp_path):
    path = base_of(tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", ROW)
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA writable_schema=ON")
        base.execute("UPDATE sqlite_master SET sql = NULL")
    with pytest.raises(InvalidInput, match=r"s\.db"):
        load(mem, path)


@pytest.mark.parametrize("given", [as_path, as_stream])
def test_huge_cell_is_refused(mem, tmp_path, given):
    path = base_of(
        tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", "INSERT INTO store VALUES (1, 2, zeroblob(21000000), 3)"
    )
    with pytest.raises(InvalidInput, match=r"s\.db|stream") as told:
        load(mem, given(path))
    assert "a row of more than 20 MB" in str(told.value)


@pytest.mark.parametrize("given", [as_path, as_stream])
def test_damaged_pages_are_named(mem, tmp_path, given):
    path = base_of(tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", *[ROW] * 200)
    raw = bytearray(path.read_bytes())
    raw[4096 + 8 : 4096 + 200] = b"\xff" * 192
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match="is damaged"):
        load(mem, given(path))
    assert texts(mem) == set()


def test_text_that_is_not_utf8_is_named(mem, tmp_path):
    path = base_of(
        tmp_path / "s.db",
        f"CREATE TABLE store ({COLUMNS})",
        "INSERT INTO store VALUES ('a', CAST(x'ff' AS text), '{}', NULL)",
    )
    with pytest.raises(InvalidInput, match=r"s\.db .*its text is not UTF-8"):
        load(mem, path)


def test_locked_file_is_named(mem, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "_LOCK_TIMEOUT_S", 0.0)
    path = base_of(tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", ROW)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InvalidInput, match=r"s\.db is locked by another program; close that"):
            load(mem, path)
    assert load(mem, path).quarantined == 1


def test_file_of_a_program_that_was_killed_is_named(mem, tmp_path):
    path = base_of(tmp_path / "s.db", f"CREATE TABLE store ({COLUMNS})", ROW)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size=1")
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO store VALUES ('a', ?, '{}', NULL)", [("x" * 3000,)] * 50)
        shutil.copy(path, tmp_path / "t.db")
        shutil.copy(f"{path}-journal", tmp_path / "t.db-journal")
    with pytest.raises(InvalidInput, match=r"t\.db has changes that were never finished"):
        load(mem, tmp_path / "t.db")


def test_file_with_a_log_is_read_with_its_newest_rows(mem, tmp_path):
    path = base_of(tmp_path / "s.db", "PRAGMA journal_mode=WAL", f"CREATE TABLE store ({COLUMNS})")
    with closing(sqlite3.connect(path)) as writer:
        with writer:
            writer.execute(ROW)
        assert load(mem, path).quarantined == 1


def test_named_pipe_that_nobody_writes_is_not_waited_for(mem, tmp_path):
    os.mkfifo(tmp_path / "s.db")
    with pytest.raises(InvalidInput, match=r"s\.db is empty"):
        load(mem, tmp_path / "s.db")


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


TABLES = """print('{"store": {}}', flush=True)\n"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("import time; time.sleep(600)", "took too long to be read"),
        (TABLES + "import time; time.sleep(600)", "took too long to be read"),
        ("", "ended the process that reads it"),
        (TABLES, "ended the process that reads it"),
        (TABLES + "while True: print('x' * 100_000, end='')", "a row of more than 1 MB"),
        (TABLES + "while True: print('[]' + ' ' * 10_000)", "rows of more than 2 MB"),
    ],
)
def test_process_is_bounded_from_outside(tmp_path, monkeypatch, text, cause):
    foreign.langgraph_store(tmp_path / "s.db", [])
    monkeypatch.setattr(sqlite_file, "_PROGRAM", program(tmp_path, text))
    monkeypatch.setattr(sqlite_file, "_TIMEOUT_S", 0.3 if "sleep" in text else 600.0)
    monkeypatch.setattr(sqlite_file, "ROW_LIMIT", 1_000_000)
    monkeypatch.setattr(sqlite_file, "TOTAL_LIMIT", 2_000_000)
    with open_source(tmp_path / "s.db") as source, pytest.raises(InvalidInput, match=f"s.db.*{cause}"):
        list(sqlite_file.rows_in(source, (), "store"))


def test_process_ends_with_its_parent(tmp_path):
    foreign.langgraph_store(tmp_path / "s.db", [("a", str(n), {"text": "y" * 1_000}, None) for n in range(500)])
    request = {"database": (tmp_path / "s.db").as_uri(), "bytes": 0, "row_limit": 10**6, "timeout": 0}
    command = [sys.executable, "-I", "-S", str(sqlite_file._PROGRAM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(json.dumps(request).encode() + b'\n"store"\n')
        process.stdin.flush()
        assert b'"prefix"' in process.stdout.readline()
        # No reader takes the rows, so the process waits to write them when its input ends.
        process.stdin.close()
        assert process.wait(60) == 0


def test_rows_that_are_left_leave_no_process(tmp_path, monkeypatch):
    started = []
    usual = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(usual(*a, **k)) or started[-1])
    foreign.langgraph_store(tmp_path / "s.db", [("a", str(n), {"text": "y" * 1_000}, None) for n in range(500)])
    with open_source(tmp_path / "s.db") as source:
        rows = sqlite_file.rows_in(source, ("prefix",), "store")
        assert next(rows)["key"] == "0"
        rows.close()
    assert [process.returncode is None for process in started] == [False]


def test_program_without_python_says_so(mem, tmp_path, monkeypatch):
    foreign.langgraph_store(tmp_path / "s.db", [])
    monkeypatch.setattr(sys, "executable", None)
    with pytest.raises(StoreUnavailable, match=r"no process can be started to read s\.db"):
        load(mem, tmp_path / "s.db")
