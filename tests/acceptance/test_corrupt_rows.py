"""A memory that was edited or taken away in the file is told by every read that meets it.

A read meets what it returns and what its index names. A handle counts the memories before its first read, and a context
those of core memory. What no read meets is named by ``verify`` and by the daily audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from outcomes import committed_record
from starlette.testclient import TestClient

from keepward import Client, Memory, Tampered
from keepward.cli.main import main
from keepward.http import ServerOptions, create_app
from keepward.mcp import tools
from keepward.storage.driver import SqliteConnection
from keepward.storage.seals import Sealer
from support import tamper

BASE = "http://127.0.0.1:8321"


def by_hand(path: Path, memory_id: str, statements: list[str]) -> None:
    tamper.run(path, *(statement.format(memory_id) for statement in statements))


@pytest.fixture
def victim(mem: Memory) -> str:
    """The id of a memory among others, all of them looked at once."""
    for n in range(3):
        committed_record(mem.remember(f"The ferry number {n} crosses the sound", tier="archival"))
    record = committed_record(mem.remember("Ana prefers tabs for indentation", tier="archival"))
    assert mem.list_memories(min_importance=0.2).withheld == mem.recall("indentation").withheld == ()
    return record.id


@pytest.fixture(params=tamper.HIDDEN.values(), ids=tamper.HIDDEN.keys())
def edited(request: pytest.FixtureRequest, victim: str, path: Path) -> str:
    """The id of the memory, once somebody was in the file; the handle stays open."""
    by_hand(path, victim, request.param)
    return victim


def surely(notes: Any, name: str) -> None:
    told = " ".join(notes)
    assert name in told
    assert "`keepward verify`" in told


@pytest.fixture
def anew(path: Path, tmp_path: Path, clock: Any) -> Iterator[Callable[[], Memory]]:
    """Opens the store once more, as an agent."""
    with ExitStack() as handles:
        given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
        yield lambda: handles.enter_context(Memory.open(path, **given))


@pytest.fixture(params=["the handle that was open", "one opened anew"])
def reader(request: pytest.FixtureRequest, edited: str, mem: Memory, anew: Callable[[], Memory]) -> Memory:
    return mem if request.param == "the handle that was open" else anew()


def test_recall_names_it(reader: Memory, edited: str) -> None:
    found = reader.recall("indentation", min_importance=0.2)
    assert edited in found.withheld
    surely(found.notes, edited)


@pytest.mark.parametrize("edited", tamper.COUNTED.values(), ids=tamper.COUNTED.keys(), indirect=True)
def test_first_list_of_a_handle_names_it(edited: str, anew: Callable[[], Memory]) -> None:
    found = anew().list_memories(min_importance=0.2)
    assert edited in found.withheld
    surely(found.notes, edited)


def test_a_list_names_what_it_would_return(mem: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, [tamper.BENT_BODY])
    found = mem.list_memories()
    assert found.withheld == (victim,)
    surely(found.notes, victim)


def test_verification_and_the_audit_name_it(owner: Memory, edited: str) -> None:
    rows = {fault.row for fault in owner.verify().faults}
    assert f"records default/{edited}" in rows
    assert dict(owner.run_job("integrity_audit", force=True).counts)["faults"] > 0


def test_a_context_names_it(reader: Memory, edited: str) -> None:
    found = reader.context("indentation")
    assert edited in found.withheld
    surely(found.notes, edited)


def test_a_memory_block_names_it(reader: Memory, edited: str) -> None:
    assert edited in reader.memory_block("indentation").withheld


def test_asking_for_a_corrupt_memory_by_id_names_it(reader: Memory, edited: str) -> None:
    with pytest.raises(Tampered, match=edited):
        reader.get(edited)


def test_filter_that_excludes_a_corrupt_memory_omits_it(mem: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, tamper.HIDDEN["a status set to archived"])
    assert mem.list_memories(tags=["boats"]).withheld == ()


def test_another_scope_hears_nothing_of_it(mem: Memory, victim: str, path: Path, anew: Callable[[], Memory]) -> None:
    lent = committed_record(mem.at(scope="/agents/orion").remember("Orion keeps a log", tier="archival"))
    by_hand(path, lent.id, tamper.HIDDEN["all derived rows gone"])
    assert (
        anew().at(scope="/agents/vega").list_memories().withheld,
        anew().at(scope="/agents/orion").list_memories().withheld,
    ) == (
        (),
        (lent.id,),
    )


def test_a_memory_of_which_nothing_is_left_is_missed(victim: str, path: Path, anew: Callable[[], Memory]) -> None:
    by_hand(path, victim, [*tamper.HIDDEN["all derived rows gone"], tamper.NO_EVENTS])
    assert "missing from the records and from the journal" in " ".join(anew().list_memories().notes)


def test_doctor_counts_what_cannot_be_shown(owner: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    (check,) = [each for each in owner.doctor() if each.name == "records"]
    assert (check.ok, check.detail) == (False, "memories that cannot be shown: 1")


def test_doctor_names_the_command_that_checks_the_journal(owner: Memory, victim: str, path: Path) -> None:
    edit = "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'tabs', 'taps') AS BLOB)"
    by_hand(path, victim, [f"{edit} WHERE memory_id = '{{0}}'"])
    (check,) = [each for each in owner.doctor() if each.name == "records"]
    assert (owner.verify().ok, check.ok, "only `keepward verify` checks each of them" in check.detail) == (
        False,
        True,
        True,
    )


def test_what_was_mended_is_not_reported_any_more(
    owner: Memory, victim: str, path: Path, anew: Callable[[], Memory]
) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    reader = anew()
    assert reader.list_memories().withheld == (victim,)
    owner.rebuild()
    assert (reader.list_memories().withheld, reader.get(victim).id) == ((), victim)


def test_later_writes_do_not_cover_it_up(mem: Memory, victim: str, path: Path, anew: Callable[[], Memory]) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    committed_record(mem.remember("The lamp is on the shelf", tier="archival"))
    assert anew().list_memories().withheld == (victim,)


def test_what_other_handles_write_is_not_taken_for_damage(mem: Memory, victim: str, anew: Callable[[], Memory]) -> None:
    other = anew()
    committed_record(other.remember("The lamp is on the shelf", tier="archival"))
    committed_record(other.revise(victim, text="Ana prefers spaces for indentation", reason="news"))
    other.forget(victim, reason="no longer")
    assert (mem.list_memories().withheld, mem.recall("lamp").withheld) == ((), ())
    assert (other.list_memories().withheld, anew().list_memories().withheld) == ((), ())


class TestCost:
    """What a read costs does not depend on who wrote last."""

    READS: ClassVar[dict[str, Callable[[Memory], Any]]] = {
        "list": lambda memory: memory.list_memories(limit=1),
        "recall": lambda memory: memory.recall("lamp"),
        "context": lambda memory: memory.context("lamp", budget_tokens=300),
    }

    @pytest.fixture
    def hashed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The table of each row whose seal or sum is computed, and the statements that count all records."""
        found: list[str] = []
        cells, sum_term, run = Sealer.cells, Sealer.sum_term, SqliteConnection.run

        def sealed(self: Sealer, table: str, *rest: Any) -> bytes:
            found.append(table)
            return cells(self, table, *rest)

        def summed(self: Sealer, table: str, *rest: Any) -> int:
            found.append(f"sum of {table}")
            return sum_term(self, table, *rest)

        def ran(self: SqliteConnection, statement: str, *rest: Any, **named: Any) -> Any:
            if statement == "counts_of_records" and "archival" in rest[0]["tiers"]:
                found.append(statement)
            return run(self, statement, *rest, **named)

        monkeypatch.setattr(Sealer, "cells", sealed)
        monkeypatch.setattr(Sealer, "sum_term", summed)
        monkeypatch.setattr(SqliteConnection, "run", ran)
        return found

    @pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
    def test_a_read_after_a_write_of_another_handle_hashes_what_it_returns(
        self, mem: Memory, anew: Callable[[], Memory], hashed: list[str], read: Callable[[Memory], Any]
    ) -> None:
        reader = anew()
        mem.remember_many([{"text": f"The harbour of case {n} has berths", "tier": "archival"} for n in range(200)])
        read(reader)
        committed_record(mem.remember("The lamp is on the shelf", tier="archival"))
        hashed.clear()
        assert "The lamp is on the shelf" in str(read(reader))
        assert len(hashed) < 100
        assert {"sum of records", "counts_of_records"}.isdisjoint(hashed)

    def test_the_records_are_counted_at_the_first_read_alone(
        self, mem: Memory, anew: Callable[[], Memory], hashed: list[str]
    ) -> None:
        reader = anew()
        for n in range(3):
            committed_record(mem.remember(f"The lamp number {n} is lit", tier="archival"))
            reader.list_memories()
            reader.recall("lamp")
            reader.context("lamp")
        assert hashed.count("counts_of_records") == 1


@pytest.mark.parametrize("statements", tamper.HIDDEN.values(), ids=tamper.HIDDEN.keys())
def test_first_recall_of_a_handle_names_earlier_corruption(
    victim: str, path: Path, anew: Callable[[], Memory], statements: list[str]
) -> None:
    by_hand(path, victim, statements)
    assert victim in anew().recall("indentation").withheld


class TestCore:
    """Core memory steers a model: nothing is compiled without it, unless a block is named."""

    @pytest.fixture
    def mission(self, owner: Memory, mem: Memory) -> str:
        committed_record(owner.remember("Ana is the user", tier="core", key="human"))
        return committed_record(owner.remember("Never deploy on Friday", tier="core", key="mission")).id

    BROKEN: ClassVar[dict[str, list[str]]] = {
        **tamper.HIDDEN,
        "another tier": [tamper.OTHER_TIER],
        "its content": [tamper.BENT_BODY],
        "nothing left": [*tamper.HIDDEN["all derived rows gone"], tamper.NO_EVENTS],
    }

    @pytest.fixture(params=BROKEN.values(), ids=BROKEN.keys())
    def broken(self, request: pytest.FixtureRequest, mission: str, path: Path) -> str:
        by_hand(path, mission, request.param)
        return mission

    def test_a_context_is_refused(self, mem: Memory, broken: str) -> None:
        with pytest.raises(Tampered, match="core memory is not complete"):
            mem.context("deploy")

    @pytest.mark.parametrize(
        "broken",
        [edit for name, edit in BROKEN.items() if name != "its scope moved away"],
        ids=[name for name in BROKEN if name != "its scope moved away"],
        indirect=True,
    )
    def test_a_snapshot_is_refused(self, mem: Memory, broken: str) -> None:
        with pytest.raises(Tampered, match="--without"):
            mem.snapshot()

    def test_a_context_is_refused_by_a_handle_that_read_before(self, mem: Memory, mission: str, path: Path) -> None:
        assert "Friday" in mem.context("deploy").text
        by_hand(path, mission, [tamper.OTHER_TIER])
        with pytest.raises(Tampered, match="core memory is not complete"):
            mem.context("deploy")

    def test_the_rest_is_compiled_by_name(self, mem: Memory, mission: str, path: Path) -> None:
        by_hand(path, mission, tamper.HIDDEN["all derived rows gone"])
        found = mem.context("deploy", without=["mission"])
        assert ("Ana is the user" in found.text, "Friday" in found.text, found.withheld) == (True, False, (mission,))

    def test_a_block_that_holds_is_never_left_out(self, mem: Memory, mission: str) -> None:
        assert "Never deploy on Friday" in mem.context("deploy", without=["mission"]).text

    def test_what_has_neither_id_nor_key_is_called_unknown(self, mem: Memory, mission: str, path: Path) -> None:
        by_hand(path, mission, [*tamper.HIDDEN["all derived rows gone"], tamper.NO_EVENTS])
        assert "Ana is the user" in mem.context("deploy", without=["unknown"]).text


class TestSurfaces:
    """Each surface tells it where a caller looks."""

    @pytest.fixture
    def gone(self, victim: str, path: Path) -> str:
        by_hand(path, victim, [tamper.BENT_BODY])
        return victim

    @pytest.fixture
    def mission(self, owner: Memory, path: Path) -> str:
        record = committed_record(owner.remember("Never deploy on Friday", tier="core", key="mission"))
        by_hand(path, record.id, tamper.HIDDEN["all derived rows gone"])
        return record.id

    @pytest.fixture
    def run(
        self,
        owner: Memory,
        path: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> Callable[..., tuple[int, str]]:
        """Run a command; return its exit code and what it said on stderr."""
        monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "config"))

        def call(*given: str) -> tuple[int, str]:
            code = main([*given, "--db", str(path), "--embedder", "none"])
            return code, capsys.readouterr().err

        return call

    @pytest.fixture
    def http(self, owner: Memory) -> Any:
        app = create_app(owner, options=ServerOptions(writes_per_minute=0))
        token = owner.owner_token().read_text().strip()
        with TestClient(app, base_url=BASE, headers={"Authorization": f"Bearer {token}"}) as client:
            yield client

    @pytest.mark.parametrize("command", [("recall", "indentation"), ("list",), ("context", "indentation")])
    def test_a_command_says_it_on_stderr(self, run: Any, gone: str, command: tuple[str, ...]) -> None:
        code, said = run(*command)
        assert code == 0
        surely([said], gone)

    def test_a_command_without_core_fails_and_names_the_way_on(self, run: Any, mission: str) -> None:
        code, said = run("context", "deploy")
        assert (code, "--without mission" in said) == (8, True)

    def test_a_command_compiles_the_rest_by_name(self, run: Any, mission: str) -> None:
        assert run("context", "deploy", "--without", "mission")[0] == 0

    @pytest.mark.parametrize("url", ["/memory/search?query=indentation", "/memory/items"])
    def test_http_says_it_in_a_field(self, http: Any, gone: str, url: str) -> None:
        body = http.get(url).json()
        assert body["withheld"] == [gone]
        surely(body["notes"], gone)

    def test_http_refuses_to_compile_without_core(self, http: Any, mission: str) -> None:
        answer = http.post("/memory/compile", json={"objective": "deploy"})
        assert (answer.status_code >= 400, answer.json()["code"]) == (True, "tampered")

    def test_http_compiles_the_rest_by_name(self, http: Any, mission: str) -> None:
        answer = http.post("/memory/compile", json={"objective": "deploy", "without": ["mission"]})
        assert (answer.status_code, answer.json()["withheld"]) == (200, [mission])

    def test_tools_say_it_in_text_and_values(self, mem: Memory, gone: str) -> None:
        for given in (
            tools.recall.call(mem, {"query": "indentation"}),
            tools.get_context.call(mem, {"objective": "indentation"}),
        ):
            assert given.data["withheld"] == [gone]
            surely(given.notes, gone)

    def test_a_client_hears_it(self, owner: Memory, gone: str) -> None:
        served = create_app(owner, options=ServerOptions(writes_per_minute=0))
        token = owner.owner_token().read_text().strip()
        with TestClient(served) as server, Client("http://127.0.0.1:8321", token, transport=server) as client:
            found = client.list_memories()
            assert (client.recall("indentation").withheld, found.withheld) == ((gone,), (gone,))
            surely(found.notes, gone)
