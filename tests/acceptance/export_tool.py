"""The standalone verifier of exports, loaded from its file: it is no part of the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

TOOL = Path(__file__).resolve().parents[2] / "tools" / "verify_export.py"


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("verify_export", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOLS = _tool()
