"""Files of memory tests: read them, and report their results as JUnit XML and as annotations of GitHub.

A file has a list ``tests``, in YAML or TOML:

```yaml
tests:
  - name: the deploy target
    objective: Where do we deploy?
    contains: db-7
    max_tokens: 200
```

Late imports: a command that reads no such file starts faster.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keepward.core.memory_test import MemoryTest, MemoryTestResult, parse_test
from keepward.core.value import unknown_field_message
from keepward.errors import InvalidInput

#: The largest file that is read, in bytes.
MAX_BYTES = 1_000_000
#: Characters that XML 1.0 cannot hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TOML_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*tests[ \t]*\]\]", re.MULTILINE)


class FileTest(NamedTuple):
    """A test, and the number of the line where it begins: from 1, or 0 if unknown."""

    test: MemoryTest
    line: int


def read_tests(path: Path) -> list[FileTest]:
    """Return the tests of a file, in its order.

    Raises:
        InvalidInput: the file cannot be read, is neither YAML nor TOML, or a test is not valid.
    """
    try:
        content = path.read_bytes()
        if len(content) > MAX_BYTES:
            raise InvalidInput(f"{path.name} has more than {MAX_BYTES:,} bytes: divide it")
        text = content.decode("utf-8-sig")
    except OSError as exc:
        raise InvalidInput(f"{path.name} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name} is not UTF-8 text") from None
    value, lines = _toml(path, text) if path.suffix == ".toml" else _yaml(path, text)
    if not isinstance(value, Mapping) or not isinstance(value.get("tests"), list) or not value["tests"]:
        raise InvalidInput(f"{path.name} has no list `tests` with at least one test")
    if (unknown := next((name for name in value if name != "tests"), None)) is not None:
        raise InvalidInput(f"{path.name}: {unknown_field_message('field', unknown, ('tests',))}")
    try:
        tests = [parse_test(test, number) for number, test in enumerate(value["tests"], 1)]
    except InvalidInput as exc:
        raise InvalidInput(f"{path.name}: {exc}") from None
    lines = lines if len(lines) == len(tests) else [0] * len(tests)
    return [FileTest(test, line) for test, line in zip(tests, lines, strict=True)]


def _toml(path: Path, text: str) -> tuple[Any, list[int]]:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInput(f"{path.name} is not TOML: {exc}") from None
    return value, [text.count("\n", 0, found.start()) + 1 for found in _TOML_HEADER.finditer(text)]


def _yaml(path: Path, text: str) -> tuple[Any, list[int]]:
    import yaml

    try:
        value, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        why = getattr(exc, "problem", None) or "it cannot be read"
        raise InvalidInput(f"{path.name} is not YAML{line}: {why}") from None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    lists = [each for name, each in pairs if name.value == "tests" and isinstance(each, yaml.SequenceNode)]
    return value, [item.start_mark.line + 1 for each in lists for item in each.value]


def junit_xml(files: Mapping[str, Sequence[tuple[FileTest, MemoryTestResult]]]) -> str:
    """Return the results of files as JUnit XML, the report that CI systems read."""
    from xml.etree import ElementTree

    root = ElementTree.Element("testsuites")
    for name, results in files.items():
        failed = sum(not result.passed for _, result in results)
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": name, "tests": str(len(results)), "failures": str(failed), "errors": "0"}
        )
        for (_, line), result in results:
            about = {"name": result.name, "classname": name, "file": name} | ({"line": str(line)} if line else {})
            case = ElementTree.SubElement(suite, "testcase", {key: _xml(text) for key, text in about.items()})
            if not result.passed:
                failure = ElementTree.SubElement(case, "failure", {"message": _xml("; ".join(result.failures))})
                failure.text = _xml(report(result))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def report(result: MemoryTestResult) -> str:
    """Return what failed in a test, and its context."""
    shown = result.text or "the context is empty"
    return "\n".join((*result.failures, "", shown))


def github_annotations(files: Mapping[str, Sequence[tuple[FileTest, MemoryTestResult]]]) -> Iterator[str]:
    """Yield a line for each failed test, which GitHub shows at the line of the file."""
    for name, results in files.items():
        for (_, line), result in results:
            if not result.passed:
                where = f"file={_property(name)}" + (f",line={line}" if line else "")
                yield f"::error {where},title={_property(result.name)}::{_data('; '.join(result.failures))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
