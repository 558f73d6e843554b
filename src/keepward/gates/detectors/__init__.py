"""Detectors: pure functions from one text to findings. The gates decide what a finding means."""
