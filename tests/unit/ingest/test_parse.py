"""Every format from bytes to elements: headings with their depth, tables that read row by row, nothing hidden."""

from pathlib import Path

import pytest

from core.errors import DamagedFile, MissingExtra, NoText
from core.records import Element, ParsedDocument
from ingest import office, parse
from ingest.chunking import chunk
from ingest.options import ParseOptions
from tests.unit.ingest import compound_file, samples

ROW = "City: Berlin | Grade: A | Cap: 180 EUR"
OPTIONS = ParseOptions(max_bytes=10_000_000)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {path.suffix: path for path in samples.write_all(tmp_path)}


def told(parsed: ParsedDocument) -> list[tuple[str, int]]:
    return [(warning.code, warning.count) for warning in parsed.warnings]


def titles(elements: tuple[Element, ...]) -> list[tuple[int, str]]:
    return [(element.level, element.text) for element in elements if element.kind == "title"]


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".pdf", ".csv", ".md", ".html"])
def test_a_table_row_names_its_columns(files: dict[str, Path], suffix: str) -> None:
    parsed = parse.parse(files[suffix], options=OPTIONS)
    table = next(element for element in parsed.elements if element.kind == "table")
    assert ROW in table.text.splitlines()


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".pdf", ".csv", ".txt", ".md", ".html", ".eml"])
def test_every_format_gives_chunks_without_hidden_text(files: dict[str, Path], suffix: str) -> None:
    parsed = parse.parse(files[suffix], options=OPTIONS)
    text = "\n".join(piece.text for piece in chunk(parsed))
    assert text
    assert "CANARY" not in text


@pytest.mark.parametrize("suffix", [".docx", ".md", ".html", ".pdf"])
def test_the_title_heading_is_not_repeated_in_the_paths(files: dict[str, Path], suffix: str) -> None:
    parsed = parse.parse(files[suffix], options=OPTIONS)
    assert parsed.title == "Travel policy"
    paths = {piece.heading_path for piece in chunk(parsed)}
    assert all("Travel policy" not in path for path in paths)


def test_markdown_keeps_depth_lists_and_code(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".md"], options=OPTIONS)
    assert titles(parsed.elements) == [(2, "Hotels"), (3, "Caps"), (2, "Trains")]
    lines = [element.text for element in parsed.elements if element.kind == "list"]
    assert lines == ["1. Book early", "  - Second class", "2. Keep the receipt"]
    assert any("code = True" in element.text for element in parsed.elements)
    assert (str(parsed.effective_from), str(parsed.effective_to)) == ("2026-01-01", "2026-12-31")
    assert parsed.supersedes == "travel-2025.md"


def test_docx_headings_insertions_and_hidden_runs(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".docx"], options=OPTIONS)
    assert titles(parsed.elements) == [(1, "Hotels"), (2, "Caps"), (1, "Trains")]
    text = "\n".join(element.text for element in parsed.elements)
    assert "Visible words. Inserted words." in text
    assert "- Second class" in text
    assert "Running header" not in text
    assert told(parsed) == [("hidden_text", 3)]


def test_slides_are_pages_under_their_titles(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".pptx"], options=OPTIONS)
    assert (parsed.title, parsed.pages) == ("Continuity plan", 3)
    assert [(e.text, e.page) for e in parsed.elements if e.kind == "title"] == [("Hotel caps", 2)]
    assert told(parsed) == [("hidden_slides", 1)]


def test_a_sheet_is_a_heading_and_never_the_title(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".xlsx"], options=OPTIONS)
    assert parsed.title == "C"
    assert titles(parsed.elements) == [(2, "Hotel caps")]
    assert told(parsed) == [("hidden_sheets", 1)]


def test_html_keeps_the_article_only(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".html"], options=OPTIONS)
    text = "\n".join(element.text for element in parsed.elements)
    assert "travel desk" in text
    for noise in ("Intranet", "News", "Imprint"):
        assert noise not in text
    assert told(parsed) == [("hidden_text", 1)]


def test_mail_keeps_its_headers(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".eml"], options=OPTIONS)
    assert parsed.title == "差旅 receipts"
    assert parsed.elements[0].text.splitlines() == [
        "From: Priya Nair <priya@example.org>",
        "To: Daniel <daniel@example.org>",
        "Date: Thu, 22 Jan 2026 16:12:40 +0000",
        "Subject: 差旅 receipts",
    ]
    assert any("FIN-07" in element.text for element in parsed.elements)


def test_text_headings_are_found_by_their_looks(files: dict[str, Path]) -> None:
    parsed = parse.parse(files[".txt"], options=OPTIONS)
    assert parsed.title == "TRAVEL RULES"
    assert titles(parsed.elements) == [(2, "1. Hotels"), (2, "2. Trains")]


def test_a_page_of_front_matter_only_is_found_by_it(tmp_path: Path) -> None:
    path = tmp_path / "moved.md"
    path.write_text("---\ntitle: Billing policy\nredirect_to: /billing/\n---\n")
    parsed = parse.parse(path, options=OPTIONS)
    assert parsed.title == "Billing policy"
    assert [element.text for element in parsed.elements] == ["title: Billing policy", "redirect_to: /billing/"]


def test_headings_alone_become_text(tmp_path: Path) -> None:
    path = tmp_path / "outline.md"
    path.write_text("# One\n\n# Two\n")
    assert [(e.kind, e.text) for e in parse.parse(path, options=OPTIONS).elements] == [("text", "One"), ("text", "Two")]


def test_a_numbered_chapter_is_not_the_title(tmp_path: Path) -> None:
    path = tmp_path / "leave_rules-2026.md"
    path.write_text("# 1. Purpose\n\nWhy.\n\n# 2. Scope\n\nWho.\n")
    parsed = parse.parse(path, options=OPTIONS)
    assert parsed.title == "Leave rules 2026"
    assert titles(parsed.elements) == [(1, "1. Purpose"), (1, "2. Scope")]


def test_a_stored_copy_is_read_under_its_given_name(tmp_path: Path) -> None:
    path = tmp_path / ("0" * 64)
    path.write_text("# Leave\n\nThirty days.\n")
    assert parse.parse(path, options=OPTIONS, name="en/leave.md").title == "Leave"


def test_what_a_parser_raises_becomes_a_damaged_file_with_its_cause(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: bytes) -> None:
        raise ZeroDivisionError("inside a parser")

    monkeypatch.setattr(office, "read_docx", broken)
    with pytest.raises(DamagedFile) as raised:
        parse.parse(files[".docx"], options=OPTIONS)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_what_is_not_the_files_fault_is_not_blamed_on_it(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise MissingExtra

    monkeypatch.setattr(office, "_library", missing)
    with pytest.raises(MissingExtra):
        parse.parse(files[".docx"], options=OPTIONS)


def test_a_failing_scrub_rejects_the_document(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise RuntimeError("scrub")

    monkeypatch.setattr(parse, "clean", broken)
    with pytest.raises(DamagedFile):
        parse.parse(files[".md"], options=OPTIONS)


def test_invisible_characters_are_removed_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "hidden.txt"
    path.write_text("Pay\u200b day is\U000e0041 the 10th.\n")
    parsed = parse.parse(path, options=OPTIONS)
    assert parsed.elements[0].text == "Pay day is the 10th."
    assert told(parsed) == [("invisible_characters", 2)]


def test_a_message_with_an_attachment_only_leads_to_it(tmp_path: Path) -> None:
    path = tmp_path / "scan.eml"
    head = "From: a@example.org\nSubject: Scan\nContent-Type: application/octet-stream; name={}\n"
    tail = "Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\nJVBERi0=\n"
    path.write_text(head.format("scan.pdf") + tail)
    parsed = parse.parse(path, options=OPTIONS)
    assert [(a.name, a.data) for a in parsed.attachments] == [("scan.pdf", b"%PDF-")]
    assert parsed.elements[-1].text == "Attachments: scan.pdf"
    path.write_text(head.format("scan.exe") + tail)
    with pytest.raises(NoText):
        parse.parse(path, options=OPTIONS)


def test_the_subject_is_the_title_of_a_mail_whatever_its_text_is_headed(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(b"Subject: Travel\nContent-Type: text/html\n\n<h1>Newsletter</h1><p>Trains.</p>")
    assert parse.parse(path, options=OPTIONS).title == "Travel"


def test_an_outlook_message_is_read_like_mail(tmp_path: Path) -> None:
    path = tmp_path / "a.msg"
    path.write_bytes(
        compound_file.message_bytes(
            subject="Receipts",
            html=b"<p>A lost receipt.</p><p style='display:none'>CANARY</p>",
            attachments=(compound_file.attached_file("form.txt", b"FIN-07"),),
        )
    )
    parsed = parse.parse(path, options=OPTIONS)
    assert parsed.title == "Receipts"
    assert [element.text for element in parsed.elements[1:]] == ["A lost receipt.", "Attachments: form.txt"]
    assert told(parsed) == [("hidden_text", 1)]
    assert [attachment.data for attachment in parsed.attachments] == [b"FIN-07"]


def test_an_archive_is_the_list_of_its_documents(tmp_path: Path) -> None:
    path = tmp_path / "hr_forms.zip"
    path.write_bytes(samples.zip_bytes({"leave.md": b"# Leave", "tool.exe": b"MZ"}))
    parsed = parse.parse(path, options=OPTIONS)
    assert (parsed.title, [element.text for element in parsed.elements]) == ("Hr forms", ["- leave.md"])
    assert [attachment.name for attachment in parsed.attachments] == ["leave.md"]
    assert told(parsed) == [("attachments_refused", 1)]


def test_a_book_is_read_chapter_by_chapter(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    path.write_bytes(samples.epub_bytes())
    parsed = parse.parse(path, options=OPTIONS)
    assert parsed.title == "Staff handbook"
    assert [(e.kind, e.text) for e in parsed.elements] == [("title", "Leave"), ("text", "Leave is thirty days.")]
    assert told(parsed) == [("hidden_text", 1)]


def test_links_to_other_workbooks_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    links = "xl/externalLinks/_rels/externalLink1.xml.rels"
    path.write_bytes(samples.with_link(samples.xlsx_bytes(), links, "externalLinkPath", "other.xlsx"))
    assert ("external_links", 1) in told(parse.parse(path, options=OPTIONS))


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (
            "Stanley Cups,,\nTeam,Location,Cups\nBlues,STL,1\n",
            ["Stanley Cups", "Team: Blues | Location: STL | Cups: 1"],
        ),
        ("a;b;c\n1,5;2;3\n", ["a: 1,5 | b: 2 | c: 3"]),
        ("Name\tExt\nAda\t77\n", ["Name: Ada | Ext: 77"]),
        ("x,y\n1,2,3\n4\n", ["x: 1 | y: 2 | 3", "x: 4"]),
        ("only\none column\n", ["only", "one column"]),
    ],
)
def test_csv_of_all_shapes(tmp_path: Path, data: str, rows: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(data)
    assert parse.parse(path, options=OPTIONS).elements[0].text.splitlines() == rows
