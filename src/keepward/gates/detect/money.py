"""Account and card numbers: IBANs and payment cards."""

# ruff: noqa: E501, SIM905

from __future__ import annotations

from collections.abc import Iterator

from keepward.gates.detect.engine import MAX_CANDIDATES, Haystack, compiled
from keepward.gates.detect.finding import Finding
from keepward.gates.detect.identifiers import NOT_PERSONAL

IBAN = r"(?i:[A-Z]{2})\d{2}(?:[ \x{00A0}-]{0,2}[A-Za-z0-9]){11,32}"
CARD = r"[2-6]\d{3}(?:[ .-]?\d){8,15}"
#: Digits of the shortest card number.
CARD_DIGITS = 12
_CARD_WORD = r"(?i)(?:card|visa|mastercard|amex|american express|credit|debit|karte|carte|tarjeta|cartao|carta|kaart|karta|карт|卡|カード|카드|maestro|discover|pan|cc)"

#: Length of an IBAN by country (ISO 13616 registry).
_LENGTHS = dict(
    zip(
        "AD AE AL AT AZ BA BE BG BH BI BR BY CH CR CY CZ DE DJ DK DO EE EG ES FI FK FO FR GB GE GI GL GR GT HN HR HU IE IL IQ IS IT JO KW KZ LB LC LI LT LU LV LY MC MD ME MK MN MR MT MU NI NL NO OM PK PL PS PT QA RO RS RU SA SC SD SE SI SK SM SO ST SV TL TN TR UA VA VG XK YE".split(),
        (24, 23, 28, 20, 28, 20, 16, 22, 22, 27, 29, 28, 21, 22, 28, 24, 22, 27, 18, 28, 20, 29, 24, 18, 18, 18, 27, 22, 22, 23, 18, 27, 28, 28, 21, 28, 22, 23, 23, 26, 27, 30, 30, 20, 28, 32, 21, 20, 20, 21, 25, 27, 24, 22, 19, 20, 27, 31, 30, 28, 18, 15, 23, 24, 28, 29, 25, 29, 24, 22, 33, 24, 31, 18, 24, 19, 24, 27, 23, 25, 28, 23, 24, 26, 29, 22, 24, 20, 30),
        strict=True,
    )
)  # fmt: skip


def ibans(hay: Haystack) -> Iterator[Finding]:
    """Yield IBANs whose length and check digits hold (ISO 7064 mod 97-10)."""
    text = hay.text
    for count, (start, end) in enumerate(hay.spans(IBAN)):
        if count >= MAX_CANDIDATES:
            yield Finding(detector="iban", start=start, end=len(text))
            return
        if start and text[start - 1].isascii() and text[start - 1].isalnum():
            continue
        need = _LENGTHS.get(text[start : start + 2].upper())
        if need is None:
            continue
        compact = ""
        for position in range(start, end):
            if text[position].isalnum():
                compact += text[position].upper()
                if len(compact) == need:
                    after = text[position + 1] if position + 1 < len(text) else " "
                    if not (after.isascii() and after.isalnum()) and _mod97(compact):
                        yield Finding(detector="iban", start=start, end=position + 1)
                    break


def _mod97(compact: str) -> bool:
    turned = compact[4:] + compact[:4]
    return turned.isascii() and int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def cards(hay: Haystack) -> Iterator[Finding]:
    """Yield payment card numbers: issuer range, length and Luhn digit."""
    text = hay.text
    for count, (start, end) in enumerate(hay.spans(CARD)):
        if count >= MAX_CANDIDATES:
            yield Finding(detector="payment_card", start=start, end=len(text))
            return
        if _touches(text, start, end):
            continue
        digits = "".join(char for char in text[start:end] if char.isdigit())
        if not (_issued(digits) and luhn(digits)):
            continue
        before = text[max(0, start - 40) : start].encode("utf-8", "replace")
        if compiled(NOT_PERSONAL).search(before) and not compiled(_CARD_WORD).search(before):
            continue
        yield Finding(detector="payment_card", start=start, end=end)


def _touches(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if (before.isascii() and (before.isalnum() or before in "_$")) or (
        after.isascii() and (after.isalnum() or after == "_")
    ):
        return True
    # 0.4111... and 12-4111-... are parts of something longer.
    return (before in ".-/" and start > 1 and text[start - 2].isalnum()) or (
        after in ".-/" and end + 1 < len(text) and text[end + 1].isalnum()
    )


def _issued(digits: str) -> bool:
    size = len(digits)
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    return (
        (digits[0] == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((two in (36, 38, 39) or 300 <= three <= 305) and size in (14, 16))
        or ((four == 6011 or two == 65 or 644 <= three <= 649) and size in (16, 19))
        or (3528 <= four <= 3589 and size in (16, 19))
        or (two == 62 and size in (16, 17, 18, 19))
        or (four in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763) and 13 <= size <= 19)
        or (2200 <= four <= 2204 and size == 16)
        or (two in (60, 81, 50) and size == 16)
    )


def luhn(digits: str) -> bool:
    """Whether the last digit is the Luhn check of the others (ISO/IEC 7812-1)."""
    total = 0
    for index, char in enumerate(reversed(digits)):
        value = int(char)
        if index % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0 and len(set(digits)) > 1
