"""Ways to reach a person: e-mail addresses, phone numbers, public network addresses."""

# ruff: noqa: E501, C901, PLW2901

from __future__ import annotations

from collections.abc import Iterator

from keepward.gates.detect.engine import MAX_CANDIDATES, Haystack, compiled
from keepward.gates.detect.finding import Finding
from keepward.gates.detect.identifiers import NOT_PERSONAL

#: Of the part before the sign the last 64 characters count. What is counted in the pattern is compiled as often, and
#: the classes are large: with the lengths of a domain's labels in it, compiling took 250 ms.
_LOCAL = 64
_EMAIL = r"[\p{L}\p{N}._%+'-]+@(?:[\p{L}\p{N}][\p{L}\p{N}-]*\.)+(?:xn--[a-z0-9-]{2,20}|\p{L}{2,24})"
_SPELT = r"(?i)[A-Za-z0-9._%+-]{2,64}\s?[\[({]\s?at\s?[\])}]\s?[A-Za-z0-9-]{2,40}(?:(?:\s?[\[({]\s?dot\s?[\])}]\s?|\.)[A-Za-z0-9-]{2,24}){1,4}"
_FILES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".svg",
    ".webp",
    ".js",
    ".ts",
    ".css",
    ".json",
    ".py",
    ".md",
    ".service",
    ".timer",
    ".socket",
    ".yaml",
    ".yml",
)
_SSH = frozenset({"git", "hg", "svn"})

_INTERNATIONAL = r"(?:\+|\b00)\s?[1-9](?:[ ().\x{2009}\x{202f}/-]{0,3}\d){6,14}"
_NANP = r"(?:1[ .-])?(?:\([2-9]\d{2}\)\s?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}"
_LABEL = r"(?i)(?:phone|telephone|tel|tel\.|mobile|mob|cell|cellphone|fax|whatsapp|signal|sms|call\s+(?:me|us|him|her|them|back)?|text\s+(?:me|him|her)|reach\s+(?:me|him|her|them)|ring\s+(?:me|him|her)|dial|telefon\w*|handy\w*|mobil\w*|rufnummer|telefono|telefone|movil|celular|cellulare|portable|telephone|numero|gsm|telefoonnummer|telefoon|komorka|komorkowy|nummer|телефон\w*|тел|моб\w*|电话|電話|手机|手機|携帯|전화|휴대폰|contact\s+number|number\s+is|cep|telefonu|puhelin)"
_LABELLED = rf"{_LABEL}[^\n\d+]{{0,24}}?(?P<v>\(?0?\d(?:[ ().\x{{2009}}/-]{{0,3}}\d){{6,13}})"
#: Digits of the shortest phone number.
PHONE_DIGITS = 7
_REGIONS = (
    "US",
    "GB",
    "DE",
    "FR",
    "ES",
    "IT",
    "NL",
    "IN",
    "BR",
    "PL",
    "AU",
    "JP",
    "CN",
    "KR",
    "RU",
    "TR",
    "MX",
    "SE",
    "CH",
    "AT",
    "BE",
    "PT",
    "ZA",
    "CA",
)
_MOST_PARSED = 60

_IPV4 = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}"
_IPV6 = r"(?i:[23][0-9a-f]{3}(?::[0-9a-f]{0,4}){3,7})"
_VERSION = r"(?i)(?:\bv|ver\.?|version|release|firmware|build|driver|upgrade[d]?(?:\s+\w+)?\s+to|bumped?(?:\s+\w+)?\s+to|section|chapter|oid|tag|image|chrome/|mozilla/|safari/|[a-z]/|[=~^<>@-])\s*[\"'(]?\s*$"

#: Of these, one occurs in every text that ``addresses`` or ``phones`` finds something in. The sign alone stands for
#: an e-mail address: without it the pattern looks at every word of a text.
CONTACT = ("@", _SPELT, _IPV4, _IPV6, _INTERNATIONAL, _NANP, _LABELLED)


def addresses(hay: Haystack) -> Iterator[Finding]:
    """Yield e-mail addresses and public IP addresses."""
    text = hay.text
    if "@" in text:
        for count, (start, end) in enumerate(hay.spans(_EMAIL)):
            if count >= MAX_CANDIDATES:
                yield Finding(detector="email", start=start, end=len(text))
                return
            start = max(start, text.index("@", start) - _LOCAL)
            while start < end and text[start] in ".'%-":
                start += 1
            if _is_email(text, start, end):
                yield Finding(detector="email", start=start, end=end)
    lower = hay.lower
    if any(mark in lower for mark in ("[at]", "(at)", "{at}", "[ at ]", "( at )")):
        for start, end in hay.spans(_SPELT):
            yield Finding(detector="email", start=start, end=end, certainty="likely")
    if text.count(".") >= 3:
        for count, (start, end) in enumerate(hay.spans(_IPV4)):
            if count >= MAX_CANDIDATES:
                break
            if _is_public(text, start, end):
                yield Finding(detector="ip_address", start=start, end=end, certainty="likely")
    if text.count(":") >= 4:
        for count, (start, end) in enumerate(hay.spans(_IPV6)):
            if count >= MAX_CANDIDATES:
                break
            if _is_ipv6(text[start:end]) and not (start and (text[start - 1].isalnum() or text[start - 1] == ":")):
                yield Finding(detector="ip_address", start=start, end=end, certainty="likely")


def _is_email(text: str, start: int, end: int) -> bool:
    value = text[start:end].lower()
    local, _, domain = value.partition("@")
    if (
        not local
        or domain.endswith(_FILES)
        or (start and text[start - 1] in "/:" and text[max(0, start - 3) : start] == "://")
    ):
        return False
    if local in _SSH or (
        text[end : end + 1] == ":" and text[end + 1 : end + 2].isalpha() and "/" in text[end : end + 60]
    ):
        return False
    # user:secret@host in a URL is a credential, not a mailbox.
    return not (start and text[start - 1] == ":" and "://" in text[max(0, start - 100) : start])


def _is_public(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 2]
    if (before.isascii() and (before.isalnum() or before in "._-/@=") and before) or (
        after[:1].isascii() and after[:1].isalnum()
    ):
        return False
    if after[:1] in ".-+_" and after[1:].isalnum():
        return False
    if compiled(_VERSION).search(text[max(0, start - 24) : start].encode("utf-8", "replace")):
        return False
    import ipaddress

    address = ipaddress.ip_address(text[start:end])
    parts = text[start:end].split(".")
    small = all(int(part) < 32 for part in parts)
    return address.is_global and not small and len(set(parts)) > 1


def _is_ipv6(value: str) -> bool:
    import ipaddress

    try:
        return ipaddress.IPv6Address(value).is_global
    except ValueError:
        return False


def phones(hay: Haystack) -> Iterator[Finding]:
    """Yield phone numbers in international form, in North American form, or beside a label."""
    text = hay.text
    budget = _MOST_PARSED
    for kind, pattern in (("plus", _INTERNATIONAL), ("nanp", _NANP), ("label", _LABELLED)):
        if kind == "plus" and "+" not in text and "00" not in text:
            continue
        for count, (start, end) in enumerate(hay.spans(pattern)):
            if count >= MAX_CANDIDATES:
                yield Finding(detector="phone", start=start, end=len(text), certainty="likely")
                return
            if not _stands_alone(text, start, end):
                continue
            value = text[start:end]
            if kind != "label" and compiled(NOT_PERSONAL).search(
                text[max(0, start - 40) : start].encode("utf-8", "replace")
            ):
                continue
            # Beyond the budget a shape is enough: a flood must cost time linear in the text.
            if budget <= 0 or _valid(value, kind):
                yield Finding(
                    detector="phone", start=start, end=end, certainty="certain" if kind == "plus" else "likely"
                )
            budget -= 1


def _stands_alone(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if (before.isascii() and before.isalnum()) or (after.isascii() and after.isalnum()):
        return False
    if before == " " and start > 1 and text[start - 2].isdigit() and text[start] == "0":
        # A group inside a longer row of digits, such as an account number.
        return False
    if before in ".-/_" and start > 1 and text[start - 2].isalnum():
        return False
    return not (after in "-/._:" and end + 1 < len(text) and text[end + 1].isdigit())


def _valid(value: str, kind: str) -> bool:
    import phonenumbers

    if kind == "nanp" and value.startswith("("):
        return True
    if kind == "label" and _dated(value):
        return False
    international = "+" + value[2:] if value.startswith("00") and kind == "plus" else value
    for region in (None,) if kind == "plus" else ("US",) if kind == "nanp" else _REGIONS:
        try:
            number = phonenumbers.parse(international, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return True
        if kind == "plus" and phonenumbers.is_possible_number(number) and any(mark in value for mark in " -()."):
            return True
    return False


def _dated(value: str) -> bool:
    digits = value.replace("-", "").replace("/", "").replace(".", "")
    return (
        len(digits) == 8
        and digits[:2] in {"19", "20"}
        and not digits.startswith("0")
        and any(mark in value for mark in "-/.")
    )
