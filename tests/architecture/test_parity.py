"""The handles have the same verbs, with the same arguments, but for those that docs/howto/client.md names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from keepward import AsyncMemory, Client, Memory
from keepward.async_memory import AsyncDraft
from keepward.client import ClientDraft as RemoteDraft
from keepward.draft import Draft

DOCS = Path(__file__).parents[2] / "docs" / "howto" / "client.md"
#: Of ``Memory`` alone: they concern files of a machine, what governs it, or a principal that a token already names.
LOCAL = {
    "as_actor",
    "backup",
    "call_tool",
    "journal",
    "move_store",
    "open",
    "owner_token",
    "path",
    "policy",
    "recover",
    "restore_backup",
    "restore_journal",
    "shadow",
    "tools",
    "with_token",
}
#: Of ``Client`` alone: what is no verb of ``Memory``, since a program that has the store reads or calls it itself.
REMOTE = {"events", "export", "import_", "plan_restore_export", "restore_export"}
#: Read from the store, so they are awaited; properties elsewhere.
AWAITED = {"head", "now", "policy"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def verbs(kind: type) -> list[str]:
    return sorted(name for name in public(kind) if callable(getattr(kind, name)))


def arguments(kind: type, verb: str) -> list[tuple[str, Any, Any]]:
    """Return the name, the sort and the default of every argument."""
    found = list(inspect.signature(getattr(kind, verb)).parameters.values())
    return [(each.name, each.kind, each.default) for each in found if each.name not in {"self", "cls"}]


@pytest.mark.promise("T21")
def test_the_async_handle_has_every_verb_and_no_other() -> None:
    assert public(AsyncMemory) == public(Memory)


@pytest.mark.promise("T21")
def test_client_has_every_remote_operation_and_its_own() -> None:
    assert public(Client) == (public(Memory) - LOCAL) | REMOTE


@pytest.mark.promise("T21")
@pytest.mark.parametrize(("kind", "without"), [(AsyncMemory, AWAITED), (Client, LOCAL)], ids=["async", "client"])
def test_a_verb_takes_the_same_arguments_on_every_handle(kind: type, without: set[str]) -> None:
    shared = [name for name in verbs(Memory) if name not in without]
    assert {name: arguments(kind, name) for name in shared} == {name: arguments(Memory, name) for name in shared}


@pytest.mark.parametrize("kind", [AsyncDraft, RemoteDraft])
def test_a_draft_has_what_a_draft_has(kind: type) -> None:
    lacking = public(Draft) - public(kind)
    assert {name: arguments(kind, name) for name in verbs(Draft) if name not in lacking} == {
        name: arguments(Draft, name) for name in verbs(Draft)
    }


def test_what_differs_is_in_the_documentation() -> None:
    told = DOCS.read_text()
    assert [verb for verb in sorted(LOCAL | REMOTE) if not re.search(rf"`{verb}\b", told)] == []
