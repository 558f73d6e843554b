"""Services return what their ``Reader`` returns: it alone compares scopes and rights with what it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import keepward

SOURCE = Path(keepward.__file__).parent
MODULES = [SOURCE / "status.py"]
MODULES += [path for folder in ("services", "jobs") for path in sorted((SOURCE / folder).rglob("*.py"))]
#: What reads contents of memories, commits, proposals or receipts from the store.
READS = {
    "ids_with_prefix", "commit", "commits", "contents", "events", "find", "histories", "history", "duplicate_candidates", "receipt",
    "receipts", "receipts_before", "records", "steps", "superseded", "versions", "naming", "replaced_texts", "details_at",
    "receipt_texts", "receipts_of_commits", "erasures", "readable_commit", "readable_histories",
}  # fmt: skip
#: Modules that read contents whatever the handle sees, and why nothing of it is told to who may not read it.
WITHOUT_READER = {
    # They judge, build and store changes.
    "staged": {"duplicate_candidates", "records", "steps", "superseded"},
    "decisions": {"Proposal", "records"},
    "rollback": {"commit", "histories", "history", "records", "steps"},
    "following": {"records", "steps"},
    "feedback": {"records"},
    "access": {"commit", "find", "readable_commit", "steps"},
    "write": {"Proposal", "records"},
    "ingest": {"Proposal"},
    "branch_state": {"find", "records"},
    "branches": {"Proposal", "histories", "records", "steps"},
    # They work on the whole tenant, for its owner or for upkeep.
    "registry": {"find"},
    "freshness": {"records"},
    "erasure": {
        "Proposal",
        "details_at",
        "events",
        "find",
        "naming",
        "receipt_texts",
        "receipts_of_commits",
        "records",
        "replaced_texts",
        "versions",
    },
    "subject_export": {"events"},
    "planners": {"Proposal", "find", "records", "steps"},
    "provenance": {"Proposal", "commit", "events", "history"},
    "runner": {"Proposal"},
    "erasure_references": {"commit", "erasures", "history"},
    # They find and rank, count tokens and bytes, or find the instant of a commit.
    "blobs": {"Proposal"},
    "index_cache": {"records"},
    "reindex": {"find"},
    "recall": {"readable_commit", "records"},
    "learned_order": {"events", "receipt", "records"},
}


def _stored_contents(path: Path) -> Iterator[str]:
    """Yield what a module reads from a store, by the name of the method or of the kind of document."""
    # A planner calls the store its reader.
    stores = {"store", "writer", "reader"} if path.stem == "planners" else {"store", "writer"}
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if ast.unparse(node.func.value).split(".")[-1] in stores:
            if node.func.attr in READS:
                yield node.func.attr
            if node.func.attr == "documents" and ast.unparse(node.args[0]) == "Proposal":
                yield "Proposal"


def test_services_read_contents_through_the_reader() -> None:
    found = {path.stem: {*_stored_contents(path)} for path in MODULES if path.stem != "visible"}
    assert {name: reads for name, reads in found.items() if reads} == WITHOUT_READER


def test_the_reader_alone_compares_scopes_and_rights() -> None:
    compared = re.compile(r"visible_from|has_right\(.sensitive|oversees\(|withholds\(|veiled\(|_hides|_without_words")
    found = {path.stem: compared.findall(path.read_text()) for path in MODULES if path.stem != "visible"}
    assert {name: words for name, words in found.items() if words} == {}
