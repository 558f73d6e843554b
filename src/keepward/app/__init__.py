"""The front door: open a store, and every verb there is."""

from keepward.app.memory import Memory
from keepward.app.writes import Draft

__all__ = ["Draft", "Memory"]
