"""One-time codes and login sessions of browsers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keepward.storage.server_state import EntryKind, ServerState

#: Lifetime of a login session.
SESSION_LIFETIME_S = 12 * 3600
#: After so many wrong codes, no code is tried until the minute is over.
MAX_WRONG_CODES_PER_MINUTE = 10
#: Length of 24 and of 32 random bytes in base64, without padding: of a code, and of the name of a session.
_CODE_LENGTH, _NAME_LENGTH = 32, 43


@dataclass(frozen=True, slots=True)
class LoginSession:
    """The login session of one browser."""

    #: Id of its token.
    credential: str | None
    #: End, in seconds of the clock of the state.
    until: float


class LoginSessions:
    """The one-time codes and the login sessions.

    A code is for an owner or a reviewer, its *owner*: the id of the reviewer's token, or the empty text for the owner.
    """

    #: The owner of each code.
    CODES = EntryKind(name="link", of=str, ttl_s=600, max_entries=8)
    OPEN = EntryKind(name="session", of=LoginSession, ttl_s=SESSION_LIFETIME_S, max_entries=64)
    WRONG = EntryKind(name="wrong code", of=tuple[float, ...], ttl_s=60, renewed=True, max_entries=1)

    def __init__(self, state: ServerState, random: Callable[[int], bytes]) -> None:
        """``random`` returns so many random bytes."""
        self._state, self._random = state, random

    def issue(self, credential: str = "") -> str:
        """Return a new one-time code of the owner, or of a reviewer by the id of the token."""
        # 192 bits are enough for ten minutes, and the link fits into a line.
        code = _owner_prefix(credential) + self._secret(24)
        self._change(self.CODES, code, lambda _: credential)
        return code

    def seconds_to_wait(self) -> float:
        """Return the seconds until another code may be tried; 0 for now."""
        wrong = self._recent_wrong_codes(self._state.get(self.WRONG, ""))
        return max(0.0, wrong[0] + 60 - self._state.now()) if len(wrong) >= MAX_WRONG_CODES_PER_MINUTE else 0.0

    def redeem(self, code: str) -> str | None:
        """Use up a code; return its owner, or None for an invalid code."""
        owners: list[str | None] = []
        # ``append`` returns None, which deletes the code.
        self._change(self.CODES, code, owners.append)
        if owners[0] is None and not self.seconds_to_wait():
            self._state.change(self.WRONG, "", lambda wrong: (*self._recent_wrong_codes(wrong), self._state.now()))
        return owners[0]

    def open(self, credential: str | None, reviewer: str = "") -> tuple[str, LoginSession]:
        """Return the name of a new login session and the session, for an owner from ``redeem``."""
        name = _owner_prefix(reviewer) + self._secret(32)
        session = LoginSession(credential, self._state.now() + SESSION_LIFETIME_S)
        self._change(self.OPEN, name, lambda _: session)
        return name, session

    def find(self, name: str) -> LoginSession | None:
        """Return the login session of a cookie; None if it has ended."""
        session: LoginSession | None = self._state.get(
            self.OPEN, _hash(name), owner=self._owner_of_secret(self.OPEN, name)
        )
        return session

    def end(self, name: str) -> None:
        """End the login session of a cookie, if there is one."""
        self._change(self.OPEN, name, lambda _: None)

    def remaining(self, session: LoginSession) -> int:
        """Return the remaining seconds of a login session."""
        return max(0, int(session.until - self._state.now()))

    def _change(self, kind: EntryKind, secret: str, new: Callable[[Any], Any]) -> Any:
        return self._state.change(kind, _hash(secret), new, owner=self._owner_of_secret(kind, secret))

    def _owner_of_secret(self, kind: EntryKind, secret: str) -> str:
        """Return the owner of a code or session; a reviewer's begins with a digest of the token id."""
        return secret[: -(_CODE_LENGTH if kind is self.CODES else _NAME_LENGTH)]

    def _recent_wrong_codes(self, instants: tuple[float, ...] | None) -> tuple[float, ...]:
        return tuple(instant for instant in instants or () if instant > self._state.now() - 60)

    def _secret(self, size: int) -> str:
        return _text(self._random(size))


def _text(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")


def _owner_prefix(credential: str) -> str:
    """Return the prefix of a reviewer's codes and sessions; an owner's have none."""
    return _hash(credential)[:16] if credential else ""


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
