"""Stores and files for the interchange tests: all in a temporary folder, with a clock that stands still."""

import itertools
import json
import random
import string
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from keepward.core.principals import Actor
from keepward.gates.detectors import injection, pii, secrets
from keepward.memory import Memory


class StillClock:
    def __init__(self) -> None:
        self.at = datetime(2026, 3, 1, 9, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


class CountedIds:
    def __init__(self, first: int) -> None:
        self._numbers = itertools.count(first)

    def new_id(self, now: datetime) -> str:
        return str(UUID(int=(7 << 76) | (2 << 62) | next(self._numbers)))

    def salt(self) -> bytes:
        return next(self._numbers).to_bytes(16, "big")


@pytest.fixture(scope="session", autouse=True)
def _loaded_detectors():
    """Rules and number plans load on first use; no single test should bear that time."""
    for detector in (injection, pii, secrets):
        detector.scan("Call +351 210 000 000 or write to ines@mail.example.org: her locker code stays at home.")


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def make_store(tmp_path, clock):
    """Opens stores by name; each is closed at the end."""
    stores = []

    def make(name: str = "memory", **options) -> Memory:
        options = {
            "actor": Actor.operator(),
            "embedder": None,
            "clock": clock,
            "ids": CountedIds(1_000_000 * len(stores) + 1),
        } | options
        store = Memory.open(tmp_path / f"{name}.db", config_dir=tmp_path / f"{name}-config", **options)
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def mem(make_store) -> Memory:
    return make_store()


@pytest.fixture
def put(tmp_path):
    """Writes a file: rows as JSONL, a text or bytes as they are; returns its path."""

    def write(name: str, content) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_bytes(content.encode("utf-8", "surrogatepass"))
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def made_up_key() -> str:
    """A text in the form of a cloud access key, made from a seed: it opens nothing."""
    letters = random.Random(11).choices(string.ascii_uppercase + "234567", k=16)
    return "AK" + "IA" + "".join(letters)
