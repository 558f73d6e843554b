"""Surfaces: parse what was asked, call one verb of the front door, present the answer. They decide nothing."""
