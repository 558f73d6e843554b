"""The front door: open a store, and every verb there is."""

from keepward.app.memory import DEFAULT_PATH, Memory
from keepward.app.writes import Draft

__all__ = ["DEFAULT_PATH", "Draft", "Memory"]
