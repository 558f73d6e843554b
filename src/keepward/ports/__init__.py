"""Protocols that the services need from the outside. Any object with the methods is an adapter."""
