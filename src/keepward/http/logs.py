"""The server's log: lines on stderr, plain or as JSON.

Invariants
(1) A line says what happened and how long it took; no content, no query, no id of a memory, no trace.
(2) JSON lines have ``at``, ``level``, ``action`` and the facts of the action, in that order.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

#: Facts that a line may carry, by name; anything else of a record stays where it is.
FACTS = ("method", "route", "status", "ms", "error", "place", "job", "outcome", "request")
#: Loggers that are listened to, and from which level on; those of others for their warnings, asyncio for errors.
_NAMES = {
    "keepward": logging.INFO,
    "uvicorn.error": logging.WARNING,
    "mcp": logging.WARNING,
    "asyncio": logging.ERROR,
}


class Lines(logging.Formatter):
    """One record as one line."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a trace that came along is left out (1)."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = {name: getattr(record, name) for name in FACTS if hasattr(record, name)}
        action = getattr(record, "action", None)
        said = record.getMessage().replace("\n", " ")
        if self._as_json:
            rest = facts or {"message": said}
            told = {"at": at, "level": record.levelname.lower(), "action": action or record.name, **rest}
            return json.dumps(told, default=str)
        took = f" {facts['ms']} ms" if "ms" in facts else ""
        return f"{at} {record.levelname.lower()} {said}{took}"


@contextmanager
def logging_to(stream: TextIO | None = None, *, as_json: bool, quiet: bool = False) -> Iterator[None]:
    """Write the log of this process to a stream, stderr by default, for as long as the block lasts.

    With ``quiet`` warnings and errors alone.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(as_json=as_json))
    before = []
    for name, level in _NAMES.items():
        logger = logging.getLogger(name)
        before.append((logger, logger.level, logger.propagate, list(logger.handlers)))
        logger.setLevel(max(level, logging.WARNING) if quiet else level)
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, level, propagate, handlers in before:
            logger.setLevel(level)
            logger.handlers, logger.propagate = handlers, propagate
