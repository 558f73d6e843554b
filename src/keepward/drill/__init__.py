"""Attacks that a store has to withstand, run against a copy of it."""
