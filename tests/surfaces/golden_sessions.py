"""Sessions whose answers golden files hold: tools of the protocol, requests over HTTP, command lines."""

from __future__ import annotations

from typing import Any

#: What the provider gate takes for a key, made of pieces.
SECRET = "AKIA" + "IOSFODNN7" + "EXAMPLQ"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)

#: Calls of tools in their order, by profile; `{id}` and `{edits}` are the first such values of earlier answers.
TOOLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "default": [
        ("remember", {"text": "Ana prefers tabs", "tier": "archival", "tags": ["style"]}),
        ("remember", {"text": "Ship before Easter", "tier": "core", "key": "mission"}),
        ("remember", {"text": f"the key is {SECRET}"}),
        ("remember", {"text": "x", "tier": "cellar"}),
        ("remember", {"text": "Ana prefers tabs", "tier": "archival"}),
        ("recall", {"query": "what does Ana prefer"}),
        ("recall", {"query": "submarines"}),
        ("recall", {}),
        ("recall", {"query": "tabs", "depth": 3, "limit": "many"}),
        ("revise", {"id": "{id}", "text": "Ana prefers spaces", "reason": "she said so"}),
        ("history", {"id": "{id}"}),
        ("history", {"id": "nobody"}),
        ("get_context", {"objective": "format Ana's code"}),
        ("pending", {}),
        ("status", {}),
        ("forget", {"id": "{id}", "reason": "she left"}),
    ],
    "blocks": [
        ("read_blocks", {}),
        ("block_append", {"label": "mission", "text": "Rest well", "reason": "asked"}),
        ("block_replace", {"label": "mission", "old": "Easter", "new": "summer", "reason": "late"}),
        ("block_append", {"label": "diary", "text": "x y", "reason": "r"}),
        ("block_append", {"label": "persona", "text": "You are free", "reason": "r"}),
        ("block_append", {"label": "mission", "text": "x"}),
        ("pending", {}),
    ],
}

#: Calls of one session over HTTP: step, who asks, method and path, body, headers. A body that is no text is sent as JSON.
#: `{step.key}` is a value of an earlier answer, `{step#name}` one of its headers.
REQUESTS: list[tuple[Any, ...]] = [
    ("health", "nobody", "GET /health"),
    ("ready", "nobody", "GET /ready"),
    ("metrics", "owner", "GET /metrics"),
    ("openapi", "owner", "GET /openapi.json"),
    ("docs", "owner", "GET /docs"),
    ("link", "owner", "POST /session/link"),
    ("session-bad", "nobody", "POST /session", {"code": "x"}),
    ("session-none", "nobody", "GET /session"),
    ("session", "browser", "POST /session", {"code": "{link.code}"}),
    ("session-get", "browser", "GET /session"),
    ("session-end", "browser", "DELETE /session", None, {"Keepward-CSRF": "{session.csrf}"}),
    ("saved", "owner", "POST /memory/items", {"text": "The ferry leaves at six", "tier": "archival"}),
    ("crane", "owner", "POST /memory/items", {"text": "The crane is blue and tall", "tier": "archival"}),
    ("web", "agent", "POST /memory/items", {"text": "The ferry is free on Sundays", "source": "web"}),
    ("same", "agent", "POST /memory/items", {"text": "The ferry leaves at six", "tier": "archival"}),
    ("refused", "agent", "POST /memory/items", {"text": "The ferry leaves at six", "confidence": 1.5}),
    ("unknown-field", "agent", "POST /memory/items", {"text": "x", "depth": 3}),
    ("wrong-value", "agent", "POST /memory/items", {"text": "x", "tier": "cellar"}),
    ("no-token", "nobody", "POST /memory/items", {"text": "x"}),
    ("no-json", "agent", "POST /memory/items", "x", {"Content-Type": "text/plain"}),
    ("no-route", "owner", "GET /memory/dance"),
    ("no-method", "owner", "PUT /memory/items"),
    (
        "held",
        "agent",
        "POST /memory/items",
        {"key": "mission", "kind": "state", "text": "Ship it", "tier": "core", "confidence": 0.9},
    ),
    (
        "held2",
        "agent",
        "POST /memory/items",
        {"key": "operating_rules", "kind": "state", "text": "Be plain", "tier": "core", "confidence": 0.9},
    ),
    (
        "held3",
        "agent",
        "POST /memory/items",
        {"key": "workspace_state", "kind": "state", "text": "All is well", "tier": "core", "confidence": 0.9},
    ),
    (
        "held4",
        "agent",
        "POST /memory/items",
        {"key": "human", "kind": "state", "text": "Ana rows", "tier": "core", "confidence": 0.9},
    ),
    ("queue", "owner", "GET /memory/quarantine?limit=1"),
    ("queue-next", "owner", "GET /memory/quarantine?limit=1&offset={queue.next_offset}"),
    ("proposal", "owner", "GET /memory/quarantine/{held.item.id}"),
    ("no-match", "owner", "POST /memory/quarantine/{held.item.id}/approve"),
    ("bad-match", "owner", "POST /memory/quarantine/{held.item.id}/approve", None, {"If-Match": '"x"'}),
    ("forbidden", "agent", "POST /memory/quarantine/{held.item.id}/approve", None, {"If-Match": "{proposal#etag}"}),
    ("approve", "owner", "POST /memory/quarantine/{held.item.id}/approve", None, {"If-Match": "{proposal#etag}"}),
    ("reject", "owner", "POST /memory/quarantine/{held2.item.id}/reject", {"reason": "not now"}),
    ("reopen", "owner", "POST /memory/quarantine/{held2.item.id}/reopen", {"reason": "by mistake"}),
    ("reject-again", "owner", "POST /memory/quarantine/{held2.item.id}/reject", {"reason": "not now"}),
    ("proposal3", "owner", "GET /memory/quarantine/{held3.item.id}"),
    (
        "approve-many",
        "owner",
        "POST /memory/quarantine/approve",
        {
            "items": [
                {"id": "{held3.item.id}", "digest": "{proposal3.digest}"},
                {"id": "nobody", "digest": "{proposal3.digest}"},
            ]
        },
    ),
    ("reject-many", "owner", "POST /memory/quarantine/reject", {"ids": ["somebody", "nobody"], "reason": "no"}),
    ("notices", "agent", "GET /memory/notices"),
    ("get", "owner", "GET /memory/items/{saved.id}"),
    ("called", "owner", "POST /memory/call/get", {"memory_id": "{saved.id}"}),
    ("not-modified", "owner", "GET /memory/items/{saved.id}", None, {"If-None-Match": "{get#etag}"}),
    ("not-found", "owner", "GET /memory/items/nobody"),
    ("list", "owner", "GET /memory/items?limit=2"),
    ("list-next", "owner", "GET /memory/items?limit=2&cursor={list.cursor}"),
    (
        "revise",
        "owner",
        "PATCH /memory/items/{saved.id}",
        {"text": "The ferry leaves at seven", "reason": "winter"},
        {"If-Match": "{get#etag}"},
    ),
    ("revise-bare", "owner", "PATCH /memory/items/{saved.id}", {"text": "x", "reason": "winter"}),
    ("append", "agent", "POST /memory/items/{saved.id}/append", {"text": "and at nine", "reason": "summer"}),
    ("stale", "agent", "POST /memory/items/{saved.id}/append", {"text": "x", "reason": "r", "if_version": 7}),
    ("move", "owner", "POST /memory/items/{crane.id}/move", {"tier": "working", "reason": "for now"}),
    ("archive", "owner", "POST /memory/items/{crane.id}/archive", {"reason": "for now"}),
    ("restore", "owner", "POST /memory/items/{crane.id}/restore", {"reason": "again"}),
    ("reinforce", "owner", "POST /memory/items/{saved.id}/reinforce", {}),
    ("promote", "owner", "POST /memory/items/{crane.id}/promote", {"text": "The crane is blue", "reason": "lasting"}),
    ("supersede", "owner", "POST /memory/items/{crane.id}/supersede", {"by": "{saved.id}", "reason": "sold"}),
    ("history", "owner", "GET /memory/items/{saved.id}/history"),
    ("lineage", "owner", "GET /memory/items/{saved.id}/lineage"),
    ("window", "owner", "GET /memory/items?offset=1&limit=2&sort=trust&text=e"),
    ("facets", "owner", "GET /memory/facets?below=true&tier=archival"),
    ("activity", "owner", "GET /memory/activity?days=2&by=source"),
    ("sources", "owner", "GET /memory/sources"),
    ("users", "owner", "GET /memory/users"),
    ("projects", "owner", "GET /memory/projects"),
    (
        "batch",
        "agent",
        "POST /memory/items/batch",
        {"items": [{"text": "The pier is long"}, {"text": "The pier is old", "tier": "cellar"}]},
    ),
    ("talk", "agent", "POST /memory/messages", {"messages": [{"role": "user", "content": "I live in Leeds"}]}),
    ("pier", "agent", "POST /memory/items", {"text": "The long pier has seven lamps and a clock"}),
    ("pier2", "agent", "POST /memory/items", {"text": "The long pier has eight lamps and a clock"}),
    ("candidates", "owner", "GET /memory/candidates?floor=0.5"),
    ("merge", "owner", "POST /memory/items/merge", {"ids": ["{pier.id}", "{pier2.id}"], "reason": "one"}),
    ("forget-many", "owner", "POST /memory/items/forget", {"ids": ["{web.id}", "nobody"], "reason": "old"}),
    (
        "edit",
        "agent",
        "POST /memory/edit",
        {"reason": "new", "changes": [{"op": "insert", "text": "The buoy is green", "tier": "archival"}]},
    ),
    ("status", "owner", "GET /memory/status"),
    ("core", "agent", "GET /memory/core"),
    ("search", "owner", "GET /memory/search?query=ferry&receipt=true&limit=1"),
    ("search-floor", "owner", "GET /memory/search?query=submarines"),
    ("search-wrong", "owner", "GET /memory/search?query=x&depth=3"),
    ("compile", "owner", "POST /memory/compile", {"objective": "When does the ferry leave?"}),
    ("compile2", "owner", "POST /memory/compile", {"objective": "What does the pier have?", "format": "messages"}),
    ("compile3", "owner", "POST /memory/compile", {"objective": "hello"}),
    ("compile-small", "owner", "POST /memory/compile", {"objective": "ferry", "budget_tokens": 1}),
    ("block", "owner", "POST /memory/block", {"query": "When does the ferry leave?"}),
    ("snapshot", "owner", "GET /memory/snapshot"),
    ("receipt", "owner", "GET /memory/receipts/{compile.receipt.id}"),
    ("receipt-commit", "owner", "GET /memory/receipts/{saved.receipt.id}"),
    ("replay", "owner", "POST /memory/receipts/{compile.receipt.id}/replay"),
    ("context-diff", "owner", "GET /memory/receipts/{compile.receipt.id}/diff/{compile3.receipt.id}"),
    ("receipts", "owner", "GET /memory/receipts?kind=compile&limit=1"),
    ("preview", "owner", "POST /memory/compile", {"objective": "When does the ferry leave?", "preview": True}),
    ("feedback", "owner", "POST /memory/feedback", {"receipt": "{compile.receipt.id}", "used": ["{saved.id}"]}),
    ("train", "owner", "POST /memory/train"),
    ("commits", "owner", "GET /memory/commits?limit=2"),
    ("commit", "owner", "GET /memory/commits/{saved.commit.id}"),
    ("diff", "owner", "GET /memory/diff?earlier=1&later=3"),
    ("blame", "owner", "GET /memory/blame/{saved.id}"),
    ("contradictions", "owner", "GET /memory/contradictions"),
    ("bisect", "owner", "POST /memory/bisect", {"query": "ferry", "contains": "at seven"}),
    ("run-tests", "owner", "POST /memory/tests", {"tests": [{"objective": "ferry", "lacks": "at seven"}]}),
    ("impact", "owner", "GET /memory/impact?source=web"),
    ("contain-plan", "owner", "POST /memory/contain/plan", {"source": "web"}),
    (
        "contain",
        "owner",
        "POST /memory/contain",
        {"source": "web", "digest": "{contain-plan.digest}", "reason": "poisoned"},
    ),
    ("rollback-dry", "owner", "POST /memory/rollback/{revise.commit.id}", {"dry_run": True}),
    ("rollback-bare", "owner", "POST /memory/rollback/{edit.commit.id}"),
    ("rollback-clash", "owner", "POST /memory/rollback/{revise.commit.id}", {}, {"If-Match": "{rollback-dry.etag}"}),
    ("commit-now", "owner", "GET /memory/commits/{edit.commit.id}"),
    ("rollback", "owner", "POST /memory/rollback/{edit.commit.id}", {}, {"If-Match": "{commit-now#etag}"}),
    ("blob", "agent", "POST /memory/blobs", PNG, {"Content-Type": "image/png"}),
    ("blob-get", "agent", "GET /memory/blobs/{blob.ref}"),
    ("blob-about", "agent", "HEAD /memory/blobs/{blob.ref}"),
    ("token", "owner", "POST /memory/tokens", {"name": "claude", "scope": "orion", "expires": "30d"}),
    ("tokens", "owner", "GET /memory/tokens"),
    ("token-revoke", "owner", "DELETE /memory/tokens/{token.token.id}"),
    ("verify", "owner", "POST /memory/verify"),
    ("rebuild", "owner", "POST /memory/rebuild"),
    ("reindex", "owner", "POST /memory/reindex"),
    ("doctor", "owner", "GET /memory/doctor"),
    ("jobs", "owner", "GET /memory/jobs"),
    ("job", "owner", "POST /memory/jobs/expire/run", {"force": True}),
    ("jobs-due", "owner", "POST /memory/jobs/due/run"),
    ("job-none", "owner", "POST /memory/jobs/dance/run"),
    ("export", "owner", "GET /memory/export"),
    ("export-subject", "owner", "GET /memory/subjects/pier"),
    ("restore-plan", "other", "POST /memory/restore-export/plan", "{export}"),
    ("restore-export", "other", "POST /memory/restore-export?digest={restore-plan.digest}", "{export}"),
    ("import", "agent", "POST /memory/import", '[{"role": "user", "content": "I like green tea"}]'),
    ("erase-plan", "owner", "POST /memory/erase/plan", {"ids": ["{saved.id}"]}),
    ("erase-clash", "owner", "POST /memory/erase", {"ids": ["{saved.id}"], "digest": "0" * 64}),
    ("erase", "owner", "POST /memory/erase", {"ids": ["{saved.id}"], "digest": "{erase-plan.digest}"}),
    ("erasures", "owner", "GET /memory/commits?kind=erase"),
    ("certificate", "owner", "GET /memory/certificates/{saved.id}"),
    ("adopt-plan", "owner", "POST /memory/adopt/plan"),
    ("adopt", "owner", "POST /memory/adopt", {"digest": "{adopt-plan.digest}"}),
    ("delete", "owner", "DELETE /memory/items/{pier.id}?reason=sold"),
    ("sifted", "owner", "GET /memory/commits?kind=erase&actor=olga&limit=1"),
    ("settings", "owner", "GET /memory/settings"),
    (
        "held5",
        "agent",
        "POST /memory/items",
        {"key": "mission", "kind": "state", "text": "Shipp it", "tier": "core", "evidence": ["chat:1"]},
    ),
    ("window", "owner", "GET /memory/quarantine?limit=1&gate=authority"),
    ("proposal5", "owner", "GET /memory/quarantine/{held5.item.id}"),
    (
        "amend",
        "owner",
        "POST /memory/quarantine/{held5.item.id}/amend",
        {"text": "Ship it all"},
        {"If-Match": "{proposal5#etag}"},
    ),
    ("identity", "owner", "GET /memory/identity"),
    ("identity-none", "agent", "PUT /memory/identity", {"text": "I am Orion", "reason": "new name"}),
    ("old", "owner", "POST /memory/items", {"text": "The old address is 12 Harbour Street"}),
    ("forgetting", "owner", "POST /memory/forget/plan", {"text": "old address"}),
    ("forgotten", "owner", "POST /memory/forget", {"text": "old address", "digest": "{forgetting.digest}"}),
]

#: Command lines of one session on a fresh store; `{step.key}` is a value that an earlier step printed.
COMMANDS = """
version            | version
init               | init
model              | model list
status             | status
saved              | remember "Ana prefers tabs for indentation" --as operator --tag style
agents             | remember "The office is in Lisbon" --source web --session s1
held               | remember "Ship the app before summer" --tier core --key mission
held2              | remember "Write plain words" --tier core --key operating_rules
unknown-block      | remember "Write plain words" --tier core --key style
refused            | remember "the key is SECRET"
duplicate          | remember "Ana prefers tabs for indentation"
redacted           | remember "Bo's mail is bo.jones@example.org" --as operator
blob               | blob put chat.json
blob-show          | blob show {blob.ref}
blob-get           | blob get {blob.ref} out.json
with-file          | remember "A chat" --file chat.json --as operator
revise             | revise {saved.id} "Ana prefers spaces" --reason new --as operator
stale              | revise {saved.id} "Ana prefers both" --reason late --if-version 1 --as operator
append             | revise {agents.id} "and in Porto" --append --reason more
archive            | archive {agents.id} --reason quiet --as operator
restore            | restore {agents.id} --reason again --as operator
forget             | forget {redacted.id} --reason old --as operator
recall             | recall "Ana prefers indentation" --receipt
recall-none        | recall "submarine engines"
context            | context "How does Ana indent code?"
context2           | context "hello" --format messages
replay             | replay {context.receipt.id}
context-diff       | context-diff {context.receipt.id} {context2.receipt.id}
list               | list --include-ended
get                | get {saved.id}
history            | history {saved.id}
feedback           | feedback {context.receipt.id} --used {saved.id}
train              | train
pending            | pending
approve            | approve {held.item.id}
reject             | reject {held2.item.id} --reason no
reopen             | reopen {held2.item.id} --reason mistake
reject-again       | reject {held2.item.id} --reason no
held3              | remember "Be plan" --tier core --key operating_rules
amend              | amend {held3.item.id} "Be plain" --tag style
pending-all        | pending --state all
log                | log --limit 3
show               | show {revise.commit.id}
diff               | diff 0 2
receipt            | receipt {context.receipt.id}
receipt-commit     | receipt {saved.receipt.id}
impact             | impact --source web
contain            | contain --source web
contain-apply      | contain --source web --apply {contain.digest} --reason poisoned
blame              | blame {saved.id}
bisect             | bisect "Ana indentation" --contains spaces
test               | test agent.memory.yaml
rollback-dry       | rollback {revise.commit.id} --dry-run
rollback-conflict  | rollback {saved.commit.id}
rollback           | rollback {revise.commit.id}
porto              | remember "The office is in Porto" --as operator
move               | move {porto.id} --tier episodic --reason "for now" --as operator
promote            | promote {porto.id} "The office is in Porto, by the river" --reason lasting --as operator
tea                | remember "Tea is in the left cupboard" --as operator
cups               | remember "Cups are in the right cupboard" --as operator
merge              | merge {tea.id} {cups.id} --reason "both about the kitchen" --as operator
supersede          | supersede {with-file.id} --by {porto.id} --reason twice --as operator
reinforce          | reinforce {porto.id} --as operator
blocks             | block
block              | block mission "Ship in May" --access append --as operator
contradictions     | contradictions
check              | check
token              | token create --name claude --scope claude
token-list         | token list
token-revoke       | token revoke {token.id}
config             | config
identity           | identity
identity-none      | identity propose --file chat.json --reason new
jobs               | jobs
tenants            | tenants
jobs-run           | jobs run expire
jobs-due           | jobs run --due
import             | import chat.json
export             | export vault.jsonl
export-subject     | export pier.json --subject pier
restore-plan       | restore-export vault.jsonl --db other.db
restore-export     | restore-export vault.jsonl --db other.db --apply {restore-plan.digest}
erase              | erase {saved.id}
erase-apply        | erase {saved.id} --apply {erase.plan.digest}
certificate        | erase {saved.id} --certificate
adopt              | adopt
backup             | backup copy.db
restore-backup     | restore-backup copy.db --to back.db
recover            | store recover copy.db recovered.db
key-export         | key export home.key
key-import         | key import home.key --replace
verify             | verify
rebuild            | rebuild
reindex            | reindex
doctor             | doctor
demo               | demo --db demo.db
mcp                | mcp --list
connect            | connect claude --project . --dry-run
connect-write      | connect claude --project .
connect-again      | connect claude --project .
connect-remove     | connect claude --project . --remove
connect-hooks      | connect claude --project . --hooks --shared
connect-no-hooks   | connect claude --project . --remove
forgetting         | forget --matching river
forgotten          | forget --matching river --yes --as operator
no-command         | rember x
no-option          | recall x --depth 3
bad-value          | recall x --limit many
not-found          | get nobody
not-allowed        | approve {held.item.id} --as agent
no-store           | list --db nowhere.db
bad-argument       | recall x --purpose dance
"""

#: Steps of ``COMMANDS`` that print what differs between machines.
OF_THE_MACHINE = frozenset({"version", "model"})

#: The lines of a journal: a verb of the library with what it takes; `{n}` is the memory that line n made, from 0.
JOURNAL: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("remember", ("Ana prefers tabs",), {"tier": "archival", "tags": ["editor"], "evidence": ["chat:42"]}),
    ("revise", ("{0}", "Ana prefers spaces"), {"reason": "she changed her mind"}),
    ("remember", ("The office has a red door",), {"tier": "archival", "ttl": "30d"}),
    ("forget", ("{2}",), {"reason": "it was painted"}),
    ("remember", ("Ship on Friday",), {"tier": "core", "key": "mission", "reason": "the plan"}),
    ("remember", ("Zürich \u2028 東京 \U0001f600",), {"tier": "archival", "metadata": {"n": [1, {"x": None}]}}),
    ("append", ("{4}", "and rest on Sunday"), {"reason": "the plan"}),
    ("remember", ("Never deploy on a Friday",), {"kind": "rule", "scope": "orion"}),
    ("archive", ("{5}",), {"reason": "odd"}),
    ("restore", ("{5}",), {"reason": "not so odd"}),
    ("remember", ("Bo likes green tea",), {"source": "web", "subject": "Bo", "session": "s1", "derived_from": ["{0}"]}),
    ("move", ("{10}",), {"tier": "working", "reason": "for now"}),
    ("reinforce", ("{0}",), {}),
]
