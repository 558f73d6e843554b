"""What every public result has in common."""

from __future__ import annotations

from typing import Any


class Value:
    """A result of a verb."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as an object of plain JSON values that ``json.dumps`` takes.

        Instants are ISO 8601 in UTC, spans of time are seconds, enums are their names, bytes are hex digits. Where a
        command prints the same with ``--json``, the keys are the same.
        """
        from keepward.model.plain import to_dict

        return to_dict(self)
