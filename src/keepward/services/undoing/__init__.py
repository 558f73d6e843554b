"""Undo: roll back, find and contain what is affected, erase, forget."""
