"""Checks that a match must pass in addition to its pattern, with the names by which rules refer to them.

A value check depends on the value only; a span check also depends on the text around it. A placeholder is never a
secret: angle brackets, template braces, runs of x, "your key here".

Late imports: few texts need it.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from keepward.core.linear_patterns import compile_str
from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.matcher import Check
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.tables import read, words

Span = tuple[int, int] | None


def values_pattern(table: str) -> str:
    """Return the pattern of a complete value that one of the patterns of a table matches."""
    return "(?i)^(?:" + "|".join(read("values")[table]) + ")$"


@functools.cache
def _values(table: str) -> Any:
    return compile_str(values_pattern(table))


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder for a secret."""
    return not value or _values("placeholders").match(value[:300]) is not None


def is_everyday_token(value: str) -> bool:
    """Whether a value has the form of ordinary technical text: a version, path, unit, algorithm, identifier."""
    return _values("ordinary").match(value[:300]) is not None


def is_random_identifier(value: str) -> bool:
    """Whether a value has the form of an identifier in code but is too random for one: ``a1B2.c3D4``."""
    return (
        count_digits(value) >= 3 and entropy(value) >= 3.8 and len(value) >= 24 and not set("(/@").intersection(value)
    )


def entropy(value: str) -> float:
    """Shannon entropy in bits per character; 0 for an empty value."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def count_digits(value: str) -> int:
    """Number of digits in a value."""
    return sum(map(str.isdigit, value))


def not_example(value: str) -> bool:
    """A prefixed value whose body is not a placeholder or one repeated character."""
    body = (value[4:] if len(value) > 12 else value)[:400]
    if len(set(body)) < min(6, len(body)) or any(run in body for run in ("xxxx", "XXXX", "****", "....")):
        return False
    lowered = body.lower()
    return not any(word in lowered for word in words("values", "examples"))


def not_uuid(value: str) -> bool:
    """Not a UUID: mostly UUIDs identify sessions, requests or objects and are not secrets."""
    return re.fullmatch(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", value) is None


def mixed_case(value: str) -> bool:
    """Both lower and upper case, as in encoded values and unlike hexadecimal numbers."""
    return any(map(str.islower, value)) and any(map(str.isupper, value))


def mixed(value: str) -> bool:
    """A random-looking value: letters and digits, high entropy, not joined words."""
    return not_example(value) and count_digits(value) >= 2 and entropy(value) >= 3.0 and not is_joined_words(value)


def spread(value: str) -> bool:
    """Not a word or name: high entropy, with a digit or mixed case."""
    lower, upper = any(map(str.islower, value)), any(map(str.isupper, value))
    return entropy(value) >= 3.0 and (count_digits(value) > 0 or (lower and upper)) and not is_joined_words(value)


_WORD = lazy_regex("[a-z]{6}")


def scattered(value: str) -> bool:
    """Mixed case and digits in the part after the last underscore, and a prefix that does not name an object's id."""
    kind, _, body = value.rpartition("_")
    lower, upper = sum(map(str.islower, body)), sum(map(str.isupper, body))
    mixture = min(lower, upper) >= 3 and count_digits(body) >= 1 and entropy(body) >= 3.5
    # Function names such as getUserProfile2 have this form as well.
    return (
        mixture
        and _WORD.search(body) is None
        and words("values", "kinds_of_things").isdisjoint(kind.lower().split("_"))
    )


def is_joined_words(value: str) -> bool:
    """Whether a value consists of joined words, as names do: ``check-out-the-new-design``."""
    parts = value.replace("_", "-").replace("/", "-").replace(".", "-").split("-")
    if len(parts) < 3:
        return False
    known = [part for part in parts if part.isalpha() and (part.islower() or part.istitle()) and len(part) >= 3]
    # Two short pieces may resemble words by chance, next to a long random one.
    return len(known) * 2 >= len(parts) and 3 * sum(map(len, known)) >= len(value)


def high_entropy(value: str, *, min_length: int = 16) -> bool:
    """A value random enough for a variable whose name says secret."""
    if len(value) < min_length or is_placeholder(value) or is_joined_words(value):
        return False
    lower, upper, digit = (any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    if not (lower or upper):
        return False
    return (lower + upper + digit >= 2 and entropy(value) >= 2.7) or (not value.isalpha() and entropy(value) >= 3.2)


def passphrase(value: str) -> bool:
    """Four or more joined words: ``saffron-orbit-glacier-orbit``. With function words it is a name or a sentence."""
    parts = re.split(r"[-_.]", value.lower())
    plain = len(parts) >= 4 and all(len(part) >= 3 and part.isalpha() for part in parts)
    return plain and words("credentials_in_prose", "phrase_words", "glue").isdisjoint(parts)


#: A digit between letters: ``c0met``.
_LEET = lazy_regex(r"[a-z]\d[a-z]", re.IGNORECASE)


def looks_like_password(value: str) -> bool:
    """A value with the form of a password: letters with digits or symbols, or capitals in the middle."""
    if len(value) < 4 or is_placeholder(value) or value.lower() in words("values", "brands"):
        return False
    if is_everyday_token(value):
        # Two words with a dot and a digit inside, such as c0met.trail, resemble a name in code but are none.
        first, dot, last = value.partition(".")
        return bool(dot and first.isalnum() and last.isalnum() and _LEET.search(value))
    if not any(map(str.isalpha, value)):
        return False
    if any(map(str.isdigit, value)):
        return True
    inner = value[1:]
    if any(char in "!@#$%^&*+=~?_|" for char in inner) and len(value) >= 5 and not value.endswith(("?", "!")):
        return True
    # Type and function names (SecretStr, getPassword) are code; plural abbreviations (JWTs) are words.
    camel = value[:-1].isupper() or value.endswith(tuple(words("values", "type_endings")))
    capitals = any(map(str.isupper, inner)) and any(map(str.islower, value))
    return len(value) >= 6 and capitals and value.isalpha() and not camel


def password(value: str) -> bool:
    """A value in a password's position that is not a variable or a common placeholder word."""
    harmless = is_placeholder(value) or value.lower() in words("values", "no_passwords")
    return not harmless and not value.startswith(("$", "{", "%s", "<"))


def credential(value: str) -> bool:
    """A value in a token's position: long enough, random enough, with a digit."""
    return not is_placeholder(value) and len(value) >= 8 and entropy(value) >= 2.5 and any(map(str.isdigit, value))


def connection_password(value: str) -> bool:
    """A password in a connection string, not a call or a name."""
    named = "(" in value or "[" in value or "." in value[1:-1]
    return password(value) and not value.isalpha() and not named


def argument(value: str) -> bool:
    """A password after an option of a command, not a file, host or port."""
    plain = value.isalpha() or value.replace(":", "").isdigit()
    return password(value) and not plain and value[0] not in "-/." and "." not in value[:-1]


def option(value: str) -> bool:
    """A value of an option whose name says secret, not a path."""
    return password(value) and any(map(str.isdigit, value)) and "/" not in value[:2] and "." not in value[:2]


def key_block(value: str) -> bool:
    """A key block whose body is not elided by dots."""
    body = "".join(line for line in value.splitlines() if "-----" not in line)
    return "..." not in body and "…" not in body


def has_word_boundaries(text: Text, start: int, end: int) -> Span:
    """No ASCII letter or digit is adjacent to a letter or digit at either end of the span."""
    content = text.text
    adjacent = (start > 0 and _alnum(content[start - 1]) and _alnum(content[start])) or (
        end < len(content) and _alnum(content[end]) and _alnum(content[end - 1])
    )
    return None if adjacent else (start, end)


def _alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def is_given_to_login(text: Text, start: int, end: int) -> Span:
    """A password given to a command. An echoed value counts only if a login reads it from stdin."""
    echoed = text.text[:start].rstrip("\"'").endswith(("echo ", "echo -n "))
    read_by_login = "--password-stdin" in text.text[end : end + 120]
    accepted = password(text.text[start:end]) and (not echoed or read_by_login)
    return (start, end) if accepted else None


def service_value(text: Text, start: int, end: int) -> Span:
    """A random value, unless the words before it say that it is an id, a location or a checksum."""
    value = text.text[start:end].rstrip(".:=/")
    words_before = re.findall(
        r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.text[max(0, start - 80) : start]).lower()
    )
    last_words = set(words_before[-2:] if words_before[-1:] == ["is"] else words_before[-1:])
    named = not words("secrets", "services", "keys").isdisjoint(last_words)
    if not words("secrets", "services", "no_keys").isdisjoint(last_words) or not high_entropy(value):
        return None
    if is_everyday_token(value) and not is_random_identifier(value):
        return None
    hexadecimal = not value.lower().strip("0123456789abcdef-")
    # Commits, checksums and event ids also follow names of services.
    plain = hexadecimal and not text.text[:start].rstrip(" \"'`").endswith("=")
    return (start, start + len(value)) if named or (count_digits(value) >= 3 and not plain) else None


_VALUE_CHECKS: dict[str, Callable[[str], bool]] = {
    check.__name__: check
    for check in (
        not_example, not_uuid, mixed_case, mixed, spread, scattered, password, credential, connection_password,
        argument, option, key_block,
    )
}  # fmt: skip
_SPAN_CHECKS: dict[str, Check] = {
    check.__name__: check for check in (has_word_boundaries, service_value, is_given_to_login)
}


@functools.cache
def check_named(name: str) -> Check:
    """Return the check that a rule names, such as ``mixed``, ``entropy:3.2`` or ``spread:4``.

    ``spread:4`` checks the value without its first four characters.

    Raises:
        KeyError: no check has that name.
    """
    kind, _, argument = name.partition(":")
    if not argument:
        return _SPAN_CHECKS[kind] if kind in _SPAN_CHECKS else _of_value(_VALUE_CHECKS[kind])
    if kind == "entropy":
        return _of_value(lambda value: entropy(value) >= float(argument))
    if kind == "spread":
        return _of_value(lambda value: spread(value[int(argument) :]))
    raise KeyError(name)


def _of_value(accepts: Callable[[str], bool]) -> Check:
    return lambda text, start, end: (start, end) if accepts(text.text[start:end]) else None
