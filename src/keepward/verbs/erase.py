"""The verbs that destroy content, and that accept a store: for the owner alone, by plan and digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from keepward.core.copies import Adoption
from keepward.core.journal import Erased, Selection
from keepward.core.journal import ErasePlan as Planned
from keepward.verbs import NONE, Limit, Request, fields, verb

if TYPE_CHECKING:
    from keepward.services.session import Session

R = TypeVar("R")
Reason = Literal["request", "consent", "retention", "mistake", "secret", "other"]


class Chosen(Request[R]):
    """What is to be destroyed: memories by id, subject or source, and a code that says why."""

    ids: Annotated[list[fields.Id], Limit(maxItems=fields.MOST)] = NONE
    subject: fields.ReadLine | None = None
    source: Annotated[str, Limit(minLength=1, maxLength=512)] | None = None
    reason: Reason = "request"
    include_citing: Annotated[bool, Limit("Also take what derives from one of these or cites it.")] = False

    def __init__(self, *, ids: Sequence[str] | str = (), **given: Any) -> None:
        super().__init__(ids=(ids,) if isinstance(ids, str) else ids, **given)

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return which memories are meant as one."""
        chosen = Selection(
            ids=tuple(self.ids), subject=self.subject, source=self.source, include_citing=self.include_citing
        )
        given = super().parameters(session)
        return {"chosen": chosen, **{name: given[name] for name in given if name in {"digest", "reason"}}}


@verb("plan_erase", "POST /memory/erase/plan", right="erase")
class PlanErase(Chosen[Planned]):
    """Return what erasing these memories would destroy, under a digest; change nothing."""

    function = "services.erase:plan"
    owner = "erasing"


@verb("erase", "POST /memory/erase", right="erase")
class Erase(Chosen[Erased]):
    """Carry out exactly the plan with this digest, given what it was planned for; nothing brings it back."""

    function = "copies.erasures:erase_everywhere"
    owner = "erasing"
    digest: fields.Digest


@verb("certificate", "GET /memory/certificates/{name}", right="erase")
class Certificate(Request[dict[str, Any]]):
    """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit.

    `GET /memory/commits?kind=erase` lists the erasures.
    """

    function = "services.traces:certificate_of"
    owner = "erasing"
    name: fields.Name


@verb("plan_adopt", "POST /memory/adopt/plan", right="owner")
class PlanAdopt(Request[Adoption]):
    """Return what accepting the store as it stands would accept, under a digest; change nothing."""

    function = "copies.backup:plan_adopt"
    owner = "accepting a store"


@verb("adopt", "POST /memory/adopt", right="owner")
class Adopt(Request[Adoption]):
    """Accept the store as it stands, given the digest of what was shown."""

    function = "copies.backup:adopt"
    owner = "accepting a store"
    digest: fields.Digest
