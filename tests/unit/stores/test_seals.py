"""Seals are HMAC-SHA256 (RFC 2104), whatever is kept ready to make them quickly."""

from __future__ import annotations

import hmac

import pytest

from keepward.storage.seals import Sealer, encode_cells


@pytest.mark.parametrize("size", [1, 32, 64, 65, 200])
def test_seal_is_a_prefix_of_the_row_mac(size):
    key = bytes(range(size))
    mac = hmac.digest(key, b"keepward/row/v1\0" + encode_cells("heads", "t", 1, b"x", None), "sha256")
    assert Sealer(key).row("heads", "t", 1, b"x", None) == mac[:16]


def test_one_seal_does_not_depend_on_those_made_before_it():
    used, fresh = Sealer(b"k" * 32), Sealer(b"k" * 32)
    used.row("heads", "other")
    assert used.row("heads", "t") == fresh.row("heads", "t")


def test_without_a_key_a_seal_is_empty():
    assert Sealer(None).row("heads", "t") == b""
