"""Stores: keep the journal and what is computed from it; decide nothing."""
