"""Copies of a store: backups, recovered and migrated stores, exported keys, and erasures in all of them."""
