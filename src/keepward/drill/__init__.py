"""Attacks that a user understands, made on a copy of a store; `python -m evals.security` makes all others too."""
