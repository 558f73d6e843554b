"""Evaluate what becomes of talk about code: turns that are lost or masked, and planted secrets that reach a file.

    python -m evals.coding [--show]

``--show`` prints the turns of the developed half that are lost or masked. Of the other half totals alone are printed.
The exit status is 1 when a figure misses its goal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evals.security import shown
from evals.security_figure import Figure, none_of
from evals.sets_coding import HALVES, Half, Planted, planted, turns
from keepward import Actor, Memory
from keepward.core.proposal import Outcome

#: Messages that are added at once.
AT_ONCE = 200


def spoken(memory: Memory, messages: Sequence[tuple[str, str]], session: str) -> list[list[Outcome]]:
    """Add (role, text) messages to a session; return the outcomes of the parts of each."""
    found: list[list[Outcome]] = []
    for start in range(0, len(messages), AT_ONCE):
        part = messages[start : start + AT_ONCE]
        given = [
            {"role": role, "content": text, "id": f"{session}-{start + number}"}
            for number, (role, text) in enumerate(part)
        ]
        added = memory.add(given, session=session, extract=False)
        by_id: dict[str, list[Outcome]] = {each["id"]: [] for each in given}
        left = iter(given)
        for outcome in added.turns:
            record = outcome.record or (outcome.item.steps[0].after if outcome.item else None)
            # A refused message has no record: it is the next one that has no outcome yet.
            name = record.aliases[0] if record else next((each["id"] for each in left if not by_id[each["id"]]), "")
            by_id.setdefault(name.partition("/")[0], []).append(outcome)
        found += by_id.values()
    return found


def talk(half: Half, *, show: bool) -> list[Figure]:
    """Return how many turns of a half are lost, and how many are masked or marked."""
    said = list(turns(half))
    with Memory.open(":memory:", embedder=None, actor=Actor.agent("assistant")) as memory:
        outcomes = spoken(memory, [(each.role, each.text) for each in said], f"coding-{half}")
        lost = masked = private = marked = 0
        for each, parts in zip(said, outcomes, strict=True):
            is_lost = not parts or any(part.record is None for part in parts)
            codes = {(reason.gate, reason.code) for part in parts for reason in part.reasons}
            is_masked = any(gate == "secrets" for gate, _ in codes)
            is_marked = any(gate == "injection" for gate, _ in codes)
            lost += is_lost
            masked += is_masked and not is_lost
            private += any(gate == "privacy" for gate, _ in codes)
            marked += is_marked
            if show and half == "dev" and (is_lost or is_masked or is_marked):
                print(each.topic, sorted(codes), "|", " / ".join(p.record.text for p in parts if p.record) or each.text)
    share = 100 * masked / len(said)
    return [
        none_of(f"turns lost: {half} half", lost, len(said), "turns"),
        Figure(
            what=f"turns masked as holding a secret: {half} half",
            value=f"{share:.2f} % of {len(said):,}",
            goal="<= 1 %",
            ok=share <= 1,
        ),
        Figure(what=f"turns with a personal identifier redacted: {half} half", value=f"{private}", goal="", ok=True),
        Figure(what=f"turns kept out of purpose act: {half} half", value=f"{marked}", goal="", ok=True),
    ]


def leaks(half: Half, *, show: bool) -> list[Figure]:
    """Return how many planted secrets of a half reach a file of a store, and how many of their turns are lost."""
    secrets: list[Planted] = list(planted(half))
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(Path(folder) / "memory.db", embedder="hashed", actor=Actor.agent("assistant")) as memory:
            outcomes = spoken(memory, [("user", each.text) for each in secrets], f"secrets-{half}")
            for each in secrets[::4]:
                memory.remember(each.text[:1_000], reason="noted from the talk")
        bytes_of = b"\n".join(path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file())
    leaked = [each for each in secrets if any(part.encode() in bytes_of for part in each.secret)]
    lost = [
        each
        for each, parts in zip(secrets, outcomes, strict=True)
        if not parts or any(part.record is None for part in parts)
    ]
    if show and half == "dev":
        for what, those in (("leaked", leaked), ("lost", lost)):
            for each in those:
                print(what, each.kind, each.text[:300])
    return [
        none_of(f"planted secrets in a file of the store: {half} half", len(leaked), len(secrets), "secrets"),
        none_of(f"turns with a planted secret lost: {half} half", len(lost), len(secrets), "turns"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="evals.coding", description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print what is lost or masked of the developed half")
    asked = parser.parse_args(arguments)
    figures = [figure for half in HALVES for figure in (*talk(half, show=asked.show), *leaks(half, show=asked.show))]
    print(shown(figures))
    return 1 if any(each.missed for each in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
