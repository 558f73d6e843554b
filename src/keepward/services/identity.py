"""The identity: a document outside the store whose new editions are proposed, approved and undone like memories.

Its text is no memory. One record in the journal names the edition in force by its SHA-256. The texts of editions are
stored by version, as replays need them. A proposal contains its text and the one that it would replace.
Only the owner puts an edition in force or restores one, and only in the tenant that the store was opened for: there is
one document, even if several tenants are served.
An edition replaces the one that it was proposed on. The journal names that one before anything is quarantined, so that
a rollback can restore it. A document that was edited since is left as it is.
The document is replaced right after the commit. After a crash in between, it is still the previous edition, and
``doctor`` names the edition that was put in force.
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
from keepward.services.gate_context import find_personal_data
from keepward.services.recorded_reads import lowest_trust_read
from keepward.services.request_context import RequestContext
from keepward.services.system_records import system_record_step, system_records
from keepward.services.tombstones import blocked_by_erasure
from keepward.services.transaction import StepList, Transaction
from keepward.services.write import EvaluatedProposal, Evaluation, store_proposal
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.reads import Reader

#: Key of the record, and kind of the stored texts.
KEY = "identity"
#: Most characters of an edition for each token of its budget: a limit on what detectors get.
_CHARACTERS = 8
_MASKED = "the identity document contains what looks like a secret: take that out of the file first"
_UNWRITABLE = "the identity document cannot be replaced"
_ADOPT = "`keepward identity adopt --edition {}` if you wrote what `keepward identity` shows, or "
_PUT_BACK = "put back the text of an edition, which `keepward identity --edition VERSION` shows"
_OTHERS = "the identity is the document of another tenant of this store, which alone changes it"
_authority, _injection = reasons_of("authority"), reasons_of("injection")


def identity(session: RequestContext, *, edition: str | None = None) -> Identity:
    """Return the identity as it is now, or an edition by its version or the beginning of it.

    Raises:
        NotFound: there is no such edition, or its text is not stored.
        InvalidInput: several editions begin so; or the document cannot be read.
    """
    now, known = session.engine.identity(), _editions(session)
    version, text = now or (None, None)
    if edition is not None:
        names = {item.version for item in known if item.version.startswith(edition)}
        if len(names) > 1:
            raise InvalidInput("more than one edition begins so; give more of its version")
        version = next(iter(names), edition)
        text = session.store.artefact(session.tenant, KEY, version)
        if text is None:
            raise NotFound("no such edition of the identity is stored here; `keepward identity` lists them")
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
    """Check that the document is the edition in force, or the text that the journal first named.

    An edit by hand is a warning: the owner may do it, but so might an attacker.
    """
    now, known = session.engine.identity(), _editions(session)
    if not known:
        return Check(name=KEY, ok=True, detail="no edition was proposed so far")
    last, detail = known[-1], f"edition {known[-1].version} is in force"
    if now is None:
        missing = f"edition {last.version} was put in force, and there is no document any more"
        return Check(name=KEY, ok=False, detail=missing, remedy=_PUT_BACK)
    if edition_of(now[1]) != last.edition:
        detail = f"the document is not edition {last.version}, which is in force: it was edited outside of Keepward"
    elif not _is_decided(known):
        detail = f"{detail}, but without an approval: it was found in the document when another was proposed"
    else:
        return Check(name=KEY, ok=True, detail=detail)
    return Check(name=KEY, ok=True, warning=True, detail=detail, remedy=_ADOPT.format(now[0]) + _PUT_BACK)


def _is_decided(known: Sequence[Edition]) -> bool:
    """Whether the last edition is the first one, or the owner put it in force."""
    last = known[-1]
    return len(known) == 1 or bool(last.approved_by) or last.actor.startswith(f"{ActorKind.OPERATOR}:")


def update_identity(session: RequestContext, text: str, *, reason: str) -> Outcome:
    """Propose a new edition of the identity: it is quarantined for the owner, or in force at once if by the owner.

    If the document was edited by hand, the owner puts that text in force by proposing it.

    Raises:
        Conflict: there is no document here that could be replaced; the message says what to do.
        InvalidInput: the document already has this text.
    """
    reason = reason.strip() or "revised"
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> _Revision:
        now = _replaceable_document(session)
        # A file keeps its final line break; the comparison is with the text as it would be written.
        wanted = text.replace("\r\n", "\n").replace("\r", "\n").rstrip() + ("\n" if now.endswith("\n") else "")
        record = _identity_record(session.store, session.tenant)
        if wanted == now:
            known = _editions(session)
            decided = not known or (edition_of(now) == known[-1].edition and _is_decided(known))
            if decided or not session.policy.may_self_approve(session.actor):
                raise InvalidInput("the identity already has this text; nothing is changed")
            adopted = Evaluation(
                decision="allow", reasons=(), steps=[system_record_step(session, record, KEY, *_edition_facts(now))]
            )
            return _Revision(found_step=None, now=now, items=[adopted])
        found_step = (
            None
            if _edition_named(record) == edition_of(now)
            else system_record_step(session, record, KEY, *_edition_facts(now))
        )
        base = found_step.after if found_step else record
        assert base is not None
        revision = _Revision(found_step=found_step, now=now, base={base.id: base.version})
        revision.items.append(
            _evaluate(
                session,
                _core_block(base, now),
                wanted,
                reason,
                tainted_by=lowest_trust_read(session),
                findings=findings,
            )
        )
        if revision.decision(revision.items) == "allow":
            revision.text = revision.items[0].steps[0].after.text
            revision.items[0].steps = [system_record_step(session, base, KEY, *_edition_facts(revision.text, over=now))]
        return revision

    return store_proposal(session, decide, ["update_identity"])[0]


@dataclass(kw_only=True)
class _Revision(EvaluatedProposal):
    """A new edition after the gates."""

    #: Text of the document.
    now: str
    #: The step by which the journal names that text; None if it already does.
    found_step: Step | None
    #: Text that is put in force at once.
    text: str | None = None

    def prepare(self, transaction: Transaction) -> None:
        """Name the present text in the journal and store it, before anything builds on it."""
        transaction.writer.put(
            ReceiptArtefact(transaction.session.tenant, KEY, edition_of(self.now)[:EDITION_ID_CHARS], self.now)
        )
        if self.found_step is not None:
            transaction.commit(
                StepList([self.found_step]), reason="the identity document as it was found", kind="write"
            )
        if self.text is not None:
            put_in_force(transaction, self.text, over=edition_of(self.now))


def _evaluate(
    session: RequestContext,
    block: Record,
    text: str,
    reason: str,
    *,
    tainted_by: Trust | None = None,
    findings: dict[str, tuple[Finding, ...]] | None = None,
) -> Evaluation:
    """Run the gates on a new edition as on a core block; ``block`` is that of the edition in force.

    ``findings`` gets what the redactor finds; without it the redactor is not asked.
    """
    policy, change = _policy(session.policy), Replace(id=block.id, text=text)
    invalid = validation_error(change, reason, policy)
    if invalid:
        return Evaluation(decision="refuse", reasons=invalid)
    source = default_source(session.actor)
    trust = trust_of(session.actor, source)
    now = session.clock.now()
    after = replace(
        block,
        text=text,
        version=block.version + 1,
        updated_at=now,
        author=session.actor.label,
        text_by=session.actor.label,
        text_at=now,
        source=source,
        trust=trust,
        heard=tainted_by if tainted_by is not None and tainted_by < trust else None,
    )
    case = GateInput(change=change, actor=session.actor, scope=SHARED_SCOPE, before=block, after=after, reason=reason)
    known = {} if findings is None else find_personal_data(session, case, findings)
    view = GateContext(now=now, tokens=session.engine.counter.count(text), personal=known, edition=True)
    gates = pipeline.run_gates(case, view, policy, plugins=session.engine.gates)
    result = Evaluation(decision=gates.decision, reasons=tuple(gates.reasons), reason=gates.case.reason)
    if after.heard is not None:
        detail = f"its writer had read something of lower trust: written after reading {after.heard.label}"
        result.reasons = (*result.reasons, _authority("after_reading", detail))
    if any(reason.gate == "injection" for reason in gates.review_reasons):
        # Every prompt contains the identity, so a text that looks like an injected instruction has no place in it.
        detail = "the identity takes no text that reads like an order to ignore others: say it plainly"
        result.decision, result.reasons = "refuse", (_injection("order_in_identity", detail), *result.reasons)
    erased = blocked_by_erasure(session, gates.case.after)
    if erased is not None:
        return Evaluation(decision="refuse", reasons=(erased,))
    if result.decision == "quarantine":
        detail = "the identity takes the owner's own approval; a reviewer's is not enough"
        result.reasons = (_authority("owner_decides", detail), *result.reasons)
    if result.decision != "refuse":
        result.steps = [Step(op="replace", before=block, after=gates.case.after)]
    return result


def _policy(policy: Policy) -> Policy:
    """Return the policy for the document: limited by its budget, and changed only with approval."""
    persona, budget = CORE_BLOCKS[0], policy.block_budget.get(CORE_BLOCKS[0], 0)
    return replace(
        policy,
        text_limit={**policy.text_limit, Tier.CORE: budget * _CHARACTERS},
        block_access={**policy.block_access, persona: Access.APPROVAL},
        core_keys=(persona,),
    )


def _core_block(base: Record, text: str) -> Record:
    """Return an edition in the form of a core block, as proposals show it and the gates judge it."""
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
    """Whether a proposal is for a new edition of the identity."""
    return any(step.after.kind is Kind.IDENTITY for step in item.steps)


def editions_of(session: RequestContext, ids: Collection[str], proposals: Collection[str]) -> list[Record]:
    """Return the editions that an erasure includes: those of these proposals, and all if their record is erased."""
    items = session.store.documents(Proposal, session.tenant).list(ids=sorted(proposals)) if proposals else []
    proposed = [step.after for item in items if is_edition(item) for step in item.steps]
    record = _identity_record(session.store, session.tenant)
    if record is None or record.id not in ids:
        return proposed
    artefacts = session.store.documents(ReceiptArtefact, session.tenant).list()
    return [*proposed, *(replace(record, text=artefact.text) for artefact in artefacts if artefact.kind == KEY)]


def refusal_reason(actor: Actor) -> str | None:
    """Return why an actor may not put an edition in force or restore one; None for the owner, who may."""
    if actor.is_owner and actor.has_right("admin"):
        return None
    return "the identity takes the owner; a reviewer may reject a new edition and not approve one"


def is_outdated(session: RequestContext, item: Proposal) -> bool:
    """Whether a proposal for the identity can no longer be approved, as far as the document can be read here."""
    try:
        now = session.engine.identity()
    except InvalidInput:
        return False
    return now is not None and _outdated(session, item, now[1]) is not None


def _outdated(session: RequestContext, item: Proposal, now: str) -> str | None:
    step = item.steps[0]
    if _edition_named(_identity_record(session.store, session.tenant)) != edition_of(now):
        return "the identity document was edited since this was proposed"
    # The proposed text is already redacted, so the redactor is not asked again.
    proposer = dataclasses.replace(session, actor=item.proposer)
    again = _evaluate(proposer, _core_block(step.before or step.after, now), step.after.text, item.reason)
    if redact_secrets(step.after.text) != step.after.text:
        return "it contains what looks like a secret"
    return None if again.steps else f"{again.reasons[0].gate} refuses it now: {again.reasons[0].detail}"


def change_to_approve(session: RequestContext, item: Proposal) -> Step | str:
    """Return the step by which the journal names the proposed edition, or why it can no longer be approved.

    Raises:
        Conflict: there is no document here that could be replaced; the proposal stays pending.
    """
    now = _replaceable_document(session)
    record = _identity_record(session.store, session.tenant)
    return _outdated(session, item, now) or system_record_step(
        session, record, KEY, *_edition_facts(item.steps[0].after.text, over=now)
    )


def reverted_edition(session: RequestContext, steps: Sequence[Step]) -> tuple[str, str] | None:
    """Return the text of the edition that a rollback restores and the edition that it replaces, if any.

    Raises:
        Unauthorised: it takes the owner.
        Conflict: there is no document to replace, it was edited since, or the text is not stored.
    """
    step = next((step for step in steps if (step.after.scope, step.after.key) == (RESERVED_SCOPE, KEY)), None)
    if step is None:
        return None
    if why := refusal_reason(session.actor):
        raise Unauthorised(why)
    first = session.store.steps(session.tenant, step.after.id)[0].after
    over, wanted = _edition_at(step.before, first), _edition_at(step.after, first)
    if wanted == over:
        return None
    if edition_of(_replaceable_document(session)) != over:
        raise Conflict("the identity document was edited since that commit and is left as it is; restore it by hand")
    text = session.store.artefact(session.tenant, KEY, wanted[:EDITION_ID_CHARS])
    if text is None or edition_of(text) != wanted:
        raise Conflict("the edition before that commit is not stored any more, so the identity cannot be restored")
    return text, over


def put_in_force(transaction: Transaction, text: str, *, over: str) -> None:
    """Store the text of an edition that a transaction commits, and replace the document after the transaction.

    Raises:
        Conflict: the document is not the edition ``over``. Raised after the commit, which stays, if the document was
            edited meanwhile or cannot be replaced.
    """
    session, wanted = transaction.session, edition_of(text)
    if edition_of(_replaceable_document(session)) != over:
        raise Conflict("the identity document was edited at this very moment and is left as it is; look again")
    transaction.writer.put(ReceiptArtefact(session.tenant, KEY, wanted[:EDITION_ID_CHARS], text))

    def replace_document() -> None:
        document = session.engine.identity
        now = document()
        present = now and edition_of(now[1])
        if present == wanted:
            return
        if present != over:
            raise Conflict("the commit stays, but the identity document was edited meanwhile and is left as it is")
        try:
            document.replace(text)
        except OSError as exc:
            raise Conflict(f"the commit stays, but {_UNWRITABLE} ({exc.strerror}): {_PUT_BACK}") from exc

    transaction.afterwards.append(replace_document)


def _replaceable_document(session: RequestContext) -> str:
    """Return the text of the document, if this session can have it replaced.

    Raises:
        Conflict: it cannot; the message says what to do.
    """
    obstacle = _unwritable_reason(session)
    now = session.engine.identity()
    if obstacle is not None or now is None:
        raise Conflict(obstacle or "there is no identity document any more")
    try:
        session.engine.identity.check_writable()
    except OSError as exc:
        raise Conflict(f"{_UNWRITABLE} ({exc.strerror}): let this program write its folder") from exc
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
    """Return the record that names the edition, even if a rollback withdrew it."""
    return next(iter(system_records(store, tenant, KEY)), None)


def _edition_named(record: Record | None) -> str | None:
    """Return the edition that the journal names, if any."""
    return record.metadata["edition"] if record is not None and record.status is Status.ARCHIVED else None


def _edition_at(record: Record | None, first: Record) -> str:
    """Return the edition in force at a version; before the first one, and after its rollback, the one it names."""
    return _edition_named(record) or str(first.metadata["edition"])


def _edition_facts(text: str, *, over: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the text and the metadata of the record for an edition."""
    edition = edition_of(text)
    facts = {"edition": edition} | ({} if over is None else {"before": edition_of(over)})
    return f"The identity is edition {edition[:EDITION_ID_CHARS]}.", facts


def _editions(session: RequestContext) -> list[Edition]:
    editions: list[Edition] = []
    record = _identity_record(session.store, session.tenant)
    history = [] if record is None else session.store.history(session.tenant, record.id)
    for view, step in history:
        first = history[0][1].after
        named, details = _edition_at(step.after, first), view.details
        if editions and editions[-1].edition == named:
            if details.actor.startswith(f"{ActorKind.OPERATOR}:"):
                editions[-1] = replace(editions[-1], approved_by=details.actor)
            continue
        editions.append(
            Edition(
                version=named[:EDITION_ID_CHARS],
                edition=named,
                before=editions[-1].edition if editions else None,
                at=view.commit.at,
                actor=details.actor,
                approved_by=details.approved_by,
                reason=details.reason,
                commit=view.commit.id,
            )
        )
    return editions
