"""The filled store."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from filled import RECEIPTS, answers, copied, fill


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    fill(folder)
    shutil.copy(folder / "m.db", folder / "untouched.db")
    with closing(sqlite3.connect(folder / "untouched.db")) as connection:
        RECEIPTS[:] = [
            row[0] for row in connection.execute("SELECT id FROM documents WHERE kind = 'receipts' ORDER BY 1")
        ]
    return folder


@pytest.fixture(scope="session")
def truth(original, tmp_path_factory):
    return answers(copied(original, tmp_path_factory.mktemp("truth")))


@pytest.fixture
def path(original, tmp_path):
    return copied(original, tmp_path)
