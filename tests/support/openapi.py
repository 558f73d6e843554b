"""The OpenAPI document, which is the same for every store."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from keepward import Actor, Memory
from keepward.http import create_app


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI document."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with Memory.open(":memory:", actor=Actor.operator(), embedder=None, config_dir=home) as memory:
            return create_app(memory).openapi()
