"""A plugin of pytest: the tests of the memory store that Strands keeps in a file are run against Keepward's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from strands import vended_memory_stores
from strands.vended_memory_stores import test_memory_store as theirs

from keepward import Memory
from keepward.integrations.strands import KeepwardMemoryStore

_FILE = "the JSON in its file"
_PLACE = "where its file lies"
_OWN = "a function of its own"
#: By test, what it looks into that there is not.
LEFT_OUT = {
    "test_accepts_null_metadata_as_absent": _FILE,
    "test_ingests_extracted_facts_through_add": _FILE,
    "test_keeps_all_entries_under_concurrent_writes": _FILE,
    "test_loads_a_file_written_in_the_shared_camelcase_format": _FILE,
    "test_manager_add_writes_to_store": _FILE,
    "test_persists_human_readable_json": _FILE,
    "test_raises_clear_error_on_corrupt_file": _FILE,
    "test_raises_clear_error_on_malformed_record": _FILE,
    "test_raises_clear_error_on_non_object_metadata": _FILE,
    "test_raises_clear_error_on_wrong_shape_file": _FILE,
    "test_reused_across_separate_event_loops": _FILE,
    "test_defaults_to_a_sanitized_path_under_the_home_memory_dir": _PLACE,
    "test_raises_clear_error_when_path_is_unreachable": _PLACE,
    "test_raises_when_explicit_path_is_empty": _PLACE,
    "test_now_matches_javascript_toisostring_shape": _OWN,
    "test_uses_the_monkeypatchable_id_generator": _OWN,
    "test_ranks_higher_overlap_first_with_relevance_score": "its score, which counts words",
}
#: Stores that are open, by file.
OPEN: dict[str, Memory] = {}


class TestMemoryStore(KeepwardMemoryStore):
    """What the tests make."""

    __test__ = False

    def __init__(self, path: str = ":memory:", persist: bool = True, **config: Any) -> None:
        place = str(Path(path).with_suffix(".keepward")) if persist else ":memory:"
        if place == ":memory:" or place not in OPEN:
            OPEN[place] = Memory.open(place, scope="/t", embedder=None, maintenance=False)
        super().__init__(OPEN[place], **config)


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    theirs.TestMemoryStore = theirs.store.TestMemoryStore = vended_memory_stores.TestMemoryStore = TestMemoryStore


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    out = [each for each in items if getattr(each, "originalname", each.name) in LEFT_OUT]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
