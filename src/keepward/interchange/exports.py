"""Export the journal of a tenant as a vault file, and restore such a file; export notes and legacy lines.

Invariants
(1) A file under its final name is complete, see ``durable``.
(2) The export ends at the head that was newest when it began, even if more is written meanwhile.
(3) A journal with a wrong hash is not exported.
(4) An import is no restore. An owner restores an export after seeing its core blocks, with the digest of that plan. An
    import passes the gates as new text, for every actor.
(5) Notes and legacy lines contain the scope of the handle and those below. A part of a journal cannot be verified, so
    only a handle at the shared scope exports the journal.
(6) An export replaces an earlier export or an empty file, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

from keepward import durable
from keepward.core.commit import Commit, Event, Head, recompute_commit_hash
from keepward.core.copies import AdoptedBlock, ExportPlan, RestoredExport, SubjectExport
from keepward.core.json_form import canonical, to_json
from keepward.core.memory import Tier
from keepward.core.principals import SHARED_SCOPE
from keepward.core.serialization import digest
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Tampered, Unauthorised
from keepward.interchange import legacy, vault
from keepward.interchange.imports import detect
from keepward.interchange.parsing import ImportSource, open_source
from keepward.services.writing.blobs import blob_ref_of
from keepward.storage.file import id_file

if TYPE_CHECKING:
    from keepward.core.memory import Record
    from keepward.memory import Memory


#: Maximum bytes that are read of a first line; a line of an export is shorter.
_MAX_LINE = 1 << 24


def write_vault(mem: Memory, target: str | Path | TextIO, *, blobs: bool = True) -> int:
    """Write every version of every memory of the tenant, oldest first; return the number of lines.

    A path is replaced in one step and only its owner can read it; a stream stays open. An empty tenant gives no lines.
    With ``blobs``, the content that lines refer to goes to a folder next to the path, see ``vault``; a stream contains
    only references. The review queue, receipts, feedback, learned weights and counts of use are not exported.

    Raises:
        Unauthorised: the handle is not the owner's.
        Tampered: a commit does not match its hash.
        InvalidInput: the handle is not at the shared scope, or the path is a store or a file that is no export.
        StoreUnavailable: the file cannot be written; the earlier file is unchanged.
    """
    _require_owner(mem)
    if mem.scope != SHARED_SCOPE:
        raise InvalidInput(
            f"this export contains every scope, not only {mem.scope}: export from the scope /, or write "
            f"the memories of {mem.scope} with `keepward export FOLDER --markdown --scope {mem.scope}`"
        )
    refs = set[str]()
    # Blobs first, so that a file under its final name refers to existing blobs only.
    before = (lambda path: vault.write_blobs(mem, path, refs)) if blobs else None
    return _write_lines(target, _lines(mem, refs), before)


def write_legacy(mem: Memory, target: str | Path | TextIO) -> tuple[int, list[str]]:
    """Write the live memories as lines of a legacy vault; return their number, and notes on skipped memories.

    Raises:
        InvalidInput: the file exists: it may be the legacy vault itself, with its history.
        Unauthorised, StoreUnavailable: as ``write_vault``.
    """
    _require_owner(mem)
    if isinstance(target, str | Path) and Path(target).exists():
        raise InvalidInput(f"{Path(target).name} is there already; name a new file")
    skipped = Counter[str]()
    found = mem.list_memories(within=mem.scope, limit=None, sort="created", ascending=True)
    count = _write_lines(target, legacy.lines_of(list(found), skipped))
    return count, [f"left out: {number} {what}" for what, number in sorted(skipped.items())]


def write_subject(mem: Memory, name: str, target: str | Path | TextIO) -> SubjectExport:
    """Write everything about one person, agent or project as one JSON object, and return it.

    Raises:
        InvalidInput: the file exists, or the handle is not at the shared scope.
        Unauthorised, StoreUnavailable: as ``write_vault``.
    """
    if isinstance(target, str | Path) and Path(target).exists():
        raise InvalidInput(f"{Path(target).name} is there already; name a new file")
    found = mem.export_subject(name)
    _write_lines(target, iter([json.dumps(to_json(found), ensure_ascii=False)]))
    return found


def _require_owner(mem: Memory) -> None:
    if not mem.actor.is_owner:
        raise Unauthorised("an export takes the owner: open the store as its owner")


def _write_lines(
    target: str | Path | TextIO, lines: Iterator[str], before: Callable[[Path], None] | None = None
) -> int:
    """Write lines to a stream or to a file; ``before`` is called before the file gets its name."""
    count = 0
    if not isinstance(target, str | Path):
        plain = (getattr(target, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
        for line in lines:
            # For a stream with another encoding, letters are escaped.
            target.write((json.dumps(json.loads(line), separators=(",", ":")) if plain else line) + "\n")
            count += 1
        return count
    path = Path(target)
    _check_replaceable(path)
    try:
        with durable.atomic_replace(path) as out:
            for line in lines:
                out.write(f"{line}\n".encode())
                count += 1
            if before is not None:
                before(path)
    except OSError as exc:
        raise StoreUnavailable(f"cannot write {path}: {exc.strerror or 'output error'}") from exc
    return count


def _check_replaceable(path: Path) -> None:
    """Raise ``InvalidInput`` if an export may not replace the file at a path; see (6)."""
    if id_file(path).exists():
        raise InvalidInput(f"{path.name} is a store; name another file for the export")
    if not path.exists():
        return
    if not path.is_file():
        raise InvalidInput(f"{path.name} is not a file; name one for the export, or leave it out for stdout")
    try:
        with path.open("rb") as there:
            first = there.readline(_MAX_LINE)
        known = not first.strip() or vault.detect(json.loads(first))
    except (OSError, ValueError, RecursionError):
        known = False
    if not known:
        raise InvalidInput(f"{path.name} is there already and is no export; move it away, or name another file")


def _lines(mem: Memory, refs: set[str]) -> Iterator[str]:
    newest = mem.log(limit=1)
    if newest.damaged:
        raise Tampered(newest.notes[0])
    if not newest:
        return
    head = Head(seq=newest[0].commit.seq, hash=newest[0].commit.hash)
    export = vault.export_fields(mem.tenant, head)
    for commit, events in mem.journal():
        if recompute_commit_hash(commit, events) != commit.hash or not events:
            raise Tampered(f"commit {commit.seq} does not match its hash; run `keepward verify`")
        for event in events:
            first = commit if event.n == 0 else None
            ref = None if event.payload is None else blob_ref_of(event.payload)
            if ref is not None:
                refs.add(ref)
            heads = export if first and commit.seq == 1 else None
            fields = vault.event_fields(event, first, len(events), heads)
            yield vault.event_line(fields)
        if commit.seq == head.seq:
            if commit.hash != head.hash:
                break
            return
    raise Tampered("the journal does not end in its head; run `keepward verify`")


def plan_restore_export(mem: Memory, target: str | Path | IO[str] | IO[bytes]) -> ExportPlan:
    """Return what the restore of an export would write, with a digest; change nothing.

    Raises:
        Unauthorised: the handle is not an owner's.
        InvalidInput: it is no export, damaged or truncated, contains a secret, or belongs to another tenant.
        Conflict: the tenant is not empty, or memory is switched off.
    """
    _require_restorer(mem)
    with open_source(target) as source:
        return _plan_restore(mem, source)[0]


def restore_export(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    digest: str,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> RestoredExport:
    """Write the journal of an export unchanged into an empty tenant, given the digest of its plan.

    Ids, versions, core blocks and the head are those of the file. If the handle has the tenant ``default``, the target
    is the tenant that the file names.

    Raises:
        Conflict: the file is not the planned one; else as ``plan_restore_export``.
        Tampered: a hash of the journal is wrong.
    """
    _require_restorer(mem)
    with open_source(target) as source:
        plan, handle, found = _plan_restore(mem, source)
        if plan.digest != digest:
            raise Conflict("the export has changed since the plan: plan the restore again")
        # Blobs first, so that stored records refer to existing blobs only.
        errors = {ref: why for ref in sorted(found.blobs) if (why := vault.blob_error(handle, source.path, ref))}
        head = handle.restore_journal(_report_progress(vault.commits_of(source, found.head), found.lines, on_progress))
    if head != found.head:
        raise Tampered("the restored journal does not end in the head of the file; run `keepward verify`")
    notes = [f"the complete history was restored; the head is {head.name}"]
    if len(found.blobs) > len(errors):
        notes.append(f"{len(found.blobs) - len(errors)} blobs came with it")
    if errors:
        ref, why = min(errors.items())
        notes.append(
            f"{len(errors)} blobs that it refers to could not be stored, the first {ref[:19]}…: {why}; "
            "`verify` reports them until they are added again"
        )
    if handle is not mem:
        notes.append(f"the file is of tenant {found.tenant} and was restored there")
    return RestoredExport(tenant=found.tenant, head=head.name, versions=found.lines, notes=tuple(notes))


def _require_restorer(mem: Memory) -> None:
    if not mem.actor.is_owner:
        raise Unauthorised("restoring an export takes the owner; anyone may import it, through the gates")


def _plan_restore(mem: Memory, source: ImportSource) -> tuple[ExportPlan, Memory, vault.VaultSummary]:
    if (detected := detect(source)) != "vault":
        raise InvalidInput(f"the file is no export of a journal, its format is {detected}: import it instead")
    found = vault.verify_file(source)
    if not (mem.policy.enabled and mem.policy.capture):
        raise Conflict("memory is switched off by policy; switch it on first")
    if mem.tenant not in {found.tenant, "default"}:
        raise InvalidInput(f"the export is of tenant {found.tenant}; name that one, or import the file")
    handle = mem if mem.tenant == found.tenant else mem.at(tenant=found.tenant)
    newest_commit = handle.log(limit=1)
    if newest_commit or newest_commit.damaged:
        raise Conflict("the tenant is not empty; name another store, or import the file through the gates")
    now = mem.now
    newest = [record for _, record in vault.records(source, frozenset(found.newest.values())) if record.is_live(now)]
    blocks = [
        AdoptedBlock(tenant=found.tenant, scope=each.scope, key=each.key, text=each.text)
        for each in newest
        if each.tier is Tier.CORE
    ]
    named = digest("restore-export", canonical([found.tenant, found.head.seq, found.head.hash.hex()])).hex()
    plan = ExportPlan(
        digest=named,
        tenant=found.tenant,
        head=found.head.name,
        versions=found.lines,
        live=len(newest),
        core=tuple(sorted(blocks, key=lambda each: (each.scope, each.key or "", each.text))),
        blobs=len(found.blobs),
    )
    return plan, handle, found


def _report_progress(
    commits: Iterator[tuple[Commit, list[Event]]], total: int, report: Callable[[int, int], None] | None
) -> Iterator[tuple[Commit, list[Event]]]:
    done = 0
    for commit, events in commits:
        yield commit, events
        done += len(events)
        if report is not None:
            report(done, total)


# --- notes, for Obsidian or any editor

_UNSAFE = re.compile(r"[^\w .,-]+")


def write_notes(mem: Memory, folder: str | Path) -> int:
    """Write every live memory as a note into a new or empty folder; return the number."""
    _require_owner(mem)
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise InvalidInput(f"{root.name} is not an empty folder: name one that is new")
    found = mem.list_memories(within=mem.scope, limit=None, sort="created", ascending=True)
    names = {each.id: _name_of(each) for each in found}
    try:
        for each in found:
            path = root.joinpath(*names[each.id].split("/"))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with durable.new_file(path.with_name(path.name + ".md")) as out:
                out.write(_note(each, [names[name] for name in each.derived_from if name in names]).encode())
    except OSError as exc:
        raise StoreUnavailable(f"cannot write {root}: {exc.strerror or 'output error'}") from exc
    return len(found)


def _name_of(record: Record) -> str:
    """Return the path of a note without its ending: the folders of its scope, its first words, the end of its id."""
    words = " ".join(_UNSAFE.sub(" ", record.key or record.text[:120]).split())[:60].strip(" .")
    return "/".join((*record.scope.strip("/").split("/"), f"{words or 'note'} {record.id[-8:]}")).lstrip("/")


def _note(record: Record, links: list[str]) -> str:
    values = record.to_dict()
    text = values.pop("text")
    given = {
        "keepward": values.pop("id"),
        **{name: value for name, value in values.items() if value not in (None, [], {})},
    }
    if links:
        given["links"] = [f"[[{each}]]" for each in links]
    rows = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    return "\n".join(("---", *rows, "---", "", f"{text}\n"))
