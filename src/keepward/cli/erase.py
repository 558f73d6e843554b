"""Commands that destroy, copy and accept: erase, backup, restore-backup, adopt. For the operator alone.

Invariants
(1) Whatever cannot be undone is shown first, with a digest, and carried out only when that digest is given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of memories, or their aliases.", show_default=False)
]
Apply = Annotated[
    str | None,
    typer.Option("--apply", metavar="DIGEST", help="The digest of the plan you saw: carry that out."),
]


def erase(
    call: Call,
    ids: Ids = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Every memory about this subject.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Every memory from this source, reference or foreign name.")
    ] = None,
    reason: Annotated[
        str, typer.Option(metavar="WORD", help="request, consent, retention, mistake, secret or other.")
    ] = "request",
    apply: Apply = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Print the certificate of an erasure that was made; one ID.")
    ] = False,
    lift: Annotated[
        bool, typer.Option("--lift", help="Allow what an erased memory said to be remembered again; one ID.")
    ] = False,
) -> Answer:
    """Destroy what memories said, everywhere it is kept, for good. First shows the plan, and changes nothing."""
    names = list(ids or ())
    if (certificate or lift) and (len(names) != 1 or apply or subject or source or (certificate and lift)):
        raise InvalidInput("--certificate and --lift take one ID, of an erased memory, and nothing else")
    with call.memory("decide") as memory:
        if lift:
            return _lifted(memory.lift_erasure(names[0]))
        if certificate:
            told = memory.certificate(names[0])
            return Answer(data=_answer(certificate=told), show=lambda screen: screen.exact(json.dumps(told, indent=2)))
        chosen: dict[str, Any] = {"subject": subject, "source": source, "reason": reason}
        if apply is None:
            plan = memory.plan_erase(names, **chosen)
            # A person decides about these, and has to see what they say.
            open_ones = {name: memory.get(name).text for name in (*plan.derived, *plan.quoting)}
            data = _answer(plan=_plan_data(plan))
            talk = (f"nothing was changed; erase it with the same arguments and --apply {plan.digest}",)
            return Answer(data=data, show=lambda screen: _show_plan(screen, data["plan"], open_ones), talk=talk)
        done = memory.erase(apply, names, **chosen)
        told = memory.certificate(done.commit.id)
    data = _answer(
        applied=True, plan=_plan_data(done.plan), commit=done.commit.id, receipt=done.receipt.id, certificate=told
    )
    return Answer(data=data, show=lambda screen: _show_erased(screen, data))


def _answer(**given: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {
        "applied": False,
        "plan": None,
        "commit": None,
        "receipt": None,
        "certificate": None,
        "lifted": [],
    }
    return {**blank, **given}


def _lifted(done: Any) -> Answer:
    data = _answer(applied=True, commit=done.commit.id, receipt=done.receipt.id, lifted=list(done.tombstones))

    def draw(screen: Screen) -> None:
        for name in done.tombstones:
            screen.labelled("lifted", f"tombstone {name}", style="bold green")
        for label in ("commit", "receipt"):
            screen.labelled(label, data[label], style="dim")

    return Answer(data=data, show=draw, talk=("what was erased stays erased; said anew, it is remembered again",))


def _plan_data(plan: Any) -> dict[str, Any]:
    return {
        "digest": plan.digest,
        "reason": plan.reason,
        "targets": [{"id": each.id, "versions": each.versions, "why": each.why} for each in plan.targets],
        "derived": list(plan.derived),
        "quoting": list(plan.quoting),
        "versions": len(plan.versions),
        "commit_details": len(plan.details),
        "receipts": len(plan.receipts),
        "proposals": len(plan.proposals),
        "documents": sum(1 for kind, _ in plan.artefacts if kind != "reranker"),
        "feedback": len(plan.feedback),
        "blobs": len(plan.blobs),
        "weights": sum(1 for kind, _ in plan.artefacts if kind == "reranker"),
    }


def _show_plan(screen: Screen, plan: dict[str, Any], open_ones: dict[str, str]) -> None:
    from keepward.present import counted

    screen.line(f"{counted(len(plan['targets']), 'memory', 'memories')} would be erased for good", "bold")
    for each in plan["targets"]:
        screen.labelled(each["why"], f"{each['id']}, {counted(each['versions'], 'version', 'versions')}")
    _show_counts(screen, plan)
    for word, names in (("derived", plan["derived"]), ("quoting", plan["quoting"])):
        for name in names:
            screen.labelled(word, f"{name} stays unless you name it too", style="yellow")
            screen.labelled("", open_ones[name][:200])
    screen.labelled("digest", plan["digest"], style="dim")


def _show_counts(screen: Screen, plan: dict[str, Any]) -> None:
    told = (
        f"{plan['versions']} versions, {plan['commit_details']} commit details, {plan['receipts']} receipts, "
        f"{plan['proposals']} proposals, {plan['documents']} kept documents, {plan['blobs']} blobs"
    )
    screen.labelled("with them", told)
    if plan["feedback"] or plan["weights"]:
        learned = f"{plan['feedback']} feedbacks lose the name, {plan['weights']} learned weights go"
        screen.labelled("unlearned", f"{learned}; recall is in the plain order until `keepward train`")


def _show_erased(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.present import counted

    cleaned = data["certificate"]["cleaned"]
    many = counted(len(data["plan"]["targets"]), "memory", "memories")
    screen.labelled("erased", f"{many}, for good", style="bold green")
    _show_counts(screen, data["plan"])
    screen.labelled("file", cleaned["file_and_log"])
    for each in cleaned["backups"]:
        screen.labelled("backup", f"{each['path']}: {each['state']}")
    for limit in data["certificate"]["limits"]:
        screen.labelled("limit", limit, style="dim")
    for label in ("commit", "receipt"):
        screen.labelled(label, data[label], style="dim")


def backup(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file that is not there yet.", show_default=False)],
) -> Answer:
    """Copy the live store to one file, consistent and readable by you alone. Later erasures reach it too."""
    with call.memory("decide") as memory:
        made = memory.backup(Path(path).expanduser())
    data = {
        "path": made.path,
        "bytes": made.bytes,
        "heads": made.heads,
        "listed": made.listed,
        "blobs": made.blobs,
        "faulty": list(made.faulty),
    }

    def draw(screen: Screen) -> None:
        screen.labelled("backup", f"{made.path} ({made.bytes} bytes)", style="bold green")
        _show_blobs(screen, made.path, made.blobs, made.faulty)
        screen.labelled("list", f"{made.path}.erased: what was erased, without content; keep it with the backup")
        for tenant, head in made.heads.items():
            screen.labelled("head", f"{tenant} {head}")

    return Answer(data=data, show=draw)


def _show_blobs(screen: Screen, path: str, blobs: int, faulty: tuple[str, ...]) -> None:
    if blobs:
        screen.labelled("blobs", f"{blobs} in {path}.blobs; they belong to it")
    for ref in faulty:
        screen.labelled("LOST", f"{ref[:23]}…: its file is gone or changed, and was not copied", style="red")


def restore_backup(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A backup.", show_default=False)],
    to: Annotated[
        str,
        typer.Option("--to", metavar="DB", help="A store that is not there yet.", show_default=False),
    ],
) -> Answer:
    """Bring a backup back. What was erased since is erased in it first; its older state is accepted by this."""
    from keepward.app import Memory
    from keepward.config import home

    made = Memory.restore_backup(
        Path(path).expanduser(),
        Path(to).expanduser(),
        actor=call.principal("decide"),
        config_dir=home(call.environ),
    )
    data = {
        "path": made.path,
        "store_id": made.store_id,
        "separate": made.separate,
        "heads": made.heads,
        "erased": made.erased,
        "blobs": made.blobs,
        "faulty": list(made.faulty),
        "revoked": made.revoked,
        "warning": made.warning,
    }

    def draw(screen: Screen) -> None:
        screen.labelled("restored", made.path, style="bold green")
        _show_blobs(screen, made.path, made.blobs, made.faulty)
        for tenant, head in made.heads.items():
            screen.labelled("head", f"{tenant} {head}")
        if made.erased:
            screen.labelled("erased", f"{made.erased} places that were erased after the backup was made")
        if made.revoked:
            screen.labelled("revoked", f"{made.revoked} tokens that were revoked after the backup was made")
        if made.warning:
            screen.labelled("careful", made.warning, style="bold yellow")
        if made.separate:
            screen.labelled("separate", "the store it was made of lives on; this is now a store of its own")

    return Answer(data=data, show=draw)


def _progress(said: str) -> None:
    sys.stderr.write(f"{said}\n")


def rescue(
    call: Call,
    broken: Annotated[str, typer.Argument(metavar="BROKEN", help="The damaged store.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A store that is not there yet.", show_default=False)],
) -> Answer:
    """Make a new store of all that still holds in a damaged one, which is left as it is; name what is lost."""
    from keepward.app import Memory
    from keepward.config import home

    made = Memory.rescue(
        Path(broken).expanduser(),
        Path(new).expanduser(),
        actor=call.principal("decide"),
        config_dir=home(call.environ),
        on_progress=None if call.quiet else _progress,
    )
    data = {
        "path": made.path,
        "store_id": made.store_id,
        "of": made.of,
        "whole": made.whole,
        "sealed": made.sealed,
        "tenants": [
            {
                "tenant": each.tenant,
                "head": each.head,
                "commits": each.commits,
                "lost_commits": each.lost_commits,
                "rescued": list(each.rescued),
                "outdated": list(each.outdated),
                "lost": list(each.lost),
            }
            for each in made.tenants
        ],
        "blobs": made.blobs,
        "lost_blobs": list(made.lost_blobs),
        "not_carried": made.not_carried,
    }

    def draw(screen: Screen) -> None:
        screen.labelled("rescued", made.path, style="bold green" if made.whole else "bold yellow")
        for each in made.tenants:
            lost = f", {each.lost_commits} lost" if each.lost_commits else ""
            screen.labelled("tenant", f"{each.tenant}: {each.commits} commits as they were{lost}, up to {each.head}")
            if each.rescued:
                screen.labelled("newer", f"{len(each.rescued)} memories by a commit of their own")
            for word, names, why in (
                ("outdated", each.outdated, "its newest version is lost; an older one came, archived"),
                ("lost", each.lost, "nothing of it holds"),
            ):
                for name in names:
                    screen.labelled(word, f"{name}: {why}", style="yellow")
        for name in made.lost_blobs:
            screen.labelled("blob lost", name, style="yellow")
        screen.labelled("not in it", made.not_carried, style="dim")
        if not made.sealed:
            screen.labelled("note", "this machine has no key of that store: hashes alone speak for what came over")

    return Answer(data=data, show=draw, code=0 if made.whole else 1)


def adopt(call: Call, apply: Apply = None) -> Answer:
    """Accept a store that came from elsewhere, or an older state, as it stands. First shows what that means."""
    from keepward import present

    with call.memory("decide") as memory:
        plan = memory.plan_adopt() if apply is None else memory.adopt(apply)
    data = {
        "applied": apply is not None,
        "digest": plan.digest,
        "foreign": plan.foreign,
        "heads": plan.heads,
        "live": plan.live,
        "waiting": plan.waiting,
        "erased": plan.erased,
        "core": [present.plain(each) for each in plan.core],
        "tokens": [present.plain(each) for each in plan.tokens],
        "faults": [present.plain(each) for each in plan.faults],
        "warning": plan.warning,
    }

    def draw(screen: Screen) -> None:
        for tenant, head in plan.heads.items():
            counts = f"{plan.live[tenant]} live memories, {plan.waiting[tenant]} waiting for review"
            screen.labelled("head", f"{tenant} {head}: {counts}")
        for block in plan.core:
            screen.labelled("core", f"{block.tenant} {block.scope} {block.key}: {block.text}", style="yellow")
        for token in plan.tokens:
            fate = "; ends with this" if plan.foreign else ""
            screen.labelled("token", f"{token.name} ({token.rights}, {token.tenant} {token.scope}){fate}")
        for fault in plan.faults:
            screen.labelled("FAULT", f"{fault.row}: {fault.detail} ({fault.check})", style="red")
        if data["applied"]:
            screen.labelled("accepted", "all seals were made anew", style="bold green")
        else:
            screen.labelled("careful", plan.warning, style="bold yellow")
            screen.labelled("digest", plan.digest, style="dim")

    talk = () if apply else (f"nothing was changed; accept it with `keepward adopt --apply {plan.digest}`",)
    return Answer(data=data, show=draw, talk=talk)
