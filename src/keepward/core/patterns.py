"""What takes time to make, and is made when it is first asked for: patterns, and the tables that lie beside modules."""

from __future__ import annotations

import pkgutil
import re
from functools import cache, cached_property
from typing import Any, cast


@cache
def load_toml(package: str, name: str) -> dict[str, Any]:
    """Return what a file of TOML in a package says; one object for all who ask."""
    import tomllib

    return tomllib.loads((pkgutil.get_data(package, name) or b"").decode())


def lazy_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what ``re.compile`` does; a mistake in it is told of at its first use.

    Raises:
        re.error: see above.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))


class _LazyPattern:
    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        # What is asked for once is found in this object from then on, as fast as in a pattern.
        found = self.__dict__[name] = getattr(self._compiled, name)
        return found
