"""Adapters: the world and the models, each behind its port."""
