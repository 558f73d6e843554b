"""Assignments of secret-named variables: ``DB_PASSWORD=...``, ``"api_key": "..."``, ``token => ...``.

Invariants
(1) The name ends in a secret word; ``token_count``, ``password_policy`` and ``key_id`` are not secrets.
(2) A value read from elsewhere (a variable, a call, a template, a path) is not a secret.
"""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Iterator

from keepward.gates.detect.engine import Haystack, any_of
from keepward.gates.detect.finding import Finding
from keepward.gates.detect.strength import high_entropy, ordinary, placeholder, strong

_PASSWORD = (
    "password",
    "passwd",
    "passwort",
    "passphrase",
    "passcode",
    "pwd",
    "pass",
    "pw",
    "contrasena",
    "senha",
    "haslo",
)
_KEY = (
    "secret", "token", "api_key", "api-key", "apikey", "api key", "access_key", "access-key", "accesskey", "secret_key",
    "secret-key", "secretkey", "secret key", "private_key", "privatekey", "encryption_key", "encryption key",
    "encryptionkey", "signing_key", "signing key", "signingkey", "auth_key", "authkey", "master_key", "master key",
    "masterkey", "account_key", "accountkey", "shared_key", "client_secret", "clientsecret", "client secret",
    "credential", "credentials", "hmac_key", "jwt_secret", "session_key", "license_key", "service_key",
    "webhook_secret", "app_key", "application_key", "access key", "subscription_key", "subscription key",
)  # fmt: skip
#: Stands in every text that assigns something to a secret name.
GATE = r"(?i)(?:password|passwd|passwort|passphrase|passcode|pwd|pass|pw|contrasena|senha|haslo|secret|token|key|credential|auth)[\"'\]]{0,2}\d{0,2}(?:_[a-z0-9]{1,8})?[\"'\]]{0,2}\s{0,3}(?::=|=>|[:=|])"
_PATTERN = (
    rf"(?i)(?:(?P<p>{any_of(_PASSWORD)})|(?P<k>{any_of(_KEY)}))\d{{0,2}}(?:_(?:prod|dev|test|staging|live|root|admin|db|main|new|old|v\d))?"
    r"[\"'\]\*`]{0,3}\s{0,3}(?::=|=>|={1,3}|:|\|)\s{0,3}(?P<q>[\"'`]{0,3})(?:b|r|f|u)?(?P<v>[^\s\"'`,;<>]{4,200})"
)


#: Candidates looked at in one text; what comes after is covered as a flood.
_MOST = 400


def assignments(hay: Haystack) -> Iterator[Finding]:
    """Yield the values assigned to secret-named variables."""
    if not hay.occurs(GATE):
        return
    text = hay.text
    for count, groups in enumerate(hay.groups(_PATTERN)):
        start, end = groups["v"]
        if count >= _MOST:
            yield Finding(detector="secret_assignment", start=start, end=len(text), certainty="likely")
            return
        value = text[start:end].rstrip(".)]}\\" if "(" not in text[start:end] else "\\")
        value = value.split("&", 1)[0] if "p" not in groups else value
        first = groups[""][0]
        glued = first > 0 and text[first - 1].isalnum()
        if "p" in groups:
            short = groups["p"][1] - groups["p"][0] <= 4
            if glued and short and text[first].islower():
                continue
            quoted = groups["q"][1] > groups["q"][0]
            accepted = strong(value) or (quoted and value.isalpha() and _coded(text, groups) and _plain(value))
        else:
            if glued and text[first].islower() and text[first - 1].islower() and groups["k"][1] - groups["k"][0] <= 4:
                continue
            accepted = high_entropy(value, least=12) and not ordinary(value) and "sha256:" not in value
        if accepted and len(value) >= 4:
            yield Finding(detector="secret_assignment", start=start, end=start + len(value), certainty="likely")


def _coded(text: str, groups: dict[str, tuple[int, int]]) -> bool:
    # Only code and configuration assign a plain quoted word: password = "sunshine".
    return "=" in text[groups["p"][1] : groups["v"][0]]


def _plain(value: str) -> bool:
    return (
        not placeholder(value) and not ordinary(value) and value.lower() not in {"password", "secret", "test", "pass"}
    )
