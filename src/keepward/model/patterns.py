"""Regular expressions that are compiled when they are first used: a command uses a few of all that it loads."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what ``re.compile`` does; a mistake in it is told of at its first use.

    Raises:
        re.error: see above.
    """
    return cast("re.Pattern[str]", _Pattern(source, flags))


class _Pattern:
    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        # What is asked for once is found in this object from then on, as fast as in a pattern.
        found = self.__dict__[name] = getattr(self._compiled, name)
        return found
