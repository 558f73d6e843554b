"""Adapters: implementations of the protocols for files, the clock and randomness."""
