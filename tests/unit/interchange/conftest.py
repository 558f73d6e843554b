"""Stores and files for the interchange tests: all in a temporary folder, with a clock that stands still."""

import json
import random
import string
from pathlib import Path

import pytest

from keepward.core.principals import Actor
from keepward.gates.detectors import injection, pii, secrets
from keepward.memory import Memory
from support.clock import SteppingClock
from support.ids import CountingIds


@pytest.fixture(scope="session", autouse=True)
def _loaded_detectors():
    """Rules and number plans load on first use; no single test should bear that time."""
    for detector in (injection, pii, secrets):
        detector.scan("Call +351 210 000 000 or write to ines@mail.example.org: her locker code stays at home.")


@pytest.fixture
def clock():
    return SteppingClock()


@pytest.fixture
def make_store(tmp_path, clock):
    """Opens stores by name; each is closed at the end."""
    stores = []

    def make(name: str = "memory", **options) -> Memory:
        options = {
            "actor": Actor.operator(),
            "embedder": None,
            "clock": clock,
            "ids": CountingIds(1_000_000 * len(stores)),
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
