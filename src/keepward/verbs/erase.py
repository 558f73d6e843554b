"""The verbs that destroy content, and that accept a store: for the owner alone, by plan and digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from keepward.core.copies import Adoption
from keepward.core.journal import Erased, Erasure, Lifted, Selection
from keepward.core.journal import ErasePlan as Planned
from keepward.core.trust import user_of
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
        """Return which memories are meant as one; where none is named at a user, all of that user's."""
        named: dict[str, Any] = {"ids": tuple(self.ids), "subject": self.subject, "source": self.source}
        user = None if any(named.values()) else user_of(session.scope)
        chosen = Selection(**named, user=user, include_citing=self.include_citing or user is not None)
        given = super().parameters(session)
        return {"chosen": chosen, **{name: given[name] for name in given if name in {"digest", "reason"}}}


@verb("plan_erase", "POST /memory/erase/plan", right="erase")
class PlanErase(Chosen[Planned]):
    """Return what erasing these memories would destroy, under a digest; change nothing.

    Asked at a user and without a choice: all that is the user's and all that cites it.
    """

    function = "services.erase:plan"
    owner = "erasing"


@verb("erase", "POST /memory/erase", right="erase")
class Erase(Chosen[Erased]):
    """Carry out exactly the plan with this digest, given what it was planned for; nothing brings it back."""

    function = "copies.erasures:erase_everywhere"
    owner = "erasing"
    digest: fields.Digest


@verb("lift_erasure", "POST /memory/erase/lift", right="erase")
class LiftErasure(Request[Lifted]):
    """Allow what an erased memory said to be remembered again; what was erased stays erased."""

    function = "services.rollback:lift"
    owner = "erasing"
    name: fields.Id


@verb("certificates", "GET /memory/certificates", right="erase", answer="items")
class Certificates(Request[list[Erasure]]):
    """Return what was erased in this tenant, newest first; `GET /memory/certificates/{name}` proves each."""

    function = "services.traces:certificates"
    owner = "erasing"


@verb("certificate", "GET /memory/certificates/{name}", right="erase")
class Certificate(Request[dict[str, Any]]):
    """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""

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
