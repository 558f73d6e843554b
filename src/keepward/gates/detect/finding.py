"""What a detector saw: where, what, how sure. Never the matched text itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Certainty = Literal["certain", "likely"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One span of one text that a detector points at.

    It carries positions and names only, so that it may be logged, stored and shown.
    """

    #: Stable snake_case name of the rule, such as ``aws_access_key`` or ``iban``.
    detector: str
    #: Half-open span in code points of the text that was given.
    start: int
    end: int
    #: ``certain``: a documented format or a valid check digit. ``likely``: wording and shape only.
    certainty: Certainty = "certain"
