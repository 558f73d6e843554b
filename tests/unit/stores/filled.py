"""A store with a row in every table, made once and copied for each test."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from keepward.core.journal import CommitView
from keepward.core.memory import Status
from keepward.core.principals import Role, StoredToken
from keepward.core.proposal import Proposal
from keepward.core.query import Feedback, Filter
from keepward.errors import KeepwardError
from keepward.machine.trust_store import TrustStore
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.store import EventStore, open_store
from support.factories import RecordFactory

TENANT = "ada"
ANY = Filter(scopes=(), include_sensitive=True)
TABLES = [
    *("meta", "migrations", "commits", "events", "tenants", "records"),
    *("features", "marks", "links", "listed", "documents"),
]
#: Kinds of documents that there is one of at the least.
KINDS = ["receipts", "proposals", "artefacts", "usage", "feedback", "tokens"]

TOKEN = StoredToken(
    id="0190f3c2-7b1e-7c3a-9f00-1a2b3c4d5e6f",
    name="orion",
    hash=bytes(range(32)),
    rights=Role.AGENT,
    can=("propose", "read"),
    tenant=TENANT,
    scope="/agents/orion",
    created_by="operator:o",
    created_at=RecordFactory().now,
    expires_at=RecordFactory().now + timedelta(days=1),
    revoked_at=RecordFactory().now,
)


def fill(folder: Path) -> None:
    """Make a store and its anchor in a folder."""
    make = RecordFactory()
    first = make.record("tea is in the left cupboard", key="drink", tags=("a", "b"), aliases=("x1",))
    second = make.record("coffee is out", derived_from=(first.id,), subject="Bo", session="s", job="j", category="c")
    third = make.record("gone by now", expires_at=make.now + timedelta(days=1))
    with open_store(folder / "m.db", anchor=TrustStore(folder / "config")) as store:
        for stage in (
            make.stage(first, second),
            make.stage(make.revised(first, text="tea is in the right cupboard")),
            make.stage(third),
            make.stage(make.revised(third, status=Status.RETIRED)),
        ):
            with store.write() as writer:
                writer.append(TENANT, dataclasses.replace(stage, receipt=make.receipt(TENANT, stage.commit_id)))
                writer.put_receipt(make.receipt(TENANT, stage.details.receipt))
        with store.write() as writer:
            writer.put(make.waiting(TENANT, [make.record("held")]))
            writer.put(ReceiptArtefact(TENANT, "identity", "v1", "I am Orion."))
            writer.count_uses(TENANT, {first.id: (1, make.now), second.id: (1, make.now)})
            writer.put(make.waiting(TENANT, [make.record("held as well")]))
            writer.put(ReceiptArtefact(TENANT, "identity", "v2", "I am Vega."))
            for actor in ("agent:orion", "agent:vega"):
                writer.put_feedback(
                    Feedback(tenant=TENANT, at=make.now, receipt="r", actor=actor, used=(first.id,), ignored=())
                )
            writer.put(replace(TOKEN, id="0190f3c2-7b1e-7c3a-9f00-1a2b3c4d5e70", hash=bytes(range(1, 33))))
            writer.put(TOKEN)
            writer.put_receipt(replace(make.receipt(TENANT, "0", token=TOKEN.id, action="revoked"), kind="token"))


def copied(source: Path, target: Path) -> Path:
    """Copy a filled folder; return the path of the store in the copy."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for place in target.glob("config/stores/*/place"):
        # Else it would be taken for what it is, a copy, of which nothing has been noted yet.
        place.unlink()
    return target / "m.db"


def opened(path: Path) -> EventStore:
    """Open a filled store with its anchor."""
    return open_store(path, anchor=TrustStore(path.parent / "config"))


def answers(path: Path) -> dict[str, object]:
    """Return everything a store can be asked, one entry for each thing returned; what raises is left out."""
    found: dict[str, object] = {}
    now = RecordFactory().now

    def ask(name, question):
        with suppress(KeepwardError):
            found.update({f"{name} {key}": value for key, value in question()})

    try:
        store = opened(path)
    except KeepwardError:
        return found
    with store:
        names = [f"{n}" for n in ids_of(path)]
        ask("record", lambda: ((each.id, each) for each in store.records(TENANT, names).records))
        ask("then", lambda: ((each.id, each) for each in store.records(TENANT, names, as_of=1).records))
        ask("alias", lambda: (("x1", each) for each in store.records(TENANT, ["x1"]).records))
        ask("found", lambda: ((each.id, each) for each in store.find(TENANT, ANY, live_at=None, limit=None).records))
        ask("live", lambda: ((each.id, each) for each in store.find(TENANT, ANY, live_at=now, limit=None).records))
        ask("indexed", lambda: ((record.id, record) for record, _ in store.indexed(TENANT)))
        ask("profile", lambda: ((name, each.fields) for name, each in store.profiles(TENANT, after=0) if each))
        # Features that do not hold come back empty, and are computed anew.
        ask("features", lambda: ((record.id, found) for record, found in store.indexed(TENANT) if found.terms))
        views = lambda: store.commits(TENANT, before=None, limit=9)  # noqa: E731
        ask("commit", lambda: ((view.commit.seq, view) for view in views() if isinstance(view, CommitView)))
        ask("export", lambda: ((commit.seq, (commit, events)) for commit, events in store.events(TENANT)))
        for name in names:
            ask(f"history {name}", lambda name=name: enumerate(store.history(TENANT, name)))
        ask("queue", lambda: ((each.id, each) for each in store.documents(Proposal, TENANT).list()))
        ask("identity", lambda: (("v1", text) for text in [store.artefact(TENANT, "identity", "v1")] if text))
        ask("token", lambda: ((each.id, each) for each in store.documents(StoredToken, None).list()))
        ask("bearer", lambda: ((each.id, each) for each in [store.token_by_hash(TOKEN.hash)] if each))
        ask("feedback", lambda: ((each.n, each) for each in store.documents(Feedback, TENANT).list()))
        ask("usage", lambda: store.usage(TENANT, names).items())
        for receipt in RECEIPTS:
            ask("receipt", lambda receipt=receipt: ((receipt, got) for got in [store.receipt(TENANT, receipt)] if got))
    return found


RECEIPTS: list[str] = []


def ids_of(path: Path) -> list[str]:
    """Return the ids of all memories, read from a copy that nobody has touched."""
    with closing(sqlite3.connect(path.parent / "untouched.db")) as connection:
        return [row[0] for row in connection.execute("SELECT DISTINCT memory_id FROM events ORDER BY 1")]
