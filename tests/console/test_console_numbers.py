"""Every number on twenty screens of the console is what the command line says, in a store of 1,300 names.

The command line counts neither contexts nor refusals: the store was written with so many.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")

from playwright.sync_api import expect

from keepward.core.policy import Policy
from support.browser import Console, loaded
from support.numbers_on_screen import Gives, lasting_faults
from support.store_of_names import AGENT, CONTEXTS, PERSON, PROJECT, REFUSED, word, write_store

pytestmark = [pytest.mark.proof, pytest.mark.slow]
UPKEEP = {"importance", "base_importance", "reinforced_at", "uses", "last_used"}
#: Days of the news on Home, of its writers, and of the small charts of Sources.
WEEK, FORTNIGHT, MONTH = 7, 14, 30


class Commands:
    """What `keepward --json` says of a store; each command runs once."""

    def __init__(self, folder: Path, contexts: list[str]) -> None:
        self._folder, self._said = folder, dict[tuple[str, ...], Any]()
        #: The receipts of the contexts, in the order in which they were compiled.
        self.contexts = contexts

    def __call__(self, *words: str) -> Any:
        """Return the answer of a command, by its words."""
        if words not in self._said:
            self._said[words] = json.loads(self._run("--json", *words))
        return self._said[words]

    def _run(self, *words: str) -> str:
        given = {
            "KEEPWARD_HOME": str(self._folder / "home"),
            "KEEPWARD_EMBEDDER": "none",
            "KEEPWARD_MAINTENANCE": "off",
        }
        program = Path(sys.executable).with_name("keepward")
        command = [str(program), "--db", str(self._folder / "m.db"), *words]
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
        # `doctor` exits with 1 where it has something to mend.
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    @cached_property
    def memories(self) -> list[dict[str, Any]]:
        """Every memory, in use or not."""
        words = ("--as", "operator", "list", "--within", "/", "--no-limit", "--include-ended")
        return list(self(*words)["items"])

    @property
    def active(self) -> list[dict[str, Any]]:
        return [each for each in self.memories if each["status"] == "active"]

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Every version of every memory, oldest first, with the time of its commit."""
        lines = [json.loads(line) for line in self._run("export").splitlines()]
        times = {line["seq"]: line["commit"]["at"] for line in lines if "commit" in line}
        return [{**line, "at": datetime.fromisoformat(times[line["seq"]])} for line in lines if line.get("op")]

    @property
    def versions(self) -> list[dict[str, Any]]:
        """Every version with words that are not erased."""
        kept = {each["id"] for each in self.memories if each["status"] != "erased"}
        return [each for each in self.events if each["op"] in {"insert", "replace"} and each["id"] in kept]

    @cached_property
    def commits(self) -> dict[int, Any]:
        """Every commit by its number."""
        return {each["commit"]["seq"]: each for each in self("log", "--limit", "500")["items"]}

    @cached_property
    def revised(self) -> str:
        """The id of the memory with the most versions."""
        return str(max(self.active, key=lambda each: each["version"])["id"])

    @property
    def newest_context(self) -> str:
        return self.contexts[-1]

    def context(self, asked: str) -> dict[str, int]:
        """Return the numbers of the context that was compiled for a question."""
        at = [f"With whom hangs the key of {word(1_000 + n)}?" for n in range(CONTEXTS)].index(asked)
        said = self("receipt", self.contexts[at])
        shown = sum(len(each["items"]) for each in said["sections"])
        return {"memories": shown, "left_out": len(said["excluded"]), "tokens": said["tokens"]}

    @property
    def status(self) -> Any:
        return self("status")

    def pending(self, state: str = "pending") -> list[dict[str, Any]]:
        return list(self("pending", "--state", state, "--no-limit")["items"])

    def by(self, field: str, memories: list[dict[str, Any]] | None = None) -> Counter[Any]:
        """Return how many memories in use have each value of a field."""
        rows = self.active if memories is None else memories
        return Counter(value for each in rows for value in _values(each[field]))

    def written(self, field: str, days: int) -> Counter[str]:
        """Return how many versions were written in so many days, by a field of theirs."""
        since = _days_ago(days)
        fields = {each["id"]: each for each in self.memories}
        made = [fields[each["id"]] for each in self.versions if each["at"] >= since]
        return self.by(field, made)


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _days_ago(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def _percent(of: dict[str, Any]) -> int:
    return round(of["confidence"] * 100)


@pytest.fixture(scope="module")
def names(tmp_path_factory, browser):
    """The store of 1,300 names, its server, and its commands."""
    folder = tmp_path_factory.mktemp("names")
    contexts = write_store(folder, datetime.now(UTC))
    console = Console(folder, browser, maintenance=False)
    yield console, Commands(folder, contexts)
    console.close()


# --- the tables: what a screen says, and the command that says it


def home(say: Commands) -> dict[str, Gives]:
    status, since = say.status, _days_ago(WEEK)
    recent = [each for each in say.events if each["at"] >= since]
    learned = {each["id"] for each in recent if each["version"] == 1}
    states = {each["id"]: each["status"] for each in say.memories}
    texts = {(each["id"], each["version"]): each.get("text") for each in say.events}
    changed = {
        each["id"]
        for each in recent
        if each["version"] > 1 and each.get("text") != texts[each["id"], each["version"] - 1]
    }
    ended = {each["id"] for each in recent if each["op"] in {"retire", "archive", "supersede"}}
    late = [job for job in say("jobs")["jobs"] if job["due_at"] and _late(job) > 36]
    odd = [each for each in say("doctor")["checks"] if not each["ok"] or each["warning"]]
    odd = [each for each in odd if each["name"] != "vectors"]
    return {
        "Home # proposals wait for you, # things to look at JSON": lambda: (len(say.pending()), len(odd) + len(late)),
        "Waiting for you # the oldest for # days": lambda: (status["quarantine"]["depth"], _oldest(say)),
        "Memories #": lambda: status["live"],
        "Prompts handed out # in the last seven days, the last": lambda: CONTEXTS,
        "Integrity intact # of # commits verified Verify now backup of # of # commits,": lambda: (
            *_verified(say),
            *_saved(say),
        ),
        "To look at: The job is § h late": lambda hours: (
            () if int(hours) in {round(_late(job)) for job in late} else None
        ),
        "Decided: Decided #": lambda: len(say.pending("approved")) + len(say.pending("rejected")),
        "Refused: Refused #": lambda: REFUSED,
        "Learned: Learned #": lambda: len(learned),
        "Changed: Changed #": lambda: len([each for each in changed if states[each] == "active"]),
        "No longer in use: No longer in use #": lambda: len([each for each in ended if states[each] != "active"]),
        "Erased: Erased #": lambda: status["by_status"]["erased"],
        "What each wrote: Who wrote the last # days": lambda: FORTNIGHT,
        "What each wrote: @ #": lambda name: say.written("author", FORTNIGHT)[name],
        "Tiers: in every prompt #": lambda: status["by_tier"].get("core", 0),
        "Tiers: @ # of #": lambda word: tuple(status["capacity"][TIERS[word]][part] for part in ("live", "max")),
        "Block budgets: @ # of #": lambda name: _block(say, name),
        "drawn: # written in # days": lambda: (sum(say.written("author", FORTNIGHT).values()), FORTNIGHT),
    }


def _late(job: dict[str, Any]) -> float:
    """Return how many hours ago a job was due."""
    return (datetime.now(UTC) - datetime.fromisoformat(job["due_at"])) / timedelta(hours=1)


def _oldest(say: Commands) -> int:
    """Return for how many days the oldest proposal waits."""
    return round(say.status["quarantine"]["oldest_age_seconds"] / 86_400)


#: Tiers and core blocks by what the console calls them.
TIERS = {"in every prompt": "core", "short-term": "working", "what happened": "episodic", "long-term": "archival"}
BLOCKS = {
    "Persona": "persona",
    "People": "human",
    "Rules": "operating_rules",
    "Mission": "mission",
    "Where things stand": "workspace_state",
}


def _block(say: Commands, name: str) -> tuple[int, int]:
    block = say.status["blocks"][BLOCKS.get(name, name.replace(" ", "_"))]
    return block["tokens"], block["budget"]


def _verified(say: Commands) -> tuple[int, int]:
    return say.status["verification"]["commits"], say.status["commits"]


def _saved(say: Commands) -> tuple[int, int]:
    return say.status["backups"]["commits"], say.status["commits"]


def review(say: Commands) -> dict[str, Gives]:
    after = say.pending()[-1]["steps"][0]["after"]
    return {
        "Review # wait, the oldest since @ JSON": lambda _: len(say.pending()),
        "Reasons to wait: the confidence is below #, the minimum of the archival tier": lambda: 0.3,
        # No command ranks what is similar to a proposal.
        "Similar: long-term §": lambda _: (),
        "If approved: fact · long-term · / · confidence #": lambda: after["confidence"],
    }


#: The filters beside a list, and the field of a memory that each is of.
FILTERS = {
    "Kind": "kind",
    "Source": "source",
    "Written by": "author",
    "Scope": "scope",
    "Tag": "tags",
    "Subject": "subject",
    "Session": "session",
}
FEW = 7


def facets(say: Commands, shown: list[dict[str, Any]], *, left: str) -> dict[str, Gives]:
    """Return the rows of the filters beside a list that shows some memories; of those ``left`` out, the rest."""
    rows: dict[str, Gives] = {
        "Tier: @ #": lambda name: say.by("tier", shown)[name.split()[-1]],
        "Trust: @ #": lambda name: say.by("trust", shown)[name.split()[-1]],
    }
    for title, field in FILTERS.items():
        counts = say.by(field, shown)
        if len(counts) > 1 or field == "tags":
            rows[f"{title}: @ #"] = lambda name, counts=counts: counts[name]
        if len(counts) > FEW:
            rows[f"{title}: # more"] = lambda counts=counts: len(counts) - FEW
    return {row: gives for row, gives in rows.items() if not row.startswith(tuple(left.split(" | ")))} if left else rows


def signs(say: Commands, where: str) -> dict[str, Gives]:
    """Return the row of how sure a memory of a list is."""
    memories = {each["id"]: each for each in say.memories}
    return {f"{where}: § is unsure, # %": lambda name: _percent(memories[name])}


def memories(say: Commands) -> dict[str, Gives]:
    return {
        "Memories # active JSON": lambda: say.status["live"],
        "Status: @ #": lambda name: say.by("status", say.memories)[name],
        **facets(say, say.active, left=""),
        **signs(say, "Memories"),
    }


def narrowed(say: Commands) -> dict[str, Gives]:
    tagged = [each for each in say.memories if "harbour" in each["tags"]]
    either = [each for each in say.memories if each["status"] in {"active", "archived"}]
    shown = [each for each in either if each in tagged]
    return {
        "Memories # found JSON": lambda: len(shown),
        "Filters: Take # filters off": lambda: 3,
        "Status: @ #": lambda name: say.by("status", tagged)[name],
        **facets(say, shown, left="Trust | Source | Written"),
        # A filter narrows the other groups, not its own.
        "Tag: @ #": lambda name: say.by("tags", either)[name],
        **signs(say, "Memories"),
    }


def search(say: Commands) -> dict[str, Gives]:
    found = [hit["memory"] for hit in say("--as", "operator", "recall", "buoy", "--limit", "100")["hits"]]
    return {
        "Found: # memories found. no embedder: found by words alone.": lambda: len(found),
        **facets(say, found, left="Kind | Trust | Source | Written | Scope | Tag | Subject"),
        "Found: unsure, # % long-term from the web said by agent:scout · found by words": lambda: _percent(found[0]),
    }


def memory(say: Commands) -> dict[str, Gives]:
    history = {str(each["record"]["version"]): each["commit"]["seq"] for each in say("history", say.revised)["items"]}
    said = next(each for each in say.memories if each["id"] == say.revised)
    return {
        "§ @ operator:ana commit #": lambda version, _: history[version],
        "commit §": lambda seq: () if int(seq) in history.values() else None,
        "operator:ana in commit §,": lambda seq: () if int(seq) in {history["1"], history["4"]} else None,
        "confidence: # now; # when it was set": lambda: _weights(said, "confidence"),
        "importance: # now; # when it was set": lambda: _weights(said, "importance"),
    }


def _weights(of: dict[str, Any], name: str) -> tuple[str, str]:
    return f"{of[name]:.2f}", f"{of[f'base_{name}']:.2f}"


def people(title: str, folder: str) -> Callable[[Commands], dict[str, Gives]]:
    """Return the rows of the users or the projects, whose scopes are in a folder."""

    def rows(say: Commands) -> dict[str, Gives]:
        scopes = say.by("scope")
        found: dict[str, Gives] = {f"{title}: @ # memories": lambda name: scopes[f"/{folder}/{name}"]}
        if folder == "projects":
            found["What is kept in /projects/mill: and # more"] = lambda: scopes["/projects/mill"] - 20
        else:
            found |= signs(say, "What is believed")
        return found

    return rows


def about_agent(say: Commands) -> dict[str, Gives]:
    name = "agent:bot"
    states = ("pending", "approved", "rejected")
    counts = {state: len([each for each in say.pending(state) if _proposer(each) == name]) for state in states}
    return {
        "What it proposed: # waiting": lambda: counts["pending"],
        "What it proposed: # approved": lambda: counts["approved"],
        "What it proposed: # rejected": lambda: counts["rejected"],
        # Of so many the five newest are listed.
        "What it was given: # contexts": lambda: "5+",
        "Contexts, newest first: @ # memories": lambda asked: say.context(asked)["memories"],
        **impact(say, "--actor", name),
        **signs(say, "Impact"),
    }


def _proposer(proposal: dict[str, Any]) -> str:
    return f"{proposal['proposer']['kind']}:{proposal['proposer']['name']}"


def impact(say: Commands, *words: str) -> dict[str, Gives]:
    """Return the rows of what an actor or a source wrote and touched; ``words`` name it for the command."""
    found = say("impact", *words)
    field = {"--actor": "author", "--source": "source"}[words[0]]
    wrote = [each for each in say.memories if each[field] == words[1] and each["status"] != "erased"]
    ids = {each["id"] for each in wrote}
    versions = [each for each in say.versions if each["id"] in ids]
    return {
        "Impact: wrote: # versions of # memories; # active": lambda: (
            len(versions),
            len(wrote),
            say.by("status", wrote)["active"],
        ),
        "Impact: trust: @ #": lambda name: say.by("trust", wrote)[name],
        "Impact: # touched directly": lambda: len(found["direct"]),
        "Impact: # made from these": lambda: len(found["derived"]),
        "Impact: # corrected since": lambda: len(found["corrected"]),
        "Impact: # contexts held any": lambda: len(found["contexts"]),
        "Impact: # wait for review": lambda: len(found["waiting"]),
    }


def commits(say: Commands) -> dict[str, Gives]:
    approvals = [seq for seq, each in say.commits.items() if each["commit"]["kind"] == "approve"]
    list_, all_ = "Commits, newest first: ", [*say.commits.values()]
    return {
        "Since: Last § days": lambda days: () if days in {"7", "30"} else None,
        f"{list_}§ rollback of commit # @": lambda seq, _: _undone(say, int(seq)),
        f"{list_}§ @ undone by # @": lambda seq, *_: next(
            each for each in say.commits if int(seq) in _undone(say, each)
        ),
        f"{list_}§ @ and # more @ × #": lambda seq, *_: (_steps(say, seq) - 1, _steps(say, seq)),
        f"{list_}§ erased # memories @ × #": lambda seq, _: (_steps(say, seq), _steps(say, seq)),
        f"{list_}§ @": lambda seq, _: () if _steps(say, seq) == 1 else None,
        "Commit #": lambda: max(say.commits),
        "receipt: §": lambda name: () if any(each["details"]["receipt"].startswith(name) for each in all_) else None,
        f"{list_}# approvals at once by operator:ana, commits # to #,": lambda: (
            len(approvals),
            min(approvals),
            max(approvals),
        ),
    }


def _steps(say: Commands, seq: str) -> int:
    return len(say.commits[int(seq)]["steps"])


def _undone(say: Commands, seq: int) -> list[int]:
    ids = {each["commit"]["id"]: number for number, each in say.commits.items()}
    return [ids[each] for each in say.commits[seq]["details"]["undoes"]]


def commit(say: Commands) -> dict[str, Gives]:
    expired = len(say("show", "28")["steps"])
    return {
        **commits(say),
        "Commit #": lambda: 28,
        "What it changed, in # memories": lambda: expired,
        "# changed": lambda: expired,
    }


def compare(say: Commands) -> dict[str, Gives]:
    since = _days_ago(WEEK).isoformat()
    before = max(seq for seq, each in say.commits.items() if each["commit"]["at"] < since)
    items = say("diff", str(before), str(max(say.commits)))["items"]
    said = [each for each in items if _differ(each)]
    added = [each for each in said if not each["before"]]
    removed = [each for each in said if not each["after"]]
    changed, weighed = len(said) - len(added) - len(removed), len(items) - len(said)
    return {
        "What changed: Last § days": lambda days: () if days in {"7", "30"} else None,
        "# memories differ": lambda: len(items),
        "# added, # changed, # removed, # with another importance only": lambda: (
            len(added),
            changed,
            len(removed),
            weighed,
        ),
        "# differ in importance and uses only": lambda: weighed,
        "Show # of # more": lambda: (min(len(said) - PAGE, PAGE), len(said) - PAGE),
    }


#: Differences that one page of a comparison has.
PAGE = 100


def _differ(each: dict[str, Any]) -> bool:
    before, after = each["before"] or {}, each["after"] or {}
    return any(before.get(name) != after.get(name) for name in {*before, *after} - UPKEEP - {"version", "updated_at"})


def receipts(say: Commands) -> dict[str, Gives]:
    return {
        "Receipts: @, Memories: #": lambda asked: say.context(asked)["memories"],
        "Receipts: @, Left out: #": lambda asked: say.context(asked)["left_out"],
        "Receipts: @, Tokens: #": lambda asked: say.context(asked)["tokens"],
    }


def receipt(say: Commands) -> dict[str, Gives]:
    said = say("receipt", say.newest_context)
    candidates = said["explanation"]["candidates"]
    used, budget = said["tokens"], said["inputs"]["budget_tokens"]
    inside = [each for each in candidates if each["section"]]
    costs = {str(each["tokens"]) for each in said["explanation"]["parts"]}
    scores = {f"{each['score']:.2f}" for each in candidates if each["score"] is not None}
    weak = [each for each in candidates if each["code"] == "weak"]
    return {
        "Budget: # of # tokens @ commit #": lambda _: (used, budget, int(said["head"].split(":")[0])),
        "Budget: recalled # free #": lambda: (used, budget - used),
        "Budget: drawn: # tokens: recalled #, free #": lambda: (used, used, budget - used),
        "The prompt: §": lambda cost: () if cost in costs else None,
        "Candidates: all #": lambda: len(candidates),
        "Candidates: in #": lambda: len(inside),
        "Candidates: out #": lambda: len(candidates) - len(inside),
        "Candidates: @ §": lambda _, score: () if score in scores else None,
        "Candidates: # hardly relevant": lambda: len(weak),
    }


def recall(say: Commands) -> dict[str, Gives]:
    answer = say("--as", "operator", "recall", "buoy", "--limit", "10")
    hits = {str(each["rank"]): f"{each['score']:.2f}" for each in answer["hits"]}
    by_id = {each["memory"]["id"]: f"{each['score']:.2f}" for each in answer["hits"]}
    learned = say.status["reranker"]
    return {
        "to choose, §": lambda most: () if most in {"5", "10", "20", "50"} else None,
        "Hits: at least # memories in scopes below were not read (@)": lambda *_: _not_read(answer["notes"]),
        "Hits: § # words web words +# used not": lambda rank: (hits[rank], hits[rank]),
        "Hits: # words web words +#": lambda: (hits["1"], hits["1"]),
        "Hits: words +#": lambda: hits["1"],
        "Hits: drawn of §: words +#": lambda name: by_id[name],
        "Learned ranking: Feedback: #": lambda: learned["feedback"],
        "Learned ranking: For testing: # feedbacks, # pairs": lambda: (learned["held_out"], learned["pairs"]),
        "Learned ranking: From agents: # %, at most # %": lambda: (
            round(learned["from_agents"] * 100),
            round(learned["agents_at_most"] * 100),
        ),
    }


def _not_read(notes: list[str]) -> str:
    """Return of how many memories below its scope a note of a command says that they were not read."""
    return next(found[1] for each in notes if (found := re.match(r"at least (\d+) memories in scopes below", each)))


def activity(say: Commands) -> dict[str, Gives]:
    made = say.written("author", 90)
    days = Counter(each["at"].date() for each in say.versions)
    return {
        "Time: to choose, § days": lambda days: () if days in {"30", "90", "365"} else None,
        "Time: @ #": lambda name: made[name],
        "Time: drawn: Versions written a day: # in # days, most # on one": lambda: (
            sum(made.values()),
            90,
            max(days.values()),
        ),
        "Time: drawn of @: # in # days": lambda name: (made[name], 90),
    }


def sources(say: Commands) -> dict[str, Gives]:
    there = [each for each in say.memories if each["status"] != "erased"]
    wrote, active, month = say.by("author", there), say.by("author"), say.written("author", MONTH)
    low = say.by("author", [each for each in there if each["trust"] in {"web", "unknown"}])
    title = "Agents and people: "
    return {
        **tabs(say),
        f"{title}@ # memories, # active, last": lambda name: (wrote[name], active[name]),
        f"{title}@ # memories, last": lambda name: wrote[name],
        f"{title}@ # memories, last # of low trust": lambda name: (wrote[name], low[name]),
        f"{title}drawn of @: Written a day in the last # days: # in all": lambda name: (MONTH, month[name]),
    }


def tabs(say: Commands) -> dict[str, Gives]:
    there = [each for each in say.memories if each["status"] != "erased"]
    return {
        f"What to list: {title} #": lambda field=field: len(say.by(field, there))
        for title, field in {
            "Agents and people": "author",
            "Kinds of source": "source",
            "Pages and records": "evidence",
            "Sessions": "session",
        }.items()
    }


def sessions(say: Commands) -> dict[str, Gives]:
    wrote, month = say.by("session", say.memories), say.written("session", MONTH)
    low = say.by("session", [each for each in say.memories if each["trust"] == "web"])
    return {
        **tabs(say),
        "Sessions: @ # memories, last": lambda name: wrote[name],
        "Sessions: @ # memories, last # of low trust": lambda name: (wrote[name], low[name]),
        "Sessions: drawn of @: Written a day in the last # days: # in all": lambda name: (MONTH, month[name]),
    }


def pages(say: Commands) -> dict[str, Gives]:
    wrote = say.by("evidence")
    return {
        **tabs(say),
        "Pages and records: buoys.example # pages Take all of it out of use…": lambda: len(wrote),
        "buoys.example: @ # memories, last": lambda name: wrote[name],
        "buoys.example: @ # memories, last # of low trust": lambda name: (wrote[name], wrote[name]),
    }


def scout(say: Commands) -> dict[str, Gives]:
    rows = {row: gives for row, gives in sources(say).items() if "low trust" not in row}
    return {**rows, **impact(say, "--actor", f"agent:{AGENT}"), **signs(say, "Impact")}


def user(say: Commands) -> dict[str, Gives]:
    return {**people("Users", "users")(say), **signs(say, "Where the name is mentioned")}


def erase(say: Commands) -> dict[str, Gives]:
    # What is out of use is erased as well.
    named = [each for each in _left(say) if PERSON.lower() in each["text"].lower()]
    return {
        "People and sources: All about Babaga # memories": lambda: say.by("subject", _left(say))[PERSON],
        "People and sources: All kept for the user babaga # memories": lambda: say.by("scope", _left(say))[
            f"/users/{PERSON.lower()}"
        ],
        f"# memories say “ {PERSON} ”: tick those that are to go, too.": lambda: len(named),
        "Certificates: # memories, since somebody asked for it @ as JSON": lambda _: say.status["by_status"]["erased"],
    }


def _left(say: Commands) -> list[dict[str, Any]]:
    return [each for each in say.memories if each["status"] != "erased"]


def plan(say: Commands) -> dict[str, Gives]:
    said = say("erase", "--source", "web")["plan"]
    return {
        "What goes: # version · named": lambda: 1,
        "With them go # versions in the journal, their words, vectors and marks. # receipts and # proposals are written "
        "anew without them.": lambda: (len(said["versions"]), len(said["receipts"]), len(said["proposals"])),
        "Type erase # to confirm": lambda: len(said["targets"]),
        "Certificates: # memories, since somebody asked for it @ as JSON": lambda _: say.status["by_status"]["erased"],
    }


def jobs(say: Commands) -> dict[str, Gives]:
    times = {each["name"]: each["schedule"] for each in say("jobs")["jobs"]}
    return {"@: daily at §:§ UTC@": lambda name, hour, minute, _: () if f"{hour}:{minute}" in times[name] else None}


def tokens(say: Commands) -> dict[str, Gives]:
    ended = [each for each in say("token", "list")["tokens"] if each["state"] != "valid"]
    return {"Show # that ended": lambda: len(ended)}


def integrity(say: Commands) -> dict[str, Gives]:
    checks = {each["name"]: each["detail"] for each in say("doctor")["checks"]}
    numbers = {name: re.findall(r"(?<![\w.:-])\d[\d,]*(?![\w:.-]|/)", detail) for name, detail in checks.items()}
    return {
        "Newest verification: Intact # of # commits verified by operator:ana": lambda: _verified(say),
        "Backups: fresh backup of # of # commits,": lambda: _saved(say),
        "Seal: commits: #": lambda: say.status["commits"],
        "Seal: schema: #": lambda: say.status["schema"],
        "Doctor: look vectors # memories wait for a vector @": lambda _: numbers["vectors"],
        "Doctor: OK store @ #, head §": lambda _, head: say.status["schema"] if head == say.status["head"] else None,
        "Doctor: OK erasures # made; not on this machine's list: #": lambda: numbers["erasures"],
        "Doctor: OK blobs # stored, # of them without their file": lambda: numbers["blobs"],
        "Doctor: OK verification # of # commits verified, § § UTC": lambda *_: _verified(say),
        "Doctor: OK backups the newest has # of # commits, made § § UTC in §": lambda *_: _saved(say),
        "Doctor: OK review # proposals are pending, # of them for more than # days; # expired undecided:": lambda: (
            numbers["review"]
        ),
    }


def core(say: Commands) -> dict[str, Gives]:
    blocks = say.status["blocks"]
    notes = say("--as", "operator", "list")["notes"]
    return {
        "at least # memories in scopes below were not read (@)": lambda *_: _not_read(notes),
        "Core # tokens in every prompt, with their headings JSON": lambda: sum(
            each["tokens"] for each in blocks.values()
        ),
        **{
            f"{name}: @ # of # tokens": lambda _, name=name: (blocks[name]["tokens"], blocks[name]["budget"])
            for name in blocks
        },
    }


def compared(say: Commands) -> dict[str, Gives]:
    """Return the rows of the oldest and the newest context side by side."""
    rows: dict[str, Gives] = {}
    for name, at, mark in (("Older", 0, "removed"), ("Newer", -1, "added")):
        said = say("receipt", say.contexts[at])
        head = int(said["head"].split(":")[0])
        tokens = [each["tokens"] for each in said["explanation"]["parts"]]
        rows[f"{name} context: {name}, “ @ ”, # tokens, after commit #"] = lambda _, said=said, head=head: (
            said["tokens"],
            head,
        )
        rows[f"{name} prompt: {mark} §"] = lambda cost, tokens=tokens: () if int(cost) in tokens else None
        rows[f"{name} prompt: §"] = lambda cost, tokens=tokens: () if int(cost) in tokens else None
    return rows


def settings(_: Commands) -> dict[str, Gives]:
    """Return the rows of the settings. No command lists those in force; the policy knows its own."""
    policy = Policy()
    spans = {
        "Working memory": policy.ttl_working,
        "Volatile memories": policy.ttl_volatile,
        "Proposals that wait": policy.review_ttl,
        "Texts of decided proposals": policy.review_keep,
        "Details of contexts": policy.compact_receipts_after,
        **{f"Volatile memories of kind {kind.value}": span for kind, span in policy.ttl_by_kind.items()},
    }
    rows: dict[str, Gives] = {
        f"Retention: {title} # @ default @": lambda *_, span=span: span.days for title, span in spans.items()
    }
    return {
        **rows,
        "Policy: # at the default": lambda: len(fields(Policy)) - RETENTION,
        # How many of these are at their default depends on how a server was started.
        "Store and identity: § at the default": lambda _: (),
        "Server: § at the default": lambda _: (),
    }


#: Number of the fields of a policy that say how long things are kept; they are in a list of their own.
RETENTION = 7


#: The screens by their addresses; what stands in braces are ids of the store.
SCREENS: dict[str, Callable[[Commands], dict[str, Gives]]] = {
    "/": home,
    "/review": review,
    "/memories": memories,
    "/memories?tag=harbour&status=active&status=archived": narrowed,
    "/memories?q=buoy": search,
    "/memories/{revised}": memory,
    "/users?name=babaga": user,
    f"/projects?name={PROJECT}": people("Projects", "projects"),
    "/about?name=agent:bot": about_agent,
    "/commits": commits,
    "/commits?at=28": commit,
    "/commits?compare=yes": compare,
    "/context?view=receipts&asked=loheb": receipts,
    "/context?receipt={context}": receipt,
    "/recall?q=buoy": recall,
    "/activity": activity,
    "/sources": sources,
    "/sources?list=sessions": sessions,
    "/sources?list=references": pages,
    f"/sources?name=agent:{AGENT}": scout,
    f"/erase?who={PERSON}": erase,
    "/erase?source=web": plan,
    "/jobs": jobs,
    "/tokens": tokens,
    "/integrity": integrity,
    "/core": core,
    "/settings": settings,
    "/context?view=compare&a={oldest}&b={context}": compared,
}


@pytest.mark.parametrize("path", SCREENS)
def test_every_number_of_a_screen_is_what_a_command_says(names, path):
    console, say = names
    address = path.format(revised=say.revised, context=say.newest_context, oldest=say.contexts[0])
    with console.page(address) as page:
        loaded(page)
        found = lasting_faults(page, SCREENS[path](say))
    assert not found, "\n".join(found)


#: Values of one filter that are listed once it is expanded.
LISTED = 50


@pytest.mark.parametrize("path", ["/memories", "/memories?tag=harbour&status=active&status=archived"])
def test_every_number_of_expanded_filters_is_what_a_command_says(names, path):
    console, say = names
    rows = {row: gives for row, gives in SCREENS[path](say).items() if not row.endswith("more")}
    shown = say.active
    if path != "/memories":
        shown = [
            each for each in say.memories if "harbour" in each["tags"] and each["status"] in {"active", "archived"}
        ]
    left = {title: len(say.by(field, shown)) - LISTED for title, field in FILTERS.items()}
    with console.page(path) as page:
        loaded(page)
        folded = page.locator("fieldset button").filter(has_text=re.compile(r"^[\d,]+ more$"))
        folded.first.wait_for()
        while folded.count():
            folded.first.click()
        for title, count in left.items():
            if count > 0:
                expect(page.get_by_role("group", name=title, exact=True)).to_contain_text(f"and {count:,} more")
        # What is left of a filter has no words of its own, and is read above.
        found = [each for each in lasting_faults(page, rows, 3_000) if "more Fewer" not in each]
    assert not found, "\n".join(found)
