"""Values that are expensive to make, made at first use: regular expressions, and TOML files of a package.

Late imports: few texts need it.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache, cached_property
from typing import Any, cast


@cache
def load_toml(package: str, name: str) -> dict[str, Any]:
    """Return the content of a TOML file of a package; callers share one object."""
    import tomllib

    return tomllib.loads((pkgutil.get_data(package, name) or b"").decode())


def lazy_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use.

    Raises:
        re.error: at the first use, if the source is invalid.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))


class _LazyPattern:
    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        # Cache the attribute on this object, so that later access is as fast as on a pattern.
        attribute = self.__dict__[name] = getattr(self._compiled, name)
        return attribute
