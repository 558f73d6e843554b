"""A learned reranker that goes with an export: the same order elsewhere, checked by its hash, and unlearned there too."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from export_tool import TOOLS
from outcomes import brought_back
from test_feedback import START, THINGS, WORLD, asked, taught

from keepward import Actor, InvalidInput, Memory
from keepward.interchange import load, write_vault
from keepward.interchange.exports import Tally
from support.clock import SteppingClock

OLGA = Actor.operator("olga")
GIVEN: dict[str, Any] = {"embedder": "hashed", "actor": OLGA}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a training that was rolled back and one that holds, and its export."""
    folder = tmp_path_factory.mktemp("made")
    clock = SteppingClock(START)
    with Memory.open(folder / "here.db", clock=clock, config_dir=folder / "config", **GIVEN) as memory:
        memory.remember_many(WORLD)
        clock.advance(timedelta(hours=1))
        taught(memory, things=THINGS[:24])
        trained = memory.train_reranker()
        assert trained.serving
        assert trained.commit is not None
        # Else the first weights, which are as good, would serve on.
        memory.rollback(trained.commit.id)
        taught(memory, things=THINGS[24:28])
        again = memory.train_reranker()
        assert (again.serving, again.version != trained.version) == (True, True)
        write_vault(memory, folder / "vault.jsonl")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, opened: Callable[..., Memory], clock: Any) -> Iterator[Memory]:
    """The store that was exported."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clock.move(hours=2)
    with opened("here", actor=OLGA) as memory:
        yield memory


@pytest.fixture
def there(here: Memory, tmp_path: Path, clock: Any) -> Iterator[Memory]:
    """A new store of another machine, into which the export was brought."""
    with Memory.open(tmp_path / "there.db", clock=clock, config_dir=tmp_path / "other", **GIVEN) as memory:
        brought_back(memory, tmp_path / "vault.jsonl")
        yield memory


def order(memory: Memory, thing: str, **how: Any) -> list[tuple[str, float]]:
    return [(hit.memory.id, hit.score) for hit in memory.recall(asked(thing), **how)]


@pytest.fixture
def lines(made: Path) -> list[bytes]:
    return (made / "vault.jsonl").read_bytes().splitlines()


def carrying(lines: list[bytes]) -> list[int]:
    return [place for place, line in enumerate(lines) if b'"weights":"' in line]


def bent(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}, ensure_ascii=False, separators=(",", ":")).encode()


def other_weights(line: bytes) -> str:
    packed = bytearray(base64.b64decode(json.loads(line)["weights"]))
    packed[-1] ^= 1
    return base64.b64encode(bytes(packed)).decode()


# --- carried over


@pytest.mark.parametrize("thing", ["atlas", "glossary", "billing"])
def test_what_was_brought_over_is_recalled_in_the_same_order_with_the_same_scores(
    here: Memory, there: Memory, thing: str
) -> None:
    assert order(there, thing) == order(here, thing)
    assert order(there, thing) != order(there, thing, order="fused")


def test_the_head_is_the_same_and_the_reranker_has_its_name(here: Memory, there: Memory) -> None:
    assert there.head == here.head
    assert there.recall(asked("atlas")).reranker == here.recall(asked("atlas")).reranker


def trainings(memory: Memory) -> list[Any]:
    """Return the commits of the first training, of its rollback and of the second training."""
    return [view.commit for view in memory.log(limit=3)[::-1]]


def test_a_state_of_the_past_is_ordered_as_it_was_then_over_there(here: Memory, there: Memory) -> None:
    seq = trainings(here)[0].seq
    assert order(there, "atlas", as_of=seq) == order(here, "atlas", as_of=seq)
    assert there.recall(asked("atlas"), as_of=seq).reranker not in {None, there.recall(asked("atlas")).reranker}


def test_a_rollback_over_there_brings_the_first_weights(here: Memory, there: Memory) -> None:
    for memory in (here, there):
        memory.rollback(trainings(memory)[1].id, with_later=True)
    first = here.recall(asked("atlas")).reranker
    assert (first is None, there.recall(asked("atlas")).reranker) == (False, first)


def test_what_was_brought_over_verifies(there: Memory) -> None:
    assert there.verify().faults == ()


def test_an_export_of_it_is_the_same_file(there: Memory, made: Path, tmp_path: Path) -> None:
    write_vault(there, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (made / "vault.jsonl").read_bytes()


def test_a_stream_carries_the_weights_too(here: Memory, made: Path) -> None:
    out = StringIO()
    write_vault(here, out)
    assert out.getvalue().encode() == (made / "vault.jsonl").read_bytes()


def test_an_import_says_how_many_weights_came(here: Memory, tmp_path: Path, clock: Any) -> None:
    with Memory.open(tmp_path / "new.db", clock=clock, config_dir=tmp_path / "other", **GIVEN) as memory:
        notes = brought_back(memory, tmp_path / "vault.jsonl").notes
    assert "weights of the learned reranker came with it: 2" in notes


def test_each_weights_stand_once_in_the_first_line_that_names_them(lines: list[bytes]) -> None:
    assert len(carrying(lines)) == 2


def test_into_a_store_that_holds_something_the_reranker_does_not_go(here: Memory, tmp_path: Path, clock: Any) -> None:
    with Memory.open(tmp_path / "new.db", clock=clock, config_dir=tmp_path / "other", **GIVEN) as memory:
        memory.remember("The quay is closed on Mondays", tier="archival")
        notes = load(memory, tmp_path / "vault.jsonl").notes
        assert memory.status()["reranker"]["version"] is None
    assert [note for note in notes if "reranker" in note or "no longer" in note] == [
        "the learned reranker was left out: it goes with its history alone"
    ]


# --- weights that cannot be read


def test_weights_that_are_gone_are_counted_and_said(here: Memory, tmp_path: Path, clock: Any) -> None:
    with closing(sqlite3.connect(here.path)) as db, db:
        db.execute("DELETE FROM documents WHERE kind = 'artefacts' AND id LIKE 'reranker/%'")
    tally = Tally()
    write_vault(here, tmp_path / "poor.jsonl", tally=tally)
    assert (len(tally.weights), len(tally.lost)) == (0, 2)
    with Memory.open(tmp_path / "new.db", clock=clock, config_dir=tmp_path / "other", **GIVEN) as memory:
        notes = brought_back(memory, tmp_path / "poor.jsonl").notes
        assert any("does not serve here: its weights are missing" in note for note in notes)
        assert order(memory, "atlas") == order(memory, "atlas", order="fused")


@pytest.mark.promise("F14")
def test_weights_that_an_erasure_took_are_in_no_export_and_not_called_lost(here: Memory, tmp_path: Path) -> None:
    name = next(hit.memory.id for hit in here.recall(asked("billing")))
    here.erase(here.plan_erase([name]).digest, [name])
    tally = Tally()
    write_vault(here, tmp_path / "left.jsonl", tally=tally)
    assert (tally.weights, tally.lost, b'"weights":"' in (tmp_path / "left.jsonl").read_bytes()) == (
        set(),
        set(),
        False,
    )


# --- over there


@pytest.mark.promise("F14")
def test_an_erasure_takes_weights_of_which_nobody_can_tell_what_they_have_seen(there: Memory) -> None:
    # Nothing was said here of this memory, and yet the weights may have learned from it over there.
    name = there.recall(asked("atlas"))[0].memory.id
    there.erase(there.plan_erase([name]).digest, [name])
    with closing(sqlite3.connect(f"file:{there.path}?mode=ro", uri=True)) as db:
        assert db.execute(
            "SELECT count(*) FROM documents WHERE kind = 'artefacts' AND id LIKE 'reranker/%'"
        ).fetchone() == (0,)
    assert there.status()["reranker"]["serving"] is False


def test_little_feedback_over_there_does_not_end_what_serves(there: Memory) -> None:
    taught(there, things=THINGS[:5])
    found = there.train_reranker()
    assert (found.serving, found.commit, "came with an import" in found.why) == (True, None, True)


def test_enough_feedback_over_there_decides_anew(there: Memory) -> None:
    taught(there, useful="always forget", things=THINGS[:26])
    assert there.train_reranker().commit is not None


def test_status_counts_feedback_over_there_as_unseen(there: Memory) -> None:
    taught(there, things=THINGS[:3])
    assert there.status()["reranker"]["unseen"] == 3


# --- the verifier and the import agree on what is bent


def carrier(line: bytes, weights: str) -> bytes:
    """Return a line that carries no weights with some, in the place where they stand."""
    items = list(json.loads(line).items())
    at = [name for name, _ in items].index("seal") + 1
    told = dict([*items[:at], ("weights", weights), *items[at:]])
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def bendings(lines: list[bytes]) -> dict[str, list[bytes]]:
    first, second = carrying(lines)
    weights = json.loads(lines[first])["weights"]
    again = next(place for place in range(first + 1, second) if b'"key":"reranker"' in lines[place])
    plain = {name: value for name, value in json.loads(lines[first]).items() if name != "weights"}

    def put(place: int, line: bytes) -> list[bytes]:
        return [*lines[:place], line, *lines[place + 1 :]]

    return {
        "another byte": put(first, bent(lines[first], weights=other_weights(lines[first]))),
        "those of another training": put(second, bent(lines[second], weights=weights)),
        "no base64": put(first, bent(lines[first], weights="@" + weights[1:])),
        "a number": put(first, bent(lines[first], weights=7)),
        "on a memory": put(1, carrier(lines[1], weights)),
        "twice": put(again, carrier(lines[again], weights)),
        "not there": put(first, json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()),
    }


WRONG = ["another byte", "those of another training", "no base64", "a number", "on a memory", "twice"]


def test_the_verifier_accepts_the_export_and_counts_the_weights(made: Path, capsys: Any) -> None:
    assert TOOLS.main([str(made / "vault.jsonl")]) == 0
    assert "reranker    2 of 2 named weights are here, with their hashes\n" in capsys.readouterr().out


@pytest.mark.parametrize("what", WRONG)
def test_the_verifier_notices_weights_that_were_changed(lines: list[bytes], tmp_path: Path, what: str) -> None:
    (tmp_path / "bent.jsonl").write_bytes(b"\n".join(bendings(lines)[what]) + b"\n")
    assert TOOLS.main([str(tmp_path / "bent.jsonl")]) == 1


@pytest.mark.parametrize("what", WRONG)
def test_an_import_notices_them_too_and_stores_nothing(
    lines: list[bytes], tmp_path: Path, clock: Any, what: str
) -> None:
    (tmp_path / "bent.jsonl").write_bytes(b"\n".join(bendings(lines)[what]) + b"\n")
    with Memory.open(tmp_path / "new.db", clock=clock, config_dir=tmp_path / "other", **GIVEN) as memory:
        with pytest.raises(InvalidInput, match="nothing was imported"):
            load(memory, tmp_path / "bent.jsonl")
        assert memory.log() == []


def test_an_export_without_the_weights_holds_and_the_verifier_says_how_many_are_here(
    lines: list[bytes], tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "bent.jsonl").write_bytes(b"\n".join(bendings(lines)["not there"]) + b"\n")
    assert TOOLS.main([str(tmp_path / "bent.jsonl")]) == 0
    assert "reranker    1 of 2 named weights are here" in capsys.readouterr().out
