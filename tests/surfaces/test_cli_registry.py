"""The commands against the operations: the same arguments, the same defaults, and what is left out is named."""

from __future__ import annotations

import click

from keepward.api import OPERATIONS
from keepward.cli.command import COMMON_OPTIONS
from keepward.cli.main import command_tree
from keepward.cli.parameters import simple_command
from keepward.operations import REQUIRED

#: By command: its verb, arguments that it calls otherwise, and arguments that it does not offer.
COMMANDS: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "remember": (
        "remember",
        {},
        # The scope is an option of every command; the rest is for programs.
        {"scope", "content_type", "speaker", "job", "aliases", "vector"},
    ),
    "revise": ("revise", {}, set()),
    "move": ("move", {"target": "scope"}, set()),
    "promote": ("promote", {}, set()),
    "reinforce": ("reinforce", {}, set()),
    "forget": ("forget", {}, set()),
    "supersede": ("supersede", {}, set()),
    "archive": ("archive", {}, set()),
    "restore": ("restore", {}, set()),
    "recall": ("recall", {}, {"content_types"}),
    # The command `receipt` explains a context.
    "context": ("context", {}, {"preview"}),
    "replay": ("replay", {}, set()),
    "list": (
        "list_memories",
        {},
        # Windows and orders are for programs that scroll; the rest of what narrows them is told by facets.
        {"content_types", "job", "min_importance", "include_sensitive", "scopes", "sources", "trusts", "statuses"}
        | {"authors", "text", "below", "offset", "sort", "ascending"},
    ),
    "get": ("get", {}, set()),
    "history": ("history", {}, set()),
    "feedback": ("feedback", {}, set()),
    # It shows the newest, with a limit of its own.
    "pending": ("pending", {}, {"proposer", "gate", "tier", "offset", "limit"}),
    "approve": ("approve", {"ids": "proposal_id"}, set()),
    "amend": ("amend", {}, set()),
    "reject": ("reject", {"ids": "proposal_id"}, set()),
    "reopen": ("reopen", {"ids": "proposal_id"}, set()),
    "log": ("log", {"writer": "actor"}, set()),
    "show": ("show", {}, set()),
    "diff": ("diff", {}, {"offset", "limit"}),
    "receipt": ("receipt", {}, set()),
    "rollback": ("rollback", {}, set()),
    "impact": ("impact", {"writer": "actor"}, set()),
    "contain": ("contain", {"writer": "actor", "apply": "digest"}, set()),
    "blame": ("blame", {}, set()),
    "bisect": ("bisect", {}, {"purpose", "test"}),
    "context-diff": ("context_diff", {}, set()),
    "contradictions": ("contradictions", {}, {"content_types", "min_importance"}),
    "erase": ("plan_erase", {}, set()),
}
#: What commands take beside the arguments of their verb: other ways to give one, other verbs, the way it is shown.
OWN = {
    "remember": {"file", "media_type"},
    "revise": {"append"},
    "move": {"no_key"},
    "forget": {"matching", "yes"},
    "list": {"everything"},
    "pending": {"everything", "limit"},
    "diff": {"everything", "limit"},
    "approve": {"source"},
    "bisect": {"file", "only"},
    "erase": {"apply", "certificate", "html"},
}


def parameters(name: str) -> dict[str, click.Parameter]:
    command = command_tree().get_command(click.Context(command_tree()), name)
    assert command is not None
    renamed = COMMANDS[name][1]
    return {
        renamed.get(str(each.name), str(each.name)): each for each in command.params if each.name not in COMMON_OPTIONS
    }


def test_every_command_offers_the_arguments_of_its_verb() -> None:
    for name, (verb, _, without) in COMMANDS.items():
        wanted = {each.name for each in OPERATIONS[verb].arguments.values()}
        assert parameters(name).keys() - OWN.get(name, set()) == wanted - without, name


def test_every_command_has_the_defaults_of_its_verb() -> None:
    for name in COMMANDS:
        wanted = {each.name: each.default for each in OPERATIONS[COMMANDS[name][0]].arguments.values()}
        # What has to be given in Python may be given as nothing at a prompt; left out is left out in both.
        told = {
            key: (each.default, wanted[key])
            for key, each in parameters(name).items()
            if isinstance(each, click.Option)
            and key not in OWN.get(name, ())
            and wanted.get(key, REQUIRED) not in (REQUIRED, None, (), False)
        }
        assert {key: pair for key, pair in told.items() if pair[0] != pair[1] and repr(pair[1]) != "KEEP"} == {}, name


def test_a_plain_command_leaves_out_options_of_every_command() -> None:
    shown = {each.name: each.opts[0] for each in simple_command("list_memories").params}
    assert (shown["statuses"], shown["tags"], shown["authors"]) == ("--status", "--tag", "--author")
    assert "scopes" not in shown
