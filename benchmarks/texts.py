"""Texts for benchmarks: short notes and long replies, varied, the same on every run."""

from __future__ import annotations

import random

_WHO = ["Ana", "Ben", "Chidi", "Dana", "Eli", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kaya", "Liam", "Mira", "Noor"]
_DOES = ["prefers", "owns", "reviews", "deploys", "moved", "tests", "keeps", "renamed", "measured", "ordered"]
_WHAT = [
    "the billing service",
    "a staging cluster",
    "the weekly report",
    "an espresso machine",
    "the login page",
    "the release notes",
    "a bicycle",
    "the search index",
    "the oven schedule",
    "a translation",
    "the key cabinet",
    "the import job",
    "a garden plot",
    "the invoice template",
    "the backup plan",
    "the colour palette",
]
_WHERE = ["in Lisbon", "on Friday", "with care", "for the audit", "in the cellar", "after lunch", "by bus", "on port"]


def notes(count: int, seed: int = 7) -> list[str]:
    """Return ``count`` different notes of 8 to 20 words."""
    source = random.Random(seed)
    found = []
    for number in range(count):
        rare = "".join(source.choice("bcdfghklmnprstvz") + source.choice("aeiou") for _ in range(3))
        found.append(
            f"{source.choice(_WHO)} {source.choice(_DOES)} {source.choice(_WHAT)} {source.choice(_WHERE)} "
            f"{source.randint(1, 9999)}, and {source.choice(_WHO)} {source.choice(_DOES)} {source.choice(_WHAT)} "
            f"called {rare} in case {number}"
        )
    return found


def replies(count: int, length: int = 3_400) -> list[str]:
    """Return ``count`` different replies of an assistant, ``length`` characters: headings, sentences, lists, code."""
    facts = iter(notes(count * (length // 90 + 2), seed=11))
    found = []
    for number in range(count):
        parts = [f"Here is what I would do about case {number}."]
        while sum(len(part) + 2 for part in parts) < length:
            parts.append(f"### Step {len(parts)}\n\n{next(facts)}. {next(facts)}.")
            parts.append("\n".join(f"- **Point {n}**: {next(facts)}." for n in range(1, 4)))
            parts.append(f"```python\nfor case in range({len(parts)}):\n    check(case, limit={number})\n```")
        found.append("\n\n".join(parts)[:length])
    return found
