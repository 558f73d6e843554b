"""Labelled sets of our own writing. Half of the wordings serve development, half only the figures."""
