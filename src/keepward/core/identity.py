"""The identity: who the agent is, at the start of every context."""

from __future__ import annotations

from keepward.core.memory import Record
from keepward.core.value import Value


class Identity(Value):
    """The persona of every context, and the core block that holds its approved text."""

    #: The text that opens every context; None without one.
    text: str | None
    #: Version of the text: the first 16 digits of the SHA-256 of a file, or the version number of the block.
    version: str | None
    tokens: int
    budget: int
    #: Name of the file. With a file, the file alone is the persona.
    file: str | None
    #: The core block; ``history`` lists its versions. With a file, it is what its owner approved last.
    block: Record | None
    #: What to change in the file so that it has the approved text, as a unified diff; empty if there is nothing.
    diff: str
