"""The identity: who the agent is, at the start of every context.

A new text is a proposal for the core block ``persona``, which only the owner approves. With a file, the file alone is
the persona and nothing here writes it: its owner applies the approved text by hand. Without one, the block is it.
"""

from __future__ import annotations

from difflib import unified_diff

from keepward.core.change import Insert
from keepward.core.identity import Identity
from keepward.core.journal import Check
from keepward.core.memory import CORE_BLOCKS, Record, Tier
from keepward.core.principals import RESERVED_SCOPE
from keepward.core.proposal import Outcome
from keepward.gates.content import redact_secrets
from keepward.services import arguments, write
from keepward.services.access import core_blocks, records_under_key
from keepward.services.request_context import RequestContext

PERSONA = CORE_BLOCKS[0]


def identity(session: RequestContext) -> Identity:
    """Return the persona of this handle's contexts, and what was approved for it.

    Raises:
        InvalidInput: the file cannot be read.
    """
    document, block = session.engine.identity(), _block(session)
    name = session.engine.identity.name
    if name is None:
        version, text = (None, None) if block is None else (str(block.version), block.text)
    else:
        version, text = document or (None, None)
    text = None if text is None else redact_secrets(text)
    return Identity(
        version=version,
        text=text,
        tokens=0 if text is None else session.engine.counter.count(text),
        budget=session.policy.block_budget.get(PERSONA, 0),
        file=name,
        block=block,
        diff="" if name is None or block is None else _diff(name, text or "", block.text),
    )


def _block(session: RequestContext) -> Record | None:
    blocks = core_blocks(session, approved=True).records
    return next((session.reader.hide_content(block) for block in blocks if block.key == PERSONA), None)


def _diff(name: str, now: str, approved: str) -> str:
    before, after = (text.replace("\r\n", "\n").rstrip().splitlines() for text in (now, approved))
    return "".join(f"{line}\n" for line in unified_diff(before, after, name, name, lineterm=""))


def update_identity(session: RequestContext, text: str, *, reason: str = "") -> Outcome:
    """Propose a new text of the identity, in the nearest core block that this handle sees, else in its own scope."""
    block = _block(session)
    change = Insert(
        id=session.ids.new_id(session.clock.now()),
        text=arguments.text(text).replace("\r\n", "\n").rstrip(),
        scope=session.scope if block is None else block.scope,
        tier=Tier.CORE.value,
        key=PERSONA,
    )
    return write.propose(session, [change], reason=reason.strip() or "revised", identity=True)


def check(session: RequestContext) -> Check:
    """Compare the file with the text that was approved last."""
    name, block = session.engine.identity.name, _block(session)
    if block is None and records_under_key(session, RESERVED_SCOPE, "identity"):
        detail = "an earlier release stored editions of the identity, which only contexts of that time show"
        remedy = "`keepward identity propose -f FILE` makes its text the first version of the core block"
        return Check(name="identity", ok=True, warning=True, detail=detail, remedy=remedy)
    if name is None:
        return Check(name="identity", ok=True, detail="the core block is the persona" if block else "there is none")
    now = session.engine.identity()
    if now is None:
        remedy = f"write {name}, or take it out of the settings: then the core block is the persona"
        return Check(name="identity", ok=block is None, detail=f"there is no file {name}", remedy=remedy)
    if block is None or not _diff(name, now[1], block.text):
        return Check(name="identity", ok=True, detail=f"{name} is the persona")
    detail = f"{name} is the persona, and differs from the text that was approved last"
    remedy = f"apply the diff of `keepward identity`, or approve the file: `keepward identity propose -f {name}`"
    return Check(name="identity", ok=True, warning=True, detail=detail, remedy=remedy)
