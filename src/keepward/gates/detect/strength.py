"""Whether a matched text could be a real secret: randomness, placeholders, ordinary words and hashes.

Invariants
(1) Every answer depends on the value alone, not on the text around it.
(2) A placeholder is never a secret: angle brackets, template braces, runs of x, "your key here".
"""

# ruff: noqa: E501, SIM905

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

_PLACEHOLDER = (
    r"(?i)^(?:<.*>|\[.*\]|\{.*\}|\$\{?\w.*|%\w+%|\*{2,}.*|.*\*{3,}.*|\.{3,}|_{2,}|-{2,}|x{3,}.*|.*x{5,}.*|.*[.…]{3}|…+"
    r"|.*(?:your|my|the|some|insert|enter|put|add|paste|replace)[-_ ]?(?:\w+[-_ ])?(?:api|key|token|secret|password|passwd|pw|value|here|own)\b.*"
    r"|.*(?:example|placeholder|redacted|changeme|change_me|change-me|dummy|sample|foobar|not[-_ ]?a[-_ ]?real|goes[-_ ]here|to[-_ ]be[-_ ]set|undisclosed|masked|removed|hidden|todo|fixme).*"
    r"|(?:null|none|nil|undefined|true|false|yes|no|empty|blank|n/?a|tbd|tba|unset|string|str|bytes|int|bool|any|optional|secretstr|text|varchar|required)\W*)$"
)


@functools.cache
def _placeholder() -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    return re2.compile(_PLACEHOLDER, options)


def placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one."""
    return not value or _placeholder().match(value[:300]) is not None


def entropy(value: str) -> float:
    """Shannon entropy in bits a character; 0 for an empty value."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def not_example(value: str) -> bool:
    """A prefixed value whose body is not a placeholder nor one character over and over."""
    body = value[4:] if len(value) > 12 else value
    if len(body) > 400:
        body = body[:400]
    lowered = body.lower()
    if len(set(body)) < min(6, len(body)) or "xxxx" in body or "XXXX" in body or "****" in body or "...." in body:
        return False
    return not any(word in lowered for word in _EXAMPLES)


_EXAMPLES = (
    "example",
    "placeholder",
    "redacted",
    "your",
    "changeme",
    "dummy",
    "1234567890abcdef12",
    "abcdefghijklmnop",
)


def mixed(value: str) -> bool:
    """Random-looking: letters and digits both, spread, and no run of plain words."""
    return not_example(value) and _digits(value) >= 2 and entropy(value) >= 3.0 and not _wordy(value)


def _digits(value: str) -> int:
    return sum(char.isdigit() for char in value)


def _wordy(value: str) -> bool:
    # Hyphenated or underscored names (check-out-the-new-design) are words, not random bytes.
    parts = value.replace("_", "-").replace("/", "-").replace(".", "-").split("-")
    if len(parts) < 3:
        return False
    words = [part for part in parts if part.isalpha() and (part.islower() or part.istitle()) and len(part) >= 3]
    # Two short pieces that look like words by chance do not make words of a long one beside them.
    return len(words) * 2 >= len(parts) and 3 * sum(map(len, words)) >= len(value)


def high_entropy(value: str, *, least: int = 16) -> bool:
    """A value random enough for a variable that is named as a secret; ``least`` is its shortest length."""
    if len(value) < least or placeholder(value) or _wordy(value):
        return False
    lower, upper, digit = (any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    if not (lower or upper):
        return False
    kinds = lower + upper + digit
    return (kinds >= 2 and entropy(value) >= 2.7) or (not value.isalpha() and entropy(value) >= 3.2)


_ORDINARY = (
    r"(?i)^(?:v?\d+(?:\.\d+)+[\w.+-]*|v\d+|\d{4}-\d\d(?:-\d\d)?.*|\d{1,2}[:.]\d\d(?:[:.]\d\d)?\s?(?:am|pm|z|uhr|h)?|\d{1,2}/\d{1,2}(?:/\d{2,4})?"
    r"|[#~+-]?\d+(?:[.,]\d+)*\+?(?:ms|s|secs?|mins?|h|hrs?|d|days?|w|wks?|mo|y|yrs?|k|m|g|kb|mb|gb|tb|kib|mib|gib|px|pt|em|rem|%|x|st|nd|rd|th|chars?|bits?|bytes?|b|tokens?|am|pm|usd|eur|gbp|°c|hz|khz|mhz|ghz|fps|rpm|rps|qps|v|kw|kwh|km|cm|mm|kg|mg|ml|l)?"
    r"|\d+-[a-z]+(?:-[a-z]+)*|[a-z]+-\d{1,3}|q[1-4]|h[1-6]"
    r"|(?:sha|md|aes|rsa|utf|base|oauth|rfc|iso|hs|rs|es|ed|argon|pbkdf|tls|ssl|http|ipv|wpa|blake|hmac|ecdsa|secp|ssha|pkcs|crc|mp|fido|u|webauthn|cve|sha3|totp)[-_]?\d{1,5}(?:[-_.]?[a-z\d]{1,8})*(?:/\w+)*"
    r"|2fa|3ds|k8s|s3|ec2|i18n|l10n|a11y|x509|x\.509|1password\w*|keepass\w*|lastpass|bitwarden|vault\w*|e2e\w*|p2p|b2b|b2c|0auth|a/b|r2d2|o365|m365|log4j|web3|py3|python3|node\d+|es6|h2|neo4j|db2|win\d+|unix|win32|x86|x64|x86_64|amd64|arm64"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\w+://.*|www\..*|(?:~|\.{0,2})/.*|[a-z]:\\.*|[\w.-]+(?:/[\w.-]+)+/?"
    r"|[\w-]+\.(?:py|js|ts|tsx|jsx|json|ya?ml|env|toml|txt|md|pem|key|crt|cfg|conf|ini|sh|sql|csv|kdbx|gpg|asc|p12|pfx|java|go|rs|rb|html?|com|org|net|io|dev|local|xml|lock|log|pdf|docx?|xlsx?|png|jpe?g)"
    r"|(?-i:[a-z]+(?:_[a-z]+)+)|(?-i:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)|[\$%@&].*|(?-i:[A-Z]{2,6}-\d+)|#\d+|\w+\(.*|[a-z_][\w]*(?:\.[a-z_]\w*)+.*|[a-z_]\w*\[.*|[a-z]+(?:-[a-z]+)+|\W+|\[.*|\{.*|\(.*|https?|.*\]\(.*"
    r"|[0-9a-f]{8}\.{3}|.*\*\*.*|[a-z]+/[a-z/]+|[a-z]+\+[a-z]+|[a-z]+=.*)$"
)


@functools.cache
def _ordinary() -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    return re2.compile(_ORDINARY, options)


def ordinary(value: str) -> bool:
    """Whether a value has a shape of everyday technical text: a version, path, unit, algorithm, identifier."""
    return _ordinary().match(value[:300]) is not None


_BRANDS = frozenset(
    """github gitlab lastpass yubikey javascript typescript postgresql mysql mongodb devops oauth openid linkedin youtube
    icloud iphone ios macos graphql nosql powershell onepassword keychain bitlocker wifi paypal whatsapp vscode nodejs
    keepass dynamodb bigquery openssl openssh onedrive sharepoint webauthn fastapi pydantic readme todo url urls id ids
    hashicorp cyberark akeyless sealedsecret sealedsecrets externalsecret externalsecrets plaintext codeowners
    configmap secretstore secretsmanager keyvault clearbit clickhouse jwt jwts""".split()
)


def strong(value: str) -> bool:
    """A value whose own shape says password: letters with digits or symbols, or capitals in the middle."""
    if len(value) < 4 or placeholder(value) or ordinary(value) or value.lower() in _BRANDS:
        return False
    letters = sum(map(str.isalpha, value))
    digits = _digits(value)
    if not letters:
        return False
    inner = value[1:]
    symbols = sum(1 for char in inner if char in "!@#$%^&*+=~?_|")
    if digits:
        return True
    if symbols and len(value) >= 5 and not value.endswith(("?", "!")):
        return True
    return (
        len(value) >= 6
        and any(map(str.isupper, inner))
        and any(map(str.islower, value))
        and value.isalpha()
        and not _camel(value)
    )


def _camel(value: str) -> bool:
    # Type and function names (SecretStr, getPassword) are code, and plural abbreviations (JWTs) words.
    return value[:-1].isupper() or value.endswith(
        ("Str", "Error", "Manager", "Store", "Service", "Field", "Provider", "Token", "Key", "Password", "Secret")
    )
