"""Ids in sixteen bytes: they come back as given, and lead to their newest row."""

import random

import numpy as np
import pytest

from keepward.retrieval import rows
from keepward.retrieval.rows import Codes, Ids

ODD = ["note-1", "", "01920000-0000-7000-8000-00000000000A", "ключ", "0" * 36, "01920000-0000-7000-8000-0000000  01a"]


def usual(count, seed=1):
    rnd = random.Random(seed)
    return [str(ids_of(rnd)) for _ in range(count)]


def ids_of(rnd):
    digits = f"{rnd.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def made(names, by=1):
    held = Ids()
    for start in range(0, len(names), by):
        held.extend(names[start : start + by])
    return held


@pytest.mark.parametrize("by", [1, 7, 100])
def test_ids_come_back_as_they_were_given(by):
    names = [*usual(50), *ODD, *usual(50, 2)]
    held = made(names, by)
    assert [held[row] for row in range(len(names))] == names


def test_the_ids_of_several_rows_come_back_in_the_order_asked():
    names = [*usual(50), *ODD]
    order = np.random.default_rng(1).permutation(len(names))
    assert made(names).named(order) == [names[row] for row in order]


@pytest.mark.parametrize("by", [1, 7, 100])
@pytest.mark.parametrize("asked", [1, 200])
def test_an_id_leads_to_its_newest_row(by, asked, monkeypatch):
    monkeypatch.setattr(rows, "_APART", 10)
    some = [*usual(60), *ODD]
    names = random.Random(3).choices(some, k=300)
    held = made(names, by)
    newest = {name: row for row, name in enumerate(names)}
    wanted = [*some, *usual(5, 9), "note-2"]
    found = [row for n in range(0, len(wanted), asked) for row in held.newest(wanted[n : n + asked]).tolist()]
    assert found == [newest.get(name, -1) for name in wanted]


@pytest.mark.parametrize("asked", [1, 200])
def test_ids_with_the_same_end_are_told_apart(asked):
    names = [f"{n:08x}-0000-7000-8000-000000000001" for n in range(40)]
    held = made(names * 2, 40)
    wanted = [*names, "ffffffff-0000-7000-8000-000000000001"]
    found = [row for n in range(0, len(wanted), asked) for row in held.newest(wanted[n : n + asked]).tolist()]
    assert found == [*range(40, 80), -1]


def test_what_is_kept_is_found_in_its_new_row():
    names = [*usual(30), *ODD]
    held = made(names, 5)
    left = np.arange(1, len(names), 2)
    new_rows = np.full(len(names), -1, dtype=np.int32)
    new_rows[left] = np.arange(len(left))
    held.keep(left, new_rows)
    assert held.newest(names).tolist() == new_rows.tolist()
    assert [held[n] for n in range(len(left))] == names[1::2]


def test_nothing_is_found_among_no_rows():
    assert Ids().newest(["note-1"]).tolist() == [-1]


@pytest.mark.parametrize("largest", [127, 128, 32_767, 32_768, 70_000])
def test_codes_take_as_few_bytes_as_their_largest_needs(largest):
    one, many = Codes(), Codes()
    many.extend([-1, largest])
    for value in (-1, largest):
        one.extend([value])
    assert one.view.tolist() == many.view.tolist() == [-1, largest]
    assert one.view.itemsize == many.view.itemsize == (1 if largest < 128 else 2 if largest < 32_768 else 4)
