"""The verbs that destroy content, and that accept a store: for the owner alone, by plan and digest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from keepward.model.copies import Adoption
from keepward.model.journal import Erased, Lifted, Selection
from keepward.model.journal import ErasePlan as Planned
from keepward.verbs import NONE, Limit, Request, fields, verb

if TYPE_CHECKING:
    from keepward.engine.session import Session

R = TypeVar("R")
Reason = Literal["request", "consent", "retention", "mistake", "secret", "other"]


class Chosen(Request[R]):
    """What is to be destroyed: memories by id, subject or source, and a code that says why."""

    ids: Annotated[list[fields.Id], Limit(maxItems=fields.MOST)] = NONE
    subject: fields.ReadLine | None = None
    source: Annotated[str, Limit(minLength=1, maxLength=512)] | None = None
    reason: Reason = "request"

    def selection(self) -> Selection:
        """Return which memories are meant."""
        return Selection(ids=tuple(self.ids), subject=self.subject, source=self.source)


@verb("plan_erase", "POST /memory/erase/plan", right="erase")
class PlanErase(Chosen[Planned]):
    """Return what erasing these memories would destroy, under a digest; change nothing."""

    def run(self, session: Session) -> Planned:
        from keepward.engine.erase import plan

        session.owner("erasing", "erase")
        return plan(session, self.selection(), reason=self.reason)


@verb("erase", "POST /memory/erase", right="erase")
class Erase(Chosen[Erased]):
    """Carry out exactly the plan with this digest, given what it was planned for; nothing brings it back."""

    digest: fields.Digest

    def run(self, session: Session) -> Erased:
        """Destroy it, here and in the backups of the store."""
        from keepward.copies.erasures import settle
        from keepward.engine.erase import erase

        session.owner("erasing", "erase")
        done = erase(session, self.digest, self.selection(), reason=self.reason)
        settle(session)
        return done


@verb("lift_erasure", "POST /memory/erase/lift", right="erase")
class LiftErasure(Request[Lifted]):
    """Allow what an erased memory said to be remembered again; what was erased stays erased."""

    function = "engine.undo:lift"
    owner = "erasing"
    name: fields.Id


@verb("certificate", "GET /memory/certificates/{name}", right="erase")
class Certificate(Request[dict[str, Any]]):
    """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""

    name: fields.Name

    def run(self, session: Session) -> dict[str, Any]:
        """Look it up, or make a preliminary one."""
        from keepward.engine import traces as certificate

        session.owner("erasing", "erase")
        commit, events = certificate.find(session, self.name)
        kept = session.store.artefact(session.tenant, certificate.CERTIFICATE, commit.id)
        if kept is not None:
            return dict(json.loads(kept))
        file = "not yet: close other readers and open the store again"
        return certificate.certificate(session.engine, commit, events, file=file, backups=())


@verb("plan_adopt", "POST /memory/adopt/plan", right="owner")
class PlanAdopt(Request[Adoption]):
    """Return what accepting the store as it stands would accept, under a digest; change nothing."""

    def run(self, session: Session) -> Adoption:
        from keepward.copies.backup import plan_adopt

        session.owner("accepting a store")
        return plan_adopt(session.engine)


@verb("adopt", "POST /memory/adopt", right="owner")
class Adopt(Request[Adoption]):
    """Accept the store as it stands, given the digest of what was shown."""

    digest: fields.Digest

    def run(self, session: Session) -> Adoption:
        from keepward.copies.backup import adopt

        session.owner("accepting a store")
        return adopt(session, self.digest)
