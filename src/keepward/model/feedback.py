"""Feedback: which of the memories that a receipt names were of use, who said so, and how far that counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from keepward.model.trust import Trust
from keepward.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback(Value):
    """What one principal said of one recall or context; what it names on neither side, it says nothing of."""

    tenant: str
    #: From 1 in the order of arrival, without a gap in a tenant; 0 until it is kept.
    n: int = 0
    at: datetime
    #: Id of the recall or compile receipt.
    receipt: str
    #: ``kind:name`` of who said it.
    actor: str
    #: How far who said it is relied on; from the handle or the token, never from an argument.
    trust: Trust = Trust.UNKNOWN
    #: Ids of memories; sorted, without repeats.
    used: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def by_person(self) -> bool:
        """Whether a person said it; what agents and other programs say counts up to a share of what people say."""
        return self.trust >= Trust.USER
