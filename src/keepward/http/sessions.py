"""Sessions: a one-time code from the terminal becomes a browser's cookie.

Invariants
(1) A code opens one session, once, within ten minutes; what is kept of it is its SHA-256.
(2) A session lasts twelve hours, ends with the server, and is kept by the SHA-256 of its name.
(3) Ten wrong codes in a minute, whoever sent them, and further wrong ones are turned away for a minute; one that holds
    opens its session all the same. It has 192 bits: that guesses are many tells nothing of it.
(4) Every comparison of a secret takes the same time wherever it differs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from keepward.app import Memory

#: Seconds that a code and a session last.
CODE_TERM = 600.0
SESSION_TERM = 12 * 3600.0
#: Most sessions at once, most codes at once, and wrong codes in a minute.
MOST = 64
MOST_CODES = 8
GUESSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser."""

    handle: Memory = field(repr=False)
    #: What a changing call has to send as ``Keepward-Csrf``.
    csrf: str = field(repr=False)
    #: Instant of its end, in seconds of the server's monotonic clock.
    until: float


class Sessions:
    """The codes and sessions of one server. ``random`` gives that many random bytes."""

    def __init__(self, *, monotonic: Callable[[], float], random: Callable[[int], bytes]) -> None:
        self._monotonic, self._random = monotonic, random
        self._lock = threading.Lock()
        self._codes: OrderedDict[bytes, float] = OrderedDict()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._wrong: deque[float] = deque()

    def issue(self) -> str:
        """Return a new one-time code."""
        # 192 bits: as safe as 256 for ten minutes, and the link fits a line.
        code = self._secret(24)
        with self._lock:
            self._codes[_hash(code)] = self._monotonic() + CODE_TERM
            while len(self._codes) > MOST_CODES:
                self._codes.popitem(last=False)
        return code

    def wait(self) -> float:
        """Return the seconds until another code may be tried; 0 for now."""
        now = self._monotonic()
        with self._lock:
            while self._wrong and self._wrong[0] <= now - 60:
                self._wrong.popleft()
            return max(0.0, self._wrong[0] + 60 - now) if len(self._wrong) >= GUESSES else 0.0

    def redeem(self, code: str) -> bool:
        """Use up a code; return whether it was one that holds, however many were wrong before it (3)."""
        now, asked = self._monotonic(), _hash(code)
        with self._lock:
            held = [each for each in self._codes if hmac.compare_digest(each, asked)]
            until = self._codes.pop(held[0]) if held else 0.0
            if until <= now and len(self._wrong) < GUESSES:
                self._wrong.append(now)
        return until > now

    def open(self, handle: Memory) -> tuple[str, Session]:
        """Return the name of a new session and the session, after a code was redeemed."""
        name = self._secret()
        session = Session(handle=handle, csrf=self._secret(), until=self._monotonic() + SESSION_TERM)
        with self._lock:
            self._sessions[_hash(name)] = session
            while len(self._sessions) > MOST:
                self._sessions.popitem(last=False)
        return name, session

    def find(self, name: str) -> Session | None:
        """Return the session of a cookie, or None."""
        asked = _hash(name)
        with self._lock:
            session = self._sessions.get(asked)
            if session is not None and session.until <= self._monotonic():
                del self._sessions[asked]
                return None
        return session

    def end(self, name: str) -> None:
        """End the session of a cookie, if it is one."""
        with self._lock:
            self._sessions.pop(_hash(name), None)

    def remaining(self, session: Session) -> int:
        """Return the whole seconds that a session still lasts."""
        return max(0, int(session.until - self._monotonic()))

    def _secret(self, size: int = 32) -> str:
        return base64.urlsafe_b64encode(self._random(size)).rstrip(b"=").decode("ascii")


def same(given: str, held: str) -> bool:
    """Whether two secrets are one; see (4)."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), held.encode("utf-8", "surrogatepass"))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
