"""Markdown as a Word document: opened again, it holds the same words in the same places, and nothing that loads."""

import zipfile
from io import BytesIO

from docx import Document

from api.docx import docx

TEXT = """# 差旅 brief

## Hotel caps

The cap in Berlin is **EUR 140** [1].
It is *per night*.

- one
  - two
1. first

> 每晚不超过 550 元

| City | Cap |
|---|---|
| Berlin | 140 |

See [the page](http://outside.example/x) and ![picture](http://outside.example/p.png).

```
code
```
"""


def test_blocks_keep_their_words_and_kinds() -> None:
    document = Document(BytesIO(docx(TEXT, "Brief")))
    found = [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs]  # type: ignore[union-attr]
    assert document.core_properties.title == "Brief"
    assert found[:3] == [
        ("Heading 1", "差旅 brief"),
        ("Heading 2", "Hotel caps"),
        ("Normal", "The cap in Berlin is EUR 140 [1].\nIt is per night."),
    ]
    assert ("List Bullet", "one") in found
    assert ("List Bullet 2", "two") in found
    assert ("List Number", "first") in found
    assert ("Quote", "每晚不超过 550 元") in found
    assert found[-1] == ("No Spacing", "code")
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [
        ["City", "Cap"],
        ["Berlin", "140"],
    ]


def test_emphasis_is_kept() -> None:
    document = Document(BytesIO(docx("a **b** *c*", "t")))
    assert [(run.text, run.bold, run.italic) for run in document.paragraphs[0].runs] == [
        ("a ", False, False),
        ("b", True, False),
        (" ", False, False),
        ("c", False, True),
    ]


def test_nothing_in_it_leads_or_loads_from_outside() -> None:
    with zipfile.ZipFile(BytesIO(docx(TEXT, "Brief"))) as archive:
        inside = b"".join(archive.read(name) for name in archive.namelist() if name.endswith((".xml", ".rels")))
    assert b"outside.example/x" not in inside.replace(b"http://schemas", b"")
    assert b'TargetMode="External"' not in inside
