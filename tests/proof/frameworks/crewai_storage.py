"""A plugin of pytest: CrewAI's tests of its memory over LanceDB are run over Keepward's storage, under the same names."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from crewai.memory import unified_memory as theirs

from keepward import Memory
from keepward.integrations.crewai import KeepwardStorage
from keepward.integrations.embedder import TextByVector

#: By a part of a test's name, why it does not apply.
LEFT_OUT = {
    "test_update_replaces_existing_record": "a record is compared with its vector and the instants it was made with",
    "test_update_serialization_failure": "the same",
    "test_recall_does_not_refresh_access_time": "reading writes nothing",
    "test_percent_underscore_and_backslash": "half a name of a scope is none",
    "test_private_record_without_source": "it saves a text that tells a key, which is held",
    "test_batch_consolidation_deduplicates_against_storage": "its embedder gives all texts one vector; ours compares texts",
    "test_lancedb_list_records_exceeding_scan_cap": "52,000 records, each through the gates, to pass a limit of LanceDB",
}
#: Stores that are open, by folder.
OPEN: dict[str, Memory] = {}


class LanceDBStorage(KeepwardStorage):
    """What the tests make."""

    def __init__(self, path: Any = None, **_: Any) -> None:
        # The home of a run is a folder of its own; the folder of the sources stays from run to run.
        place = str(path or Path.home() / "memory")
        if place not in OPEN:
            Path(place).mkdir(parents=True, exist_ok=True)
            OPEN[place] = Memory.open(Path(place) / "memory.db", scope="/t", embedder="hashed", maintenance=False)
        super().__init__(OPEN[place])

    def save(self, records: Any) -> None:
        """Save records, whose vectors the tests have made themselves."""
        super().save(records)
        for each in records:
            self.embedder.learn(each.embedding or [], each.content)


def _made(self: Any, context: Any, made: Any = theirs.Memory.model_post_init) -> None:
    made(self, context)
    if isinstance(self._storage, KeepwardStorage) and self._embedder_instance is not None:
        self._storage.embedder = self._embedder_instance = TextByVector(self._embedder_instance)


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    module: Any = ModuleType("crewai.memory.storage.lancedb_storage")
    module.LanceDBStorage = LanceDBStorage
    sys.modules[module.__name__] = module
    theirs.Memory.model_post_init = _made


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    out = [each for each in items if any(part in each.name for part in LEFT_OUT)]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
