"""Immutable values and pure functions: memories, changes, commits, proposals, queries and results."""
