from types import SimpleNamespace

import pytest

from keepward.core.policy import Policy
from keepward.errors import InvalidInput
from keepward.interchange import markdown
from keepward.interchange.reading import opened

HANDLE = SimpleNamespace(policy=Policy())

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
def found(put):
    with opened(put("notes.md", TEXT)) as source:
        return [entry.fields for entry in markdown.plan(source, HANDLE).entries]


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


def test_comments_are_left_out_and_counted(put):
    with opened(put("notes.md", TEXT)) as source:
        assert markdown.plan(source, HANDLE).left["comments"] == 1


def test_a_document_with_nothing_to_remember_is_an_error(put):
    with opened(put("notes.md", "# Only\n## Headings\n")) as source, pytest.raises(InvalidInput, match="no paragraph"):
        markdown.plan(source, HANDLE)
