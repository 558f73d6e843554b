"""Show the parameters of each operation on the reference page of Python, in the words of ``help``.

MkDocs reads the source of a docstring; the list of parameters is added when the class is made.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe

from keepward.api import MemoryAPI


class Parameters(griffe.Extension):
    """Replaces the docstring of an operation by the one that it has in Python."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        method = getattr(MemoryAPI, func.name, None)
        if func.path.startswith("keepward.api.MemoryAPI.") and func.docstring is not None:
            func.docstring.value = inspect.getdoc(method) or func.docstring.value
