"""Print how README and the pages under docs read: length, long sentences, and private words.

    python tools/words.py                 this checkout
    python tools/words.py --at COMMIT     the pages of a commit
    python tools/words.py --list          each long sentence and each private word, with its page
    python tools/words.py --source        private words in the package: comments and strings, then identifiers

Generated reference pages and code blocks do not count. A private word counts in every use, ordinary ones included.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
LONG_SENTENCE_WORDS = 25
GENERATED = re.compile(r"docs/reference/(python|values)\.md$")
#: Words that this project once used in a sense of its own, and the form that finds each.
PRIVATE_WORDS = {
    "told": r"told|tells",
    "kept": r"kept|keeps",
    "stands": r"stands?",
    "beside": r"beside",
    "anew": r"anew",
    "handed": r"handed",
    "heed": r"heed(?:ed)?",
    "sight": r"sight",
    "bearer": r"bearers?",
    "lots": r"lots",
    "marks": r"marks",
    "calm": r"calm",
    "held": r"held",
    "place": r"places?",
    "settle": r"settle[sd]?",
    "outdo": r"outdo(?:ne|es)?",
    "meet": r"meets?|met",
    "carry": r"carr(?:y|ies|ied)",
    "lend": r"lends?|lent",
    "turn": r"turns?",
    "gone": r"gone",
    "home": r"home",
    "whole": r"whole",
    "look": r"looks?|glance",
    "somebody": r"somebody|nobody|whoever",
}


def pages(commit: str | None) -> dict[str, str]:
    """Return the text of README and of every page under docs, by path."""
    if commit is None:
        found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in found}
    listed = _git("ls-tree", "-r", "--name-only", commit, "README.md", "docs").splitlines()
    return {name: _git("show", f"{commit}:{name}") for name in listed if name.endswith(".md")}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def prose(page: str) -> list[str]:
    """Return the sentences of a page, without code, addresses and markup."""
    page = re.sub(r"^```.*?^```|^    .*?$|<!--.*?-->", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    page = re.sub(r"`[^`]*`", "code", page)
    page = re.sub(r"^\s*(?:[*#>-]+|\d+\.)\s+", "\n\n", page, flags=re.MULTILINE)
    page = re.sub(r"^\|.*\|$", lambda row: row[0].replace("|", "\n\n"), page, flags=re.MULTILINE)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", page))
    return [each for block in blocks for each in re.split(r"(?<=[.!?])\s+", block) if re.search(r"\w", each)]


def words(sentence: str) -> list[str]:
    """Return the words of a sentence."""
    return re.findall(r"[A-Za-z]+(?:['’-][A-Za-z]+)*|\d[\d.,]*", sentence)


def group(name: str) -> str:
    """Return the part of the documentation that a page belongs to."""
    if name == "README.md":
        return "README"
    return "decisions" if name.startswith("docs/adr/") else "docs"


def source_uses(package: Path = ROOT / "src" / "keepward") -> tuple[Counter[str], Counter[str]]:
    """Return how often each private word is in comments and strings of the package, and in its identifiers."""
    texts, names = Counter[str](), Counter[str]()
    forms = {
        word: re.compile(rf"(?<![A-Za-z])(?:{form})(?![A-Za-z])", re.IGNORECASE) for word, form in PRIVATE_WORDS.items()
    }
    every = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(PRIVATE_WORDS.values())})(?![A-Za-z])", re.IGNORECASE)
    for path in sorted(package.rglob("*.py")):
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type not in {tokenize.COMMENT, tokenize.STRING, tokenize.NAME} or not every.search(
                    token.string
                ):
                    continue
                counts = names if token.type == tokenize.NAME else texts
                for word, form in forms.items():
                    counts[word] += len(form.findall(token.string))
    return texts, names


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="COMMIT")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--source", action="store_true")
    options = parser.parse_args()
    if options.source:
        for title, counts in zip(("comments and strings", "identifiers"), source_uses(), strict=True):
            print(f"{title}: {counts.total()}")
            print("  ".join(f"{word} {counts[word]}" for word in PRIVATE_WORDS))
        return
    read = {name: prose(page) for name, page in pages(options.at).items() if not GENERATED.search(name)}
    print(f"{'':10}{'pages':>7}{'words':>8}{'median':>8}{'over ' + str(LONG_SENTENCE_WORDS):>9}")
    for part in ("README", "docs", "decisions"):
        sentences = [each for name, found in read.items() if group(name) == part for each in found]
        lengths = [len(words(each)) for each in sentences]
        # A cell, a heading or a label is no sentence.
        complete = [each for each in lengths if each > 4]
        long = sum(each > LONG_SENTENCE_WORDS for each in lengths)
        count = sum(group(name) == part for name in read)
        print(f"{part:10}{count:>7}{sum(lengths):>8}{median(complete or [0]):>8.0f}{long:>9}")
    text = {name: " ".join(found) for name, found in read.items()}
    counts = {
        word: sum(len(re.findall(rf"\b(?:{form})\b", each, re.IGNORECASE)) for each in text.values())
        for word, form in PRIVATE_WORDS.items()
    }
    print(f"private words: {sum(counts.values())}")
    print("  ".join(f"{word} {count}" for word, count in counts.items()))
    if not options.list:
        return
    every = re.compile(rf"\b(?:{'|'.join(PRIVATE_WORDS.values())})\b", re.IGNORECASE)
    for name, found in read.items():
        for each in found:
            private = sorted({match.lower() for match in every.findall(each)})
            if private or len(words(each)) > LONG_SENTENCE_WORDS:
                print(f"{name}: {len(words(each))} {' '.join(private)}: {each}")


if __name__ == "__main__":
    main()
