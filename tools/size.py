"""Print the lines and files of each part of the package, and those of the tests.

python tools/size.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Count every Python file, comments and blank lines included."""
    lines, files = Counter[str](), Counter[str]()
    package = ROOT / "src" / "keepward"
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).parts
        name = parts[0] if len(parts) > 1 else "(top level)"
        lines[name] += len(path.read_text("utf-8").splitlines())
        files[name] += 1
    for name, count in lines.most_common():
        print(f"{count:7,} {files[name]:4} {name}")
    print(f"{lines.total():7,} {files.total():4} in all")
    tests = [each for each in (ROOT / "tests").rglob("*.py") if "node_modules" not in each.parts]
    print(f"{sum(len(each.read_text('utf-8').splitlines()) for each in tests):7,} {len(tests):4} tests")


if __name__ == "__main__":
    main()
