"""Plug-ins: parts of a store that other distributions provide as entry points; a setting chooses them by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from keepward.core.value import unknown_name_message
from keepward.errors import InvalidInput

#: Groups of entry points, after `keepward.`: for example `keepward.embedders`.
GROUPS = ("embedders", "rerankers", "extractors", "redactors", "gates")


def installed_names(group: str) -> list[str]:
    """Return the names of the installed plug-ins of a group, sorted."""
    return sorted({each.name for each in entry_points(group=f"keepward.{group}")})


def load(group: str, choice: str) -> Any:
    """Create a part: call the plug-in with the text after the first colon of its name, if there is one.

    Raises:
        InvalidInput: no plug-in has this name, or it raises.
    """
    name, _, argument = choice.strip().partition(":")
    factory = _load_entry_point(group, name)
    try:
        return factory(argument) if argument else factory()
    except Exception as exc:
        raise _load_error(group, name, exc) from exc


def load_gates(choice: str) -> tuple[tuple[str, Any], ...]:
    """Return the gates in a comma-separated list, each with its name.

    Raises:
        InvalidInput: no plug-in has one of the names, or it cannot be imported.
    """
    return tuple((name, _load_entry_point("gates", name)) for name in map(str.strip, choice.split(",")) if name)


def _load_entry_point(group: str, name: str) -> Any:
    found: list[EntryPoint] = list(entry_points(group=f"keepward.{group}", name=name))
    if not found:
        known = installed_names(group)
        hint = (
            unknown_name_message(f"plug-in of keepward.{group}", name, known)
            if known
            else f"no plug-in of keepward.{group}"
        )
        raise InvalidInput(hint if known else f"{hint} is installed here; see docs/howto/plugins.md")
    try:
        return found[0].load()
    except Exception as exc:
        raise _load_error(group, name, exc) from exc


def _load_error(group: str, name: str, fault: Exception) -> InvalidInput:
    # Only the type: the plug-in's message may quote a memory.
    return InvalidInput(f"the plug-in {name} of keepward.{group} fails with {type(fault).__name__}")
