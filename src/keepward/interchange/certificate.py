"""Write the certificate of an erasure as a page to read, print and sign.

The page is one HTML file without scripts, images or links, so that it reads the same in ten years. It says nothing that
the certificate in JSON does not say.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from keepward.core.value import pluralize

#: Reasons of an erasure, as a sentence goes on after "because".
REASONS: Mapping[str, str] = {
    "request": "a person asked for it",
    "consent": "consent was withdrawn",
    "retention": "its retention had ended",
    "mistake": "it should never have been stored",
    "secret": "it contained a secret",
    "other": "of another reason",
}
#: What was destroyed, by the names of the certificate.
_DESTROYED: Mapping[str, str] = {
    "versions": "Versions of texts in the journal",
    "commit_details": "Notes of commits that repeated a text",
    "words_vectors_and_marks_of": "Memories whose features left the search index",
    "receipts": "Receipts rewritten without it",
    "proposals": "Proposals rewritten without it",
    "kept_documents": "Stored texts of contexts",
    "feedback": "Feedback without its name",
    "learned_weights": "Learned weights that were dropped",
    "blobs": "Files",
}
_STYLE = """
body { font: 15px/1.5 Georgia, "Times New Roman", serif; color: #111; background: #fff; }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; font-weight: normal; }
tr { border-bottom: 1px solid #ccc; }
td:last-child { overflow-wrap: anywhere; }
ul.ids { columns: 2; padding-left: 1.2rem; font: 12px/1.6 ui-monospace, Consolas, monospace; overflow-wrap: anywhere; }
.sign { display: flex; gap: 2rem; margin-top: 3rem; }
.sign span { flex: 1; border-top: 1px solid #111; padding-top: .3rem; font-size: .85rem; }
@page { margin: 20mm; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } tr, li { break-inside: avoid; } }
"""


def certificate_page(certificate: Mapping[str, Any]) -> str:
    """Return the certificate that ``certificate()`` returns as an HTML page."""
    at = datetime.fromisoformat(certificate["at"]).astimezone(UTC)
    cleaned, commit = certificate["cleaned"], certificate["commit"]
    memories = certificate["memories"]
    moment = f"{at.day} {at:%B %Y} at {at:%H:%M:%S} UTC"
    reason = REASONS.get(certificate["reason"], f"of “{certificate['reason']}”")
    destroyed = [(name, cleaned.get(key)) for key, name in _DESTROYED.items()]
    again = (
        "The same text is refused if it is stored again."
        if certificate["recognised_again"]
        else "This machine does not recognise the text if it is stored again."
    )
    parts = [
        "<h1>Certificate of erasure</h1>",
        _paragraph(
            f"On {moment}, {certificate['by']} erased {pluralize(len(memories), 'memory', 'memories')} from the store"
            f" that is named below, because {reason}. Every text of it was destroyed. This store cannot restore it, and"
            " this certificate contains none of it."
        ),
        "<h2>What was destroyed</h2>",
        _table((name, f"{count:,}" if count is not None else "not counted") for name, count in destroyed),
        "<h2>Files and backups</h2>",
        _table([("File of the store, and its log", cleaned["file_and_log"])]),
        _table([(f"Backup {each['path']}", each["state"]) for each in cleaned["backups"]])
        if cleaned["backups"]
        else _paragraph("No backup of the store is listed."),
        _paragraph(again),
        "<h2>Where it was</h2>",
        _table([("Store", certificate["store"]), ("Tenant, as SHA-256", certificate["tenant"])]),
        "<h2>Which memories</h2>",
        _paragraph("Their ids stay, so that no one can deny that they existed:"),
        _list(memories, style="ids"),
        "<h2>What proves it</h2>",
        _paragraph(
            "The erasure is a commit in the journal of the store. Its hash covers the commit before it, so that no one"
            " can change or remove it unnoticed. The certificate in JSON has all that the hash covers. A copy of the"
            " journal and a program for SHA-256 are enough to check it."
        ),
        _table(
            [
                ("Commit", f"number {commit['seq']}, id {commit['id']}"),
                ("Its SHA-256", commit["hash"]),
                ("That of the commit before", commit["prev"]),
                ("Format of the certificate", certificate["certificate"]),
            ]
        ),
        "<h2>What this certificate cannot promise</h2>",
        _list(certificate["limits"]),
        '<div class="sign"><span>Place and date</span><span>Name and signature</span></div>',
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Certificate of erasure, {at:%Y-%m-%d}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>' for name, value in rows]
    return f"<table>{''.join(lines)}</table>"


def _list(items: Iterable[str], *, style: str = "") -> str:
    lines = [f"<li>{html.escape(item)}</li>" for item in items]
    return f'<ul class="{style}">{"".join(lines)}</ul>'
