"""The identity: a document outside of the store, a new edition of which is proposed, decided and undone like a memory.

Invariants
(1) Its text is no memory: the journal has one record of the store's own, which names by its SHA-256 the edition that
    holds. The text of an edition is kept under its version, as replays need it; that of a proposal stands in the
    proposal, beside the text that it would take the place of, and goes with it.
(2) Nobody but the owner puts an edition in force or brings one back, and only in the tenant that the store was opened
    for: the document is one, whoever else is served.
(3) An edition takes the place of the one that it was proposed on, which the journal names before anything waits, so
    that a rollback gives it back; a document that somebody has edited since is left as it is.
(4) The document is replaced right after the commit. Where a crash comes between, it is the edition before, and
    ``doctor`` names the one that was put in force.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from keepward.core.change import Replace
from keepward.core.commit import Step
from keepward.core.identity import EDITION_ID_CHARS, Edition, Identity, edition_of
from keepward.core.journal import Check
from keepward.core.memory import CORE_BLOCKS, Access, ContentType, Kind, Record, Status, Tier
from keepward.core.policy import Policy
from keepward.core.principals import RESERVED_SCOPE, SHARED_SCOPE, Actor, ActorKind, Trust, default_source, trust_of
from keepward.core.proposal import Outcome, Proposal
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.gates import pipeline
from keepward.gates.content import redact_secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import GateContext, GateInput, reasons_of
from keepward.gates.validation import validation_error
from keepward.services.erasure_references import blocked_by_erasure
from keepward.services.gate_context import find_personal_data
from keepward.services.request_context import RequestContext, lowest_trust_read
from keepward.services.system_records import system_record_step, system_records
from keepward.services.transaction import StepList, Transaction
from keepward.services.write import EvaluatedProposal, Evaluation, store_proposal
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.reads import Reader

#: Key of the record, and kind of the kept texts.
KEY = "identity"
#: Most characters of an edition for each token of its budget, so that no detector is given more.
_CHARACTERS = 8
_MASKED = "the identity document holds what looks like a secret: take that out of the file first"
_UNWRITABLE = "the identity document cannot be replaced"
_ADOPT = "`keepward identity adopt --edition {}` if you wrote what `keepward identity` shows, or "
_PUT_BACK = "put back the text of an edition, which `keepward identity --edition VERSION` shows"
_OTHERS = "the identity is the document of another tenant of this store, which alone changes it"
_authority, _injection = reasons_of("authority"), reasons_of("injection")


def identity(session: RequestContext, *, edition: str | None = None) -> Identity:
    """Return the identity as it stands, or one of its editions by its version or the first letters of it.

    Raises:
        NotFound: there is no such edition, or its text is not kept.
        InvalidInput: several begin so; or the document cannot be read.
    """
    now, known = session.engine.identity(), _editions(session)
    version, text = now or (None, None)
    if edition is not None:
        names = {each.version for each in known if each.version.startswith(edition)}
        if len(names) > 1:
            raise InvalidInput("more than one edition begins so; give more of its version")
        version = next(iter(names), edition)
        text = session.store.artefact(session.tenant, KEY, version)
        if text is None:
            raise NotFound("no such edition of the identity is kept here; `keepward identity` lists them")
    return Identity(
        version=version,
        text=None if text is None else redact_secrets(text),
        tokens=0 if text is None else session.engine.counter.count(text),
        budget=session.policy.block_budget.get(CORE_BLOCKS[0], 0),
        current=now is not None and version == now[0],
        obstacle=_unwritable_reason(session),
        edited=bool(known) and (now is None or edition_of(now[1]) != known[-1].edition),
        editions=tuple(known),
    )


def check(session: RequestContext) -> Check:
    """Return whether the document says what was put in force, or else what it said when the journal first named it.

    An edit by hand is a warning: it is the owner's right, and may have been somebody else's act.
    """
    now, known = session.engine.identity(), _editions(session)
    if not known:
        return Check(name=KEY, ok=True, detail="no edition was proposed so far")
    last, detail = known[-1], f"edition {known[-1].version} holds"
    if now is None:
        gone = f"edition {last.version} was put in force, and there is no document any more"
        return Check(name=KEY, ok=False, detail=gone, remedy=_PUT_BACK)
    if edition_of(now[1]) != last.edition:
        detail = (
            f"the document is not edition {last.version}, which was put in force: it was edited outside of Keepward"
        )
    elif not _is_decided(known):
        detail = f"{detail}, which nobody approved: it was found in the document when another was proposed"
    else:
        return Check(name=KEY, ok=True, detail=detail)
    return Check(name=KEY, ok=True, warning=True, detail=detail, remedy=_ADOPT.format(now[0]) + _PUT_BACK)


def _is_decided(known: Sequence[Edition]) -> bool:
    """Whether the last edition is the first, or the owner put it in force."""
    last = known[-1]
    return len(known) == 1 or bool(last.approved_by) or last.actor.startswith(f"{ActorKind.OPERATOR}:")


def update_identity(session: RequestContext, text: str, *, reason: str) -> Outcome:
    """Propose a new edition of the identity: it waits for the owner, whose own word decides at once.

    Where the document was edited by hand, the owner puts in force what it says by proposing that.

    Raises:
        Conflict: there is no document here that could be replaced; the message says what to do.
        InvalidInput: it is what the document says already.
    """
    reason = reason.strip() or "revised"
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> _Revision:
        now = _replaceable_document(session)
        # A file ends as it did; what is compared is what would stand there.
        wanted = text.replace("\r\n", "\n").replace("\r", "\n").rstrip() + ("\n" if now.endswith("\n") else "")
        stands = _identity_record(session.store, session.tenant)
        if wanted == now:
            known = _editions(session)
            decided = not known or (edition_of(now) == known[-1].edition and _is_decided(known))
            if decided or not session.policy.may_self_approve(session.actor):
                raise InvalidInput("that is what the identity says already; nothing is changed")
            named = Evaluation(
                decision="allow", reasons=(), steps=[system_record_step(session, stands, KEY, *_edition_facts(now))]
            )
            return _Revision(noted=None, now=now, items=[named])
        noted = (
            None
            if _edition_named(stands) == edition_of(now)
            else system_record_step(session, stands, KEY, *_edition_facts(now))
        )
        base = noted.after if noted else stands
        assert base is not None
        revision = _Revision(noted=noted, now=now, base={base.id: base.version})
        heard = lowest_trust_read(session)
        revision.items.append(_evaluate(session, _core_block(base, now), wanted, reason, tainted_by=heard, found=found))
        if revision.decision(revision.items) == "allow":
            revision.text = revision.items[0].steps[0].after.text
            revision.items[0].steps = [system_record_step(session, base, KEY, *_edition_facts(revision.text, over=now))]
        return revision

    return store_proposal(session, decide, ["update_identity"])[0]


@dataclass(kw_only=True)
class _Revision(EvaluatedProposal):
    """A new edition, judged."""

    #: What the document says.
    now: str
    #: The change after which the journal names that; None where it does.
    noted: Step | None
    #: What is put in force at once.
    text: str | None = None

    def prepare(self, transaction: Transaction) -> None:
        """Have the journal name what the document says, and store that, before anything builds on it; see (3)."""
        transaction.writer.put(
            ReceiptArtefact(transaction.session.tenant, KEY, edition_of(self.now)[:EDITION_ID_CHARS], self.now)
        )
        if self.noted is not None:
            transaction.commit(StepList([self.noted]), reason="the identity document as it was found", kind="write")
        if self.text is not None:
            put_in_force(transaction, self.text, over=edition_of(self.now))


def _evaluate(
    session: RequestContext,
    block: Record,
    text: str,
    reason: str,
    *,
    tainted_by: Trust | None = None,
    found: dict[str, tuple[Finding, ...]] | None = None,
) -> Evaluation:
    """Judge a new edition like the core block that it makes; ``block`` is that of the edition in force.

    The redactor is asked where there is something to note what it finds in: ``found``.
    """
    policy, change = _policy(session.policy), Replace(id=block.id, text=text)
    broken = validation_error(change, reason, policy)
    if broken:
        return Evaluation(decision="refuse", reasons=broken)
    source = default_source(session.actor)
    trust = trust_of(session.actor, source)
    now = session.clock.now()
    after = replace(
        block,
        text=text,
        version=block.version + 1,
        updated_at=now,
        author=session.actor.label,
        source=source,
        trust=trust,
        heard=tainted_by if tainted_by is not None and tainted_by < trust else None,
    )
    case = GateInput(change=change, actor=session.actor, scope=SHARED_SCOPE, before=block, after=after, reason=reason)
    known = {} if found is None else find_personal_data(session, case, found)
    view = GateContext(now=now, tokens=session.engine.counter.count(text), personal=known, edition=True)
    judged = pipeline.run_gates(case, view, policy, plugins=session.engine.gates)
    result = Evaluation(decision=judged.decision, reasons=tuple(judged.reasons), reason=judged.case.reason)
    if after.heard is not None:
        detail = f"its writer was handed something of lower trust: written after reading {after.heard.label}"
        result.reasons = (*result.reasons, _authority("after_reading", detail))
    if any(each.gate == "injection" for each in judged.held):
        # What stands in every prompt is no place for a text that would pass for an order from elsewhere.
        detail = "the identity takes no text that reads like an order to pass over others: say it plainly"
        result.decision, result.reasons = "refuse", (_injection("order_in_identity", detail), *result.reasons)
    stone = blocked_by_erasure(session, judged.case.after)
    if stone is not None:
        return Evaluation(decision="refuse", reasons=(stone,))
    if result.decision == "quarantine":
        detail = "the identity takes the owner's own approval; a reviewer's does not do"
        result.reasons = (_authority("owner_decides", detail), *result.reasons)
    if result.decision != "refuse":
        result.steps = [Step(op="replace", before=block, after=judged.case.after)]
    return result


def _policy(policy: Policy) -> Policy:
    """Return the policy for the document: as long as its budget, and never changed without approval."""
    persona, budget = CORE_BLOCKS[0], policy.block_budget.get(CORE_BLOCKS[0], 0)
    return replace(
        policy,
        text_limit={**policy.text_limit, Tier.CORE: budget * _CHARACTERS},
        block_access={**policy.block_access, persona: Access.APPROVAL},
        core_keys=(persona,),
    )


def _core_block(base: Record, text: str) -> Record:
    """Return an edition as the core block that it makes: what a proposal shows, and is judged by."""
    return replace(
        base,
        text=text,
        tier=Tier.CORE,
        kind=Kind.IDENTITY,
        key=CORE_BLOCKS[0],
        scope=SHARED_SCOPE,
        content_type=ContentType.TEXT,
        metadata_json=None,
        source="operator",
        trust=Trust.OWNER,
        status=Status.ACTIVE,
    )


def is_edition(item: Proposal) -> bool:
    """Whether a proposal asks for a new edition of the identity."""
    return any(step.after.kind is Kind.IDENTITY for step in item.steps)


def editions_of(session: RequestContext, ids: Collection[str], proposals: Collection[str]) -> list[Record]:
    """Return the editions that go with an erasure: those of these proposals, and all where the record of them goes."""
    items = [session.store.documents(Proposal, session.tenant).get(name, prefix=True) for name in sorted(proposals)]
    asked = [step.after for item in items if item is not None and is_edition(item) for step in item.steps]
    stands = _identity_record(session.store, session.tenant)
    if stands is None or stands.id not in ids:
        return asked
    kept = session.store.documents(ReceiptArtefact, session.tenant).list()
    return [*asked, *(replace(stands, text=each.text) for each in kept if each.kind == KEY)]


def refusal_reason(actor: Actor) -> str | None:
    """Return why somebody may not put an edition in force or bring one back; None where it is the owner, who may."""
    if actor.is_owner and actor.has_right("admin"):
        return None
    return "the identity takes the owner; a reviewer may reject a new edition and not approve one"


def is_outdated(session: RequestContext, item: Proposal) -> bool:
    """Whether a proposal for the identity can be approved no more, as far as the document can be read here."""
    try:
        now = session.engine.identity()
    except InvalidInput:
        return False
    return now is not None and _outdated(session, item, now[1]) is not None


def _outdated(session: RequestContext, item: Proposal, now: str) -> str | None:
    step = item.steps[0]
    if _edition_named(_identity_record(session.store, session.tenant)) != edition_of(now):
        return "the identity document was edited since this was proposed"
    # What was proposed is redacted already, and no model is asked once more.
    proposer = dataclasses.replace(session, actor=item.proposer)
    again = _evaluate(proposer, _core_block(step.before or step.after, now), step.after.text, item.reason)
    if redact_secrets(step.after.text) != step.after.text:
        return "it holds what looks like a secret"
    return None if again.steps else f"{again.reasons[0].gate} refuses it by now: {again.reasons[0].detail}"


def change_to_approve(session: RequestContext, item: Proposal) -> Step | str:
    """Return the change by which the journal names what was proposed, or a sentence why it can be approved no more.

    Raises:
        Conflict: there is no document here that could be replaced; the proposal goes on waiting.
    """
    now = _replaceable_document(session)
    stands = _identity_record(session.store, session.tenant)
    return _outdated(session, item, now) or system_record_step(
        session, stands, KEY, *_edition_facts(item.steps[0].after.text, over=now)
    )


def reverted_edition(session: RequestContext, steps: Sequence[Step]) -> tuple[str, str] | None:
    """Return the text of the edition that a rollback brings back and the edition that it takes the place of, if any.

    Raises:
        Unauthorised: it takes the owner.
        Conflict: there is no document to bring it back to, it was edited since, or the text is not kept.
    """
    step = next((each for each in steps if (each.after.scope, each.after.key) == (RESERVED_SCOPE, KEY)), None)
    if step is None:
        return None
    if why := refusal_reason(session.actor):
        raise Unauthorised(why)
    first = session.store.steps(session.tenant, step.after.id)[0].after
    over, wanted = _edition_at(step.before, first), _edition_at(step.after, first)
    if wanted == over:
        return None
    if edition_of(_replaceable_document(session)) != over:
        raise Conflict("the identity document was edited since that commit and is left as it is; bring it back by hand")
    text = session.store.artefact(session.tenant, KEY, wanted[:EDITION_ID_CHARS])
    if text is None or edition_of(text) != wanted:
        raise Conflict("the edition before that commit is not kept any more, so the identity cannot be brought back")
    return text, over


def put_in_force(transaction: Transaction, text: str, *, over: str) -> None:
    """Store the text of an edition that a transaction commits to, and replace the document after it; see (4).

    Raises:
        Conflict: the document is not the edition ``over`` any more. Raised after the commit, which stands, where the
            document was edited meanwhile or cannot be replaced.
    """
    session, wanted = transaction.session, edition_of(text)
    if edition_of(_replaceable_document(session)) != over:
        raise Conflict("the identity document was edited in this very moment and is left as it is; look again")
    transaction.writer.put(ReceiptArtefact(session.tenant, KEY, wanted[:EDITION_ID_CHARS], text))

    def replace_document() -> None:
        document = session.engine.identity
        now = document()
        found = now and edition_of(now[1])
        if found == wanted:
            return
        if found != over:
            raise Conflict("the commit stands, but the identity document was edited meanwhile and is left as it is")
        try:
            document.replace(text)
        except OSError as fault:
            raise Conflict(f"the commit stands, but {_UNWRITABLE} ({fault.strerror}): {_PUT_BACK}") from fault

    transaction.afterwards.append(replace_document)


def _replaceable_document(session: RequestContext) -> str:
    """Return the text of a document that this session can have replaced.

    Raises:
        Conflict: there is none; the message says what to do.
    """
    obstacle = _unwritable_reason(session)
    now = session.engine.identity()
    if obstacle is not None or now is None:
        raise Conflict(obstacle or "there is no identity document any more")
    try:
        session.engine.identity.check_writable()
    except OSError as fault:
        raise Conflict(f"{_UNWRITABLE} ({fault.strerror}): let this program write its folder") from fault
    return now[1]


def _unwritable_reason(session: RequestContext) -> str | None:
    document = session.engine.identity
    if document.tenant not in {None, session.tenant}:
        return _OTHERS
    now = document()
    if now is not None and redact_secrets(now[1]) != now[1]:
        return _MASKED
    return document.unwritable_reason()


def _identity_record(store: Reader, tenant: str) -> Record | None:
    """Return the record that names the edition, be it withdrawn by a rollback."""
    return next(iter(system_records(store, tenant, KEY)), None)


def _edition_named(record: Record | None) -> str | None:
    """Return the edition that the journal names, if any."""
    return record.metadata["edition"] if record is not None and record.status is Status.ARCHIVED else None


def _edition_at(record: Record | None, first: Record) -> str:
    """Return the edition that held at a version: before the first one, and where that was taken back, what it names."""
    return _edition_named(record) or str(first.metadata["edition"])


def _edition_facts(text: str, *, over: str | None = None) -> tuple[str, dict[str, str]]:
    """Return what the record says of an edition, in words and as facts."""
    edition = edition_of(text)
    facts = {"edition": edition} | ({} if over is None else {"before": edition_of(over)})
    return f"The identity is edition {edition[:EDITION_ID_CHARS]}.", facts


def _editions(session: RequestContext) -> list[Edition]:
    found: list[Edition] = []
    stands = _identity_record(session.store, session.tenant)
    history = [] if stands is None else session.store.history(session.tenant, stands.id)
    for view, step in history:
        first = history[0][1].after
        named, details = _edition_at(step.after, first), view.details
        if found and found[-1].edition == named:
            if details.actor.startswith(f"{ActorKind.OPERATOR}:"):
                found[-1] = replace(found[-1], approved_by=details.actor)
            continue
        found.append(
            Edition(
                version=named[:EDITION_ID_CHARS],
                edition=named,
                before=found[-1].edition if found else None,
                at=view.commit.at,
                actor=details.actor,
                approved_by=details.approved_by,
                reason=details.reason,
                commit=view.commit.id,
            )
        )
    return found
