"""Checks of national numbers that python-stdnum does not know."""

from __future__ import annotations

from collections.abc import Callable


def nino(value: str) -> bool:
    """United Kingdom national insurance number: it has no check digit, but letters that are never used."""
    compact = _compact(value)
    return (
        len(compact) == 9
        and compact[:2].isalpha()
        and compact[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
        and not set(compact[:2]) & set("DFIQUV")
        and compact[1] != "O"
        and compact[2:8].isdigit()
        and compact[8] in "ABCD"
    )


def nric(value: str) -> bool:
    """Singapore NRIC and FIN: weights 2 7 6 5 4 3 2, an offset by series, a letter from a table."""
    compact = _compact(value)
    if len(compact) != 9 or not compact[1:8].isdigit():
        return False
    total = sum(int(char) * weight for char, weight in zip(compact[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    if compact[0] in "ST":
        return compact[8] == "JZIHGFEDCBA"[(total + 4 * (compact[0] == "T")) % 11]
    if compact[0] in "FG":
        return compact[8] == "XWUTRQPNMLK"[(total + 4 * (compact[0] == "G")) % 11]
    return compact[0] == "M" and compact[8] == "KLJNPQRTUWX"[10 - (total + 3) % 11]


def taiwan_id(value: str) -> bool:
    """Taiwan national identification number: the letter counts as two digits, weights 1 9 8 ... 1."""
    compact = _compact(value)
    if len(compact) != 10 or not compact[0].isalpha() or not compact[1:].isdigit():
        return False
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(compact[0]) + 10
    digits = [letter // 10, letter % 10, *map(int, compact[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def medicare(value: str) -> bool:
    """Australian Medicare card: ten or eleven digits, the ninth a check of the first eight."""
    compact = _compact(value)
    if len(compact) not in (10, 11) or not compact.isdigit() or compact[0] not in "23456":
        return False
    total = sum(int(char) * weight for char, weight in zip(compact[:8], (1, 3, 7, 9, 1, 3, 7, 9), strict=True))
    return total % 10 == int(compact[8])


def _compact(value: str) -> str:
    return "".join(char for char in value.upper() if char.isascii() and char.isalnum())


OWN_CHECKS: dict[str, Callable[[str], bool]] = {
    "gb.nino": nino,
    "sg.nric": nric,
    "tw.id": taiwan_id,
    "au.medicare": medicare,
}
