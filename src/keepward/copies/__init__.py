"""Copies of a store: backups, rescued stores, keys in other homes, and what was erased in all of them."""
