"""Every error Keepward raises, under one root.

KeepwardError
├── InvalidInput            an invalid argument or file
├── NotFound                no such memory, commit, proposal or receipt
├── Conflict                the state has changed
│   └── StaleVersion        the named version or base is no longer the newest
├── Unauthorised            this handle lacks the right
├── ContextTooSmall         core memory alone exceeds the budget
├── ModelUnavailable        an embedder or another model cannot be used
└── StoreError              the stored bytes
    ├── StoreUnavailable    locked, read-only, full, or out of reach
    ├── NotAStore           the file is not a store, or is damaged
    ├── NewerSchema         written by a newer Keepward
    ├── NotAdopted          untrusted: this machine does not know the store and its owner has not accepted it here
    └── Tampered            a row does not match its seal

An expected outcome of a write (refused, quarantined, duplicate) is a value and never an error.
Each class carries a stable ``code``; surfaces map codes to exit codes and HTTP status.
Messages say what to do and never repeat memory content.
"""

from __future__ import annotations

from typing import Any, ClassVar


class KeepwardError(Exception):
    """Something went wrong in Keepward; see the message."""

    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        # The lower-case name of the class.
        cls.code = "".join(f"_{each.lower()}" if each.isupper() else each for each in cls.__name__)[1:]

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__ or self.code)


class InvalidInput(KeepwardError):
    """An argument is not usable; correct it and call again."""


class NotFound(KeepwardError):
    """There is nothing by that name here; check the id, the tenant and the scope."""


class Conflict(KeepwardError):
    """The state has changed since it was read; read it again and decide anew."""


class StaleVersion(Conflict):
    """A newer version exists; read the newest one and base the change on it."""


class Unauthorised(KeepwardError):
    """This handle may not do that; open the store as an operator."""


class ContextTooSmall(KeepwardError):
    """Core memory alone does not fit the budget; raise the budget or shorten a block."""


class ModelUnavailable(KeepwardError):
    """The model cannot be used; install it or choose another."""


class StoreError(KeepwardError):
    """The store cannot be used."""


class StoreUnavailable(StoreError):
    """The store cannot be reached right now; nothing was lost, try again."""


class NotAStore(StoreError):
    """The file is not a Keepward store; nothing was written to it."""


class NewerSchema(StoreError):
    """The store was written by a newer Keepward; upgrade this one. Nothing was written."""


class NotAdopted(StoreError):
    """This machine does not know the store; look at it and accept it with `keepward adopt`."""


class Tampered(StoreError):
    """A row does not match its seal and was not used; run `keepward verify`."""


def error_of(code: Any, detail: Any, status: int | None = None) -> KeepwardError:
    """Return the error with a stable code; for an unknown code, the nearest one by HTTP status."""
    # Only the classes here: subclasses elsewhere share a code.
    own = [each for each in globals().values() if isinstance(each, type) and issubclass(each, KeepwardError)]
    by_code = {each.code: each for each in own} | {"rate_limited": StoreUnavailable}
    kind = by_code.get(str(code)) or _error_class_for_status(status)
    return kind(detail if isinstance(detail, str) and detail else None)


def _error_class_for_status(status: int | None) -> type[KeepwardError]:
    by_status: dict[int | None, type[KeepwardError]] = {
        **dict.fromkeys((401, 403), Unauthorised),
        404: NotFound,
        409: Conflict,
        412: StaleVersion,
        **dict.fromkeys((429, 502, 503, 504), StoreUnavailable),
    }
    return by_status.get(status) or (InvalidInput if status is not None and 400 <= status < 500 else StoreError)
