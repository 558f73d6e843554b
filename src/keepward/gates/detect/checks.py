"""What a match has to pass beside its pattern: checks by the names that rules call them.

Invariants
(1) A check of a value depends on the value alone, a check of a place on what stands right around it.
(2) A placeholder is never a secret: angle brackets, template braces, runs of x, "your key here".
(3) Numbers are read by python-stdnum and phonenumbers, where they know them.
"""

from __future__ import annotations

import functools
import importlib
import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from keepward.gates.detect.engine import Check
from keepward.gates.detect.tables import listed, read, words
from keepward.gates.detect.text import Text
from keepward.model.patterns import regex

Span = tuple[int, int] | None


@functools.cache
def _values(table: str) -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    return re2.compile("(?i)^(?:" + "|".join(read("values")[table]) + ")$", options)


def placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one (2)."""
    return not value or _values("placeholders").match(value[:300]) is not None


def ordinary(value: str) -> bool:
    """Whether a value has a shape of everyday technical text: a version, path, unit, algorithm, identifier."""
    return _values("ordinary").match(value[:300]) is not None


def dense(value: str) -> bool:
    """Whether a value is too random to be a name of code, though it has the shape of one: ``a1B2.c3D4``."""
    return digits(value) >= 3 and entropy(value) >= 3.8 and len(value) >= 24 and not set("(/@").intersection(value)


def entropy(value: str) -> float:
    """Shannon entropy in bits a character; 0 for an empty value."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def digits(value: str) -> int:
    """How many digits a value has."""
    return sum(map(str.isdigit, value))


def not_example(value: str) -> bool:
    """A prefixed value whose body is not a placeholder nor one character over and over."""
    body = (value[4:] if len(value) > 12 else value)[:400]
    if len(set(body)) < min(6, len(body)) or any(run in body for run in ("xxxx", "XXXX", "****", "....")):
        return False
    lowered = body.lower()
    return not any(word in lowered for word in words("values", "examples"))


def not_uuid(value: str) -> bool:
    """No UUID: it names a session, a request or a thing, far more often than it opens one."""
    return re.fullmatch(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", value) is None


def mixed_case(value: str) -> bool:
    """Small letters and capitals both, as an encoded value has them and a hexadecimal number has not."""
    return any(map(str.islower, value)) and any(map(str.isupper, value))


def mixed(value: str) -> bool:
    """Random-looking: letters and digits both, spread, and no run of plain words."""
    return not_example(value) and digits(value) >= 2 and entropy(value) >= 3.0 and not wordy(value)


def spread(value: str) -> bool:
    """No word and no name: characters that vary, with a digit or a capital among small letters."""
    lower, upper = any(map(str.islower, value)), any(map(str.isupper, value))
    return entropy(value) >= 3.0 and (digits(value) > 0 or (lower and upper)) and not wordy(value)


_WORD = regex("[a-z]{6}")


def scattered(value: str) -> bool:
    """Small letters, capitals and digits all through the part after the last underscore, and not the id of a thing."""
    kind, _, body = value.rpartition("_")
    lower, upper = sum(map(str.islower, body)), sum(map(str.isupper, body))
    mixture = min(lower, upper) >= 3 and digits(body) >= 1 and entropy(body) >= 3.5
    # Names of functions are written so, too: getUserProfile2.
    return (
        mixture
        and _WORD.search(body) is None
        and words("values", "kinds_of_things").isdisjoint(kind.lower().split("_"))
    )


def wordy(value: str) -> bool:
    """Whether a value is words joined, as names are: ``check-out-the-new-design``."""
    # Hyphenated or underscored names (check-out-the-new-design) are words, not random bytes.
    parts = value.replace("_", "-").replace("/", "-").replace(".", "-").split("-")
    if len(parts) < 3:
        return False
    known = [part for part in parts if part.isalpha() and (part.islower() or part.istitle()) and len(part) >= 3]
    # Two short pieces that look like words by chance do not make words of a long one beside them.
    return len(known) * 2 >= len(parts) and 3 * sum(map(len, known)) >= len(value)


def high_entropy(value: str, *, least: int = 16) -> bool:
    """A value random enough for a variable that is named as a secret; ``least`` is its shortest length."""
    if len(value) < least or placeholder(value) or wordy(value):
        return False
    lower, upper, digit = (any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    if not (lower or upper):
        return False
    return (lower + upper + digit >= 2 and entropy(value) >= 2.7) or (not value.isalpha() and entropy(value) >= 3.2)


def passphrase(value: str) -> bool:
    """Four words or more, joined: ``saffron-orbit-glacier-orbit``; words of grammar make it a name or a sentence."""
    parts = re.split(r"[-_.]", value.lower())
    plain = len(parts) >= 4 and all(len(part) >= 3 and part.isalpha() for part in parts)
    return plain and words("credentials_in_prose", "told", "glue").isdisjoint(parts)


#: A digit between letters: ``c0met``.
_LEET = regex(r"[a-z]\d[a-z]", re.IGNORECASE)


def strong(value: str) -> bool:
    """A value whose own shape says password: letters with digits or symbols, or capitals in the middle."""
    if len(value) < 4 or placeholder(value) or value.lower() in words("values", "brands"):
        return False
    if ordinary(value):
        # A word in disguise, a dot, another word: of the shape of a name in code, and no name.
        first, dot, last = value.partition(".")
        return bool(dot and first.isalnum() and last.isalnum() and _LEET.search(value))
    if not any(map(str.isalpha, value)):
        return False
    if any(map(str.isdigit, value)):
        return True
    inner = value[1:]
    if any(char in "!@#$%^&*+=~?_|" for char in inner) and len(value) >= 5 and not value.endswith(("?", "!")):
        return True
    # Type and function names (SecretStr, getPassword) are code, and plural abbreviations (JWTs) words.
    camel = value[:-1].isupper() or value.endswith(tuple(words("values", "type_endings")))
    capitals = any(map(str.isupper, inner)) and any(map(str.islower, value))
    return len(value) >= 6 and capitals and value.isalpha() and not camel


def password(value: str) -> bool:
    """A value in the place of a password that is neither a variable nor a word everybody writes there."""
    harmless = placeholder(value) or value.lower() in words("values", "no_passwords")
    return not harmless and not value.startswith(("$", "{", "%s", "<"))


def credential(value: str) -> bool:
    """A value in the place of a token: long enough, spread, with a digit."""
    return not placeholder(value) and len(value) >= 8 and entropy(value) >= 2.5 and any(map(str.isdigit, value))


def connection_password(value: str) -> bool:
    """A password of a connection string, and not a call or a name."""
    named = "(" in value or "[" in value or "." in value[1:-1]
    return password(value) and not value.isalpha() and not named


def argument(value: str) -> bool:
    """A password that follows an option of a command, and not a file, a host or a port."""
    plain = value.isalpha() or value.replace(":", "").isdigit()
    return password(value) and not plain and value[0] not in "-/." and "." not in value[:-1]


def option(value: str) -> bool:
    """A value of an option that is named as a secret, and not a path."""
    return password(value) and any(map(str.isdigit, value)) and "/" not in value[:2] and "." not in value[:2]


def key_block(value: str) -> bool:
    """A block whose body is not left out."""
    body = "".join(line for line in value.splitlines() if "-----" not in line)
    return "..." not in body and "…" not in body


def apart(text: Text, start: int, end: int) -> Span:
    """No ASCII letter or digit touches the span on either side, where it begins and ends with one."""
    whole = text.text
    glued = (start > 0 and _alnum(whole[start - 1]) and _alnum(whole[start])) or (
        end < len(whole) and _alnum(whole[end]) and _alnum(whole[end - 1])
    )
    return None if glued else (start, end)


def _alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    return text[start - 1] if start else " ", text[end] if end < len(text) else " "


def handed_over(text: Text, start: int, end: int) -> Span:
    """A password given to a command; what is merely echoed counts where a login reads it."""
    echoed = text.text[:start].rstrip("\"'").endswith(("echo ", "echo -n "))
    read_by_login = "--password-stdin" in text.text[end : end + 120]
    accepted = password(text.text[start:end]) and (not echoed or read_by_login)
    return (start, end) if accepted else None


def service_value(text: Text, start: int, end: int) -> Span:
    """A random value, and one that the words before it do not make an id, a place or a checksum."""
    value = text.text[start:end].rstrip(".:=/")
    said = re.findall(
        r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.text[max(0, start - 80) : start]).lower()
    )
    ends = set(said[-2:] if said[-1:] == ["is"] else said[-1:])
    named = not words("services", "keys").isdisjoint(ends)
    if not words("services", "no_keys").isdisjoint(ends) or not high_entropy(value):
        return None
    if ordinary(value) and not dense(value):
        return None
    hexadecimal = not value.lower().strip("0123456789abcdef-")
    # Commits, checksums and ids of events stand beside the names of services, too.
    plain = hexadecimal and not text.text[:start].rstrip(" \"'`").endswith("=")
    return (start, start + len(value)) if named or (digits(value) >= 3 and not plain) else None


def closed(text: Text, start: int, end: int) -> Span:
    """No letter, digit or joining mark continues the number on either side."""
    whole = text.text
    before, after = _around(whole, start, end)
    further = whole[end + 1] if end + 1 < len(whole) else " "
    longer = _alnum(before) or _alnum(after) or (after in "-/." and further.isdigit())
    return None if longer or (before in "-/._" and start > 1 and whole[start - 2].isalnum()) else (start, end)


def fits(text: Text, start: int, end: int, accepts: Callable[[str], bool]) -> Span:
    """Drop pieces from the end until the number fits: it may run into the next word ("12 345 678 and")."""
    for _ in range(6):
        cut = max(text.text.rfind(mark, start, end) for mark in " ./-")
        # No number ends in a word, and to ask takes long.
        word = start < cut < end - 3 and text.text[cut + 1 : end].isalpha()
        if not word and accepts(text.text[start:end]) and closed(text, start, end):
            return (start, end) if digits(text.text[start:end]) >= 5 else None
        end = cut
        if end <= start:
            return None
    return None


def personal(text: Text, start: int, end: int) -> Span:
    """The words right before a number do not say that it is an order, a build, a serial and the like."""
    return None if text.before(_not_personal(), start) else (start, end)


@functools.cache
def _not_personal() -> str:
    table = read("identifiers")["other_numbers"]
    return str(table["before"]).replace("WORDS", "|".join(word.replace(" ", r"\s+") for word in listed(table["words"])))


def mailbox(text: Text, start: int, end: int) -> Span:
    """An e-mail address, and not a file, a remote of git or a credential in a URL."""
    whole = text.text
    # Of the part before the sign the last 64 characters count. What is counted in the pattern is compiled as often.
    start = max(start, whole.index("@", start) - 64)
    while start < end and whole[start] in ".'%-":
        start += 1
    local, _, domain = whole[start:end].lower().partition("@")
    after = whole[end : end + 60]
    if not local or local in {"git", "hg", "svn"} or domain.endswith(tuple(words("identifiers", "file_endings"))):
        return None
    if whole[max(0, start - 3) : start] == "://" or (after[:1] == ":" and after[1:2].isalpha() and "/" in after):
        return None
    # user:secret@host in a URL is a credential, not a mailbox.
    return None if whole[start - 1 : start] == ":" and "://" in whole[max(0, start - 100) : start] else (start, end)


def public_ipv4(text: Text, start: int, end: int) -> Span:
    """A public address, and not a version or a section."""
    whole = text.text
    before, after = whole[start - 1 : start] if start else "", whole[end : end + 2]
    if before and (_alnum(before) or before in "._-/@="):
        return None
    if (after and _alnum(after[0])) or (after[:1] in ".-+_" and after[1:].isalnum()):
        return None
    if text.before(read("identifiers")["versions"]["before"], start, 24):
        return None
    parts = whole[start:end].split(".")
    small = all(int(part) < 32 for part in parts)
    public = ipaddress.ip_address(whole[start:end]).is_global and not small and len(set(parts)) > 1
    return (start, end) if public else None


def public_ipv6(text: Text, start: int, end: int) -> Span:
    """A public address of the long kind."""
    before = text.text[start - 1] if start else " "
    try:
        public = ipaddress.IPv6Address(text.text[start:end]).is_global
    except ValueError:
        return None
    return (start, end) if public and not before.isalnum() and before != ":" else None


def iban(text: Text, start: int, end: int) -> Span:
    """An account number whose length and check digits hold (ISO 13616, ISO 7064 mod 97-10)."""
    whole = text.text
    need = read("identifiers")["iban_lengths"].get(whole[start : start + 2].upper())
    if need is None or (start and _alnum(whole[start - 1])):
        return None
    compact = ""
    for position in range(start, end):
        if not whole[position].isalnum():
            continue
        compact += whole[position].upper()
        if len(compact) == need:
            turned = compact[4:] + compact[:4]
            holds = turned.isascii() and int("".join(str(int(char, 36)) for char in turned)) % 97 == 1
            return (start, position + 1) if holds and not _alnum(whole[position + 1 : position + 2] or " ") else None
    return None


def payment_card(text: Text, start: int, end: int) -> Span:
    """A card number: issuer range, length and Luhn digit (ISO/IEC 7812-1)."""
    whole = text.text
    before, after = _around(whole, start, end)
    if before in "_$" or after == "_" or _alnum(before) or _alnum(after):
        return None
    # 0.4111... and 12-4111-... are parts of something longer.
    if (before in ".-/" and start > 1 and whole[start - 2].isalnum()) or (
        after in ".-/" and end + 1 < len(whole) and whole[end + 1].isalnum()
    ):
        return None
    number = "".join(filter(str.isdigit, whole[start:end]))
    if not luhn(number):
        return None
    called = text.before(_card_words(), start)
    issued = _issued(number, "issued") or (called and _issued(number, "issued_beside_a_word"))
    return (start, end) if issued and (called or personal(text, start, end)) else None


def _issued(number: str, ranges: str) -> bool:
    return any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths
        for low, high, lengths in read("identifiers")["card_ranges"][ranges]
    )


@functools.cache
def _card_words() -> str:
    return "(?i)(?:" + "|".join(listed(read("identifiers")["card_ranges"]["words"])) + ")"


def luhn(number: str) -> bool:
    """Whether the last digit is the Luhn check of the others (ISO/IEC 7812-1)."""
    doubled = "0246813579"
    total = sum(int(doubled[int(char)] if at % 2 else char) for at, char in enumerate(reversed(number)))
    return total % 10 == 0 and len(set(number)) > 1


def phone(text: Text, start: int, end: int, kind: str) -> Span:
    """A phone number that stands by itself: in international form, in North American form, or beside a label."""
    whole = text.text
    before, after = _around(whole, start, end)
    if _alnum(before) or _alnum(after) or (after in "-/._:" and end + 1 < len(whole) and whole[end + 1].isdigit()):
        return None
    # "12 0345..." is a group inside a longer row of digits, such as an account number.
    if start > 1 and (
        (before == " " and whole[start - 2].isdigit() and whole[start] == "0")
        or (before in ".-/_" and whole[start - 2].isalnum())
    ):
        return None
    if kind != "label" and not personal(text, start, end):
        return None
    return (start, end) if _dialled(text, whole[start:end], kind) else None


def _dialled(text: Text, value: str, kind: str) -> bool:
    if kind == "nanp" and (value.startswith("(") or value.count("-") >= 2 or value.count(".") >= 2):
        # Who makes up a number writes it like any other: the form tells, whether its area is assigned or not.
        return True
    compact = "".join(char for char in value if char not in "-/.")
    if kind == "label" and len(compact) == 8 and compact[:2] in {"19", "20"} and any(mark in value for mark in "-/."):
        return False  # a date
    import phonenumbers

    international = kind == "plus" or value.startswith("+")
    value = "+" + value[2:] if international and value.startswith("00") else value
    regions: Sequence[str | None] = read("identifiers")["phone_regions"].split()
    if international or kind == "nanp":
        regions = (None,) if international else ("US",)
    for region in regions:
        # Beyond the budget a shape is enough: a flood must cost time linear in the text.
        text.parses_left -= 1
        if text.parses_left < 0:
            return True
        try:
            number = phonenumbers.parse(value, region)
        except phonenumbers.NumberParseException:
            continue
        spaced = international and (kind == "label" or any(mark in value for mark in " -()."))
        if phonenumbers.is_valid_number(number) or (spaced and phonenumbers.is_possible_number(number)):
            return True
    return False


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
    total = _weighted(compact[1:8], (2, 7, 6, 5, 4, 3, 2))
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
    return _weighted(f"{letter}{compact[1:]}", (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)) % 10 == 0


def medicare(value: str) -> bool:
    """Australian Medicare card: ten or eleven digits, the ninth a check of the first eight."""
    compact = _compact(value)
    if len(compact) not in (10, 11) or not compact.isdigit() or compact[0] not in "23456":
        return False
    return _weighted(compact[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(compact[8])


def _compact(value: str) -> str:
    return "".join(filter(_alnum, value.upper()))


def _weighted(number: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def resident_id(value: str) -> bool:
    """Chinese resident identity: a date of birth and a check digit. To look up its district takes long."""
    from stdnum.cn import ric
    from stdnum.exceptions import ValidationError

    compact = _compact(value)
    if len(compact) != 18 or not compact[:17].isdigit():
        return False
    try:
        ric.get_birth_date(compact)
    except ValidationError:
        return False
    return bool(ric.calc_check_digit(compact) == compact[17])


#: Numbers that python-stdnum does not know, or not as fast, by the names it has or would have for them.
_OWN_NUMBERS: dict[str, Callable[[str], bool]] = {
    "cn.ric": resident_id,
    "gb.nino": nino,
    "sg.nric": nric,
    "tw.id": taiwan_id,
    "au.medicare": medicare,
}


@functools.cache
def number(name: str) -> Callable[[str], bool]:
    """Return the check of a number by its name in python-stdnum, several joined by a bar; ``any`` accepts all."""
    if name == "any":
        return bool
    if "|" in name:
        either = [number(each) for each in name.split("|")]
        return lambda value: any(check(value) for check in either)
    if name in _OWN_NUMBERS:
        return _OWN_NUMBERS[name]
    check: Callable[[str], bool] = importlib.import_module(f"stdnum.{name}").is_valid
    # These know dashes between the groups of a number, and no blanks or dots.
    return (lambda value: check(re.sub("[ .]", "-", value))) if name in {"us.ssn", "us.itin"} else check


_OF_VALUES: dict[str, Callable[[str], bool]] = {
    check.__name__: check
    for check in (
        not_example, not_uuid, mixed_case, mixed, spread, scattered, password, credential, connection_password,
        argument, option, key_block,
    )
}  # fmt: skip
_OF_PLACES: dict[str, Check] = {
    check.__name__: check
    for check in (
        apart, closed, service_value, handed_over, personal, mailbox, public_ipv4, public_ipv6, iban, payment_card,
    )
}  # fmt: skip


@functools.cache
def check_named(name: str) -> Check:
    """Return the check that a rule names, such as ``apart``, ``entropy:3.2``, ``number:us.ssn`` or ``phone:plus``.

    ``spread:4`` is asked of what follows the first four characters.

    Raises:
        KeyError: there is none of that name.
    """
    kind, _, argument = name.partition(":")
    if not argument:
        return _OF_PLACES[kind] if kind in _OF_PLACES else _of_value(_OF_VALUES[kind])
    if kind == "entropy":
        return _of_value(lambda value: entropy(value) >= float(argument))
    if kind == "spread":
        return _of_value(lambda value: spread(value[int(argument) :]))
    if kind == "phone":
        return lambda text, start, end: phone(text, start, end, argument)
    if kind == "fits":
        return lambda text, start, end: fits(text, start, end, number(argument))
    if kind == "number":
        return _of_value(lambda value: number(argument)(value))  # noqa: PLW0108 - modules of numbers load when asked
    raise KeyError(name)


def _of_value(accepts: Callable[[str], bool]) -> Check:
    return lambda text, start, end: (start, end) if accepts(text.text[start:end]) else None
