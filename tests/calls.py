"""One example call of each operation, and a store to make it in; ``surfaces/test_calls.py`` makes it on every surface.

A new operation needs an example in ``EXAMPLES``. Without one, a test fails and says what to add.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from keepward import Actor, Filters, Memory, Replace
from keepward.api import OPERATIONS
from keepward.operations import Operation

#: A word that only the target of the calls contains.
WORD = "Quillzephyr"
TEXT = f"The lighthouse keeper of Sagres is called {WORD}"
QUESTION = "Who keeps the lighthouse of Sagres?"

#: What a caller gets that may not read the target: an error, or an answer without its words. Only the words of a
#: proposal are ``shown``, to a reviewer.
Hidden = Literal["not_found", "unauthorised", "conflict", "invalid_input", "answer", "shown"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example call. ``{memory}`` and other names in braces are attributes of a ``Stage``."""

    #: Arguments of the method in Python.
    args: Mapping[str, Any]
    #: Words after ``keepward``; empty if no command does this.
    command: str = ""
    #: Arguments of the MCP tool; None if no tool does this.
    tool: Mapping[str, Any] | None = None
    #: If the target is in another agent's scope.
    elsewhere: Hidden = "answer"
    #: If the target is sensitive, and the caller may not read sensitive memories.
    sensitive: Hidden = "answer"
    #: The right that it needs, if it is not that of the operation.
    right: str = ""


def reads(args: Mapping[str, Any] | None = None, command: str = "", **more: Any) -> Example:
    """Return a call that names no memory, such as a search."""
    return Example(args=args or {}, command=command, **more)


def names(args: Mapping[str, Any], command: str = "", **more: Any) -> Example:
    """Return a call that names the target: it is missing in another scope, and withheld if it is sensitive."""
    return Example(args=args, command=command, **{"elsewhere": "not_found", "sensitive": "unauthorised"} | more)


X = {"reason": "x"}
#: By operation; a second example of an operation has more words after its name.
EXAMPLES: dict[str, Example] = {
    "recall": reads({"query": QUESTION}, f"recall '{QUESTION}'", tool={"query": QUESTION}),
    "list_memories": reads({"limit": None, "include_ended": True}, "list"),
    "list_memories of the past": reads({"as_of": "{head}", "limit": None}, "list --as-of {head}"),
    "get": names({"memory_id": "{memory}"}, "get {memory}"),
    "get by key": names({"memory_id": "keeper"}, "get keeper"),
    "get by a part of the id": names({"memory_id": "{part}"}, "get {part}"),
    "get of the past": names({"memory_id": "{memory}", "as_of": "{head}"}, "get {memory} --as-of {head}"),
    "history": names({"memory_id": "{memory}"}, "history {memory}", tool={"id": "{memory}"}),
    "facets": reads({"filters": Filters(include_ended=True)}),
    "activity": reads({"by": "session"}),
    "sources": reads(),
    "news": reads({"since": "2026-01-01"}),
    "users": reads(),
    "projects": reads(),
    "lineage": names({"memory_id": "{memory}"}),
    "lineage of a derived memory": names({"memory_id": "{derived}"}, sensitive="answer"),
    "context": reads({"objective": QUESTION}, f"context '{QUESTION}'", tool={"objective": QUESTION}),
    "context of the past": reads({"objective": QUESTION, "as_of": "{head}"}),
    "snapshot": reads(),
    "memory_block": reads({"query": QUESTION}),
    "replay": names({"receipt_id": "{compiled}"}, "replay {compiled}"),
    "receipts": reads(),
    "receipt": names({"receipt_id": "{receipt}"}, "receipt {receipt}", sensitive="answer"),
    "receipt of a context": names({"receipt_id": "{compiled}"}, "receipt {compiled}", sensitive="answer"),
    "check": reads(command="check"),
    "doctor": reads(),
    "status": reads(command="status", tool={}),
    "identity": reads(),
    "update_identity": reads({"text": "I keep harbour {head}", **X}),
    "remember": reads(
        {"text": "The crane is red", **X}, "remember 'The crane is red'", tool={"text": "The crane is red"}
    ),
    "remember from the target": names({"text": "The crane is red", "derived_from": ["{memory}"]}),
    "remember under its key": reads(
        {"text": "The crane is red", "key": "keeper", "tier": "archival"}, sensitive="unauthorised"
    ),
    "revise": names(
        {"memory_id": "{memory}", "text": "No one keeps it", **X},
        "revise {memory} 'No one keeps it' --reason x",
        tool={"id": "{memory}", "text": "No one keeps it", **X},
    ),
    "append": names({"memory_id": "{memory}", "text": "and is old", **X}, "revise {memory} 'and is old' --append"),
    "forget": names({"memory_id": "{memory}", **X}, "forget {memory} --reason x", tool={"id": "{memory}", **X}),
    "archive": names({"memory_id": "{memory}", **X}, "archive {memory}"),
    "restore": names({"memory_id": "{retired}", **X}, "restore {retired}"),
    "reinforce": names({"memory_id": "{memory}"}, "reinforce {memory}"),
    "move": names({"memory_id": "{memory}", "tier": "working", **X}, "move {memory} --tier working"),
    "promote": names({"memory_id": "{memory}", "text": "It is kept", **X}, "promote {memory} 'It is kept'"),
    "supersede": names({"memory_id": "{memory}", "by": "{own}", **X}, "supersede {memory} --by {own}"),
    "merge": names({"memory_ids": ["{memory}", "{twin}"], **X}, "merge {memory} {twin}"),
    "forget_many": names({"memory_ids": ["{memory}"], **X}, elsewhere="answer"),
    "plan_forget_matching": reads({"text": QUESTION}, f"forget --matching '{QUESTION}'", right="read"),
    "forget_matching": reads(
        {"text": QUESTION, "digest": "{forget_digest}"}, elsewhere="conflict", sensitive="conflict"
    ),
    "propose": names({"changes": [Replace(id="{memory}", text="No one keeps it")], **X}),
    "remember_many": reads({"items": [{"text": "The crane is red"}]}),
    "add": reads({"messages": [{"role": "user", "content": "I like tea", "id": "m1"}], "session": "{memory}"}),
    "feedback": names(
        {"receipt_id": "{recalled}", "used": ["{memory}"]}, "feedback {recalled} --used {memory}", sensitive="answer"
    ),
    "put_blob": reads({"data": b"\x89PNG\r\n\x1a\n" + bytes(64), "media_type": "image/png"}),
    "read_blob": names({"ref": "{blob}"}, sensitive="not_found"),
    "pending": reads({"state": "all"}, "pending --state all", tool={"state": "all"}),
    "proposal": names({"proposal_id": "{proposal}"}, sensitive="answer"),
    "notices": reads(),
    "approve": names({"proposal_id": "{proposal}"}, "approve {proposal}", sensitive="shown"),
    "amend": names(
        {"proposal_id": "{proposal}", "text": "Keep the light on"},
        "amend {proposal} 'Keep the light on'",
        sensitive="shown",
    ),
    "create_branch": reads({"name": "try-y"}, "branch create try-y", right="propose"),
    "branches": reads({}, "branch list"),
    "branch_changes": reads({"name": "{branch}"}, "branch diff {branch}"),
    "merge_branch": reads({"name": "{branch}"}, "branch merge {branch}"),
    "discard_branch": reads({"name": "{own_branch}"}, "branch discard {own_branch}"),
    "reject": names({"proposal_id": "{proposal}", **X}, "reject {proposal} --reason x", sensitive="shown"),
    "reopen": names({"proposal_id": "{rejected}", **X}, "reopen {rejected} --reason x", sensitive="shown"),
    "approve_many": names({"items": ["{proposal}"]}, sensitive="shown"),
    "reject_many": names({"ids": ["{proposal}"], **X}, sensitive="shown"),
    "log": reads(command="log"),
    "show": names({"commit": "{commit}"}, "show {commit}", sensitive="answer"),
    "diff": reads({"earlier": 0}, "diff 0 {head}"),
    # An agent undoes only its own commits.
    "rollback": names({"commit": "{commit}"}, "rollback {commit}", right="owner"),
    "verify": reads(command="verify"),
    "rebuild": reads(),
    "reindex": reads(command="reindex"),
    "impact": names({"memory": "{memory}"}, "impact --memory {memory}"),
    "impact of an actor": reads({"actor": "agent:orion"}, "impact --actor agent:orion"),
    "plan_contain": names({"memory": "{memory}"}, "contain --memory {memory}"),
    "contain": reads({"digest": "{contain_digest}", "memory": "{memory}"}),
    "blame": names({"name": "{memory}"}, "blame {memory}"),
    "contradictions": reads(command="contradictions"),
    "bisect": reads(
        {"query": QUESTION, "contains": WORD},
        f"bisect '{QUESTION}' --contains {WORD}",
        elsewhere="invalid_input",
        sensitive="invalid_input",
    ),
    "run_tests": reads({"tests": [{"objective": QUESTION, "lacks": "zeppelin"}]}),
    "context_diff": names({"first": "{compiled}", "second": "{compiled}"}, sensitive="answer"),
    "export_subject": reads({"name": WORD}, f"export --subject {WORD}"),
    "plan_erase": reads({"ids": ["{memory}"]}, "erase {memory}"),
    "erase": reads({"ids": ["{memory}"], "digest": "{erase_digest}"}),
    "certificate": reads({"name": "{erased}"}),
    "plan_adopt": reads(),
    "adopt": reads({"digest": "{adopt_digest}"}),
    "train_reranker": reads(command="train"),
    "jobs": reads(command="jobs"),
    "run_jobs": reads({"name": "expire", "force": True}, "jobs run expire"),
    "merge_candidates": reads({"floor": 0.0}),
    "create_token": reads({"name": "mine", "rights": "owner"}, "token create --name mine"),
    "tokens": reads(command="token list"),
    "revoke_token": reads({"token_id": "{token_id}"}, "token revoke {token_id}"),
}


def operation_of(example: str) -> Operation:
    """Return the operation of an example."""
    return OPERATIONS[example.partition(" ")[0]]


def right_of(example: str) -> str:
    """Return the right that an example needs."""
    return EXAMPLES[example].right or operation_of(example).right


class Stage:
    """A tenant with one memory that the calls name, its proposals and receipts; the rest is made when a call names it.

    ``scope`` is where it is, and ``sensitivity`` is its own.
    """

    def __init__(self, home: Memory, tenant: str, *, scope: str = "/", sensitivity: str = "normal") -> None:
        self.owner = home.at(tenant=tenant)
        self.tenant, self.sensitivity = tenant, sensitivity
        self.writer = self.owner.as_actor(Actor.agent("orion", also=["sensitive", "share"])).at(scope=scope)
        fields = {"tier": "archival", "sensitivity": sensitivity}
        made = self.writer.remember(TEXT, key="keeper", metadata={"of": WORD}, blob=self.blob, **fields)
        self.memory, self.commit, self.receipt = made.records[0].id, made.commit.id, made.receipt.id

    def fill(self, value: Any) -> Any:
        """Return a value of an example with every name in braces replaced."""
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda found: str(getattr(self, found[1])), value)
        if isinstance(value, Mapping):
            return {key: self.fill(each) for key, each in value.items()}
        if isinstance(value, Replace):
            return Replace(id=self.fill(value.id), text=value.text)
        return [self.fill(each) for each in value] if isinstance(value, list) else value

    def token(self, **given: Any) -> str:
        """Return the secret of a new token for this tenant."""
        return self.owner.create_token("lyra", tenant=self.tenant, **given).secret

    def _remember(self, text: str, **fields: Any) -> Any:
        return self.writer.remember(text, **{"tier": "archival", "sensitivity": self.sensitivity} | fields)

    @cached_property
    def blob(self) -> str:
        return self.writer.put_blob(f"The keeper is {WORD}".encode(), media_type="text/plain").ref

    @property
    def head(self) -> str:
        return self.owner.head.partition(":")[0]

    @property
    def part(self) -> str:
        return self.memory[:30]

    @cached_property
    def own(self) -> str:
        """Another memory, which everyone sees."""
        return self.owner.remember("The bakery opens at six", tier="archival").records[0].id

    @cached_property
    def twin(self) -> str:
        return self._remember("The lighthouse of Sagres is tall").records[0].id

    @cached_property
    def derived(self) -> str:
        made = self.owner.remember("The light has a keeper", tier="archival", derived_from=[self.memory]).records[0].id
        if self.sensitivity == "sensitive":
            self.owner.revise(made, sensitivity="normal", reason="no names")
        return made

    @cached_property
    def retired(self) -> str:
        made = self._remember(f"The lens of Sagres is {WORD}").records[0].id
        self.owner.forget(made, reason=f"said {WORD}")
        return made

    @cached_property
    def compiled(self) -> str:
        return self.writer.context(QUESTION, include_sensitive=True).receipt.id

    @cached_property
    def recalled(self) -> str:
        return self.writer.recall(QUESTION, include_sensitive=True, receipt=True).receipt

    @cached_property
    def proposal(self) -> str:
        return self._remember(TEXT, tier="core", key="mission").item.id

    @cached_property
    def branch(self) -> str:
        """A branch of the owner, with a change of the target."""
        self.owner.create_branch("try-x")
        self.owner.branch("try-x").revise(self.memory, f"{TEXT} Dias")
        return "try-x"

    @cached_property
    def own_branch(self) -> str:
        """A branch of the caller."""
        self.owner.with_token(self.token()).create_branch("try-z")
        return "try-z"

    @cached_property
    def rejected(self) -> str:
        made = self._remember(TEXT, tier="core", key="workspace_state").item.id
        self.owner.reject(made, reason="not yet")
        return made

    @cached_property
    def erased(self) -> str:
        made = self._remember(f"The horn of Sagres is {WORD}").records[0].id
        self.owner.erase(self.owner.plan_erase([made]).digest, [made])
        return made

    @property
    def erase_digest(self) -> str:
        return self.owner.plan_erase([self.memory]).digest

    @property
    def contain_digest(self) -> str:
        return self.owner.plan_contain(memory=self.memory).digest

    @property
    def adopt_digest(self) -> str:
        return self.owner.plan_adopt().digest

    @property
    def forget_digest(self) -> str:
        return self.writer.plan_forget_matching(QUESTION).digest

    @cached_property
    def token_id(self) -> str:
        return self.owner.create_token("rita", tenant=self.tenant).token.id
