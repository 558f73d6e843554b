"""Protocols: what the engine needs of the world. An adapter is anything that has the methods."""
