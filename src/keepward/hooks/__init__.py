"""Hooks of coding clients: what is remembered and put in without anybody asking for it."""
