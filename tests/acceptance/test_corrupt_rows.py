"""A memory that was edited or taken away in the file is told by every read that would have shown it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import kept
from starlette.testclient import TestClient

from keepward import Client, Memory, Tampered
from keepward.cli.main import main
from keepward.http import ServerOptions, create_app
from keepward.mcp import tools
from support import tamper

BASE = "http://127.0.0.1:8321"


def by_hand(path: Path, memory_id: str, statements: list[str]) -> None:
    tamper.run(path, *(statement.format(memory_id) for statement in statements))


@pytest.fixture
def victim(mem: Memory) -> str:
    """The id of a memory among others, all of them looked at once."""
    for n in range(3):
        kept(mem.remember(f"The ferry number {n} crosses the sound", tier="archival"))
    record = kept(mem.remember("Ana prefers tabs for indentation", tier="archival"))
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


@pytest.fixture(params=["the handle that was open", "one opened anew"])
def reader(request: pytest.FixtureRequest, edited: str, mem: Memory, path: Path, tmp_path: Path, clock: Any) -> Any:
    if request.param == "the handle that was open":
        yield mem
        return
    with Memory.open(path, embedder="hashed", clock=clock, config_dir=tmp_path / "config") as again:
        yield again


def test_recall_names_it(reader: Memory, edited: str) -> None:
    found = reader.recall("indentation", min_importance=0.2)
    assert edited in found.withheld
    surely(found.notes, edited)


def test_a_list_names_it(reader: Memory, edited: str) -> None:
    found = reader.list_memories(min_importance=0.2)
    assert edited in found.withheld
    surely(found.notes, edited)


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


def test_another_scope_hears_nothing_of_it(owner: Memory, mem: Memory, victim: str, path: Path) -> None:
    lent = kept(mem.at(scope="/agents/orion").remember("Orion keeps a log", tier="archival"))
    by_hand(path, lent.id, tamper.HIDDEN["all derived rows gone"])
    assert (
        mem.at(scope="/agents/vega").list_memories().withheld,
        mem.at(scope="/agents/orion").list_memories().withheld,
    ) == (
        (),
        (lent.id,),
    )


def test_a_memory_of_which_nothing_is_left_is_missed(mem: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, [*tamper.HIDDEN["all derived rows gone"], tamper.NO_EVENTS])
    assert "missing from the records and from the journal" in " ".join(mem.list_memories().notes)


def test_doctor_counts_what_cannot_be_shown(owner: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    (check,) = [each for each in owner.doctor() if each.name == "records"]
    assert (check.ok, check.detail) == (False, "memories that cannot be shown: 1")


def test_doctor_names_the_command_that_checks_the_journal(owner: Memory, victim: str, path: Path) -> None:
    edit = "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'tabs', 'taps') AS BLOB)"
    by_hand(path, victim, [f"{edit} WHERE memory_id = '{{0}}'"])
    (check,) = [each for each in owner.doctor() if each.name == "records"]
    assert (owner.verify().ok, check.ok, "only `keepward verify` checks the journal" in check.detail) == (
        False,
        True,
        True,
    )


def test_what_was_mended_is_not_reported_any_more(owner: Memory, mem: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    assert mem.list_memories().withheld == (victim,)
    owner.rebuild()
    assert (mem.list_memories().withheld, mem.get(victim).id) == ((), victim)


def test_later_writes_do_not_cover_it_up(mem: Memory, victim: str, path: Path) -> None:
    by_hand(path, victim, tamper.HIDDEN["all derived rows gone"])
    kept(mem.remember("The lamp is on the shelf", tier="archival"))
    assert mem.list_memories().withheld == (victim,)


def test_what_other_handles_write_is_not_taken_for_damage(
    mem: Memory, victim: str, path: Path, tmp_path: Path, clock: Any
) -> None:
    with Memory.open(path, embedder="hashed", clock=clock, config_dir=tmp_path / "config") as other:
        kept(other.remember("The lamp is on the shelf", tier="archival"))
        kept(other.revise(victim, text="Ana prefers spaces for indentation", reason="news"))
        other.forget(victim, reason="no longer")
    assert (mem.list_memories().withheld, mem.recall("lamp").withheld) == ((), ())


def test_records_are_counted_once_and_not_at_every_read(
    mem: Memory, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.storage import tenant

    counted: list[str] = []
    count = tenant.count_records
    monkeypatch.setattr(tenant, "count_records", lambda *given: (counted.append("once"), count(*given))[1])
    for n in range(3):
        mem.recall("indentation")
        kept(mem.remember(f"The lamp number {n} is lit", tier="archival"))
        mem.list_memories()
    assert counted == []


def test_the_first_recall_of_a_handle_reads_the_records_once(
    mem: Memory, victim: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepward.storage.tenant.count_records", None)
    with Memory.open(path, embedder="hashed", config_dir=tmp_path / "config") as other:
        assert (other.recall("indentation").withheld, other.list_memories().withheld) == ((), ())


@pytest.mark.parametrize("statements", tamper.HIDDEN.values(), ids=tamper.HIDDEN.keys())
def test_first_recall_of_a_handle_names_earlier_corruption(
    mem: Memory, victim: str, path: Path, tmp_path: Path, statements: list[str]
) -> None:
    by_hand(path, victim, statements)
    with Memory.open(path, embedder="hashed", config_dir=tmp_path / "config") as other:
        assert victim in other.recall("indentation").withheld


class TestCore:
    """Core memory steers a model: nothing is compiled without it, unless a block is named."""

    @pytest.fixture
    def mission(self, owner: Memory, mem: Memory) -> str:
        kept(owner.remember("Ana is the user", tier="core", key="human"))
        return kept(owner.remember("Never deploy on Friday", tier="core", key="mission")).id

    @pytest.fixture(
        params=[
            *tamper.HIDDEN.values(),
            [tamper.OTHER_TIER],
            [tamper.BENT_BODY],
            [*tamper.HIDDEN["all derived rows gone"], tamper.NO_EVENTS],
        ],
        ids=[*tamper.HIDDEN, "another tier", "its content", "nothing left"],
    )
    def broken(self, request: pytest.FixtureRequest, mission: str, path: Path) -> str:
        by_hand(path, mission, request.param)
        return mission

    def test_a_context_is_refused(self, mem: Memory, broken: str) -> None:
        with pytest.raises(Tampered, match="core memory is not complete"):
            mem.context("deploy")

    def test_a_snapshot_is_refused(self, mem: Memory, broken: str) -> None:
        with pytest.raises(Tampered, match="--without"):
            mem.snapshot()

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
        by_hand(path, victim, tamper.HIDDEN["a status set to archived"])
        return victim

    @pytest.fixture
    def mission(self, owner: Memory, path: Path) -> str:
        record = kept(owner.remember("Never deploy on Friday", tier="core", key="mission"))
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

    @pytest.mark.parametrize("url", ["/memory/search?query=indentation", "/memory/items", "/memory/snapshot"])
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
            assert client.snapshot().withheld == (gone,)
