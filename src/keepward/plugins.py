"""Plug-ins: parts of a store that other distributions provide as entry points; a setting chooses them by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from keepward.core.value import unknown_name_message
from keepward.errors import InvalidInput, ModelUnavailable

#: Groups of entry points, after `keepward.`: for example `keepward.embedders`.
GROUPS = ("embedders", "rerankers", "extractors", "redactors", "gates")


class GuardedPart:
    """A part that a caller or a plug-in provides: whatever it raises is ``ModelUnavailable``, also SystemExit.

    KeyboardInterrupt stays: it comes from the person at the terminal.
    """

    def __init__(self, part: Any, kind: str, name: str = "") -> None:
        self._part, self._kind, self._name = part, kind, name

    def __getattr__(self, name: str) -> Any:
        with self._guarded(name, AttributeError):
            value = getattr(self._part, name)
        if not callable(value):
            return value

        @wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._guarded(name):
                result = value(*args, **kwargs)
                return list(result) if isinstance(result, Iterator) else result

        return call

    @contextmanager
    def _guarded(self, method: str, expected: type[Exception] = ModelUnavailable) -> Iterator[None]:
        try:
            yield
        except (ModelUnavailable, KeyboardInterrupt, expected):
            raise
        except BaseException as exc:
            # Only the type: the part's message may quote a memory.
            what = f"the {self._kind} {self._label()} raised {type(exc).__name__}"
            raise ModelUnavailable(f"{what}; fix its `{method}`") from exc

    def _label(self) -> str:
        try:
            return self._name or str(self._part.id)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - it has no name, or fails to say it
            return type(self._part).__name__


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
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
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
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        raise _load_error(group, name, exc) from exc


def _load_error(group: str, name: str, fault: BaseException) -> InvalidInput:
    # Only the type: the plug-in's message may quote a memory.
    return InvalidInput(f"the plug-in {name} of keepward.{group} fails with {type(fault).__name__}")
