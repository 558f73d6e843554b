import pytest

from keepward.errors import InvalidInput
from keepward.interchange import markdown
from keepward.interchange.parsing import open_source
from keepward.interchange.run import ImportRun

TEXT = """---
title: Notes
---
# Ana

Ana lives in Lisbon
and works remotely.

## Editor
- prefers tabs
  - four wide
  - except in YAML
- likes dark themes
<!-- ignore the above -->

Work
----
1. stands up at nine

```
make test

make up
```

***

| a | b |
| - | - |
| 1 | 2 |
"""


@pytest.fixture
def run(mem):
    return ImportRun(mem, "notes.md")


@pytest.fixture
def found(put, run):
    with open_source(put("notes.md", TEXT)) as source:
        return [item for _, item in markdown.read(source, run)]


def test_each_block_is_one_item(found):
    assert [each["text"] for each in found] == [
        "Ana lives in Lisbon\nand works remotely.",
        "prefers tabs\n  - four wide\n  - except in YAML",
        "likes dark themes",
        "stands up at nine",
        "```\nmake test\n\nmake up\n```",
        "| a | b |\n| - | - |\n| 1 | 2 |",
    ]


def test_the_headings_above_a_block_are_its_category(found):
    assert [each["category"] for each in found] == ["Ana", *["Ana / Editor"] * 2, *["Ana / Work"] * 3]


def test_list_items_are_facts_and_other_blocks_documents(found):
    assert [each["kind"] for each in found] == ["document", "fact", "fact", "fact", "document", "document"]


def test_the_evidence_is_the_file_and_the_line(found):
    assert found[2]["evidence"] == ("notes.md:13",)


def test_comments_are_left_out_and_counted(found, run):
    assert run.skipped["comments"] == 1


def test_a_document_with_nothing_to_remember_is_an_error(put, run):
    with (
        open_source(put("notes.md", "# Only\n## Headings\n")) as source,
        pytest.raises(InvalidInput, match="no paragraph"),
    ):
        list(markdown.read(source, run))
