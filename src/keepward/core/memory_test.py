"""Memory tests: what the context for a question must contain and must not, and how long it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from keepward.core.compiled import Section
from keepward.core.query import Purpose
from keepward.core.value import Data, Instant, ListResult, Value, is_too_deep, pluralize, unknown_field_message
from keepward.errors import InvalidInput

_Name = Annotated[str, Meta(min_length=1, max_length=256)]
_Text = Annotated[str, Meta(min_length=1, max_length=4_096)]
_Texts = _Text | tuple[_Text, ...]
_Limit = Annotated[int, Meta(ge=0, le=128_000)]

#: What a field is, by name, for errors.
_KINDS = {
    **dict.fromkeys(("contains", "lacks"), "a text or a list of texts, each of 1 to 4,096 characters"),
    **dict.fromkeys(("max_tokens", "max_lines"), "an integer from 0 to 128,000"),
    **dict.fromkeys(("objective", "query"), "a text of at most 32,768 characters"),
    "budget_tokens": "an integer from 1 to 128,000",
    "purpose": f"one of {', '.join(get_args(Purpose))}",
    "name": "a text of 1 to 256 characters",
}


class MemoryTest(Data, forbid_unknown_fields=True):
    """One test. It gives ``objective`` or ``query``, and at least one condition."""

    #: Default: the objective or the query.
    name: _Name | None = None
    #: Tests ``context`` for this objective. The empty text tests what every prompt gets.
    objective: Annotated[str, Meta(max_length=32_768)] | None = None
    #: Tests ``memory_block`` for this query: only the memories that bear on it.
    query: Annotated[str, Meta(min_length=1, max_length=32_768)] | None = None
    purpose: Purpose = "answer"
    #: Whose context it is: of a user, an agent, a project, or in a scope. Default: that of the handle.
    user: _Name | None = None
    agent: _Name | None = None
    project: _Name | None = None
    scope: _Name | None = None
    #: Tests the memory on this branch. Default: that of the handle.
    branch: _Name | None = None
    #: As for ``context``; an instant is text, such as ``"2027-01-03"``.
    valid_at: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    budget_tokens: Annotated[int, Meta(ge=1, le=128_000)] | None = None
    #: Texts that the context must contain, exactly as written.
    contains: _Texts = ()
    #: Texts that it must not contain.
    lacks: _Texts = ()
    #: Most tokens of the context.
    max_tokens: _Limit | None = None
    #: Most memories in the context; each is a line.
    max_lines: _Limit | None = None

    @property
    def title(self) -> str:
        """Its name, or what it asks."""
        return self.name or self.objective or self.query or "every prompt"

    def failures(self, text: str, tokens: int, lines: int) -> tuple[str, ...]:
        """Return a sentence for each condition that a context fails."""
        failed = [f"missing: {part}" for part in _list(self.contains) if part not in text]
        failed += [f"not allowed: {part}" for part in _list(self.lacks) if part in text]
        for given, most, unit in ((tokens, self.max_tokens, "token"), (lines, self.max_lines, "line")):
            if most is not None and given > most:
                failed.append(f"{pluralize(given, unit, unit + 's')}, at most {most:,}")
        return tuple(failed)


class MemoryTestResult(Value):
    """The result of one test."""

    name: str
    passed: bool
    #: What failed, such as ``missing: db-7``; or why there is no context.
    failures: tuple[str, ...]
    tokens: int
    lines: int
    #: The context; empty if there is none.
    text: str


class MemoryTestRun(ListResult[MemoryTestResult], eq=False):
    """The results of tests, in their order."""

    passed: int
    failed: int
    #: The state that was tested.
    head: str
    #: Why the run is not stored, if so.
    notes: tuple[str, ...] = ()


class NewestTestRun(Data):
    """What is stored of the newest run of memory tests."""

    #: What ran, such as the name of the file.
    label: str | None
    at: Instant
    by: str
    #: The state that was tested.
    head: str
    passed: int
    failed: int
    #: Names of failed tests, at most fifty.
    failing: tuple[str, ...]


def lines_of(sections: Iterable[Section]) -> int:
    """Return the number of memories in a context."""
    return sum(len(section.items) for section in sections)


def parse_test(value: Any, number: int = 1) -> MemoryTest:
    """Return a test from its fields; ``number`` names it in errors, from 1.

    Raises:
        InvalidInput: a field is unknown or has another type, or there is no question or no condition.
    """
    test = value if isinstance(value, MemoryTest) else _converted(value, number)
    if (test.objective is None) == (test.query is None):
        raise InvalidInput(f"test {number}: give either `objective` or `query`")
    if not (test.contains or test.lacks) and test.max_tokens is None and test.max_lines is None:
        raise InvalidInput(f"test {number} tests nothing: give `contains`, `lacks`, `max_tokens` or `max_lines`")
    if test.scope and (test.user or test.agent or test.project):
        raise InvalidInput(f"test {number}: give either `scope`, or a `user`, `agent` or `project`")
    return test


def _converted(value: Any, number: int) -> MemoryTest:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"test {number} is an object, such as {{objective: Where do we deploy?, contains: db-7}}")
    if is_too_deep(value):
        raise InvalidInput(f"test {number} is nested too deeply: its fields are texts, numbers and lists of texts")
    known = MemoryTest.__struct_fields__
    if (unknown := next((name for name in value if name not in known), None)) is not None:
        raise InvalidInput(f"test {number}: {unknown_field_message('field', unknown, known)}")
    try:
        return msgspec.convert(dict(value), MemoryTest)
    except msgspec.ValidationError as exc:
        # The message names the field, such as "Expected `int` >= 0 - at `$.max_lines`", and never the value.
        name = str(exc).partition("`$.")[2].rstrip("`").partition("[")[0]
        raise InvalidInput(f"test {number}: {name} is {_KINDS.get(name, _KINDS['name'])}") from None


def _list(texts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts
