"""Writers of several processes wait in line; the line is fair, ends with its processes, and keeps nobody for ever."""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from keepward.store.sqlite import Turns
from keepward.store.store import open_store
from support.stages import Maker

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.db.id"
    path.write_text("x")
    return path


def heard(line: Connection) -> object:
    """Return what the other process says next."""
    assert line.poll(20)
    return line.recv()


def hold(file: Path, line: Connection) -> None:
    """Take the turn, say so, and give it when told."""
    turns = Turns(file)
    line.send(turns.take(20))
    heard(line)
    turns.give()
    line.send("given")


@pytest.fixture
def holder(file: Path) -> Iterator[tuple[Connection, int]]:
    """Another process that has the turn, and its id."""
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=hold, args=(file, theirs), daemon=True)
    child.start()
    # A child that ends is one that says nothing more.
    theirs.close()
    assert heard(ours) is True
    assert child.pid is not None
    yield ours, child.pid
    child.kill()
    child.join(20)


def test_a_turn_comes_at_once_when_nobody_has_it(file: Path) -> None:
    assert Turns(file).take(0)


def test_a_turn_that_another_process_has_does_not_come(file: Path, holder: tuple[Connection, int]) -> None:
    assert not Turns(file).take(0.01)


@pytest.mark.promise("T25")
def test_a_turn_comes_when_the_other_process_gives_it(file: Path, holder: tuple[Connection, int]) -> None:
    came: list[bool] = []
    waiting = threading.Thread(target=lambda: came.append(Turns(file).take(20)), daemon=True)
    waiting.start()
    holder[0].send("give")
    waiting.join(30)
    assert came == [True]


@pytest.mark.promise("T25")
def test_a_turn_comes_when_the_other_process_dies(file: Path, holder: tuple[Connection, int]) -> None:
    os.kill(holder[1], signal.SIGKILL)
    assert Turns(file).take(20)


def test_who_forgot_to_leave_the_line_keeps_nobody_waiting(file: Path) -> None:
    assert Turns(file).take(0)
    gc.collect()
    assert Turns(file).take(0)


def test_who_was_interrupted_while_waiting_does_not_get_the_turn(
    file: Path, holder: tuple[Connection, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keepward.store.turns.WORD", 0.01)
    turns = Turns(file)
    with pytest.raises(KeyboardInterrupt):
        turns.take(20, interrupted)
    holder[0].send("give")
    assert heard(holder[0]) == "given"
    assert Turns(file).take(20)


@pytest.mark.promise("T25")
def test_who_gave_up_waiting_does_not_keep_others_from_their_turn(file: Path, holder: tuple[Connection, int]) -> None:
    assert not Turns(file).take(0.01)
    holder[0].send("give")
    assert heard(holder[0]) == "given"
    assert Turns(file).take(20)


def test_a_turn_that_comes_too_late_unlocks_no_other_file(file: Path, tmp_path: Path) -> None:
    turns, other = Turns(file), tmp_path / "other"
    other.touch()
    # One of another test may wait for ever, for a lock that nobody gives back.
    before = threading.enumerate()
    with file.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert not turns.take(0)
        number = turns._handle
        turns.close()
        assert number is not None
        with other.open("rb") as first, other.open("rb") as elsewhere:
            reused = number if first.fileno() == number else os.dup2(first.fileno(), number)
            fcntl.flock(reused, fcntl.LOCK_EX)
            fcntl.flock(holder, fcntl.LOCK_UN)
            for each in threading.enumerate():
                if each not in before:
                    each.join(20)
                    assert not each.is_alive()
            with pytest.raises(BlockingIOError):
                fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_after_a_fork_a_process_stands_in_line_for_itself(file: Path) -> None:
    turns = Turns(file)
    assert turns.take(0)
    ours, theirs = FORK.Pipe()

    def child() -> None:
        theirs.send(turns.take(0.01))

    process = FORK.Process(target=child, daemon=True)
    process.start()
    assert (heard(ours), turns.take(0)) == (False, True)
    process.join(20)


def test_without_a_file_there_is_no_line(tmp_path: Path) -> None:
    assert not Turns(tmp_path / "missing.id").take(0)


def test_a_store_without_a_line_is_written_all_the_same(tmp_path: Path) -> None:
    make = Maker()
    with open_store(tmp_path / "m.db") as store:
        (tmp_path / "m.db.id").unlink()
        with store.write() as writer:
            writer.append("ada", make.stage(make.record("tea")))
        assert store.head("ada").seq == 1


def test_a_writer_leaves_the_front_of_the_line_when_its_transaction_has_begun(tmp_path: Path) -> None:
    with open_store(tmp_path / "m.db") as store, store.write():
        assert Turns(tmp_path / "m.db.id").take(0)
