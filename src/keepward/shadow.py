"""Shadow: Keepward next to a host's own memory. It says what it would have added; the prompt stays the host's."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from keepward import durable
from keepward.core.value import Data, Instant, Value
from keepward.errors import KeepwardError

if TYPE_CHECKING:
    from keepward.core.compiled import Section
    from keepward.memory import Memory

P = ParamSpec("P")
T = TypeVar("T")
#: Most calls of a report; older ones leave first.
MAX_CALLS = 5_000
#: Memories that a report names.
MAX_NAMED = 10


class ShadowCall(Data):
    """One prompt, and what Keepward would have added."""

    at: Instant
    #: ``call`` in a program; ``start`` or ``prompt`` of a hook.
    event: str = "call"
    #: Tokens of the text that was not added.
    tokens: int = 0
    #: Ids of its memories.
    ids: tuple[str, ...] = ()
    milliseconds: float = 0.0
    #: Why there is none, if something failed.
    error: str = ""


class ShadowMemory(Value):
    """A memory that would have been added."""

    id: str
    #: Its text now.
    text: str
    #: Number of calls that would have had it.
    calls: int


class ShadowReport(Value):
    """What Keepward would have added next to a host."""

    calls: int
    #: Calls that would have had at least one memory, and calls that failed.
    added: int
    failed: int
    #: Over calls with a memory; 0 without any.
    median_tokens: float
    most_tokens: int
    median_milliseconds: float
    #: The most frequent memories that this handle may read, at most 10.
    memories: tuple[ShadowMemory, ...]
    #: Errors, each once, at most 10.
    errors: tuple[str, ...]


class _Compiled(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def sections(self) -> tuple[Section, ...]: ...


class Shadow(Generic[P, T]):
    """A host's function that builds a part of a prompt, with Keepward next to it.

    Call it as the host's function. The answer is the host's, byte for byte, and so are its errors. An error of
    Keepward is a line of the report.
    """

    def __init__(self, memory: Memory, host: Callable[P, T], build: Callable[[str], _Compiled]) -> None:
        self._memory, self._host, self._build = memory, host, build
        #: The newest calls, oldest first.
        self.calls: list[ShadowCall] = []
        #: The text that the last call would have added.
        self.text = ""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        answer = self._host(*args, **kwargs)
        words = [each for each in (*args, *kwargs.values()) if isinstance(each, str)]
        self.text = ""

        def build() -> _Compiled:
            compiled = self._build(words[0] if words else "")
            self.text = compiled.text
            return compiled

        self.calls = [*self.calls[1 - MAX_CALLS :], compile_call(self._memory, "call", build)]
        return answer

    def capture(self, messages: Sequence[Mapping[str, Any]], *, session: str | None = None) -> None:
        """Store messages as ``Memory.add`` does; an error is a line of the report."""
        try:
            self._memory.add(messages, session=session)
        except Exception as fault:  # noqa: BLE001  the host goes on
            self.calls.append(ShadowCall(at=self._memory.now, event="capture", error=_error_text(fault)))

    def report(self) -> ShadowReport:
        """Return what the calls since the start of this object would have had."""
        return report_of(self._memory, [call for call in self.calls if call.event != "capture" or call.error])


def compile_call(memory: Memory, event: str, build: Callable[[], _Compiled]) -> ShadowCall:
    """Compile what would have been added; an error is one of the call."""
    began = perf_counter()
    try:
        compiled = build()
    except Exception as fault:  # noqa: BLE001  the host goes on
        return ShadowCall(at=memory.now, event=event, error=_error_text(fault))
    ids = tuple(item.id for section in compiled.sections for item in section.items)
    spent = round((perf_counter() - began) * 1_000, 1)
    tokens = compiled.tokens if compiled.text else 0
    return ShadowCall(at=memory.now, event=event, tokens=tokens, ids=ids, milliseconds=spent)


def _error_text(fault: Exception) -> str:
    # The message of another error may quote the text.
    return f"{type(fault).__name__}: {fault}" if isinstance(fault, KeepwardError) else type(fault).__name__


def report_of(memory: Memory, calls: Sequence[ShadowCall]) -> ShadowReport:
    """Return the report of some calls, with the present texts of the memories."""
    added = [call for call in calls if call.ids]
    counted = Counter(name for call in added for name in set(call.ids))
    return ShadowReport(
        calls=len(calls),
        added=len(added),
        failed=sum(1 for call in calls if call.error),
        median_tokens=median(call.tokens for call in added) if added else 0,
        most_tokens=max((call.tokens for call in added), default=0),
        median_milliseconds=median(call.milliseconds for call in added) if added else 0,
        memories=tuple(_named(memory, counted)),
        errors=tuple(dict.fromkeys(call.error for call in calls if call.error))[:MAX_NAMED],
    )


def _named(memory: Memory, counted: Counter[str]) -> Iterator[ShadowMemory]:
    ranked = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    for name, calls in ranked[:MAX_NAMED]:
        # What was erased or moved since is left out; a document has no id.
        with suppress(KeepwardError):
            if text := memory.get(name).text:
                yield ShadowMemory(id=name, text=text, calls=calls)


class ShadowLog:
    """The calls of a client's hooks, in a file of the user. It has ids and numbers, no text."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, call: ShadowCall) -> None:
        """Append a call; of more than ``MAX_CALLS`` the newest half stays."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(msgspec.json.encode(call) + b"\n")
        calls = self.calls()
        if len(calls) > MAX_CALLS:
            durable.replace(self.path, b"".join(msgspec.json.encode(each) + b"\n" for each in calls[-MAX_CALLS // 2 :]))

    def calls(self) -> list[ShadowCall]:
        """Return the calls, oldest first; a line that another process is writing is left out."""
        found: list[ShadowCall] = []
        with suppress(FileNotFoundError):
            for line in self.path.read_bytes().splitlines():
                with suppress(msgspec.MsgspecError):
                    found.append(msgspec.json.decode(line, type=ShadowCall))
        return found

    def clear(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)
