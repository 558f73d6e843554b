"""Shipped with the library: fakes and suites for those who write adapters or test against Keepward."""
