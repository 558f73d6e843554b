"""Hooks of coding clients: they store prompts and add memories to them, without a call of the model."""
