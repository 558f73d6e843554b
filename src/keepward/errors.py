"""Every error Keepward raises, under one root.

KeepwardError
├── InvalidInput            an argument or a file that cannot mean anything
├── NotFound                no such memory, commit, proposal or receipt
├── Conflict                the state has moved on
│   └── StaleVersion        the version or base that was named is no longer the newest
├── Unauthorised            this handle may not do that
├── ContextTooSmall         the core memory alone is larger than the budget
├── ModelUnavailable        an embedder or another model cannot be used
└── StoreError              the bytes on disk
    ├── StoreUnavailable    locked, read-only, full, or out of reach
    ├── NotAStore           the file holds something else, or is damaged
    ├── NewerSchema         written by a newer Keepward
    ├── NotAdopted          this machine does not know the store, and nobody has accepted it here
    └── Tampered            a row does not match its seal

An expected outcome of a write (refused, held, duplicate) is a value and never an error.
Each class carries a stable ``code``; surfaces map codes to exit codes and HTTP status.
Messages say what to do and never repeat memory content.
"""

from __future__ import annotations

from typing import ClassVar


class KeepwardError(Exception):
    """Something went wrong in Keepward; see the message."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__ or self.code)


class InvalidInput(KeepwardError):
    """An argument is not usable; correct it and call again."""

    code = "invalid_input"


class NotFound(KeepwardError):
    """There is nothing by that name here; check the id, the tenant and the scope."""

    code = "not_found"


class Conflict(KeepwardError):
    """The state has changed since it was read; read it again and decide anew."""

    code = "conflict"


class StaleVersion(Conflict):
    """A newer version exists; read the newest one and base the change on it."""

    code = "stale_version"


class Unauthorised(KeepwardError):
    """This handle may not do that; open the store as an operator."""

    code = "unauthorised"


class ContextTooSmall(KeepwardError):
    """Core memory alone does not fit the budget; raise the budget or shorten a block."""

    code = "context_too_small"


class ModelUnavailable(KeepwardError):
    """The model cannot be used; install it or choose another."""

    code = "model_unavailable"


class StoreError(KeepwardError):
    """The store cannot be used."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be reached right now; nothing was lost, try again."""

    code = "store_unavailable"


class NotAStore(StoreError):
    """The file is not a Keepward store; nothing was written to it."""

    code = "not_a_store"


class NewerSchema(StoreError):
    """The store was written by a newer Keepward; upgrade this one. Nothing was written."""

    code = "newer_schema"


class NotAdopted(StoreError):
    """This machine does not know the store; look at it and accept it with `keepward adopt`."""

    code = "not_adopted"


class Tampered(StoreError):
    """A row does not match its seal and was not used; run `keepward verify`."""

    code = "tampered"
