"""A store in a PostgreSQL database, from the command line: named like a file, moved to and from one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from keepward import Actor, Memory
from keepward.locations import DatabaseUrl
from support import tamper
from support.database import NEWEST, OLDEST, Server, Servers, as_superuser

pytestmark = pytest.mark.slow


@pytest.fixture(params=[NEWEST, OLDEST])
def postgres(request: pytest.FixtureRequest, servers: Servers) -> Server:
    return servers[request.param]


@pytest.fixture
def address(new_database: str) -> str:
    """Return the address of a new, empty database of the test's own."""
    return new_database


def heads(run, store: str) -> list[str]:
    return [run("status", "--db", store, "--tenant", name, "--json").json["head"] for name in ("default", "other")]


@pytest.fixture
def filled(run, tmp_path) -> str:
    """A file with two tenants, a waiting proposal, a token and a picture."""
    store = str(tmp_path / "old.db")
    (tmp_path / "note.txt").write_text("The oven runs at 230 degrees")
    run("remember", "Ana prefers tabs", "--db", store, "--as", "operator")
    run("remember", "Ship the app before Easter", "--tier", "core", "--key", "mission", "--db", store, "--json")
    run("remember", "See the note", "--file", "note.txt", "--db", store, "--as", "operator")
    run("remember", "The harbour closes at ten", "--db", store, "--tenant", "other", "--as", "operator")
    run("token", "create", "--name", "orion", "--db", store)
    return store


@pytest.mark.promise("D44")
def test_a_database_is_named_where_a_file_is(run, address):
    first = run("init", "--db", address)
    run("remember", "Ana prefers tabs", "--db", address, "--as", "operator")
    found = run("recall", "tabs", "--db", address)
    assert (first.code, run("verify", "--db", address).code, "Ana prefers tabs" in found.out) == (0, 0, True)


def test_a_database_without_pgvector_names_it_where_candidates_are_asked_for(run, address, tmp_path, monkeypatch):
    import psycopg

    with psycopg.connect(as_superuser(address), autocommit=True) as connection:
        connection.execute("DROP EXTENSION IF EXISTS vector")
    run("init", "--db", address)
    run("remember", "Ana prefers tabs", "--db", address, "--as", "operator")
    assert (run("verify", "--db", address).code, run("reindex", "--db", address).code) == (0, 0)
    (tmp_path / "asking.toml").write_text('[policy]\ncandidates = "database"\n')
    monkeypatch.setenv("KEEPWARD_CONFIG", str(tmp_path / "asking.toml"))
    asked, found = run("reindex", "--db", address), run("recall", "tabs", "--db", address)
    assert (asked.code, asked.err.count("\n"), "pgvector" in asked.err) == (8, 1, True)
    assert "Ana prefers tabs" in found.out


def test_a_read_makes_no_store_in_a_database(run, address):
    ran = run("recall", "tabs", "--db", address)
    assert (ran.code, "keepward init" in ran.err, DatabaseUrl(address).exists()) == (8, True, False)


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://ana:geheim@127.0.0.1:1/kept",
        "postgresql://ana:geheim@[::1]:1/kept",
        "postgresql://ana:geheim@nowhere.invalid/kept",
    ],
)
def test_unreachable_database_is_one_line_without_the_password(run, bad):
    ran = run("remember", "Ana prefers tabs", "--db", bad)
    assert (ran.code, ran.err.count("\n"), "geheim" in ran.err + ran.out) == (8, 1, False)


def test_an_address_that_cannot_be_read_is_shown_by_example(run):
    ran = run("remember", "Ana prefers tabs", "--db", "postgresql://ana@127.0.0.1/kept?no_such_option=1")
    assert (ran.code, "looks like postgresql://ana@host/name" in ran.err, ran.err.count("\n")) == (2, True, 1)


def test_without_the_driver_it_says_what_to_install(run, monkeypatch):
    monkeypatch.delitem(sys.modules, "keepward.storage.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = run("remember", "Ana prefers tabs", "--db", "postgresql://ana@host/kept")
    assert (ran.code, "keepward[postgres]" in ran.err, ran.err.count("\n")) == (8, True, 1)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:geheim@host/kept",
        "postgres://ana@host/kept?password=geheim",
        "postgresql://host/kept?user=ana&password=geheim&sslmode=require",
        "postgresql://ana:geheim@[bad",
    ],
)
def test_an_address_is_shown_without_its_password(url):
    assert "geheim" not in str(DatabaseUrl(url))


def test_no_password_is_written_into_the_settings_of_a_client(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    ran = run("connect", "claude", "--no-token", "--db", "postgresql://ana:geheim@127.0.0.1/kept")
    assert (ran.code, [each for each in tmp_path.rglob("*") if each.is_file() and "geheim" in each.read_text()]) == (
        2,
        [],
    )


def test_bytes_of_a_blob_are_stored_in_the_database(run, address, tmp_path):
    (tmp_path / "note.txt").write_text("The oven runs at 230 degrees")
    said = run("remember", "See the note", "--file", "note.txt", "--as", "operator", "--db", address, "--json").json
    with Memory.open(address, embedder=None, actor=Actor.operator(), config_dir=tmp_path / "home") as mem:
        assert mem.read_blob(mem.get(said["id"]).blob) == b"The oven runs at 230 degrees"
    assert list(tmp_path.rglob("*.blobs")) == []


def test_a_copy_of_a_database_is_for_its_own_tools(run, address, tmp_path):
    run("init", "--db", address)
    ran = run("backup", "copy.db", "--db", address)
    assert (ran.code, "pg_dump" in ran.err, (tmp_path / "copy.db").exists()) == (8, True, False)


def everything(address: str) -> dict[str, list[str]]:
    """Return all rows of all tables, by schema and table."""
    import psycopg

    with psycopg.connect(as_superuser(address), autocommit=True) as db:
        names = db.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information)'"
        ).fetchall()
        return {name: sorted(map(str, db.execute(f"TABLE {name}".encode()))) for (name,) in names}


def test_a_second_server_writes_with_the_exported_key(run, address, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPWARD_PASSPHRASE", "a harbour in the sun")
    run("remember", "Ana prefers tabs", "--db", address, "--as", "operator")
    made = run("key", "export", "home.key", "--db", address)
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "second"))
    before = run("remember", "Written without the key", "--db", address, "--as", "operator")
    taken = run("key", "import", "home.key")
    there = run("remember", "Bo prefers spaces", "--db", address, "--as", "operator")
    assert (made.code, before.code, taken.code, there.code) == (0, 8, 0, 0)
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    here = run("remember", "Cy prefers neither", "--db", address, "--as", "operator")
    assert (here.code, run("verify", "--db", address).code) == (0, 0)
    assert "Bo prefers spaces" in run("recall", "spaces", "--db", address).out


@pytest.mark.parametrize(
    "command",
    [
        ("backup", "ADDRESS", "--db", "old.db"),
        ("store", "recover", "ADDRESS", "new.db"),
        ("store", "recover", "old.db", "ADDRESS"),
        ("restore-backup", "old.db", "--to", "ADDRESS"),
        ("restore-backup", "ADDRESS", "--to", "new.db"),
        ("key", "export", "ADDRESS", "--db", "old.db"),
        ("key", "import", "ADDRESS"),
    ],
    ids=" ".join,
)
def test_what_takes_a_file_refuses_the_address_of_a_database(run, tmp_path, monkeypatch, command):
    monkeypatch.setenv("KEEPWARD_PASSPHRASE", "a harbour in the sun")
    run("remember", "Ana prefers tabs", "--db", "old.db", "--as", "operator")
    before = sorted(tmp_path.iterdir())
    address = "postgresql://ana@127.0.0.1:1/kept"
    ran = run(*(address if word == "ADDRESS" else word for word in command))
    assert (ran.code, "address of a database" in ran.err, sorted(tmp_path.iterdir())) == (2, True, before)


@pytest.mark.slow
def test_every_defence_fires_on_a_database_copy(run, address):
    run("remember", "Ana prefers tabs", "--db", address, "--as", "operator")
    run("remember", "Ship the app", "--tier", "core", "--key", "mission", "--db", address)
    before = everything(address)
    ran = run("drill", "--db", address, "--json")
    assert {each["status"] for each in ran.json["checks"]} == {"fired"}
    assert (ran.code, everything(address)) == (0, before)


def test_drill_without_schema_rights_names_the_missing_right(run, address):
    import psycopg

    run("init", "--db", address)
    with psycopg.connect(as_superuser(address), autocommit=True) as db:
        name = db.info.dbname.encode()
        db.execute(b"CREATE ROLE " + name + b" LOGIN")
        db.execute(b"GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + name)
        ran = run("drill", "--db", address.replace("//keepward@", f"//{db.info.dbname}@"))
        db.execute(b"DROP OWNED BY " + name)
        db.execute(b"DROP ROLE " + name)
    assert (ran.code, "GRANT CREATE ON DATABASE" in ran.err) == (8, True)


@pytest.mark.promise("D11")
def test_store_moves_to_a_database_and_back_with_heads(run, filled, address, tmp_path):
    there = run("store", "migrate", "--to", address, "--db", filled)
    back = run("store", "migrate", "--to", str(tmp_path / "new.db"), "--db", address)
    assert (there.code, back.code) == (0, 0)
    assert heads(run, filled) == heads(run, address) == heads(run, str(tmp_path / "new.db"))
    exported = [run("export", "--db", each).out for each in (filled, address, str(tmp_path / "new.db"))]
    assert (exported[0].count("\n") > 1, exported[1:]) == (True, exported[:1] * 2)


def test_what_was_moved_holds_and_answers_as_before(run, filled, address):
    run("store", "migrate", "--to", address, "--db", filled)
    checked = run("verify", "--db", address, "--json").json
    asked = [run("recall", "tabs", "--db", each, "--json").json["hits"] for each in (filled, address)]
    assert (checked["ok"], checked["checked"]["blob_files"]) == (True, 1)
    assert (
        [each["memory"]["text"] for each in asked[0]]
        == [each["memory"]["text"] for each in asked[1]]
        == ["Ana prefers tabs"]
    )


def test_the_queue_and_the_tokens_come_along(run, filled, address):
    run("store", "migrate", "--to", address, "--db", filled)
    waiting = run("pending", "--db", address, "--json").json["items"]
    tokens = run("token", "list", "--db", address, "--json").json["tokens"]
    assert (len(waiting), "orion" in [each["name"] for each in tokens]) == (1, True)


def test_a_move_again_brings_what_was_written_since(run, filled, address):
    run("store", "migrate", "--to", address, "--db", filled)
    run("remember", "Bo prefers spaces", "--db", filled, "--as", "operator")
    again = run("store", "migrate", "--to", address, "--db", filled, "--json").json
    assert [each["carried"] for each in again["tenants"]] == [True, False]
    assert heads(run, filled) == heads(run, address)


def test_what_was_written_there_since_is_never_written_over(run, filled, address):
    run("store", "migrate", "--to", address, "--db", filled)
    run("remember", "Written there", "--db", address, "--as", "operator")
    run("remember", "Written here", "--db", filled, "--as", "operator")
    ran = run("store", "migrate", "--to", address, "--db", filled)
    assert (ran.code, "Written there" in run("list", "--db", address).out) == (4, True)


def test_a_store_that_does_not_hold_is_not_moved(run, filled, address):
    tamper.edit(filled, "events", "payload = x'7b7d'", "tenant = 'other'")
    ran = run("store", "migrate", "--to", address, "--db", filled)
    assert (ran.code, "verify" in ran.err, DatabaseUrl(address).exists()) == (8, True, False)


def test_a_third_move_brings_what_was_written_since_the_second(run, filled, address):
    for text in ("Bo prefers spaces", "Cy prefers neither"):
        run("store", "migrate", "--to", address, "--db", filled)
        run("remember", text, "--db", filled, "--tenant", "other", "--as", "operator")
    again = run("store", "migrate", "--to", address, "--db", filled, "--json").json
    assert [each["carried"] for each in again["tenants"]] == [False, True]
    assert heads(run, filled) == heads(run, address)


MOVE_UNTIL_KILLED = """
import os, sys
from keepward import Actor, Memory
mem = Memory.open(sys.argv[1], embedder=None, actor=Actor.operator(), config_dir=sys.argv[3])
mem.move_store(sys.argv[2], on_progress=lambda done, steps: os.kill(os.getpid(), 9) if done == 1 else None)
"""


@pytest.mark.slow
def test_a_move_that_was_killed_goes_on(run, filled, address, tmp_path):
    command = [sys.executable, "-c", MOVE_UNTIL_KILLED, filled, address, str(tmp_path / "home")]
    killed = subprocess.run(command, capture_output=True, check=False).returncode
    again = run("store", "migrate", "--to", address, "--db", filled, "--json").json
    assert (killed, [each["carried"] for each in again["tenants"]]) == (-9, [False, True])
    assert (heads(run, filled), json.loads(run("verify", "--db", address, "--json").out)["ok"]) == (
        heads(run, address),
        True,
    )


@pytest.mark.parametrize("to_file", [False, True])
def test_half_a_move_is_opened_by_the_next_move_alone(run, filled, address, tmp_path, to_file):
    place = str(tmp_path / "half.db") if to_file else address
    command = [sys.executable, "-c", MOVE_UNTIL_KILLED, filled, place, str(tmp_path / "home")]
    subprocess.run(command, capture_output=True, check=False)
    run("remember", "Another store", "--db", "another.db", "--as", "operator")
    commands = (
        ("remember", "Bo prefers spaces", "--as", "operator"),
        *(("recall", "tabs"), ("status",), ("verify",), ("adopt",), ("export", "half.jsonl"), ("jobs",), ("doctor",)),
    )
    refused = [run(*each, "--db", place) for each in commands]
    assert [("half a copy" in each.out + each.err, each.code != 0) for each in refused] == [(True, True)] * len(refused)
    other = run("store", "migrate", "--to", place, "--db", "another.db")
    assert (other.code, "interrupted" in other.err) == (4, True)
    assert run("store", "migrate", "--to", place, "--db", filled).code == 0
    assert (run("verify", "--db", place).code, heads(run, place)) == (0, heads(run, filled))


def test_a_refused_move_leaves_the_other_store_in_use(run, filled, address):
    run("remember", "Written there", "--db", address, "--as", "operator")
    assert run("store", "migrate", "--to", address, "--db", filled).code == 4
    assert run("status", "--db", address).code == 0


def test_a_move_of_many_rows_reports_each_thousand(address, tmp_path):
    given = {"embedder": None, "actor": Actor.operator("ana"), "config_dir": tmp_path / "home"}
    with Memory.open(tmp_path / "many.db", **given) as memory:
        memory.remember_many([f"The crate {n} went to the shed of house {n * 7}" for n in range(1_500)])
        told = []
        memory.move_store(address, on_progress=lambda done, steps: told.append((done, steps)))
    assert (len(told) > 4, told == sorted(told), told[-1][0]) == (True, True, told[-1][1])
