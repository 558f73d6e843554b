"""What every test stands on: nothing runs in the background unless asked for, and nobody's own store is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("support")
pytest_plugins = ["support.database"]
# Jobs that begin by themselves would make what a test sees depend on when it looks. Tests of maintenance switch it on.
os.environ["KEEPWARD_MAINTENANCE"] = "off"


@pytest.fixture(scope="session", autouse=True)
def _data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep a store for which no path is named out of the data folder of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEEPWARD_DATA", str(tmp_path_factory.mktemp("data")))
        yield
